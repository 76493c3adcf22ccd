"""Iterators, context managers and facades of the other color."""

import asyncio
import contextvars
import inspect
import threading
import time
from contextlib import asynccontextmanager

from stage import raised, row

from troth import bridge

VAR = contextvars.ContextVar("VAR", default="unset")
WORKERS = ["troth-worker"]
LOG = []


async def numbers(count=3):
    try:
        for number in range(count):
            await asyncio.sleep(0)
            yield number
    finally:
        await asyncio.sleep(0.001)
        LOG.append("closed")


class Guarded:
    async def __aenter__(self):
        self.task = asyncio.current_task()
        LOG.append("entered")
        return self

    async def __aexit__(self, kind, error, traceback):
        LOG.append(["left", kind.__name__ if kind else None, asyncio.current_task() is self.task])
        return kind is KeyError


@row("iterate gives all items, and the source's finally runs", sees=[[0, 1, 2], ["closed"]])
def iterate_all():
    return [list(bridge.iterate(numbers())), LOG]


@row("a break runs the source's finally then and there", sees=[1, ["closed"]])
def iterate_break():
    for number in bridge.iterate(numbers()):
        if number == 1:
            break
    return [number, list(LOG)]


@row("… also inside a running loop", sees=[1, ["closed"]])
def iterate_in_a_running_loop():
    async def main():
        for number in bridge.iterate(numbers()):
            if number == 1:
                break
        return [number, list(LOG)]

    return asyncio.run(main())


@row("… and in a worker thread, on the home loop", sees=[1, ["closed"]], left=WORKERS)
def iterate_in_a_worker():
    def work():
        for number in bridge.iterate(numbers()):
            if number == 1:
                break
        return [number, list(LOG)]

    return asyncio.run(bridge.call(work))


@row("an exception of the source comes out as itself, and the iterator is over", sees=["ValueError", []])
def iterate_raises():
    async def failing():
        yield 1
        raise ValueError

    iterator = bridge.iterate(failing())
    next(iterator)
    return [raised(next, iterator), list(iterator)]


@row(
    "a generator may hold a timeout and a task group across its items: all steps are one task",
    sees=[1, 2, "TimeoutError"],
)
def iterate_in_one_task():
    async def limited():
        async with asyncio.timeout(0.1), asyncio.TaskGroup():
            yield 1
            yield 2
            await asyncio.sleep(30)
            yield 3

    iterator = bridge.iterate(limited())
    return [next(iterator), next(iterator), raised(next, iterator)]


@row("bridge.run between two steps uses the same loop", sees=[0, True, 1])
def iterate_and_run():
    async def where():
        return asyncio.get_running_loop()

    async def located():
        yield 0
        yield asyncio.get_running_loop()
        yield 1

    iterator = bridge.iterate(located())
    return [next(iterator), next(iterator) is bridge.run(where), next(iterator)]


@row(
    "an iterator stays on its thread: elsewhere it is a WrongThreadError, and still usable at home",
    sees=[0, "WrongThreadError", [1, 2]],
)
def iterate_elsewhere():
    iterator = bridge.iterate(numbers())
    first = next(iterator)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(raised(next, iterator)))
    thread.start()
    thread.join(5)
    return [first, *seen, list(iterator)]


@row("an iterator left open is closed when its thread ends", sees=[0, ["closed"]])
def iterate_left_open():
    seen = []

    def work():
        KEPT.append(bridge.iterate(numbers()))
        seen.append(next(KEPT[0]))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(5)
    KEPT.clear()
    return [*seen, LOG]


KEPT = []


@row("context variables go in and come back at every step", sees=["a", "b", "generator"])
def iterate_context():
    async def seen():
        yield VAR.get()
        yield VAR.get()
        VAR.set("generator")
        yield None

    iterator = bridge.iterate(seen())
    VAR.set("a")
    first = next(iterator)
    VAR.set("b")
    second = next(iterator)
    next(iterator)
    return [first, second, VAR.get()]


@row("what cannot be iterated asynchronously is a TypeError", sees="NotRunnableError")
def iterate_wrong_kind():
    bridge.iterate([1, 2])


@row(
    "enter: entered and left in one task, exceptions told and suppressed as the manager says",
    sees=[
        "entered",
        ["left", None, True],
        "entered",
        ["left", "KeyError", True],
        "entered",
        ["left", "ValueError", True],
        "ValueError",
    ],
)
def enter_and_leave():
    def fail(error):
        with bridge.enter(Guarded()):
            raise error

    with bridge.enter(Guarded()) as guarded:
        assert isinstance(guarded, Guarded)
    fail(KeyError())
    outcome = raised(fail, ValueError())
    return [*LOG, outcome]


@row("a task group entered from sync code, inside a running loop", sees=["done", 4])
def enter_a_task_group():
    async def work():
        await asyncio.sleep(0.01)
        return "done"

    async def main():
        with bridge.enter(asyncio.TaskGroup()) as group:
            task = bridge.run(start, group, work)
        return [task.result(), await double(2)]

    async def start(group, function):
        return group.create_task(function())

    import warnings

    warnings.simplefilter("ignore", bridge.LeftoverTaskWarning)  # it is the group's to wait for, and it does
    return asyncio.run(main())


@asynccontextmanager
async def limited():
    try:
        async with asyncio.timeout(0.05):
            yield
    finally:
        LOG.append("left")


@asynccontextmanager
async def failing_group():
    async def fail():
        raise ValueError("a task of the group")

    async with asyncio.TaskGroup() as group:
        yield group.create_task(fail())


@row(
    "a timeout that passes and a task that fails in what was entered come out when the block ends, as themselves",
    sees=["TimeoutError", ["TimeoutError", "KeyError"], "ExceptionGroup", "ExceptionGroup", ["left", "left"]],
    left=WORKERS,
)
def cancelled_between_two_calls():
    def outlast(manager, error=None):
        with bridge.enter(manager):
            bridge.run(asyncio.sleep, 0.1)
            if error is not None:
                raise error

    def both():
        try:
            outlast(limited(), KeyError())
        except TimeoutError as late:
            return [type(late).__name__, type(late.__context__).__name__]

    async def on_a_loop():
        return raised(outlast, failing_group())

    async def in_a_worker():
        return await bridge.call(raised, outlast, failing_group())

    in_time = raised(outlast, limited())
    return [in_time, both(), asyncio.run(on_a_loop()), asyncio.run(in_a_worker()), LOG]


@row("… and in a source: at the next step, which is its last", sees=[0, "TimeoutError", [], ["closed"]])
def cancelled_between_two_steps():
    async def source():
        try:
            async with asyncio.timeout(0.05):
                yield 0
                yield 1
        finally:
            LOG.append("closed")

    iterator = bridge.iterate(source())
    first = next(iterator)
    bridge.run(asyncio.sleep, 0.1)
    return [first, raised(next, iterator), list(iterator), LOG]


@row("a context that may be entered again may be entered again", sees=[False, False])
def enter_twice():
    lock = asyncio.Lock()
    entered = bridge.enter(lock)
    held = []
    for _ in range(2):
        with entered:
            pass
        held.append(lock.locked())
    return held


async def double(number):
    await asyncio.sleep(0)
    return number * 2


@row("enter and iterate with greenback", sees=["entered", ["left", None, True], [0, 1, 2]], needs=["greenback"])
def adapters_with_greenback():
    import greenback

    async def main():
        await greenback.ensure_portal()
        with bridge.enter(Guarded()):
            pass
        seen = list(LOG)
        return [*seen, list(bridge.iterate(numbers()))]

    return asyncio.run(main())


@row(
    "aiterate does not block the loop, keeps order, and closes the generator",
    sees=[[0, 1, 2], True, ["closed"]],
    left=WORKERS,
)
def aiterate_keeps_the_loop_live():
    def slow():
        try:
            for number in range(3):
                time.sleep(0.1)
                yield number
        finally:
            LOG.append("closed")

    async def main():
        beats = 0

        async def beat():
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0.01)

        heart = asyncio.create_task(beat())
        items = [item async for item in bridge.aiterate(slow())]
        heart.cancel()
        return [items, beats > 10, LOG]

    return asyncio.run(main())


@row("aiterate left early closes the generator", sees=[0, ["closed"]], left=WORKERS)
def aiterate_break():
    import contextlib

    def items():
        try:
            yield from range(5)
        finally:
            LOG.append("closed")

    async def main():
        async with contextlib.aclosing(bridge.aiterate(items())) as stream:
            async for item in stream:
                break
        return [item, LOG]

    return asyncio.run(main())


@row(
    "sync facade: the same signature and name, no __wrapped__, plain to every classifier",
    sees=["(number: int, *, times: int = 2) -> int", "scale", False, False, "SYNC", 6, 9],
)
def sync_facade():
    async def scale(number: "int", *, times: "int" = 2) -> "int":
        await asyncio.sleep(0)
        return number * times

    face = bridge.sync(scale)
    return [
        str(inspect.signature(face)),
        face.__name__,
        hasattr(face, "__wrapped__"),
        inspect.iscoroutinefunction(face),
        bridge.color_of(face).name,
        face(3),
        face(number=3, times=3),
    ]


@row(
    "aio facade: the same, the other way round, in a worker thread",
    sees=["(number: int) -> int", "half", False, True, "ASYNC", 2, True],
    left=WORKERS,
)
def aio_facade():
    here = threading.get_ident()
    threads = []

    def half(number: int) -> int:
        threads.append(threading.get_ident())
        return number // 2

    face = bridge.aio(half)
    return [
        str(inspect.signature(face)),
        face.__name__,
        hasattr(face, "__wrapped__"),
        inspect.iscoroutinefunction(face),
        bridge.color_of(face).name,
        asyncio.run(face(4)),
        threads[0] != here,
    ]


@row("facades as methods, in both directions", sees=[2, 3], left=WORKERS)
def facades_as_methods():
    class Client:
        def __init__(self, number):
            self.number = number

        async def get(self):
            return self.number

        def load(self):
            return self.number + 1

        get_sync = bridge.sync(get)
        load_async = bridge.aio(load)

    return [Client(2).get_sync(), asyncio.run(Client(2).load_async())]


@row("a facade of what has no color is refused when it is made", sees=["NotRunnableError"] * 3)
def facade_of_the_wrong_kind():
    return [raised(bridge.sync, 42), raised(bridge.sync, numbers), raised(bridge.aio, None)]
