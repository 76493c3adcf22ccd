"""The workflows and sagas that a runtime can run, and how each is found again by the name its runs carry.

The name holds a digest of the document, so a runtime goes on only with runs of exactly what it knows. The document
itself is kept in the store before the first run, so that a run can be shown, and resumed as it was, by anybody.
"""

import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from troth.errors import MisuseError
from troth.runtime.engine.commands import Command, Conclude
from troth.runtime.engine.commit_points import RUN_START
from troth.runtime.engine.errors import RunCancelledError
from troth.runtime.engine.port import Engine
from troth.runtime.sagas.decision import decide as decide_saga
from troth.runtime.sagas.outcome import SagaFailedError, SagaState
from troth.runtime.sagas.saga import Saga
from troth.runtime.store import DamagedStoreError, RunRecord, RunState, StepRecord, Store, Transaction
from troth.runtime.workflows.document.digest import digest_of
from troth.runtime.workflows.document.document import dump_workflow
from troth.runtime.workflows.document.problems import InvalidWorkflowError
from troth.runtime.workflows.execute.decision import decide
from troth.runtime.workflows.execute.frame import Run
from troth.runtime.workflows.execute.limits import raised
from troth.runtime.workflows.execute.usage import talk_in, usage_of
from troth.runtime.workflows.kinds import kind_of
from troth.runtime.workflows.link.builder import Workflow
from troth.runtime.workflows.link.code_changes import ChangedWorkflowError, changes_since
from troth.runtime.workflows.link.from_saga import spec_of
from troth.runtime.workflows.link.linker import LinkedWorkflow, Registry
from troth.runtime.workflows.link.load import load_recorded, load_workflow, spec_of_document
from troth.runtime.workflows.link.recorded_saga import KEY, dump_saga, load_saga, spec_of_record
from troth.runtime.workflows.record.build_report import build_report, unattended, word_for
from troth.runtime.workflows.record.lineage import doer, origins_of
from troth.runtime.workflows.record.report import RunReport
from troth.runtime.workflows.record.run_events import EventReader
from troth.runtime.workflows.record.written_lines import WrittenLines, lines_of, lines_stream, with_written_lines
from troth.runtime.workflows.recorded import arguments_of
from troth.runtime.workflows.spec import LIMITS, RunBudget, WorkflowSpec

__all__ = [
    "FAMILIES",
    "FAMILY",
    "GOVERNED",
    "CannotGoOnHereError",
    "GovernedRun",
    "RegisteredWorkflow",
    "Runnable",
    "WorkflowRegistry",
    "budget_stream",
    "governed_run",
    "is_workflow",
]


Runnable: TypeAlias = str | os.PathLike[str] | Workflow | LinkedWorkflow | Saga
_MANY = 1000  # runs that were begun and not waited for, after which those that are over are looked for
FAMILY = "workflow:"
"""How the names begin under which runs of workflows and sagas are kept."""
_OF_SESSION = "session "
GOVERNED = f"{_OF_SESSION}{FAMILY}"
"""How those begin that a governed session carries out."""
FAMILIES = (FAMILY, GOVERNED)
"""Both: what lists of runs have."""


class CannotGoOnHereError(InvalidWorkflowError):
    """A run cannot be carried out here: something is wrong with what its workflow calls. It was left as it is."""

    def __init__(self, run_id: str, invalid: InvalidWorkflowError) -> None:
        self.problems = invalid.problems
        listed = "\n".join(map(str, self.problems))
        MisuseError.__init__(
            self,
            f"{listed}\nThe run {run_id!r} cannot continue here, and was not changed: completed steps are neither "
            "repeated "
            "nor undone.\nName the runtime that has what is missing, `--app module:runtime` on the command line or "
            f"`Runtime(…).resume({run_id!r})` in Python; or continue with the recorded workflow (`--as-recorded`).",
        )


@dataclass(frozen=True, slots=True)
class RegisteredWorkflow:
    """A workflow with the name its runs carry. `saga` is set where it stands for one.

    A saga that was read from the record keeps the name that it was recorded by: its functions may be called otherwise
    here, as those of the main module are.
    """

    linked: LinkedWorkflow
    saga: Saga | None = None
    recorded_name: str = ""

    @property
    def spec(self) -> WorkflowSpec:
        """The workflow's spec."""
        return self.linked.spec

    @property
    def name(self) -> str:
        """The name its runs carry in the store."""
        return self.recorded_name or f"{FAMILY}{self.spec.name}@{digest_of(self.spec)}"


def budget_stream(run_id: str) -> str:
    """The stream that has the larger budgets a run was given, the last one counting."""
    return f"budget:{run_id}"


def _with_inner(spec: WorkflowSpec) -> Iterator[WorkflowSpec]:
    yield spec
    for step in spec.all_steps():
        inner = kind_of(step).inner(step.body)
        if inner is not None:
            yield from _with_inner(inner)


def _word_for(
    run_id: str, spec: WorkflowSpec, state: RunState, steps: Callable[[], Sequence[StepRecord]]
) -> str | None:
    """The word for how a run ended, where that is another one than its state: it was undone, or could not be."""
    if not any(step.undo is not None for inner in _with_inner(spec) for step in inner.all_steps()):
        return None
    word = word_for(run_id, state, steps(), spec)
    return None if word == state.value else word


def _lacks_a_line(run: RunReport) -> bool:
    """Whether something failed without any of the user's code."""
    errors = [step.error for step in run.steps if step.error is not None]
    return any(not error.place for error in errors) or (run.stopped_at is not None and run.error is not None)


def is_workflow(run: RunRecord) -> bool:
    """Whether a run in the store is one of a workflow or a saga."""
    return run.decision.startswith(FAMILY) or (run.state is RunState.DAMAGED and not run.decision)


@dataclass(frozen=True, slots=True)
class GovernedRun:
    """A run that a member of a governed session has carried out: `run` is it as one of its workflow."""

    run: RunRecord
    session: str
    agent: str


def governed_run(run: RunRecord) -> GovernedRun | None:
    """What a run in the store is, if a session governs it; None where none does, or where that cannot be read."""
    match run.args:
        case (str() as session, str() as agent, *args) if run.decision.startswith(GOVERNED):
            decision = run.decision.removeprefix(_OF_SESSION)
            return GovernedRun(replace(run, decision=decision, args=tuple(args)), session, agent)
    return None


class WorkflowRegistry:
    """Every workflow that was loaded, joined with its functions and made known to the engine."""

    def __init__(self, engine: Engine, store: Store, registry: Registry) -> None:
        self._engine = engine
        self._store = store
        self._registry = registry
        self._workflows: dict[str, RegisteredWorkflow] = {}
        self._specs: dict[str, WorkflowSpec] = {}
        self._accepted: dict[str, tuple[RegisteredWorkflow, Mapping[str, str]]] = {}
        self._by_identity: dict[int, tuple[str, RegisteredWorkflow]] = {}
        self._registered: set[str] = set()
        self._from_record: dict[str, RegisteredWorkflow] = {}
        self._lock = threading.Lock()

    def take(self, source: Runnable) -> tuple[str, RegisteredWorkflow, bool]:
        """Read and check what is to be run; answers its name, itself, and whether it was not known before."""
        if (
            isinstance(source, LinkedWorkflow)
            and (cached := self._by_identity.get(id(source)))
            and cached[1].linked is source
        ):
            return *cached, False
        workflow = self._read(source)
        name = workflow.name
        with self._lock:
            before = self._workflows.get(name)
            self._workflows[name] = workflow
            if name not in self._registered:
                self._register(name)
            if before is None:
                self._keep(name, workflow)
            if before is not None:  # one of each: a service that runs a file a million times reads it a million times
                self._by_identity.pop(id(before.linked), None)
            self._by_identity[id(workflow.linked)] = name, workflow
        return name, workflow, before is None

    def _register(self, name: str) -> None:
        self._engine.register(self._decision(name), name)
        self._registered.add(name)

    def _keep(self, name: str, workflow: RegisteredWorkflow) -> None:
        """Keep the document before the first run, in the stream that has the workflow's name.

        What another process needs to carry on a saga follows, where the document was written without it.
        """
        store = self._store
        last = store.last_event(name)
        is_kept = bool(last and (workflow.saga is None or KEY in self._last_document(name)))
        lines, stream = lines_of(workflow.spec), lines_stream(name)
        last_lines = store.last_event(stream) if lines else 0
        are_lines_kept = not lines or bool(last_lines and lines == self._lines_of(name))
        if is_kept and are_lines_kept:
            return
        document = dump_workflow(workflow.spec)
        if workflow.saga is not None:
            document[KEY] = dump_saga(workflow.saga)

        def keep_once(tx: Transaction) -> None:
            if not is_kept and tx.last_event(name) == last:
                tx.append_event(name, "document", document, store.clock())
            if not are_lines_kept and tx.last_event(stream) == last_lines:
                tx.append_event(stream, "lines", lines, store.clock())

        store.commit(RUN_START, keep_once)

    def _lines_of(self, name: str) -> WrittenLines:
        """Where the steps of a workflow are written; nothing where that was not kept, or cannot be read."""
        stream = lines_stream(name)
        try:
            last = self._store.last_event(stream)
            events = self._store.events(stream, after=last - 1) if last else []
        except DamagedStoreError:
            return {}
        lines = events[-1].payload if events else None
        return lines if isinstance(lines, dict) else {}

    def _last_document(self, name: str) -> Mapping[str, Any]:
        """What was written last of the workflow that has this name; nothing where that cannot be read."""
        events = self._store.events(name)
        document = events[-1].payload if events else None
        return document if isinstance(document, dict) else {}

    def _read(self, source: Runnable) -> RegisteredWorkflow:
        if isinstance(source, LinkedWorkflow):
            linked = RegisteredWorkflow(source)
            before = self._workflows.get(linked.name)
            # A saga that was loaded is carried out by the saga, also if it was given once more in between.
            return linked if before is None else replace(before, linked=source)
        if isinstance(source, Saga):
            return RegisteredWorkflow(LinkedWorkflow(spec_of(source), {}), source)
        return RegisteredWorkflow(load_workflow(source, self._registry))

    def _decision(self, name: str) -> Callable[[str, dict[str, object], str], Generator[Command, Any, object]]:
        def decision(run_id: str, inputs: dict[str, object], source: str) -> Generator[Command, Any, object]:  # noqa: ARG001
            workflow, codes = self._accepted.get(run_id) or (self._workflows.get(name) or self._from_record[name], {})
            return (yield from self.deciding(workflow, run_id, inputs, codes))

        return decision

    def deciding(
        self, workflow: RegisteredWorkflow, run_id: str, inputs: Mapping[str, object], codes: Mapping[str, str]
    ) -> Generator[Command, Any, object]:
        """The decision of one run, about to begin."""
        yield Conclude(partial(_word_for, run_id, workflow.spec))
        if workflow.saga is None:
            return (yield from decide(self._run(workflow, run_id, codes), inputs))
        outcome = yield from decide_saga(workflow.saga)
        if outcome.was_cancelled:
            raise RunCancelledError(str(outcome))
        if outcome.state is not SagaState.COMPLETED:
            raise SagaFailedError(outcome)
        return outcome.results

    def _run(self, workflow: RegisteredWorkflow, run_id: str, codes: Mapping[str, str]) -> Run:
        """What the frames of a run share: what was used before, and a larger budget if it was given one."""
        record = self._engine.find(run_id)
        run = Run(
            run_id,
            workflow.linked,
            codes,
            workers=self._engine.workers,
            send=partial(self._tell_once, run_id),
            clock=partial(self._engine.time_in, run_id),
        )
        if record is not None and record.forked_from is not None:
            run.origins = origins_of(run_id, self._engine.steps(run_id))
            run.forked_at = record.created_at
        if workflow.spec.budget.limits:
            run.linked = replace(
                workflow.linked, spec=replace(workflow.spec, budget=self.budget_of(run_id, workflow.spec))
            )
        if any(
            inner.budget.tokens is not None or inner.budget.cost is not None for inner in _with_inner(workflow.spec)
        ):
            for row in self._engine.steps(run_id):
                if row.kind == "step" and doer(row) == run_id:
                    run.meter.by_place[row.name] = usage_of(self._store, row.key)
        return run

    def _tell_once(self, run_id: str, name: str, payload: object) -> None:
        self._engine.signal(run_id, name, payload, key=name)

    def budget_of(self, run_id: str, spec: WorkflowSpec) -> RunBudget:
        """What the run may use: what its workflow says, or what it was given when it was resumed."""
        stream = budget_stream(run_id)
        last = self._store.last_event(stream)
        if not last:
            return spec.budget
        return raised(spec.budget, self._store.events(stream, after=last - 1)[0].payload)

    def larger_budget(self, run: RunRecord, limits: Mapping[str, object]) -> dict[str, object]:
        """What is written down of a larger budget: every limit set so far, `limits` included."""
        before = self.budget_of(run.id, self.spec_of(run))
        larger = raised(before, limits).limits
        return {name: larger.get(name) for name in LIMITS}

    def build_report(self, run: RunRecord, rows: Sequence[StepRecord], *, talks: bool = False) -> RunReport:
        """The report of a run; with what its agents said, if that is asked for."""
        inputs, source = arguments_of(run)
        store = self._store
        talk_of = partial(talk_in, store) if talks else None
        report = build_report(run, rows, self.spec_of(run), inputs, source, partial(usage_of, store), talk_of)
        if _lacks_a_line(report):
            report = with_written_lines(report, self._lines_of(run.decision))
        if run.state is RunState.WAITING and not self.is_held(run.id):
            return unattended(report, self._untaken(run.id))
        if run.state is RunState.INTERRUPTED and (holder := store.holder(f"run:{run.id}")) is not None:
            begun = (step.started_at for step in report.steps if step.started_at is not None)
            return replace(report, last_seen=max(holder.beat_at, *begun, run.created_at))
        return report

    def _untaken(self, run_id: str) -> dict[str, float]:
        """The signals that nobody has taken, and when each was sent first; none where they cannot be read."""
        try:
            signals = self._store.signals(run_id)
        except DamagedStoreError:
            return {}
        return {signal.name: signal.sent_at for signal in reversed(signals) if signal.taken_by is None}

    def is_held(self, run_id: str) -> bool:
        """Whether somebody living carries a run out, here or elsewhere."""
        return self._engine.is_carried_out(run_id)

    def event_reader(self, run: RunRecord) -> EventReader:
        """What makes events of the history of `run`."""
        store = self._store

        def result_of() -> object:
            now = self._engine.find(run.id)
            return None if now is None else now.result

        return EventReader(run, self.spec_of(run), lambda key: usage_of(store, key), result_of)

    def spec_of(self, run: RunRecord) -> WorkflowSpec:
        """The workflow of a run as it was when the run began."""
        workflow = self._workflows.get(run.decision)
        if workflow is not None:
            return workflow.spec
        if run.decision not in self._specs:
            document = self._document(run)
            try:
                is_saga = KEY in document
                spec = spec_of_record(document[KEY]) if is_saga else spec_of_document(document)
                self._specs[run.decision] = spec
            except InvalidWorkflowError as wrong:
                raise DamagedStoreError(f"the workflow of run {run.id!r}", f"it is not a workflow ({wrong})") from wrong
        return self._specs[run.decision]

    def continues(self, run: RunRecord) -> bool:
        """Whether the workflow of a run, or one in it, goes on without what failed."""
        return any(spec.on_error == "continue" for spec in _with_inner(self.spec_of(run)))

    def _document(self, run: RunRecord) -> Mapping[str, Any]:
        document = self._last_document(run.decision)
        if not document and not self._store.last_event(run.decision):
            raise DamagedStoreError(f"the workflow of run {run.id!r}", f"{run.decision!r} is not in the store")
        match document:
            case {"name": str(), "steps": list()}:
                return document
        raise DamagedStoreError(f"the workflow of run {run.id!r}", "it is not a workflow")

    def bind(self, run_id: str, workflow: RegisteredWorkflow) -> None:
        """Have `run_id` carried out with exactly this workflow.

        Two that were built in Python may be the same document and yet call other functions: closures, say, that were
        made for one request each.
        """
        if len(self._accepted) > _MANY:
            runs = {accepted_id: self._engine.find(accepted_id) for accepted_id in list(self._accepted)}
            self.forget(*(accepted_id for accepted_id, run in runs.items() if run is not None and run.state.is_over))
        self._accepted[run_id] = (workflow, {})

    def forget(self, *run_ids: str) -> None:
        """These runs are over."""
        for run_id in run_ids:
            self._accepted.pop(run_id, None)

    def ready(
        self,
        run: RunRecord,
        rows: Sequence[StepRecord],
        source: Runnable | None = None,
        *,
        accept_changes: bool = False,
        as_recorded: bool = False,
    ) -> None:
        """Make sure that `run`, of which `rows` are kept, can go on here; `ChangedWorkflowError` where it must not."""
        workflow = self.known_for(run, source, as_recorded=as_recorded)
        if workflow.name != run.decision and not accept_changes:
            raise ChangedWorkflowError(
                f"The workflow {workflow.spec.name!r} has changed since the run {run.id!r} began.\n"
                "The run was not changed: its recorded steps may differ from those of the current workflow.\n"
                "Continue with the recorded workflow (`as_recorded=True`, `--as-recorded`), or with the new one if the "
                "steps that are done are the same (`accept_changes=True`, `--accept-changes`)."
            )
        changes = changes_since(rows, workflow.linked)
        if changes.done and not accept_changes:
            raise ChangedWorkflowError(
                f"The code of {', '.join(map(repr, changes.done))} has changed since the run {run.id!r} did that.\n"
                "The run was not changed: continuing would combine results of the old code with steps of the new "
                "code.\n"
                "If the recorded results are still valid, continue with `accept_changes=True` (`--accept-changes`); "
                f"otherwise run it again: `troth runs fork {run.id}`."
            )
        self._accepted[run.id] = (workflow, changes.codes)
        with self._lock:
            if workflow.name == run.decision:  # an engine that polls for it may be given any of its runs
                self._from_record[run.decision] = workflow
            if run.decision not in self._registered:
                self._register(run.decision)

    def check(self, source: Runnable) -> LinkedWorkflow:
        """Read and check what is to be run, and keep nothing of it."""
        return self._read(source).linked

    def known_for(
        self, run: RunRecord, source: Runnable | None = None, *, as_recorded: bool = False
    ) -> RegisteredWorkflow:
        """The workflow to go on with: the one given, the file as it is now, what is known already, or the record."""
        if source is not None:
            return self._read(source)
        file = arguments_of(run)[1] or ""
        if not as_recorded and file and Path(file).exists():
            try:
                return self._read(file)
            except InvalidWorkflowError as invalid:
                raise CannotGoOnHereError(run.id, invalid) from None
        workflow = self._workflows.get(run.decision)
        if workflow is not None:
            return workflow
        folder = Path(file).parent if file else Path.cwd()
        document = self._document(run)
        try:
            if KEY in document:
                saga = load_saga(document[KEY], self._registry, folder)
                return RegisteredWorkflow(LinkedWorkflow(self.spec_of(run), {}), saga, run.decision)
            return RegisteredWorkflow(replace(load_recorded(document, self._registry, folder), source=file))
        except InvalidWorkflowError as invalid:
            raise CannotGoOnHereError(run.id, invalid) from None
