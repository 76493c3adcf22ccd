"""The end of the interpreter."""

import asyncio
import atexit
import os
import sys
import threading

from stage import row

from troth import bridge


async def double(number):
    await asyncio.sleep(0.001)
    return number * 2


def say(*words):
    print(*words, file=sys.stderr)


@row(
    "a run in an atexit function works, registered before the bridge was imported or after",
    sees=None,
    tells=["late 4", "early 4"],
)
def run_at_exit():
    atexit.register(lambda: say("late", bridge.run(double, 2)))


def _early():
    say("early", bridge.run(double, 2))


# Registered before `troth.bridge` registered its own: it runs after that.
atexit.unregister(_early)
if len(sys.argv) > 2 and sys.argv[2] == "run_at_exit":
    from troth.bridge._loops import loop_pool as _loop_pool

    atexit.unregister(_loop_pool._close_main_loops)
    atexit.register(_early)
    atexit.register(_loop_pool._close_main_loops)


@row(
    "a coroutine that needs a worker thread at exit gets a named error",
    sees=None,
    tells=["InterpreterExitError", "DNS"],
)
def thread_at_exit():
    async def look_up():
        loop = asyncio.get_running_loop()
        await loop.getaddrinfo("localhost", 80)

    def at_exit():
        try:
            bridge.run(look_up)
        except bridge.InterpreterExitError as error:
            say(type(error).__name__, error)

    atexit.register(at_exit)


@row(
    "bridge.call at exit, where no worker can start, is a named error",
    sees=None,
    tells=["InterpreterExitError", "thread=False"],
)
def call_at_exit():
    def at_exit():
        try:
            bridge.run(bridge.call, len, [])
        except bridge.InterpreterExitError as error:
            say(type(error).__name__, error)

    atexit.register(at_exit)


@row(
    "a portal that was never started cannot start at exit: a named error, the coroutine closed",
    sees=None,
    tells=["InterpreterExitError"],
)
def portal_at_exit():
    def at_exit():
        try:
            bridge.Portal().run(double(1))
        except bridge.InterpreterExitError as error:
            say(type(error).__name__)

    atexit.register(at_exit)


class Last:
    def __del__(self, bridge=bridge, double=double, write=os.write):
        try:
            bridge.run(double(1))
        except bridge.InterpreterExitError as error:
            write(2, f"{type(error).__name__} {bridge.explain().way.name}".encode())


KEPT = []


@row(
    "a run in __del__ while the interpreter is taken apart: a named error, the coroutine closed",
    sees=None,
    tells=["InterpreterExitError REFUSED"],
)
def run_while_finalizing():
    KEPT.append(Last())


@row("an exit in the middle of a run: SystemExit comes out, the loop is closed", sees="SystemExit", code=3)
def exit_inside():
    async def leave():
        await asyncio.sleep(0)
        sys.exit(3)

    bridge.run(leave)


@row("an exit while a daemon thread is inside a run", sees="waiting", left=["inside"], tasks=1)
def daemon_thread_inside():
    started = threading.Event()

    async def wait():
        started.set()
        await asyncio.sleep(60)

    threading.Thread(target=bridge.run, args=(wait,), daemon=True, name="inside").start()
    started.wait(5)
    return "waiting"


@row(
    "an exit with a background task left: it is cancelled, its finally runs, and the exit is not held up",
    sees=None,
    tasks=1,
    tells=["LeftoverTaskWarning", "finally"],
)
def exit_with_a_task_left():
    async def linger():
        try:
            await asyncio.sleep(60)
        finally:
            say("finally")

    async def start():
        asyncio.create_task(linger())
        await asyncio.sleep(0)

    bridge.run(start)
