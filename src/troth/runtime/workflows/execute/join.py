"""How several steps are done at once and joined: all of them, the first, so many, or whatever comes of them."""

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from troth.runtime.engine.commands import Command, Together
from troth.runtime.engine.commands import Step as StepAsk
from troth.runtime.workflows.execute.control_flow import LetGo, OverBudget, WorkflowStopped
from troth.runtime.workflows.execute.race import Race
from troth.runtime.workflows.kinds import Decision
from troth.runtime.workflows.spec import Join, StepSpec

if TYPE_CHECKING:
    from troth.runtime.workflows.execute.frame import BlockFrame

__all__ = ["run_for_each", "run_members"]


def run_members(
    frame: "BlockFrame", step: StepSpec, members: Sequence[StepSpec], join: Join, at_once: int | None
) -> Decision:
    """Members of a parallel block: each in a frame of its own, in waves where one comes after another."""
    outputs: dict[str, object] = {}
    group = _Group(join, len(members))
    remaining = list(members)
    lost: set[str] = set()
    try:
        while remaining and group.is_open:
            wave = [member for member in remaining if all(name in outputs or name in lost for name in member.after)]
            remaining = [member for member in remaining if member not in wave]
            ready = [member for member in wave if not lost.intersection(member.after)]
            lost.update(member.id for member in wave if member not in ready)
            frames = [_branch(frame, group) for _ in ready]
            for inner in frames:
                inner.steps.update(outputs)
            branches = [inner.run_step(member) for inner, member in zip(frames, ready, strict=True)]
            results = yield from _gather(frame, step, group, frames, branches, at_once)
            for member, result in zip(ready, results, strict=True):
                if isinstance(result, WorkflowStopped):
                    lost.add(member.id)
                else:
                    outputs[member.id] = result
        yield from _join(frame, step, group)
    finally:
        _take_in_all(frame, group)
    return {member.id: outputs.get(member.id) for member in members}


def run_for_each(
    frame: "BlockFrame",
    step: StepSpec,
    steps: Sequence[StepSpec],
    item: str,
    items: Sequence[object],
    join: Join,
    at_once: int,
) -> Decision:
    """The same steps for each item, each in a frame of its own."""
    group = _Group(join, len(items))
    frames = [
        _branch(frame, group, {item: value, "index": index}, f"{step.id}[{index}].")
        for index, value in enumerate(items)
    ]
    try:
        branches = [inner.run_steps_here(steps) for inner in frames]
        results = yield from _gather(frame, step, group, frames, branches, at_once)
        yield from _join(frame, step, group)
    finally:
        _take_in_all(frame, group)
    return [None if isinstance(result, WorkflowStopped) else result for result in results]


def _branch(
    frame: "BlockFrame", group: "_Group", names: Mapping[str, object] | None = None, part: str = ""
) -> "BlockFrame":
    inner = frame.inside(names, part)
    inner.continues = False
    if group.race is not None:
        inner.races = (*frame.races, group.race)
    return inner


def _gather(
    frame: "BlockFrame",
    step: StepSpec,
    group: "_Group",
    frames: Sequence["BlockFrame"],
    branches: Sequence[Decision],
    limit: int | None,
) -> Generator[Command, Any, list[object]]:
    """Bring the branches to their end: all of them, or until enough have succeeded and the others are let go."""
    group.frames.extend(frames)
    if not branches:
        return []
    name = f"enough {frame.place(step.id)}"
    watched = [_as_outcome(branch, group.race, name, frame.run.send) for branch in branches]
    results: list[object] = yield Together.of(watched, limit=limit, name=frame.place(step.id))
    group.results.extend(results)
    return results


def _join(frame: "BlockFrame", step: StepSpec, group: "_Group") -> Generator[Command, Any, None]:
    """Fail if too few have succeeded; else undo what those did that did not."""
    stopped = [result for result in group.results if isinstance(result, WorkflowStopped)]
    over = next((result for result in stopped if isinstance(result, OverBudget)), None)
    enough = len(group.results) - len(stopped) >= group.needed
    if over is not None and (not enough or group.needed == 0):
        raise over
    if not enough:
        raise next((result for result in stopped if not isinstance(result, LetGo)), stopped[0])
    for inner, result in reversed(list(zip(group.frames, group.results, strict=True))):
        if isinstance(result, WorkflowStopped):
            yield from frame.undo_part(inner.happened, step, result.failure)
            inner.happened.clear()


def _take_in_all(frame: "BlockFrame", group: "_Group") -> None:
    """Make what the branches did part of this frame, in their order, whichever came first."""
    used = frame.used
    for inner in group.frames:
        frame.happened.extend(inner.happened)
        frame.used += inner.used - used


class _Group:
    """Branches that are joined: their frames, how each of them ended, and how many have to succeed."""

    def __init__(self, join: Join, size: int) -> None:
        words = {"all": size, "any": min(1, size), "settle": 0}
        self.needed = min(join, size) if isinstance(join, int) else words[join]
        self.race = Race(self.needed) if join not in ("all", "settle") and 0 < self.needed < size else None
        self.frames: list[BlockFrame] = []
        self.results: list[object] = []

    @property
    def is_open(self) -> bool:
        """Whether there is anything left to find out."""
        return self.race is None or self.race.is_open


def _as_outcome(branch: Decision, race: Race | None, name: str, send: Callable[[str, object], object]) -> Decision:
    """A branch whose failure is its outcome, so that the others are brought to their end and counted."""
    try:
        output = yield from branch
    except WorkflowStopped as stopped:
        return stopped
    if race is not None:
        race.score()
        # Every one that succeeds asks, not only the one that decides: on a replay another may come to its end first.
        yield StepAsk(name, partial(_call_off, race, send), shows="nothing")
    return output


def _call_off(race: Race, send: Callable[[str, object], object]) -> None:
    """If it is decided, tell the branches that wait for a signal. Those with calls in flight have been told already."""
    if race.is_open:
        return
    for signal in sorted(race.waits):
        send(signal, {"let_go": True})
