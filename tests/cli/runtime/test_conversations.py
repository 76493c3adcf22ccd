"""`troth conversations`, and what agents said in `troth runs show`: a store is looked at without any agent."""

import json
import sqlite3

import pytest

from troth.cli import app
from troth.runtime import Conversations, Runtime, Workflow, step
from troth.runtime.agents import Agent, ToolCallingAgent
from troth.runtime.tools import tool
from troth.testing.scripted import ScriptedModel, call


@tool
def weigh(order: str) -> float:
    """The weight of an order."""
    return 3.5


class Failing(Agent):
    def step(self, conversation):
        conversation.say("let me look")
        raise ConnectionError("no line")


def weigher():
    return ToolCallingAgent(ScriptedModel(call("weigh", '{"order": "A7"}'), "It weighs <b>3.5</b> kg."), tools=[weigh])


@pytest.fixture
def troth(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("TROTH_STORE", raising=False)

    def run(*argv):
        code = app.run(argv)
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def talks(tmp_path):
    """Two conversations: one that finished with a tool, and one that failed."""
    with Conversations(tmp_path / "trip.db") as home:
        first = home.open(weigher(), "first")
        first.send("How heavy is A7?")
        first.run()
        second = home.open(Failing(), "second")
        second.send("Look!")
        with pytest.raises(ConnectionError):
            second.run()
    return "trip.db"


def test_list(troth, talks):
    """The last active first, the state in words; a machine gets the same."""
    code, out, _ = troth("conversations", "list", "--store", talks)
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()] == [["second", "failed"], ["first", "finished"]]
    assert "2 turns, 1 call" not in out.splitlines()[0]
    assert "1 turn, 1 call" in out.splitlines()[1]
    rows = json.loads(troth("conversations", "list", "--store", talks, "--json", "--limit", "1")[1])
    assert [(row["id"], row["status"], row["turns"], "entries" in row) for row in rows] == [
        ("second", "failed", 1, False)
    ]


def test_a_store_of_conversations_says_so_where_runs_are_looked_for(troth, talks):
    """`runs list` names the command that shows them."""
    out = troth("runs", "list", "--store", talks)[1]
    assert out.splitlines() == [
        "no runs yet",
        "There are conversations: `troth conversations list --store trip.db` shows them.",
    ]


def test_show(troth, talks):
    """Who said what, in order, with the calls of tools and what they answered."""
    code, out, _ = troth("conversations", "show", "first", "--store", talks)
    assert code == 0
    assert out.splitlines()[-6:] == [
        "user       How heavy is A7?",
        "run        started",
        'assistant  → weigh({"order": "A7"})',
        "weigh      → 3.5",
        "assistant  It weighs <b>3.5</b> kg.",
        "run        finished",
    ]
    assert "ConnectionError: no line" in troth("conversations", "show", "sec", "--store", talks)[1]
    talk = json.loads(troth("conversations", "show", "last", "--store", talks, "--json")[1])
    assert (talk["id"], talk["error"]) == ("second", "ConnectionError: no line")
    assert [(one["who"], one["text"]) for one in talk["entries"]] == [
        ("user", "Look!"),
        ("run", "started"),
        ("assistant", "let me look"),
        ("run", "failed: ConnectionError: no line"),
    ]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        pytest.param(("show", "thrid"), "There is no conversation 'thrid'", id="no such"),
        pytest.param(("show", ""), "matches the beginning of 2 conversations", id="not enough"),
        pytest.param(("list", "--limit", "0"), "would list nothing", id="limit"),
    ],
)
def test_refusals(troth, talks, argv, says):
    """With a sentence."""
    code, _, err = troth("conversations", *argv, "--store", talks)
    assert (code, says in err) == (2, True)


def test_no_conversations(troth, tmp_path):
    """Neither is there one in a new store, nor is a store made by looking."""
    Runtime(tmp_path / "new.db").close()
    assert troth("conversations", "list", "--store", "new.db")[1] == "no conversations yet\n"
    assert troth("conversations", "list", "--store", "nosuch.db")[0] == 2
    assert not (tmp_path / "nosuch.db").exists()


def test_one_that_is_damaged_hides_no_other(troth, talks, tmp_path):
    """It is told, and the exit code says that something is wrong."""
    connection = sqlite3.connect(tmp_path / talks)
    with connection:
        connection.execute("UPDATE events SET payload = 'x' WHERE stream = 'conversation/second' AND seq = 2")
    connection.close()
    code, out, err = troth("conversations", "list", "--store", talks)
    assert (code, out.split()[0]) == (1, "first")
    assert "entry 2 of stream 'conversation/second'" in err


def test_the_talk_of_an_agent_step_is_shown_with_its_run(troth, tmp_path):
    """In the terminal, as JSON and on the page; and among the conversations, under the run's id."""
    prompt = {"prompt": {"value": "How heavy is A7?"}}
    with Runtime(tmp_path / ".troth/runs.db", agents={"weigher": weigher()}) as runtime:
        runtime.run(Workflow("w", step("judge", agent="weigher", inputs=prompt)), run_id="r1")
        assert runtime.show("r1").step("judge").talk == ()
        assert [entry.who for entry in runtime.show("r1", talks=True).step("judge").talk] == [
            "user",
            "run",
            "call",
            "answer",
            "assistant",
            "run",
        ]
    out = troth("runs", "show", "r1")[1]
    assert "judge: messages and tool calls of its agent" in out
    assert '  assistant  → weigh({"order": "A7"})\n  weigh      → 3.5\n' in out
    (judge,) = json.loads(troth("runs", "show", "r1", "--json")[1])["steps"]
    assert [(entry["who"], entry["tool"], entry["text"]) for entry in judge["talk"]][2:4] == [
        ("call", "weigh", '{"order": "A7"}'),
        ("answer", "weigh", "3.5"),
    ]
    html = troth("runs", "show", "r1", "--html", "-")[1]
    assert '<tr class="answer"><td>weigh</td><td>→ 3.5</td></tr>' in html
    assert "It weighs &lt;b&gt;3.5&lt;/b&gt; kg." in html
    assert troth("conversations", "show", "agent:r1")[0] == 0
