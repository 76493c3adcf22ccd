"""How the steps of a block are carried out: what they see, what is undone, what is used of the budget.

Nothing here waits. A frame yields asks to the engine and is sent their answers, so a run can be replayed from its
record: given the same answers, it asks for the same things in the same order.
"""

import time
from collections import ChainMap
from collections.abc import Callable, Generator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from troth.errors import MisuseError, RunError
from troth.runtime.engine.commands import Append, Command, Shows
from troth.runtime.engine.commands import Step as StepAsk
from troth.runtime.engine.errors import RunCancelledError, StepFailedError, StepTimeoutError
from troth.runtime.engine.invoke.worker_pool import WorkerPool
from troth.runtime.engine.retry import ONCE
from troth.runtime.sagas.rollback import Rollback, StepFailed, Undoable, failure_of, roll_back
from troth.runtime.sagas.undo import undo_arguments, undo_names_of, undo_step
from troth.runtime.workflows.document.paths import BadPathError, Path
from troth.runtime.workflows.document.sources import Source
from troth.runtime.workflows.execute.control_flow import LetGo, OverBudget, WorkflowStopped, incomplete
from troth.runtime.workflows.execute.failures import (
    BudgetExceededError,
    WorkflowFailedError,
    check_inputs,
    check_output,
)
from troth.runtime.workflows.execute.limits import Allowance, Allowances
from troth.runtime.workflows.execute.non_retryable import with_finals
from troth.runtime.workflows.execute.race import LET_GO, LetGoError, NotNeededError, Race, RacedRetry, raced
from troth.runtime.workflows.execute.step_calls import call_for, failing
from troth.runtime.workflows.execute.usage import Meter, Spending
from troth.runtime.workflows.kinds import Decision, kind_of
from troth.runtime.workflows.link.linker import LinkedWorkflow
from troth.runtime.workflows.spec import CallTarget, RunBudget, StepSpec, Undo, WorkflowSpec

__all__ = ["BlockFrame", "Run"]


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
    workers: WorkerPool = field(default_factory=WorkerPool)
    """The threads for sync calls that may be let go."""
    send: Callable[[str, object], object] = lambda _name, _payload: None
    """Sends this run a signal, once for each name."""
    clock: Callable[[], float] = time.time
    """What time it is in this run."""
    begun: set[str] = field(default_factory=set)
    """Places of waits that are shown as begun, and whose end is not shown yet."""
    _undo_names: Mapping[str, str] | None = None

    def undo_name(self, place: str) -> str:
        """The name under which the undo of the step at `place` is recorded."""
        if self._undo_names is None:
            self._undo_names = undo_names_of(step.id for step in self.linked.spec.steps)
        return self._undo_names.get(place) or f"undo {place}"

    def doer_of(self, place: str) -> str:
        """The id of the run that does the step at `place`, or did it before this one was forked from it."""
        return self.origins.get(place, self.id)


@dataclass(slots=True)
class BlockFrame:
    """One block at work."""

    run: Run
    spec: WorkflowSpec
    state: MutableMapping[str, object]
    prefix: str = ""
    happened: list[Undoable] = field(default_factory=list)
    failures: list[StepFailed] = field(default_factory=list)
    used: int = 0
    allowances: Allowances = field(default=Allowances())
    races: tuple[Race, ...] = ()
    """The races that this block is in a branch of, the outermost first."""
    continues: bool = False
    """Whether it goes on without a step that failed. Where something has to succeed or fall as a whole, it does not."""

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

    def the_list(self, source: Source, step: StepSpec) -> list[object]:
        """The list that a step goes through."""
        value = source.value(self.state)
        if isinstance(value, list):
            return value
        raise BadPathError(f"`each` of {step.id!r} is {value!r}, which is not a list.")

    def inside(self, names: Mapping[str, object] | None = None, part: str = "") -> "BlockFrame":
        """A frame for a block inside of this one: it sees what this one sees, and keeps what it does to itself."""
        visible_steps: ChainMap[str, object] = ChainMap({}, self.steps)
        state = {**self.state, **(names or {}), "steps": visible_steps}
        return BlockFrame(
            self.run,
            self.spec,
            state,
            f"{self.prefix}{part}",
            [],
            self.failures,
            self.used,
            self.allowances,
            self.races,
            self.continues,
        )

    def take_in(self, inner: "BlockFrame") -> None:
        """Make what happened in an inner frame part of this one."""
        self.happened.extend(inner.happened)
        self.used = max(self.used, inner.used)

    # ---- steps, one after the other

    def run_steps_here(self, steps: Sequence[StepSpec]) -> Decision:
        """Run `steps` in this frame; the output is that of the last."""
        output: object = None
        for step in steps:
            output = yield from self.run_step(step)
        return output

    def run_steps(
        self, steps: Sequence[StepSpec], names: Mapping[str, object] | None = None, part: str = ""
    ) -> Decision:
        """Run `steps` in a frame of their own."""
        inner = self.inside(names, part)
        try:
            return (yield from inner.run_steps_here(steps))
        finally:
            self.take_in(inner)

    def run_step(self, step: StepSpec) -> Decision:
        """Run one step with all that was written on it: contract, undo, optional, default."""
        kind = kind_of(step)
        before = len(self.happened)
        if self.run.origins:
            self.state["run"] = {"id": self.run.doer_of(self.place(step.id)), "workflow": self.spec.name}
        try:
            output = yield from self._perform(step)
            if not kind.retries:  # an action's output is checked where it is made, so that the record has the failure
                check_output(step.id, step.output, output)
        except RunCancelledError as cancelled:
            if cancelled.has_begun or not kind.retries:  # of what was never called there is nothing to take back
                self._note(step, None)
            raise
        except (WorkflowStopped, StepFailedError, MisuseError, RunError) as error:
            failure = yield from self._failure(step, error)
            if not kind.retries or self._may_have_happened(step, error):
                self._note(step, None)
            if isinstance(error, (OverBudget, LetGo)):
                raise
            if _is_let_go(error):
                raise LetGo(failure) from None
            if (over := self._budget_of(step, error)) is not None:
                raise OverBudget(_at_work(failure, over), over.workflow) from None
            return (yield from self._go_on_without(step, failure, before))
        if self.run.begun:
            self.run.begun.discard(self.place(step.id))
        self._note(step, output)
        self.steps[step.id] = output
        return output

    def _perform(self, step: StepSpec) -> Decision:
        """What is inside of an optional step fails as a whole, to be passed over."""
        before = self.continues
        self.continues = before and not step.optional
        try:
            return (yield from kind_of(step).perform(step, step.body, self))
        finally:
            self.continues = before

    def _failure(self, step: StepSpec, error: Exception) -> Generator[Command, Any, StepFailed]:
        if isinstance(error, WorkflowStopped):
            return error.failure
        if isinstance(error, StepFailedError):
            return failure_of(error.step, error)
        return (yield from self.recorded(self.place(step.id), error))

    def recorded(self, name: str, error: Exception) -> Generator[Command, Any, StepFailed]:
        """Write down what the decision itself found wrong as the failure of a step, so that the record shows it."""
        shows: Shows = "end" if name in self.run.begun else "all"
        self.run.begun.discard(name)
        try:
            yield StepAsk(name, failing(error), shows=shows)
        except StepFailedError as failed:
            return failure_of(failed.step, failed)
        raise AssertionError(error)

    def _budget_of(self, step: StepSpec, error: Exception) -> Allowance | None:
        """The budget that `error` says is used up; None where it says something else."""
        if isinstance(error, BudgetExceededError):
            return self.allowances.of(error.workflow)
        if not isinstance(error, StepFailedError):
            return None
        if error.type == BudgetExceededError.__name__:
            return self.allowances.of(error.details.get("workflow"))
        last = self.allowances.first_deadline()
        if last is None or error.type != StepTimeoutError.__name__:
            return None
        # Cut off by the step's own limit, or by what was left of the time? The clock is another one on a replay.
        is_own = step.timeout is not None and error.details.get("timeout") == step.timeout
        return None if is_own else last

    def _go_on_without(self, step: StepSpec, failure: StepFailed, before: int) -> Decision:
        if step.optional:
            yield from self.undo_part(self.happened[before:], step, failure)
            del self.happened[before:]
            self.steps[step.id] = step.default
            return step.default
        if self.continues:
            self.failures.append(failure)
            self.steps[step.id] = None
            return None
        raise WorkflowStopped(failure)

    def _may_have_happened(self, step: StepSpec, error: Exception) -> bool:
        """Whether the effect of an action may be there although it failed."""
        if not isinstance(error, StepFailedError):
            return False
        if self.races and step.timeout is not None and step.retry is not ONCE:
            return True  # an attempt before the last may have been cut off, which only the engine would remember
        return error.type in _UNKNOWN or error.is_outcome_unknown

    def undo_part(
        self, performed: Sequence[Undoable], step: StepSpec, failure: StepFailed
    ) -> Generator[Command, Any, None]:
        """Undo what a part of the run did that goes on without it."""
        rollback = yield from roll_back(performed)
        if not rollback.is_complete:
            raise WorkflowStopped(incomplete(self.place(step.id), failure, rollback))
        if rollback.was_cancelled:
            raise RunCancelledError(f"The run {self.run.id!r} was cancelled.")

    def _note(self, step: StepSpec, output: object) -> None:
        """Remember how to undo `step`. What is inside of it was noted before, and is undone after."""
        undo = step.undo
        if undo is None:
            return
        name = self.run.undo_name(self.place(step.id))
        try:
            undo_inputs = self._undo_inputs(step, undo, output)
        except BadPathError as wrong:  # the others are undone all the same, and this one is told
            ask = StepAsk(name, failing(wrong))
        else:
            action = self.run.linked.callee(undo.target).action
            ask = undo_step(name, action, undo_inputs, retry=undo.retry, timeout=undo.timeout)
        self.happened.append(Undoable(self.place(step.id), ask))

    def _undo_inputs(self, step: StepSpec, undo: Undo, output: object) -> dict[str, object]:
        """What the undo of `step` is given. Where the output is not known, so is everything in it: null."""
        if undo.inputs is None:
            inputs = {
                name: source
                for _, call_inputs in kind_of(step).calls(step.body)
                for name, source in call_inputs.items()
            }
            return undo_arguments(self.run.linked.callee(undo.target).action, self.look_up(inputs), output)
        undo_state = {**self.state, "result": output, "steps": ChainMap({step.id: output}, self.steps)}
        undo_inputs: dict[str, object] = {}
        for name, source in undo.inputs.items():
            try:
                undo_inputs[name] = source.value(undo_state)
            except BadPathError:
                reads_output = any(_leads_into(path, step.id) for path, _ in source.paths())
                if output is not None or not reads_output:
                    raise
                undo_inputs[name] = None
        return undo_inputs

    # ---- what the kinds ask for

    def act(self, step: StepSpec, target: CallTarget, arguments: Mapping[str, object]) -> Decision:
        """Call what `target` names, once, durably."""
        self.allowances.check_steps(self.used)
        self.used += 1
        callee = self.run.linked.callee(target)
        name = self.place(step.id)
        code = self.run.codes.get(name) or self.run.linked.code(target)
        spending = None
        if callee.is_agent and self.allowances.are_metered:
            spending = Spending(name, self.run.meter, self.allowances.check_usage)
        call = call_for(
            callee,
            step.output,
            step.id,
            self._check_time if self.allowances.first_deadline() else None,
            spending,
        )
        retry = with_finals(step.retry) if self.allowances else step.retry
        timeout = self.allowances.time_left(step.timeout, self.run.clock)
        if self.races:
            retry = RacedRetry.of(step.retry)
            call, timeout = raced(call, callee.action.color, self.races, retry, timeout, self.run.workers), None
        return (yield StepAsk(name, call, kwargs=arguments, retry=retry, timeout=timeout, code=code))

    def _check_time(self) -> None:
        self.allowances.check_time(self.run.clock())

    def enter_budget(self, workflow: str, budget: RunBudget) -> Generator[Command, Any, Allowances]:
        """What may be used inside a workflow that begins here with a budget of its own."""
        if not budget.limits:
            return self.allowances
        deadline = None
        if budget.time is not None:
            began = yield StepAsk("clock", self.run.clock, shows="nothing")
            deadline = max(began, self.run.forked_at) + budget.time  # a fork has all its time before it
        return self.allowances.with_one(Allowance(workflow, budget, self.prefix, self.used, deadline))

    def took(self, step: StepSpec, way: str) -> Generator[Command, Any, None]:
        """Write down which way a branch took."""
        yield self.event("took", {"place": self.place(step.id), "way": way})

    def event(
        self,
        kind: str,
        payload: Mapping[str, object],
        *,
        shows: Shows = "nothing",
        note: Mapping[str, object] | None = None,
    ) -> Append:
        """What the record has to tell beside the answers, at the place that `payload` names."""
        return Append(f"run:{self.run.doer_of(str(payload['place']))}", kind, dict(payload), shows, note)

    def run_together(self, step: StepSpec, steps: Sequence[StepSpec]) -> Decision:
        """A saga: when one of `steps` fails, those before it are undone, and the block fails."""
        inner = self.inside()
        inner.continues = False
        try:
            yield from inner.run_steps_here(steps)
        except (OverBudget, LetGo):
            raise  # the first goes on with a larger budget, the second is undone by its race
        except WorkflowStopped as stopped:
            rollback = yield from roll_back(inner.happened)
            inner.happened.clear()
            if not rollback.is_complete:
                raise WorkflowStopped(incomplete(self.place(step.id), stopped.failure, rollback)) from None
            raise
        finally:
            self.take_in(inner)
        return {inner_step.id: inner.steps[inner_step.id] for inner_step in steps}

    def run_workflow(self, step: StepSpec, spec: WorkflowSpec, values: Mapping[str, object]) -> Decision:
        """Another workflow, in this run. What it does is undone with the rest of the run."""
        inputs = check_inputs(spec.name, spec.inputs, values)
        state: dict[str, object] = {"inputs": inputs, "steps": {}, "run": {"id": self.run.id, "workflow": spec.name}}
        inner = BlockFrame(
            self.run, spec, state, f"{self.place(step.id)}.", [], [], self.used, self.allowances, self.races
        )
        inner.continues = spec.on_error == "continue"
        inner.allowances = yield from inner.enter_budget(spec.name, spec.budget)
        try:
            output = yield from inner.run_steps_here(spec.steps)
            if inner.failures:
                raise WorkflowFailedError(spec.name, inner.failures, Rollback())
        except OverBudget as over:
            if inner.allowances != self.allowances and over.workflow == spec.name:
                raise WorkflowStopped(over.failure) from None  # its own limit: a failure of this step like any other
            raise
        finally:
            self.happened.extend(inner.happened)
            self.used = inner.used
        return output if spec.output is None else {name: source.value(state) for name, source in spec.output.items()}


def _leads_into(path: Path, step: str) -> bool:
    """Whether `path` leads into the output of the step itself, as its undo sees it."""
    return path.root == "result" or (path.root == "steps" and path.parts[:1] == (step,))


def _is_let_go(error: Exception) -> bool:
    return isinstance(error, NotNeededError) or (isinstance(error, StepFailedError) and error.type in LET_GO)


def _at_work(failure: StepFailed, over: Allowance) -> StepFailed:
    """A step that was cut off by the end of the run's time did not fail by itself."""
    if failure.type == BudgetExceededError.__name__:
        return failure
    refused = over.too_long()
    message = f"{refused} It was running at that time."
    return StepFailed(failure.step, type(refused).__name__, message, failure.place, refused.troth_details)


_UNKNOWN = frozenset({"OutputContractError", "AnswerContractError", StepTimeoutError.__name__, LetGoError.__name__})
