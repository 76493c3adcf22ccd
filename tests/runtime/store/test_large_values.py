"""A large result is kept as any other, piece by piece and beside the loop, up to a limit that is told."""

import asyncio
import json
import re
import threading

import pytest

from troth.runtime import Runtime, Workflow, step
from troth.runtime.engine.invoke import invocation
from troth.runtime.store import NotJsonError
from troth.runtime.store.json_codec import keep
from troth.runtime.store.large_values import is_large, keep_in_parts

LARGE = {
    "a long text": "\u00fc\U0001f600\ud83d x" * 400_000,
    "a long list": list(range(50_000)),
    "lists in a list": [[number, str(number), None, True] for number in range(20_000)],
    "a tuple": tuple("x" * 1000 for _ in range(500)),
    "maps": {f"k\u00fc{number}": {"a": [1.5, number]} for number in range(5000)},
}


@pytest.mark.parametrize("name", LARGE)
def test_the_same_is_kept(name):
    """The same text and the same value as in one go."""
    value = LARGE[name]
    assert is_large(value)
    assert tuple(keep_in_parts(value, "x")) == keep(value, "x")


@pytest.mark.parametrize("value", ["short", 3, None, [1, 2], {"a": ["b"]}, {1, 2}], ids=repr)
def test_what_is_small(value):
    assert not is_large(value)


def test_what_is_no_json_is_told_with_its_path():
    """As for a small one; a cycle and endless depth too."""
    with pytest.raises(NotJsonError, match=re.escape("x[2999]['y']")):
        keep_in_parts([{"y": 1}] * 2999 + [{"y": {1}}], "x")
    endless = [1] * 3000
    endless.append(endless)
    with pytest.raises(NotJsonError):
        keep_in_parts(endless, "x")


def test_it_is_written_beside_the_loop(tmp_path, monkeypatch):
    """Not on the loop's thread."""
    threads = []

    def kept(value, what):
        threads.append(threading.current_thread())
        return keep_in_parts(value, what)

    monkeypatch.setattr(invocation, "keep_in_parts", kept)

    async def many():
        return LARGE["lists in a list"]

    async def main():
        async with Runtime(tmp_path / "runs.db") as runtime:
            return (await runtime.arun(Workflow("w", step("a", function=many))), threading.current_thread())

    run, here = asyncio.run(main())
    assert run.output == json.loads(json.dumps(LARGE["lists in a list"]))
    assert threads
    assert here not in threads


@pytest.mark.parametrize("color", ["sync", "async"])
def test_the_limit(tmp_path, color):
    """Beyond it the step fails with the figures and the advice; None takes it away."""
    flow = Workflow("w", step("a", function=lambda: "x" * 200_000))

    def run(limit):
        with Runtime(tmp_path / "runs.db", max_result=limit) as runtime:
            if color == "sync":
                return runtime.run(flow, check=False)
            return asyncio.run(runtime.arun(flow, check=False))

    assert run(300_000).succeeded
    assert run(None).succeeded
    refused = run(100_000)
    assert refused.state == "failed"
    assert "200,002 letters of JSON, and at most 100,000 are kept" in refused.step("a").error.message
