"""A large result is kept as any other, piece by piece and beside the loop, up to a limit that is told."""

import asyncio
import json
import re
import threading

import pytest

from troth.runtime import Runtime, Workflow, step
from troth.runtime.agents import Agent
from troth.runtime.conversations import Conversations
from troth.runtime.engine import EmbeddedEngine, Step, Wait
from troth.runtime.engine.commands import Finish
from troth.runtime.engine.invoke import invocation
from troth.runtime.store import NotJsonError, SqliteStore
from troth.runtime.store.json_codec import keep
from troth.runtime.store.large_values import is_large, keep_in_parts
from troth.runtime.store.sqlite import writer

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
    endless = [1] * 30  # all of it is written once for each turn round the cycle, until Python's stack ends
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


@pytest.fixture
def written_by(monkeypatch):
    """The threads that committed something large: how many pages a transaction has changed tells."""
    threads = []

    def noted(method):
        def wrapper(self, *args):
            log = self._path.with_name(f"{self._path.name}-wal")
            before = log.stat().st_size if log.exists() else 0
            answer = method(self, *args)
            if log.stat().st_size - before > 500_000:
                threads.append(threading.current_thread().name)
            return answer

        return wrapper

    for name in ("_alone", "_locked"):
        monkeypatch.setattr(writer.SqliteWriter, name, noted(getattr(writer.SqliteWriter, name)))
    return threads


MEGABYTE = "x" * 1_000_000


async def answer_it():
    return MEGABYTE


async def measure(text):
    return len(text)


def returns_it():
    return (yield Step("answer", answer_it))


def hands_it_on():
    text = yield Step("answer", lambda: MEGABYTE)
    first = yield Step("measure", measure, text)
    second = yield Step("measure", measure, kwargs={"text": text})
    return first + second


def takes_it(text):
    return (yield Step("measure", measure, text))


def waits_for_it():
    return len((yield Wait("go")))


def ends_with_it():
    yield Finish([MEGABYTE])
    return [MEGABYTE]


@pytest.mark.parametrize(
    ("decision", "args", "expected", "commits"),
    [
        pytest.param(returns_it, (), MEGABYTE, 1, id="a result, of a step and of the run"),
        pytest.param(hands_it_on, (), 2_000_000, 2, id="an input of a step, by place and by name"),
        pytest.param(takes_it, (MEGABYTE,), 1_000_000, 2, id="an input of a run"),
        pytest.param(ends_with_it, (), [MEGABYTE], 1, id="a run that finishes with it"),
    ],
)
def test_it_is_committed_beside_the_loop(tmp_path, written_by, decision, args, expected, commits):
    """SQLite's own writing of it takes its time too, and does so on the store's thread; what is small stays here."""

    async def main():
        async with EmbeddedEngine(tmp_path / "runs.db") as engine:
            return await engine.arun(decision, *args, run_id="r"), [step.args for step in await engine.asteps("r")]

    value, recorded = asyncio.run(main())
    assert value == expected
    assert set(written_by) == {"troth-store"}
    assert len(written_by) >= commits
    with EmbeddedEngine(tmp_path / "again.db") as engine:  # the same is recorded where nothing is beside anything
        assert engine.run(decision, *args, run_id="r") == expected
        assert [step.args for step in engine.steps("r")] == recorded


def test_a_large_signal_is_sent_beside_the_loop(tmp_path, written_by):
    """And received so: its payload is written once more, as the answer of the wait."""

    async def main():
        async with EmbeddedEngine(tmp_path / "runs.db") as engine:
            handle = await engine.astart(waits_for_it, run_id="r")
            await engine.asignal("r", "go", MEGABYTE)
            return await handle.aresult(60)

    assert asyncio.run(main()) == 1_000_000
    assert set(written_by) == {"troth-store"}
    assert len(written_by) >= 2


def test_a_large_message_is_written_beside_the_loop(tmp_path, written_by):
    """What an agent says in a conversation, too."""

    class Talkative(Agent):
        async def astep(self, conversation):
            await conversation.asay(MEGABYTE)

    async def main(home):
        conversation = home.open(Talkative())
        conversation.send("go")
        await conversation.arun()
        return conversation.messages()[-1].text

    with SqliteStore(tmp_path / "talk.db") as store, Conversations(store) as home:
        assert asyncio.run(main(home)) == MEGABYTE
    assert set(written_by) == {"troth-store"}


def test_large_arguments_that_are_no_json_fail_where_they_are_asked_for(tmp_path):
    """In the decision, as small ones do; and a replay compares them as it compares small ones."""
    told = []

    def decision():
        try:
            yield Step("measure", measure, [{1}] * 3000)
        except NotJsonError as refused:
            told.append(refused.path)
        return (yield Step("measure", measure, [1] * 3000))

    with EmbeddedEngine(tmp_path / "runs.db") as engine:
        assert asyncio.run(engine.arun(decision, run_id="r")) == 3000
        engine.fork("r", 2, fork_id="f").result(60)
    assert told[0].endswith("[0][0]")


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
    assert "200,002 characters of JSON, and at most 100,000 are kept" in refused.step("a").error.message
