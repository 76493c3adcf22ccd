"""Drive a conducted run: two short loops around one generator, one that blocks and one that awaits."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Protocol

from troth import bridge
from troth.runtime.engine.interpreter.branch import RunInProgress
from troth.runtime.engine.interpreter.effects import Commit, Effect, Effects, Encode, Fan, Invoke, Launch, Listen, Pause
from troth.runtime.engine.invoke.invocation import acall, call
from troth.runtime.engine.invoke.worker_pool import WorkerPool
from troth.runtime.store import Store
from troth.runtime.store.large_values import keep_well

__all__ = ["Driven", "adrive", "drive"]

_SLICE = 15.0  # seconds after which somebody who waits for a moment looks at the clock again
_BREATH = 0.005  # seconds after which a task that never had to wait lets the others run


class Driven(Protocol):
    """What a driver needs of the one who owns the run."""

    store: Store
    workers: WorkerPool
    run: RunInProgress

    def launch(self, run_id: str) -> None:
        """Begin to work on another run, beside this one."""

    def listen(self, topic: str) -> None:
        """Ring the run's bell for news of `topic` too."""

    def is_alone(self) -> bool:
        """Whether no other run is being driven, so that nobody else is about to commit."""


def drive(acts: Effects, driven: Driven, answer: Any = None) -> Any:
    """Perform what `acts` asks for on this thread, blocking, until it returns. `answer` is what it is sent first."""
    store = driven.store
    error: BaseException | None = None
    while True:
        try:
            act = acts.send(answer) if error is None else acts.throw(error)
        except StopIteration as end:
            return end.value
        answer = error = None
        try:
            if type(act) is Commit:
                answer = store.commit(act.point, act.work)
            elif type(act) is Invoke:
                answer = call(act.step, act.info, driven.workers, act.cancellation)
            else:
                answer = _perform(act, driven)
        except BaseException as raised:  # noqa: BLE001  it belongs to whoever conducts, Ctrl-C included
            error = raised


def _perform(act: Effect, driven: Driven) -> Any:
    if type(act) is Pause:
        return _pause(act, driven.run)
    if type(act) is Encode:
        return keep_well(act.value, act.what)
    if type(act) is Fan:
        return bridge.run(_afan(act, driven))  # several at once is what a loop is for; sync steps go to threads
    return _tell(act, driven)


async def adrive(acts: Effects, driven: Driven) -> Any:
    """Perform what `acts` asks for in this task, until it returns. It differs from `drive` by its awaits."""
    answer: Any = None
    error: BaseException | None = None
    breathe_at = monotonic() + _BREATH
    store = driven.store
    while True:
        try:
            act = acts.send(answer) if error is None else acts.throw(error)
        except StopIteration as end:
            return end.value
        answer = error = None
        try:
            if type(act) is Commit:
                is_short = not act.is_large and monotonic() < breathe_at and driven.is_alone()
                committed = store.commit_at_once(act.work) if is_short else None
                if committed is None:
                    # A breath is taken here and nowhere else: cancelled while it waits, a commit is made all the same,
                    # so what a step has done is recorded before the run is let go of.
                    answer = await store.acommit(act.point, act.work, is_large=act.is_large)
                    breathe_at = monotonic() + _BREATH
                else:
                    answer = committed[0]
            elif type(act) is Invoke:
                answer = await acall(act.step, act.info, driven.workers, act.cancellation)
            else:
                answer = await _aperform(act, driven)
        except BaseException as raised:  # noqa: BLE001  it belongs to whoever conducts, cancellation included
            error = raised


async def _aperform(act: Effect, driven: Driven) -> Any:
    if type(act) is Pause:
        return await _apause(act, driven.run)
    if type(act) is Encode:
        return await asyncio.to_thread(keep_well, act.value, act.what)
    if type(act) is Fan:
        return await _afan(act, driven)
    return _tell(act, driven)


def _tell(act: Effect, driven: Driven) -> None:
    if isinstance(act, Launch):
        driven.launch(act.run_id)
    elif isinstance(act, Listen):
        driven.listen(act.topic)


async def _afan(act: Fan, driven: Driven) -> list[Any]:
    """Drive branches side by side. What ends one of them other than by its decision ends them all."""
    gate = asyncio.Semaphore(act.limit or max(len(act.branches), 1))

    async def one(branch: Effects) -> Any:
        async with gate:
            return await adrive(branch, driven)

    tasks = [asyncio.create_task(one(branch)) for branch in act.branches]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        await _end(tasks)
        raise
    finally:
        for branch in act.branches:
            branch.close()


async def _end(tasks: "Sequence[asyncio.Task[Any]]") -> None:
    """Cancel `tasks` and wait for them all, however often we are cancelled ourselves: none is left behind."""
    for task in tasks:
        task.cancel()
    while unfinished := [task for task in tasks if not task.done()]:
        with contextlib.suppress(asyncio.CancelledError):  # whoever called us is on the way out with an error already
            await asyncio.wait(unfinished)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # the first one is what we end with; this marks the others as seen


def _pause(act: Pause, run: RunInProgress) -> bool:
    """Wait in slices: a clock that is set, or a machine that slept, moves the moment and not the waiting."""
    while not run.bell.wait(act.seen, _slice(act, run.clock)):
        if act.until is not None and run.clock() >= act.until:
            return False
    return True


async def _apause(act: Pause, run: RunInProgress) -> bool:
    while not await run.bell.await_ring(act.seen, _slice(act, run.clock)):
        if act.until is not None and run.clock() >= act.until:
            return False
    return True


def _slice(act: Pause, clock: Callable[[], float]) -> float | None:
    return None if act.until is None else min(_SLICE, max(0.0, act.until - clock()))
