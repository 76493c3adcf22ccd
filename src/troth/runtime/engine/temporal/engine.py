"""The engine on Temporal: its workers carry runs out and take them over, a store of ours keeps their record.

A run is written down in the store first, then started on the server. Whoever dies in between leaves a run that the next
engine starts: by itself when it opens, or when somebody asks for it. The same holds for messages and cancellations.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeVar

from temporalio import workflow

from troth import bridge
from troth.errors import InternalError, MisuseError, RunError
from troth.runtime.engine import errors as engine_errors
from troth.runtime.engine.await_result import ResultWaiter
from troth.runtime.engine.commands import Decision
from troth.runtime.engine.commit_points import (
    OWNER_BEAT,
    RUN_CANCEL,
    RUN_FORK,
    RUN_RESUME,
    RUN_START,
    SIGNAL_SEND,
)
from troth.runtime.engine.decisions import DecisionRegistry
from troth.runtime.engine.embedded.claims import can_go_on
from troth.runtime.engine.errors import EngineClosedError, RunMismatchError
from troth.runtime.engine.invoke import lost_coroutines
from troth.runtime.engine.invoke.worker_pool import GRACE, WorkerPool
from troth.runtime.engine.read_pool import ReadPool
from troth.runtime.engine.recorded_runs import RecordedRuns, signal_text, unknown_run
from troth.runtime.engine.rewind import CAN_RESUME, at_one_moment, to_ask_again, trunk_step, write_fork, write_reopening
from troth.runtime.engine.temporal import limits
from troth.runtime.engine.temporal.address import parse
from troth.runtime.engine.temporal.connection import Connection, ServerUnreachableError
from troth.runtime.engine.temporal.recording import token_of
from troth.runtime.engine.temporal.worker import Host
from troth.runtime.engine.temporal.workflow import RunInput
from troth.runtime.store import Owner, RunRecord, RunState, Store, StoreError, Transaction, open_store
from troth.runtime.store.json_codec import keep
from troth.runtime.store.sqlite.transaction import run_topic

__all__ = ["TemporalEngine"]

log = logging.getLogger("troth.engine")

T = TypeVar("T")
_TICK = 1.0  # seconds between looks for messages and cancellations that did not reach their run
_NUDGE_AFTER = 3.0  # seconds after which one counts as lost on its way; twice as many each time it is sent again
_NUDGE_AT_MOST = 3600.0
_ASK_FIRST = 3.0  # seconds after which the server is asked how a run stands that somebody waits for; then ever later
_ASK_AT_MOST = 60.0
_UNSTARTED = 1000  # running runs of a decision that are looked at when a worker comes to know it
_PATIENCE = 30.0  # seconds that the server is waited for when the engine is opened or closed


@dataclass(frozen=True, slots=True)
class TemporalHandle:
    """A run that goes on by itself."""

    engine: "TemporalEngine"
    id: str

    def result(self, timeout: float | None = None) -> Any:
        """What the run returned, waiting for it; RunFailedError or RunCancelledError if it did not complete."""
        return self.engine.result(self.id, timeout)

    async def aresult(self, timeout: float | None = None) -> Any:
        """`result` for a task."""
        return await self.engine.aresult(self.id, timeout)


class TemporalEngine(RecordedRuns):
    """An engine on the Temporal server at `address`, with its record in `store`: a path, an address, or an open store.

    It polls for the runs of `decisions` and of those that are registered later, and for no others. `serves=False` only
    starts, tells and looks: workers elsewhere carry out.
    """

    def __init__(
        self,
        address: str,
        store: Store | str | os.PathLike[str],
        *,
        decisions: Iterable[Decision] = (),
        threads: int = 32,
        abandoned_threads: int = 16,
        grace: float = GRACE,
        max_result: int | None = limits.MAX_TEXT,
        serves: bool = True,
    ) -> None:
        self.address = parse(address)
        self._decisions = DecisionRegistry(decisions)
        self._owns_store = isinstance(store, str | os.PathLike)
        super().__init__(open_store(store) if isinstance(store, str | os.PathLike) else store, ReadPool())
        most = limits.MAX_TEXT if max_result is None else min(max_result, limits.MAX_TEXT)
        self.workers = WorkerPool(threads, abandoned_threads, grace=grace, max_result=most)
        self.host = Host(self.address, self.store, self._decisions, self.workers, self._alaunch)
        self._owner = Owner(self.address.owner, "temporal", 0, 0, 0.0)
        self._serves = serves
        self._portal = bridge.Portal(name="troth-temporal")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: Connection | None = None
        self._opening = threading.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._stop_ticking: Callable[[], None] | None = None
        self._last_beat = 0.0
        self._nudges: dict[tuple[str, str], tuple[float, float]] = {}  # when to send again, and how long to wait then
        self._asked_about: dict[str, tuple[float, float]] = {}  # when to ask next, and how long to wait after that
        self._refused: dict[str, Exception] = {}
        self._waiter = ResultWaiter(self.store, self._look_after, self._refuse_if_closed)
        lost_coroutines.start_watching()

    # ---- opening and closing

    def open(self) -> None:
        """Connect, and begin to poll; does nothing the second time."""
        if self._connection is not None:
            return
        with self._opening:
            if self._is_closed:
                raise EngineClosedError("The engine is closed. Nothing was started; open a new one.")
            if self._connection is None:
                self._loop = self._portal.run(_this_loop)
                self.host.open()
                connection = self._portal.run(self._connect(), timeout=_PATIENCE)
                self._beat()
                self._stop_ticking = self.store.chore(_TICK, self._tick)
                self._connection = connection

    async def _connect(self) -> Connection:
        connection = Connection(self.address, self.host)
        await connection.client()
        if self._serves:
            await connection.serve(self._decisions.names)
            self._keep(asyncio.create_task(self._start_unstarted(connection, self._decisions.names)))
        return connection

    def _keep(self, task: "asyncio.Task[None]") -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _start_unstarted(self, connection: Connection, decisions: list[str]) -> None:
        """Start runs that are written down and unknown to the server: whoever began them died in between."""
        try:
            for name in decisions:
                runs = await asyncio.to_thread(
                    self.store.runs, states=[RunState.RUNNING, RunState.INTERRUPTED], decision=name, limit=_UNSTARTED
                )
                for run in runs:
                    holder = await asyncio.to_thread(self.store.holder, run_topic(run.id))
                    if holder is not None and holder.id == self._owner.id:
                        await self._ask_about(connection, run)
        except (RunError, MisuseError) as error:
            log.warning("Runs that were not started could not be looked for: %s", error)

    async def _aopen(self) -> None:
        if self._connection is None:
            await self._read_pool.beside(self.open)

    def _refuse_if_closed(self, run_id: str) -> None:
        if self._is_closed:
            raise EngineClosedError(
                f"The engine was closed while the result of run {run_id!r} was awaited. The run continues."
            )

    def close(self) -> None:
        """Stop polling. Steps in flight here are interrupted, and go on with the next worker."""
        with self._opening:
            if self._is_closed:
                return
            self._is_closed = True
        if self._stop_ticking is not None:
            self._stop_ticking()
        if self._connection is not None:
            self._portal.run(self._connection.close(), timeout=_PATIENCE)
        self.host.close()
        self._portal.close()
        self._read_pool.close()
        stuck = self.workers.close()
        if stuck:
            log.warning("The engine was closed while %d threads were stuck in: %s", len(stuck), ", ".join(stuck))
        if self._owns_store:
            self.store.close()
        lost_coroutines.stop_watching()

    async def aclose(self) -> None:
        """`close` for a task."""
        await asyncio.shield(asyncio.to_thread(self.close))

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await self._aopen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _there(self, work: Callable[[Connection], Coroutine[Any, Any, T]]) -> T:
        """Do something with the server, and wait for it on this thread."""
        self.open()
        assert self._connection is not None
        return self._portal.run(work(self._connection))

    async def _athere(self, work: Callable[[Connection], Coroutine[Any, Any, T]]) -> T:
        """`_there` for a task."""
        await self._aopen()
        assert self._connection is not None
        assert self._loop is not None
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(self._connection), self._loop))

    def _soon(self, work: Callable[[Connection], Coroutine[Any, Any, object]], what: str) -> None:
        """Do something with the server in the background; what goes wrong is logged."""
        connection, loop = self._connection, self._loop
        if self._is_closed:
            return
        if connection is None or loop is None:  # to connect takes time, and whoever calls may be a loop
            threading.Thread(target=self._open_and_do, args=(work, what), name="troth-connect", daemon=True).start()
            return

        async def attempt() -> None:
            try:
                await work(connection)
            except (RunError, MisuseError) as error:
                log.warning("%s: %s", what, error)

        asyncio.run_coroutine_threadsafe(attempt(), loop).add_done_callback(partial(_tell_failure, what))

    def _open_and_do(self, work: Callable[[Connection], Coroutine[Any, Any, object]], what: str) -> None:
        try:
            self.open()
        except (RunError, MisuseError) as error:
            log.warning("%s: %s", what, error)
        else:
            self._soon(work, what)

    # ---- decisions

    def register(self, decision: Decision, name: str | None = None) -> str:
        """Make a decision known: from now on, this worker polls for its runs."""
        name = self._decisions.register(decision, name)
        if self._serves and self._connection is not None:
            self._there(lambda connection: connection.serve([name]))
            self._soon(lambda connection: self._start_unstarted(connection, [name]), f"Runs of {name!r}")
        return name

    def decisions(self) -> Sequence[str]:
        """The names of the decisions that it knows."""
        return self._decisions.names

    def _name_of(self, decision: Decision | str) -> str:
        name = self._decisions.name_of(decision)
        if self._serves and self._connection is not None:
            self._soon(lambda connection: connection.serve([name]), f"No worker polls for {name!r} here")
        return name

    # ---- carrying out

    def run(
        self,
        decision: Decision | str,
        /,
        *args: object,
        run_id: str | None = None,
        label: str | None = None,
        promise: Callable[[Transaction], object] | None = None,
    ) -> Any:
        """Have a run carried out by the workers, and return its result; this thread only waits."""
        return self.start(decision, *args, run_id=run_id, label=label, promise=promise).result()

    async def arun(
        self, decision: Decision | str, /, *args: object, run_id: str | None = None, label: str | None = None
    ) -> Any:
        """`run` for a task. Cancelling it ends the waiting; the run goes on with the workers. `cancel` ends the run."""
        handle = await self.astart(decision, *args, run_id=run_id, label=label)
        return await handle.aresult()

    def start(
        self,
        decision: Decision | str,
        /,
        *args: object,
        run_id: str | None = None,
        label: str | None = None,
        promise: Callable[[Transaction], object] | None = None,
    ) -> TemporalHandle:
        """Begin a run and return. It is written down before this returns; `promise` writes more in that commit."""
        self.open()
        begun, write = self._to_begin(decision, args, run_id, label, promise)
        following = self.store.commit(RUN_START, write)
        if following is not None:
            self._there(lambda connection: connection.start(following))
        return TemporalHandle(self, begun["run"])

    async def astart(
        self, decision: Decision | str, /, *args: object, run_id: str | None = None, label: str | None = None
    ) -> TemporalHandle:
        """`start` for a task; the run does not depend on its loop."""
        await self._aopen()
        begun, write = await self._read_pool.beside(lambda: self._to_begin(decision, args, run_id, label, None))
        following = await self.store.acommit(RUN_START, write)
        if following is not None:
            await self._athere(lambda connection: connection.start(following))
        return TemporalHandle(self, begun["run"])

    def _to_begin(
        self,
        decision: Decision | str,
        args: tuple[object, ...],
        run_id: str | None,
        label: str | None,
        promise: Callable[[Transaction], object] | None,
    ) -> tuple[RunInput, Callable[[Transaction], RunInput | None]]:
        name = self._name_of(decision)
        self._decisions.check_arguments(name, args)
        run_id = run_id or f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(self.store.clock()))}-{os.urandom(4).hex()}"
        text = limits.keep_small(list(args), f"arguments of run {run_id!r}").text
        self._refused.pop(run_id, None)
        base = os.urandom(8).hex()
        begun = _input(run_id, name, text)

        def write(tx: Transaction) -> RunInput | None:
            now = self.store.clock()
            is_new = tx.add_run(run_id, name, text, now, label=label)
            if promise is not None:
                if not is_new:
                    raise RunMismatchError(f"There is already a run {run_id!r}. Nothing was started; use another id.")
                promise(tx)
            if not is_new:
                return begun if can_go_on(tx, run_id, name, text) else None
            tx.claim(run_topic(run_id), self._owner.id, token_of(base, 0), now)
            return {**begun, "base": base, "is_new": True}

        return begun, write

    async def _alaunch(self, run_id: str) -> None:
        """Start a run that is written down, unless it is over or somebody else's."""
        run = await asyncio.to_thread(self.store.run, run_id)
        if run is None or run.state.is_over:
            return
        holder = await asyncio.to_thread(self.store.holder, run_topic(run_id))
        is_ours = holder is None or holder.id == self._owner.id or not self.store.is_alive(holder)
        if is_ours and self._connection is not None:
            await self._connection.start(_input_of(run))

    # ---- waiting for

    def result(self, run_id: str, timeout: float | None = None) -> Any:
        """Wait for a run, whoever carries it out, and return its result."""
        return self._waiter.result(run_id, timeout)

    async def aresult(self, run_id: str, timeout: float | None = None) -> Any:
        """`result` for a task. Cancelling it only ends the waiting."""
        return await self._waiter.aresult(run_id, timeout)

    def _look_after(self, run: RunRecord) -> None:
        """Make sure that a run which somebody waits for goes on; raises why it does not."""
        self._refuse_if_closed(run.id)
        refusal = self._refused.get(run.id)
        if refusal is not None:
            raise refusal
        now = time.monotonic()
        due, wait = self._asked_about.get(run.id, (0.0, _ASK_FIRST))
        if now < due:
            return
        if len(self._asked_about) > 10_000:
            self._asked_about.clear()
        self._asked_about[run.id] = now + wait, min(2 * wait, _ASK_AT_MOST)
        if due or run.state is RunState.INTERRUPTED or self.store.holder(run_topic(run.id)) is None:
            self._soon(lambda connection: self._ask_about(connection, run), f"Run {run.id!r} cannot be looked at")

    async def _ask_about(self, connection: Connection, run: RunRecord) -> None:
        is_at_work, failure = await connection.failure(run.id)
        if is_at_work:
            return
        now = await asyncio.to_thread(self.store.run, run.id)
        if now is None or now.state.is_over:
            return
        if failure is not None:
            self._refused[run.id] = _revived(run.id, failure.type or "", failure.message)
        else:
            await connection.start(_input_of(now))

    # ---- telling

    def signal(
        self, run_id: str, name: str, payload: object = None, *, key: str | None = None, awaited: bool = False
    ) -> bool:
        """Send a run a message, durably. It is written down, then the run is told that there is one."""
        text = self._signal_text(name, payload)
        is_new = self.store.commit(SIGNAL_SEND, self._sending(run_id, name, payload, key, awaited=awaited, text=text))
        self._reach(run_id, "news")
        return is_new

    async def asignal(
        self, run_id: str, name: str, payload: object = None, *, key: str | None = None, awaited: bool = False
    ) -> bool:
        """`signal` for a task. Cancelled, it may have been sent all the same."""
        text = await self._read_pool.beside(lambda: self._signal_text(name, payload))
        work = self._sending(run_id, name, payload, key, awaited=awaited, text=text)
        is_new = await self.store.acommit(SIGNAL_SEND, work)
        await self._areach(run_id, "news")
        return is_new

    def _signal_text(self, name: str, payload: object) -> str:
        text = signal_text(name, payload)
        limits.check_size(text, f"signal {name!r}")
        return text

    def cancel(self, run_id: str) -> bool:
        """Ask for a run's cancellation, durably. Answers whether there was anything left to cancel."""
        is_new = self.store.commit(RUN_CANCEL, self._cancelling(run_id))
        if is_new:
            self._reach(run_id, "cancel")
        return is_new

    async def acancel(self, run_id: str) -> bool:
        """`cancel` for a task. Cancelled itself, it may have been asked for all the same."""
        is_new = await self.store.acommit(RUN_CANCEL, self._cancelling(run_id))
        if is_new:
            await self._areach(run_id, "cancel")
        return is_new

    def _reach(self, run_id: str, signal: str) -> None:
        """Tell a run what is written down for it. If that fails, a worker tells it later."""
        try:
            self._there(lambda connection: self._tell(connection, run_id, signal))
        except ServerUnreachableError as error:
            log.warning("The run %r will be notified later: %s", run_id, error)

    async def _areach(self, run_id: str, signal: str) -> None:
        try:
            await self._athere(lambda connection: self._tell(connection, run_id, signal))
        except ServerUnreachableError as error:
            log.warning("The run %r will be notified later: %s", run_id, error)

    async def _tell(self, connection: Connection, run_id: str, signal: str) -> None:
        if not await connection.tell(run_id, signal):
            await self._alaunch(run_id)

    # ---- going on, and going another way

    def resume(self, run_id: str) -> Any:
        """Go on with a run that failed, was cancelled or interrupted, from where it stopped; return its result."""
        self.open()
        self._reopen_ended(run_id)
        self._there(lambda _: self._alaunch(run_id))
        return self.result(run_id)

    async def aresume(self, run_id: str) -> Any:
        """`resume` for a task."""
        await self._aopen()
        await self._read_pool.beside(lambda: self._reopen_ended(run_id))
        await self._athere(lambda _: self._alaunch(run_id))
        return await self.aresult(run_id)

    def _reopen_ended(self, run_id: str) -> None:
        snapshot = at_one_moment(self.store, run_id)
        if snapshot is None:
            raise unknown_run(run_id)
        run, steps = snapshot
        self._name_of(run.decision)
        self._refused.pop(run_id, None)
        again = to_ask_again(run, steps) if run.state in CAN_RESUME else []
        self.store.commit(RUN_RESUME, lambda tx: write_reopening(tx, run, again, self.store.clock()))

    def fork(self, run_id: str, before: int | str, *, fork_id: str | None = None) -> TemporalHandle:
        """Begin a new run that has the answers of another one up to, not including, the trunk step `before`."""
        self.open()
        fork_id = self._write_fork_of(run_id, before, fork_id)
        self._there(lambda _: self._alaunch(fork_id))
        return TemporalHandle(self, fork_id)

    async def afork(self, run_id: str, before: int | str, *, fork_id: str | None = None) -> TemporalHandle:
        """`fork` for a task."""
        await self._aopen()
        written = await self._read_pool.beside(lambda: self._write_fork_of(run_id, before, fork_id))
        await self._athere(lambda _: self._alaunch(written))
        return TemporalHandle(self, written)

    def _write_fork_of(self, run_id: str, before: int | str, fork_id: str | None) -> str:
        run = self.store.run(run_id)
        if run is None:
            raise unknown_run(run_id)
        self._name_of(run.decision)
        seq = trunk_step(run_id, self.store.steps(run_id), before)
        written = fork_id or f"{run_id}-fork-{os.urandom(3).hex()}"
        self.store.commit(RUN_FORK, lambda tx: write_fork(tx, run, written, run.args, seq, self.store.clock()))
        return written

    # ---- looking

    def time_in(self, run_id: str) -> float:  # noqa: ARG002  it is the same in all
        """What time it is in a run: that of its workflow where a decision asks, else that of the store."""
        return workflow.now().timestamp() if workflow.in_workflow() else self.store.clock()

    def is_driving(self, run_id: str) -> bool:
        """Whether the workers of this server carry the run out: which of them does is the server's business."""
        holder = self.store.holder(run_topic(run_id))
        return holder is not None and holder.id == self._owner.id

    # ---- what happens by itself

    def _beat(self) -> None:
        """Say that somebody lives who carries out runs of this server. All its workers have one name in the store."""
        passed = time.monotonic()
        if passed - self._last_beat >= self.store.beat_every:
            now = self.store.clock()
            owner = Owner(self._owner.id, self._owner.machine, 0, 0, now)
            self.store.commit(OWNER_BEAT, lambda tx: tx.enroll(owner))
            self._last_beat = passed

    def _tick(self) -> None:
        if self._is_closed:
            return
        try:
            self._beat()
            wanted = {(run_id, "cancel") for run_id in self.store.cancelling()}
            wanted |= {(run_id, "news") for run_id in self.store.signalled()}
        except StoreError as error:
            log.warning("The store could not be looked at: %s", error)
            return
        now = time.monotonic()
        self._nudges = {nudge: times for nudge, times in self._nudges.items() if nudge in wanted}
        for run_id, signal in wanted:
            due, wait = self._nudges.get((run_id, signal), (0.0, _NUDGE_AFTER))
            if due == 0.0:
                self._nudges[run_id, signal] = now + wait, wait
            elif now >= due:
                longer = min(2 * wait, _NUDGE_AT_MOST)
                self._nudges[run_id, signal] = now + longer, longer
                if self.is_driving(run_id):
                    self._send_again(run_id, signal)

    def _send_again(self, run_id: str, signal: str) -> None:
        self._soon(lambda connection: self._tell(connection, run_id, signal), f"Run {run_id!r} could not be notified")


def _input(run_id: str, decision: str, args: str) -> RunInput:
    """What the workflow of a run that goes on is started with."""
    return {
        "run": run_id,
        "decision": decision,
        "args": args,
        "base": None,
        "after": 0,
        "is_new": False,
        "not_called": None,
        "is_requested": False,
        "joined_by": [],
    }


def _input_of(run: RunRecord) -> RunInput:
    return _input(run.id, run.decision, keep(list(run.args), f"arguments of run {run.id!r}")[0])


def _revived(run_id: str, name: str, message: str) -> Exception:
    """The error with which a workflow was given up, as the engine that runs in this process would raise it."""
    kind = getattr(engine_errors, name, None) or getattr(limits, name, None)
    if isinstance(kind, type) and issubclass(kind, MisuseError | RunError):
        error = kind.__new__(kind, message)
        Exception.__init__(error, message)
        return error
    return InternalError(f"The workflow of run {run_id!r} was given up: {name}: {message}")


def _tell_failure(what: str, future: "Future[None]") -> None:
    if not future.cancelled() and future.exception() is not None:
        log.error("%s, because of an internal error of the engine.", what, exc_info=future.exception())


async def _this_loop() -> asyncio.AbstractEventLoop:
    await asyncio.sleep(0)
    return asyncio.get_running_loop()
