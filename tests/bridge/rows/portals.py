"""A portal: one loop in a thread of its own."""

import asyncio
import contextvars
import gc
import os
import threading
import time

from plain import Falsy, raising, wrong_kinds
from stage import raised, row

from troth import bridge

VAR = contextvars.ContextVar("VAR", default="unset")
PORTAL = ["troth-portal"]
KEPT = []


async def double(number):
    await asyncio.sleep(0.001)
    return number * 2


@row("runs functions and coroutines, from no loop and from inside one, on one loop", sees=[4, 6, 8, True, 2])
def portal_runs():
    async def where():
        return asyncio.get_running_loop()

    with bridge.Portal() as portal:

        async def inside():
            return portal.run(double, 4), portal.run(where)

        eight, loop = asyncio.run(inside())
        return [
            portal.run(double, 2),
            portal.run(double(3)),
            eight,
            loop is portal.run(where),
            threading.active_count(),
        ]


@row("one client is shared by many threads", sees=[40, 1, 2])
def shared_by_threads():
    class Client:
        def __init__(self):
            self.lock = asyncio.Lock()
            self.loops = set()
            self.total = 0

        async def add(self):
            async with self.lock:
                self.loops.add(asyncio.get_running_loop())
                before = self.total
                await asyncio.sleep(0)
                self.total = before + 1

    with bridge.Portal() as portal:
        client = Client()
        threads = [threading.Thread(target=lambda: [portal.run(client.add) for _ in range(5)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        return [client.total, len(client.loops), threading.active_count()]


@row("background tasks go on between two calls", sees=True)
def background_goes_on():
    ticks = []

    async def tick():
        while True:
            ticks.append(1)
            await asyncio.sleep(0.005)

    async def start():
        return asyncio.create_task(tick())

    with bridge.Portal() as portal:
        task = portal.run(start)
        time.sleep(0.1)
        assert not task.done()
    return len(ticks) > 3


@row(
    "every exception comes out as itself and the portal lives on: SystemExit, KeyboardInterrupt, falsy, groups",
    sees=[True] * 6 + [4],
)
def portal_survives():
    errors = [
        ValueError(),
        Falsy(),
        KeyboardInterrupt(),
        SystemExit(2),
        asyncio.CancelledError(),
        BaseExceptionGroup("b", [SystemExit()]),
    ]
    same = []
    with bridge.Portal() as portal:
        for error in errors:
            try:
                portal.run(raising, error)
            except BaseException as caught:
                same.append(caught is error)
        return [*same, portal.run(double, 2)]


@row(
    "SystemExit in a background task does not end the portal either",
    sees=4,
    tells=["the portal continues", "SystemExit"],
)
def background_exit():
    async def leave():
        raise SystemExit(5)

    async def start():
        task = asyncio.create_task(leave())
        await asyncio.sleep(0)
        return task

    with bridge.Portal() as portal:
        portal.run(start)
        time.sleep(0.05)
        return portal.run(double, 2)


@row("what is no promise of work is a TypeError that names it", sees=[True] * 6)
def portal_wrong_kind():
    with bridge.Portal() as portal:
        return wrong_kinds(portal.run)


@row("a loop that cannot be made: its error comes out, the coroutine is closed", sees=["OSError", "OSError"])
def portal_without_a_loop():
    def refuse():
        raise OSError("no descriptors left")

    portal = bridge.Portal(loop_factory=refuse)
    return [raised(portal.run, double(2)), raised(portal.run, double, 2)]


@row("context variables go in, and changes come back", sees=["in", "out"])
def portal_context():
    async def change():
        seen = VAR.get()
        VAR.set("out")
        return seen

    VAR.set("in")
    with bridge.Portal() as portal:
        return [portal.run(change), VAR.get()]


@row("a timeout reaches the coroutine", sees=["RunTimeoutError", ["closed"]])
def portal_timeout():
    log = []

    async def slow():
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.01)
            log.append("closed")

    with bridge.Portal() as portal:
        return [raised(portal.run, slow, timeout=0.05), log]


@row("used from its own loop it nests, five deep, with one thread more", sees=[5, 2])
def portal_in_portal():
    with bridge.Portal() as portal:

        def descend(level):
            async def step():
                return descend(level - 1) + 1 if level else 0

            return portal.run(step)

        return [descend(5), threading.active_count()]


@row(
    "closing ends what runs there, with its finally; later calls are refused and closed",
    sees=["LoopGoneError", ["closed"], "PortalClosedError"],
)
def portal_close():
    log, seen = [], []
    started = threading.Event()

    async def slow():
        started.set()
        try:
            await asyncio.sleep(30)
        finally:
            log.append("closed")

    portal = bridge.Portal()
    thread = threading.Thread(target=lambda: seen.append(raised(portal.run, slow)))
    thread.start()
    started.wait(5)
    portal.close()
    thread.join(5)
    portal.close()
    return [*seen, log, raised(portal.run, double(1))]


@row("a portal that is dropped ends its thread", sees=[4, 1])
def portal_dropped():
    portal = bridge.Portal()
    result = portal.run(double, 2)
    del portal
    gc.collect()
    for _ in range(100):
        if threading.active_count() == 1:
            break
        time.sleep(0.02)
    return [result, threading.active_count()]


@row(
    "a portal never closed does not hold up the exit, nor does one with a task that never ends",
    sees=4,
    left=PORTAL,
    tasks=1,
)
def portal_never_closed():
    async def forever():
        while True:
            await asyncio.sleep(0.01)

    async def start():
        asyncio.create_task(forever())

    KEPT.append(bridge.Portal())
    KEPT[0].run(start)
    return KEPT[0].run(double, 2)


@row("… nor one whose coroutine blocks its thread", sees="waiting", left=PORTAL, tasks=1, limit=15)
def portal_blocked_at_exit():
    async def block():
        time.sleep(60)

    KEPT.append(bridge.Portal())
    thread = threading.Thread(target=lambda: raised(KEPT[0].run, block), daemon=True, name="troth-portal-caller")
    thread.start()
    time.sleep(0.2)
    return "waiting"


@row("a portal made before a fork works in the child, and still in the parent", sees=[6, 8], left=PORTAL)
def portal_after_fork():
    import warnings

    warnings.simplefilter("ignore", DeprecationWarning)  # from 3.12 on: a fork with threads about
    with bridge.Portal() as portal:
        portal.run(double, 1)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writing, str(portal.run(double, 3)).encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        return [int(os.read(reading, 10)), portal.run(double, 4)]


@row("strict refuses inside a running loop, closing the coroutine", sees="BlockedLoopError")
def portal_strict():
    with bridge.Portal() as portal:

        async def main():
            portal.run(double(1), strict=True)

        asyncio.run(main())


@row("a lock held on the caller's loop is a deadlock, not a hang", sees="DeadlockError")
def portal_deadlock():
    with bridge.Portal() as portal:

        async def main():
            lock = asyncio.Lock()
            await lock.acquire()
            portal.run(lock.acquire)

        asyncio.run(main())


@row("… and with another thread alive, deadlock_after says when", sees="DeadlockError")
def portal_deadlock_after():
    stop = threading.Event()
    threading.Thread(target=stop.wait, daemon=True).start()
    with bridge.Portal() as portal:

        async def main():
            portal.run(asyncio.Event().wait, deadlock_after=0.6)

        try:
            asyncio.run(main())
        finally:
            stop.set()


@row(
    "a loop blocked through a portal for a second is reported at the caller's line",
    sees="done",
    tells=["BlockedLoopWarning", "portals.py", "portal.run(slow)"],
)
def portal_blocks_a_loop():
    async def slow():
        await asyncio.sleep(1.8)
        return "done"

    with bridge.Portal() as portal:

        async def main():
            return portal.run(slow)

        return asyncio.run(main())


@row("waiting for a portal without a loop to block is nobody's business", sees="done")
def portal_long_wait():
    async def slow():
        await asyncio.sleep(1.2)
        return "done"

    with bridge.Portal() as portal:
        return portal.run(slow)


@row("cancelling the sender of a worker reaches a coroutine on a portal", sees=["closed"], left=["troth-worker"])
def cancel_reaches_a_portal():
    log = []
    started = threading.Event()

    async def slow():
        started.set()
        try:
            await asyncio.sleep(30)
        finally:
            log.append("closed")

    with bridge.Portal() as portal:

        async def main():
            task = asyncio.create_task(bridge.call(portal.run, slow))
            await asyncio.to_thread(started.wait, 5)
            task.cancel()
            await asyncio.wait([task])

        asyncio.run(main())
    return log


@row("a portal on uvloop", sees=[4, "Loop"], needs=["uvloop"])
def portal_on_uvloop():
    import uvloop

    async def which():
        return type(asyncio.get_running_loop()).__name__

    with bridge.Portal(loop_factory=uvloop.new_event_loop) as portal:
        return [portal.run(double, 2), portal.run(which)]


@row("ten threads hand over two thousand calls, none is slept through", sees=2000)
def portal_many_calls():
    async def one():
        return 1

    counts = []
    with bridge.Portal() as portal:
        threads = [
            threading.Thread(target=lambda: counts.append(sum(portal.run(one) for _ in range(200)))) for _ in range(10)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(15)
    return sum(counts)


@row("a portal with timers and sockets is woken just the same", sees=[4, "ping", 4])
def portal_with_io():
    import socket

    ours, theirs = socket.socketpair()

    async def read():
        reader, writer = await asyncio.open_connection(sock=ours)
        data = await reader.readexactly(4)
        writer.close()
        return data.decode()

    with bridge.Portal() as portal:
        threading.Timer(0.1, theirs.send, (b"ping",)).start()
        seen = [portal.run(double, 2), portal.run(read), portal.run(double, 2)]
        theirs.close()
        return seen


@row("two portals that wait for each other are a deadlock, not a hang", sees="DeadlockError", limit=15)
def portals_in_a_circle():
    import warnings

    warnings.simplefilter("ignore", bridge.BlockedLoopWarning)
    with bridge.Portal() as one, bridge.Portal() as other:

        async def back():
            return one.run(double, 1)

        async def there():
            return other.run(back)

        return one.run(there)


@row("a timeout ends the wait even if the portal's loop is held up", sees="RunTimeoutError", limit=15)
def portal_held_up():
    async def block():
        time.sleep(3)

    with bridge.Portal() as portal:
        return portal.run(block, timeout=0.3)
