"""Open the outbox, the promises and the jobs of a runtime when they are first asked for, and carry promised work on."""

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from inspect import isfunction
from typing import NamedTuple, cast

from troth.errors import MisuseError
from troth.runtime.channels import InProcessChannel
from troth.runtime.channels.binding import MAIN_SESSION, default_started, default_stopped
from troth.runtime.engine import Decision, Engine
from troth.runtime.engine.errors import EngineClosedError
from troth.runtime.jobs import Jobs
from troth.runtime.promises import Outbox, Promises, Retention, RetryPolicy
from troth.runtime.promises.agent_work import AgentWork
from troth.runtime.promises.promises import PreparedWork
from troth.runtime.sagas.saga import Saga
from troth.runtime.store import RunRecord, Store, Transaction
from troth.runtime.workflows.link.builder import Workflow
from troth.runtime.workflows.link.linker import LinkedWorkflow
from troth.runtime.workflows.registry import Runnable, is_workflow

__all__ = ["BackgroundWork"]

log = logging.getLogger("troth.runtime")

_TRY_WORK_AGAIN = 10.0  # seconds after which promised work is looked at again that could not go on here


class _Services(NamedTuple):
    """What is opened together, when promises are first asked for."""

    outbox: Outbox
    promises: Promises
    jobs: Jobs


class BackgroundWork:
    """Promises, their outbox and jobs of one runtime. They take a thread, so they are opened when first asked for.

    `begin_workflow` checks the inputs of a workflow or saga and names its run; `make_ready` makes sure that the run of
    a workflow can be carried out here, and raises what is missing for it. `recovers` says whether work that another
    process left goes on here.
    """

    def __init__(
        self,
        engine: Engine,
        store: Store,
        agent_work: AgentWork,
        *,
        begin_workflow: Callable[[Runnable, Mapping[str, object] | None, str], PreparedWork],
        make_ready: Callable[[RunRecord], None],
        admit_job: Callable[[Transaction, str, str, float], None],
        recovers: Callable[[], bool],
        default_channel: InProcessChannel | None,
        must_bind: bool,
        retention: Retention,
        policy: RetryPolicy | None,
    ) -> None:
        self.default_channel = default_channel
        self._engine = engine
        self._store = store
        self._agent_work = agent_work
        self._begin_workflow = begin_workflow
        self._make_ready = make_ready
        self._admit_job = admit_job
        self._recovers = recovers
        self._must_bind = must_bind
        self._retention = retention
        self._policy = policy
        self._services: _Services | None = None
        self._opened: _Services | None = None
        """The same, once the default channel is open as well: nobody has to wait for that any more."""
        self._opening = threading.Lock()
        self._refused: dict[str, float] = {}
        if default_channel is not None:
            default_started(default_channel)

    def opened(self) -> _Services:
        """The outbox, the promises and the jobs."""
        if self._opened is not None:
            return self._opened
        with self._opening:
            if self._services is None:
                recovers = self._recovers()
                outbox = Outbox(self._store, policy=self._policy, look_after_work=self._resume if recovers else None)
                promises = Promises(
                    self._engine,
                    self._store,
                    outbox,
                    self._prepare,
                    lambda: self.default_channel,
                    self._retention,
                    must_bind=self._must_bind,
                )
                jobs = Jobs(self._store, promises, outbox, admit=self._admit_job, looks_after=recovers)
                self._services = _Services(outbox, promises, jobs)
                if self.default_channel is not None:
                    self.default_channel.begin_turn(MAIN_SESSION)  # for as long as the runtime is open
                    outbox.open_channel(self.default_channel)
                jobs.look_after()
            self._opened = self._services
            return self._services

    def close(self) -> None:
        """Close the outbox and the jobs, if they were opened. What is pending stays in the store."""
        if self.default_channel is not None:
            default_stopped(self.default_channel)
        with self._opening:
            if self._services is not None:
                self._services.jobs.close()
                self._services.outbox.close()

    def _prepare(
        self,
        work: object,
        args: tuple[object, ...],
        inputs: Mapping[str, object] | None,
        prompt: str | None,
        run_id: str,
    ) -> PreparedWork:
        """Check what is promised, and name the run that does it."""
        if prompt is not None:
            _check_unused("an agent with a `prompt`", args=args, inputs=inputs)
            return self._agent_work.prepare(work, prompt, run_id)
        if not isfunction(work) and isinstance(work, str | os.PathLike | Workflow | LinkedWorkflow | Saga):
            _check_unused("a workflow or a saga", args=args)
            return self._begin_workflow(work, inputs, run_id)
        if inputs is not None:
            _check_unused("a decision", inputs=inputs)
        name = self._engine.register(cast("Decision", work))
        return PreparedWork(name, args, run_id, None, name)

    def _resume(self) -> None:
        """Resume promised runs and jobs whose process died or let them go."""
        if self._services is not None:
            self._services.jobs.look_after()
        now = time.monotonic()
        for run_id in self._store.promises.unheld_runs(self._store.clock()):
            if self._refused.get(run_id, 0.0) > now:
                continue
            run = self._engine.find(run_id)
            if run is None or run.state.is_over:
                continue
            try:
                if is_workflow(run):
                    self._make_ready(run)
                self._engine.start(run.decision, *run.args, run_id=run_id, label=run.label)
            except MisuseError as changed:
                if run_id not in self._refused:
                    log.warning("The promised run %r cannot be resumed here: %s", run_id, changed)
                self._refused[run_id] = now + _TRY_WORK_AGAIN
            except EngineClosedError:
                return


def _check_unused(kind: str, *, args: Sequence[object] = (), inputs: Mapping[str, object] | None = None) -> None:
    """Refuse what this kind of work would never look at."""
    unused = "arguments" if args else None if inputs is None else "`inputs`"
    if unused is not None:
        raise MisuseError(
            f"This is {kind}, which does not take {unused}. Nothing was started.\n"
            "A workflow or a saga takes `inputs`, a decision its arguments, and an agent a `prompt`."
        )
