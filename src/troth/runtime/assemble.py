"""Puts the parts together: a store, an engine, and the workflows and sagas that run on them.

    from troth.runtime import Runtime, run_workflow

    run = run_workflow("order.yaml", {"order": "A7"})     # opens a runtime, runs, closes it
    with Runtime() as runtime:                            # or keep one, and share it between threads and loops
        run = runtime.run("order.yaml", {"order": "A7"})

Every verb comes in two colors with one meaning: `run` and `arun`, `resume` and `aresume`. A run is written down before
its first step begins. One that did not complete raises `RunNotCompletedError` with the run attached, unless
`check=False`.
"""

import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Self

from troth.bridge import call
from troth.errors import MisuseError, RunError
from troth.runtime.arguments import check_count, check_names, check_path, check_seconds
from troth.runtime.background import BackgroundWork
from troth.runtime.channels import Channel, Delivery, Inbox, InProcessChannel
from troth.runtime.conversations import Conversations
from troth.runtime.engine import Decision, Engine
from troth.runtime.engine.errors import EngineClosedError
from troth.runtime.engine.invoke.worker_pool import GRACE, MAX_RESULT
from troth.runtime.engine.open import open_engine
from troth.runtime.engine.rewind import CAN_RESUME
from troth.runtime.jobs import Jobs
from troth.runtime.lists import Lists
from troth.runtime.promises import Outbox, Promises, Retention, RetryPolicy
from troth.runtime.promises.agent_work import AgentWork
from troth.runtime.promises.promises import PreparedWork
from troth.runtime.promises.retention import WEEK
from troth.runtime.runs.approvals import answer_question, question_of
from troth.runtime.runs.callbacks import Callback, callbacks_of
from troth.runtime.runs.listeners import RunListeners
from troth.runtime.runs.reader import RunReader
from troth.runtime.runs.run_and_wait import RunWaiter
from troth.runtime.sagas.outcome import SagaFailedError, SagaOutcome, SagaState
from troth.runtime.sagas.saga import Saga
from troth.runtime.sessions.job_gate import admit_job
from troth.runtime.store import (
    DamagedStoreError,
    RunRecord,
    Store,
    Transaction,
    open_store,
)
from troth.runtime.store.list_records import Page
from troth.runtime.store.open import is_address, is_store
from troth.runtime.store.sqlite.folder import FOLDER
from troth.runtime.workflows.execute.failures import check_inputs
from troth.runtime.workflows.execute.replay import Replayed, replay
from troth.runtime.workflows.execute.resume import ResumeOptions, fork_off, reopen
from troth.runtime.workflows.execute.run_ids import new_id
from troth.runtime.workflows.execute.worker import Worker
from troth.runtime.workflows.link.from_saga import outcome_of
from troth.runtime.workflows.link.linker import LinkedWorkflow, Registry
from troth.runtime.workflows.record.report import RunReport, RunWord
from troth.runtime.workflows.record.run_events import RunEvent, RunEventPages
from troth.runtime.workflows.registry import RegisteredWorkflow, Runnable, WorkflowRegistry
from troth.runtime.workflows.render.summary import explain

if TYPE_CHECKING:
    from troth.runtime.sessions.hypervisor import Hypervisor

__all__ = ["DEFAULT_STORE", "RunNotCompletedError", "Runtime", "arun_workflow", "run_workflow", "store_options"]

log = logging.getLogger("troth.runtime")


DEFAULT_STORE = Path(FOLDER) / "runs.db"
"""Where runs are kept unless somebody says otherwise: in the folder the program runs in."""


class RunNotCompletedError(RunError):
    """A run did not complete. `run` tells what became of each step; the message says why and how to go on."""

    def __init__(self, run: RunReport, options: str = "") -> None:
        super().__init__(explain(run, options))
        self.run = run


class Runtime:
    """Runs workflows durably. May be shared between threads and loops, and opened by several processes on one file.

    `functions`, `tools` and `agents` are what workflows call by bare names. Runs whose process was killed go on by
    themselves when a runtime comes to know their workflow again; `recover=False` leaves them alone (the attribute of
    that name can be set until the first workflow is loaded).

    At most `threads` sync steps run at once beside a loop. An async step whose `timeout` is up is cancelled, and then
    has `grace` seconds (1 unless told otherwise) to finish its `finally` blocks; the run goes on after that in any
    case, and a task that is not over is left behind and named in the log.

    What a step returns may have `max_result` characters of JSON: 32 million by default, any number with None.
    More than that fails the step. A large result is turned into JSON in a thread, beside the loop.

    `read_only=True` looks at a store that is there, also where its file or folder cannot be written; what would write
    is refused with `ReadOnlyStoreError`.

    Results that are promised for later arrive in `inbox`, unless `in_process=False`; `retention` says for how long they
    are kept from the end of the work on, `delivery` when a delivery is tried again. With `must_bind=True` a promise
    that is made outside of every turn, in a thread that lost its context for one, is refused.

    `engine="temporal://host:7233/namespace?queue=troth"` has workflows, sagas and promised work carried out by the
    workers of a Temporal server, each with a runtime that has loaded what it is to carry out; the store is then one
    that all of them reach. Conversations, sessions and jobs stay with the process that they were begun in.

    `on_event` is called with each `RunEvent` of every run that this runtime begins, resumes, forks or takes up: one
    function or several, sync or async. It is called on one thread of the runtime's own, called `troth-events`, one
    event after the other; an async one runs to its end there, on a loop of that thread. The event tells the run
    (`run_id`) and its number there (`seq`). One that raises is told in the log and as an event `callback failed`, and
    harms nobody.
    """

    def __init__(
        self,
        store: str | os.PathLike[str] | Store = DEFAULT_STORE,
        *,
        engine: str | None = None,
        functions: Mapping[str, Callable[..., object]] | None = None,
        tools: Mapping[str, Callable[..., object]] | None = None,
        agents: Mapping[str, object] | None = None,
        recover: bool = True,
        threads: int = 32,
        grace: float = GRACE,
        max_result: int | None = MAX_RESULT,
        in_process: bool = True,
        must_bind: bool = False,
        read_only: bool = False,
        retention: Retention | float | None = WEEK,
        delivery: RetryPolicy | None = None,
        on_event: Callback | Sequence[Callback] | None = None,
    ) -> None:
        callbacks = callbacks_of(on_event)
        for name, parts in (("functions", functions), ("tools", tools), ("agents", agents)):
            check_names(name, parts)
        check_count("threads", threads)
        check_seconds("grace", grace, may_be_none=False)
        if max_result is not None:
            check_count("max_result", max_result)
        if not is_store(store):
            check_path("store", store)
        self._owns_store = isinstance(store, str | os.PathLike)
        opened: Store = (
            open_store(store, read_only=read_only, makes_folder=True) if isinstance(store, str | os.PathLike) else store
        )
        self.store = opened
        self.lists = Lists(opened)
        try:
            self.engine: Engine = open_engine(engine, opened, threads=threads, grace=grace, max_result=max_result)
        except MisuseError:
            if self._owns_store:
                opened.close()
            raise
        self._is_remote = engine is not None
        self._agents = dict(agents or {})
        registry = Registry(dict(functions or {}), dict(tools or {}), self._agents, lambda: self.conversations)
        self._registry = registry
        self._hypervisor: Hypervisor | None = None
        self._workflows = WorkflowRegistry(self.engine, self.store, registry)
        self._run_waiter = RunWaiter(self.engine, self.store)
        self._conversations: Conversations | None = None
        self._is_closed = False
        self._lock = threading.Lock()
        self._agent_work = AgentWork(self.engine, self._agents, lambda: self.conversations)
        self._background = BackgroundWork(
            self.engine,
            opened,
            self._agent_work,
            begin_workflow=self._begin_promised,
            make_ready=self._go_on_with_promised,
            admit_job=self._admit_job,
            recovers=lambda: self.recover,
            default_channel=InProcessChannel() if in_process else None,
            must_bind=must_bind,
            retention=Retention.of(retention),
            policy=delivery,
        )
        self._options = store_options(self.store)
        self.recover = recover
        self._recovered: list[str] = []
        self._reader = RunReader(self.engine, opened, self._workflows)
        self._listeners = RunListeners(self.engine, self._workflows, callbacks)

    def listen(self, on_event: Callback) -> Callable[[], None]:
        """Call `on_event` as the `on_event` of the constructor is called, for what begins from now on.

        The answer, called, ends that for what begins after it.
        """
        return self._listeners.add(on_event)

    @property
    def agents(self) -> Mapping[str, object]:
        """The agents that workflows call by bare names."""
        return self._agents

    @property
    def conversations(self) -> Conversations:
        """The conversations that agents have in this runtime's store; opened when the first one is."""
        with self._lock:
            if self._conversations is None:
                if self._is_closed:
                    raise EngineClosedError("The runtime was closed, so the agent was not called.")
                self._conversations = Conversations(self.store)
            return self._conversations

    @property
    def hypervisor(self) -> "Hypervisor":
        """Governed sessions on this runtime's store; opened when it is first asked for."""
        with self._lock:
            if self._hypervisor is None:
                from troth.runtime.sessions.hypervisor import Hypervisor

                self._hypervisor = Hypervisor(self.store, registry=self._registry)
            return self._hypervisor

    @hypervisor.setter
    def hypervisor(self, hypervisor: "Hypervisor") -> None:
        """Govern with this one, which has hooks of yours: `Hypervisor(runtime.store, verifier=…, trust=…)`."""
        with self._lock:
            if self._hypervisor is not None:
                raise MisuseError(
                    "This runtime already has a hypervisor. Nothing was changed; set it before it is used."
                )
            if hypervisor.store is not self.store:
                raise MisuseError("The hypervisor is on another store. Nothing was changed; give it `runtime.store`.")
            self._hypervisor = hypervisor

    # ---- promises and channels

    @property
    def promises(self) -> Promises:
        """Work that reports back later."""
        return self._background.opened().promises

    @property
    def jobs(self) -> Jobs:
        """Commands in the background that report back."""
        return self._background.opened().jobs

    @property
    def outbox(self) -> Outbox:
        """All deliveries, and what became of them."""
        return self._background.opened().outbox

    @property
    def inbox(self) -> Inbox:
        """What has arrived for this program itself. Taking something out acknowledges it."""
        channel = self._background.default_channel
        if channel is None:
            raise MisuseError("This runtime has no inbox: it was opened with `in_process=False`.")
        self._background.opened()
        return channel.inbox

    def open_channel(
        self,
        channel: Channel,
        *,
        max_age: float | None = None,
        confirm: Callable[[Delivery], Any] | None = None,
        second_route: str | None = None,
        policy: RetryPolicy | None = None,
    ) -> None:
        """Deliver through `channel` from now on, beginning with what waited for it.

        Before something older than `max_age` seconds is sent, `confirm(delivery)` is asked, sync or async; without it,
        or if it says no, the delivery stays stored. A delivery that is given up is told through `second_route`.
        `policy` says when this channel's deliveries are tried again, where that differs from the runtime's `delivery`.
        """
        self.outbox.open_channel(channel, max_age=max_age, confirm=confirm, second_route=second_route, policy=policy)

    def close_channel(self, channel: Channel | str) -> None:
        """Deliver through `channel` no more. What it held in memory is pending again, and kept for the next channel."""
        self.outbox.close_channel(channel)

    def register(self, decision: Decision, name: str | None = None) -> str:
        """Make a decision known, so that promised runs of it go on after a restart."""
        return self.engine.register(decision, name)

    def _begin_promised(self, workflow: Runnable, inputs: Mapping[str, object] | None, run_id: str) -> PreparedWork:
        name, known = self._take(workflow)
        _, args = self._begin(known, inputs, run_id)
        self._listeners.follow_to_end(run_id)
        return PreparedWork(name, args, run_id, known.spec.name, known.spec.name)

    def _go_on_with_promised(self, run: RunRecord) -> None:
        self._workflows.ready(run, self.engine.steps(run.id))
        self._listeners.follow_to_end(run.id)

    def _admit_job(self, tx: Transaction, job_id: str, title: str, now: float) -> None:
        trail = None if self._hypervisor is None else self._hypervisor.governance.trail
        admit_job(tx, job_id, title, now, trail)

    def load(self, source: Runnable) -> LinkedWorkflow:
        """Read and check a workflow, all of it; raises `InvalidWorkflowError`. Its killed runs go on."""
        return self._take(source)[1].linked

    def check(self, source: Runnable) -> LinkedWorkflow:
        """Read and check a workflow as `load` does, but write nothing and go on with nothing."""
        return self._workflows.check(source)

    def _take(self, source: Runnable) -> tuple[str, RegisteredWorkflow]:
        name, known, is_new = self._workflows.take(source)
        if is_new and self.recover:
            if self._is_remote:
                self.engine.open()  # from now on, this worker is asked for its runs
            self._recover(name)
        return name, known

    def _recover(self, name: str) -> None:
        """Go on with runs of this workflow whose process died. Those that somebody let go of are left to `resume`."""
        for run_id in self.engine.orphans([name]):
            try:
                run = self.engine.find(run_id)
                if run is None or not self.engine.is_held(run_id):
                    continue
                self._workflows.ready(run, self.engine.steps(run_id))
            except (MisuseError, DamagedStoreError) as changed:
                log.warning("The run %r was not resumed: %s", run_id, changed)
                continue
            self._listeners.follow_to_end(run_id)
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
        on_event: Callback | Sequence[Callback] | None = None,
    ) -> RunReport:
        """Run a workflow to its end and return the run.

        Works wherever sync code works; inside a running loop it blocks that loop (`arun` does not). With the id of an
        older run of the same workflow and inputs it goes on with that one, tries the undos again that failed, or
        returns what became of it.
        `wait=False` comes back when the run has come to a question for a person, too.

        `on_event` is called with each `RunEvent` of this run, on the thread `troth-events` and not on the caller's,
        which carries the run out; see `Runtime`. All of them are told before this returns, unless a call takes longer
        than five seconds.
        """
        callbacks = callbacks_of(on_event)
        name, known = self._take(workflow)
        this_id, args = self._begin(known, inputs, run_id)
        if run_id is not None:
            self._undo_again(name, args, known)
        with self._listeners.following(this_id, callbacks):
            self._run_waiter.drive(name, args, this_id, known.spec.name, wait=wait)
        return self._checked(self.show(this_id), check=check, wait=wait)

    async def arun(
        self,
        workflow: Runnable,
        inputs: Mapping[str, object] | None = None,
        *,
        run_id: str | None = None,
        check: bool = True,
        wait: bool = True,
        on_event: Callback | Sequence[Callback] | None = None,
    ) -> RunReport:
        """`run` in this task; never blocks its loop: sync steps run in threads.

        Cancelling the task interrupts the run, which can be resumed. `cancel` ends and undoes it. An async `on_event`
        is awaited on this loop, a sync one is called in a worker thread; one event after the other.
        """
        callbacks = callbacks_of(on_event)
        is_loaded = isinstance(workflow, LinkedWorkflow)  # then there is nothing to read, and no thread is needed
        name, known = self._take(workflow) if is_loaded else await call(self._take, workflow)
        this_id, args = self._begin(known, inputs, run_id)
        if run_id is not None:
            await call(self._undo_again, name, args, known)
        async with self._listeners.afollowing(this_id, callbacks):
            await self._run_waiter.adrive(name, args, this_id, known.spec.name, wait=wait)
        return self._checked(await self.ashow(this_id), check=check, wait=wait)

    def start(
        self, workflow: Runnable, inputs: Mapping[str, object] | None = None, *, run_id: str | None = None
    ) -> str:
        """Begin a run, which goes on beside the caller, and return its id. It is written down before this returns.

        `events` follows it, `attach` waits for it, `close` interrupts it.
        """
        name, known = self._take(workflow)
        this_id, args = self._begin(known, inputs, run_id)
        self._listeners.follow_to_end(this_id)
        self.engine.start(name, *args, run_id=this_id, label=known.spec.name)
        return this_id

    async def astart(
        self, workflow: Runnable, inputs: Mapping[str, object] | None = None, *, run_id: str | None = None
    ) -> str:
        """`start`; the run goes on on this loop."""
        name, known = await call(self._take, workflow)
        this_id, args = self._begin(known, inputs, run_id)
        await call(self._listeners.follow_to_end, this_id)
        await self.engine.astart(name, *args, run_id=this_id, label=known.spec.name)
        return this_id

    def _begin(
        self, known: RegisteredWorkflow, inputs: Mapping[str, object] | None, run_id: str | None
    ) -> tuple[str, tuple[object, ...]]:
        given = check_inputs(known.spec.name, known.spec.inputs, {} if inputs is None else inputs)
        this_id = run_id or new_id(known.spec.name)
        self._workflows.bind(this_id, known)
        return this_id, (this_id, given, known.linked.source)

    def _undo_again(self, name: str, args: tuple[object, ...], known: RegisteredWorkflow) -> None:
        """Take up the undoing of an older run of that id where it failed; any other run is left to the engine."""
        run = self.engine.find(str(args[0]))
        if run is None or run.state not in CAN_RESUME or (run.decision, run.args) != (name, args):
            return
        if self.show(run.id).state is RunWord.ROLLBACK_INCOMPLETE:
            reopen(self.engine, self._workflows, run, ResumeOptions(known.saga or known.linked, accept_changes=True))

    def _checked(self, run: RunReport, *, check: bool, wait: bool) -> RunReport:
        if run.is_over:
            self._workflows.forget(run.id)
        if check and not run.succeeded and (wait or run.is_over):
            raise RunNotCompletedError(run, self._options)
        return run

    def run_saga(self, saga: Saga, *, run_id: str | None = None, check: bool = True) -> SagaOutcome:
        """Run a saga to one of its ends. One that did not complete raises `SagaFailedError`.

        With the id of an older run of the saga it goes on with that one, tries the undos again that failed, or returns
        what became of it.
        """
        run = self.run(saga, run_id=run_id, check=False)
        return _saga_checked(outcome_of(saga, run), check=check)

    async def arun_saga(self, saga: Saga, *, run_id: str | None = None, check: bool = True) -> SagaOutcome:
        """`run_saga` in this task."""
        run = await self.arun(saga, run_id=run_id, check=False)
        return _saga_checked(outcome_of(saga, run), check=check)

    def resume_saga(self, run_id: str, saga: Saga, *, accept_changes: bool = False, check: bool = True) -> SagaOutcome:
        """`resume` for a saga: go on from where it stopped, or try the undos again that failed."""
        run = self.resume(run_id, saga, accept_changes=accept_changes, check=False)
        return _saga_checked(outcome_of(saga, run), check=check)

    async def aresume_saga(
        self, run_id: str, saga: Saga, *, accept_changes: bool = False, check: bool = True
    ) -> SagaOutcome:
        """`resume_saga` in this task."""
        run = await self.aresume(run_id, saga, accept_changes=accept_changes, check=False)
        return _saga_checked(outcome_of(saga, run), check=check)

    def cancel_saga(self, run_id: str, saga: Saga) -> SagaOutcome:
        """`cancel` for a saga: cancel it and undo what it did, or try the undos again that failed."""
        return outcome_of(saga, self.cancel(run_id, saga))

    async def acancel_saga(self, run_id: str, saga: Saga) -> SagaOutcome:
        """`cancel_saga` for a task."""
        return outcome_of(saga, await self.acancel(run_id, saga))

    # ---- looking

    def show(self, run_id: str, *, talks: bool = False) -> RunReport:
        """What became of a run so far; `talks=True` with what its agents were told, said and had done."""
        return self._reader.report(run_id, talks=talks)

    async def ashow(self, run_id: str, *, talks: bool = False) -> RunReport:
        """`show` for a task."""
        return await call(lambda: self.show(run_id, talks=talks))

    def runs(self, *, limit: int = 20, state: RunWord | str | None = None) -> list[RunReport]:
        """The newest runs, the newest first; only those in `state`, if it is given, as in `rolled back`.

        It costs as much as it returns, however many runs there are; only `damaged` ones are looked for among all. One
        of which something cannot be read any more is `damaged`, and its `error` says what; the others are told.
        """
        return self._reader.newest(limit, state)

    def run_page(
        self,
        *,
        state: RunWord | str | None = None,
        workflow: str | None = None,
        session: str | None = None,
        since: float | None = None,
        until: float | None = None,
        text: str | None = None,
        cursor: str | None = None,
        limit: int = 20,
    ) -> Page[RunReport]:
        """A page of `lists.runs`, each with the report of its steps: costs as much as its runs have steps."""
        page = self.lists.runs(
            state=state,
            workflow=workflow,
            session=session,
            since=since,
            until=until,
            text=text,
            cursor=cursor,
            limit=limit,
        )
        return Page([self._reader.report_of_item(item) for item in page], page.next)

    async def aruns(self, *, limit: int = 20, state: RunWord | str | None = None) -> list[RunReport]:
        """`runs` for a task."""
        return await call(lambda: self.runs(limit=limit, state=state))

    def events(self, run_id: str, *, after: int = 0, timeout: float | None = None) -> Iterator[RunEvent]:
        """What happens in a run, as it happens; ends with the run.

        Each event has its number, `seq`, which is the same for every reader and never changes. `after` is the number of
        the last one that is known already: only what came later is read, and told. Nothing is left out, whoever carries
        the run out, here or in another process; many at once come together, at most twenty times a second. `timeout`
        ends it after so many quiet seconds: a run that waits for a person, or that nobody carries out, is quiet for
        long. `timeout=0` reads what there is, and ends.
        """
        return self._reader.events(run_id, after=after, timeout=timeout)

    def aevents(self, run_id: str, *, after: int = 0, timeout: float | None = None) -> AsyncIterator[RunEvent]:
        """`events` for a task."""
        return self._reader.aevents(run_id, after=after, timeout=timeout)

    def event_pages(self, run_id: str) -> RunEventPages:
        """The events of a run for whoever keeps the cursor and does the waiting, as a server does for many readers."""
        return self._reader.event_pages(run_id)

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
        how = ResumeOptions(workflow, accept_changes=accept_changes, as_recorded=as_recorded, budget=budget or {})
        with self._listeners.following(run_id):
            run = reopen(self.engine, self._workflows, self._reader.find(run_id), how)
            self._run_waiter.drive(run.decision, run.args, run_id, run.label or "", wait=wait)
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
        how = ResumeOptions(workflow, accept_changes=accept_changes, as_recorded=as_recorded, budget=budget or {})
        async with self._listeners.afollowing(run_id):
            run = await call(lambda: reopen(self.engine, self._workflows, self._reader.find(run_id), how))
            await self._run_waiter.adrive(run.decision, run.args, run_id, run.label or "", wait=wait)
        return self._checked(await self.ashow(run_id), check=check, wait=wait)

    def start_resume(
        self,
        run_id: str,
        *,
        accept_changes: bool = False,
        as_recorded: bool = False,
        budget: Mapping[str, object] | None = None,
    ) -> None:
        """`resume` without waiting: the run goes on beside the caller, as after `start`."""
        how = ResumeOptions(None, accept_changes=accept_changes, as_recorded=as_recorded, budget=budget or {})
        run = reopen(self.engine, self._workflows, self._reader.find(run_id), how)
        self._listeners.follow_to_end(run_id)
        self.engine.start(run.decision, *run.args, run_id=run_id, label=run.label)

    async def astart_resume(
        self,
        run_id: str,
        *,
        accept_changes: bool = False,
        as_recorded: bool = False,
        budget: Mapping[str, object] | None = None,
    ) -> None:
        """`start_resume` for a task."""
        await call(
            lambda: self.start_resume(run_id, accept_changes=accept_changes, as_recorded=as_recorded, budget=budget)
        )

    def attach(self, run_id: str, *, check: bool = True, wait: bool = True) -> RunReport:
        """Wait for a run, whoever carries it out; where nobody does, it is carried out here. One that is over is shown.

        The way to go on after `approve`, which may have woken the run up somewhere else.
        """
        if not self._reader.find(run_id).state.is_over:
            self.prepare(run_id)
            self._run_waiter.await_end(run_id, wait=wait)
        return self._checked(self.show(run_id), check=check, wait=wait)

    async def aattach(self, run_id: str, *, check: bool = True, wait: bool = True) -> RunReport:
        """`attach` for a task."""
        if not (await call(self._reader.find, run_id)).state.is_over:
            await call(self.prepare, run_id)
            await self._run_waiter.aawait_end(run_id, wait=wait)
        return self._checked(await self.ashow(run_id), check=check, wait=wait)

    def prepare(self, run_id: str) -> None:
        """Make sure that a run which nobody carries out can be carried out here; raises what is missing for it."""
        run = self._reader.find(run_id)
        if not run.state.is_over and not self._workflows.is_held(run_id):
            self._workflows.ready(run, self.engine.steps(run_id))

    def worker(self, wanted: Callable[[str], bool] | None = None) -> Worker:
        """What carries on the runs of this store that nobody else does, in the background; `troth worker` in Python.

        Call its `look()` again and again: it takes up what is there, and tells what has become of it. `wanted(run_id)`
        leaves alone the runs for which it answers no.
        """
        if self._is_remote:
            self.engine.open()
        return Worker(
            *(self.engine, self.store, self._workflows, wanted),
            *(self._listeners.follow_to_end, self._agent_work.can_take),
            is_remote=self._is_remote,
        )

    def fork(
        self, run_id: str, step: str | None = None, *, check: bool = True, wait: bool = True, fork_id: str | None = None
    ) -> RunReport:
        """Begin a new run with the answers of another one up to, not including, `step`; from the start without one.

        The new run has an id of its own, which its steps' keys, questions and `run.id` carry; `forked_from` and each
        step's `done_by` say where it comes from.
        """
        fork = fork_off(self.engine, self._workflows, self._reader.find(run_id), step, fork_id)
        with self._listeners.following(fork.id):
            self._run_waiter.drive(fork.decision, fork.args, fork.id, fork.label or "", wait=wait)
        return self._checked(self.show(fork.id), check=check, wait=wait)

    async def afork(
        self, run_id: str, step: str | None = None, *, check: bool = True, wait: bool = True, fork_id: str | None = None
    ) -> RunReport:
        """`fork` in this task."""
        fork = await call(lambda: fork_off(self.engine, self._workflows, self._reader.find(run_id), step, fork_id))
        async with self._listeners.afollowing(fork.id):
            await self._run_waiter.adrive(fork.decision, fork.args, fork.id, fork.label or "", wait=wait)
        return self._checked(await self.ashow(fork.id), check=check, wait=wait)

    def start_fork(self, run_id: str, step: str | None = None, *, fork_id: str | None = None) -> str:
        """`fork` without waiting: the new run goes on beside the caller, as after `start`. Returns its id."""
        fork = fork_off(self.engine, self._workflows, self._reader.find(run_id), step, fork_id)
        self._listeners.follow_to_end(fork.id)
        self.engine.start(fork.decision, *fork.args, run_id=fork.id, label=fork.label)
        return fork.id

    async def astart_fork(self, run_id: str, step: str | None = None, *, fork_id: str | None = None) -> str:
        """`start_fork` for a task."""
        return await call(lambda: self.start_fork(run_id, step, fork_id=fork_id))

    # ---- ending

    def cancel(self, run_id: str, workflow: Runnable | None = None, *, wait: bool = True) -> RunReport:
        """End a run and undo what it did. A run that nobody carries out just now is undone here.

        So is one that stopped at a failure, and could have gone on. Of one whose undoing failed, the undos are tried
        again that failed. Any other that is over stays as it is.
        """
        if self._prepare_cancel(run_id, workflow, wait=wait):
            self.engine.cancel(run_id)
        if wait and not self._reader.find(run_id).state.is_over:
            self._run_waiter.await_end(run_id, wait=True)
        return self.show(run_id)

    async def acancel(self, run_id: str, workflow: Runnable | None = None, *, wait: bool = True) -> RunReport:
        """`cancel` for a task."""
        if await call(lambda: self._prepare_cancel(run_id, workflow, wait=wait)):
            await self.engine.acancel(run_id)
        if wait and not (await call(self._reader.find, run_id)).state.is_over:
            await self._run_waiter.aawait_end(run_id, wait=True)
        return await self.ashow(run_id)

    def _prepare_cancel(self, run_id: str, workflow: Runnable | None, *, wait: bool) -> bool:
        """Make sure that what the run did can be undone here, before it is asked for; whether it has to be asked for.

        Whoever does not wait asks only: whoever carries the run out undoes it.
        """
        run = self._reader.find(run_id)
        if run.state in CAN_RESUME:
            report = self.show(run_id)
            is_incomplete = report.state is RunWord.ROLLBACK_INCOMPLETE
            if is_incomplete or report.can_be_undone:
                how = ResumeOptions(workflow, accept_changes=True, as_recorded=True)
                reopen(self.engine, self._workflows, run, how)
            return report.can_be_undone
        if not run.state.is_over and wait:
            try:
                self._workflows.ready(run, self.engine.steps(run_id), workflow, accept_changes=True, as_recorded=True)
            except MisuseError:
                if not self._workflows.is_held(run_id):  # otherwise whoever holds it undoes it
                    raise
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

        Whoever carries the run out goes on with it; if nobody does, `resume` does. An answer that comes after the
        question's timeout is refused, whether or not anybody has noticed the timeout yet; so is a second answer.
        """
        place = question_of(self.show(run_id), step, self.store.clock)
        answer = {"approved": not deny, "by": by, "note": note}
        answer_question(self.engine, run_id, place, answer, clock=self.store.clock, options=self._options)
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

    def replay(self, run_id: str) -> Replayed:
        """Decide the run anew from its record, performing nothing, and see whether workflow and record agree."""
        run = self._reader.find(run_id)
        known = self._workflows.known_for(run)
        return replay(self._workflows.deciding(known, run_id, run.args[1], {}), self.engine.steps(run_id))

    # ---- the end

    def settle(self) -> None:
        """Wait for the runs taken over from killed processes, as long as they work and do not wait themselves."""
        for run_id in self._recovered:
            self._run_waiter.settle(run_id)

    def close(self) -> None:
        """Interrupt what is being carried out here, and let go of the store. May be called twice.

        The engine comes first: an agent that was stopped here, and not by its workflow, has not failed.
        """
        try:
            self._background.close()
            if self._hypervisor is not None:
                self._hypervisor.close()
            self.engine.close()
            self._listeners.close()
        finally:
            self._let_go()

    async def aclose(self) -> None:
        """`close` for a task."""
        try:
            await call(self._background.close)
            if self._hypervisor is not None:
                await call(self._hypervisor.close)
            await self.engine.aclose()
            await call(self._listeners.close)
        finally:
            await call(self._let_go)

    def _let_go(self) -> None:
        with self._lock:
            self._is_closed = True
            conversations = self._conversations
        if conversations is not None:
            conversations.close()
        if self._owns_store:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def store_options(store: Store) -> str:
    """The store as the command line has to name it; nothing where it is the one that is looked into anyway."""
    if is_address(store.address):
        return f" --store {quote(store.name)}"
    if store.path == DEFAULT_STORE.absolute():
        return ""
    here = Path.cwd()
    return f" --store {quote(str(store.path.relative_to(here) if store.path.is_relative_to(here) else store.path))}"


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
    store: str | os.PathLike[str] | Store = DEFAULT_STORE,
    on_event: Callback | Sequence[Callback] | None = None,
    **parts: Any,
) -> RunReport:
    """Open a runtime, run one workflow to its end, close it. `parts` go to `Runtime`: functions, tools, agents.

    Like `troth run`, it leaves alone other runs of the workflow whose processes were killed. With `recover=True` it
    goes on with those, too, and waits for them. `on_event` is told what happens in the run, on the thread
    `troth-events`; see `Runtime.run`.
    """
    with Runtime(store, **{"recover": False, **parts}) as runtime:
        try:
            return runtime.run(workflow, inputs, run_id=run_id, check=check, on_event=on_event)
        finally:
            runtime.settle()


async def arun_workflow(
    workflow: Runnable,
    inputs: Mapping[str, object] | None = None,
    *,
    run_id: str | None = None,
    check: bool = True,
    store: str | os.PathLike[str] | Store = DEFAULT_STORE,
    on_event: Callback | Sequence[Callback] | None = None,
    **parts: Any,
) -> RunReport:
    """`run_workflow` in this task; never blocks its loop, on which an async `on_event` is awaited."""
    async with await call(lambda: Runtime(store, **{"recover": False, **parts})) as runtime:
        try:
            return await runtime.arun(workflow, inputs, run_id=run_id, check=check, on_event=on_event)
        finally:
            await call(runtime.settle)
