"""Ctrl-C, sent by the test as a real signal."""

import asyncio
import threading
import time

from stage import raised, ready, row

from troth import bridge

LOG = []


async def wait():
    try:
        ready()
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.01)
        LOG.append("closed")


async def block():
    try:
        ready()
        time.sleep(60)
    finally:
        LOG.append("closed")


def seen(function, *args):
    return [raised(function, *args), LOG]


ENDED = ["KeyboardInterrupt", ["closed"]]


@row("no loop: the coroutine ends with its finally, and KeyboardInterrupt comes out", sees=ENDED, signals=1)
def ctrl_c_without_a_loop():
    return seen(bridge.run, wait)


@row("no loop, and the coroutine blocks in sync code: at once as well", sees=ENDED, signals=1)
def ctrl_c_in_blocking_code():
    return seen(bridge.run, block)


@row("under asyncio.run: one is enough", sees=ENDED, signals=1)
def ctrl_c_under_asyncio_run():
    async def main():
        bridge.run(wait)

    return seen(asyncio.run, main())


@row("under asyncio.run, blocking in sync code", sees=ENDED, signals=1)
def ctrl_c_blocking_under_asyncio_run():
    async def main():
        bridge.run(block)

    return seen(asyncio.run, main())


@row("under loop.run_until_complete", sees=ENDED, signals=1)
def ctrl_c_under_run_until_complete():
    async def main():
        bridge.run(wait)

    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        return seen(loop.run_until_complete, main())


@row("three loops deep", sees=ENDED, signals=1)
def ctrl_c_nested():
    async def middle():
        bridge.run(wait)

    async def main():
        bridge.run(middle)

    return seen(asyncio.run, main())


@row("under uvloop", sees=ENDED, signals=1, needs=["uvloop"])
def ctrl_c_under_uvloop():
    import uvloop

    async def main():
        bridge.run(wait)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return seen(runner.run, main())


@row("under trio", sees=ENDED, signals=1, needs=["trio"])
def ctrl_c_under_trio():
    import trio

    async def main():
        bridge.run(wait)

    return seen(trio.run, main)


@row("through a portal, no loop", sees=ENDED, signals=1)
def ctrl_c_through_a_portal():
    with bridge.Portal() as portal:
        return seen(portal.run, wait)


@row("through a portal under asyncio.run", sees=ENDED, signals=1)
def ctrl_c_through_a_portal_under_asyncio_run():
    with bridge.Portal() as portal:

        async def main():
            portal.run(wait)

        return seen(asyncio.run, main())


@row("while a worker waits for its home loop, under asyncio.run", sees=ENDED, signals=1, left=["troth-worker"])
def ctrl_c_with_a_worker():
    async def main():
        await bridge.call(bridge.run, wait)

    return seen(asyncio.run, main())


@row(
    "a coroutine that refuses to end: a second one always ends the wait",
    sees="KeyboardInterrupt",
    signals=2,
)
def ctrl_c_twice():
    async def stubborn():
        while True:
            try:
                ready()
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    bridge.run(stubborn)


@row("a handler of the user's own keeps its meaning", sees=["handled", "done"], signals=1)
def users_own_handler():
    import signal

    handled = []
    signal.signal(signal.SIGINT, lambda *_: handled.append("handled"))

    async def short():
        ready()
        while not handled:
            await asyncio.sleep(0.01)
        return "done"

    async def main():
        return bridge.run(short)

    return [*handled, asyncio.run(main())] if handled else [(result := asyncio.run(main())) and handled[0], result]


@row("afterwards Ctrl-C means what it meant before", sees=[True, True])
def handler_is_restored():
    import signal

    before = signal.getsignal(signal.SIGINT)
    bridge.run(asyncio.sleep, 0)
    with bridge.Portal() as portal:
        portal.run(asyncio.sleep, 0)

    async def main():
        inside = signal.getsignal(signal.SIGINT)
        bridge.run(asyncio.sleep, 0)
        return signal.getsignal(signal.SIGINT) is inside

    return [signal.getsignal(signal.SIGINT) is before, asyncio.run(main())]


@row("a KeyboardInterrupt the coroutine itself handles is handled", sees="handled", signals=1)
def handled_inside():
    async def careful():
        try:
            ready()
            time.sleep(60)
        except KeyboardInterrupt:
            return "handled"

    return bridge.run(careful)


@row("an iterator's source is closed", sees=["KeyboardInterrupt", ["closed"]], signals=1)
def ctrl_c_in_an_iterator():
    async def numbers():
        try:
            yield 1
            ready()
            await asyncio.sleep(60)
        finally:
            LOG.append("closed")

    return seen(list, bridge.iterate(numbers()))


@row("other threads go on with their own runs", sees=["KeyboardInterrupt", ["closed"], 2], signals=1)
def other_threads_go_on():
    results = []

    async def slow():
        await asyncio.sleep(0.5)
        return 2

    thread = threading.Thread(target=lambda: results.append(bridge.run(slow)))
    thread.start()
    first = seen(bridge.run, wait)
    thread.join(10)
    return [*first, *results]


@row(
    "a handler that the coroutine installs outlives the call, and an old answer put back later steps aside",
    sees=[True, "KeyboardInterrupt"],
)
def handlers_that_outlive():
    import os
    import signal

    async def install():
        return signal.signal(signal.SIGINT, mine)

    def mine(*_):
        raise AssertionError

    old = bridge.run(install)
    stays = signal.getsignal(signal.SIGINT) is mine
    signal.signal(signal.SIGINT, old)

    def press():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)

    return [stays, raised(press)]


@row(
    "under a server's own handler the second one ends a call that blocks the server's loop",
    sees=["CancelledError", ["closed"], 2],
    signals=2,
)
def ctrl_c_under_a_server():
    import signal

    pressed = []

    def handle_exit(*_):
        pressed.append(1)
        ready()

    async def main():
        signal.signal(signal.SIGINT, handle_exit)
        return seen(bridge.run, wait)

    return [*asyncio.run(main()), len(pressed)]
