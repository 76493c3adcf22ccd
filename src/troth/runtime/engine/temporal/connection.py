"""Talk to a Temporal server: start runs there, tell them something, and poll for what this worker knows."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import PollerBehaviorSimpleMaximum, UnsandboxedWorkflowRunner, Worker

from troth.errors import RunError
from troth.runtime.engine.temporal.address import TemporalAddress
from troth.runtime.engine.temporal.worker import Host
from troth.runtime.engine.temporal.workflow import HOST, WORKFLOW, RunInput, TrothRun

__all__ = ["Connection", "ServerUnreachableError"]

log = logging.getLogger("troth.engine")

T = TypeVar("T")
_THREADS = 4  # that run decisions: they never wait, and Python runs one of them at a time
_AGAIN = 1.0  # seconds after which a worker is started again that could not go on


class ServerUnreachableError(RunError):
    """The Temporal server does not answer. What was to be written down is written down."""


class Connection:
    """One client of a server, and its workers. To be used on one loop."""

    def __init__(self, address: TemporalAddress, host: Host) -> None:
        self.address = address
        self._host = host
        self._client: Client | None = None
        self._connecting = asyncio.Lock()
        self._threads = ThreadPoolExecutor(_THREADS, "troth-decisions", initializer=self._enter_thread)
        self._workers: dict[str, tuple[Worker, asyncio.Task[None]]] = {}
        self._is_closed = False

    def _enter_thread(self) -> None:
        HOST.host = self._host

    async def client(self) -> Client:
        """The client, connected."""
        async with self._connecting:
            if self._client is None:
                address = self.address
                try:
                    self._client = await Client.connect(
                        address.host,
                        namespace=address.namespace,
                        tls=address.is_tls or bool(address.api_key),
                        api_key=address.api_key,
                    )
                except RuntimeError as error:
                    raise self._unreachable(error) from error
            return self._client

    def _unreachable(self, error: BaseException) -> ServerUnreachableError:
        return ServerUnreachableError(
            f"The Temporal server at {self.address.host} (namespace {self.address.namespace!r}) cannot be reached: "
            f"{error}.\nStart it, or name the right one: `Runtime(engine='temporal://host:7233/namespace')`. "
            "`temporal server start-dev` starts one for development."
        )

    # ---- workers

    async def serve(self, decisions: list[str]) -> None:
        """Poll for the runs of these decisions, from now on."""
        client = await self.client()
        for name in decisions:
            if name not in self._workers and not self._is_closed:
                worker = self._worker(client, name)
                self._workers[name] = worker, asyncio.create_task(self._keep_running(client, name, worker))

    def _worker(self, client: Client, decision: str) -> Worker:
        address = self.address
        return Worker(
            client,
            task_queue=address.queue_of(decision),
            workflows=[TrothRun],
            activities=self._host.activities,
            workflow_runner=UnsandboxedWorkflowRunner(),
            workflow_task_executor=self._threads,
            max_concurrent_workflow_tasks=100,
            max_concurrent_activities=500,
            workflow_task_poller_behavior=PollerBehaviorSimpleMaximum(maximum=2),
            activity_task_poller_behavior=PollerBehaviorSimpleMaximum(maximum=2),
            sticky_queue_schedule_to_start_timeout=timedelta(seconds=address.sticky),
            max_heartbeat_throttle_interval=timedelta(seconds=address.heartbeat / 3),
            default_heartbeat_throttle_interval=timedelta(seconds=address.heartbeat / 3),
        )

    async def _keep_running(self, client: Client, decision: str, worker: Worker) -> None:
        """Run a worker; one that cannot continue is replaced."""
        while True:
            try:
                await worker.run()
            except Exception as error:  # noqa: BLE001  whatever it is, a worker that polls no more is no worker
                if self._is_closed:
                    return
                log.warning("The worker for %r failed, and is started again: %s", decision, error)
                await asyncio.sleep(_AGAIN)
                worker = self._worker(client, decision)
                task = self._workers[decision][1]
                self._workers[decision] = worker, task
            else:
                return

    async def close(self) -> None:
        """Stop the workers: steps in flight are interrupted, and go on elsewhere."""
        self._is_closed = True
        workers = list(self._workers.values())
        await asyncio.gather(*(worker.shutdown() for worker, _ in workers), return_exceptions=True)
        for _, task in workers:
            task.cancel()
        await asyncio.gather(*(task for _, task in workers), return_exceptions=True)
        self._threads.shutdown(wait=False)

    # ---- runs

    async def start(self, begun: RunInput) -> None:
        """Start the workflow of a run. One that is at work already is told that somebody wants the run to go on."""
        client = await self.client()
        address = self.address
        more: dict[str, Any] = {} if begun["is_new"] else {"start_signal": "again"}
        try:
            await client.start_workflow(
                WORKFLOW,
                begun,
                id=address.workflow_id(begun["run"]),
                task_queue=address.queue_of(begun["decision"]),
                task_timeout=timedelta(seconds=address.task),
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                **more,
            )
        except WorkflowAlreadyStartedError:
            log.debug("The run %r was started elsewhere.", begun["run"])
        except RPCError as error:
            raise self._unreachable(error) from error

    async def tell(self, run_id: str, signal: str) -> bool:
        """Send the workflow of a run a signal. Answers whether there is one."""
        client = await self.client()
        try:
            await client.get_workflow_handle(self.address.workflow_id(run_id)).signal(signal)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise self._unreachable(error) from error
        return True

    async def failure(self, run_id: str) -> tuple[bool, ApplicationError | None]:
        """Whether a workflow of that run is at work; if not, what it failed with."""
        client = await self.client()
        handle = client.get_workflow_handle(self.address.workflow_id(run_id))
        try:
            status = (await handle.describe()).status
            if status in {WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.CONTINUED_AS_NEW}:
                return True, None
            if status is WorkflowExecutionStatus.FAILED:
                await handle.result()
        except WorkflowFailureError as failed:
            cause: BaseException | None = failed.cause
            while cause is not None and not isinstance(cause, ApplicationError):
                cause = cause.__cause__
            return False, cause or ApplicationError(str(failed.cause), type="InternalError")
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise self._unreachable(error) from error
        return False, None
