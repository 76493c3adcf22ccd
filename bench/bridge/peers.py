"""The ways to call async code from sync code that are measured, each with what it can do.

A peer is made in a process of its own, and gives two functions: one to call where no loop runs, one inside a running
loop. None: it refuses there.
"""

import asyncio
import threading
from collections.abc import Callable

Call = Callable[[], object]
Peer = tuple[Call | None, Call | None]


async def work() -> int:
    return 1


def bridge_run() -> Peer:
    from troth import bridge

    return lambda: bridge.run(work), lambda: bridge.run(work)


def bridge_portal() -> Peer:
    from troth import bridge

    portal = bridge.Portal()
    return lambda: portal.run(work), lambda: portal.run(work)


def bridge_portal_uvloop() -> Peer:
    import uvloop

    from troth import bridge

    portal = bridge.Portal(loop_factory=uvloop.new_event_loop)
    return lambda: portal.run(work), lambda: portal.run(work)


def asyncio_run() -> Peer:
    return lambda: asyncio.run(work()), None


def thread_per_call() -> Peer:
    def call() -> object:
        result: list[int] = []
        thread = threading.Thread(target=lambda: result.append(asyncio.run(work())))
        thread.start()
        thread.join()
        return result[0]

    return call, call


def loop_thread() -> Peer:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()

    def call() -> object:
        return asyncio.run_coroutine_threadsafe(work(), loop).result()

    return call, call


def asgiref() -> Peer:
    from asgiref.sync import async_to_sync

    return async_to_sync(work), None


def anyio_run() -> Peer:
    import anyio

    return lambda: anyio.run(work), None


def anyio_portal() -> Peer:
    from anyio.from_thread import start_blocking_portal

    context = start_blocking_portal()
    portal = context.__enter__()
    # Before the interpreter waits for its threads: a portal of anyio that is left open hangs there.
    threading._register_atexit(context.__exit__, None, None, None)  # type: ignore[attr-defined]
    return lambda: portal.call(work), lambda: portal.call(work)


def nest_asyncio2() -> Peer:
    import nest_asyncio2 as nest

    nest.apply()
    loop = asyncio.new_event_loop()
    nest.apply(loop)
    return (
        lambda: loop.run_until_complete(work()),
        lambda: asyncio.get_running_loop().run_until_complete(work()),
    )


def greenback() -> Peer:
    import greenback as back

    return None, lambda: back.await_(work())


def synchronicity() -> Peer:
    from synchronicity import Synchronizer

    blocking = Synchronizer().create_blocking(work, "blocking_work", __name__)
    return blocking, blocking


PEERS: dict[str, Callable[[], Peer]] = {
    "bridge.run": bridge_run,
    "bridge.Portal": bridge_portal,
    "bridge.Portal, uvloop": bridge_portal_uvloop,
    "asyncio.run": asyncio_run,
    "thread per call": thread_per_call,
    "loop thread": loop_thread,
    "asgiref": asgiref,
    "anyio.run": anyio_run,
    "anyio portal": anyio_portal,
    "nest_asyncio2": nest_asyncio2,
    "greenback": greenback,
    "synchronicity": synchronicity,
}
