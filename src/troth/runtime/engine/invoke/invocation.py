"""Call a step's function, whatever its color: the one place where the engine meets user code.

A sync function runs on the thread of the one who drives if that thread has nothing else to do (`call`), else in a
worker thread; with a timeout always in a worker thread, because only a thread of its own can be given up. An async one
runs on the loop. An awaitable that comes back is awaited, in every slot.
"""

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from troth import bridge
from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.engine.cancellation import Cancellation
from troth.runtime.engine.commands import Step
from troth.runtime.engine.current_step import CURRENT, CurrentStep
from troth.runtime.engine.errors import LostCoroutineError, StepTimeoutError, ThreadsExhaustedError
from troth.runtime.engine.failure import is_ctrl_c
from troth.runtime.engine.invoke import lost_coroutines
from troth.runtime.engine.invoke.interruption import CancelledAfterError
from troth.runtime.engine.invoke.leftover_tasks import end_dropped
from troth.runtime.engine.invoke.outcome import StepOutcome
from troth.runtime.engine.invoke.worker_pool import Job, WorkerPool
from troth.runtime.store import NotJsonError, failpoints
from troth.runtime.store.failpoints import effect_point
from troth.runtime.store.large_values import is_large, keep_in_parts

__all__ = ["acall", "call"]

log = logging.getLogger("troth.engine")

STEP_EFFECT = effect_point("step.effect", "the call of a step's function")

_make = tuple.__new__  # of a NamedTuple, without the ceremony of its constructor
_PLAIN = frozenset({type(None), bool, int, float, str, dict, list, tuple})
_MAY_BE_LARGE = frozenset({str, dict, list, tuple})
_abandoned_tasks: set["asyncio.Task[Any]"] = set()


def call(step: Step, info: CurrentStep, workers: WorkerPool, cancellation: Cancellation) -> StepOutcome:
    """Make one attempt from sync code, on this thread where possible."""
    if step.color is Color.ASYNC:
        return bridge.run(_whole(step, info, workers, cancellation))
    token = CURRENT.set(info)
    lost_coroutines.begin_step(info)
    try:
        if failpoints.armed:
            failpoints.reach(STEP_EFFECT.before)
        outcome = _call_here(step) if step.timeout is None else _call_in_thread(step, info, workers)
        if outcome.ended == "done" and type(outcome.value) not in _PLAIN and inspect.isawaitable(outcome.value):
            outcome = bridge.run(_settled(outcome.value, step, info, workers, cancellation))
        if failpoints.armed:
            failpoints.reach(STEP_EFFECT.after)
    finally:
        losses = lost_coroutines.end_step(info)
        CURRENT.reset(token)
    return _lossless(outcome, step, losses) if losses else outcome


async def _whole(step: Step, info: CurrentStep, workers: WorkerPool, cancellation: Cancellation) -> StepOutcome:
    """`acall` on a loop that stops when it returns: what the step began there and dropped is lost."""
    before = asyncio.all_tasks()
    outcome = await acall(step, info, workers, cancellation)
    losses = await end_dropped(before)
    return _lossless(outcome, step, losses) if losses else outcome


async def _settled(
    value: Awaitable[Any], step: Step, info: CurrentStep, workers: WorkerPool, cancellation: Cancellation
) -> StepOutcome:
    before = asyncio.all_tasks()
    outcome = await _settle(value, step, info, workers, cancellation)
    losses = await end_dropped(before)
    return _lossless(outcome, step, losses) if losses else outcome


def _call_here(step: Step) -> StepOutcome:
    try:
        value = step.call(*step.args, **step.kwargs) if step.kwargs else step.call(*step.args)
        return _make(StepOutcome, ("done", value, None))
    except (KeyboardInterrupt, GeneratorExit):
        raise  # meant for whoever drives, not for the step
    except BaseException as error:  # noqa: BLE001  SystemExit too: a step does not end the program
        return StepOutcome("failed", error=error)


def _call_in_thread(step: Step, info: CurrentStep, workers: WorkerPool) -> StepOutcome:
    try:
        job = workers.submit(Job(_title(step, info), partial(step.call, *step.args, **step.kwargs)))
    except ThreadsExhaustedError as refused:
        return StepOutcome("refused", error=refused)
    if job.wait(step.timeout) or not workers.abandon(job):
        return _of_job(job, step)
    return StepOutcome("timeout", error=_timeout(step, f"its thread {job.thread} is abandoned"))


async def acall(step: Step, info: CurrentStep, workers: WorkerPool, cancellation: Cancellation) -> StepOutcome:
    """Make one attempt from a loop. Cancelling the task cancels an async step, and gives up a sync one's thread.

    A cancellation that finds the attempt ended raises CancelledAfterError: what was done is known, and can be kept.
    """
    token = CURRENT.set(info)
    lost_coroutines.begin_step(info)
    late: CancelledAfterError | None = None
    try:
        if failpoints.armed:
            failpoints.reach(STEP_EFFECT.before)
        if step.color is Color.ASYNC:
            if step.timeout is None:
                task, before = _enter(cancellation)
                try:
                    value: Any = await (step.call(*step.args, **step.kwargs) if step.kwargs else step.call(*step.args))  # type: ignore[misc]
                    while type(value) not in _PLAIN and inspect.isawaitable(value):
                        value = await value
                    outcome = _make(StepOutcome, ("done", value, None))
                except BaseException as error:  # noqa: BLE001  what is not the step's own is raised again
                    outcome = _of_error(error, task, before, cancellation)
                finally:
                    cancellation.leave(task)
                if task.cancelling() > before:
                    _mind_cancellation(task, cancellation, outcome)
            else:
                make = partial(step.call, *step.args, **step.kwargs)
                outcome = await _await_within(make, step, info, workers, cancellation, step.timeout)
        else:
            outcome = await _await_thread(step, info, workers)
            if outcome.ended == "done" and type(outcome.value) not in _PLAIN and inspect.isawaitable(outcome.value):
                outcome = await _settle(outcome.value, step, info, workers, cancellation)
        if failpoints.armed:
            failpoints.reach(STEP_EFFECT.after)
        if outcome.ended == "done" and type(outcome.value) in _MAY_BE_LARGE and is_large(outcome.value):
            outcome = await _written_beside(outcome, step, info)
    except CancelledAfterError as cancelled:
        late, outcome = cancelled, cancelled.outcome
    finally:
        losses = lost_coroutines.end_step(info)
        CURRENT.reset(token)
    if losses:
        outcome = _lossless(outcome, step, losses)
    if late is not None:
        raise CancelledAfterError(outcome) from late
    return outcome


async def _written_beside(outcome: StepOutcome, step: Step, info: CurrentStep) -> StepOutcome:
    """Make the JSON of a large result in a thread, so that the loop goes on meanwhile."""
    try:
        encoded = await asyncio.to_thread(keep_in_parts, outcome.value, f"result of step {step.name!r}")
    except asyncio.CancelledError:
        raise CancelledAfterError(outcome) from None  # the step itself is done
    except NotJsonError:
        log.debug("%s returned something that is not JSON.", _title(step, info))
        return outcome  # told as a failure where it is recorded
    return StepOutcome("done", encoded)


async def _await_thread(step: Step, info: CurrentStep, workers: WorkerPool) -> StepOutcome:
    try:
        job = workers.submit(Job(_title(step, info), partial(step.call, *step.args, **step.kwargs)))
    except ThreadsExhaustedError as refused:
        return StepOutcome("refused", error=refused)
    try:
        is_done = await job.await_done(step.timeout)
    except asyncio.CancelledError:
        if workers.abandon(job):
            raise
        outcome = _of_job(job, step)
        if inspect.iscoroutine(outcome.value):
            outcome.value.close()  # it has not begun, so the step has not ended
            raise
        raise CancelledAfterError(outcome) from None
    if is_done or not workers.abandon(job):
        return _of_job(job, step)
    return StepOutcome("timeout", error=_timeout(step, f"its thread {job.thread} is abandoned"))


def _of_job(job: Job, step: Step) -> StepOutcome:
    if job.error is None:
        return StepOutcome("done", job.value)
    error, job.error = job.error, None  # its traceback holds the job
    if job.is_refused:
        return StepOutcome("refused", error=error)
    if isinstance(error, KeyboardInterrupt | GeneratorExit | asyncio.CancelledError):
        log.debug("Step %r raised %r in its thread, where it counts only as a failure.", step.name, error)
    return StepOutcome("failed", error=error)


async def _settle(
    value: Awaitable[Any], step: Step, info: CurrentStep, workers: WorkerPool, cancellation: Cancellation
) -> StepOutcome:
    """Await what a sync function gave back."""
    return await _await(lambda: value, step, info, workers, cancellation)


async def _await(
    make: Callable[[], Any], step: Step, info: CurrentStep, workers: WorkerPool, cancellation: Cancellation
) -> StepOutcome:
    if step.timeout is not None:
        return await _await_within(make, step, info, workers, cancellation, step.timeout)
    task, before = _enter(cancellation)
    try:
        outcome = StepOutcome("done", await _fully(make))
    except BaseException as error:  # noqa: BLE001  what is not the step's own is raised again
        outcome = _of_error(error, task, before, cancellation)
    finally:
        cancellation.leave(task)
    if task.cancelling() > before:
        _mind_cancellation(task, cancellation, outcome)
    return outcome


def _enter(cancellation: Cancellation) -> "tuple[asyncio.Task[Any], int]":
    """The task in which the step runs, within reach of the run's cancellation; how often it was cancelled so far."""
    task = asyncio.current_task()
    if task is None:
        raise MisuseError("A step has to be awaited in a task of asyncio.")
    cancellation.enter(task)
    return task, task.cancelling()


def _of_error(error: BaseException, task: "asyncio.Task[Any]", before: int, cancellation: Cancellation) -> StepOutcome:
    """What an error out of a step means; raises it again where it is meant for whoever drives."""
    if isinstance(error, asyncio.CancelledError) and task.cancelling() > before:
        if not cancellation.is_asked:
            raise error
        return StepOutcome("cancelled", error=error)
    if is_ctrl_c(error) or (isinstance(error, GeneratorExit) and not _is_at_work(task)):
        raise error
    return StepOutcome("failed", error=error)  # SystemExit too: a step does not end the program


def _is_at_work(task: "asyncio.Task[Any] | None") -> bool:
    """Whether this task runs just now. One that is closed from outside, as by the end of its loop, does not."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False


def _mind_cancellation(task: "asyncio.Task[Any]", cancellation: Cancellation, outcome: StepOutcome) -> None:
    """The task was cancelled while the step ran. If the run is not to be, it was meant for more than the step."""
    if not cancellation.is_asked:
        raise CancelledAfterError(outcome)
    task.uncancel()


async def _fully(make: Callable[[], Any]) -> Any:
    value = await make()
    while type(value) not in _PLAIN and inspect.isawaitable(value):
        value = await value
    return value


async def _kept(make: Callable[[], Any]) -> StepOutcome:
    """The outcome as a value: a task that ends with SystemExit would take its loop down."""
    task = asyncio.current_task()
    try:
        return StepOutcome("done", await _fully(make))
    except asyncio.CancelledError as error:
        return StepOutcome("cancelled", error=error)
    except BaseException as error:
        if is_ctrl_c(error) or (isinstance(error, GeneratorExit) and not _is_at_work(task)):
            raise
        return StepOutcome("failed", error=error)


async def _await_within(
    make: Callable[[], Any],
    step: Step,
    info: CurrentStep,
    workers: WorkerPool,
    cancellation: Cancellation,
    timeout: float,
) -> StepOutcome:
    """Await in a task of its own, so that one which does not obey its cancellation can be left behind."""
    task = asyncio.create_task(_kept(make), name=f"troth {_title(step, info)}")
    cancellation.enter(task)
    began_at = time.monotonic()
    try:
        await asyncio.wait([task], timeout=timeout)
    except asyncio.CancelledError:
        is_ended = await _end(task, step, workers.grace)
        if is_ended and not task.cancelled() and (outcome := task.result()).ended == "done":
            raise CancelledAfterError(outcome) from None
        raise
    finally:
        cancellation.leave(task)
    took = time.monotonic() - began_at
    if not task.done():
        is_ended = await _end(task, step, workers.grace)
        return StepOutcome(
            "timeout", error=_timeout(step, "it was cancelled" if is_ended else "it ignores its cancellation")
        )
    outcome = task.result() if not task.cancelled() else StepOutcome("cancelled")
    if outcome.ended == "cancelled" and not cancellation.is_asked:
        return StepOutcome("failed", error=outcome.error)
    if outcome.ended == "done" and took > timeout:
        return StepOutcome(
            "late", error=_timeout(step, f"it returned after {took:.3g} s, during which it blocked the loop")
        )
    return outcome


async def _end(task: "asyncio.Task[StepOutcome]", step: Step, grace: float) -> bool:
    """Cancel `task` and give it `grace` seconds. One that goes on all the same is left behind, kept and named.

    Our own cancellation meanwhile does not shorten them: it is raised when they are over.
    """
    cancelled: asyncio.CancelledError | None = None
    deadline = time.monotonic() + grace
    if not task.done():
        task.cancel()
    while not task.done() and (remaining := deadline - time.monotonic()) > 0:
        try:
            await asyncio.wait([task], timeout=remaining)
        except asyncio.CancelledError as error:
            cancelled = error
    if not task.done():
        _abandoned_tasks.add(task)
        task.add_done_callback(_abandoned_tasks.discard)
        log.warning(
            "Step %r ignores its cancellation; its task continues, and its result is ignored (%d such tasks).",
            step.name,
            len(_abandoned_tasks),
        )
    if cancelled is not None:
        raise cancelled
    return task.done()


def _timeout(step: Step, fate: str) -> StepTimeoutError:
    return StepTimeoutError(
        f"Step {step.name!r} did not return within {step.timeout:g} s; {fate}. Whether its effect happened is unknown.",
        step.timeout,
    )


def _lossless(outcome: StepOutcome, step: Step, losses: tuple[str, ...]) -> StepOutcome:
    if outcome.ended != "done":
        return outcome
    return StepOutcome(
        "lost",
        error=LostCoroutineError(
            f"Step {step.name!r} returned, but lost {'what it began' if len(losses) == 1 else 'several things'}: "
            f"{', '.join(losses)}.\n"
            "That part never happened, so the step is not recorded as done. Await the call, "
            "or pass it to a task that is awaited."
        ),
    )


def _title(step: Step, info: CurrentStep) -> str:
    return f"step {step.name!r} of run {info.run_id!r}"
