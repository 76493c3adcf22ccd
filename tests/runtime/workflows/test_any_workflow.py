"""Any workflow against a model of the world: whatever fails wherever, the record tells what is there, and nothing else is.

Workflows are made at random from every kind of block. Each step makes an effect or fails, and each has an undo that
takes its effect away. Then the world is compared with the report, and the record with a replay.
"""

from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, note, settings

from troth.runtime import Runtime, Workflow, step
from troth.runtime.workflows.execute.resume_points import CannotGoOnError
from troth.runtime.workflows.record.report import RunWord, StepWord


class World:
    """Effects by the place of the step that made them, and how often each was made and taken away."""

    def __init__(self):
        self.there = set()
        self.is_repaired = False
        self.made = Counter()
        self.taken = Counter()

    def do(self, number, fails):
        def do(at):
            if fails and not self.is_repaired:
                raise ValueError(f"step {number}")
            self.made[at] += 1
            self.there.add(at)
            return number

        return do

    def undo(self):
        def undo(at):
            self.taken[at] += 1
            self.there.discard(at)

        return undo


@st.composite
def workflows(draw):
    """A function that makes the workflow for a world; so that the same one can be made again."""
    count = iter(range(1000))

    def steps(depth, at):
        return [one(depth, at) for _ in range(draw(st.integers(1, 3)))]

    def one(depth, at):
        number = next(count)
        name = f"s{number}"
        optional = draw(st.integers(0, 5)) == 0
        kind = draw(
            st.sampled_from(["act"] * 3 + (["saga", "parallel", "each", "loop", "branch", "workflow"] if depth else []))
        )
        more = {"optional": True} if optional else {}
        if kind == "act":
            fails = draw(st.integers(0, 4)) == 0
            where = {"text": f"{at}{name}"}
            return lambda world: step(
                name, function=world.do(number, fails), inputs={"at": where}, undo={"function": world.undo(), "inputs": {"at": where}}, **more
            )  # fmt: skip
        if kind in ("each", "loop") and at:
            return one(0, at)  # a place with two numbers in it could not be told from here
        if kind == "each":
            inner = steps(depth - 1, f"{name}[${{index}}].")
            join = draw(st.sampled_from(["all", "settle"]))
            return lambda world: step(
                name, each=[1, 2], steps=[make(world) for make in inner], join=join, at_once=1, **more
            )
        if kind == "loop":
            inner = steps(depth - 1, f"{at}{name}[${{round}}].")
            return lambda world: step(name, loop=[make(world) for make in inner], at_most=2, **more)
        if kind == "workflow":
            inner = steps(depth - 1, "")
            if at:
                return one(0, at)  # what is inside does not see where it is
            policy = draw(st.sampled_from(["undo", "stop", "continue"]))
            inner = [rename(make, name) for make in inner]
            return lambda world: step(
                name, workflow=Workflow("w", *[make(world) for make in inner], on_error=policy), **more
            )
        inner = steps(depth - 1, at)
        if kind == "parallel":
            join = draw(st.sampled_from(["all", "settle", "any", 1, 2]))
            return lambda world: step(name, parallel=[make(world) for make in inner], join=join, at_once=1, **more)
        if kind == "branch":
            ways = lambda world: [{"when": "run.id != ''", "steps": [make(world) for make in inner]}, {"otherwise": []}]  # noqa: E731
            return lambda world: step(name, branch=ways(world), **more)
        return lambda world: step(name, saga=[make(world) for make in inner], **more)

    def rename(make, name):
        class Inside(World):
            pass

        def made(world):
            inside = Inside.__new__(Inside)
            inside.do = lambda number, fails: lambda at: world.do(number, fails)(f"{name}.{at}")
            inside.undo = lambda: lambda at: world.undo()(f"{name}.{at}")
            return make(inside)

        return made

    whole = steps(2, "")
    policy = draw(st.sampled_from(["undo", "stop", "continue"]))
    return lambda world: Workflow("any", *[make(world) for make in whole], on_error=policy), policy


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    with Runtime(tmp_path_factory.mktemp("any") / "runs.db") as opened:
        yield opened


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(made=workflows())
def test_the_record_tells_what_is_there(runtime, made):
    """A step that is done has its effect, every other has none; no effect is made or taken away twice."""
    make, policy = made
    world = World()
    run = runtime.run(make(world), check=False)
    note(f"{run.state} {[(one.place, str(one.state)) for one in run.steps]}")
    done = {one.place for one in run.steps if one.state is StepWord.DONE and not one.is_block and not one.is_undo}
    assert world.there == done
    assert max(world.made.values(), default=1) == 1
    assert max(world.taken.values(), default=1) == 1
    assert set(world.taken) <= set(world.made), "what never happened was undone, and its outcome was known"
    if policy == "undo" and not run.succeeded:
        assert not world.there, "the run failed, and something of it is left"
        assert run.state is (RunWord.ROLLED_BACK if run.rolled_back else RunWord.FAILED)
    agrees(runtime, run)
    if run.is_over and not run.succeeded:
        goes_on(runtime, run, world)


def agrees(runtime, run):
    """Workflow and record."""
    replayed = runtime.replay(run.id)
    assert not replayed.differs
    assert replayed.ending.startswith("completed" if run.succeeded else "failed")


def goes_on(runtime, run, world):
    """What failed is repaired: the run completes, and what was done before is not done again; or it was undone."""
    world.is_repaired = True
    if run.rolled_back:
        with pytest.raises(CannotGoOnError):
            runtime.resume(run.id)
        return
    before = Counter(world.made)
    try:
        again = runtime.resume(run.id, check=False)
    except CannotGoOnError as refused:
        note(str(refused))  # it went on without something that comes after the step that failed
        again = None
    if again is None:
        assert world.made == before
        return
    note(f"resumed: {again.state} {[(one.place, str(one.state)) for one in again.steps]}")
    assert again.succeeded
    assert world.there == {
        one.place for one in again.steps if one.state is StepWord.DONE and not one.is_block and not one.is_undo
    }
    assert {place: world.made[place] for place in before} == before
    assert max(world.made.values(), default=1) == 1
    agrees(runtime, again)
