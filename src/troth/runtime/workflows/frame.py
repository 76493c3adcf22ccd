"""Knows how the steps of a block are carried out: what they see, what is undone, what is used of the budget.

Nothing here waits. A frame yields asks to the engine and is sent their answers, so a run can be replayed from its
record: given the same answers, it asks for the same things in the same order.
"""

import time
from collections import ChainMap
from collections.abc import Generator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from troth.errors import MisuseError, RunError
from troth.runtime.engine.asks import Append, Ask, Sleep, Together, Wait
from troth.runtime.engine.asks import Step as StepAsk
from troth.runtime.engine.errors import RunCancelledError, StepFailedError, WaitTimeoutError
from troth.runtime.sagas.cut_off import may_have_happened, watched
from troth.runtime.sagas.rollback import Rollback, StepFailed, Undoable, failure_of, roll_back
from troth.runtime.workflows.calls import call_for, failing
from troth.runtime.workflows.durations import show_duration
from troth.runtime.workflows.failures import BudgetExceededError, WorkflowFailedError, check_inputs, check_output
from troth.runtime.workflows.kinds import Decision, kind_of
from troth.runtime.workflows.link import LinkedWorkflow
from troth.runtime.workflows.paths import BadPathError
from troth.runtime.workflows.sources import Source
from troth.runtime.workflows.spec import Step, Target, WorkflowSpec

__all__ = ["Frame", "Run", "Stopped", "approval_signal"]


class Stopped(Exception):  # noqa: N818 -- carries a failure out of nested blocks; never leaves the decision
    """A step failed for good, and the block it is in stops there."""

    def __init__(self, failure: StepFailed) -> None:
        super().__init__(str(failure))
        self.failure = failure


@dataclass(slots=True)
class Run:
    """What all frames of one run share, and never changes."""

    id: str
    linked: LinkedWorkflow
    deadline: float | None = None
    codes: Mapping[str, str] = field(default_factory=dict)
    """Fingerprints to be taken instead of those of the functions, by place: changes that were accepted."""


def approval_signal(place: str) -> str:
    """The signal that answers the question of the approval step at `place`."""
    return f"approve {place}"


@dataclass(slots=True)
class Frame:
    """One block at work."""

    run: Run
    spec: WorkflowSpec
    state: MutableMapping[str, object]
    prefix: str = ""
    happened: list[Undoable] = field(default_factory=list)
    failures: list[StepFailed] = field(default_factory=list)
    used: int = 0

    @property
    def steps(self) -> MutableMapping[str, object]:
        """The outputs that can be seen from here."""
        return cast("MutableMapping[str, object]", self.state["steps"])

    def place(self, name: str) -> str:
        """The name of a step in the record: unique in the run, whatever rounds and items it is in."""
        return f"{self.prefix}{name}"

    def look_up(self, inputs: Mapping[str, Source]) -> dict[str, object]:
        """The values of a step's inputs."""
        return {name: source.value(self.state) for name, source in inputs.items()}

    def the_list(self, source: Source, step: Step) -> list[object]:
        """The list that a step goes through."""
        value = source.value(self.state)
        if isinstance(value, list):
            return value
        raise BadPathError(f"`each` of {step.id!r} is {value!r}, which is not a list.")

    def inside(self, names: Mapping[str, object] | None = None, part: str = "") -> "Frame":
        """A frame for a block inside of this one: it sees what this one sees, and keeps what it does to itself."""
        seen: ChainMap[str, object] = ChainMap({}, self.steps)
        state = {**self.state, **(names or {}), "steps": seen}
        return Frame(self.run, self.spec, state, f"{self.prefix}{part}", [], self.failures, self.used)

    def take_in(self, inner: "Frame") -> None:
        """Make what happened in an inner frame part of this one."""
        self.happened.extend(inner.happened)
        self.used = max(self.used, inner.used)

    # ---- steps, one after the other

    def run_steps_here(self, steps: Sequence[Step]) -> Decision:
        """Run `steps` in this frame; the output is that of the last."""
        output: object = None
        for step in steps:
            output = yield from self.run_step(step)
        return output

    def run_steps(self, steps: Sequence[Step], names: Mapping[str, object] | None = None, part: str = "") -> Decision:
        """Run `steps` in a frame of their own."""
        inner = self.inside(names, part)
        try:
            return (yield from inner.run_steps_here(steps))
        finally:
            self.take_in(inner)

    def run_step(self, step: Step) -> Decision:
        """Run one step with all that was written on it: contract, undo, optional, default."""
        kind = kind_of(step)
        before = len(self.happened)
        try:
            output = yield from kind.perform(step, step.body, self)
            if not kind.retries:  # an action's output is checked where it is made, so that the record has the failure
                check_output(step.id, step.output, output)
        except RunCancelledError:
            self._note(step, None)
            raise
        except (Stopped, StepFailedError, MisuseError, RunError) as error:
            failure = yield from self._failure(step, error)
            if not kind.retries or _may_have_happened(error):
                self._note(step, None)
            return (yield from self._go_on_without(step, failure, before))
        self._note(step, output)
        self.steps[step.id] = output
        return output

    def _failure(self, step: Step, error: Exception) -> Generator[Ask, Any, StepFailed]:
        if isinstance(error, Stopped):
            return error.failure
        if isinstance(error, StepFailedError):
            return failure_of(error.step, error)
        # Found by the decision itself: written down as the failure of this step, so that the record shows it.
        try:
            yield StepAsk(self.place(step.id), failing(error))
        except StepFailedError as recorded:
            return failure_of(recorded.step, recorded)
        raise AssertionError(error)

    def _go_on_without(self, step: Step, failure: StepFailed, before: int) -> Decision:
        if step.optional:
            rollback = yield from roll_back(self.happened[before:])
            if not rollback.is_complete:
                raise Stopped(_incomplete(self.place(step.id), failure, rollback))
            del self.happened[before:]
            self.steps[step.id] = step.default
            return step.default
        if self.spec.on_error == "continue":
            self.failures.append(failure)
            self.steps[step.id] = None
            return None
        raise Stopped(failure)

    def _note(self, step: Step, output: object) -> None:
        """Remember how to undo `step`. What is inside of it was noted before, and is undone after."""
        undo = step.undo
        if undo is None:
            return
        callee = self.run.linked.callee(undo.target)
        if undo.inputs is None:
            inputs = {name: source for _, given in kind_of(step).calls(step.body) for name, source in given.items()}
            given = callee.action.accepted({**self.look_up(inputs), "result": output})
        else:
            seen = {**self.state, "result": output, "steps": ChainMap({step.id: output}, self.steps)}
            given = {name: source.value(seen) for name, source in undo.inputs.items()}
        ask = StepAsk(
            f"undo {self.place(step.id)}",
            call_for(callee, None, step.id, None),
            kwargs=given,
            retry=undo.retry,
            timeout=undo.timeout,
        )
        self.happened.append(Undoable(self.place(step.id), ask))

    # ---- what the kinds ask for

    def act(self, step: Step, target: Target, arguments: Mapping[str, object]) -> Decision:
        """Call what `target` names, once, durably."""
        self._use_one()
        callee = self.run.linked.callee(target)
        name = self.place(step.id)
        code = self.run.codes.get(name) or self.run.linked.code(target)
        call = call_for(callee, step.output, step.id, self.run.deadline)
        if step.undo is not None:
            call = watched(call, callee.action.color)
        timeout = self._time_left(step.timeout)
        return (yield StepAsk(name, call, kwargs=arguments, retry=step.retry, timeout=timeout, code=code))

    def _use_one(self) -> None:
        limit = self.spec.budget.steps
        if limit is not None and self.used >= limit:
            raise BudgetExceededError(f"The run has performed {self.used} actions, all that its budget allows.")
        self.used += 1

    def _time_left(self, timeout: float | None) -> float | None:
        """The step's own limit or what is left of the run's, whichever is less. Not part of what a replay compares."""
        if self.run.deadline is None:
            return timeout
        left = max(self.run.deadline - time.time(), 0.001)
        return left if timeout is None else min(timeout, left)

    def sleep(self, name: str, seconds: float) -> Decision:
        """Sleep, durably."""
        yield self._event("sleeping", {"place": self.place(name)})
        yield Sleep(seconds)
        return None

    def question(self, step: Step, text: str, shown: Mapping[str, object]) -> Generator[Ask, Any, dict[str, object]]:
        """Wait for a person's answer. Silence until the timeout is a no."""
        yield self._event("asking", {"place": self.place(step.id), "question": text, "shown": dict(shown)})
        timeout = step.timeout
        if self.run.deadline is not None:  # the limit of a wait is part of the record, so the time is taken from there
            now = yield StepAsk("clock", time.time)
            timeout = min(step.timeout or float("inf"), max(self.run.deadline - now, 0.001))
        try:
            answer = yield Wait(approval_signal(self.place(step.id)), timeout)
        except WaitTimeoutError:
            return {"approved": False, "by": None, "note": f"nobody answered within {show_duration(timeout or 0)}"}
        return {"approved": bool(answer["approved"]), "by": answer.get("by"), "note": answer.get("note")}

    def took(self, step: Step, way: str) -> Generator[Ask, Any, None]:
        """Write down which way a branch took."""
        yield self._event("took", {"place": self.place(step.id), "way": way})

    def _event(self, kind: str, payload: Mapping[str, object]) -> Append:
        return Append(f"run:{self.run.id}", kind, dict(payload))

    def run_together(self, step: Step, steps: Sequence[Step]) -> Decision:
        """A saga: when one of `steps` fails, those before it are undone, and the block fails."""
        inner = self.inside()
        try:
            yield from inner.run_steps_here(steps)
        except Stopped as stopped:
            rollback = yield from roll_back(inner.happened)
            inner.happened.clear()
            if not rollback.is_complete:
                raise Stopped(_incomplete(self.place(step.id), stopped.failure, rollback)) from None
            raise
        finally:
            self.take_in(inner)
        return {one.id: inner.steps[one.id] for one in steps}

    def run_workflow(self, step: Step, spec: WorkflowSpec, given: Mapping[str, object]) -> Decision:
        """Another workflow, in this run. What it does is undone with the rest of the run."""
        inputs = check_inputs(spec.name, spec.inputs, given)
        state: dict[str, object] = {"inputs": inputs, "steps": {}, "run": {"id": self.run.id, "workflow": spec.name}}
        inner = Frame(self.run, spec, state, f"{self.place(step.id)}.", [], [], 0)
        try:
            output = yield from inner.run_steps_here(spec.steps)
            if inner.failures:
                raise WorkflowFailedError(spec.name, inner.failures, Rollback())
        finally:
            self.happened.extend(inner.happened)
            self.used += inner.used
        return output if spec.output is None else {name: one.value(state) for name, one in spec.output.items()}

    # ---- several at once

    def run_members(self, members: Sequence[Step], *, needed: int, at_once: int | None) -> Decision:
        """Members of a parallel block: each in a frame of its own, in waves where one comes after another."""
        outputs: dict[str, object] = {}
        failed: list[StepFailed] = []
        left = list(members)
        lost: set[str] = set()
        while left:
            wave = [one for one in left if all(name in outputs or name in lost for name in one.after)]
            left = [one for one in left if one not in wave]
            ready = [one for one in wave if not lost.intersection(one.after)]
            lost.update(one.id for one in wave if one not in ready)
            frames = [self.inside() for _ in ready]
            for frame in frames:
                frame.steps.update(outputs)
            branches = [frame.run_step(one) for frame, one in zip(frames, ready, strict=True)]
            results = yield from self._gather(frames, branches, at_once)
            for one, result in zip(ready, results, strict=True):
                if isinstance(result, Stopped):
                    failed.append(result.failure)
                    lost.add(one.id)
                else:
                    outputs[one.id] = result
        _join(len(outputs), needed, failed)
        return {one.id: outputs.get(one.id) for one in members}

    def run_for_each(
        self, step: Step, steps: Sequence[Step], item: str, items: Sequence[object], *, needed: int, at_once: int
    ) -> Decision:
        """The same steps for each item, each in a frame of its own."""
        frames = [
            self.inside({item: value, "index": index}, f"{step.id}[{index}].") for index, value in enumerate(items)
        ]
        results = yield from self._gather(frames, [frame.run_steps_here(steps) for frame in frames], at_once)
        failed = [result.failure for result in results if isinstance(result, Stopped)]
        _join(len(results) - len(failed), needed, failed)
        return [None if isinstance(result, Stopped) else result for result in results]

    def _gather(
        self, frames: Sequence["Frame"], branches: Sequence[Decision], limit: int | None
    ) -> Generator[Ask, Any, list[object]]:
        """Bring all branches to their end. What they did is undone in their order, whichever came first."""
        if not branches:
            return []
        used = self.used
        try:
            outcomes: list[object] = yield Together.of([_kept(branch) for branch in branches], limit=limit)
            return outcomes
        finally:  # a cancellation comes through here too, and what the branches did has to be undone
            for frame in frames:
                self.happened.extend(frame.happened)
            self.used = used + sum(frame.used - used for frame in frames)


def _kept(branch: Decision) -> Decision:
    """A branch whose failure is its outcome, so that the others are brought to their end and counted."""
    try:
        return (yield from branch)
    except Stopped as stopped:
        return stopped


def _join(succeeded: int, needed: int, failed: Sequence[StepFailed]) -> None:
    if succeeded < needed:
        raise Stopped(failed[0])


def _may_have_happened(error: Exception) -> bool:
    """Whether the effect of an action may be there although it failed."""
    if not isinstance(error, StepFailedError):
        return False
    return error.type == "OutputContractError" or may_have_happened(error)


def _incomplete(step: str, failure: StepFailed, rollback: Rollback) -> StepFailed:
    left = "; ".join(f"{one.step}: {one}" for one in rollback.failed)
    message = f"{failure.message}; and not everything could be undone: {left}"
    return StepFailed(step, failure.type, message, failure.place)
