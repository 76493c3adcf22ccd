"""A worker thread that async code sent, and async code calling either color."""

import asyncio
import contextvars
import threading
import time

from stage import raised, row

from troth import bridge

VAR = contextvars.ContextVar("VAR", default="unset")
WORKERS = ["troth-worker"]
OF_TRIO = ["Trio thread"]  # kept by trio for its next calls


async def double(number):
    await asyncio.sleep(0.001)
    return number * 2


@row(
    "in a worker of bridge.call: back to the loop that sent it, as explained",
    sees=[4, "HOME", False, True, True],
    left=WORKERS,
)
def home_of_a_call():
    async def main():
        home = asyncio.get_running_loop()

        async def where(number):
            return await double(number), asyncio.get_running_loop() is home

        def work():
            before = bridge.explain()
            result, is_home = bridge.run(where, 2)
            return [result, before.way.name, before.blocks_loop, before == bridge.explain(last=True), is_home]

        return await bridge.call(work)

    return asyncio.run(main())


@row("in a worker of anyio: back to the loop that sent it", sees=[4, "HOME", True], needs=["anyio"])
def home_of_anyio():
    import anyio

    async def main():
        home = asyncio.get_running_loop()

        async def where():
            return asyncio.get_running_loop() is home

        def work():
            return [bridge.run(double, 2), bridge.explain().way.name, bridge.run(where)]

        return await anyio.to_thread.run_sync(work)

    return asyncio.run(main())


@row("in a worker of anyio on trio: a loop of its own", sees=[4, "OWN_LOOP"], left=["Trio"], needs=["anyio", "trio"])
def home_of_anyio_on_trio():
    import anyio

    def work():
        return [bridge.run(double, 2), bridge.explain().way.name]

    return anyio.run(anyio.to_thread.run_sync, work, backend="trio")


@row("in a worker of asyncio.to_thread, which does not say who sent it: a loop of its own", sees=[4, "OWN_LOOP"])
def worker_of_to_thread():
    def work():
        return [bridge.run(double, 2), bridge.explain().way.name]

    return asyncio.run(asyncio.to_thread(work))


def cancelled_inside(send, cancel, cleanup=0.01):
    """Send a worker that waits for a coroutine, cancel the sender, and say what each of them saw."""
    log = []

    async def inner():
        started.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            log.append("coroutine")
            raise
        finally:
            if cleanup:
                await asyncio.sleep(cleanup)
            log.append("finally")

    def work():
        try:
            bridge.run(inner)
        except asyncio.CancelledError:
            log.append("worker")
            raise

    async def main():
        nonlocal started
        started = asyncio.Event()
        await cancel(send, work, started)
        for _ in range(100):
            if "worker" in log:
                break
            await asyncio.sleep(0.01)
        return log

    started = None
    return asyncio.run(main())


async def cancel_task(send, work, started):
    task = asyncio.create_task(send(work))
    await started.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def cancel_scope(send, work, started):
    import anyio

    async with anyio.create_task_group() as group:
        group.start_soon(send, work)
        await started.wait()
        group.cancel_scope.cancel()


@row(
    "cancelling the task that sent the worker reaches the coroutine",
    sees=["coroutine", "finally", "worker"],
    left=WORKERS,
)
def cancel_reaches_from_call():
    return cancelled_inside(bridge.call, cancel_task)


@row("… the same for a task waiting in anyio.to_thread", sees=["coroutine", "finally", "worker"], needs=["anyio"])
def cancel_reaches_from_anyio():
    import anyio

    return cancelled_inside(anyio.to_thread.run_sync, cancel_task)


@row("… for an anyio scope around bridge.call", sees=["coroutine", "finally", "worker"], left=WORKERS, needs=["anyio"])
def scope_reaches_from_call():
    return cancelled_inside(bridge.call, cancel_scope)


@row("… and for an anyio scope around anyio.to_thread", sees=["coroutine", "finally", "worker"], needs=["anyio"])
def scope_reaches_from_anyio():
    import anyio

    return cancelled_inside(anyio.to_thread.run_sync, cancel_scope, cleanup=0)  # anyio cancels every await in a scope


@row(
    "asyncio.timeout around bridge.call ends what the worker waits for", sees=["TimeoutError", ["closed"]], left=WORKERS
)
def outer_timeout_reaches():
    log = []

    async def inner():
        try:
            await asyncio.sleep(30)
        finally:
            log.append("closed")

    async def main():
        async with asyncio.timeout(0.1):
            await bridge.call(bridge.run, inner)

    return [raised(asyncio.run, main()), log]


@row("a timeout of its own reaches the coroutine on the home loop", sees=["RunTimeoutError", ["closed"]], left=WORKERS)
def timeout_at_home():
    log = []

    async def slow():
        try:
            await asyncio.sleep(30)
        finally:
            log.append("closed")

    async def main():
        return await bridge.call(lambda: raised(bridge.run, slow, timeout=0.05))

    return [asyncio.run(main()), log]


@row(
    "exceptions at home come out as themselves, and the loop lives on",
    sees=["ValueError", "KeyboardInterrupt", "SystemExit", "ExceptionGroup", 4],
    left=WORKERS,
)
def exceptions_at_home():
    async def fail(error):
        raise error

    def work():
        errors = [ValueError(), KeyboardInterrupt(), SystemExit(1), ExceptionGroup("g", [ValueError()])]
        return [raised(bridge.run, fail, error) for error in errors]

    async def main():
        return [*await bridge.call(work), await double(2)]

    return asyncio.run(main())


@row(
    "context variables travel to the thread, to the home loop, and all the way back",
    sees=["sent", "thread", "home"],
    left=WORKERS,
)
def context_through_a_worker():
    async def at_home():
        seen = VAR.get()
        VAR.set("home")
        return seen

    def work():
        seen = VAR.get()
        VAR.set("thread")
        return [seen, bridge.run(at_home)]

    async def main():
        VAR.set("sent")
        return [*await bridge.call(work), VAR.get()]

    return asyncio.run(main())


@row("nested through workers, 60 deep, past the bound on threads at work", sees=60, left=WORKERS)
def nested_through_workers():
    async def descend(level):
        if not level:
            return 0
        return await bridge.call(lambda: bridge.run(descend, level - 1)) + 1

    return asyncio.run(descend(60))


@row("forty workers that each need another one do not starve", sees=[60, True], left=WORKERS)
def workers_that_need_workers():
    async def inner():
        await bridge.call(time.sleep, 0.01)
        return 1

    async def main():
        results = await asyncio.gather(*(bridge.call(lambda: bridge.run(inner)) for _ in range(60)))
        return [sum(results), threading.active_count() <= 2 * 60 + 1]

    return asyncio.run(main())


@row("no more than forty functions run at a time", sees=[100, True], left=WORKERS)
def bounded_workers():
    running, most, lock = 0, 0, threading.Lock()

    def work():
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1
        return 1

    async def main():
        return sum(await asyncio.gather(*(bridge.call(work) for _ in range(100))))

    return [asyncio.run(main()), 1 < most <= 40]


@row("every kind of callable, and whatever comes back is awaited", sees=[2, 2, 2, 2, 2, 2, 2, 2], left=WORKERS)
def every_kind_of_callable():
    from functools import lru_cache, partial
    from unittest.mock import AsyncMock, MagicMock

    class AsyncCallable:
        async def __call__(self, number):
            return number

    class Promise:
        def __init__(self, number):
            self.number = number

        def __await__(self):
            yield from asyncio.sleep(0).__await__()
            return self.number

    async def same(number):
        return number

    async def main():
        kinds = [
            same,
            lambda number: number,
            lambda number: same(number + 0),
            partial(partial(same)),
            AsyncCallable(),
            Promise,
            lru_cache(same),  # troth: allow cached-coroutine
            MagicMock(side_effect=same),
        ]
        assert await bridge.call(AsyncMock(return_value=2)) == 2
        return [await bridge.call(kind, 2) for kind in kinds]

    return asyncio.run(main())


@row(
    "what is not callable is a TypeError, and a coroutine given by mistake is closed",
    sees=["NotRunnableError", "NotRunnableError"],
)
def call_of_the_wrong_kind():
    async def main(kind):
        await bridge.call(kind)

    return [raised(asyncio.run, main(kind)) for kind in (42, double(1))]


@row(
    "StopIteration from a worker is an error, not a hang; other exceptions are themselves",
    sees=["RuntimeError", "StopIteration", "SystemExit", "KeyError"],
    left=WORKERS,
)
def stop_iteration_from_a_worker():
    async def main(work, *args):
        await bridge.call(work, *args)

    try:
        asyncio.run(main(next, iter([])))
    except RuntimeError as error:
        seen = [type(error).__name__, type(error.__cause__).__name__]
    return [*seen, raised(asyncio.run, main(exec, "raise SystemExit(1)")), raised(asyncio.run, main({}.__getitem__, 1))]


@row("thread=False stays on the loop's thread, an async function always does", sees=[True, True, False], left=WORKERS)
def on_the_loops_thread():
    async def where():
        return threading.get_ident()

    async def main():
        here = threading.get_ident()
        return [
            await bridge.call(threading.get_ident, thread=False) == here,
            await bridge.call(where) == here,
            await bridge.call(threading.get_ident) == here,
        ]

    return asyncio.run(main())


@row("the loop stays live while a worker works", sees=True, left=WORKERS)
def loop_stays_live():
    async def main():
        beats = 0
        work = asyncio.create_task(bridge.call(time.sleep, 0.3))
        while not work.done():
            beats += 1
            await asyncio.sleep(0.01)
        return beats > 10

    return asyncio.run(main())


@row("bridge.call under trio", sees=[2, 4, "back"], left=["Trio"], needs=["trio"])
def call_under_trio():
    import trio

    def work(number):
        VAR.set("back")
        return number * 2

    async def trio_double(number):
        await trio.sleep(0)
        return number * 2

    async def main():
        return [await bridge.call(work, 1), await bridge.call(lambda: trio_double(2)), VAR.get()]

    return trio.run(main)


@row("a home loop that stopped while the worker waited is an error, not a hang", sees=["LoopGoneError"], left=WORKERS)
def home_loop_stops():
    seen = []
    loop = asyncio.new_event_loop()

    def work():
        seen.append(raised(bridge.run, asyncio.sleep, 30))

    sender = loop.create_task(bridge.call(work))
    loop.call_later(0.1, loop.stop)
    loop.run_forever()
    for _ in range(100):
        if seen:
            break
        time.sleep(0.05)
    loop.run_until_complete(asyncio.wait([sender]))
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left))
    loop.close()
    return seen


@row(
    "a home loop that is held up is reported, and deadlock_after makes it an error",
    sees=["DeadlockError"],
    tells=["BlockedLoopWarning", "has been blocked since", "worker.py"],
    left=WORKERS,
)
def home_loop_is_held_up():
    seen = []
    begun, ended = threading.Event(), threading.Event()

    def work():
        begun.wait()
        seen.append(raised(bridge.run, double, 1, deadlock_after=1.6))
        ended.set()

    async def main():
        task = asyncio.create_task(bridge.call(work))
        await asyncio.sleep(0.05)
        begun.set()
        ended.wait(10)
        await task

    asyncio.run(main())
    return seen


@row(
    "a fork in a worker thread: the child has no home, and works on a loop of its own",
    sees=[4, "OWN_LOOP"],
    left=WORKERS,
)
def fork_in_a_worker():
    import os

    def work():
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writing, repr([bridge.run(double, 2), bridge.explain().way.name]).encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        return eval(os.read(reading, 100))

    import warnings

    warnings.simplefilter("ignore", DeprecationWarning)  # from 3.12 on: a fork with threads about
    return asyncio.run(bridge.call(work))


def in_trio_thread(work, **options):
    """Send `work` to a worker thread of trio, cancel its scope once it has begun, and say whether it ended there."""
    import trio

    begun = threading.Event()

    async def main():
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda: trio.to_thread.run_sync(work, begun, **options))
                await trio.to_thread.run_sync(begun.wait)
                scope.cancel()
        return scope.cancelled_caught

    return trio.run(main)


async def waiting(begun, seen):
    begun.set()
    try:
        await asyncio.sleep(60)
    finally:
        seen.append("finally")


@row(
    "under trio, a cancelled scope reaches what its worker thread waits for",
    sees=[True, ["finally"]],
    needs=["trio"],
    left=OF_TRIO,
)
def cancelled_by_trio():
    seen = []
    return [in_trio_thread(lambda begun: bridge.run(waiting, begun, seen)), seen]


@row(
    "under trio, a cancelled scope reaches a coroutine that never idles, and one on a portal",
    sees=[True, True, ["finally", "finally"]],
    needs=["trio"],
    left=OF_TRIO,
)
def cancelled_by_trio_elsewhere():
    seen = []

    async def busy(begun):
        begun.set()
        try:
            while True:
                await asyncio.sleep(0)
        finally:
            seen.append("finally")

    with bridge.Portal() as portal:
        return [
            in_trio_thread(lambda begun: bridge.run(busy, begun)),
            in_trio_thread(lambda begun: portal.run(waiting, begun, seen)),
            seen,
        ]


@row(
    "under trio, what a finally block of the thread runs after a cancellation goes on to its end",
    sees=[True, ["finally", "cleaned"]],
    needs=["trio"],
    left=OF_TRIO,
)
def cancelled_by_trio_once():
    seen = []

    async def clean():
        await asyncio.sleep(0.2)  # several questions to trio
        seen.append("cleaned")

    def work(begun):
        try:
            bridge.run(waiting, begun, seen)
        finally:
            bridge.run(clean)

    return [in_trio_thread(work), seen]
