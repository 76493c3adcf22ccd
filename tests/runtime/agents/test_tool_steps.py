"""Each call of a tool is a step: it has a key, is written down when it has answered, and is not made again after that."""

import asyncio
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from troth.errors import MisuseError
from troth.runtime import Runtime, Workflow, current_step, step
from troth.runtime.agents.tool_calling import ToolCallingAgent
from troth.runtime.conversations import AgentExitError, Conversations, Status, Stopping
from troth.runtime.store import SqliteStore
from troth.runtime.tools import tool
from troth.testing.crash import CrashLab
from troth.testing.scripted import ScriptedModel, call

HERE = Path(__file__).parent
LIMIT = 20  # seconds after which a test that hangs is given up


@pytest.fixture
def home(tmp_path):
    with SqliteStore(tmp_path / "troth.db") as store, Conversations(store) as conversations:
        yield conversations


@pytest.fixture(params=["run", "arun"])
def run(request):
    if request.param == "run":
        return lambda conversation: conversation.run()
    return lambda conversation: asyncio.run(conversation.arun())


def answers(conversation):
    return [message.text for message in conversation.messages() if message.role == "tool"]


# ---- the step that a call is


class Seen:
    """Tools of both colors that note the step they run in."""

    def __init__(self):
        self.steps = []

    def charge(self) -> str:
        """Charge."""
        self.steps.append(current_step())
        return "charged"

    async def ship(self) -> str:
        """Ship."""
        await asyncio.sleep(0)
        self.steps.append(current_step())
        return "shipped"

    @property
    def keys(self):
        return [seen.key for seen in self.steps]


@pytest.mark.parametrize("calls", [["charge"], ["ship"], ["charge", "ship", "charge"]], ids=" ".join)
def test_a_tool_knows_its_step(home, run, calls):
    """In a thread, on the loop, alone and beside others: a key of its own, the first attempt, its name."""
    seen = Seen()
    model = ScriptedModel([call(name, id=f"{n}") for n, name in enumerate(calls)], call("charge"), "done")
    conversation = home.open(ToolCallingAgent(model, [seen.charge, seen.ship]), "c1")
    conversation.send("go")
    run(conversation)
    assert sorted(one.name for one in seen.steps) == sorted([*calls, "charge"])
    assert len(set(seen.keys)) == len(calls) + 1
    assert {one.attempt for one in seen.steps} == {1}
    assert {one.run_id for one in seen.steps} == {"c1"}
    assert all(key.startswith("c1:") for key in seen.keys)
    with pytest.raises(MisuseError, match="outside of a step"):
        current_step()


@pytest.mark.parametrize("calls", [["charge"], ["charge", "ship"]], ids=" ".join)
def test_a_tool_of_an_agent_in_a_workflow_knows_its_own_step(tmp_path, calls):
    """Not the step that the agent is: its key would be the same for every tool."""
    seen = Seen()
    model = ScriptedModel([call(name) for name in calls], "done")
    flow = Workflow("w", step("a", agent="one", inputs={"prompt": {"value": "go"}}))
    agents = {"one": ToolCallingAgent(model, [seen.charge, seen.ship])}
    with Runtime(tmp_path / "runs.db", agents=agents) as runtime:
        assert runtime.run(flow, run_id="r1").output == "done"
    assert len(set(seen.keys)) == len(calls)
    assert all(key.startswith("agent:r1:1:a:") for key in seen.keys)
    assert {one.run_id for one in seen.steps} == {"r1"}


def test_what_a_tool_appends_is_kept_with_its_answer(home, run):
    """And not at all if it fails."""

    def pay(fail: bool) -> str:
        """Pay."""
        current_step().append("ledger", "paid", {"key": current_step().key, "failed": fail})
        if fail:
            raise ValueError("no")
        return "paid"

    model = ScriptedModel([call("pay", '{"fail": false}'), call("pay", '{"fail": true}', id="2")], "done")
    conversation = home.open(ToolCallingAgent(model, [pay]))
    conversation.send("go")
    run(conversation)
    assert [event.payload["failed"] for event in home.store.events("ledger")] == [False]


def test_a_coroutine_that_a_tool_loses_is_told_to_the_model(tmp_path):
    """In a runtime, which watches for it: part of the tool never happened, so it has not answered."""

    async def save() -> None:
        raise AssertionError

    def forgetful() -> str:
        """Forget an await."""
        save()  # troth: allow unawaited-coroutine (the very mistake)
        return "saved"

    model = ScriptedModel(call("forgetful"), lambda asked: asked.messages[-1].text)
    flow = Workflow("w", step("a", agent="one", inputs={"prompt": {"value": "go"}}))
    with Runtime(tmp_path / "runs.db", agents={"one": ToolCallingAgent(model, [forgetful])}) as runtime:
        assert "part of it never happened: it did not await" in runtime.run(flow).output


# ---- each answer is written as it comes


def test_an_answer_is_in_the_log_while_others_are_at_work(home, run):
    """The slow tool finds the answer of the quick one there."""

    def quick() -> str:
        """Answer."""
        return "quick"

    def slow() -> str:
        """Wait for the other's answer."""
        for event in conversation.subscribe(timeout=LIMIT):
            if event.kind == "message" and event.payload["role"] == "tool":
                return f"after {event.payload['text']}"
        return "it never came"

    model = ScriptedModel([call("slow"), call("quick")], "done")
    conversation = home.open(ToolCallingAgent(model, [slow, quick]))
    conversation.send("go")
    run(conversation)
    assert answers(conversation) == ["after quick", "quick"], "in the order of the calls"


@pytest.mark.parametrize("ids", [("a", "b"), ("same", "same")], ids=["two ids", "one id for both"])
def test_the_rest_is_called_after_a_cut(home, run, ids):
    """What had answered is not called again, also if the model gave both calls one id; the other has its old key."""
    seen = []
    is_cut = True

    def work(n: int) -> str:
        """Work."""
        seen.append((n, current_step().key, current_step().attempt))
        return f"worked {n}"

    async def cut() -> str:
        """Wait until the others have answered, and cut the run off as a crash would."""
        if is_cut:
            while sum(event.kind == "message" for event in conversation.events()) < 3:
                await asyncio.sleep(0.001)
            raise KeyboardInterrupt
        return "not cut"

    model = ScriptedModel([call("cut", id=ids[0]), call("work", '{"n": 2}', id=ids[1])], "done")
    conversation = home.open(ToolCallingAgent(model, [work, cut]))
    conversation.send("go")
    with pytest.raises((KeyboardInterrupt, AgentExitError)):
        run(conversation)
    is_cut = False
    assert run(conversation).outcome is Status.FINISHED
    assert [(n, attempt) for n, _, attempt in seen] == [(2, 1)]
    assert answers(conversation) == ["not cut", "worked 2"]
    assert len(model.requests) == 2


# ---- interrupt


def interrupting(conversation):
    assert conversation.interrupt() is Stopping.WILL_STOP


def hold_until_interrupted(conversation):
    deadline = time.monotonic() + LIMIT
    while not conversation.is_interrupted and time.monotonic() < deadline:
        time.sleep(0.001)


@pytest.mark.parametrize("color", ["sync", "async"])
def test_an_interrupted_call_is_not_made_again(home, color):
    """The model is told that it was interrupted, then what the user says, and decides by itself."""
    deleted = []
    began = threading.Event()

    async def adelete() -> str:
        """Delete."""
        deleted.append(current_step().attempt)
        began.set()
        await asyncio.Event().wait()
        return "never"

    def delete() -> str:
        """Delete, in a thread that nobody can stop."""
        deleted.append(current_step().attempt)
        began.set()
        hold_until_interrupted(conversation)
        return "too late"

    one = tool(name="delete")(adelete if color == "async" else delete)
    model = ScriptedModel(call("delete"), "I stop")
    conversation = home.open(ToolCallingAgent(model, [one]))
    conversation.send("delete it all")

    async def stop():
        task = asyncio.create_task(conversation.arun())
        while not began.is_set():
            await asyncio.sleep(0.001)
        assert conversation.interrupt() is Stopping.WILL_STOP
        return await task

    assert asyncio.run(stop()).outcome is Status.INTERRUPTED
    conversation.send("No! Do not delete anything")
    assert conversation.run().outcome is Status.FINISHED
    assert deleted == [1]
    told = model.requests[-1].messages
    assert [message.role for message in told] == ["user", "assistant", "tool", "user"]
    assert told[2].text.startswith('{"error": "interrupted: ')
    assert told[3].text == "No! Do not delete anything"


def test_a_call_that_is_asked_for_in_an_interrupted_run_is_not_made(home):
    """The model answers after `interrupt()`: a sync request cannot be stopped. Its wish is not carried out."""
    deleted = []

    def delete() -> str:
        """Delete."""
        deleted.append(1)
        return "deleted"

    def too_late(_):
        interrupting(conversation)
        return call("delete")

    model = ScriptedModel(too_late, "I stop")
    conversation = home.open(ToolCallingAgent(model, [delete]))
    conversation.send("delete it all")
    assert conversation.run().outcome is Status.INTERRUPTED
    assert conversation.run().outcome is Status.FINISHED
    assert deleted == []
    assert answers(conversation)[0].startswith('{"error": "interrupted: ')


def test_a_tool_that_answers_in_spite_of_the_interruption(home):
    """On its own thread it cannot be stopped: its answer is kept, and it is not called interrupted."""

    def delete() -> str:
        """Delete."""
        interrupting(conversation)
        return "deleted"

    conversation = home.open(ToolCallingAgent(ScriptedModel(call("delete"), "done"), [delete]))
    conversation.send("delete it all")
    assert conversation.run().outcome is Status.INTERRUPTED
    assert answers(conversation) == ["deleted"]
    assert conversation.run().outcome is Status.FINISHED
    assert answers(conversation) == ["deleted"]


def test_an_older_interruption_is_over(home, run):
    """A run that was interrupted says nothing about the calls of a later one that was cut off."""
    cuts = [KeyboardInterrupt(), None]

    def look() -> str:
        """Look."""
        if (problem := cuts.pop(0)) is not None:
            raise problem
        return f"seen in attempt {current_step().attempt}"

    def interrupted(_):
        interrupting(conversation)
        return "let me think"

    model = ScriptedModel(interrupted, call("look"), "done")
    conversation = home.open(ToolCallingAgent(model, [look]))
    conversation.send("go")
    conversation.run()
    conversation.send("go on")
    with pytest.raises(KeyboardInterrupt):
        conversation.run()
    assert run(conversation).outcome is Status.FINISHED
    assert answers(conversation) == ["seen in attempt 2"]


# ---- kill -9


def note(folder, name):
    with (Path(folder) / "effects").open("a", encoding="utf-8") as file:
        file.write(f"{current_step().key} {current_step().attempt} {name}\n")
    return name


def effects(folder):
    path = Path(folder) / "effects"
    return [line.split(" ") for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def lines():
    """Two turns with two calls each, a sync and an async one, and an answer."""
    turns = [[call("charge", id=f"{n}a"), call("ship", id=f"{n}b")] for n in range(2)]
    return [*turns, "done"]


class Replaying(ScriptedModel):
    """Answers by how many answers of its own it is told of, as after a restart a model does."""

    def reply(self, request):
        said = sum(message.role == "assistant" for message in request.messages)
        return ScriptedModel(lines()[said]).reply(request)


def agent_of(folder):
    def charge() -> str:
        """Charge."""
        return note(folder, "charge")

    async def ship() -> str:
        """Ship."""
        await asyncio.sleep(0)
        return note(folder, "ship")

    return ToolCallingAgent(Replaying(), [charge, ship])


def program(folder):
    """A conversation in each color and one in a workflow; started again, each goes on."""
    ends = []
    with Conversations(Path(folder) / "talks.db") as home:
        for entry in ("run", "arun"):
            conversation = home.open(agent_of(folder), entry)
            if conversation.status is Status.IDLE and not conversation.messages():
                conversation.send("go")
            if conversation.status is not Status.FINISHED:
                conversation.run() if entry == "run" else asyncio.run(conversation.arun())
            ends.append(conversation.messages()[-1].text)
    flow = Workflow("w", step("a", agent="one", inputs={"prompt": {"value": "go"}}))
    with Runtime(Path(folder) / "runs.db", agents={"one": agent_of(folder)}) as runtime:
        ends.append(runtime.run(flow, run_id="flow").output)
    return ends


ARRIVALS = {"conversation.answer": 6, "tool.effect": 12}  # two answers that come at once are written at once
PLACES = [
    (f"{point}.{side}", nth)
    for point, count in ARRIVALS.items()
    for side in (("before", "after") if point == "tool.effect" else ("before", "written", "after"))
    for nth in range(1, count + 1)
]
SHORT = [place for place in PLACES if place[1] in (1, 2, 6, 11)]


@pytest.fixture(scope="module")
def lab():
    with CrashLab("test_tool_steps:program", HERE) as opened:
        yield opened


def recorded(folder):
    """The keys of the calls whose answers are in a log."""
    keys = set()
    for name in ("talks.db", "runs.db"):
        if (folder / name).exists():
            with SqliteStore(folder / name) as store:
                for stream in ("conversation/run", "conversation/arun", "conversation/agent:flow:1:a"):
                    keys |= {event.payload.get("key") for event in store.events(stream) if event.kind == "message"}
    return keys - {None}


def check(lab, folder, failpoint, nth):
    assert lab.run(folder, failpoint, nth=nth).was_killed
    keys, before = recorded(folder), effects(folder)
    assert lab.run(folder).answer == ["done"] * 3
    after = effects(folder)
    assert [row for row in after if row[0] in keys] == [row for row in before if row[0] in keys], "done, and done again"
    counts = Counter(key for key, _, _ in after)
    assert len(counts) == 12
    assert sum(counts.values()) <= 12 + 2, "twice at most what was in flight"
    for key, count in counts.items():
        attempts = [int(attempt) for other, attempt, _ in after if other == key]
        assert attempts == sorted(set(attempts)), "each attempt is counted"
        assert count <= 2


@pytest.mark.parametrize(("failpoint", "nth"), [pytest.param(*place, id=f"{place[0]} #{place[1]}") for place in SHORT])
def test_killed_there_no_answered_call_is_made_again(lab, tmp_path, failpoint, nth):
    """Every conversation comes to its end; what had answered is done once, and the rest keeps its key."""
    check(lab, tmp_path, failpoint, nth)


@pytest.mark.soak
@pytest.mark.parametrize(("failpoint", "nth"), [pytest.param(*place, id=f"{place[0]} #{place[1]}") for place in PLACES])
def test_killed_anywhere(lab, tmp_path, failpoint, nth):
    """Every arrival at every commit of an answer, and around every tool."""
    check(lab, tmp_path, failpoint, nth)


def killed_in_ship(folder):
    """`ship` kills the process as soon as the answer of `charge` is in the log; started again, it does not."""

    def charge() -> str:
        """Charge."""
        return note(folder, "charge")

    def ship() -> str:
        """Ship."""
        note(folder, "ship")
        if not (marker := Path(folder) / "killed").exists():
            for event in conversation.subscribe(timeout=LIMIT):
                if event.kind == "message" and event.payload["text"] == "charge":
                    break
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
            threading.Event().wait()
        return "ship"

    with Conversations(Path(folder) / "talks.db") as home:
        model = ScriptedModel("done") if effects(folder) else ScriptedModel([call("charge"), call("ship")], "done")
        conversation = home.open(ToolCallingAgent(model, [charge, ship]), "c")
        if not conversation.messages():
            conversation.send("go")
        conversation.run()
        return answers(conversation)


def test_killed_in_the_second_of_two_tools(tmp_path):
    """The first one, which had answered, is not called again; the second has the same key, and knows its attempt."""
    with CrashLab("test_tool_steps:killed_in_ship", HERE) as lab:
        assert lab.run(tmp_path).was_killed
        assert lab.run(tmp_path).answer == ["charge", "ship"]
    rows = effects(tmp_path)
    assert sorted((name, attempt) for _, attempt, name in rows) == [("charge", "1"), ("ship", "1"), ("ship", "2")]
    assert len({key for key, _, name in rows if name == "ship"}) == 1


def twice_cut(folder):
    """Killed at every start: a call that is cut off again and again is counted each time."""

    def look() -> str:
        """Look."""
        return note(folder, "look")

    with Conversations(Path(folder) / "talks.db") as home:
        model = ScriptedModel("done") if (Path(folder) / "asked").exists() else ScriptedModel(call("look"), "done")
        (Path(folder) / "asked").touch()
        conversation = home.open(ToolCallingAgent(model, [look]), "c")
        if not conversation.messages():
            conversation.send("go")
        conversation.run()
        return answers(conversation)


@pytest.mark.parametrize("side", ["before", "written", "after"])
def test_attempts_are_counted_over_several_crashes(tmp_path, side):
    """The attempt is written down before the call is made."""
    with CrashLab("test_tool_steps:twice_cut", HERE) as lab:
        assert lab.run(tmp_path, "tool.effect.after").was_killed
        assert lab.run(tmp_path, f"conversation.attempt.{side}").was_killed
        assert lab.run(tmp_path, "tool.effect.after").was_killed
        assert lab.run(tmp_path).answer == ["look"]
    attempts = [int(attempt) for _, attempt, _ in effects(tmp_path)]
    assert attempts == ([1, 3, 4] if side == "after" else [1, 2, 3])
