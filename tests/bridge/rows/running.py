"""A loop runs in the calling thread: asyncio, uvloop, trio."""

import asyncio
import contextvars
import os
import signal
import threading
import time

from stage import raised, row

from troth import bridge

VAR = contextvars.ContextVar("VAR", default="unset")


async def double(number):
    await asyncio.sleep(0.001)
    return number * 2


def same_as_recorded(work, *args):
    """Run, and say whether the explanation given before is what was recorded."""
    before = bridge.explain()
    result = bridge.run(work, *args)
    return [result, before.way.name, before.blocks_loop, before == bridge.explain(last=True) == bridge.explain()]


@row(
    "inside asyncio.run: stacked, as explained, and the loop below goes on after",
    sees=[[4, "STACKED", True, True], True, 6],
)
def inside_asyncio():
    async def main():
        task = asyncio.current_task()
        seen = same_as_recorded(double, 2)
        same_task = asyncio.current_task() is task
        return [seen, same_task, await double(3)]

    return asyncio.run(main())


@row("in a callback, where there is a loop but no task", sees=[4])
def inside_a_callback():
    async def main():
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        loop.call_soon(lambda: done.set_result(bridge.run(double, 2)))
        return [await done]

    return asyncio.run(main())


@row("inside uvloop", sees=[4, "STACKED", True, True], needs=["uvloop"])
def inside_uvloop():
    import uvloop

    async def main():
        return same_as_recorded(double, 2)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


@row(
    "inside trio an asyncio coroutine runs, anyio in it knows where it is, and trio goes on",
    sees=[[4, "STACKED", True, True], "asyncio", "trio"],
    needs=["trio", "anyio"],
)
def inside_trio():
    import anyio
    import sniffio
    import trio

    async def which():
        await anyio.sleep(0.001)
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 0.001)
        return sniffio.current_async_library()

    bridge.run(which)  # anyio loads its backend when it is first used

    async def main():
        seen = same_as_recorded(double, 2)
        inner = bridge.run(which)
        await trio.sleep(0.001)
        return [seen, inner, sniffio.current_async_library()]

    return trio.run(main)


@row("in a worker thread of trio: a loop of its own", sees=[4, "OWN_LOOP", False, True], left=["Trio"], needs=["trio"])
def inside_a_trio_worker():
    import trio

    return trio.run(trio.to_thread.run_sync, same_as_recorded, double, 2)


@row(
    "with a greenback portal: in the task itself, the loop stays live, and cancelling reaches it",
    sees=[[4, "GREENBACK", False, True], True, "cancelled", "RunTimeoutError"],
    needs=["greenback"],
)
def with_greenback():
    import greenback

    async def main():
        await greenback.ensure_portal()
        seen = same_as_recorded(double, 2)
        beats = 0

        async def beat():
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0.005)

        heart = asyncio.create_task(beat())
        bridge.run(asyncio.sleep, 0.1)
        heart.cancel()

        async def cancelled():
            await greenback.ensure_portal()
            try:
                bridge.run(asyncio.sleep, 30)
            except asyncio.CancelledError:
                return "cancelled"

        task = asyncio.create_task(cancelled())
        await asyncio.sleep(0.02)
        task.cancel()
        return [seen, beats > 3, await task, raised(bridge.run, asyncio.sleep, 30, timeout=0.02)]

    return asyncio.run(main())


@row(
    "greenback imported but not set up in this task changes nothing",
    sees=[4, "STACKED", True, True],
    needs=["greenback"],
)
def greenback_not_set_up():
    import greenback  # noqa: F401

    async def main():
        return same_as_recorded(double, 2)

    return asyncio.run(main())


@row("inside an eager task", sees=[4, 6])
def inside_an_eager_task():
    async def work():
        return bridge.run(double, 2)

    async def main():
        loop = asyncio.get_running_loop()
        if hasattr(asyncio, "eager_task_factory"):
            loop.set_task_factory(asyncio.eager_task_factory)
        return [await asyncio.create_task(work()), await double(3)]

    return asyncio.run(main())


@row("an eager task factory set by the coroutine itself", sees=[2, 2])
def eager_inside():
    async def work():
        if hasattr(asyncio, "eager_task_factory"):
            asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        return await asyncio.create_task(double(1))

    return [bridge.run(work), bridge.run(work)]


@row("nesting across stacked loops, 20 deep, in one thread", sees=[20, 1])
def nested_in_a_running_loop():
    def descend(level):
        async def step():
            await asyncio.sleep(0)
            return descend(level - 1) + 1 if level else 0

        return bridge.run(step)

    async def main():
        return [descend(20), threading.active_count()]

    return asyncio.run(main())


@row("context variables and thread-locals are shared both ways", sees=["in", "out", "local"])
def context_in_a_running_loop():
    local = threading.local()
    local.value = "local"

    async def change():
        seen = VAR.get()
        VAR.set("out")
        return seen, local.value

    async def main():
        VAR.set("in")
        seen, value = bridge.run(change)
        return [seen, VAR.get(), value]

    return asyncio.run(main())


@row("a sync section stays atomic: five of five updates are kept", sees=5)
def sync_section_stays_atomic():
    total = 0

    def update():
        nonlocal total
        before = total
        bridge.run(asyncio.sleep, 0.01)
        total = before + 1

    async def worker():
        update()

    async def main():
        await asyncio.gather(*(worker() for _ in range(5)))
        return total

    return asyncio.run(main())


@row("strict refuses at once, names the line, and closes the coroutine", sees=["BlockedLoopError", True, True, True])
def strict_refuses():
    import inspect

    ran = []

    async def work():
        ran.append(1)

    async def main():
        made = work()
        try:
            bridge.run(made, strict=True)
        except bridge.BlockedLoopError as error:
            named = "running.py" in str(error)
            closed = inspect.getcoroutinestate(made) == inspect.CORO_CLOSED
            return [type(error).__name__, named, closed, ran == []]

    return asyncio.run(main())


@row("strict is no obstacle where no loop is blocked", sees=4)
def strict_without_a_loop():
    return bridge.run(double, 2, strict=True)


@row(
    "a loop blocked for a second is reported at the caller's line",
    sees="done",
    tells=["BlockedLoopWarning", "running.py", "bridge.run(slow)", "blocked the event loop"],
)
def blocked_loop_is_reported():
    async def slow():
        await asyncio.sleep(1.2)
        return "done"

    async def main():
        return bridge.run(slow)

    return asyncio.run(main())


@row(
    "… once per line, and as an error where warnings are errors, with the finally run",
    sees=["BlockedLoopWarning", ["closed"]],
    flags=["-W", "error::RuntimeWarning"],
)
def blocked_loop_as_an_error():
    log = []

    async def slow():
        try:
            await asyncio.sleep(30)
        finally:
            log.append("closed")

    async def main():
        return raised(bridge.run, slow)

    return [asyncio.run(main()), log]


@row("a lock held on the loop below is a deadlock that names both sides", sees=["DeadlockError", True, True])
def held_lock_is_a_deadlock():
    async def main():
        lock = asyncio.Lock()
        await lock.acquire()

        async def need():
            async with lock:
                return

        try:
            bridge.run(need)
        except bridge.DeadlockError as error:
            return [type(error).__name__, str(error).count("running.py") == 2, "need" in str(error)]

    return asyncio.run(main())


@row("… also with idle worker threads and an idle portal of ours about", sees="DeadlockError", left=["troth-"])
def deadlock_among_our_own_threads():
    portal = bridge.Portal()

    async def main():
        await asyncio.gather(*(bridge.call(time.sleep, 0.01) for _ in range(3)))
        portal.run(double, 1)
        bridge.run(asyncio.to_thread, time.sleep, 0.01)
        bridge.run(asyncio.Event().wait)

    asyncio.run(main())


@row("a future of the loop below is a deadlock, said at once", sees="DeadlockError")
def future_of_the_loop_below():
    async def main():
        started = time.monotonic()
        try:
            bridge.run(asyncio.get_running_loop().create_future())
        finally:
            assert time.monotonic() - started < 0.9

    asyncio.run(main())


@row(
    "a wait for another thread is no deadlock, only reported",
    sees="woken",
    tells=["BlockedLoopWarning", "no timer or I/O", "deadlock_after"],
)
def waiting_for_a_thread():
    async def wait():
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        threading.Timer(1.4, loop.call_soon_threadsafe, (woken.set_result, "woken")).start()
        return await woken

    async def main():
        return bridge.run(wait)

    return asyncio.run(main())


@row("… and deadlock_after turns it into an error", sees=["DeadlockError", ["closed"]])
def deadlock_after():
    log = []
    stop = threading.Event()
    other = threading.Thread(target=stop.wait)

    async def wait():
        try:
            await asyncio.Event().wait()
        finally:
            log.append("closed")

    async def main():
        return raised(bridge.run, wait, deadlock_after=0.3)

    other.start()
    try:
        return [asyncio.run(main()), log]
    finally:
        stop.set()
        other.join()


@row(
    "deadlock_after leaves alone what waits for a timer or for I/O", sees=["done", "ping"], tells=["BlockedLoopWarning"]
)
def deadlock_after_with_a_timer():
    import socket

    async def slow():
        await asyncio.sleep(1.1)
        return "done"

    async def read(reader):
        return (await reader.readexactly(4)).decode()

    async def main():
        ours, theirs = socket.socketpair()
        threading.Timer(1.1, theirs.send, (b"ping",)).start()

        async def talk():
            reader, writer = await asyncio.open_connection(sock=ours)
            try:
                return await read(reader)
            finally:
                writer.close()
                theirs.close()

        return [bridge.run(slow, deadlock_after=0.2), bridge.run(talk, deadlock_after=0.2)]

    return asyncio.run(main())


@row("a timeout reaches the coroutine inside a running loop", sees=["RunTimeoutError", ["closed"]])
def timeout_in_a_running_loop():
    log = []

    async def slow():
        try:
            await asyncio.sleep(30)
        finally:
            log.append("closed")

    async def main():
        return raised(bridge.run, slow, timeout=0.05)

    return [asyncio.run(main()), log]


@row(
    "KeyboardInterrupt and SystemExit raised inside leave the loop below intact",
    sees=["KeyboardInterrupt", "SystemExit", 4],
)
def exits_inside_a_running_loop():
    async def leave(error):
        raise error

    async def main():
        seen = [raised(bridge.run, leave, KeyboardInterrupt()), raised(bridge.run, leave, SystemExit(1))]
        return [*seen, await double(2)]

    return asyncio.run(main())


@row("run called by a finalizer in the middle of a loop", sees=[4])
def run_in_del():
    seen = []

    class Client:
        def __del__(self):
            seen.append(bridge.run(double, 2))

    async def main():
        Client()
        await asyncio.sleep(0)
        return seen

    return asyncio.run(main())


@row("anyio inside: task groups, worker threads, cancel scopes", sees=["thread", True], needs=["anyio"])
def anyio_inside():
    import anyio

    async def work():
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 0.001)
        with anyio.move_on_after(0.01) as scope:
            await anyio.sleep(30)
        return [await anyio.to_thread.run_sync(lambda: "thread"), scope.cancelled_caught]

    async def main():
        return bridge.run(work)

    bridge.run(work)  # anyio loads its backend when it is first used
    return asyncio.run(main())


@row("inside a loop, and never idle: signal handlers and timers have their turn", sees=[True, True])
def never_idle_inside():
    async def work():
        heard, loop = [], asyncio.get_running_loop()
        loop.call_later(0.001, heard.append, "timer")
        loop.add_signal_handler(signal.SIGUSR1, heard.append, "signal")
        os.kill(os.getpid(), signal.SIGUSR1)
        while len(heard) < 2:
            await asyncio.sleep(0)
        return ["timer" in heard, "signal" in heard]

    async def main():
        return bridge.run(work)

    return asyncio.run(main())
