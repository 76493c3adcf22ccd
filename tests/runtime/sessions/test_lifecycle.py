"""A session through its states; joining, rings, limits; and everything that is refused changes nothing."""

import asyncio
import inspect
import sqlite3
import sys
import threading
import time
from contextlib import closing
from functools import partial

import pytest

from troth import bridge
from troth.errors import MisuseError
from troth.runtime import Runtime, Saga, SagaFailedError
from troth.runtime.engine import EmbeddedEngine, Step
from troth.runtime.sessions import (
    Action,
    CannotJoinError,
    Hypervisor,
    Member,
    NotAMemberError,
    RefusedError,
    Reversibility,
    Ring,
    Session,
    SessionConfig,
    SessionState,
    SessionStateError,
    UnknownActionError,
    UnknownSessionError,
)
from troth.runtime.sessions.state import ALLOWED
from troth.runtime.store import SqliteStore

KEY = "a key that is only used in tests"
OPEN_RATES = {}


def rows(path):
    """Everything that the file holds about sessions."""
    tables = ("sessions", "members", "session_work", "workspace", "kills", "audit")
    with closing(sqlite3.connect(path)) as connection:
        return {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables}


@pytest.mark.parametrize("cls", [Hypervisor, Session, Member])
def test_one_color(cls):
    """No method is a coroutine function: calling one has done its work when it returns."""
    methods = inspect.getmembers(cls, callable)
    assert not [name for name, method in methods if inspect.iscoroutinefunction(method)]


def test_the_whole_way(hypervisor):
    """Created, handshaking with the first member, active, archived; leaving and joining again works."""
    session = hypervisor.create("ops", SessionConfig(max_members=2))
    assert session.state is SessionState.CREATED
    hypervisor.join(session, "a", score=0.8)
    assert hypervisor.get(session).state is SessionState.HANDSHAKING
    hypervisor.leave(session, "a")
    with pytest.raises(SessionStateError, match="it has no member"):
        hypervisor.activate(session)
    hypervisor.join(session, "a", score=0.8)
    assert hypervisor.activate(session).state is SessionState.ACTIVE
    assert hypervisor.terminate(session).state is SessionState.ARCHIVED
    assert hypervisor.sessions() == []
    assert [one.id for one in hypervisor.sessions("archived")] == [session.id]
    assert (hypervisor.count(), hypervisor.count("active")) == (1, 0)
    assert hypervisor.get("nobody") is None
    assert hypervisor.verify_audit().is_valid


def put_into(hypervisor, state):
    session = hypervisor.create("ops")
    if state is not SessionState.CREATED:
        hypervisor.join(session, "a", score=0.9)
    if state not in (SessionState.CREATED, SessionState.HANDSHAKING):
        hypervisor.activate(session)
    if state is SessionState.TERMINATING:
        hypervisor._begin_end(session.id, "a test")
    if state is SessionState.ARCHIVED:
        hypervisor.terminate(session)
    return session


OPERATIONS = {
    "join": lambda hv, s: hv.join(s, "b", score=0.9),
    "activate": lambda hv, s: hv.activate(s),
    "leave": lambda hv, s: hv.leave(s, "a"),
    "elevate": lambda hv, s: hv.elevate(s, "a", 1, attestation="the boss"),
    "kill": lambda hv, s: hv.kill(s, "a", reason="a test"),
    "readmit": lambda hv, s: hv.readmit(s, "a", reason="a test"),
    "terminate": lambda hv, s: hv.terminate(s),
}


@pytest.mark.parametrize("state", SessionState)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_legality(hypervisor, path, operation, state):
    """In the wrong state an operation is refused, with the state's name, and changes nothing at all."""
    if state in ALLOWED[operation]:
        return
    hypervisor._stop_ticking()  # so that nothing happens beside the operation
    session = put_into(hypervisor, state)
    before = rows(path)
    with pytest.raises(SessionStateError, match=state.value):
        OPERATIONS[operation](hypervisor, session)
    assert rows(path) == before


@pytest.mark.parametrize("state", [state for state in SessionState if state is not SessionState.ACTIVE])
def test_nobody_acts_outside_of_an_active_session(hypervisor, effects, state):
    """Not a note, not an act, not a text. The refusal itself is on record."""
    session = put_into(hypervisor, state)
    member = Member(hypervisor, session.id, "a")
    for attempt in (
        lambda: member.record("note"),
        lambda: member.act("deploy", version=1),
        lambda: member.workspace.write("a.txt", "text"),
    ):
        with pytest.raises(RefusedError):
            attempt()
    assert effects == []
    assert {row.kind for row in hypervisor.events(session=session)} >= {"refused"}


@pytest.mark.parametrize("wrong", ["", " ", "a b", "../x", "a/b", None, 7, "x" * 300, "-a"])
def test_ids_are_checked(hypervisor, session, wrong):
    """An empty creator is nobody."""
    with pytest.raises(MisuseError):
        hypervisor.create(wrong)
    with pytest.raises(MisuseError):
        hypervisor.join(session, wrong, score=0.9)


@pytest.mark.parametrize("score", [True, float("nan"), -0.1, 1.1, "0.9", None])
def test_scores_are_checked(hypervisor, session, path, score):
    """`True` is no number, NaN no score, and none at all is not 0."""
    before = rows(path)
    with pytest.raises(MisuseError):
        hypervisor.join(session, "a", score=score)
    assert rows(path) == before


@pytest.mark.parametrize(
    "values",
    [
        {"max_members": True},
        {"max_members": 0},
        {"max_members": 2.5},
        {"max_duration": 0},
        {"max_duration": float("nan")},
        {"min_score": 2},
        {"rates": {7: (1, 1)}},
        {"rates": {Ring.ROOT: (0, 1)}},
        {"breach_limit": 0},
    ],
)
def test_configuration_is_checked(values):
    """A limit that means nothing is refused when it is given."""
    with pytest.raises(MisuseError):
        SessionConfig(**values)


def test_unknown_names(hypervisor, session, member):
    """What there is not is named."""
    with pytest.raises(UnknownSessionError):
        hypervisor.activate("nobody")
    with pytest.raises(NotAMemberError):
        hypervisor.leave(session, "b")
    with pytest.raises(UnknownActionError, match="'deploy'"):
        member.act("fly")
    with pytest.raises(UnknownActionError):
        hypervisor.join(session, "b", score=0.9, actions=["fly"])


def test_a_rejected_join_changes_nothing(hypervisor, path):
    """Full, already in, or a stranger who vouches."""
    session = hypervisor.create("ops", SessionConfig(max_members=1))
    hypervisor.join(session, "a", score=0.9)
    before = rows(path)
    for attempt in (
        lambda: hypervisor.join(session, "a", score=0.9),
        lambda: hypervisor.join(session, "b", score=0.9, actions=["deploy"]),
        lambda: hypervisor.join(session, "c", score=0.9, consensus=["stranger"]),
    ):
        with pytest.raises(CannotJoinError):
            attempt()
    assert rows(path) == before


@pytest.mark.parametrize(
    ("score", "consensus", "ring"),
    [
        (0.999, ["ops"], Ring.ROOT),
        (0.999, [], Ring.STANDARD),
        (0.97, ["ops"], Ring.PRIVILEGED),
        (0.7, ["ops"], Ring.STANDARD),
        (0.6, [], Ring.STANDARD),
        (0.59, ["ops"], Ring.SANDBOX),
        (0.0, [], Ring.SANDBOX),
    ],
)
def test_every_ring_can_be_reached(hypervisor, session, score, consensus, ring):
    """By score and consensus."""
    assert hypervisor.join(session, "a", score=score, consensus=consensus).ring is ring


@pytest.mark.parametrize(
    ("action", "ring"),
    [
        (Action("x", print, is_admin=True), Ring.ROOT),
        (Action("x", print), Ring.PRIVILEGED),
        (Action("x", print, undo=print), Ring.STANDARD),
        (Action("x", print, reversibility=Reversibility.PARTIAL), Ring.STANDARD),
        (Action("x", print, read_only=True), Ring.SANDBOX),
    ],
)
def test_the_ring_an_action_needs(action, ring):
    """It follows from how far it can be taken back."""
    assert action.ring is ring


def test_elevation_lasts_as_long_as_it_was_given(hypervisor, session, clock, effects):
    """With an attestation, up to its expiry by the store's clock; not twice, and not without a score."""
    member = hypervisor.join(session, "a", score=0.9)
    weak = hypervisor.join(session, "b", score=0.7)
    hypervisor.activate(session)
    with pytest.raises(RefusedError):
        member.act("wipe")
    with pytest.raises(MisuseError, match="attestation"):
        hypervisor.elevate(session, "a", 1)
    with pytest.raises(RefusedError, match="score"):
        hypervisor.elevate(session, "b", 1, attestation="the boss")
    hypervisor.elevate(session, "a", 1, attestation="the boss", seconds=60)
    with pytest.raises(RefusedError, match="already"):
        hypervisor.elevate(session, "a", 0, attestation="the boss")
    member.act("wipe")
    clock.now += 61
    with pytest.raises(RefusedError):
        member.act("wipe")
    assert effects == ["wipe"]
    assert weak.ring is Ring.STANDARD


def test_rates(hypervisor, clock):
    """A bucket of its own for each member, filled by the store's clock."""
    session = hypervisor.create("ops", SessionConfig(rates={Ring.STANDARD: (1, 3)}))
    member, other = (hypervisor.join(session, agent, score=0.8) for agent in ("a", "b"))
    hypervisor.activate(session)
    for _ in range(3):
        member.record("note")
    with pytest.raises(RefusedError) as refused:
        member.record("note")
    assert refused.value.rule == "rate"
    other.record("note")
    clock.now += 1
    member.record("note")
    clock.now -= 100
    with pytest.raises(RefusedError):
        member.record("note")


def test_a_breach_suspends(hypervisor):
    """Reaching beyond one's ring again and again; `readmit` lifts it."""
    session = hypervisor.create("ops", SessionConfig(breach_limit=3))
    member = hypervisor.join(session, "a", score=0.8)
    hypervisor.activate(session)
    rules = []
    for _ in range(4):
        with pytest.raises(RefusedError) as refused:
            member.act("wipe")
        rules.append(refused.value.rule)
    assert rules == ["ring", "ring", "breach", "membership"]
    with pytest.raises(RefusedError, match="suspended"):
        member.record("note")
    hypervisor.readmit(session, "a", reason="it was a mistake")
    member.record("note")


def test_time_between_attempts_is_no_attempt_less(hypervisor, clock):
    """What fades of a breach within a moment does not save anybody; what fades within the window does."""
    session = hypervisor.create("ops", SessionConfig(breach_limit=2, breach_window=60))
    member = hypervisor.join(session, "a", score=0.8)
    hypervisor.activate(session)
    rules = []
    for pause in (0, 61, 0.5):
        clock.now += pause
        with pytest.raises(RefusedError) as refused:
            member.workspace.restore("none")
        rules.append(refused.value.rule)
    assert rules == ["ring", "ring", "breach"]


def test_duration_is_kept(hypervisor, clock):
    """Past it every act is refused at once, and the session ends by itself."""
    session = hypervisor.create("ops", SessionConfig(max_duration=10))
    member = hypervisor.join(session, "a", score=0.8)
    hypervisor.activate(session)
    member.record("note")
    clock.now += 10
    with pytest.raises(RefusedError):
        member.record("note")
    deadline = time.monotonic() + 10
    while hypervisor.get(session).state is not SessionState.ARCHIVED:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert hypervisor.get(session).reason == "its time is over"


def test_hooks_are_asked(path, effects):
    """Each provably; the lower score counts; what fails refuses, or puts on probation."""

    async def trust(agent):
        effects.append(agent)
        if agent == "broken":
            raise OSError("no answer")
        return 0.7

    def verifier(session, agent):
        effects.append((agent, bool(session)))
        return agent != "bad"

    with Hypervisor(
        path, audit_key=KEY, trust=trust, verifier=verifier, history=lambda agent, history: history != "forged"
    ) as hypervisor:
        session = hypervisor.create("ops")
        assert hypervisor.join(session, "a", score=0.99, consensus=["ops"]).ring is Ring.STANDARD
        assert effects == ["a", ("a", True)]
        assert hypervisor.verify(session, "a") is True
        with pytest.raises(CannotJoinError, match="rejected by the verifier"):
            hypervisor.join(session, "bad")
        with pytest.raises(CannotJoinError, match="history"):
            hypervisor.join(session, "b", history="forged")
        with pytest.raises(CannotJoinError, match="no answer"):
            hypervisor.join(session, "broken")
        assert [(one, view.agent) for one, view in hypervisor.monitor(below=0.8)] == [(session.id, "a")]
    with Hypervisor(path, audit_key=KEY, trust=trust, on_hook_failure="probation") as hypervisor:
        assert hypervisor.join(session, "broken", score=0.9).ring is Ring.SANDBOX


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("hook", ["trust", "verifier", "history"])
def test_a_hook_has_a_time_limit(path, hook, color):
    """One that does not answer is an outcome: the agent is refused, and nothing has changed."""
    goes_on = threading.Event()

    def hang(*_):
        goes_on.wait(60)

    async def ahang(*_):
        await asyncio.sleep(60)

    hooks = {"trust": lambda _: 0.9, hook: hang if color == "sync" else ahang}
    try:
        with Hypervisor(path, audit_key=KEY, hook_timeout=0.05, **hooks) as hypervisor:
            session = hypervisor.create("ops")
            with pytest.raises(CannotJoinError, match=hook):
                hypervisor.join(session, "a", history=[] if hook == "history" else None)
            assert hypervisor.get(session).members == ()
    finally:
        goes_on.set()


def test_an_async_hook_runs_on_the_callers_own_loop(path):
    """Where a call that waits for user code is awaited: what the hook uses belongs to that loop."""
    loops = {}

    def noted(name, answer):
        async def hook(*_):
            loops[name] = asyncio.get_running_loop()
            return answer

        return hook

    hooks = {name: noted(name, True) for name in ("verifier", "history")}
    hooks |= {"trust": noted("trust", 0.9), "on_kill": [noted("on_kill", None)]}

    async def main():
        with Hypervisor(path, audit_key=KEY, **hooks) as hypervisor:
            session = hypervisor.create("ops")
            await bridge.call(partial(hypervisor.join, history=[]), session, "a")
            hypervisor.activate(session)
            kill = await bridge.call(partial(hypervisor.kill, reason="a test", timeout=30), session, "a")
            assert kill.terminated
        return asyncio.get_running_loop()

    here = asyncio.run(main())
    assert loops == dict.fromkeys(("trust", "verifier", "history", "on_kill"), here)


def test_the_one_of_a_runtime(path):
    """It is on the runtime's store, there is one, and its acts know the runtime's own functions."""
    with Runtime(path) as runtime:
        hypervisor = runtime.hypervisor
        assert hypervisor is runtime.hypervisor
        assert hypervisor.store is runtime.store
        hypervisor.register(Action("look", lambda: "seen", read_only=True))
        session = hypervisor.create("ops")
        member = hypervisor.join(session, "a", score=0.8)
        hypervisor.activate(session)
        assert member.act("look") == "seen"
        assert [row.kind for row in hypervisor.events(after=3)] == ["act.begun", "act.done"]
        assert (hypervisor.count(), hypervisor.count("active"), hypervisor.get("nobody")) == (1, 1, None)


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda member: member.act("deploy", version=1), id="act"),
        pytest.param(lambda member: member.workspace.write("plan", "text"), id="write"),
        pytest.param(lambda member: member.run(Saga("s").step("one", do=lambda: None, undo=None)), id="step"),
        pytest.param(lambda member: member.record("note"), id="note"),
    ],
)
def test_every_way_uses_up_the_rate(hypervisor, use):
    """An act, a write, a step: what comes after is refused, whichever it is."""
    session = hypervisor.create("ops", SessionConfig(rates={2: (0.001, 1)}))
    member = hypervisor.join(session, "a", score=0.8)
    hypervisor.activate(session)
    use(member)
    with pytest.raises(RefusedError, match="times a second") as refused:
        member.act("deploy", version=2)
    assert refused.value.rule == "rate"
    session = hypervisor.create("ops", SessionConfig(rates={2: (0.001, 1)}))
    member = hypervisor.join(session, "a", score=0.8)
    hypervisor.activate(session)
    member.record("note")
    with pytest.raises((RefusedError, SagaFailedError), match="times a second"):
        use(member)


def test_nothing_inert(path, hypervisor, session):
    """A hook or limit that nothing would ask is refused where it is given."""
    for values in ({"hook_timeout": 3}, {"on_hook_failure": "refuse"}):
        with pytest.raises(MisuseError):
            Hypervisor(path, audit_key=KEY, **values)
    with pytest.raises(MisuseError):
        Action("x", print, undo_window=3)
    with pytest.raises(MisuseError):
        hypervisor.join(session, "a", score=0.9, history=["something"])
    with pytest.raises(MisuseError):
        hypervisor.verify(session, "a")


def test_an_engine_that_is_given_is_the_one_that_works(path, actions):
    """Its threads call the actions, and it stays open when the hypervisor is closed."""
    with SqliteStore(path) as store, EmbeddedEngine(store) as engine:
        with Hypervisor(store, actions=actions, audit_key=KEY, engine=engine) as hypervisor:
            session = hypervisor.create("ops")
            member = hypervisor.join(session, "a", score=0.8)
            hypervisor.activate(session)
            assert member.act("look") == "seen"
            assert "session act look" in engine.decisions()
        assert engine.run(lambda: (yield Step("still", lambda: 1)), run_id="r") == 1


def test_an_engine_whose_commits_are_elsewhere_is_refused(path, tmp_path):
    """What a session allows is decided in the commit that begins a step."""
    with SqliteStore(path) as store, EmbeddedEngine(tmp_path / "other.db") as other:
        with pytest.raises(MisuseError, match="another store"):
            Hypervisor(store, audit_key=KEY, engine=other)
        with pytest.raises(MisuseError, match="another store"):
            Hypervisor(path, audit_key=KEY, engine=other)
        with pytest.raises(MisuseError, match="elsewhere"):
            Hypervisor(store, audit_key=KEY, engine=object())


@pytest.mark.parametrize("trials", [10, pytest.param(1000, marks=pytest.mark.soak)])
def test_joining_from_many_threads_is_exact(path, trials):
    """Capacity is never exceeded, and each id wins once."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with Hypervisor(path, audit_key=KEY) as hypervisor:
            for trial in range(trials):
                session = hypervisor.create("ops", SessionConfig(max_members=5))
                won, lost = [], []
                start = threading.Barrier(16)

                def join(number, session=session, won=won, lost=lost, start=start):
                    start.wait()
                    try:
                        hypervisor.join(session, f"agent-{number % 8}", score=0.9)
                    except CannotJoinError:
                        lost.append(number)
                    else:
                        won.append(number % 8)

                threads = [threading.Thread(target=join, args=(number,)) for number in range(16)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                assert len(won) == len(set(won)) == 5, trial
                assert len(lost) == 11
                assert sorted(hypervisor.get(session).present) == sorted(f"agent-{number}" for number in won)
            assert hypervisor.verify_audit().is_valid
    finally:
        sys.setswitchinterval(before)
