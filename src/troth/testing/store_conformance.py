"""What every store has to do, as checks that raise AssertionError.

    for check in checks("streams", "leases"):
        check.run(ground)

A `Ground` says how to open the store under test, here and in another process. The file and PostgreSQL pass every part.
Each check begins on an empty store.
"""

import asyncio
import itertools
import json
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from typing import Any, Literal, Protocol

from troth.errors import MisuseError
from troth.runtime.store import (
    Follower,
    Happened,
    HistoryFollower,
    LeaseLostError,
    Notifier,
    RunState,
    StepState,
    Store,
    Transaction,
    commit_point,
)
from troth.runtime.store.failpoints import InjectedFaultError
from troth.runtime.store.identity import Owner, new_owner, retire
from troth.runtime.store.promise_records import DeliveryState, NewPromise, PromiseState, Settlement
from troth.runtime.store.records import BegunStep, Place
from troth.runtime.store.session_rows import AskRow, FileRow, MemberRow, SessionRow
from troth.runtime.store.transaction import run_topic
from troth.testing import failpoints

__all__ = ["Check", "Ground", "Part", "checks"]

Part = Literal["commits", "streams", "runs", "history", "signals", "leases", "promises", "sessions", "news"]

POINT = commit_point("conformance.commit", "whatever a check of a store writes")
_PATIENCE = 60.0  # seconds until something that has to come has not come


class Ground(Protocol):
    """Where a store under test lives: each `open` is the same store, empty at first."""

    def open(self) -> AbstractContextManager[Store]:
        """The store."""

    def program(self) -> str:
        """Python that defines `open_store()`, meaning the same in another process."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing a store has to do."""

    part: Part
    body: Callable[[Ground], None]

    @property
    def name(self) -> str:
        """What it is called."""
        return self.body.__name__

    def run(self, ground: Ground) -> None:
        """Raise if the store does not do it. Leaves nothing running."""
        self.body(ground)


_checks: list[Check] = []


def checks(*parts: Part) -> list[Check]:
    """The checks of these parts; all of them if none is named."""
    return [check for check in _checks if not parts or check.part in parts]


def _check(part: Part) -> Callable[[Callable[[Ground], None]], Callable[[Ground], None]]:
    def add(body: Callable[[Ground], None]) -> Callable[[Ground], None]:
        _checks.append(Check(part, body))
        return body

    return add


# What the checks share


def _append(text: object, stream: str = "s") -> Callable[[Transaction], int]:
    return lambda tx: tx.append_event(stream, "said", text, 1.5)


def _said(store: Store, stream: str = "s") -> list[Any]:
    return [event.payload for event in store.events(stream)]


def _in_threads(works: Sequence[Callable[[], object]]) -> list[object]:
    """Do all of them at once; what one of them raises is raised here."""
    answers: list[object] = [None] * len(works)
    problems: list[BaseException] = []

    def do(index: int) -> None:
        try:
            answers[index] = works[index]()
        except BaseException as problem:  # noqa: BLE001  raised below, in the thread that asked
            problems.append(problem)

    threads = [threading.Thread(target=do, args=(index,)) for index in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_PATIENCE)
    if problems:
        raise problems[0]
    assert not any(thread.is_alive() for thread in threads), "a commit did not return"
    return answers


@contextmanager
def _process(ground: Ground, body: str, *words: str) -> Iterator["subprocess.Popen[str]"]:
    text = f"import sys\n{ground.program()}\n{textwrap.dedent(body)}"
    with subprocess.Popen(
        [sys.executable, "-c", text, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _until(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + _PATIENCE
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"{what} did not come true"
        time.sleep(0.01)
    return answer


@contextmanager
def _owner(store: Store) -> Iterator[Owner]:
    owner = new_owner(store.clock())
    store.commit(POINT, lambda tx: tx.enroll(owner))
    try:
        yield owner
    finally:
        retire(owner)


def _claimed(store: Store, owner: Owner, token: str, run_id: str = "r") -> Callable[[Transaction], Owner | None]:
    def work(tx: Transaction) -> Owner | None:
        now = store.clock()
        tx.add_run(run_id, "d", "[]", now)
        return tx.claim(run_topic(run_id), owner.id, token, now)

    return work


# Commits


@_check("commits")
def what_raises_leaves_no_trace(ground: Ground) -> None:
    """The error is the caller's, what the work wrote is gone, and the next commit goes on."""

    def half(tx: Transaction) -> None:
        tx.append_event("s", "said", "half", 1.0)
        tx.add_run("r", "d", "[]", 1.0)
        raise ValueError("enough")

    with ground.open() as store:
        store.commit(POINT, _append("before"))
        for commit in (store.commit, lambda point, work: asyncio.run(_acommit(store, point, work))):
            try:
                commit(POINT, half)
            except ValueError as error:
                assert str(error) == "enough"  # noqa: PT017
            else:
                raise AssertionError("what the work raised was not raised")
        assert store.commit(POINT, _append("after")) == 2
        assert (_said(store), store.run("r")) == (["before", "after"], None)


async def _acommit(store: Store, point: Any, work: Callable[[Transaction], Any]) -> Any:
    return await store.acommit(point, work)


@_check("commits")
def those_who_commit_at_once_get_their_own_answers(ground: Ground) -> None:
    """Threads and tasks, some of whose work fails: what they share is nobody's loss."""

    def work(number: int) -> Callable[[Transaction], int]:
        def write(tx: Transaction) -> int:
            tx.append_event(f"s{number}", "said", number, 1.0)
            if number % 5 == 0:
                raise KeyError(number)
            return number

        return write

    def in_thread(store: Store, number: int) -> object:
        try:
            return store.commit(POINT, work(number))
        except KeyError as refused:
            return refused.args[0], "refused"

    async def in_tasks(store: Store) -> list[object]:
        commits = (store.acommit(POINT, work(number)) for number in range(100, 130))
        return list(await asyncio.gather(*commits, return_exceptions=True))

    with ground.open() as store:
        threads = _in_threads([partial(in_thread, store, number) for number in range(20)])
        assert threads == [(number, "refused") if number % 5 == 0 else number for number in range(20)]
        for number, answer in enumerate(asyncio.run(in_tasks(store)), start=100):
            assert isinstance(answer, KeyError) if number % 5 == 0 else answer == number
        for number in [*range(20), *range(100, 130)]:
            assert _said(store, f"s{number}") == ([] if number % 5 == 0 else [number])


@_check("commits")
def a_commit_is_whole_at_every_failpoint(ground: Ground) -> None:
    """Before it is committed nothing is there, after that everything is, whatever happens in between."""
    with ground.open() as store:
        for name, is_kept in ((POINT.before, False), (POINT.written, False), (POINT.after, True)):
            stream = name.rpartition(".")[2]
            with failpoints.armed(name, "raise"):
                try:
                    store.commit(POINT, _append("x", stream))
                except InjectedFaultError:
                    pass
                else:
                    raise AssertionError(f"{name} was not reached")
            assert _said(store, stream) == (["x"] if is_kept else [])
        assert store.commit(POINT, _append("y", "after")) == 2


@_check("commits")
def a_commit_sees_what_it_has_written(ground: Ground) -> None:
    """And nobody else does before it is kept; the store itself is not asked inside of it."""

    def work(tx: Transaction) -> None:
        tx.append_event("s", "said", "a", 1.0)
        tx.add_run("r", "d", "[1]", 1.0)
        assert [event.payload for event in tx.events("s")] == ["a"]
        assert tx.last_event("s") == 1
        assert tx.asked_of("r") == ("d", "[1]", RunState.RUNNING)
        tx.set_meta("k", {"v": 1})
        assert tx.get_meta("k") == {"v": 1}
        for question in (partial(store.events, "s"), partial(store.run, "r")):
            try:
                question()
            except MisuseError:
                continue
            raise AssertionError("the store was asked inside a commit")

    with ground.open() as store, ground.open() as other:
        store.commit(POINT, work)
        assert _said(other) == ["a"]
        assert other.commit(POINT, lambda tx: tx.get_meta("k")) == {"v": 1}
        assert other.commit(POINT, lambda tx: tx.get_meta("nothing")) is None


@_check("commits")
def a_closed_store_says_so(ground: Ground) -> None:
    """It may be closed twice, and then neither writes nor reads."""
    with ground.open() as store:
        store.commit(POINT, _append("a"))
        store.close()
        store.close()
        for use in (partial(store.commit, POINT, _append("b")), partial(store.events, "s")):
            try:
                use()
            except MisuseError:
                continue
            raise AssertionError("a closed store was used")
    with ground.open() as again:
        assert _said(again) == ["a"]


# Streams


@_check("streams")
def numbers_have_no_gaps(ground: Ground) -> None:
    """Threads of two stores append to one stream, and some of their commits fail."""

    def append(store: Store, number: int) -> None:
        def work(tx: Transaction) -> int:
            seq = tx.append_event("s", "said", number, 1.0)
            if number % 4 == 0:
                raise KeyError(number)
            return seq

        try:
            store.commit(POINT, work)
        except KeyError:
            assert number % 4 == 0

    with ground.open() as one, ground.open() as two:
        _in_threads([partial(append, store, number) for number in range(40) for store in (one, two)])
        events = one.events("s")
        assert [event.seq for event in events] == list(range(1, 61))
        assert sorted(event.payload for event in events) == sorted([n for n in range(40) if n % 4] * 2)
        assert one.last_event("s") == two.last_event("s") == 60
        assert two.events("s", after=57) == events[57:]
        assert [event.seq for event in two.events("s", after=10, limit=3)] == [11, 12, 13]
        assert (one.events("none"), one.last_event("none")) == ([], 0)


@_check("streams")
def processes_append_to_one_stream(ground: Ground) -> None:
    """Each entry once, without a gap, with those of one process in their order."""
    body = """
        from troth.runtime.store import commit_point
        POINT = commit_point("conformance.commit", "whatever a check of a store writes")
        with open_store() as store:
            print("ready", flush=True)
            sys.stdin.readline()
            for number in range(25):
                store.commit(POINT, lambda tx: tx.append_event("s", "said", [sys.argv[1], number], 1.0))
    """
    with ground.open() as store, ExitStack() as stack:
        processes = [stack.enter_context(_process(ground, body, word)) for word in ("a", "b", "c")]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.communicate("\n", timeout=_PATIENCE)
            assert process.returncode == 0
        events = store.events("s")
        assert [event.seq for event in events] == list(range(1, 76))
        for word in ("a", "b", "c"):
            assert [event.payload[1] for event in events if event.payload[0] == word] == list(range(25))


@_check("streams")
def the_streams_written_to_last_come_first(ground: Ground) -> None:
    """Of those whose names begin alike."""
    with ground.open() as store:
        for name in ("talk/a", "talk/b", "other", "talk/c", "talk/a", "talkative"):
            store.commit(POINT, _append("x", name))
        assert store.recent_streams("talk/", 2) == ["talk/a", "talk/c"]
        assert store.recent_streams("talk/", 9) == ["talk/a", "talk/c", "talk/b"]


# Runs


@_check("runs")
def a_run_is_written_once(ground: Ground) -> None:
    """A second one of the same id leaves it as it is; what is read is what was written."""
    with ground.open() as store:
        add = methodcaller("add_run", "r", "d", '[1,"a"]', 2.5, label="l", code="c")
        assert store.commit(POINT, add) is True
        assert store.commit(POINT, lambda tx: tx.add_run("r", "other", "[]", 9.0)) is False
        run = store.run("r")
        assert run is not None
        assert (run.decision, run.args, run.label, run.code, run.created_at) == ("d", (1, "a"), "l", "c", 2.5)
        assert run.state is RunState.INTERRUPTED, "nobody holds it"
        store.commit(POINT, lambda tx: tx.set_run_state("r", RunState.WAITING, 3.0, waiting_for="it", wake_at=9.0))
        run = store.run("r")
        assert run is not None
        assert (run.state, run.waiting_for, run.wake_at) == (RunState.WAITING, "it", 9.0)
        assert store.run("none") is None


@_check("runs")
def a_run_ends_and_is_taken_up_again(ground: Ground) -> None:
    """Only from the end that somebody has looked at."""
    with ground.open() as store:
        store.commit(POINT, lambda tx: tx.add_run("r", "d", "[]", 1.0))
        assert store.commit(POINT, lambda tx: tx.request_cancel("r", 2.0)) is True
        assert store.cancelling() == ["r"]
        store.commit(POINT, lambda tx: tx.finish_run("r", RunState.FAILED, 3.0, error='{"type":"E"}', ending="gone"))
        run = store.run("r")
        assert run is not None
        assert (run.state, run.error, run.ending) == (RunState.FAILED, {"type": "E"}, "gone")
        assert store.commit(POINT, lambda tx: tx.ending_of("r")) == (RunState.FAILED, None, '{"type":"E"}')
        assert store.commit(POINT, lambda tx: tx.request_cancel("r", 4.0)) is False
        assert store.commit(POINT, lambda tx: tx.reopen_run("r", 5.0, ended_at=2.9)) is False
        assert store.commit(POINT, lambda tx: tx.reopen_run("r", 5.0, ended_at=3.0)) is True
        assert store.commit(POINT, lambda tx: tx.reopen_run("r", 5.0, ended_at=3.0)) is False
        assert store.commit(POINT, lambda tx: tx.state_of("r")) is RunState.RUNNING
        assert store.cancelling() == []
        assert [entry.what for entry in store.history("r")] == [
            Happened.RUN_BEGUN,
            Happened.RUN_ENDED,
            Happened.RUN_RESUMED,
        ]


@_check("runs")
def runs_are_listed_newest_first(ground: Ground) -> None:
    """By state, decision, label, parent, family and word, page by page."""

    def write(tx: Transaction) -> None:
        for number in range(7):
            family = "flow" if number % 2 else "talk"
            tx.add_run(f"r{number}", f"{family}:{number % 3}", "[]", float(number // 2), label=f"l{number % 2}")
        tx.finish_run("r1", RunState.COMPLETED, 9.0, result="1")
        tx.finish_run("r3", RunState.FAILED, 9.0, error="{}", ending="rolled back")

    def ids(**wanted: Any) -> list[str]:
        return [run.id for run in store.runs(**wanted)]

    with ground.open() as store:
        store.commit(POINT, write)
        everything = ["r6", "r5", "r4", "r3", "r2", "r1", "r0"]
        assert ids() == everything
        assert ids(states=[RunState.INTERRUPTED]) == ["r6", "r5", "r4", "r2", "r0"]
        assert ids(states=[RunState.RUNNING]) == []
        assert ids(states=[RunState.COMPLETED, RunState.FAILED]) == ["r3", "r1"]
        assert ids(label="l1", limit=2) == ["r5", "r3"]
        assert ids(decision="flow:0") == ["r3"]
        assert ids(family="flow:") == ["r5", "r3", "r1"]
        assert ids(family="flow:", word="rolled back") == ["r3"]
        assert ids(family="flow:", word="interrupted") == ["r5"]
        assert ids(family="flow:", word="running") == []
        paged: list[str] = []
        before: tuple[float, str] | None = None
        while page := store.runs(before=before, limit=3):
            paged += [run.id for run in page]
            before = page[-1].created_at, page[-1].id
        assert paged == everything


# What happened in a run


def _step(tx: Transaction, place: Place, name: str, now: float, **more: Any) -> None:
    tx.begin_step(place, kind="step", name=name, key=f"k{place}", args="[]", now=now, **more)


@_check("history")
def a_step_is_what_its_entries_say(ground: Ground) -> None:
    """Begun, tried again, settled; what is not shown has no number of its own."""
    place, branch = Place("r", "", 1), Place("r", "2.0/", 1)

    def write(tx: Transaction) -> None:
        tx.add_run("r", "d", "[]", 1.0)
        _step(tx, place, "one", 2.0, color="sync", code="c1")
        tx.add_attempt(
            place, name="one", number=1, outcome="failed", error='{"m":1}', started_at=2.0, now=3.0, next_at=4.0
        )
        tx.begin_attempt(place, 2, 4.0, name="one", code="c2")
        tx.settle_step(place, StepState.DONE, 5.0, kind="step", name="one", attempt=2, result='{"a":[1]}')
        tx.begin_step(
            branch, kind="wait", name="s", key="k", args="[]", now=6.0, state=StepState.WAITING, wake_at=9.0, note="[1]"
        )
        tx.tell_code_changed(place, 7.0, name="one", before="c1", code="c2")
        tx.tell_callback_failed("r", 8.0, name="listener", error='{"type":"E"}')

    with ground.open() as store:
        store.commit(POINT, write)
        one, two = store.steps("r")
        assert (one.place, one.state, one.result, one.attempt, one.code) == (place, StepState.DONE, {"a": [1]}, 2, "c2")
        assert [(attempt.number, attempt.outcome, attempt.error) for attempt in one.attempts] == [
            (1, "failed", {"m": 1})
        ]
        assert (two.place, two.state, two.wake_at) == (branch, StepState.WAITING, 9.0)
        entries = store.history("r")
        assert [entry.seq for entry in entries] == list(range(1, 8))
        assert store.last_entry("r") == 7
        assert Happened.AGAIN not in [entry.what for entry in entries]
        assert [entry.seq for entry in store.history("r", after=2, limit=2)] == [3, 4]
        store.commit(POINT, lambda tx: tx.take_back_step(one, 9.0))
        recorded = store.recorded("r")
        assert ([step.place for step in recorded.steps], recorded.taken_back[0].result) == ([branch], {"a": [1]})


@_check("history")
def a_fork_has_the_steps_before_it(ground: Ground) -> None:
    """With their branches, numbered behind what the new run has, and the name of the run that did them."""

    def write(tx: Transaction) -> int:
        tx.add_run("r", "d", "[]", 1.0)
        for place in (
            Place("r", "", 1),
            Place("r", "", 2),
            Place("r", "2.0/", 1),
            Place("r", "2.1/", 1),
            Place("r", "", 3),
        ):
            _step(tx, place, f"at {place}", 2.0, is_shown=place.seq != 2)
            tx.settle_step(place, StepState.DONE, 3.0, kind="step", name=f"at {place}", result="1")
        tx.add_run("f", "d", "[]", 4.0)
        return tx.copy_steps("r", "f", 3)

    with ground.open() as store:
        assert store.commit(POINT, write) == 4
        assert [str(step.place) for step in store.steps("f")] == ["1", "2", "2.0/1", "2.1/1"]
        assert {entry.done_by for entry in store.history("f")[1:]} == {"r"}
        store.commit(POINT, lambda tx: _step(tx, Place("f", "", 3), "next", 5.0))
        assert [entry.seq for entry in store.history("f")] == list(range(1, store.last_entry("f") + 1))


@_check("history")
def a_held_step_is_begun_by_its_owner_alone(ground: Ground) -> None:
    """In one statement with the proof of the lease; a cancellation is told with it."""
    begun = BegunStep("one", "k", "[]", "sync", "c", 2.0)
    with ground.open() as store, _owner(store) as owner:
        assert store.commit(POINT, _claimed(store, owner, "mine")) is None

        def begin(seq: int, token: str, step: BegunStep = begun) -> bool:
            return store.commit(POINT, lambda tx: tx.begin_held_step(Place("r", "", seq), "run:r", token, step))

        assert begin(1, "mine") is False
        store.commit(POINT, lambda tx: tx.request_cancel("r", 3.0))
        assert begin(2, "mine") is True
        assert begin(3, "mine", begun._replace(is_shown=False)) is True
        try:
            begin(4, "theirs")
        except LeaseLostError:
            pass
        else:
            raise AssertionError("a step was begun without the lease")
        assert [step.place.seq for step in store.steps("r")] == [1, 2, 3]


# Signals


@_check("signals")
def a_signal_is_taken_once(ground: Ground) -> None:
    """The oldest first, by one of those who want it at the same time, and only if it was sent in time."""

    def send(tx: Transaction) -> None:
        tx.add_run("r", "d", "[]", 1.0)
        for number in range(10):
            tx.send_signal("r", "s", str(number), float(number))

    with ground.open() as store, ground.open() as other:
        store.commit(POINT, send)
        assert store.commit(POINT, lambda tx: tx.take_signal("r", "s", "0", before=0.0)) is None
        assert store.commit(POINT, lambda tx: tx.take_signal("r", "s", "1", before=5.0)) == "0"
        take = methodcaller("take_signal", "r", "s", "2")
        both = [partial(one.commit, POINT, take) for _ in range(8) for one in (store, other)]
        taken = [payload for payload in _in_threads(both) if payload is not None]
        assert sorted(taken) == [str(number) for number in range(1, 10)]  # type: ignore[type-var]
        assert all(signal.taken_by is not None for signal in store.signals("r"))


@_check("signals")
def a_key_makes_a_second_sending_harmless(ground: Ground) -> None:
    """For each run."""

    def send(store: Store, run_id: str) -> bool:
        return store.commit(POINT, lambda tx: tx.send_signal(run_id, "s", "1", 1.0, key="k"))

    with ground.open() as store, ground.open() as other:
        for run_id in ("r", "q"):
            store.commit(POINT, lambda tx, run_id=run_id: tx.add_run(run_id, "d", "[]", 1.0))  # type: ignore[misc]
        sent = _in_threads([partial(send, one, "r") for one in (store, other) for _ in range(4)])
        assert sorted(map(bool, sent)) == [False] * 7 + [True]
        assert send(store, "q") is True
        assert len(store.signals("r")) == 1


@_check("signals")
def an_open_wait_is_known(ground: Ground) -> None:
    """Until when it can be answered, and whether it was."""
    place = Place("r", "", 1)

    def wait(tx: Transaction) -> None:
        tx.add_run("r", "d", "[]", 1.0)
        tx.begin_step(place, kind="wait", name="s", key="k", args="[]", now=2.0, state=StepState.WAITING, wake_at=9.0)

    with ground.open() as store:
        store.commit(POINT, wait)
        look = methodcaller("open_wait", "r", "s")
        found = store.commit(POINT, look)
        assert found is not None
        assert (found.deadline, found.is_answered) == (9.0, False)
        store.commit(POINT, lambda tx: tx.send_signal("r", "s", "1", 3.0))
        found = store.commit(POINT, look)
        assert found is not None
        assert found.is_answered
        store.commit(POINT, lambda tx: tx.settle_step(place, StepState.DONE, 4.0, kind="wait", name="s", result="1"))
        assert store.commit(POINT, look) is None


# Leases

_HOLDER = """
    from troth.runtime.store import commit_point
    from troth.runtime.store.identity import new_owner
    POINT = commit_point("conformance.commit", "whatever a check of a store writes")
    store = open_store()
    owner = new_owner(store.clock())
    def hold(tx):
        tx.enroll(owner)
        tx.add_run("r", "d", "[]", store.clock())
        return tx.claim("run:r", owner.id, "theirs", store.clock())
    assert store.commit(POINT, hold) is None
    print("held", flush=True)
    sys.stdin.readline()
"""


@_check("leases")
def one_of_many_claims_wins(ground: Ground) -> None:
    """All others are told who lives."""
    with ground.open() as one, ground.open() as two, ExitStack() as stack:
        owners = [(store, stack.enter_context(_owner(store))) for store in (one, two) for _ in range(4)]
        one.commit(POINT, lambda tx: tx.add_run("r", "d", "[]", 1.0))
        claims = [partial(store.commit, POINT, _claimed(store, owner, owner.id)) for store, owner in owners]
        answers = _in_threads(claims)
        winners = [owner for (_, owner), answer in zip(owners, answers, strict=True) if answer is None]
        assert len(winners) == 1
        holder = two.holder("run:r")
        assert holder is not None
        assert holder.id == winners[0].id
        assert two.is_alive(holder)
        assert all(answer is None or answer.id == holder.id for answer in answers)  # type: ignore[attr-defined]
        run = two.run("r")
        assert run is not None
        assert run.state is RunState.RUNNING
        assert two.orphans(["d"]) == []
        assert [found.id for found in two.runs(states=[RunState.RUNNING])] == ["r"]


@_check("leases")
def a_dead_process_leaves_its_run_to_others(ground: Ground) -> None:
    """It is seen to be dead, its run is interrupted, and whoever claims it has it."""
    with ground.open() as store, _owner(store) as me, _process(ground, _HOLDER) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        theirs = store.commit(POINT, _claimed(store, me, "mine"))
        assert theirs is not None
        assert theirs.pid == process.pid
        process.kill()
        process.wait()

        def is_orphan() -> bool:
            return store.orphans(["d", "other"]) == [("r", "d")]

        _until(is_orphan, "the death of the owner")
        run = store.run("r")
        assert run is not None
        assert run.state is RunState.INTERRUPTED
        assert store.unheld("d") == ["r"]
        assert store.unheld("e") == []
        assert store.commit(POINT, _claimed(store, me, "mine")) is None
        assert store.orphans(["d"]) == []


@_check("leases")
def nothing_is_written_under_a_lost_lease(ground: Ground) -> None:
    """Whoever was taken for dead is refused, with all that the commit would have written."""

    def late(tx: Transaction) -> None:
        tx.append_event("s", "said", "late", 1.0)
        tx.hold("run:r", "theirs")

    def late_run(tx: Transaction) -> None:
        tx.append_event("s", "said", "late", 1.0)
        tx.hold_run("r", "run:r", "theirs")

    with ground.open() as store, _owner(store) as them, _owner(store) as me:
        assert store.commit(POINT, _claimed(store, them, "theirs")) is None
        store.commit(POINT, lambda tx: tx.hold("run:r", "theirs"))
        assert store.commit(POINT, lambda tx: tx.hold_run("r", "run:r", "theirs")) is False
        retire(them)
        store.commit(POINT, lambda tx: tx.retire(them.id))
        assert store.holder("run:r") is None
        assert store.commit(POINT, _claimed(store, me, "mine")) is None
        for work in (late, late_run):
            try:
                store.commit(POINT, work)
            except LeaseLostError:
                continue
            raise AssertionError("a commit was kept under a lease that was lost")
        assert _said(store) == []
        store.commit(POINT, lambda tx: tx.release("run:r", "theirs"))
        assert store.holder("run:r") is not None, "a lease is given back by its holder alone"
        store.commit(POINT, lambda tx: tx.release("run:r", "mine"))
        assert store.holder("run:r") is None


@_check("leases")
def a_claim_waits_for_whoever_is_committing(ground: Ground) -> None:
    """A commit that has proved its lease is kept before somebody else has the lease, or not at all."""
    with ground.open() as one, ground.open() as two, _owner(one) as them, _owner(two) as me:
        assert one.commit(POINT, _claimed(one, them, "theirs")) is None
        inside, go_on = threading.Event(), threading.Event()

        def slow(tx: Transaction) -> None:
            tx.hold("run:r", "theirs")
            tx.append_event("s", "said", "in time", 1.0)
            inside.set()
            go_on.wait(0.5)  # nobody sets it: long enough for the claim to come and wait

        def take_over() -> None:
            assert inside.wait(_PATIENCE)
            two.commit(POINT, lambda tx: tx.retire(them.id))
            two.commit(POINT, lambda tx: tx.claim("run:r", me.id, "mine", two.clock()))
            two.commit(POINT, _append("after"))

        retire(them)
        claimer = threading.Thread(target=take_over)
        claimer.start()
        one.commit(POINT, slow)
        claimer.join(_PATIENCE)
        assert _said(two) == ["in time", "after"]


# Promises


def _promise(promise_id: str, subject: str, now: float = 1.0, **more: Any) -> NewPromise:
    return NewPromise(promise_id, "sess", "run", subject, "title", "chat", None, 100.0, now)._replace(**more)


@_check("promises")
def a_promise_is_settled_once(ground: Ground) -> None:
    """By the end of its run, whoever writes that; the delivery is there with it, and the counts agree."""

    def begin(tx: Transaction) -> None:
        tx.add_run("r", "d", "[]", 1.0)
        assert tx.promises.add(_promise("p", "r")) is True
        assert tx.promises.add(_promise("p", "r")) is False

    def settle(store: Store) -> str | None:
        return store.commit(POINT, lambda tx: tx.promises.settle("run", "r", PromiseState.DONE, 2.0, result="[1]"))

    with ground.open() as store, ground.open() as other:
        store.commit(POINT, begin)
        settled = _in_threads([partial(settle, one) for one in (store, other) for _ in range(3)])
        assert sorted(filter(None, settled)) == ["p"]  # type: ignore[type-var]
        found = other.promises.find("p")
        assert found is not None
        assert (found.state, found.result, found.expires_at) == (PromiseState.DONE, [1], 102.0)
        (delivery,) = other.promises.deliveries_of("p")
        assert (delivery.id, delivery.state) == ("p-done-1", DeliveryState.DUE)
        counts = store.promises.counts()
        assert counts.is_balanced
        assert (counts.promised, counts.stored) == (1, 1)


@_check("promises")
def a_delivery_is_leased_once(ground: Ground) -> None:
    """Of many that are due, each goes to one of those who take them at the same time."""

    def write(tx: Transaction) -> None:
        for number in range(12):
            tx.promises.add(_promise(f"p{number}", f"r{number}", float(number)))
            tx.promises.settle("run", f"r{number}", PromiseState.DONE, float(number))

    def lease(store: Store, token: str) -> list[str]:
        taken = store.commit(
            POINT,
            lambda tx: tx.promises.lease("chat", token, token, 50.0, until=80.0, limit=3, due_before=50.0),
        )
        return [record.id for record in taken]

    with ground.open() as store, ground.open() as other:
        store.commit(POINT, write)
        assert lease(store, "first") == ["p0-done-1", "p1-done-1", "p2-done-1"]
        taken = _in_threads([partial(lease, one, f"t{n}") for n in range(4) for one in (store, other)])
        ids = [name for names in taken for name in names]  # type: ignore[attr-defined]
        assert sorted(ids) == sorted(f"p{number}-done-1" for number in range(3, 12))
        settle = partial(Settlement, DeliveryState.DELIVERED, receipt="m-1")
        done = partial(store.commit, POINT)
        assert done(lambda tx: tx.promises.settle_attempt("p0-done-1", "other", settle(), 60.0)) is False
        assert done(lambda tx: tx.promises.settle_attempt("p0-done-1", "first", settle(), 60.0)) is True
        assert done(lambda tx: tx.promises.give_back("p1-done-1", "first", 60.0, due_at=61.0, is_unsent=True)) is True
        assert done(lambda tx: tx.promises.acknowledge("p2-done-1", 60.0, "by hand")) is True
        assert done(lambda tx: tx.promises.acknowledge("p2-done-1", 60.0, "by hand")) is False
        assert store.promises.next_due("chat", "first") == 61.0
        assert store.promises.needs_sweep(60.0) is True, "its owners were never enrolled"
        voided = done(lambda tx: tx.promises.void_leases(90.0, float))
        assert sorted(voided) == sorted(ids)
        assert done(lambda tx: tx.promises.store_unserved(95.0)) == 10
        counts = store.promises.counts()
        assert counts.is_balanced
        assert (counts.delivered, counts.stored) == (2, 10)
        assert done(lambda tx: tx.promises.offer("sess", "chat", None, 96.0)) == 10
        assert done(lambda tx: tx.promises.replay("p0-done-1", None, 97.0)) is True
        expired = done(lambda tx: tx.promises.expire(1000.0, 100))
        assert sorted(expired) == sorted(f"p{number}" for number in range(12))
        assert store.promises.counts().is_balanced
        assert [incident.kind for incident in store.promises.incidents()].count("expired") == 11


# Sessions


def _session(session_id: str) -> SessionRow:
    return SessionRow(session_id, "ops", "active", "{}", 1.0, 1e6, None, None)


def _member(session_id: str, agent: str, **more: Any) -> MemberRow:
    row = MemberRow(session_id, agent, "present", 2, 0.5, "[]", "[]", None, 1.0, None, None, None, None, 1.0, 0.0, 0.0)
    return row._replace(**more)


@_check("sessions")
def members_come_and_act(ground: Ground) -> None:
    """What an act is judged on is read with it, and a rate is used up once by each of those who act at once."""

    def write(tx: Transaction) -> None:
        assert tx.sessions.add_session(_session("s")) is True
        assert tx.sessions.add_session(_session("s")) is False
        tx.sessions.put_member(_member("s", "a"))
        tx.sessions.put_member(_member("s", "a", score=0.75))
        tx.sessions.put_member(_member("s", "b", state="left"))

    def act(store: Store) -> bool:
        return store.commit(POINT, lambda tx: tx.sessions.use_token("s", "a", 2, 0.0, 5.0, 2.0))

    with ground.open() as store, ground.open() as other:
        store.commit(POINT, write)
        standing = store.read_sessions(lambda rows: rows.standing("s", "a"))
        assert standing is not None
        assert (standing.session_state, standing.score) == ("active", 0.75)
        assert store.read_sessions(lambda rows: (rows.present("s"), rows.count_present("s"))) == (["a"], 1)
        acts = _in_threads([partial(act, one) for one in (store, other) for _ in range(4)])
        assert sorted(map(bool, acts)) == [False] * 3 + [True] * 5
        assert [
            row.id for row in other.read_sessions(lambda rows: rows.sessions(states=None, before=None, limit=9))
        ] == ["s"]
        text = FileRow("/a/b", "hello", "a", None, None, 1.0)
        store.commit(POINT, lambda tx: tx.sessions.put_file("s", text))
        store.commit(POINT, lambda tx: tx.sessions.put_file("s", text._replace(text="again")))
        assert other.read_sessions(lambda rows: rows.files("s", "/a/")) == [text._replace(text="again")]
        ask = AskRow("k", "s", "a", "w", "{}", "d", "p", "r", 1, 1.0, 2.0, "open", "[]")
        for row in (ask, ask._replace(answers='["yes"]')):
            store.commit(POINT, lambda tx, row=row: tx.sessions.put_ask(row))  # type: ignore[misc]
        assert other.read_sessions(lambda rows: rows.open_asks(None)) == [ask._replace(answers='["yes"]')]


@_check("sessions")
def the_audit_trail_has_no_gaps_and_no_forks(ground: Ground) -> None:
    """Each entry follows the one before it, whichever store wrote that."""

    def add(store: Store, number: int) -> int:
        def work(tx: Transaction) -> int:
            while True:
                seq, digest = tx.sessions.audit_head() or (0, b"")
                row = (seq + 1, 1.0, "s", "a", "kind", json.dumps(number), "key", digest[-8:] + b"%d," % seq, b"mac")
                if tx.sessions.add_audit(row):
                    return seq + 1

        return store.commit(POINT, work)

    with ground.open() as store, ground.open() as other:
        works = [partial(add, one, number) for number in range(15) for one in (store, other)]
        assert sorted(_in_threads(works)) == list(range(1, 31))  # type: ignore[type-var]
        rows = store.read_sessions(lambda rows: rows.audit(limit=100))
        assert [row.seq for row in rows] == list(range(1, 31))
        for before, after in itertools.pairwise(rows):
            assert after.digest == before.digest[-8:] + b"%d," % before.seq, "it follows another entry"


# News


@_check("news")
def a_follower_sees_every_entry_once(ground: Ground) -> None:
    """In order, also what another store writes, on a thread and on a loop."""

    async def follow(store: Store) -> list[Any]:
        seen: list[Any] = []
        with Follower(store, "s") as follower:
            while len(seen) < 30:
                events = await follower.atake(_PATIENCE)
                assert events, "nothing came"
                seen += [event.payload for event in events]
        return seen

    def take(store: Store) -> list[Any]:
        seen: list[Any] = []
        with Follower(store, "s", page=7) as follower:
            while len(seen) < 30:
                events = follower.take(_PATIENCE)
                assert events, "nothing came"
                seen += [event.payload for event in events]
        return seen

    def write(store: Store) -> None:
        for number in range(30):
            store.commit(POINT, _append(number))

    with ground.open() as store, ground.open() as other:
        answers = _in_threads(
            [lambda: asyncio.run(follow(store)), lambda: take(store), lambda: take(other), lambda: write(other)]
        )
        assert answers[:3] == [list(range(30))] * 3


@_check("news")
def whoever_waits_for_a_run_is_told(ground: Ground) -> None:
    """Of a signal, of an end, of a lease given back; by a commit here and by one in another process."""
    body = """
        from troth.runtime.store import commit_point
        POINT = commit_point("conformance.commit", "whatever a check of a store writes")
        store = open_store()
        print("ready", flush=True)
        sys.stdin.readline()
        store.commit(POINT, lambda tx: tx.send_signal("r", "s", "1", 1.0))
        sys.stdin.readline()
    """
    with ground.open() as store, _process(ground, body) as process:
        store.commit(POINT, lambda tx: tx.add_run("r", "d", "[]", 1.0))
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        bell = Notifier()
        with store.listening(bell, run_topic("r")):
            store.commit(POINT, lambda tx: tx.request_cancel("r", 2.0))
            _until(lambda: bell.count, "the ring of a commit here")
            process.stdin.write("\n")
            process.stdin.flush()
            deadline = time.monotonic() + _PATIENCE
            while not store.signals("r"):
                seen = bell.count
                if not store.signals("r"):
                    assert bell.wait(seen, deadline - time.monotonic()), "nobody was told of the signal"


@_check("news")
def the_history_of_a_run_is_followed(ground: Ground) -> None:
    """From a cursor on, to its end."""

    def work(store: Store) -> None:
        for number in range(1, 6):
            store.commit(POINT, lambda tx, number=number: _step(tx, Place("r", "", number), "one", 2.0))  # type: ignore[misc]
        store.commit(POINT, lambda tx: tx.finish_run("r", RunState.COMPLETED, 3.0, result="1"))

    def follow(store: Store) -> list[int]:
        seen: list[int] = []
        deadline = time.monotonic() + _PATIENCE
        with HistoryFollower(store, "r", page=2) as follower:
            while True:
                is_over, entries = follower.look()
                seen += [entry.seq for entry in entries]
                if is_over and not entries:
                    return seen
                assert time.monotonic() < deadline, "the end of the run was not told"
                if not entries:
                    follower.wait(deadline - time.monotonic())

    with ground.open() as store, ground.open() as other:
        store.commit(POINT, lambda tx: tx.add_run("r", "d", "[]", 1.0))
        answers = _in_threads([lambda: follow(store), lambda: follow(other), lambda: work(other)])
        assert answers[:2] == [list(range(1, 8))] * 2
