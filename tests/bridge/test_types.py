"""What a type checker sees of the bridge."""

import subprocess
import sys
from textwrap import dedent

import pytest

pytest.importorskip("mypy")

PROGRAM = dedent(
    """
    from collections.abc import AsyncIterator, Callable, Coroutine
    from typing import assert_type
    from troth import bridge
    from troth.bridge import Override
    from troth.color import Color

    async def fetch(path: str, times: int = 1) -> bytes:
        return b""
    def load(path: str) -> int:
        return 1
    async def lines() -> AsyncIterator[str]:
        yield ""

    assert_type(bridge.run(fetch, "/"), bytes)
    assert_type(bridge.run(fetch("/"), timeout=1), bytes)
    assert_type(bridge.sync(fetch)("/", times=2), bytes)
    assert_type(bridge.Portal().run(fetch, "/"), bytes)
    assert_type(bridge.color_of(fetch), Color)
    assert_type(bridge.overrides(1, "x", int), Override)
    for line in bridge.iterate(lines()):
        assert_type(line, str)

    async def main() -> None:
        assert_type(await bridge.call(fetch, "/"), bytes)
        assert_type(await bridge.call(load, "/"), int)
        assert_type(await bridge.aio(load)("/"), int)
        async for number in bridge.aiterate([1, 2]):
            assert_type(number, int)

    bridge.run(fetch, 1)  # wrong: a number for a path
    bridge.run(load, "/")  # wrong: not a promise
    bridge.sync(fetch)(times=2)  # wrong: no path
    bridge.call(load)  # wrong: not awaited, and no path
    """
)


@pytest.mark.xdist_group("mypy")
def test_types_of_the_bridge(tmp_path):
    """Results keep their types through every crossing, and a wrong call is found before it runs."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--no-error-summary", str(file)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=tmp_path, check=False).stdout
    wrong = {number for number, line in enumerate(PROGRAM.splitlines(), 1) if "# wrong" in line}
    assert {int(line.split(":")[1]) for line in said.splitlines() if ": error:" in line} == wrong, said
