"""Knows how the steps of a block are carried out: what they see, what is undone, what is used of the budget.

Nothing here waits. A frame yields asks to the engine and is sent their answers, so a run can be replayed from its
record: given the same answers, it asks for the same things in the same order.
"""

import time
from collections import ChainMap
from collections.abc import Callable, Generator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from troth.errors import MisuseError, RunError
from troth.runtime.engine.asks import Append, Ask, Sleep, Together, Wait
from troth.runtime.engine.asks import Step as StepAsk
from troth.runtime.engine.errors import RunCancelledError, StepFailedError, StepTimeoutError, WaitTimeoutError
from troth.runtime.engine.workers import Workers
from troth.runtime.sagas.cut_off import may_have_happened, watched
from troth.runtime.sagas.rollback import Rollback, StepFailed, Undoable, failure_of, roll_back
from troth.runtime.workflows.allowance import Allowance
from troth.runtime.workflows.calls import call_for, failing
from troth.runtime.workflows.durations import show_duration
from troth.runtime.workflows.failures import BudgetExceededError, WorkflowFailedError, check_inputs, check_output
from troth.runtime.workflows.final import with_finals
from troth.runtime.workflows.kinds import Decision, kind_of
from troth.runtime.workflows.link import LinkedWorkflow
from troth.runtime.workflows.paths import BadPathError
from troth.runtime.workflows.racing import LET_GO, LetGoError, NotNeededError, Race, RacedRetry, raced
from troth.runtime.workflows.sources import Source
from troth.runtime.workflows.spec import Budget, Join, Step, Target, WorkflowSpec
from troth.runtime.workflows.usage import Meter, Spending

__all__ = ["RACED_SLEEP", "TIME_LEFT", "Frame", "OverBudget", "Run", "Stopped", "approval_signal"]


class Stopped(Exception):  # noqa: N818 -- carries a failure out of nested blocks; never leaves the decision
    """A step failed for good, and the block it is in stops there."""

    def __init__(self, failure: StepFailed) -> None:
        super().__init__(str(failure))
        self.failure = failure


class OverBudget(Stopped):
    """A limit of `workflow`'s budget is reached. No block goes on without the step it was reached at."""

    def __init__(self, failure: StepFailed, workflow: str) -> None:
        super().__init__(failure)
        self.workflow = workflow


class LetGo(Stopped):
    """Enough of those beside this branch have succeeded. No block goes on here; the race it belongs to knows."""


@dataclass(slots=True)
class Run:
    """What all frames of one run share, and never changes; but for the meter, which counts what agents use."""

    id: str
    linked: LinkedWorkflow
    codes: Mapping[str, str] = field(default_factory=dict)
    """Fingerprints to be taken instead of those of the functions, by place: changes that were accepted."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """In a fork: the ids of the runs that did the steps it was given, by place."""
    forked_at: float = 0.0
    meter: Meter = field(default_factory=Meter)
    workers: Workers = field(default_factory=Workers)
    """The threads for sync calls that may be let go."""
    send: Callable[[str, object], object] = lambda _name, _payload: None
    """Sends this run a signal, once for each name."""

    def doer_of(self, place: str) -> str:
        """The id of the run that does the step at `place`, or did it before this one was forked from it."""
        return self.origins.get(place, self.id)


RACED_SLEEP = "let go "
"""How the signal begins that ends the sleep of a branch; the place follows."""
TIME_LEFT = "time left"
"""The name of the engine's step that records how long may be waited."""


def _time_until(deadline: float) -> float:
    return max(deadline - time.time(), 0.001)


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
    allowances: tuple[Allowance, ...] = ()
    """What may be used here: of the run, and of each workflow in it that this block lies in."""
    races: tuple[Race, ...] = ()
    """The races that this block is in a branch of, the outermost first."""

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
        return Frame(
            self.run,
            self.spec,
            state,
            f"{self.prefix}{part}",
            [],
            self.failures,
            self.used,
            self.allowances,
            self.races,
        )

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
        if self.run.origins:
            self.state["run"] = {"id": self.run.doer_of(self.place(step.id)), "workflow": self.spec.name}
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
            if isinstance(error, (OverBudget, LetGo)):
                raise
            if _is_let_go(error):
                raise LetGo(failure) from None
            if (over := self._budget_of(step, error)) is not None:
                raise OverBudget(_at_work(failure, over), over.workflow) from None
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

    def _budget_of(self, step: Step, error: Exception) -> Allowance | None:
        """The budget that `error` says is used up; None where it says something else."""
        if isinstance(error, BudgetExceededError):
            return next(one for one in reversed(self.allowances) if one.workflow == error.workflow)
        if not isinstance(error, StepFailedError):
            return None
        if error.type == BudgetExceededError.__name__:
            return next((one for one in reversed(self.allowances) if f"of {one.workflow!r} " in error.message), None)
        last = self._deadline()
        if last is None or error.type != StepTimeoutError.__name__:
            return None
        # Cut off by the step's own limit, or by what was left of the time? The clock is another one on a replay.
        is_own = step.timeout is not None and f"within {step.timeout:g} s" in error.message
        return None if is_own else last

    def _go_on_without(self, step: Step, failure: StepFailed, before: int) -> Decision:
        if step.optional:
            yield from self._undo_part(self.happened[before:], step, failure)
            del self.happened[before:]
            self.steps[step.id] = step.default
            return step.default
        if self.spec.on_error == "continue":
            self.failures.append(failure)
            self.steps[step.id] = None
            return None
        raise Stopped(failure)

    def _undo_part(self, done: Sequence[Undoable], step: Step, failure: StepFailed) -> Generator[Ask, Any, None]:
        """Undo what a part of the run did that goes on without it."""
        rollback = yield from roll_back(done)
        if not rollback.is_complete:
            raise Stopped(_incomplete(self.place(step.id), failure, rollback))
        if rollback.was_cancelled:
            raise RunCancelledError(f"The run {self.run.id!r} was cancelled.")

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
            call_for(callee, None, step.id),
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
        spending = Spending(name, self.run.meter, self._check_usage) if callee.is_agent and self._is_metered() else None
        call = call_for(callee, step.output, step.id, self._check_time if self._deadline() else None, spending)
        if step.undo is not None:
            call = watched(call, callee.action.color)
        retry = with_finals(step.retry) if self.allowances else step.retry
        timeout = self._time_left(step.timeout)
        if self.races:
            retry = RacedRetry.of(step.retry)
            call, timeout = raced(call, callee.action.color, self.races, retry, timeout, self.run.workers), None
        return (yield StepAsk(name, call, kwargs=arguments, retry=retry, timeout=timeout, code=code))

    # ---- what may be used

    def _use_one(self) -> None:
        for allowance in self.allowances:
            allowance.check_steps(self.used)
        self.used += 1

    def _is_metered(self) -> bool:
        return any(one.budget.tokens is not None or one.budget.cost is not None for one in self.allowances)

    def _check_usage(self, meter: Meter) -> None:
        for allowance in self.allowances:
            allowance.check_usage(meter)

    def _check_time(self) -> None:
        for allowance in self.allowances:
            allowance.check_time(time.time())

    def _deadline(self) -> Allowance | None:
        """The allowance whose time is up first; None where time has no limit."""
        limited = [one for one in self.allowances if one.deadline is not None]
        return min(limited, key=lambda one: one.deadline or 0.0, default=None)

    def _time_left(self, timeout: float | None) -> float | None:
        """The step's own limit or what is left of the run's, whichever is less. Not part of what a replay compares."""
        last = self._deadline()
        if last is None or last.deadline is None:
            return timeout
        left = _time_until(last.deadline)
        return left if timeout is None else min(timeout, left)

    def _patience(self) -> Generator[Ask, Any, tuple[float, Allowance | None]]:
        """How long may be waited here at most. It is recorded: a replay has to ask for the same wait again."""
        last = self._deadline()
        if last is None or last.deadline is None:
            return float("inf"), None
        patience = yield StepAsk(TIME_LEFT, partial(_time_until, last.deadline))
        return patience, last

    def enter_budget(self, workflow: str, budget: Budget) -> Generator[Ask, Any, tuple[Allowance, ...]]:
        """What may be used inside a workflow that begins here with a budget of its own."""
        if not budget.limits:
            return self.allowances
        deadline = None
        if budget.time is not None:
            began = yield StepAsk("clock", time.time)
            deadline = max(began, self.run.forked_at) + budget.time  # a fork has all its time before it
        return (*self.allowances, Allowance(workflow, budget, self.prefix, self.used, deadline))

    # ---- waiting

    def sleep(self, name: str, seconds: float) -> Decision:
        """Sleep, durably; no longer than the run may take."""
        yield self._event("sleeping", {"place": self.place(name)})
        patience, last = yield from self._patience()
        if self.races:
            yield from self._raced_wait(f"{RACED_SLEEP}{self.place(name)}", min(seconds, patience))
        else:
            yield Sleep(min(seconds, patience))
        if last is not None and patience < seconds:
            raise last.too_long()
        return None

    def question(self, step: Step, text: str, shown: Mapping[str, object]) -> Generator[Ask, Any, dict[str, object]]:
        """Wait for a person's answer. Silence until the timeout is a no."""
        yield self._event("asking", {"place": self.place(step.id), "question": text, "shown": dict(shown)})
        patience, last = yield from self._patience()
        own = float("inf") if step.timeout is None else step.timeout
        timeout = min(own, patience)
        try:
            limit = None if timeout == float("inf") else timeout
            signal = approval_signal(self.place(step.id))
            answer = (yield from self._raced_wait(signal, limit)) if self.races else (yield Wait(signal, limit))
            if answer is None:
                raise WaitTimeoutError(signal, "", {})
        except WaitTimeoutError:
            if last is not None and patience < own:
                raise last.too_long() from None
            return {"approved": False, "by": None, "note": f"nobody answered within {show_duration(timeout)}"}
        return {"approved": bool(answer["approved"]), "by": answer.get("by"), "note": answer.get("note")}

    def _raced_wait(self, signal: str, seconds: float | None) -> Generator[Ask, Any, Any]:
        """Wait for a signal, or until the branch is let go. Answers None when the time is up."""
        for race in self.races:
            race.waits.add(signal)
        try:
            is_open = yield StepAsk("still needed", partial(_are_open, self.races))
            if not is_open:
                raise NotNeededError("It was not waited: enough of the others had succeeded before.")
            answer = yield Wait(signal, seconds)
        except WaitTimeoutError:
            return None
        finally:
            for race in self.races:
                race.waits.discard(signal)
        if isinstance(answer, Mapping) and answer.get("let_go"):
            raise NotNeededError("The wait was ended: enough of the others have succeeded.")
        return answer

    def took(self, step: Step, way: str) -> Generator[Ask, Any, None]:
        """Write down which way a branch took."""
        yield self._event("took", {"place": self.place(step.id), "way": way})

    def _event(self, kind: str, payload: Mapping[str, object]) -> Append:
        return Append(f"run:{self.run.doer_of(str(payload['place']))}", kind, dict(payload))

    def run_together(self, step: Step, steps: Sequence[Step]) -> Decision:
        """A saga: when one of `steps` fails, those before it are undone, and the block fails."""
        inner = self.inside()
        try:
            yield from inner.run_steps_here(steps)
        except (OverBudget, LetGo):
            raise  # the first goes on with a larger budget, the second is undone by its race
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
        inner = Frame(self.run, spec, state, f"{self.place(step.id)}.", [], [], self.used, self.allowances, self.races)
        inner.allowances = yield from inner.enter_budget(spec.name, spec.budget)
        try:
            output = yield from inner.run_steps_here(spec.steps)
            if inner.failures:
                raise WorkflowFailedError(spec.name, inner.failures, Rollback())
        except OverBudget as over:
            if len(inner.allowances) > len(self.allowances) and over.workflow == spec.name:
                raise Stopped(over.failure) from None  # its own limit: a failure of this step like any other
            raise
        finally:
            self.happened.extend(inner.happened)
            self.used = inner.used
        return output if spec.output is None else {name: one.value(state) for name, one in spec.output.items()}

    # ---- several at once

    def run_members(self, step: Step, members: Sequence[Step], join: Join, at_once: int | None) -> Decision:
        """Members of a parallel block: each in a frame of its own, in waves where one comes after another."""
        outputs: dict[str, object] = {}
        group = _Group(join, len(members))
        left = list(members)
        lost: set[str] = set()
        try:
            while left and group.is_open:
                wave = [one for one in left if all(name in outputs or name in lost for name in one.after)]
                left = [one for one in left if one not in wave]
                ready = [one for one in wave if not lost.intersection(one.after)]
                lost.update(one.id for one in wave if one not in ready)
                frames = [self._branch(group) for _ in ready]
                for frame in frames:
                    frame.steps.update(outputs)
                branches = [frame.run_step(one) for frame, one in zip(frames, ready, strict=True)]
                results = yield from self._gather(step, group, frames, branches, at_once)
                for one, result in zip(ready, results, strict=True):
                    if isinstance(result, Stopped):
                        lost.add(one.id)
                    else:
                        outputs[one.id] = result
            yield from self._join(step, group)
        finally:
            self._take_in_all(group)
        return {one.id: outputs.get(one.id) for one in members}

    def run_for_each(
        self, step: Step, steps: Sequence[Step], item: str, items: Sequence[object], join: Join, at_once: int
    ) -> Decision:
        """The same steps for each item, each in a frame of its own."""
        group = _Group(join, len(items))
        frames = [
            self._branch(group, {item: value, "index": index}, f"{step.id}[{index}].")
            for index, value in enumerate(items)
        ]
        try:
            branches = [frame.run_steps_here(steps) for frame in frames]
            results = yield from self._gather(step, group, frames, branches, at_once)
            yield from self._join(step, group)
        finally:
            self._take_in_all(group)
        return [None if isinstance(result, Stopped) else result for result in results]

    def _branch(self, group: "_Group", names: Mapping[str, object] | None = None, part: str = "") -> "Frame":
        inner = self.inside(names, part)
        if group.race is not None:
            inner.races = (*self.races, group.race)
        return inner

    def _gather(
        self, step: Step, group: "_Group", frames: Sequence["Frame"], branches: Sequence[Decision], limit: int | None
    ) -> Generator[Ask, Any, list[object]]:
        """Bring the branches to their end: all of them, or until enough have succeeded and the others are let go."""
        group.frames.extend(frames)
        if not branches:
            return []
        name = f"enough {self.place(step.id)}"
        kept = [_kept(branch, group.race, name, self.run.send) for branch in branches]
        results: list[object] = yield Together.of(kept, limit=limit)
        group.results.extend(results)
        return results

    def _join(self, step: Step, group: "_Group") -> Generator[Ask, Any, None]:
        """Fail if too few have succeeded; else undo what those did that did not."""
        stopped = [result for result in group.results if isinstance(result, Stopped)]
        over = next((result for result in stopped if isinstance(result, OverBudget)), None)
        enough = len(group.results) - len(stopped) >= group.needed
        if over is not None and (not enough or group.needed == 0):
            raise over
        if not enough:
            raise next((one for one in stopped if not isinstance(one, LetGo)), stopped[0])
        for frame, result in reversed(list(zip(group.frames, group.results, strict=True))):
            if isinstance(result, Stopped):
                yield from self._undo_part(frame.happened, step, result.failure)
                frame.happened.clear()

    def _take_in_all(self, group: "_Group") -> None:
        """Make what the branches did part of this frame, in their order, whichever came first."""
        used = self.used
        for frame in group.frames:
            self.happened.extend(frame.happened)
            self.used += frame.used - used


class _Group:
    """Branches that are joined: their frames, how each of them ended, and how many have to succeed."""

    def __init__(self, join: Join, size: int) -> None:
        words = {"all": size, "any": min(1, size), "settle": 0}
        self.needed = min(join, size) if isinstance(join, int) else words[join]
        self.race = Race(self.needed) if join not in ("all", "settle") and 0 < self.needed < size else None
        self.frames: list[Frame] = []
        self.results: list[object] = []

    @property
    def is_open(self) -> bool:
        """Whether there is anything left to find out."""
        return self.race is None or self.race.is_open


def _kept(branch: Decision, race: Race | None, name: str, send: Callable[[str, object], object]) -> Decision:
    """A branch whose failure is its outcome, so that the others are brought to their end and counted."""
    try:
        output = yield from branch
    except Stopped as stopped:
        return stopped
    if race is not None and race.score():
        yield StepAsk(name, partial(_call_off, race, send))
    return output


def _call_off(race: Race, send: Callable[[str, object], object]) -> None:
    """Tell the branches that wait for a signal. Those whose calls are in flight have been told already."""
    for signal in sorted(race.waits):
        send(signal, {"let_go": True})


def _are_open(races: Sequence[Race]) -> bool:
    return all(race.is_open for race in races)


def _is_let_go(error: Exception) -> bool:
    return isinstance(error, NotNeededError) or (isinstance(error, StepFailedError) and error.type in LET_GO)


def _at_work(failure: StepFailed, over: Allowance) -> StepFailed:
    """A step that was cut off by the end of the run's time did not fail by itself."""
    if failure.type == BudgetExceededError.__name__:
        return failure
    refused = over.too_long()
    return StepFailed(failure.step, type(refused).__name__, f"{refused} It was at work then.", failure.place)


def _may_have_happened(error: Exception) -> bool:
    """Whether the effect of an action may be there although it failed."""
    if not isinstance(error, StepFailedError):
        return False
    return error.type in _UNKNOWN or may_have_happened(error)


_UNKNOWN = frozenset({"OutputContractError", StepTimeoutError.__name__, LetGoError.__name__})


def _incomplete(step: str, failure: StepFailed, rollback: Rollback) -> StepFailed:
    left = "; ".join(f"{one.step}: {one}" for one in rollback.failed)
    message = f"{failure.message}; and not everything could be undone: {left}"
    return StepFailed(step, failure.type, message, failure.place)
