"""`troth recolor` in programs that wait with trio or anyio: no loop of asyncio is started there."""

import subprocess
import sys

import pytest

LOAD = (
    "import trio\n\n\ndef load(n, plus=0):\n    return n + plus\n\n\nasync def tick():\n    await trio.sleep(0)\n\n\n"
)


def output(project):
    command = [sys.executable, "app.py"]
    return subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("    print(load(1))\n", "    print(trio.run(load, 1))\n", id="by place"),
        pytest.param("    print(load(1, plus=2))\n", "    print(trio.run(lambda: load(1, plus=2)))\n", id="by name"),
        pytest.param("    print(load(*[1]))\n", "    print(trio.run(lambda: load(*[1])))\n", id="with a star"),
    ],
)
def test_the_start_of_a_program(project, before, after):
    """trio starts the function itself."""
    project.write({"app.py": f"{LOAD}if __name__ == '__main__':\n{before}"})
    expected = output(project)
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    changed = (project.root / "app.py").read_text()
    assert after in changed
    assert "asyncio" not in changed
    assert output(project) == expected


def test_threads(project):
    """What a thread asked the loop to call is asked to be awaited, and what had a thread needs none."""
    text = (
        f"{LOAD}def work():\n    print(trio.from_thread.run_sync(load, 1))\n\n\nasync def main():\n"
        "    await trio.to_thread.run_sync(work)\n    print(await trio.to_thread.run_sync(load, 2))\n\n\ntrio.run(main)\n"
    )
    project.write({"app.py": text})
    expected = output(project)
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    changed = (project.root / "app.py").read_text()
    assert "trio.from_thread.run(load, 1)" in changed
    assert "print(await load(2))" in changed
    assert output(project) == expected


def test_another_library(project):
    """A project that waits with asyncio as well is started by asyncio, unless somebody says otherwise."""
    text = f"import asyncio\n{LOAD}print(load(1))\n"
    project.write({"app.py": text})
    done = project.troth(
        "recolor", "app:load", "--to", "async", "--boundary", "app", "--run-with", "anyio.run", "--diff"
    )
    assert done.code == 0, done.out + done.err
    assert "+print(anyio.run(load, 1))" in done.out
    done = project.troth("recolor", "app:load", "--to", "async", "--boundary", "app", "--diff")
    assert "+print(asyncio.run(load(1)))" in done.out
