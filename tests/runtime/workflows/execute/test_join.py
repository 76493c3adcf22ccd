"""How branches are joined: all of them, the first, so many, or whatever comes of them; and what becomes of the rest."""

import asyncio
import contextlib
import threading
import time

import pytest

from troth.runtime import Runtime, Workflow, step
from troth.runtime.workflows.record.report import RunWord, StepWord


@pytest.fixture
def runtime(tmp_path):
    with Runtime(tmp_path / "runs.db") as opened:
        yield opened


@pytest.fixture
def world():
    return World()


class World:
    """Does things, and remembers what."""

    def __init__(self):
        self.did = []
        self.before_the_winner = []
        self.gate = threading.Event()

    def good(self, name):
        def good():
            self.did.append(name)
            return name

        return good

    def bad(self, name="bad"):
        def bad():
            self.did.append(name)
            raise ValueError(name)

        return bad

    def undo(self, name):
        def undo(result=None):
            self.did.append(f"undo {name}")

        return undo

    def endless(self, name="endless"):
        async def endless():
            self.did.append(name)
            try:
                await asyncio.sleep(60)
            finally:
                self.did.append(f"{name} ended")

        return endless

    def stuck(self, name="stuck"):
        def stuck():
            self.did.append(name)
            self.gate.wait(60)

        return stuck


@contextlib.contextmanager
def quickly(seconds=10):
    """Nothing that was let go is waited for: each would take a minute."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


def start(world, name, **losing):
    """A block of which `name` wins at once while the other is at something that takes a minute."""
    return step("p", parallel=[step("loser", **losing), step("winner", function=late(world, name))], join="any")


def late(world, name):
    async def winner():
        await asyncio.sleep(0.05)
        while not set(world.before_the_winner) <= set(world.did):
            await asyncio.sleep(0.01)
        return world.good(name)()

    return winner


NEVER = {"attempts": 9, "delay": "60s"}


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize(
    ("losing", "did"),
    [
        pytest.param(lambda w: {"function": w.endless()}, ["endless", "won", "endless ended"], id="an async call"),
        pytest.param(lambda w: {"function": w.stuck()}, ["stuck", "won"], id="a sync call"),
        pytest.param(lambda w: {"function": w.endless(), "timeout": "50s", "retry": NEVER}, ["endless", "won", "endless ended"], id="a call with limits"),
        pytest.param(lambda w: {"function": w.bad(), "retry": NEVER}, ["bad", "won"], id="a wait before another attempt"),
        pytest.param(lambda _: {"sleep": "60s"}, ["won"], id="a sleep"),
        pytest.param(lambda _: {"approval": "Well?"}, ["won"], id="a question"),
        pytest.param(lambda w: {"loop": [step("in_loop", sleep="60s"), step("x", function=w.good("x"))], "at_most": 5}, ["won"], id="inside a loop"),
        pytest.param(lambda w: {"saga": [step("s1", function=w.good("s1"), undo=w.undo("s1")), step("s2", sleep="60s")]}, ["s1", "won", "undo s1"], id="a saga, whose part is undone"),
        pytest.param(lambda w: {"function": w.endless(), "undo": w.undo("it")}, ["endless", "won", "endless ended", "undo it"], id="a step with an undo"),
        pytest.param(lambda w: {"function": w.endless(), "optional": True, "default": 3}, ["endless", "won", "endless ended"], id="an optional step"),
        pytest.param(lambda w: {"parallel": [step("i1", sleep="60s"), step("i2", function=w.endless())]}, ["endless", "won", "endless ended"], id="a block inside"),
        pytest.param(lambda w: {"parallel": [step("i1", sleep="60s"), step("i2", function=w.endless())], "join": "any"}, ["endless", "won", "endless ended"], id="a race inside"),
        pytest.param(lambda w: {"workflow": Workflow("inner", step("i1", function=w.good("i1"), undo=w.undo("i1")), step("i2", sleep="60s"))}, ["i1", "won", "undo i1"], id="a workflow inside"),
    ],
)  # fmt: skip
def test_the_first_success_is_enough(tmp_path, world, color, losing, did):
    """The run goes on at once; the rest is ended, and what it had done is undone before the next step."""
    world.before_the_winner = did[: did.index("won")]
    flow = Workflow(
        "w", start(world, "won", **losing(world)), step("after", function=lambda p: p, inputs={"p": "steps.p"})
    )
    with Runtime(tmp_path / "runs.db") as runtime, quickly():
        run = runtime.run(flow) if color == "sync" else asyncio.run(runtime.arun(flow))
        assert run.output == {"loser": None, "winner": "won"}
        assert world.did == did
        assert run.step("p").state is StepWord.DONE
        assert run.failures == ()
        replayed = runtime.replay(run.id)
        assert (replayed.ending, replayed.differs) == ("completed", "")
    world.gate.set()


def test_what_was_let_go_is_shown_so(runtime, world):
    """Neither done nor failed."""
    run = runtime.run(Workflow("w", start(world, "won", function=world.endless())))
    assert run.step("loser").state is StepWord.LET_GO
    assert "enough of the other branches" in run.step("loser").error.message


@pytest.mark.parametrize(
    ("join", "bad", "state", "outputs"),
    [
        pytest.param("all", 0, "completed", 4, id="all: all succeed"),
        pytest.param("all", 1, "failed", 0, id="all: one fails"),
        pytest.param("any", 3, "completed", 1, id="any: the last one succeeds"),
        pytest.param("any", 4, "failed", 0, id="any: none succeeds"),
        pytest.param(2, 2, "completed", 2, id="two: two succeed"),
        pytest.param(2, 3, "failed", 0, id="two: one succeeds"),
        pytest.param(9, 0, "completed", 4, id="more than there are: all"),
        pytest.param("settle", 0, "completed", 4, id="settle: all succeed"),
        pytest.param("settle", 4, "completed", 0, id="settle: none succeeds"),
    ],
)
@pytest.mark.parametrize("kind", ["parallel", "each"])
def test_how_many_have_to_succeed(runtime, world, join, bad, state, outputs, kind):
    """Counted the same way for members and for items."""

    def work(number):
        if number < bad:
            raise ValueError(number)
        return number

    if kind == "each":
        block = step(
            "p", each=[0, 1, 2, 3], steps=[step("m", function=work, inputs={"number": "item"})], join=join, at_once=1
        )
    else:
        members = [step(f"m{n}", function=work, inputs={"number": n}) for n in range(4)]
        block = step("p", parallel=members, join=join, at_once=1)
    run = runtime.run(Workflow("w", block), check=False)
    assert run.state == state
    assert run.step("p").state == ("done" if state == "completed" else "failed")
    if run.succeeded:
        values = run.output.values() if kind == "parallel" else run.output
        assert sum(one is not None for one in values) == outputs
    assert not runtime.replay(run.id).differs


def test_a_member_that_is_not_needed_is_not_begun(runtime, world):
    """One at a time: the second never begins."""
    members = [step("m1", function=world.good("m1")), step("m2", function=world.good("m2"))]
    run = runtime.run(Workflow("w", step("p", parallel=members, join="any", at_once=1)))
    assert (world.did, run.output) == (["m1"], {"m1": "m1", "m2": None})


def test_a_later_wave_is_not_begun(runtime, world):
    """What comes after a member that was enough is not needed."""
    members = [step("m1", function=world.good("m1")), step("m2", function=world.good("m2"), after=["m1"])]
    runtime.run(Workflow("w", step("p", parallel=members, join="any")))
    assert world.did == ["m1"]


@pytest.mark.parametrize("join", ["any", "settle", 1])
def test_what_a_failed_member_did_is_undone(runtime, world, join):
    """As with an optional step: the run goes on without the member, so nothing of it may stay."""
    item = [
        step("a", function=world.good("a"), undo=world.undo("a")),
        step("b", function=lambda n: 1 / n, inputs={"n": "item"}),
    ]
    flow = Workflow("w", step("p", each=[0, 1], steps=item, join=join, at_once=1), step("z", function=world.good("z")))
    runtime.run(flow)
    assert world.did == ["a", "a", "undo a", "z"] if join == "settle" else ["a", "undo a"]
    assert world.did.count("undo a") == 1
    assert world.did[-1] == "z"


def test_a_part_that_cannot_be_undone_fails_the_block(runtime, world):
    """The run may not go on as if nothing was left."""
    losing = {
        "saga": [
            step("s1", function=world.good("s1"), undo={"function": world.bad("no"), "retry": 1}),
            step("s2", sleep="60s"),
        ]
    }
    with quickly():
        run = runtime.run(Workflow("w", start(world, "won", **losing)), check=False)
    assert run.state is RunWord.ROLLBACK_INCOMPLETE
    assert [one.place for one in run.not_undone] == ["undo s1"]


@pytest.mark.parametrize("join", ["any", 2])
def test_several_that_succeed_at_once(runtime, world, join):
    """Whoever came first, the record is replayed the same way, and the run goes on from it."""
    members = [step(f"m{number}", function=world.good(f"m{number}")) for number in range(4)]
    fails = [True]

    def once():
        if fails:
            fails.clear()
            raise ValueError("once")
        return "fine"

    for _ in range(5):
        fails[:] = [True]
        run = runtime.run(
            Workflow("w", step("p", parallel=members, join=join), step("z", function=once), on_error="stop"),
            check=False,
        )
        world.did.clear()
        assert runtime.replay(run.id).ending.startswith("failed: Step 'z'")
        assert runtime.resume(run.id).output == "fine"
        assert world.did == []
        assert runtime.replay(run.id).ending == "completed"


def test_all_waits_for_all(runtime, world):
    """A member that fails does not end the others: they are brought to their end, then they are counted."""
    members = [step("m1", function=world.bad()), step("m2", function=late(world, "m2"))]
    run = runtime.run(Workflow("w", step("p", parallel=members)), check=False)
    assert sorted(world.did) == ["bad", "m2"]
    assert [one.place for one in run.failures] == ["m1"]


def test_a_run_that_is_cancelled_in_a_race_is_undone(runtime, world):
    """Nobody has won: every branch is undone, each once."""
    members = [
        step(
            "a",
            saga=[
                step("a1", function=world.good("a1"), undo=world.undo("a1")),
                step("a2", function=world.endless("a2")),
            ],
        ),
        step("b", saga=[step("b1", function=world.good("b1"), undo=world.undo("b1")), step("b2", sleep="60s")]),
    ]
    flow = Workflow("w", step("p", parallel=members, join="any"))
    ended = []
    thread = threading.Thread(target=lambda: ended.append(runtime.run(flow, run_id="r", check=False)))
    thread.start()
    until = time.monotonic() + 10
    while time.monotonic() < until and ("a2" not in world.did or "b1" not in world.did):
        time.sleep(0.01)
    with quickly():
        runtime.cancel("r")
        thread.join(20)
    assert ended[0].state is RunWord.CANCELLED
    assert sorted(one for one in world.did if one.startswith("undo")) == ["undo a1", "undo b1"]


def test_a_race_that_was_interrupted_goes_on(tmp_path, world):
    """The winner is known from the record: the loser is let go when the run goes on, and not called again."""
    holding = threading.Event()

    async def winner():
        await asyncio.sleep(0.05)
        return "won"

    def slow_undo(result=None):
        holding.set()
        if not world.gate.wait(0.1):
            raise ConnectionError("not yet")

    flow = Workflow(
        "w",
        step(
            "p",
            parallel=[
                step(
                    "loser",
                    function=world.endless(),
                    undo={"function": slow_undo, "retry": {"attempts": 99, "delay": "1ms"}},
                ),
                step("winner", function=winner),
            ],
            join="any",
        ),
    )

    async def interrupted():
        async with Runtime(tmp_path / "runs.db") as runtime:
            task = asyncio.create_task(runtime.arun(flow, run_id="r"))
            while not holding.is_set():
                await asyncio.sleep(0.01)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    with quickly(20):
        asyncio.run(interrupted())
        world.gate.set()
        with Runtime(tmp_path / "runs.db") as runtime:
            run = runtime.resume("r", flow)
    assert run.output == {"loser": None, "winner": "won"}
    assert world.did.count("endless") == 1
