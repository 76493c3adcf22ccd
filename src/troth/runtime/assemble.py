"""Puts the parts together: a store, an engine, and the workflows and sagas that run on them.

    from troth.runtime import Runtime, run_workflow

    run = run_workflow("order.yaml", {"order": "A7"})     # opens a runtime, runs, closes it
    with Runtime() as runtime:                            # or keep one, and share it between threads and loops
        run = runtime.run("order.yaml", {"order": "A7"})

Every verb comes in two colors with one meaning: `run` and `arun`, `resume` and `aresume`. A run is written down before
its first step begins. One that did not complete raises `RunNotCompletedError` with the run attached, unless
`check=False`.
"""

import asyncio
import itertools
import logging
import os
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from troth.bridge import call
from troth.errors import MisuseError, RunError
from troth.runtime.conversations import Conversations
from troth.runtime.engine import EmbeddedEngine
from troth.runtime.engine.errors import UnknownRunError
from troth.runtime.sagas.outcome import SagaFailedError, SagaOutcome, SagaState
from troth.runtime.sagas.saga import Saga
from troth.runtime.store import Bell, RunRecord, RunState, SqliteStore, StoreError
from troth.runtime.store.transaction import run_topic
from troth.runtime.workflows.carry import Carrier
from troth.runtime.workflows.failures import check_inputs
from troth.runtime.workflows.from_saga import outcome_of
from troth.runtime.workflows.going_on import Going, fork_off, reopen
from troth.runtime.workflows.ids import new_id
from troth.runtime.workflows.link import LinkedWorkflow, Registry
from troth.runtime.workflows.picture.summary import explain
from troth.runtime.workflows.problems import did_you_mean, nearest
from troth.runtime.workflows.replay import Replayed, replay
from troth.runtime.workflows.report import RunReport, RunWord, StepWord
from troth.runtime.workflows.run_events import GATHER, LOOK_AGAIN, News, Quiet, RunEvent
from troth.runtime.workflows.shelf import Known, Runnable, Shelf, is_workflow
from troth.runtime.workflows.waits import approval_signal

__all__ = ["DEFAULT_STORE", "RunNotCompletedError", "Runtime", "arun_workflow", "run_workflow"]

log = logging.getLogger("troth.runtime")

_PAGE = 100  # runs that are read at a time

DEFAULT_STORE = Path(".troth/runs.db")
"""Where runs are kept unless somebody says otherwise: in the folder the program runs in."""


class RunNotCompletedError(RunError):
    """A run did not complete. `run` tells what became of each step; the message says why and how to go on."""

    def __init__(self, run: RunReport, store: str | None = None) -> None:
        super().__init__(explain(run, store))
        self.run = run


class Runtime:
    """Runs workflows durably. May be shared between threads and loops, and opened by several processes on one file.

    `functions`, `tools` and `agents` are what workflows call by bare names. Runs whose process was killed go on by
    themselves when a runtime comes to know their workflow again; `recover=False` leaves them alone.
    """

    def __init__(
        self,
        store: str | os.PathLike[str] | SqliteStore = DEFAULT_STORE,
        *,
        functions: Mapping[str, Callable[..., object]] | None = None,
        tools: Mapping[str, Callable[..., object]] | None = None,
        agents: Mapping[str, object] | None = None,
        recover: bool = True,
        threads: int = 32,
    ) -> None:
        if not isinstance(store, SqliteStore):
            _make_folder(Path(store).parent)
        self.engine = EmbeddedEngine(store, recover=False, threads=threads)
        registry = Registry(dict(functions or {}), dict(tools or {}), dict(agents or {}), self._talks)
        self._shelf = Shelf(self.engine, registry)
        self._carrier = Carrier(self.engine)
        self._conversations: Conversations | None = None
        self._lock = threading.Lock()
        self._place = _named(self.engine.store)
        self._recovers = recover
        self._recovered: list[str] = []

    def _talks(self) -> Conversations:
        """The conversations that agents have in this runtime's store; opened when the first one is."""
        with self._lock:
            if self._conversations is None:
                self._conversations = Conversations(self.engine.store)
            return self._conversations

    def load(self, source: Runnable) -> LinkedWorkflow:
        """Read and check a workflow, all of it; raises `InvalidWorkflowError`. Its killed runs go on."""
        return self._take(source)[1].linked

    def _take(self, source: Runnable) -> tuple[str, Known]:
        name, known, is_new = self._shelf.take(source)
        if is_new and self._recovers:
            self._recover(name)
        return name, known

    def _recover(self, name: str) -> None:
        """Go on with runs of this workflow whose process died. Those that somebody let go of are left to `resume`."""
        for run_id, _ in self.engine.store.orphans([name]):
            run = self.engine.find(run_id)
            if run is None or self.engine.store.holder(run_topic(run_id)) is None:
                continue
            try:
                self._shelf.ready(run, self.engine.steps(run_id))
            except MisuseError as changed:
                log.warning("The run %r was not taken up again: %s", run_id, changed)
                continue
            self.engine.start(name, *run.args, run_id=run_id, label=run.label)
            self._recovered.append(run_id)

    # ---- running

    def run(
        self,
        workflow: Runnable,
        inputs: Mapping[str, object] | None = None,
        *,
        run_id: str | None = None,
        check: bool = True,
        wait: bool = True,
    ) -> RunReport:
        """Run a workflow to its end and return the run.

        Works wherever sync code works; inside a running loop it blocks that loop (`arun` does not). With the id of an
        older run of the same workflow and inputs it goes on with that one, or returns what became of it.
        `wait=False` comes back when the run has come to a question for a person, too.
        """
        name, known = self._take(workflow)
        this_id, args = self._begin(known, inputs, run_id)
        self._carrier.drive(name, args, this_id, known.spec.name, wait=wait)
        return self._checked(self.show(this_id), check=check, wait=wait)

    async def arun(
        self,
        workflow: Runnable,
        inputs: Mapping[str, object] | None = None,
        *,
        run_id: str | None = None,
        check: bool = True,
        wait: bool = True,
    ) -> RunReport:
        """`run` in this task; never blocks its loop: sync steps run in threads.

        Cancelling the task interrupts the run, which can be resumed. `cancel` ends and undoes it.
        """
        is_loaded = isinstance(workflow, LinkedWorkflow)  # then there is nothing to read, and no thread is needed
        name, known = self._take(workflow) if is_loaded else await call(self._take, workflow)
        this_id, args = self._begin(known, inputs, run_id)
        await self._carrier.adrive(name, args, this_id, known.spec.name, wait=wait)
        return self._checked(await self.ashow(this_id), check=check, wait=wait)

    def start(
        self, workflow: Runnable, inputs: Mapping[str, object] | None = None, *, run_id: str | None = None
    ) -> str:
        """Begin a run, which goes on beside the caller, and return its id. It is written down before this returns.

        `events` follows it, `attach` waits for it, `close` interrupts it.
        """
        name, known = self._take(workflow)
        this_id, args = self._begin(known, inputs, run_id)
        self.engine.start(name, *args, run_id=this_id, label=known.spec.name)
        return this_id

    async def astart(
        self, workflow: Runnable, inputs: Mapping[str, object] | None = None, *, run_id: str | None = None
    ) -> str:
        """`start`; the run goes on on this loop."""
        name, known = await call(self._take, workflow)
        this_id, args = self._begin(known, inputs, run_id)
        await self.engine.astart(name, *args, run_id=this_id, label=known.spec.name)
        return this_id

    def _begin(
        self, known: Known, inputs: Mapping[str, object] | None, run_id: str | None
    ) -> tuple[str, tuple[object, ...]]:
        given = check_inputs(known.spec.name, known.spec.inputs, {} if inputs is None else inputs)
        this_id = run_id or new_id(known.spec.name)
        self._shelf.bind(this_id, known)
        return this_id, (this_id, given, known.linked.source)

    def _checked(self, run: RunReport, *, check: bool, wait: bool) -> RunReport:
        if run.is_over:
            self._shelf.forget(run.id)
        if check and not run.succeeded and (wait or run.is_over):
            raise RunNotCompletedError(run, self._place)
        return run

    def run_saga(self, saga: Saga, *, run_id: str | None = None, check: bool = True) -> SagaOutcome:
        """Run a saga to one of its three ends. One that did not complete raises `SagaFailedError`."""
        run = self.run(saga, run_id=run_id, check=False)
        return _saga_checked(outcome_of(saga, run), check=check)

    async def arun_saga(self, saga: Saga, *, run_id: str | None = None, check: bool = True) -> SagaOutcome:
        """`run_saga` in this task."""
        run = await self.arun(saga, run_id=run_id, check=False)
        return _saga_checked(outcome_of(saga, run), check=check)

    # ---- looking

    def show(self, run_id: str) -> RunReport:
        """What became of a run so far."""
        return self._shelf.tell(self._find(run_id), self.engine.steps(run_id))

    async def ashow(self, run_id: str) -> RunReport:
        """`show` for a task."""
        return await call(self.show, run_id)

    def runs(self, *, limit: int = 20, state: RunWord | str | None = None) -> list[RunReport]:
        """The newest runs, the newest first; only those in `state`, if it is given, as in `rolled back`."""
        wanted = None if state is None else _word(state)
        reports = (self._shelf.tell(run, self.engine.steps(run.id)) for run in self._newest())
        return list(itertools.islice((one for one in reports if wanted in (None, one.state)), max(0, limit)))

    async def aruns(self, *, limit: int = 20, state: RunWord | str | None = None) -> list[RunReport]:
        """`runs` for a task."""
        return await call(lambda: self.runs(limit=limit, state=state))

    def _newest(self) -> Iterator[RunRecord]:
        """Every run of a workflow, the newest first, a page at a time."""
        before: tuple[float, str] | None = None
        while page := self.engine.list(before=before, limit=_PAGE):
            yield from filter(is_workflow, page)
            before = page[-1].created_at, page[-1].id

    def events(self, run_id: str, *, timeout: float | None = None) -> Iterator[RunEvent]:
        """What happens in a run, from its beginning on, as it happens; ends with the run.

        Each thing is told once and nothing is left out, whoever carries the run out, here or in another process; many
        at once come together, at most twenty times a second. `timeout` ends it after so many quiet seconds: a run that
        waits for a person, or that nobody carries out, is quiet for long.
        """
        self._find(run_id)
        bell, news, quiet = Bell(), News(), Quiet(timeout)
        with self.engine.store.listening(bell, run_topic(run_id)):
            while True:
                seen = bell.count
                run = self.show(run_id)
                new = news.of(run)
                yield from new
                if run.is_over or quiet.is_too_long(bool(new)):
                    return
                if bell.wait(seen, LOOK_AGAIN):
                    time.sleep(GATHER)

    async def aevents(self, run_id: str, *, timeout: float | None = None) -> AsyncIterator[RunEvent]:
        """`events` for a task."""
        await call(self._find, run_id)
        bell, news, quiet = Bell(), News(), Quiet(timeout)
        with self.engine.store.listening(bell, run_topic(run_id)):
            while True:
                seen = bell.count
                run = await self.ashow(run_id)
                new = news.of(run)
                for one in new:
                    yield one
                if run.is_over or quiet.is_too_long(bool(new)):
                    return
                if await bell.await_ring(seen, LOOK_AGAIN):
                    await asyncio.sleep(GATHER)

    def _find(self, run_id: str) -> RunRecord:
        run = self.engine.find(run_id)
        if run is None or not is_workflow(run):
            near = nearest(run_id, [one.id for one in self.engine.list(limit=500)])
            advice = f"Did you mean {near!r}?" if near else "`troth runs list` shows those that there are."
            raise UnknownRunError(f"There is no run {run_id!r} in this store. {advice}")
        return run

    # ---- going on

    def resume(
        self,
        run_id: str,
        workflow: Runnable | None = None,
        *,
        accept_changes: bool = False,
        as_recorded: bool = False,
        budget: Mapping[str, object] | None = None,
        check: bool = True,
        wait: bool = True,
    ) -> RunReport:
        """Go on with a run that failed, was interrupted or cancelled, from where it stopped; nothing done is repeated.

        If the workflow, or the function of a step that is done, has changed since, `ChangedWorkflowError` says what:
        `accept_changes=True` goes on with the new one, `as_recorded=True` with the workflow as it was. One that came
        to a limit of its budget needs a larger one: `budget={"tokens": 5000}`, `{"time": "2h"}`.
        """
        how = Going(workflow, accept_changes=accept_changes, as_recorded=as_recorded, budget=budget or {})
        run = reopen(self.engine, self._shelf, self._find(run_id), how)
        self._carrier.drive(run.decision, run.args, run_id, run.label or "", wait=wait)
        return self._checked(self.show(run_id), check=check, wait=wait)

    async def aresume(
        self,
        run_id: str,
        workflow: Runnable | None = None,
        *,
        accept_changes: bool = False,
        as_recorded: bool = False,
        budget: Mapping[str, object] | None = None,
        check: bool = True,
        wait: bool = True,
    ) -> RunReport:
        """`resume` in this task."""
        how = Going(workflow, accept_changes=accept_changes, as_recorded=as_recorded, budget=budget or {})
        run = await call(lambda: reopen(self.engine, self._shelf, self._find(run_id), how))
        await self._carrier.adrive(run.decision, run.args, run_id, run.label or "", wait=wait)
        return self._checked(await self.ashow(run_id), check=check, wait=wait)

    def attach(self, run_id: str, *, check: bool = True, wait: bool = True) -> RunReport:
        """Wait for a run, whoever carries it out; where nobody does, it is carried out here. One that is over is shown.

        The way to go on after `approve`, which may have woken the run up somewhere else.
        """
        if not self._find(run_id).state.is_over:
            self._ready_here(run_id)
            self._carrier.await_end(run_id, wait=wait)
        return self._checked(self.show(run_id), check=check, wait=wait)

    async def aattach(self, run_id: str, *, check: bool = True, wait: bool = True) -> RunReport:
        """`attach` for a task."""
        if not (await call(self._find, run_id)).state.is_over:
            await call(self._ready_here, run_id)
            await self._carrier.aawait_end(run_id, wait=wait)
        return self._checked(await self.ashow(run_id), check=check, wait=wait)

    def _ready_here(self, run_id: str) -> None:
        """Make sure that the run can be carried out here, if nobody else does."""
        run = self._find(run_id)
        if run.state is RunState.INTERRUPTED or self.engine.store.holder(run_topic(run_id)) is None:
            self._shelf.ready(run, self.engine.steps(run_id))

    def fork(
        self, run_id: str, step: str | None = None, *, check: bool = True, wait: bool = True, fork_id: str | None = None
    ) -> RunReport:
        """Begin a new run with the answers of another one up to, not including, `step`; from the start without one.

        The new run has an id of its own, which its steps' keys, questions and `run.id` carry; `forked_from` and each
        step's `done_by` say where it comes from.
        """
        fork = fork_off(self.engine, self._shelf, self._find(run_id), step, fork_id)
        self._carrier.drive(fork.decision, fork.args, fork.id, fork.label or "", wait=wait)
        return self._checked(self.show(fork.id), check=check, wait=wait)

    async def afork(
        self, run_id: str, step: str | None = None, *, check: bool = True, wait: bool = True, fork_id: str | None = None
    ) -> RunReport:
        """`fork` in this task."""
        fork = await call(lambda: fork_off(self.engine, self._shelf, self._find(run_id), step, fork_id))
        await self._carrier.adrive(fork.decision, fork.args, fork.id, fork.label or "", wait=wait)
        return self._checked(await self.ashow(fork.id), check=check, wait=wait)

    # ---- ending

    def cancel(self, run_id: str, *, wait: bool = True) -> RunReport:
        """End a run and undo what it did. A run that nobody carries out just now is undone here.

        So is one that stopped at a failure, and could have gone on; any other that is over stays as it is.
        """
        self._open_to_undo(run_id)
        self.engine.cancel(run_id)
        if wait and self._can_cancel(run_id):
            self._carrier.await_end(run_id, wait=True)
        return self.show(run_id)

    async def acancel(self, run_id: str, *, wait: bool = True) -> RunReport:
        """`cancel` for a task."""
        await call(self._open_to_undo, run_id)
        await self.engine.acancel(run_id)
        if wait and await call(self._can_cancel, run_id):
            await self._carrier.aawait_end(run_id, wait=True)
        return await self.ashow(run_id)

    def _open_to_undo(self, run_id: str) -> None:
        run = self._find(run_id)
        if run.state is RunState.FAILED and self.show(run_id).can_be_undone:
            reopen(self.engine, self._shelf, run, Going(accept_changes=True, as_recorded=True))

    def _can_cancel(self, run_id: str) -> bool:
        run = self._find(run_id)
        if not run.state.is_over:
            self._shelf.ready(run, self.engine.steps(run_id), accept_changes=True, as_recorded=True)
        return not run.state.is_over

    def approve(
        self,
        run_id: str,
        step: str | None = None,
        *,
        deny: bool = False,
        by: str | None = None,
        note: str | None = None,
    ) -> str:
        """Answer the question a run waits with; `step` says which, where there are several. Returns the step's name.

        Whoever carries the run out goes on with it; if nobody does, `resume` does.
        """
        place = self._question_of(run_id, step)
        answer = {"approved": not deny, "by": by, "note": note}
        self.engine.signal(run_id, approval_signal(place), answer, key=f"{approval_signal(place)}:{uuid.uuid4().hex}")
        return place

    async def aapprove(
        self,
        run_id: str,
        step: str | None = None,
        *,
        deny: bool = False,
        by: str | None = None,
        note: str | None = None,
    ) -> str:
        """`approve` for a task."""
        return await call(lambda: self.approve(run_id, step, deny=deny, by=by, note=note))

    def _question_of(self, run_id: str, step: str | None) -> str:
        run = self.show(run_id)
        asking = [one.place for one in run.steps if one.kind == "approval" and one.state is StepWord.WAITING]
        if step is None and len(asking) == 1:
            return asking[0]
        if step is not None and step in asking:
            return step
        what = f"the step {step!r} does not wait for an answer" if step else f"{len(asking)} steps wait for an answer"
        said = f"Steps that do: {', '.join(asking)}." if asking else f"The run is {run.state}."
        raise MisuseError(f"The run {run_id!r} was not answered: {what}. {said}")

    def replay(self, run_id: str) -> Replayed:
        """Decide the run anew from its record, performing nothing, and see whether workflow and record agree."""
        run = self._find(run_id)
        known = self._shelf.known_for(run)
        return replay(self._shelf.deciding(known, run_id, run.args[1], {}), self.engine.steps(run_id))

    # ---- the end

    def settle(self) -> None:
        """Wait for the runs taken over from killed processes, as long as they work and do not wait themselves."""
        for run_id in self._recovered:
            self._carrier.settle(run_id)

    def close(self) -> None:
        """Interrupt what is being carried out here, and let go of the store. May be called twice."""
        if self._conversations is not None:
            self._conversations.close()
        self.engine.close()

    async def aclose(self) -> None:
        """`close` for a task."""
        if self._conversations is not None:
            await call(self._conversations.close)
        await self.engine.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _word(state: RunWord | str) -> RunWord:
    try:
        return RunWord(state)
    except ValueError:
        advice = did_you_mean(state, list(RunWord), kind="state")
        raise MisuseError(f"There is no state {state!r} that a run can be in. {advice}") from None


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise StoreError(f"The folder {str(folder)!r} of the store cannot be made: {problem.strerror}.") from problem


def _named(store: SqliteStore) -> str | None:
    """The file as the command line has to name it; None where it is the one that is looked into anyway."""
    if store.path == DEFAULT_STORE.absolute():
        return None
    here = Path.cwd()
    return str(store.path.relative_to(here) if store.path.is_relative_to(here) else store.path)


def _saga_checked(outcome: SagaOutcome, *, check: bool) -> SagaOutcome:
    if check and outcome.state is not SagaState.COMPLETED:
        raise SagaFailedError(outcome)
    return outcome


def run_workflow(
    workflow: Runnable,
    inputs: Mapping[str, object] | None = None,
    *,
    run_id: str | None = None,
    check: bool = True,
    store: str | os.PathLike[str] | SqliteStore = DEFAULT_STORE,
    **parts: Any,
) -> RunReport:
    """Open a runtime, run one workflow to its end, close it. `parts` go to `Runtime`: functions, tools, agents."""
    with Runtime(store, **parts) as runtime:
        try:
            return runtime.run(workflow, inputs, run_id=run_id, check=check)
        finally:
            runtime.settle()


async def arun_workflow(
    workflow: Runnable,
    inputs: Mapping[str, object] | None = None,
    *,
    run_id: str | None = None,
    check: bool = True,
    store: str | os.PathLike[str] | SqliteStore = DEFAULT_STORE,
    **parts: Any,
) -> RunReport:
    """`run_workflow` in this task; never blocks its loop."""
    async with await call(lambda: Runtime(store, **parts)) as runtime:
        try:
            return await runtime.arun(workflow, inputs, run_id=run_id, check=check)
        finally:
            await call(runtime.settle)
