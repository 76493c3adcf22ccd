"""Lists: pages with cursors that have each thing once, counts that add up with them, and every change in order."""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from operator import methodcaller
from typing import Any

from troth.runtime.store import Notifier, RunState, Store, Transaction
from troth.runtime.store.list_records import Page, changes_topic
from troth.runtime.store.promise_records import DeliveryState, NewPromise, PromiseState, Settlement
from troth.runtime.store.rows.sessions import KillRow, MemberRow, SessionRow
from troth.runtime.store.sqlite.transaction import run_topic
from troth.testing.store_conformance.check import PATIENCE, POINT, StoreGround, check, enrolled, in_threads, until

__all__: list[str] = []


def _walk(read: Callable[..., Page[Any]], limit: int, **wanted: Any) -> list[str]:
    """The ids of every page, one after the other."""
    ids: list[str] = []
    cursor: str | None = None
    while True:
        page = read(cursor=cursor, limit=limit, **wanted)
        ids += [item.id for item in page]
        cursor = page.next
        if cursor is None:
            return ids
        assert len(ids) < 1000, "the pages lead round in circles"


def _write_runs(tx: Transaction) -> None:
    for number in range(12):
        family = "flow" if number % 3 else "talk"
        tx.add_run(f"r{number:02}", f"{family}:{number % 2}", "[]", float(number // 2), label=f"l{number % 2}")
    tx.finish_run("r01", RunState.COMPLETED, 20.0, result="1")
    tx.finish_run("r02", RunState.FAILED, 21.0, error='{"type":"Boom","message":"no such Order"}', ending="rolled back")
    tx.finish_run("r04", RunState.FAILED, 22.0, error='{"type":"Boom","message":"out of paper"}')
    tx.set_run_state("r05", RunState.WAITING, 23.0, waiting_for="approval")


@check("lists")
def pages_of_runs_have_each_run_once(ground: StoreGround) -> None:
    """By family, state, workflow, time, session and text, whatever the size of a page."""
    with ground.open() as store:
        store.commit(POINT, _write_runs)
        everything = [f"r{number:02}" for number in range(11, -1, -1)]

        def ids(limit: int, **wanted: Any) -> list[str]:
            return _walk(store.lists.runs, limit, **wanted)

        flow = [run_id for run_id in everything if int(run_id[1:]) % 3]
        for limit in (1, 2, 5, 100):
            assert ids(limit) == everything
            assert ids(limit, family="flow:") == flow
            assert ids(limit, family="flow:", states=["rolled back", "failed"]) == ["r04", "r02"]
            assert ids(limit, family="flow:", states=["interrupted"]) == ["r11", "r10", "r08", "r07"]
            assert ids(limit, states=["running"]) == []
            assert ids(limit, label="l1") == ["r11", "r09", "r07", "r05", "r03", "r01"]
            assert ids(limit, label="l1", states=["completed", "waiting"]) == ["r05", "r01"]
            assert ids(limit, label="l1", family="flow:", since=2.0, until=5.0) == ["r07", "r05"]
            assert ids(limit, since=1.0, until=2.0) == ["r03", "r02"]
            assert ids(limit, text="ORDER") == ["r02"]
            assert ids(limit, text="l0", states=["failed"]) == ["r04"]
            assert ids(limit, states=[]) == []
        assert [store.lists.labels(), store.lists.labels(limit=1)] == [["l0", "l1"], ["l0"]]
        items = {item.id: item for item in store.lists.runs()}
        assert (items["r02"].error_type, items["r02"].error, items["r02"].state) == (
            "Boom",
            "no such Order",
            "rolled back",
        )
        assert (items["r05"].waiting_for, items["r05"].label, items["r05"].finished_at) == ("approval", "l1", None)


@check("lists")
def who_lives_tells_what_is_at_work(ground: StoreGround) -> None:
    """A run whose owner is gone is interrupted in lists and counts, and one that somebody holds is running."""
    with ground.open() as store:
        store.commit(POINT, _write_runs)
        with enrolled(store) as owner:
            for run_id in ("r03", "r08"):
                store.commit(POINT, methodcaller("claim", run_topic(run_id), owner.id, "t", store.clock()))
            for limit in (1, 50):
                running = _walk(store.lists.runs, limit, states=["running"])
                assert running == ["r08", "r03"]
            interrupted = [item.id for item in store.lists.runs(states=["interrupted"])]
            assert interrupted == ["r11", "r10", "r09", "r07", "r06", "r00"]
            assert store.lists.counts().runs == {
                "completed": 1,
                "failed": 1,
                "interrupted": 6,
                "rolled back": 1,
                "running": 2,
                "waiting": 1,
            }
            assert store.lists.counts(family="flow:").runs["running"] == 1


@check("lists")
def runs_of_a_session_or_an_owner_are_listed(ground: StoreGround) -> None:
    """Those that were begun in it, or by whoever it is through a server."""

    def write(tx: Transaction) -> None:
        for number in range(6):
            tx.add_run(f"r{number}", "flow:x", "[]", float(number))
            if number % 2 == 0:
                tx.server.claim("run", f"r{number}", "ann", float(number))
            else:
                tx.sessions.add_work(f"r{number}", "here", "ann", "run", "x", float(number))
        tx.finish_run("r3", RunState.COMPLETED, 9.0)

    with ground.open() as store:
        store.commit(POINT, write)
        for limit in (1, 2, 9):
            assert _walk(store.lists.runs, limit, session="here") == [
                "r5",
                "r3",
                "r1",
            ]
        assert [item.id for item in store.lists.runs(session="here", states=["completed"])] == ["r3"]
        assert store.lists.runs(session="elsewhere").items == []
        for limit in (1, 9):
            assert _walk(store.lists.runs, limit, owner="ann", family="flow:") == ["r4", "r2", "r0"]


@check("lists")
def runs_of_several_families_are_one_list(ground: StoreGround) -> None:
    """Those of workflows, and those that a session carries out: in lists, counts and searches, with whose they are."""
    families = ("flow:", "session flow:")

    def write(tx: Transaction) -> None:
        tx.server.claim("session", "here", "ann", 0.0)
        for number in range(9):
            decision = ("flow:x", "session flow:x", "session act look")[number % 3]
            tx.add_run(f"r{number}", decision, "[]", float(number), label=None if number % 3 == 2 else "x")
            if number % 3:
                place, kind = "here" if number < 6 else "there", "run" if number % 3 == 1 else "act"
                tx.sessions.add_work(f"r{number}", place, f"a{number}", kind, "x", float(number))
        tx.server.claim("run", "r3", "ann", 3.0)
        for number in (1, 3, 5):
            tx.finish_run(f"r{number}", RunState.COMPLETED, 20.0 + number)

    with ground.open() as store:
        store.commit(POINT, write)

        def ids(limit: int, **wanted: Any) -> list[str]:
            return _walk(store.lists.runs, limit, family=families, **wanted)

        for limit in (1, 2, 50):
            assert ids(limit) == ["r7", "r6", "r4", "r3", "r1", "r0"]
            assert ids(limit, states=["completed"]) == ["r3", "r1"]
            assert ids(limit, states=["damaged"]) == []
            assert ids(limit, label="x", states=["interrupted"]) == ["r7", "r6", "r4", "r0"]
            assert ids(limit, session="here") == ["r4", "r1"]
            assert ids(limit, owner="ann") == ["r4", "r3", "r1"]
            assert ids(limit, text="R4") == ["r4"]
        with enrolled(store) as owner:
            store.commit(POINT, methodcaller("claim", run_topic("r4"), owner.id, "t", store.clock()))
            assert ids(1, states=["running"]) == ["r4"]
            counts = store.lists.counts(family=families).runs
            assert counts == {"completed": 2, "interrupted": 3, "running": 1}
        places = {item.id: (item.session, item.agent) for item in store.lists.runs()}
        assert (places["r0"], places["r4"], places["r7"]) == ((None, None), ("here", "a4"), ("there", "a7"))
        assert _walk(store.lists.search, 2, text="r", kinds=["run"], family=families) == [
            *("r7", "r6", "r4", "r3", "r1", "r0")
        ]


@check("lists")
def conversations_are_listed_by_their_last_run(ground: StoreGround) -> None:
    """A conversation is known by its log: by whom, what was said first, and how its last run ended."""

    def say(name: str, kind: str, at: float, **payload: Any) -> None:
        store.commit(POINT, lambda tx: tx.append_event(f"conversation/{name}", kind, payload, at))

    with ground.open() as store:
        for number, name in enumerate(("a", "b", "c")):
            say(name, "opened", float(number), agent="shop.Clerk")
        say("a", "message", 4.0, role="user", text="Where is my order?")
        say("a", "message", 5.0, role="user", text="Hello?")
        say("a", "run.started", 6.0, run="1")
        say("b", "run.started", 7.0, run="2")
        say("b", "run.ended", 8.0, run="2", outcome="finished")
        say("a", "run.ended", 9.0, run="0", outcome="failed")  # of a run that lost its lease
        items = {item.id: item for item in store.lists.conversations()}
        assert list(items) == ["b", "a", "c"]
        assert (items["a"].agent, items["a"].title, items["a"].opened_at) == ("shop.Clerk", "Where is my order?", 0.0)
        assert [item.state for item in items.values()] == ["finished", "interrupted", "idle"]
        assert store.lists.counts().conversations == {"finished": 1, "idle": 1, "interrupted": 1}
        with enrolled(store) as owner:
            store.commit(POINT, lambda tx: tx.claim("conversation/a", owner.id, "1", store.clock()))
            assert [item.id for item in store.lists.conversations(states=["running"])] == ["a"]
            assert store.lists.conversations(states=["interrupted"]).items == []
            assert store.lists.counts().conversations == {"finished": 1, "idle": 1, "running": 1}
        for limit in (1, 2, 3):
            assert _walk(store.lists.conversations, limit) == ["b", "a", "c"]


_OPENED = ("opened", {"agent": "shop.Clerk"})
_SAID, _RULE = ("message", {"role": "user", "text": "hello"}), ("message", {"role": "system", "text": "be brief"})
_STARTED, _ENDED = ("run.started", {"run": "1"}), ("run.ended", {"run": "1", "outcome": "finished"})


@check("lists")
def entries_that_are_written_at_once_are_as_one_by_one(ground: StoreGround) -> None:
    """Their numbers, the log, and what a list shows of the talk, whether it is new or goes on."""
    pieces: list[list[list[tuple[str, object]]]] = [
        [[_OPENED]],
        [[_OPENED, _RULE, _SAID, ("note", [1]), _STARTED]],
        [[_OPENED, _SAID, _STARTED, _ENDED]],
        [[_OPENED], [_SAID, _STARTED], [_ENDED, _STARTED]],
        [[_SAID, _OPENED]],
        [[_OPENED, _SAID], [_OPENED, _STARTED]],
    ]
    with ground.open() as store:
        for number, parts in enumerate(pieces):
            whole, single = f"conversation/whole{number}", f"conversation/single{number}"
            for at, part in enumerate(parts, 1):
                first = store.commit(POINT, partial(_append_all, stream=whole, entries=part, at=float(at)))
                for kind, payload in part:
                    store.commit(POINT, partial(_append_all, stream=single, entries=[(kind, payload)], at=float(at)))
                assert first == store.last_event(single) - len(part) + 1
            logs = [
                [(event.seq, event.kind, event.payload, event.at) for event in store.events(stream)]
                for stream in (whole, single)
            ]
            assert logs[0] == logs[1]
            items = {item.id: item for item in store.lists.conversations(limit=100)}
            shown = [items.get(f"{name}{number}") for name in ("whole", "single")]
            facts = [item and (item.agent, item.title, item.state, item.opened_at, item.changed_at) for item in shown]
            assert facts[0] == facts[1]


def _append_all(tx: Transaction, *, stream: str, entries: Sequence[tuple[str, object]], at: float) -> int:
    if len(entries) == 1:
        return tx.append_event(stream, *entries[0], at)
    return tx.append_events(stream, entries, at)


@check("lists")
def sessions_are_listed_and_counted(ground: StoreGround) -> None:
    """By state, with who is there."""

    def write(tx: Transaction) -> None:
        for number in range(5):
            tx.sessions.add_session(SessionRow(f"s{number}", "ann", "created", "{}", float(number), 99.0, None, None))
        member = MemberRow("s1", "bob", "present", 2, 0.5, "[]", "[]", None, 1.0, None, None, None, None, 1.0, 0.0, 0.0)
        tx.sessions.put_member(member)
        tx.sessions.set_session_state("s1", "active")
        tx.sessions.set_session_state("s0", "archived", ended_at=6.0)
        tx.sessions.add_kill(KillRow("k", "s1", "bob", "why", None, 7.0, 1, None))

    with ground.open() as store:
        store.commit(POINT, write)
        for limit in (1, 2, 9):
            assert _walk(store.lists.sessions, limit) == [
                "s4",
                "s3",
                "s2",
                "s1",
                "s0",
            ]
            states = ["active", "created"]
            walked = _walk(store.lists.sessions, limit, states=states)
            assert walked == ["s4", "s3", "s2", "s1"]
        (active,) = store.lists.sessions(states=["active"])
        assert (active.present, active.creator) == (1, "ann")
        counts = store.lists.counts()
        assert (counts.sessions, counts.kills, counts.asks) == ({"active": 1, "archived": 1, "created": 3}, 1, 0)
        store.commit(POINT, lambda tx: tx.sessions.answer_kill("k", "{}"))
        assert store.lists.counts().kills == 0
        changed = [(change.kind, change.thing, change.word) for change in store.lists.changes().items]
        assert changed[5:] == [
            ("member", "s1", "present"),
            ("session", "s1", "active"),
            ("session", "s0", "archived"),
            ("kill", "k", "open"),
            ("kill", "k", "answered"),
        ]


@check("lists")
def promises_and_deliveries_are_listed(ground: StoreGround) -> None:
    """Each from its promise to its fate; counts by state are those of the list."""

    def write(tx: Transaction) -> None:
        for number in range(6):
            run_id = f"p{number}"
            channel = "chat" if number % 2 else None
            tx.add_run(run_id, "d", "[]", float(number))
            tx.promises.add(
                NewPromise(run_id, f"s{number % 3}", "run", run_id, "t", channel, None, None, float(number))
            )
        tx.promises.add(NewPromise("j", "s0", "job", "j", "make it", None, None, None, 7.0))
        for number in range(1, 5):
            tx.finish_run(f"p{number}", RunState.COMPLETED, 10.0 + number, result="1")
        tx.promises.add_delivery("j", "watch", 12.0, text="hit")

    def settle(tx: Transaction) -> None:
        (leased,) = tx.promises.lease("chat", owner_id, "t", 20.0, until=30.0, limit=1, due_before=20.0)
        assert leased.id == "p1-done-1"
        tx.promises.settle_attempt(leased.id, "t", Settlement(DeliveryState.DEAD, problem="410 Gone"), 21.0)
        tx.promises.acknowledge("p2-done-1", 22.0, "ann")

    with ground.open() as store, enrolled(store) as owner:
        owner_id = owner.id
        store.commit(POINT, write)
        store.commit(POINT, settle)
        delivered = ["p4-done-1", "p3-done-1", "p2-done-1", "p1-done-1"]
        for limit in (1, 2, 9):
            assert _walk(store.lists.deliveries, limit) == ["j-watch-1", *delivered]
            assert _walk(store.lists.promises, limit) == [*("j", "p5", "p4", "p3", "p2", "p1", "p0")]
            pending = _walk(store.lists.deliveries, limit, states=["due", "stored"])
            assert pending == ["j-watch-1", "p4-done-1", "p3-done-1"]
            assert _walk(store.lists.promises, limit, session="s1") == ["p4", "p1"]
            still = _walk(store.lists.promises, limit, states=["open"])
            assert still == ["j", "p5", "p0"]
        assert [item.id for item in store.lists.deliveries(session="s1")] == ["p4-done-1", "p1-done-1"]
        assert [item.id for item in store.lists.jobs()] == ["j"]
        (dead,) = store.lists.deliveries(states=["dead"])
        assert (dead.problem, dead.channel, dead.meant_for, dead.attempt, dead.title) == (
            "410 Gone",
            "chat",
            "chat",
            1,
            "t",
        )
        assert store.lists.counts().deliveries == {"dead": 1, "delivered": 1, "due": 1, "stored": 2}
        assert {item.id: item.state for item in store.lists.promises()}["p2"] == PromiseState.DONE


@check("lists")
def every_change_is_told_once_and_in_order(ground: StoreGround) -> None:
    """To whoever goes on behind the last one that was told, whoever writes at the same time."""
    told: list[int] = []
    words: list[tuple[str, str]] = []

    def write(store: Store, name: str) -> None:
        for number in range(10):
            run_id = f"{name}{number}"
            store.commit(POINT, methodcaller("add_run", run_id, "flow:x", "[]", 1.0))
            store.commit(POINT, methodcaller("finish_run", run_id, RunState.COMPLETED, 2.0))

    def read(store: Store, written: threading.Event) -> None:
        after, deadline = 0, time.monotonic() + PATIENCE
        # A database tells of a change when all commits are over that had begun before it: perhaps a moment later.
        while not written.is_set() or (len(words) < 40 and time.monotonic() < deadline):
            while page := store.lists.changes(after=after, limit=7).items:
                told.extend(change.id for change in page)
                words.extend((change.thing, change.word) for change in page)
                after = page[-1].id

    def write_all(written: threading.Event, stores: tuple[Store, Store]) -> None:
        try:
            in_threads([partial(write, store, name) for store, name in zip(stores, ("a", "b"), strict=True)])
        finally:
            written.set()

    with ground.open() as first, ground.open() as second, ground.open() as reader:
        written = threading.Event()
        in_threads([partial(write_all, written, (first, second)), partial(read, reader, written)])
        changes = reader.lists.changes()
        assert told == sorted(set(told))
        assert sorted(words) == sorted(
            (f"{name}{number}", word) for name in "ab" for number in range(10) for word in ("running", "completed")
        )
        assert (changes.last, changes.items[0].family, changes.items[0].kind) == (told[-1], "flow:", "run")
        assert first.lists.counts(family="flow:").runs == {"completed": 20}


@check("lists")
def a_change_rings(ground: StoreGround) -> None:
    """Whoever listens to changes is told of one by another store, and of none that was rolled back."""
    with ground.open() as store, ground.open() as other:
        bell = Notifier()
        with store.listening(bell, changes_topic):
            store.commit(POINT, lambda tx: tx.add_run("mine", "d", "[]", 1.0))
            assert bell.count > 0
            seen = bell.count
            other.commit(POINT, lambda tx: tx.add_run("theirs", "d", "[]", 1.0))
            until(lambda: bell.count > seen, "news of another store's change")

        def fail(tx: Transaction) -> None:
            tx.add_run("none", "d", "[]", 1.0)
            raise KeyError

        with contextlib.suppress(KeyError):
            store.commit(POINT, fail)
        assert [change.thing for change in store.lists.changes().items] == ["mine", "theirs"]
        assert store.lists.counts().runs == {"interrupted": 2}


@check("lists")
def what_was_written_is_found(ground: StoreGround) -> None:
    """By a part of an id, of a name or of what was said, without regard to case; `%` and `_` mean themselves."""

    def write(tx: Transaction) -> None:
        tx.add_run("order-1", "flow:x", "[]", 1.0, label="ship it")
        tx.add_run("order_2", "flow:x", "[]", 2.0, label="100% sure")
        tx.finish_run("order-1", RunState.FAILED, 3.0, error='{"type":"E","message":"no stamps left"}')
        tx.append_event("conversation/talk", "opened", {"agent": "Clerk"}, 4.0)
        tx.append_event("conversation/talk", "message", {"role": "user", "text": 'where are "my" stamps, Jürgen?'}, 5.0)
        tx.append_event("elsewhere", "message", {"role": "user", "text": "stamps"}, 6.0)

    def found(text: str, **more: Any) -> list[tuple[str, str]]:
        return [(hit.kind, hit.id) for hit in store.lists.search(text, **more)]

    with ground.open() as store:
        store.commit(POINT, write)
        assert found("STAMPS", kinds=["message", "run"]) == [("message", "talk"), ("run", "order-1")]
        assert found("ship") == [("run", "order-1")]
        assert found("r_2") == [("run", "order_2")]
        assert found("0%") == [("run", "order_2")]
        assert found('"my"', kinds=["message"]) == [("message", "talk")]
        assert found("Jürgen", kinds=["message"]) == [("message", "talk")]
        assert found("jürgen STAMPS", kinds=["message"]) == [("message", "talk")], "each word, in any order"
        assert found("stamps nowhere") == []
        assert found("ord ship") == [("run", "order-1")]
        (hit,) = store.lists.search("LEFT ship")
        assert hit.text == "E: no stamps left · ship it", "all words are shown, and errors as people read them"
        (hit,) = store.lists.search("stamps,", kinds=["message"])
        assert hit.text == 'where are "my" stamps, Jürgen?'
        page = store.lists.search("order", limit=1)
        assert ([hit.id for hit in page], page.next is not None) == (["order_2"], True)
        assert [hit.id for hit in store.lists.search("order", limit=1, cursor=page.next)] == ["order-1"]
