"""What belongs to another loop is told with the way out, and what is left open at the end of a program is silent."""

import asyncio
import subprocess
import sys
import traceback

import pytest

from troth import bridge


def own_loop():
    lock = asyncio.Lock()

    async def hold():
        async with lock:
            await asyncio.sleep(0)

    async def both():
        await asyncio.gather(hold(), hold())

    asyncio.run(both())
    bridge.run(both())


def stacked():
    async def main():
        future = asyncio.get_running_loop().create_future()

        async def wait():
            return await future

        bridge.run(wait())

    asyncio.run(main())


def by_a_portal():
    async def main():
        future = asyncio.get_running_loop().create_future()

        async def wait():
            return await future

        with bridge.Portal() as portal:
            portal.run(wait())

    asyncio.run(main())


def by_greenback():
    greenback = pytest.importorskip("greenback")

    async def main():
        await greenback.ensure_portal()
        bridge.run(foreign())

    asyncio.run(main())


def by_call():
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    loop.close()
    asyncio.run(bridge.call(lambda: future))


def with_a_limit():
    async def main():
        await asyncio.wait_for(foreign(), 60)

    bridge.run(main())


def in_a_group():
    async def main():
        async with asyncio.TaskGroup() as group:
            group.create_task(foreign())

    bridge.run(main())


def inside_a_client():
    async def main():
        try:
            await foreign()
        except RuntimeError as error:
            raise ConnectionError("the client failed") from error

    bridge.run(main())


async def foreign():
    """Await what belongs to another loop."""
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    loop.close()
    await future


CASES = [own_loop, stacked, by_a_portal, by_greenback, by_call, with_a_limit, in_a_group, inside_a_client]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_an_error_about_two_loops_names_the_way_out(case):
    """Once, below the words of asyncio itself."""
    with pytest.raises((RuntimeError, ValueError, OSError, ExceptionGroup)) as caught:
        case()
    told = "".join(traceback.format_exception(caught.value))
    assert told.count("belongs to another event loop") == 1
    assert all(word in told for word in ("`bridge.Portal`", "greenback", "`bridge.call`"))


def test_any_other_error_is_left_as_it_is():
    """The sentence is for two loops alone."""

    async def fail():
        raise RuntimeError("loop the loop")

    with pytest.raises(RuntimeError) as caught:
        bridge.run(fail())
    assert not getattr(caught.value, "__notes__", ())


LEFT_OPEN = """
import asyncio, threading
from troth import bridge

began = threading.Event()


async def wait():
    began.set()
    await asyncio.sleep(600)


def work():
    bridge.Portal().run(wait())


threading.Thread(target=work, daemon=True).start()
assert began.wait(30)
print("main ends")
"""


def test_a_portal_left_open_in_a_thread_is_silent_at_exit():
    """The thread ends with the program, without a traceback."""
    done = subprocess.run([sys.executable, "-c", LEFT_OPEN], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "main ends\n", "")


@pytest.mark.parametrize("library", ["greenback", "trio"])
def test_a_library_that_is_being_imported(tmp_path, library):
    """Collected garbage may cross colors at any time, in the middle of an import as well."""
    (tmp_path / f"{library}.py").write_text("import asyncio\nfrom troth import bridge\nbridge.run(asyncio.sleep(0))\n")
    (tmp_path / "app.py").write_text(
        f"import asyncio\nasync def main():\n    import {library}\n    print('done')\nasyncio.run(main())\n"
    )
    command = [sys.executable, "app.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
