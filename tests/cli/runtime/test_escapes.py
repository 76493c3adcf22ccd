"""Whatever a step raises, an agent says or a file is called: no control character of it reaches the terminal raw."""

import json
import re

import pytest

from troth.cli import app
from troth.runtime import Conversations, Runtime, Workflow, step
from troth.runtime.agents import Agent

EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b1m"
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def fails(word):
    raise ValueError(f"{EVIL} {word}")


class Talker(Agent):
    def step(self, conversation):
        conversation.say(EVIL)


@pytest.fixture(params=["never", "always"])
def troth(request, capsys, monkeypatch, tmp_path):
    """Runs a command; the answer is what it wrote, without the colors that are its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TROTH_STORE", raising=False)

    def run(*argv):
        app.run([argv[0], "--color", request.param, *argv[1:]])
        out, err = capsys.readouterr()
        return out + err

    def ours(text):
        return re.sub("\x1b\\[(?:0|1|2|3[1-6]|[12];3[1-6]|3[1-6];[12])m", "", text)

    run.ours = ours if request.param == "always" else lambda text: text
    return run


def check(troth, *argv, says="\\x1b]0;owned\\x07\\x1b[2J\\x1b[31mred\\x9b1m"):
    text = troth.ours(troth(*argv))
    assert says in text
    assert CONTROLS.findall(text) == []


@pytest.fixture
def store(tmp_path):
    flow = Workflow(
        "w",
        step("a", agent=Talker(), inputs={"prompt": {"value": EVIL}}),
        step("b", function=fails, inputs={"word": {"value": EVIL}}, retry={"attempts": 2, "delay": "1ms"}),
        on_error="stop",
    )
    with Runtime(tmp_path / ".troth/runs.db") as runtime:
        runtime.run(flow, run_id="r1", check=False)


@pytest.mark.parametrize("argv", [("runs", "list"), ("runs", "show", "r1"), ("runs", "show", "r1", "--follow")])
def test_runs(troth, store, argv, monkeypatch):
    """In lists, pictures and events."""
    monkeypatch.setenv("COLUMNS", "300")
    check(troth, *argv)


def test_conversations(troth, tmp_path):
    """What was said, and the id of whoever said it."""
    with Conversations(tmp_path / "t.db") as home:
        talk = home.open(Talker(), "talk")
        talk.send(EVIL)
        talk.run()
    check(troth, "conversations", "show", "talk", "--store", "t.db")


def test_the_error_of_a_run(troth, tmp_path):
    """As `troth run` prints it, and in what Python raises."""
    (tmp_path / "evil.py").write_text(f"def fails():\n    raise ValueError({EVIL!r})\n", encoding="utf-8")
    (tmp_path / "w.yaml").write_text("troth: 1\nname: w\nsteps: [{id: a, function: 'evil:fails'}]\n", encoding="utf-8")
    check(troth, "run", "w.yaml")


def test_a_wrong_word(troth):
    """Quoted in a message of our own."""
    check(troth, "run", f"{EVIL}.yaml", says="\\x1b")


def test_check(troth, tmp_path):
    """The name of a file, and the line of code that is shown."""
    name = "a\x1b[31mb\x1b[2J.py"
    (tmp_path / name).write_text("async def save(): ...\nasync def main():\n    save()\n", encoding="utf-8")
    check(troth, "check", "--no-cache", says="a\\x1b[31mb\\x1b[2J.py")
    check(troth, "check", "--no-cache", "--output-format", "concise", says="a\\x1b[31mb\\x1b[2J.py")


def test_a_machine_gets_what_was_written(troth, store, capsys):
    """JSON has escapes of its own."""
    run = json.loads(troth("runs", "show", "r1", "--json"))
    assert run["steps"][1]["error"]["message"] == f"{EVIL} {EVIL}"
