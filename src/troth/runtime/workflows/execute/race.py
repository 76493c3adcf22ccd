"""How branches race: when enough of them have succeeded, the others are let go.

What a branch is at is ended at once: an async call is cancelled, the thread of a sync one is given up, the wait before
another attempt, a sleep and a question end. That it was let go is recorded as how the step failed, so a replay goes the
same way. What the branch had done is undone like that of any member which does not count.
"""

import asyncio
import inspect
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from troth.color import Color
from troth.errors import RunError
from troth.runtime.engine.current_step import current_step
from troth.runtime.engine.errors import StepTimeoutError, ThreadsExhaustedError
from troth.runtime.engine.invoke.worker_pool import Job, WorkerPool
from troth.runtime.engine.retry import Retry
from troth.runtime.workflows.execute.non_retryable import is_final

log = logging.getLogger("troth.runtime")

__all__ = ["LET_GO", "LetGoError", "NotNeededError", "Race", "RacedRetry", "raced"]

_abandoned: "set[asyncio.Future[Any]]" = set()  # a task that nobody holds may vanish in the middle of its work
_chance = random.Random()  # noqa: S311  for jitter


class LetGoError(RunError):
    """Enough of the others had succeeded while this was at work. Its effect may be there, and is undone."""


class NotNeededError(RunError):
    """Enough of the others had succeeded before this began. It was not called."""


LET_GO = frozenset({LetGoError.__name__, NotNeededError.__name__})


@dataclass(slots=True, eq=False)
class Race:
    """Branches side by side, of which `needed` have to succeed."""

    needed: int
    won: int = 0
    waits: set[str] = field(default_factory=set)
    """Signals that branches wait for just now: they have to be told."""
    _decided: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_open(self) -> bool:
        """Whether more have to succeed."""
        return self.won < self.needed

    def score(self) -> None:
        """One more has succeeded. If that decides it, calls in flight are ended."""
        self.won += 1
        if not self.is_open:
            self._decided.set()

    async def decided(self) -> None:
        """Return once it is decided."""
        await self._decided.wait()


@dataclass(frozen=True, slots=True)
class RacedRetry(Retry):
    """A policy whose waits lie inside the attempts (see `raced`), where they can be ended."""

    @classmethod
    def of(cls, retry: Retry) -> "RacedRetry":
        """The same policy for a branch that races."""
        return cls(*(getattr(retry, field.name) for field in fields(Retry)))

    def covers(self, error: BaseException) -> bool:
        """Whether an attempt that ended with `error` is worth another one."""
        if isinstance(error, (LetGoError, NotNeededError, ThreadsExhaustedError)) or is_final(error):
            return False
        return Retry.covers(self, error)

    def wait_after(self, failed: int, chance: random.Random) -> float:  # noqa: ARG002
        """None: the next attempt waits itself."""
        return 0.0

    def wait_before(self, attempt: int) -> float:
        """Seconds that attempt number `attempt` waits before it calls."""
        return Retry.wait_after(self, attempt - 1, _chance) if attempt > 1 else 0.0


def raced(
    call: Callable[..., object],
    color: Color,
    races: Iterable[Race],
    retry: RacedRetry,
    timeout: float | None,
    workers: WorkerPool,
) -> Callable[..., Awaitable[object]]:
    """`call` for a branch of `races`: ended as soon as one of them is decided. Keeps the time itself."""
    running = tuple(races)

    async def work(**arguments: object) -> object:
        info = current_step()
        await _first(asyncio.sleep(retry.wait_before(info.attempt)), running, None, workers.grace)
        if not all(race.is_open for race in running):
            raise NotNeededError(f"{info.name!r} was not called: enough of the other branches had already succeeded.")
        awaitable = _in_thread(call, arguments, info.name, workers) if color is not Color.ASYNC else call(**arguments)
        end, value = await _first(_fully(awaitable), running, timeout, workers.grace)
        if end == "decided":
            raise LetGoError(f"{info.name!r} was cancelled: enough of the other branches succeeded.")
        if end == "timeout":
            raise StepTimeoutError(
                f"Step {info.name!r} did not return within {timeout:g} s. Whether its effect happened is unknown.",
                timeout,
            )
        return value

    return work


async def _fully(value: Any) -> object:
    while inspect.isawaitable(value):
        value = await value
    return value


async def _in_thread(
    call: Callable[..., object], arguments: dict[str, object], name: str, workers: WorkerPool
) -> object:
    job = workers.submit(Job(f"step {name!r}", partial(call, **arguments)))
    try:
        await job.await_done(None)
    except asyncio.CancelledError:
        if workers.abandon(job):
            raise
    if job.error is not None:
        error, job.error = job.error, None  # its traceback holds the job
        raise error
    return job.value


async def _first(
    work: Awaitable[object], races: tuple[Race, ...], timeout: float | None, grace: float
) -> tuple[str, object]:
    """What comes first: the end of `work`, which is then its value; a race that is decided; or the end of the time.

    A cancellation that finds `work` done is swallowed: the engine sees to it, once it has the answer.
    """
    at_work = asyncio.ensure_future(_ending_of(work))
    watches = [asyncio.ensure_future(race.decided()) for race in races]
    cancelled: asyncio.CancelledError | None = None
    try:
        await asyncio.wait([at_work, *watches], timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError as error:
        cancelled = error
    is_decided = any(watch.done() for watch in watches)
    was_done = at_work.done()
    cancelled = await _ended([at_work, *watches], grace) or cancelled
    if at_work.done() and not at_work.cancelled() and (was_done or cancelled is not None):
        value, raised = at_work.result()
        if raised is not None:
            raise raised
        return "done", value
    if cancelled is not None:
        raise cancelled
    return ("decided" if is_decided else "timeout"), None


async def _ended(tasks: "list[asyncio.Future[Any]]", grace: float) -> asyncio.CancelledError | None:
    """Cancel `tasks` and give them `grace` seconds. Answers the cancellation that came meanwhile, if one did."""
    cancelled: asyncio.CancelledError | None = None
    for task in tasks:
        task.cancel()
    until = asyncio.get_running_loop().time() + grace
    while pending := [task for task in tasks if not task.done()]:
        remaining = until - asyncio.get_running_loop().time()
        if remaining <= 0:
            break
        try:
            await asyncio.wait(pending, timeout=remaining)
        except asyncio.CancelledError as error:
            cancelled = error
    for task in pending:
        log.warning("A call that was let go ignores its cancellation; its task continues, and its result is ignored.")
        _abandoned.add(task)
        task.add_done_callback(_abandoned.discard)
    return cancelled


async def _ending_of(work: Awaitable[object]) -> tuple[object, BaseException | None]:
    """The ending as a value: a task that ends with SystemExit would take its loop down."""
    try:
        return await work, None
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return None, error
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  raised again where it is awaited
        return None, error
