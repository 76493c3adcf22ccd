"""Call the tools a model asked for, side by side, and make data of whatever goes wrong.

Sync tools run in worker threads, async ones on a loop. A tool that takes too long is given up: an async one is
cancelled, the thread of a sync one is abandoned, counted and named in the log. Each call is a step of its own: inside
the tool `current_step()` has its key and its attempt. An answer is handed on as soon as it is there.
"""

import asyncio
import contextlib
import contextvars
import inspect
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from troth.bridge import run as bridge_run
from troth.color import Color
from troth.errors import MisuseError, RunError
from troth.runtime.engine.current_step import CURRENT, CurrentStep
from troth.runtime.engine.invoke.worker_pool import Job, WorkerPool
from troth.runtime.store import failpoints
from troth.runtime.store.failpoints import effect_point
from troth.runtime.store.json_codec import keep
from troth.runtime.tools.call import PendingCall, ToolOutcome
from troth.runtime.tools.tool import Tool

__all__ = ["ToolInterrupted", "aperform", "perform", "step_of"]

TOOL_EFFECT = effect_point("tool.effect", "the call of a tool's function")

_INTERRUPTED = (
    "interrupted: the run was stopped before this call had answered. "
    "It is unknown whether it took effect. It was not called again."
)

Answer = tuple[PendingCall, ToolOutcome, CurrentStep]
"""A call, what it answered, and the step that it was."""
Settle = Callable[[PendingCall, ToolOutcome, CurrentStep], object]
"""Keeps what a call answered, together with what its step appended."""
Asettle = Callable[[Sequence[Answer]], Awaitable[object]]
"""The same for a loop, of all that have answered by then."""

_QUICK = 0.003
"""Seconds in which one thread makes the sync calls of a turn, one after the other: to hand a call over to a thread of
its own costs as much as to write its answer. Whatever is left after that runs side by side."""
_PATIENCE = 0.5  # seconds that whoever cancels a turn waits for answers to be written that are there already


class ToolInterrupted(Exception):  # noqa: N818 - what happened, for whoever drives the agent
    """Ctrl-C fell into a tool on a loop. As itself it would tear down the loop before the answers could be kept."""

    def __init__(self, cause: KeyboardInterrupt) -> None:
        super().__init__("a tool was interrupted")
        self.cause = cause


def perform(
    calls: Sequence[PendingCall], tools: Mapping[str, Tool], workers: WorkerPool, settle: Settle, asettle: Asettle
) -> None:
    """Call them from sync code, and settle each on this thread when it has answered.

    A single sync tool without a timeout runs on this very thread, and is settled by `settle`; others are called from a
    loop on this thread, and settled there by `asettle`.
    """
    if len(calls) > 1 or not _runs_here(tools.get(calls[0].name)):
        bridge_run(aperform, calls, tools, workers, asettle)
        return
    (call,) = calls
    step = step_of(call)
    prepared = _prepared(call, tools)
    settle(call, prepared if isinstance(prepared, ToolOutcome) else _perform_here(call, *prepared, step), step)


async def aperform(
    calls: Sequence[PendingCall], tools: Mapping[str, Tool], workers: WorkerPool, settle: Asettle
) -> None:
    """Call them from a loop, which stays free, and `settle` each when it has answered.

    If one of them cannot be settled, those that have begun are; the others are left for another time.
    """
    if len(calls) == 1:
        await _perform_and_settle(calls[0], tools, workers, settle)
    else:
        await _SideBySide(calls, tools, workers).perform(settle)


async def _perform_and_settle(
    call: PendingCall, tools: Mapping[str, Tool], workers: WorkerPool, settle: Asettle
) -> None:
    step = step_of(call)
    prepared = _prepared(call, tools)
    if isinstance(prepared, ToolOutcome):
        outcome = prepared
    else:
        tool, arguments = prepared
        outcome = await _outcome(call, step, _value(tool, arguments, workers), tool.timeout)
    await settle([(call, outcome, step)])


def _runs_here(tool: Tool | None) -> bool:
    return tool is None or (tool.color is Color.SYNC and tool.timeout is None)


def step_of(call: PendingCall) -> CurrentStep:
    """The call as a step; of the run that the agent is a step of, if it is one."""
    agent = CURRENT.get()
    run_id = call.conversation if agent is None else agent.run_id
    return CurrentStep(run_id, call.place, call.name, call.key, call.attempt, time.time())


def _prepared(call: PendingCall, tools: Mapping[str, Tool]) -> tuple[Tool, Mapping[str, Any]] | ToolOutcome:
    """The tool and its arguments; or what the model is told, if there is nothing to call."""
    if call.is_interrupted:
        return ToolOutcome(call.id, call.name, error=_INTERRUPTED)
    tool = tools.get(call.name)
    if tool is None:
        names = ", ".join(sorted(tools)) or "none"
        return ToolOutcome(call.id, call.name, error=f"there is no tool {call.name!r}; the tools are: {names}")
    try:
        return tool, tool.arguments(call.arguments)
    except MisuseError as problem:
        return ToolOutcome(call.id, call.name, error=str(problem))


def _perform_here(call: PendingCall, tool: Tool, arguments: Mapping[str, Any], step: CurrentStep) -> ToolOutcome:
    token = CURRENT.set(step)
    try:
        if failpoints.armed:
            failpoints.reach(TOOL_EFFECT.before)
        value = tool.function(**arguments)
        if inspect.isawaitable(value):
            value = bridge_run(_await(value))
        if failpoints.armed:
            failpoints.reach(TOOL_EFFECT.after)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as problem:  # noqa: BLE001 - the model is told, and decides what to do
        return _failed(call, problem)
    finally:
        CURRENT.reset(token)
    return _answered(call, value, step)


async def _outcome(
    call: PendingCall, step: CurrentStep, work: Coroutine[Any, Any, Any], timeout: float | None
) -> ToolOutcome:
    """What comes of awaiting `work`, as data."""
    limit: asyncio.Timeout | None = None
    token = CURRENT.set(step)
    try:
        if timeout is None:
            value = await work
        else:
            async with asyncio.timeout(timeout) as limit:
                value = await work
        if failpoints.armed:
            failpoints.reach(TOOL_EFFECT.after)
    except TimeoutError as problem:
        if limit is not None and limit.expired():
            return ToolOutcome(call.id, call.name, error=f"{call.name} did not answer within {timeout:g} s")
        return _failed(call, problem)
    except asyncio.CancelledError as problem:
        if _is_cancelled():
            raise
        return _failed(call, problem)  # raised by the tool itself: nobody has cancelled this call
    except KeyboardInterrupt as leaving:
        raise ToolInterrupted(leaving) from leaving
    except GeneratorExit:
        raise
    except BaseException as problem:  # noqa: BLE001 - SystemExit too: out of a task, it would end the loop for everybody
        return _failed(call, problem)
    finally:
        CURRENT.reset(token)
    return _answered(call, value, step)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def _value(tool: Tool, arguments: Mapping[str, Any], workers: WorkerPool) -> Any:
    if failpoints.armed:
        failpoints.reach(TOOL_EFFECT.before)
    if tool.color is Color.ASYNC:
        value = await tool.function(**arguments)
    else:
        value = await _in_thread(tool, arguments, workers)
    return await _fully(value) if inspect.isawaitable(value) else value


async def _in_thread(tool: Tool, arguments: Mapping[str, Any], workers: WorkerPool) -> Any:
    job = workers.submit(Job(f"tool {tool.name!r}", partial(tool.function, **arguments)))
    try:
        await job.await_done(None)
    except asyncio.CancelledError:
        workers.abandon(job)
        raise
    if job.error is not None:
        problem, job.error = job.error, None
        raise _as_raised_in_thread(problem)
    return job.value


async def _await(thing: Any) -> Any:
    return await thing


def _answered(call: PendingCall, value: Any, step: CurrentStep) -> ToolOutcome:
    if step.losses:
        error = f"{call.name} returned, but part of it never happened: it did not await {', '.join(step.losses)}"
        return ToolOutcome(call.id, call.name, error=error)
    try:
        _, as_json = keep(value, f"the answer of the tool {call.name!r}")
    except (MisuseError, RunError) as problem:
        return ToolOutcome(call.id, call.name, error=str(problem))
    return ToolOutcome(call.id, call.name, as_json)


def _failed(call: PendingCall, problem: BaseException) -> ToolOutcome:
    return ToolOutcome(call.id, call.name, error=f"{type(problem).__name__}: {problem}")


class _SideBySide:
    """The calls of one turn. The sync ones are made by one thread as long as they are quick, else by one for each."""

    def __init__(self, calls: Sequence[PendingCall], tools: Mapping[str, Tool], workers: WorkerPool) -> None:
        self._tools = tools
        self._workers = workers
        self._unsettled = len(calls)
        self._for_threads: deque[tuple[PendingCall, CurrentStep]] = deque()
        self._jobs: list[Job] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._answers: deque[tuple[PendingCall, ToolOutcome | Awaitable[Any], CurrentStep]] = deque()
        self._problem: BaseException | None = None
        self._loop = asyncio.get_running_loop()
        self._is_waking = False
        self._woken = asyncio.Event()
        for call in calls:
            self._begin(call, step_of(call))

    async def perform(self, settle: Asettle) -> None:
        """Make them, and settle each as it comes; those that come at once, at once."""
        spreading: asyncio.TimerHandle | None = None
        if self._for_threads:
            self._add_thread()
            spreading = self._loop.call_later(_QUICK, self._spread)
        try:
            while self._unsettled:
                await self._woken.wait()
                self._woken.clear()
                if answers := self._take():
                    try:
                        await settle(answers)
                    except Exception as problem:  # noqa: BLE001 - raised when those that have begun have answered
                        self._fail(problem)
        except BaseException:
            await self._give_up(settle)
            raise
        finally:
            if spreading is not None:
                spreading.cancel()
        if self._problem is not None:
            raise self._problem

    # On the loop

    def _begin(self, call: PendingCall, step: CurrentStep) -> None:
        tool = self._tools.get(call.name)
        if tool is not None and tool.color is Color.SYNC and tool.timeout is None and not call.is_interrupted:
            self._for_threads.append((call, step))
            return
        prepared = _prepared(call, self._tools)
        if isinstance(prepared, ToolOutcome):
            self._put(call, prepared, step)
        else:
            tool, arguments = prepared
            self._await(call, step, _value(tool, arguments, self._workers), tool.timeout)

    def _await(
        self, call: PendingCall, step: CurrentStep, work: Coroutine[Any, Any, Any], timeout: float | None
    ) -> None:
        async def put() -> None:
            try:
                self._put(call, await _outcome(call, step, work, timeout), step)
            except Exception as problem:  # noqa: BLE001 - raised when the others have answered
                self._unsettled -= 1
                self._fail(problem)
                self._woken.set()

        self._tasks.append(asyncio.create_task(put()))

    def _put(self, call: PendingCall, outcome: ToolOutcome, step: CurrentStep) -> None:
        self._answers.append((call, outcome, step))
        self._woken.set()

    def _take(self) -> list[Answer]:
        """What has answered by now."""
        if self._for_threads and all(job.is_done for job in self._jobs):
            self._refuse()
        answers: list[Answer] = []
        for _ in range(len(self._answers)):
            call, answer, step = self._answers.popleft()
            if isinstance(answer, ToolOutcome):
                answers.append((call, answer, step))
                self._unsettled -= 1
            else:
                self._await(call, step, _fully(answer), None)
        return answers

    def _fail(self, problem: BaseException) -> None:
        """Begin nothing more; what has begun is waited for, and settled."""
        self._problem = self._problem or problem
        self._unsettled -= len(self._for_threads)
        self._for_threads.clear()

    async def _give_up(self, settle: Asettle) -> None:
        """Nobody waits for them any more. What has answered already is settled all the same."""
        self._for_threads.clear()
        for task in self._tasks:
            task.cancel()
        for job in self._jobs:
            if not job.is_done:
                self._workers.abandon(job)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        answers = [(call, answer, step) for call, answer, step in self._answers if isinstance(answer, ToolOutcome)]
        if answers:  # a commit that has been asked for is made, whoever waits for it
            settling = asyncio.ensure_future(settle(answers))
            settling.add_done_callback(_heed)
            await asyncio.wait([settling], timeout=_PATIENCE)

    def _spread(self) -> None:
        """They are not quick: a thread for each that has not begun."""
        for _ in range(len(self._for_threads)):
            self._add_thread()

    def _add_thread(self) -> None:
        job = Job("a tool", lambda: self._serve(job))
        try:
            self._workers.submit(job)
        except RunError as refused:
            job.refuse(refused)
        self._jobs.append(job)
        job.when_done(self._wake_loop)

    def _refuse(self) -> None:
        """There is no thread for those that are left."""
        refused = next((job.error for job in self._jobs if job.is_refused and job.error is not None), None)
        while self._for_threads:
            call, step = self._for_threads.popleft()
            self._put(call, _failed(call, refused or RunError("no thread took it up")), step)

    # On a thread

    def _serve(self, job: Job) -> None:
        while True:
            try:
                call, step = self._for_threads.popleft()
            except IndexError:
                return
            job.name = f"tool {call.name!r}"
            answer = contextvars.copy_context().run(self._call, call, step)
            self._answers.append((call, answer, step))
            self._wake_loop()

    def _call(self, call: PendingCall, step: CurrentStep) -> ToolOutcome | Awaitable[Any]:
        prepared = _prepared(call, self._tools)
        if isinstance(prepared, ToolOutcome):
            return prepared
        tool, arguments = prepared
        CURRENT.set(step)  # in a context of its own
        try:
            if failpoints.armed:
                failpoints.reach(TOOL_EFFECT.before)
            value = tool.function(**arguments)
            if inspect.isawaitable(value):
                return value
            if failpoints.armed:
                failpoints.reach(TOOL_EFFECT.after)
        except BaseException as problem:  # noqa: BLE001 - the model is told, and decides what to do
            return _failed(call, _as_raised_in_thread(problem))
        return _answered(call, value, step)

    def _wake_loop(self) -> None:
        if not self._is_waking:
            self._is_waking = True
            with contextlib.suppress(RuntimeError):  # that loop is closed, so nobody waits there any more
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._is_waking = False
        self._woken.set()


def _heed(settling: "asyncio.Future[object]") -> None:
    """Look at how it ended, so that nobody is warned that nobody did."""
    if not settling.cancelled():
        settling.exception()


async def _fully(value: Any) -> Any:
    while inspect.isawaitable(value):
        value = await value
    return value


def _as_raised_in_thread(problem: BaseException) -> BaseException:
    """What ends a thread or a loop ends neither, coming from a tool."""
    if isinstance(problem, Exception) and not isinstance(problem, StopIteration):
        return problem
    return RunError(f"the tool raised {type(problem).__name__}: {problem}")
