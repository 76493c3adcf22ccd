"""Whole programs, each in a process of its own: every way to lose a promise is told, and nothing else is.

A line that loses something says so in a comment: `# lost: coroutine`, with `x3` where it happens three times. The log of
the guard has to agree with the comments exactly. Where Python keeps no line of making (the standard library called the
function, or it is an async generator) the comment stands at the `def`.
"""

import json
import os
import re
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

LOSING = {
    "bare call": """
        async def work(): ...
        work()  # lost: coroutine
        """,
    "dropped variable": """
        async def work(): ...
        def f():
            result = work()  # lost: coroutine
        f()
        """,
    "under a broad except": """
        async def work(): ...
        try:
            work()  # lost: coroutine
        except Exception:
            pass
        """,
    "under suppress, in a task": """
        import asyncio, contextlib
        async def work(): ...
        async def main():
            with contextlib.suppress(BaseException):
                work()  # lost: coroutine
        asyncio.run(main())
        """,
    "taken for true": """
        async def is_allowed(): return False
        if is_allowed():  # lost: coroutine
            print("allowed")
        """,
    "three on one line": """
        async def work(): ...
        for _ in range(3): work()  # lost: coroutine x3
        """,
    "in a reference cycle": """
        async def work(): ...
        class Node: ...
        def f():
            node = Node()
            node.itself = node
            node.work = work()  # lost: coroutine
        f()
        """,
    "held until the exit": """
        async def work(): ...
        kept = [work()]  # lost: coroutine
        """,
    "in a thread": """
        import threading
        async def work(): ...
        def run():
            work()  # lost: coroutine
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        """,
    "in a thread that outlives the main one": """
        import threading, time
        async def work(): ...
        def run():
            time.sleep(0.1)
            work()  # lost: coroutine
        threading.Thread(target=run).start()
        """,
    "given to a thread": """
        import threading
        async def work(): ...  # lost: coroutine
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        """,
    "in a pool": """
        from concurrent.futures import ThreadPoolExecutor
        async def work(n): ...  # lost: coroutine x4
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(work, range(4)))
        """,
    "dropped by the callee": """
        async def work(): ...
        def ignore(thing): ...
        ignore(work())  # lost: coroutine
        """,
    "a comprehension nobody gathers": """
        async def work(n): ...
        [work(n) for n in range(5)]  # lost: coroutine x5
        """,
    "an async predicate": """
        async def is_even(n): return n % 2 == 0
        assert list(filter(lambda n: is_even(n), range(4))) == [0, 1, 2, 3]  # lost: coroutine x4
        """,
    "an async callback": """
        import asyncio
        async def work(): ...  # lost: coroutine
        async def main():
            asyncio.get_running_loop().call_soon(work)
            await asyncio.sleep(0)
        asyncio.run(main())
        """,
    "an async exit function": """
        import atexit
        async def goodbye(): ...  # lost: coroutine
        atexit.register(goodbye)
        """,
    "an async function in an executor": """
        import asyncio
        async def work(): ...  # lost: coroutine
        async def main():
            await asyncio.to_thread(work)
        asyncio.run(main())
        """,
    "asyncio.run within a loop": """
        import asyncio
        async def work(): ...
        async def main():
            try:
                asyncio.run(work())  # lost: coroutine
            except RuntimeError:
                pass
        asyncio.run(main())
        """,
    "handed to a loop that is stopped": """
        import asyncio
        async def work(): ...
        loop = asyncio.new_event_loop()
        asyncio.run_coroutine_threadsafe(work(), loop)  # lost: coroutine
        loop.close()
        """,
    "with every warning ignored": """
        import warnings
        async def work(): ...
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            work()  # lost: coroutine
        """,
    "in asyncio's debug mode": """
        import asyncio
        async def work(): ...
        async def main():
            work()  # lost: coroutine
        asyncio.run(main(), debug=True)
        work()  # lost: coroutine
        """,
    "a method through a partial": """
        from functools import partial
        class Store:
            async def save(self, value): ...
        partial(Store().save, 1)()  # lost: coroutine
        """,
    "a program that fails": """
        async def work(): ...
        work()  # lost: coroutine
        raise SystemExit(3)
        """,
    "a program that crashes, the coroutine in its frames": """
        async def work(): ...
        def f():
            kept = work()  # lost: coroutine
            raise ValueError
        f()
        """,
    "a task collected while pending": """
        import asyncio, gc
        async def forever(future):
            await future
        async def main():
            future = asyncio.get_running_loop().create_future()
            future.task = None
            task = asyncio.create_task(forever(future))  # lost: task
            await asyncio.sleep(0)
            task.add_done_callback(lambda _, keep=[future]: keep)
            del task, future
            gc.collect()
        class Future(asyncio.Future): ...
        async def outer():
            loop = asyncio.get_running_loop()
            loop.create_future = lambda: Future(loop=loop)
            await main()
        asyncio.run(outer())
        """,
    "a task left at exit": """
        import asyncio
        async def forever():
            await asyncio.sleep(1000)
        async def main():
            global task
            task = asyncio.create_task(forever())  # lost: task
            await asyncio.sleep(0)
        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
        """,
    "a task that never began": """
        import asyncio
        async def work(): ...
        async def main():
            asyncio.create_task(work())  # lost: task
            asyncio.get_running_loop().stop()
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(main())
        except RuntimeError:
            pass
        loop.stop()
        loop._ready.clear()
        loop.close()
        """,
    "an exception nobody reads": """
        import asyncio
        async def fail():
            raise ValueError("lost")
        async def main():
            task = asyncio.create_task(fail())  # lost: exception
            await asyncio.sleep(0)
        asyncio.run(main())
        """,
    "an exception nobody reads, held until the exit": """
        import asyncio
        async def fail():
            raise ValueError("lost")
        async def main():
            global task
            task = asyncio.create_task(fail())  # lost: exception
            await asyncio.sleep(0)
        asyncio.run(main())
        """,
    "an async generator in a cycle": """
        async def numbers():  # lost: generator
            yield 1
        def f():
            cycle = [numbers()]
            cycle.append(cycle)
        f()
        """,
    "an async generator held until the exit": """
        async def numbers():  # lost: generator
            yield 1
        kept = numbers()
        """,
}

CORRECT = {
    "awaited": """
        import asyncio
        async def work(): return 1
        async def main(): return await work()
        assert asyncio.run(main()) == 1
        """,
    "gathered, grouped, waited for": """
        import asyncio
        async def work(n): return n
        async def main():
            assert await asyncio.gather(work(1), work(2)) == [1, 2]
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(work(n)) for n in range(3)]
            assert [task.result() for task in tasks] == [0, 1, 2]
            assert await asyncio.wait_for(work(3), 1) == 3
        asyncio.run(main())
        """,
    "closed because it is not wanted": """
        async def work(): ...
        work().close()
        kept = work()
        kept.close()
        """,
    "kept and awaited later": """
        import asyncio
        async def work(): return 1
        kept = work()
        async def main(): return await kept
        assert asyncio.run(main()) == 1
        """,
    "cancelled before it began": """
        import asyncio
        async def work(): ...
        async def main():
            task = asyncio.create_task(work())
            task.cancel()
            await asyncio.wait([task])
        asyncio.run(main())
        """,
    "background task, cancelled by asyncio.run": """
        import asyncio
        async def forever():
            while True:
                await asyncio.sleep(0.01)
        async def main():
            task = asyncio.create_task(forever())
            await asyncio.sleep(0.03)
        asyncio.run(main())
        """,
    "a loop in a daemon thread, at work to the end": """
        import asyncio, threading, time
        async def leaf(n): return n
        async def busy():
            later = leaf(1)
            asyncio.get_running_loop().create_task(forever())
            while True:
                await leaf(2)
                await asyncio.sleep(0)
        async def forever():
            while True: await asyncio.sleep(1)
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        asyncio.run_coroutine_threadsafe(busy(), loop)
        assert asyncio.run_coroutine_threadsafe(leaf(7), loop).result(5) == 7
        time.sleep(0.05)
        """,
    "async generators, whole, in part and closed": """
        import asyncio
        async def numbers():
            for n in range(3):
                yield n
        async def main():
            assert [n async for n in numbers()] == [0, 1, 2]
            async for n in numbers():
                break
            partly = numbers()
            await anext(partly)
            await partly.aclose()
            unused = numbers()
            await unused.aclose()
        asyncio.run(main())
        """,
    "context managers and stacks": """
        import asyncio, contextlib
        @contextlib.asynccontextmanager
        async def resource():
            yield 1
        async def main():
            async with contextlib.AsyncExitStack() as stack:
                assert await stack.enter_async_context(resource()) == 1
                stack.push_async_callback(asyncio.sleep, 0)
        asyncio.run(main())
        """,
    "a timeout": """
        import asyncio
        async def main():
            try:
                async with asyncio.timeout(0.01):
                    await asyncio.sleep(10)
            except TimeoutError:
                pass
            try:
                await asyncio.wait_for(asyncio.sleep(10), 0.01)
            except TimeoutError:
                pass
        asyncio.run(main())
        """,
    "an exception that is read": """
        import asyncio
        async def fail(): raise ValueError
        async def main():
            task = asyncio.create_task(fail())
            await asyncio.wait([task])
            assert isinstance(task.exception(), ValueError)
            results = await asyncio.gather(fail(), fail(), return_exceptions=True)
            assert len(results) == 2
        asyncio.run(main())
        """,
    "an exit function that runs a coroutine": """
        import asyncio, atexit
        async def goodbye(): ...
        kept = goodbye()
        atexit.register(asyncio.run, kept)
        """,
    "an async generator made and not needed": """
        import asyncio
        async def numbers():
            yield 1
        class Request:
            def __init__(self):
                self.itself = self
                self.stream = numbers()
        Request()
        """,
    "sync code, threads, pools": """
        import threading
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(2) as pool:
            assert sum(pool.map(lambda n: n, range(10))) == 45
        thread = threading.Thread(target=print)
        thread.start()
        thread.join()
        """,
    "an old-style awaitable": """
        import asyncio, types
        @types.coroutine
        def step():
            yield
        async def main():
            await step()
            step()
        asyncio.run(main())
        """,
    "a lazy proxy that must not be asked": """
        import gc
        class Proxy:
            @property
            def __class__(self):
                raise RuntimeError("asked")
        kept = [Proxy() for _ in range(3)]
        """,
    "a child process": """
        import asyncio, os
        async def work(): return 1
        assert asyncio.run(work()) == 1
        pid = os.fork()
        if pid == 0:
            os._exit(asyncio.run(work()) - 1)
        assert os.waitpid(pid, 0)[1] == 0
        """,
}

WITHOUT_HOOK = """
import warnings
del warnings._warn_unawaited_coroutine
from troth.guard.__main__ import main
import sys
main(sys.argv[1:])
"""


def run(
    source: str,
    folder: Path,
    *flags: str,
    start: tuple[str, ...] = ("-m", "troth.guard"),
    options: tuple[str, ...] = (),
) -> tuple[int, Counter, str]:
    """Run `source` under the guard; its exit code, what was told of as (kind, line), and its stderr."""
    program, log = folder / "program.py", folder / "log.jsonl"
    program.write_text(textwrap.dedent(source).lstrip())
    command = [sys.executable, *flags, *start, "--blocked", "0", *options, "--log", str(log), str(program)]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "TROTH"))}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
    told: Counter = Counter()
    for line in log.read_text().splitlines() if log.exists() else []:
        entry = json.loads(line)
        is_here = entry["file"] == str(program)
        told[entry["kind"], entry["line"] if is_here else entry["defined_line"]] += 1
    return done.returncode, told, done.stderr


def expected(source: str) -> Counter:
    lines = textwrap.dedent(source).lstrip().splitlines()
    marks = ((re.search(r"# lost: (\w+)(?: x(\d+))?", line), number) for number, line in enumerate(lines, 1))
    return Counter({(mark[1], number): int(mark[2] or 1) for mark, number in marks if mark})


def cases(programs: dict[str, str]) -> list:
    return [pytest.param(source, id=name) for name, source in programs.items()]


@pytest.mark.parametrize("source", cases(LOSING))
def test_every_loss_is_told_with_its_line(source, tmp_path):
    """Each loss is told once, at its line, and the process fails."""
    code, told, errors = run(source, tmp_path, options=("--generators",))
    assert told == expected(source), errors
    assert code == 120
    assert errors.count(" lost; the exit code is 120") == 1


@pytest.mark.parametrize("source", cases(CORRECT))
def test_a_correct_program_is_left_alone(source, tmp_path):
    """No false alarm, no word, no other exit code."""
    assert run(source, tmp_path) == (0, Counter(), "")


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(("-W", "error"), id="-W error"),
        pytest.param(("-W", "ignore"), id="-W ignore"),
        pytest.param(("-X", "dev"), id="-X dev"),
    ],
)
def test_flags_of_python_change_nothing(flags, tmp_path):
    """A loss does not pass through the warnings filters, so these cannot hide it."""
    source = LOSING["three on one line"]
    code, told, errors = run(source, tmp_path, *flags)
    assert (code, told) == (120, expected(source)), errors


# Inside a block that ignores all warnings the way round is deaf, as its module says.
HEARD_WITHOUT_HOOK = {name: source for name, source in LOSING.items() if "every warning ignored" not in name}


@pytest.mark.parametrize("source", cases(HEARD_WITHOUT_HOOK))
def test_losses_without_the_private_hook(source, tmp_path):
    """Where CPython has no `_warn_unawaited_coroutine`, the way round tells the same."""
    code, told, errors = run(source, tmp_path, start=("-c", WITHOUT_HOOK), options=("--generators",))
    assert told == expected(source), errors
    assert code == 120


@pytest.mark.parametrize(
    "name", ["awaited", "a loop in a daemon thread, at work to the end", "cancelled before it began"]
)
def test_correct_programs_without_the_private_hook(name, tmp_path):
    """The way round raises no false alarm either."""
    assert run(CORRECT[name], tmp_path, start=("-c", WITHOUT_HOOK)) == (0, Counter(), "")


def test_the_exit_code_of_a_correct_program_is_its_own(tmp_path):
    """Only losses change the exit code."""
    assert run("raise SystemExit(3)", tmp_path)[0] == 3


def test_the_private_hook_is_there():
    """The direct way is in use on this Python; should a release drop the name, this says so and the way round is used."""
    import warnings

    assert callable(warnings._warn_unawaited_coroutine)
