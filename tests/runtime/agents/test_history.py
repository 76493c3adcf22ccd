"""What a model is told, whatever happens meanwhile: a history that a strict chat API accepts, and that only grows."""

import asyncio
import itertools
import json
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troth.runtime import current_step
from troth.runtime.agents import Agent, Message, ModelError, Reply, ToolCall, ToolCallingAgent
from troth.runtime.agents.history import HistoryFold
from troth.runtime.agents.openai import OpenAIModel, _message
from troth.runtime.conversations import AgentExitError, Conversations, Status
from troth.runtime.store import Event
from troth.runtime.tools import tool
from troth.testing.scripted import call

LIMIT = 20  # seconds after which a test that hangs is given up


def refusal(rows):
    """Why OpenAI's Chat Completions answers 400 to these messages, in its words; None where it does not."""
    left: list[str] = []
    for index, row in enumerate(rows):
        if row["role"] == "tool":
            if row["tool_call_id"] not in left:
                return (
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    f"'tool_calls'. (messages[{index}])"
                )
            left.remove(row["tool_call_id"])
        elif left:
            return (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(left)}"
            )
        else:
            left = [asked["id"] for asked in row.get("tool_calls", ())]
    return f"The following tool_call_ids did not have response messages: {', '.join(left)}" if left else None


# ---- the fold


def user(text):
    return {"role": "user", "text": text}


def said(text="", *calls, seen=None):
    row = Message("assistant", text, tuple(call(name, id=f"id-{name}") for name in calls)).to_json()
    return row if seen is None else {**row, "seen": seen}


def answer(name, key=None):
    row = {"role": "tool", "text": f"{name} answered", "call_id": f"id-{name}"}
    return row if key is None else {**row, "key": key}


def folded(*payloads):
    fold = HistoryFold("c")
    fold.take(
        Event(0, "s", seq, *(payload if isinstance(payload, tuple) else ("message", payload)), 0.0)
        for seq, payload in enumerate(payloads, start=1)
    )
    return fold


def texts(messages):
    return [message.text or "+".join(asked.name for asked in message.calls) for message in messages]


@pytest.mark.parametrize(
    ("log", "told"),
    [
        pytest.param([user("1"), said("a"), user("2")], ["1", "a", "2"], id="one after the other"),
        pytest.param([user("1"), user("2"), said("a", seen=1)], ["1", "a", "2"], id="sent while the model thought"),
        pytest.param([user("1"), user("2"), said("a", seen=2)], ["1", "2", "a"], id="sent before it thought"),
        pytest.param(
            [user("1"), user("2"), said("a", seen=1), said("b", seen=1)],
            ["1", "a", "b", "2"],
            id="said twice meanwhile",
        ),
        pytest.param(
            [user("1"), user("2"), said("a", seen=1), user("3"), said("b", seen=3)],
            ["1", "a", "2", "b", "3"],
            id="sent in two steps",
        ),
        pytest.param(
            [user("1"), said("", "x"), user("2"), answer("x")], ["1", "x", "x answered", "2"], id="sent during a call"
        ),
        pytest.param(
            [user("1"), user("2"), said("", "x", seen=1), user("3"), answer("x", "c:3.0:x")],
            ["1", "x", "x answered", "2", "3"],
            id="sent while the model thought, and during the call",
        ),
        pytest.param(
            [said("", "x", "y"), answer("y"), user("2"), answer("x")],
            ["x+y", "x answered", "y answered", "2"],
            id="answers in the order of the calls",
        ),
        pytest.param(
            [said("", "x", "x"), answer("x", "c:1.1:x"), answer("x", "c:1.0:x")],
            ["x+x", "x answered", "x answered"],
            id="two calls of one id",
        ),
        pytest.param([said("", "x"), answer("x"), answer("x")], ["x", "x answered"], id="a second answer"),
        pytest.param([user("1"), answer("x"), said("a")], ["1", "a"], id="an answer to nothing"),
        pytest.param(
            [said("", "x"), said("a"), user("1")],
            ["x", '{"error": "no answer was recorded"}', "a", "1"],
            id="no answer",
        ),
        pytest.param([said("", "x"), said("a"), answer("x")], ["x", "x answered", "a"], id="an answer that comes late"),
    ],
)
def test_the_order_in_which_a_model_is_told(log, told):
    """Answers right behind their calls; what the agent did not know of behind what it said."""
    history = folded(*log).history()
    assert texts(history.messages) == told
    if not history.pending:
        assert refusal([_message(message) for message in history.messages]) is None


def test_the_talk_has_every_message_of_the_log():
    """Also what no model is told, and nothing that is not there."""
    fold = folded(said("", "x"), answer("x"), answer("x"), said("", "y"), said("a"))
    assert texts(fold.messages()) == ["x", "x answered", "x answered", "y", "a"]


ASKED = ("asked", {"what": "interrupt"})
STARTED = ("run.started", {"run": "r"})


def attempt(number):
    return "tool.attempt", {"key": "c:1.0:x", "attempt": number}


@pytest.mark.parametrize(
    ("log", "pending"),
    [
        pytest.param([said("", "x", "y")], [("x", 2, False), ("y", 2, False)], id="cut off"),
        pytest.param([said("", "x", "y"), answer("x")], [("y", 2, False)], id="cut off after an answer"),
        pytest.param([said("", "x"), answer("x")], [], id="answered"),
        pytest.param([said("", "x"), STARTED, attempt(2), STARTED, attempt(3)], [("x", 4, False)], id="cut off thrice"),
        pytest.param([said("", "x"), ASKED], [("x", 2, True)], id="interrupted"),
        pytest.param([ASKED, said("", "x")], [("x", 2, True)], id="asked for in an interrupted run"),
        pytest.param([ASKED, STARTED, said("", "x")], [("x", 2, False)], id="the run before was interrupted"),
        pytest.param([said("", "x"), STARTED, ASKED, STARTED], [("x", 2, True)], id="interrupted in a later run"),
        pytest.param([said("", "x"), user("1")], [("x", 2, False)], id="something was sent since"),
        pytest.param([said("", "x"), said("a")], [], id="the agent went on without it"),
    ],
)
def test_the_calls_that_are_left(log, pending):
    """With their next attempt, and whether somebody stopped them."""
    left = folded(*log).history().pending
    assert [(one.name, one.attempt, one.is_interrupted) for one in left] == pending


def test_two_calls_of_one_id_need_two_answers():
    """What one of them was told does not count for the other."""
    wish = said("", "x", "x")
    assert [len(folded(wish, *[answer("x")] * count).history().pending) for count in range(3)] == [2, 1, 0]


# ---- the real SDK against a server that keeps OpenAI's rule


class StrictServer:
    """Answers by a function of the messages; 400 to a history that OpenAI would refuse."""

    def __init__(self, reply):
        self.asked: list[list[dict]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                rows = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"]
                outer.asked.append(rows)
                problem = refusal(rows)
                self.send_response(200 if problem is None else 400)
                self.send_header("content-type", "text/event-stream" if problem is None else "application/json")
                self.end_headers()
                if problem is not None:
                    self.wfile.write(json.dumps({"error": {"message": problem}}).encode())
                    return
                for piece in streamed(reply(rows)):
                    self.wfile.write(piece.encode())

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


def streamed(line):
    """A text, or the names of tools to call, as a stream of one chunk and its end."""
    if isinstance(line, str):
        delta = {"role": "assistant", "content": line}
    else:
        calls = [
            {"index": n, "id": f"id-{n}-{name}", "type": "function", "function": {"name": name, "arguments": "{}"}}
            for n, name in enumerate(line)
        ]
        delta = {"role": "assistant", "tool_calls": calls}
    for part, end in ((delta, None), ({}, "stop" if isinstance(line, str) else "tool_calls")):
        choice = {"index": 0, "delta": part, "finish_reason": end}
        row = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
        yield f"data: {json.dumps(row)}\n\n"
    yield "data: [DONE]\n\n"


@pytest.fixture
def home(tmp_path):
    with Conversations(tmp_path / "talks.db") as conversations:
        yield conversations


ENTRIES = {
    "run": lambda conversation: conversation.run(),
    "arun": lambda conversation: asyncio.run(conversation.arun()),
}


@pytest.fixture(params=ENTRIES)
def run(request):
    return ENTRIES[request.param]


def model_at(server):
    return OpenAIModel("m", base_url=server.url, api_key="k")


def roles(rows):
    return [row["role"] for row in rows]


def test_a_message_during_a_tool_call(home, run):
    """It is told behind the answer, and the conversation goes on, in this run and in later ones."""

    def look() -> str:
        """Look."""
        conversation.send("be quick")
        return "seen"

    def reply(rows):
        return ["look"] if len(rows) == 1 else f"answer to {rows[-1]['content']}"

    with StrictServer(reply) as server:
        conversation = home.open(ToolCallingAgent(model_at(server), [look]))
        conversation.send("go")
        assert run(conversation).outcome is Status.FINISHED
        conversation.send("and now?")
        assert run(conversation).outcome is Status.FINISHED
    assert roles(server.asked[1]) == ["user", "assistant", "tool", "user"]
    assert conversation.messages()[-1].text == "answer to and now?"


def test_a_message_while_the_model_thinks(home, run):
    """The next request ends with it: it does not look answered by an answer that did not know of it."""

    def reply(rows):
        if len(rows) == 1:
            conversation.send("and you?")
        return f"answer to {rows[-1]['content']}"

    with StrictServer(reply) as server:
        conversation = home.open(ToolCallingAgent(model_at(server)))
        conversation.send("how are you?")
        assert run(conversation).outcome is Status.FINISHED
    assert [row["content"] for row in server.asked[1]] == ["how are you?", "answer to how are you?", "and you?"]
    assert conversation.messages()[-1].text == "answer to and you?"


def test_the_stop_button(home):
    """`interrupt`, a word, `run`: accepted, and the tool is not called again."""
    deleted = []
    began = threading.Event()

    async def delete() -> str:
        """Delete."""
        deleted.append(1)
        began.set()
        await asyncio.Event().wait()
        return "never"

    def reply(rows):
        return ["delete", "delete"] if len(rows) == 1 else "I stop"

    async def stop():
        task = asyncio.create_task(conversation.arun())
        while not began.is_set():
            await asyncio.sleep(0.001)
        conversation.interrupt()
        await task

    with StrictServer(reply) as server:
        conversation = home.open(ToolCallingAgent(model_at(server), [delete]))
        conversation.send("delete it all")
        asyncio.run(stop())
        conversation.send("No! Do not delete anything")
        assert conversation.run().outcome is Status.FINISHED
    assert len(deleted) == 2
    assert roles(server.asked[-1]) == ["user", "assistant", "tool", "tool", "user"]
    assert all("interrupted" in row["content"] for row in server.asked[-1][2:4])


def test_a_log_that_was_refused_before_is_accepted(home):
    """Conversations of the time before: the answer stands behind what was sent meanwhile, without a key."""
    with StrictServer(lambda rows: f"answer to {rows[-1]['content']}") as server:
        conversation = home.open(ToolCallingAgent(model_at(server)))
        conversation.send("go")
        conversation.say(Message("assistant", "", (ToolCall("x", "look", "{}"),)))
        conversation.send("be quick")
        conversation.say(Message("tool", "seen", call_id="x"))
        assert conversation.run().outcome is Status.FINISHED
    assert conversation.messages()[-1].text == "answer to be quick"


def test_an_agent_of_ones_own_reads_the_same_order(home):
    """`messages()` has what was sent meanwhile behind what the agent said without reading it, and so last."""
    seen = []

    class Echo(Agent):
        def step(self, conversation):
            last = conversation.messages()[-1].text
            seen.append(last)
            if last == "one":
                conversation.send("two")
            conversation.say(f"echo {last}")

    conversation = home.open(Echo())
    conversation.send("one")
    conversation.run()
    assert seen == ["one", "two"]
    assert [message.text for message in conversation.messages()] == ["one", "echo one", "two", "echo two"]


def test_what_an_agent_has_read_stays_before_its_answer(home):
    """It read the talk again in the middle of its step, and answers what had come in: that is not moved behind."""

    class Rereading(Agent):
        def step(self, conversation):
            if len(conversation.messages()) == 1:
                conversation.send("two")
                both = " and ".join(message.text for message in conversation.messages())
                conversation.say(f"echo {both}")

    conversation = home.open(Rereading())
    conversation.send("one")
    conversation.run()
    assert [message.text for message in conversation.messages()] == ["one", "two", "echo one and two"]


# ---- any interleaving


@dataclass(frozen=True)
class Turn:
    """What happens while the model thinks, and what it says then: a text, an error, or calls of tools."""

    meanwhile: tuple[str, ...]
    calls: tuple[tuple[str, tuple[str, ...], str], ...]
    fails: bool = False


ACTS = st.lists(st.sampled_from(["send", "send", "interrupt", "pause"]), max_size=2).map(tuple)
ENDS = st.sampled_from(["answer", "raise", "cut"])
CALLS = st.one_of(
    st.tuples(st.tuples(st.sampled_from(["work", "awork"]), ACTS, ENDS)),
    st.lists(
        st.tuples(st.sampled_from(["work", "awork"]), ACTS, st.sampled_from(["answer", "raise"])),
        min_size=2,
        max_size=3,
    ).map(tuple),
    st.just(()),
)
TURNS = st.lists(st.builds(Turn, ACTS, CALLS, st.sampled_from([False, False, False, True])), max_size=6)


class World:
    """A model, its tools and its users, all of them under one script; and what the model may be told of it."""

    def __init__(self, home, turns):
        self.turns = list(turns)
        self.sent: list[tuple[int, str]] = []
        self.count = 0
        self.told: list[dict] = []
        self.last: Message | None = None
        self.plans: dict[str, tuple[tuple[str, ...], str]] = {}
        self.made: dict[str, int] = {}
        self.at_work = 0
        self.changed = threading.Condition()
        self.home = home
        self.conversation = self.handle()

    def handle(self):
        """Another handle of the same conversation, as each request of a server has one."""
        return self.home.open(ToolCallingAgent(self, [tool(self.work), tool(self.awork)]), "c")

    def act(self, acts):
        for name in acts:
            handle = self.conversation if self.count % 2 else self.handle()
            if name == "send":
                with self.changed:
                    self.count += 1
                    text = f"message {self.count}"
                    self.sent.append((handle.send(text), text))
            else:
                getattr(handle, name)()

    def run(self, entry):
        """One run, and whatever of it is left behind in threads."""
        if entry in ENTRIES:
            with suppress(KeyboardInterrupt, AgentExitError, ModelError):
                ENTRIES[entry](self.conversation)
        else:
            self.run_in_background(entry)
        with self.changed:
            assert self.changed.wait_for(lambda: self.at_work == 0, LIMIT)

    def run_in_background(self, entry):
        handle = self.handle()

        async def astart():
            number = await handle.astart()
            async for event in handle.asubscribe(after=number, timeout=LIMIT):
                if event.kind == "run.ended":
                    break

        if entry == "start":
            number = handle.start()
            assert any(event.kind == "run.ended" for event in handle.subscribe(after=number, timeout=LIMIT))
        else:
            asyncio.run(astart())
        deadline = time.monotonic() + LIMIT
        while self.home._running:
            assert time.monotonic() < deadline, "the run did not end"
            time.sleep(0.001)

    # The model

    def reply(self, request):
        self.check(request)
        return self.answer(self.think())

    async def areply(self, request):
        self.check(request)
        turn = self.think()
        await asyncio.sleep(0)  # an interruption is raised here
        return self.answer(turn)

    def check(self, request):
        """Each request is accepted, begins with the one before, and goes on with what has happened since."""
        rows = [_message(message) for message in request.messages]
        assert refusal(rows) is None
        assert rows[: len(self.told)] == self.told
        new = rows[len(self.told) :]
        if self.last is not None:
            assert new.pop(0) == _message(self.last)
            for asked in self.last.calls:
                row = new.pop(0)
                assert (row["role"], row["tool_call_id"]) == ("tool", asked.id)
                assert row["content"].startswith((*USUAL[self.plans[asked.id][1]], '{"error": "interrupted: '))
        with self.changed:
            waiting, self.sent = sorted(self.sent), []
        assert [(row["role"], row["content"]) for row in new] == [("user", text) for _, text in waiting]
        self.told, self.last = rows, None

    def think(self):
        turn = self.turns.pop(0) if self.turns else Turn((), ())
        self.act(turn.meanwhile)
        return turn

    def answer(self, turn):
        if turn.fails:
            raise ModelError("busy", status=503)
        calls = []
        for index, (name, acts, end) in enumerate(turn.calls):
            key = f"{len(self.told)}-{index}"
            self.plans[key] = acts, end
            calls.append(ToolCall(key, name, json.dumps({"key": key})))
        self.last = Message("assistant", "" if calls else f"answer {len(self.told)}", tuple(calls))
        return Reply(self.last)

    # The tools

    def work(self, key: str) -> str:
        """Work."""
        with self.working(key):
            return self.worked(key)

    async def awork(self, key: str) -> str:
        """Work on a loop."""
        with self.working(key):
            await asyncio.sleep(0)
            return self.worked(key)

    @contextmanager
    def working(self, key):
        with self.changed:
            self.at_work += 1
            self.made[key] = self.made.get(key, 0) + 1
        try:
            assert current_step().attempt == self.made[key]
            if self.made[key] == 1:
                self.act(self.plans[key][0])
            yield
        finally:
            with self.changed:
                self.at_work -= 1
                self.changed.notify_all()

    def worked(self, key):
        end = self.plans[key][1]
        if end == "raise":
            raise ValueError("broken")
        if end == "cut" and self.made[key] == 1:
            raise KeyboardInterrupt
        return "done"


USUAL = {
    "answer": ("done",),
    "raise": ('{"error": "ValueError: broken"}',),
    "cut": ("done", '{"error": "RunError: the tool raised KeyboardInterrupt'),  # in a thread it cuts nothing off
}


@settings(max_examples=60, deadline=None)
@given(
    turns=TURNS,
    entries=st.lists(st.sampled_from(["run", "arun", "start", "astart"]), min_size=1, max_size=3),
    idle=ACTS,
)
def test_any_interleaving_of_sending_stopping_and_calling(turns, entries, idle):
    """Whatever is sent, stopped, cut off or failing, and whenever: nothing is refused, lost, moved or called twice."""
    with tempfile.TemporaryDirectory() as folder, Conversations(Path(folder) / "talks.db") as home:
        world = World(home, turns)
        world.act(["send"])
        for entry in itertools.islice(itertools.cycle(entries), 40):
            world.run(entry)
            if not world.turns and world.conversation.look().is_finished:
                break
            world.act(idle)
        world.act(["send"])
        world.run("run")
        assert world.conversation.status is Status.FINISHED
        assert world.sent == [], "somebody was not heard"
        assert all(count == 1 or world.plans[key][1] == "cut" for key, count in world.made.items())
