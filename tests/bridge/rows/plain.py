"""No loop runs in the calling thread."""

import asyncio
import contextvars
import os
import signal
import socket
import threading
import time
from pathlib import Path

from stage import raised, row

from troth import bridge

FILES = Path("/proc/self/fd")
VAR = contextvars.ContextVar("VAR", default="unset")


class Falsy(Exception):
    def __bool__(self):
        return False

    def __len__(self):
        return 0


async def double(number):
    await asyncio.sleep(0)
    return number * 2


async def raising(error):
    await asyncio.sleep(0)
    raise error


def wrong_kinds(run):
    async def stream():
        yield 1

    tried = [42, None, "text", len, stream, asyncio.Lock()]
    names = ["42", "None", "'text'", "len", "stream", "Lock"]
    said = []
    for kind, name in zip(tried, names, strict=True):
        try:
            run(kind, *([[]] if kind is len else []))
        except TypeError as error:
            said.append(name in str(error))
    return said


@row("a function and its arguments, or a coroutine", sees=[4, 6])
def function_or_coroutine():
    return [bridge.run(double, 2), bridge.run(double(3))]


@row("anything awaitable: a partial, a lambda, a bound method, an awaitable object, gather", sees=[2, 4, 6, 7, [2, 4]])
def anything_awaitable():
    class Client:
        async def get(self):
            return 6

    class Promise:
        def __await__(self):
            yield from asyncio.sleep(0).__await__()
            return 7

    from functools import partial

    return [
        bridge.run(partial(double, 1)),
        bridge.run(lambda: double(2)),
        bridge.run(Client().get),
        bridge.run(Promise()),
        bridge.run(lambda: asyncio.gather(double(1), double(2))),
    ]


@row("what is no promise of work is a TypeError that names it", sees=[True] * 6)
def wrong_kind():
    return wrong_kinds(bridge.run)


@row("arguments beside a coroutine are refused, and the coroutine is closed", sees="NotRunnableError")
def arguments_beside_a_coroutine():
    return bridge.run(double(1), 2)


@row("every exception comes out as the very object that was raised", sees=[True] * 8)
def exceptions_as_themselves():
    errors = [
        ValueError("v"),
        Falsy(),
        KeyboardInterrupt(),
        SystemExit(3),
        asyncio.CancelledError("mine"),
        GeneratorExit(),
        ExceptionGroup("g", [ValueError()]),
        BaseExceptionGroup("b", [KeyboardInterrupt()]),
    ]
    same = []
    for error in errors:
        try:
            bridge.run(raising, error)
        except BaseException as caught:
            same.append(caught is error)
    return same


@row(
    "a traceback leads from the caller to the line that raised, through three frames of ours at most",
    sees=[True, True, True],
)
def readable_traceback():
    import os
    import traceback
    from pathlib import Path

    try:
        bridge.run(raising, ValueError("here"))
    except ValueError as error:
        frames = traceback.extract_tb(error.__traceback__)
    # By folder, not by a word in the path: a clone of this repository may have any name.
    folders = tuple(f"{Path(package.__file__).parent}{os.sep}" for package in (bridge, asyncio))
    ours = [frame for frame in frames if frame.filename.startswith(folders)]
    return [frames[0].name == "readable_traceback", frames[-1].name == "raising", len(ours) <= 4]


@row("context variables go in, and changes come back, also past an exception", sees=["in", "out", "past"])
def context_both_ways():
    async def change(value, fails):
        seen = VAR.get()
        await asyncio.sleep(0)
        VAR.set(value)
        if fails:
            raise ValueError
        return seen

    VAR.set("in")
    first = bridge.run(change, "out", False)
    second = VAR.get()
    raised(bridge.run, change, "past", True)
    return [first, second, VAR.get()]


@row("a timeout cancels the coroutine and waits for its finally", sees=["RunTimeoutError", True, ["closed"]])
def timeout_reaches_the_coroutine():
    log = []

    async def slow():
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.01)
            log.append("closed")

    try:
        bridge.run(slow, timeout=0.05)
    except TimeoutError as error:
        return [type(error).__name__, isinstance(error, TimeoutError), log]


@row("a TimeoutError of the coroutine's own stays its own", sees="TimeoutError")
def own_timeout_error():
    bridge.run(raising, TimeoutError("mine"), timeout=5)


@row("a timeout that is no number is refused, and the coroutine closed", sees=["NotRunnableError"] * 2)
def timeout_of_the_wrong_kind():
    return [raised(bridge.run, double(1), timeout=wrong) for wrong in ("soon", float("nan"))]


@row("one loop serves all calls of a thread, so a client made in one works in the next", sees=[True, "pong"])
def one_loop_for_all_calls():
    ours, theirs = socket.socketpair()

    async def connect():
        return await asyncio.open_connection(sock=ours)

    async def talk(reader, writer):
        writer.write(b"ping")
        theirs.send(theirs.recv(4).replace(b"i", b"o"))
        return (await reader.readexactly(4)).decode()

    async def end(writer):
        writer.close()
        await writer.wait_closed()

    async def loop():
        return id(asyncio.get_running_loop())

    same = bridge.run(loop) == bridge.run(loop)
    reader, writer = bridge.run(connect)
    answer = bridge.run(talk, reader, writer)
    bridge.run(end, writer)
    theirs.close()
    return [same, answer]


@row("the coroutine runs in the caller's thread, and no thread is started", sees=[True, 1])
def in_the_callers_thread():
    async def where():
        return threading.get_ident()

    return [bridge.run(where) == threading.get_ident(), threading.active_count()]


@row("eight threads run at the same time, each on a loop of its own", sees=[8, True])
def eight_threads():
    loops = []
    gate = threading.Barrier(8)

    async def work():
        await asyncio.sleep(0)
        gate.wait(5)
        loops.append(asyncio.get_running_loop())

    threads = [threading.Thread(target=bridge.run, args=(work,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    return [len(set(map(id, loops))), all(loop.is_closed() for loop in loops)]


@row(
    "when a thread ends its loop is closed, what was left on it ended, and no descriptor is lost",
    sees=[0, ["ended"], 0],
    tells=["LeftoverTaskWarning", "linger"],
)
def thread_end_frees_everything():
    log = []

    async def linger():
        try:
            await asyncio.sleep(30)
        finally:
            log.append("ended")

    async def leave_behind():
        asyncio.create_task(linger())
        await asyncio.sleep(0)

    def descriptors():
        return len(list(FILES.iterdir())) if FILES.exists() else 0

    bridge.run(double, 1)
    before = descriptors()
    for work in [leave_behind, *[lambda: double(1)] * 20]:
        thread = threading.Thread(target=bridge.run, args=(work,))
        thread.start()
        thread.join(10)
    return [threading.active_count() - 1, log, descriptors() - before]


@row(
    "a task left behind is named, not forgotten in silence",
    sees=None,
    tells=["LeftoverTaskWarning", "send_mail", "plain.py"],
)
def leftover_task_is_told():
    async def send_mail():
        await asyncio.sleep(30)

    async def handle():
        asyncio.create_task(send_mail())
        await asyncio.sleep(0)

    bridge.run(handle)
    import atexit

    from troth.bridge._loops import loop_pool as _loop_pool

    atexit.unregister(_loop_pool._close_main_loops)
    _loop_pool._close_main_loops()  # what the exit does, early enough for the row to look at what it left


@row("an async generator the coroutine did not exhaust is closed before the call returns", sees=["first", "closed"])
def dropped_generator_is_closed():
    log = []

    async def numbers():
        try:
            yield "first"
            yield "second"
        finally:
            await asyncio.sleep(0)
            log.append("closed")

    async def first():
        async for number in numbers():
            log.append(number)
            break

    bridge.run(first)
    return log


@row("so are those that it holds, and those that they hold", sees=["first", 3, 2, 1, 0])
def dropped_generators_are_closed_from_the_outside_in():
    log = []

    async def nested(level):
        try:
            if not level:
                yield "first"
                return
            async for number in nested(level - 1):
                yield number
        finally:
            log.append(level)

    async def first():
        async for number in nested(3):
            log.append(number)
            break

    bridge.run(first)
    return log


@row("two hundred levels of run in run use one thread", sees=[200, 1])
def deep_nesting():
    def descend(level):
        async def step():
            return descend(level - 1) + 1 if level else 0

        return bridge.run(step)

    import warnings

    warnings.simplefilter("ignore", bridge.BlockedLoopWarning)
    import sys

    sys.setrecursionlimit(10_000)
    return [descend(200), threading.active_count()]


@row("a forked child works, and its parent's loop still does", sees=[[8, 8], 10])
def fork_child_works():
    bridge.run(double, 1)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        answer = [bridge.run(double, 4), bridge.run(double, 4)]
        os.write(writing, repr(answer).encode())
        os._exit(0)
    os.waitpid(child, 0)
    time.sleep(0.01)
    return [eval(os.read(reading, 100)), bridge.run(_woken_by_thread, 5)]


async def _woken_by_thread(number):
    loop = asyncio.get_running_loop()
    woken = loop.create_future()
    threading.Timer(0.05, loop.call_soon_threadsafe, (woken.set_result, number * 2)).start()
    return await woken


@row("a fork inside a coroutine: the child's calls work, the parent's loop is not touched", sees=[6, 10])
def fork_inside_a_coroutine():
    reading, writing = os.pipe()

    async def fork():
        child = os.fork()
        if child == 0:
            try:
                os.write(writing, repr(bridge.run(double, 3)).encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        return int(os.read(reading, 100))

    return [bridge.run(fork), bridge.run(_woken_by_thread, 5)]


@row("an asyncio subprocess works from a thread that is not the main one", sees=["hello"])
def subprocess_from_a_thread():
    seen = []

    async def shell():
        process = await asyncio.create_subprocess_exec("echo", "hello", stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        seen.append(out.decode().strip())

    thread = threading.Thread(target=bridge.run, args=(shell,))
    thread.start()
    thread.join(15)
    return seen


@row("right and quiet in development mode", sees=[4, 4, 4, [0, 1]], flags=["-X", "dev"])
def development_mode():
    async def numbers():
        for number in range(2):
            yield number

    import logging

    logging.getLogger("asyncio").setLevel(logging.ERROR)  # not its notes on slow callbacks: those time the machine
    with bridge.Portal() as portal:
        return [bridge.run(double, 2), portal.run(double, 2), asyncio.run(_inside()), list(bridge.iterate(numbers()))]


async def _inside():
    return bridge.run(double, 2)


@row("asyncio itself is left as it was", sees=[])
def nothing_is_patched():
    import sys

    modules = [sys.modules[name] for name in sorted(sys.modules) if name.split(".")[0] == "asyncio"]
    found = []
    for module in modules:
        for name, value in vars(module).items():
            owner = getattr(value, "__module__", "") or ""
            if owner.startswith("troth"):
                found.append(f"{module.__name__}.{name}")
            if isinstance(value, type):
                found += [
                    f"{name}.{k}"
                    for k, v in vars(value).items()
                    if (getattr(v, "__module__", "") or "").startswith("troth")
                ]
    return found


@row("the exception and the loop do not keep each other alive", sees=[0])
def no_cycle_through_an_exception():
    import gc
    import weakref

    class Held:
        pass

    async def fail():
        held = Held()
        alive.append(weakref.ref(held))
        raise ValueError

    alive = []
    gc.disable()
    raised(bridge.run, fail)
    return [sum(reference() is not None for reference in alive)]


async def spinning(is_over):
    """Turn the loop all the time: it never sleeps, so nothing wakes it."""
    turns = 0
    while not is_over():
        turns += 1
        await asyncio.sleep(0)
    return turns > 0


@row("a loop that is never idle: signal handlers, other threads, timers and sockets have their turn", sees=[True] * 4)
def never_idle():
    async def signalled():
        heard = []
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, heard.append, 1)
        os.kill(os.getpid(), signal.SIGUSR1)
        return await spinning(lambda: heard)

    async def called_from_another_thread():
        heard, loop = [], asyncio.get_running_loop()
        threading.Thread(target=loop.call_soon_threadsafe, args=(heard.append, 1)).start()
        return await spinning(lambda: heard)

    async def timed():
        heard = []
        asyncio.get_running_loop().call_later(0.001, heard.append, 1)
        return await spinning(lambda: heard)

    async def read():
        heard, (near, far) = [], socket.socketpair()
        with near, far:
            asyncio.get_running_loop().add_reader(near, heard.append, 1)
            far.send(b"x")
            answer = await spinning(lambda: heard)
            asyncio.get_running_loop().remove_reader(near)
            return answer

    return [bridge.run(work) for work in (signalled, called_from_another_thread, timed, read)]
