"""`troth run`: a workflow from the command line means what it means from Python."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from troth.cli import app
from troth.runtime import Runtime

STEPS = """
import os

def greet(name, times=1):
    return {"text": " ".join(["hello"] * times + [name])}

def fail(name):
    if os.path.exists("fixed"):
        return "fine"
    raise ValueError(f"no {name}")

def undo(name):
    print("undone", name)
"""
FLOW = """
troth: 1
name: greeting
inputs:
  name: string
  times: {type: integer, default: 1}
steps:
  - {id: greet, function: mysteps:greet, inputs: {name: inputs.name, times: inputs.times}}
"""
BAD = """
troth: 1
name: failing
on_error: stop
inputs: {name: string}
steps:
  - {id: greet, function: mysteps:greet, inputs: {name: inputs.name}, undo: mysteps:undo}
  - {id: fail, function: mysteps:fail, inputs: {name: inputs.name}}
"""
ASK = """
troth: 1
name: asking
inputs: {name: string}
steps:
  - {id: greet, function: mysteps:greet, inputs: {name: inputs.name}, undo: mysteps:undo}
  - {id: ok, approval: Shall I?, show: {name: inputs.name}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    for name, text in (("mysteps.py", STEPS), ("flow.yaml", FLOW), ("bad.yaml", BAD), ("ask.yaml", ASK)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    yield tmp_path
    sys.modules.pop("mysteps", None)


@pytest.fixture
def troth(capsys):
    def run(*argv):
        code = app.run(argv)
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_a_run_that_completes_says_so_in_two_lines(folder, troth):
    """The state with the id, and the output as JSON."""
    code, out, err = troth("run", "flow.yaml", "-i", "name=Ann", "-i", "times=2")
    first, second = out.splitlines()
    assert (code, err) == (0, "")
    assert first.startswith("✓ completed  greeting-")
    assert json.loads(second) == {"text": "hello hello Ann"}


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        pytest.param(["-i", "nam=Ann"], "Did you mean `name`?", id="unknown input"),
        pytest.param([], "the input 'name' (string) is missing", id="missing input"),
        pytest.param(["-i", "name=Ann", "-i", "times=many"], "but the contract requires integer", id="wrong type"),
        pytest.param(["-i", "name"], "`-i name` has no value", id="no value"),
        pytest.param(["-i", "name=Ann", "-i", "times=NaN"], "but the contract requires integer", id="no number"),
        pytest.param(["--inputs", "mysteps.py"], "this is not JSON", id="inputs that are not JSON"),
        pytest.param(["--inputs", "nosuch.json"], "`--inputs nosuch.json` cannot be read: No such file", id="no file"),
        pytest.param(["--inputs", "."], "`--inputs .` cannot be read: Is a directory", id="inputs from a folder"),
        pytest.param(["--inputs", "latin.json"], "latin.json: this is not UTF-8", id="inputs in another encoding"),
        pytest.param(["--inputs", "list.json"], "has to hold a JSON object", id="inputs in a list"),
    ],
)
def test_wrong_inputs_start_nothing(folder, troth, argv, says):
    """Exit 2, and no run is in the store."""
    (folder / "latin.json").write_bytes(b'{"name": "\xe4"}')
    (folder / "list.json").write_text("[1]")
    code, out, err = troth("run", "flow.yaml", *argv)
    assert (code, out) == (2, "")
    assert says in err
    assert troth("runs", "list")[1] == "no runs yet\n"


def test_inputs_from_a_file_and_the_record_as_json(folder, troth):
    """For machines; `-i` wins over the file. A string stays a string even if it looks like a number."""
    (folder / "in.json").write_text('{"name": "Ann", "times": 3}', encoding="utf-8")
    code, out, _ = troth("run", "flow.yaml", "--inputs", "in.json", "-i", "name=7", "--json")
    told = json.loads(out)
    assert (code, told["state"], told["inputs"]) == (0, "completed", {"name": "7", "times": 3})


def test_a_run_that_fails(folder, troth):
    """Exit 1; step, the user's line, message, and the command to go on. That command works once the cause is gone."""
    code, out, err = troth("run", "bad.yaml", "-i", "name=Ann")
    assert (code, out) == (1, "")
    assert "failed at step 'fail'" in err
    assert 'mysteps.py:10  raise ValueError(f"no {name}")' in err
    assert "ValueError: no Ann" in err
    command = next(line.split() for line in err.splitlines() if line.strip().startswith("troth runs resume"))
    (folder / "fixed").touch()
    code, out, _ = troth(*command[1:])
    assert code == 0
    assert out.splitlines()[1] == '"fine"'


def test_the_same_id_goes_on_with_the_same_run(folder, troth):
    """Nothing is done twice."""
    first = troth("run", "flow.yaml", "-i", "name=Ann", "--id", "one")
    assert troth("run", "flow.yaml", "-i", "name=Ann", "--id", "one") == first
    assert troth("runs", "list")[1].count("one") == 1


def test_an_id_of_another_workflow_is_refused(folder, troth):
    """In the words of the workflow file, without the hashes that tell versions apart."""
    troth("run", "flow.yaml", "-i", "name=Ann", "--id", "one")
    text = (folder / "flow.yaml").read_text()
    name = next(line.split()[1] for line in text.splitlines() if line.startswith("name:"))
    (folder / "flow.yaml").write_text(text + "description: changed\n")
    code, _, err = troth("run", "flow.yaml", "-i", "name=Ann", "--id", "one")
    assert code == 2
    assert f"The id 'one' belongs to a run of `workflow:{name}` in another version." in err
    code, _, err = troth("run", "ask.yaml", "-i", "name=Ann", "--id", "one")
    assert code == 2
    assert f"belongs to a run of `workflow:{name}`; this one is of `workflow:" in err
    assert "@" not in err


def test_a_question_ends_the_command_and_an_answer_goes_on(folder, troth):
    """`approve` carries the rest out itself."""
    code, out, _ = troth("run", "ask.yaml", "-i", "name=Ann")
    assert code == 0
    assert "waits at 'ok': Shall I?" in out
    assert "troth runs approve" in out
    code, out, _ = troth("runs", "approve", "last", "--by", "bob", "--note", "fine")
    assert code == 0
    assert json.loads(out.splitlines()[1]) == {"approved": True, "by": "bob", "note": "fine"}


def test_a_denied_question_undoes(folder, troth):
    """Exit 1, because the run failed; the undo happened."""
    troth("run", "ask.yaml", "-i", "name=Ann")
    code, out, err = troth("runs", "approve", "last", "--deny")
    assert code == 1
    assert "undone Ann" in out
    assert "rolled back" in err


def test_a_denied_question_is_asked_again(folder, troth):
    """Where nothing had to be undone, the run stops at the no; whoever goes on asks anew, and may hear a yes."""
    (folder / "ask.yaml").write_text(ASK.replace(", undo: mysteps:undo", ""))
    troth("run", "ask.yaml", "-i", "name=Ann")
    assert troth("runs", "approve", "last", "--deny")[0] == 1
    code, out, _ = troth("runs", "resume", "last")
    assert (code, "waits at 'ok': Shall I?" in out) == (0, True)
    assert troth("runs", "approve", "last")[0] == 0


BESIDE = """
troth: 1
name: beside
inputs: {name: string}
steps:
  - id: both
    parallel:
      - {id: ok, approval: Shall I?}
      - {id: greet, function: mysteps:greet, inputs: {name: inputs.name}}
"""


def test_a_question_beside_other_work_ends_the_command_too(folder, troth):
    """When the work is done, and all that the run waits for is an answer."""
    (folder / "beside.yaml").write_text(BESIDE)
    code, out, _ = troth("run", "beside.yaml", "-i", "name=Ann")
    assert (code, "waits at 'ok': Shall I?" in out) == (0, True)
    assert troth("runs", "approve", "last")[0] == 0


def test_an_id_that_a_shell_would_take_apart_is_quoted(folder, troth):
    """The command that is printed can be pasted."""
    _, _, err = troth("run", "bad.yaml", "-i", "name=Ann", "--id", "my run", "--store", "my runs.db")
    command = next(line.strip() for line in err.splitlines() if "runs resume" in line)
    (folder / "fixed").touch()
    assert troth(*shlex.split(command)[1:])[0] == 0


@pytest.mark.parametrize(
    ("store", "code", "says"),
    [
        pytest.param(".", 2, "is a folder, and a store is a file", id="a folder"),
        pytest.param("flow.yaml/runs.db", 1, "cannot be made: File exists", id="below a file"),
        pytest.param("flow.yaml", 2, "is not a Troth store", id="another file"),
    ],
)
def test_a_store_that_cannot_be(folder, troth, store, code, says):
    """Said in a sentence; the file that is there is not touched."""
    before = (folder / "flow.yaml").read_bytes()
    found, out, err = troth("run", "flow.yaml", "-i", "name=Ann", "--store", store)
    assert (found, out, says in err) == (code, "", True), err
    assert (folder / "flow.yaml").read_bytes() == before


LOUD = """
import os, sys
print("at import", flush=True)

def speak(text="", note=""):
    print("printed")
    os.system("echo from a program")
    return note or text
"""
SPEAKING = """
troth: 1
name: speaking
inputs: {text: string}
steps:
  - {id: a, function: loud:speak, inputs: {text: inputs.text}}
  - {id: ok, approval: Well?}
  - {id: b, function: loud:speak, inputs: {text: inputs.text}}
"""
FULL = Path("/dev/full")
TEXT = "ünï ✓ 😀 \ud800"


def from_a_shell(*argv, encoding=None, stdout=subprocess.PIPE):
    """A process of its own, as a shell starts it."""
    environment = {**os.environ, "PYTHONIOENCODING": encoding} if encoding else None
    return subprocess.run(
        [sys.executable, "-m", "troth", *argv],
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
        env=environment,
    )


def test_what_steps_print_is_no_part_of_the_json(folder):
    """With `--json`, stdout has the JSON alone; what the user's code prints, and programs it starts, is on stderr."""
    (folder / "loud.py").write_text(LOUD)
    (folder / "speaking.yaml").write_text(SPEAKING)
    for argv, state in (
        (["validate", "speaking.yaml"], None),
        (["run", "speaking.yaml", "-i", "text=x", "--id", "one"], "waiting"),
        (["runs", "approve", "one"], "completed"),
        (["runs", "fork", "one", "--from", "b"], "completed"),
        (["runs", "replay", "one"], None),
    ):
        done = from_a_shell(*argv, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout).get("state") == state
        assert b"at import" in done.stderr
        if state is not None:
            assert b"printed\nfrom a program" in done.stderr.replace(b"\r", b"")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8", "utf-16"])
def test_any_letter_can_be_printed_anywhere(folder, encoding):
    """A pipe under Windows, or with `LC_ALL=C`, knows few letters; half a letter is in no encoding at all."""
    (folder / "loud.py").write_text(LOUD)
    (folder / "speaking.yaml").write_text(SPEAKING.replace("  - {id: ok, approval: Well?}\n", ""))
    (folder / "in.json").write_text(json.dumps({"text": TEXT}))
    first = from_a_shell("run", "speaking.yaml", "--inputs", "in.json", "--id", "one", encoding=encoding)
    assert first.returncode == 0, first.stderr
    for argv in (["list"], ["show", "one"], ["show", "one", "--follow"], ["show", "one", "--mermaid"]):
        done = from_a_shell("runs", *argv, encoding=encoding)
        assert (done.returncode, done.stderr) == (0, b"")
        assert ("✓" if encoding.startswith("utf") else "+") in done.stdout.decode(encoding)
    told = from_a_shell("runs", "show", "one", "--json", encoding=encoding)
    assert json.loads(told.stdout.decode(encoding))["output"] == TEXT
    for page in ("-", "page.html"):
        assert from_a_shell("runs", "show", "one", "--html", page, encoding=encoding).returncode == 0
    assert "😀" in (folder / "page.html").read_text("utf-8")


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is full")
@pytest.mark.parametrize(
    "argv",
    [
        pytest.param(["run", "flow.yaml", "-i", "name=Ann"], id="run"),
        pytest.param(["run", "flow.yaml", "-i", "name=Ann", "--json"], id="run, JSON"),
        pytest.param(["runs", "list"], id="list"),
        pytest.param(["validate", "flow.yaml"], id="validate"),
    ],
)
def test_results_that_cannot_be_written(folder, troth, argv):
    """A full disk behind stdout is no mistake of ours, and none that is hidden."""
    troth("run", "flow.yaml", "-i", "name=Ann")
    with FULL.open("wb") as full:
        done = from_a_shell(*argv, stdout=full)
    assert (done.returncode, b"could not be written to stdout: No space left" in done.stderr) == (1, True)


def test_a_workflow_built_in_python(folder, troth):
    """By the file it is in, or by its module."""
    (folder / "built.py").write_text(
        "from troth.runtime import Workflow, step\nflow = Workflow('built', step('a', function=lambda: 3))\nother = 3\n",
        encoding="utf-8",
    )
    assert troth("run", "built.py:flow")[1].splitlines()[1] == "3"
    assert "a int, not a Workflow" in troth("run", "built.py:other")[2]
    assert "There is no workflow `nosuch:flow`: there is no module 'nosuch'" in troth("run", "nosuch:flow")[2]
    sys.modules.pop("built", None)


def test_a_bad_workflow_tells_everything_and_starts_nothing(folder, troth):
    """Exit 2."""
    (folder / "flow.yaml").write_text(FLOW.replace("mysteps:greet", "mysteps:gret"), encoding="utf-8")
    code, _, err = troth("run", "flow.yaml", "-i", "name=Ann")
    assert code == 2
    assert "flow.yaml:8:27: the module 'mysteps' has no function 'gret'" in err
    assert "Did you mean `greet`?" in err


def test_without_the_extra_it_says_what_to_install(folder):
    """Base commands work without YAML; those that read it say how to get it."""
    code = "import sys; sys.modules['yaml'] = None; from troth.cli.app import run; sys.exit(run(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "flow.yaml", "-i", "name=Ann"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "pip install 'troth[runtime]'" in done.stderr
    assert "Traceback" not in done.stderr


SLOW = """
troth: 1
name: slow
inputs: {name: string}
steps:
  - {id: greet, function: mysteps:greet, inputs: {name: inputs.name}}
  - {id: long, %s}
"""


@pytest.mark.parametrize(
    "long",
    [
        pytest.param("function: 'slowly:sync'", id="in a sync step"),
        pytest.param("function: 'slowly:awaits'", id="in an async step"),
        pytest.param("sleep: 60s", id="in a sleep"),
    ],
)
def test_ctrl_c_interrupts_and_says_how_to_go_on(folder, long):
    """At once, with exit 130; what is done is kept, and the commands it prints work."""
    (folder / "slowly.py").write_text(
        "import asyncio, time\ndef sync(): time.sleep(60)\nasync def awaits(): await asyncio.sleep(60)\n"
    )
    (folder / "slow.yaml").write_text(SLOW % long)
    command = [sys.executable, "-m", "troth", "run", "slow.yaml", "-i", "name=ann", "--id", "one"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with Runtime(folder / ".troth/runs.db", recover=False) as looking:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            row = looking.engine.find("one")
            if row is not None and len(looking.engine.steps("one")) > 1:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, err = process.communicate(timeout=30)
        assert (process.returncode, time.monotonic() - began < 10) == (130, True)
        assert "Run one: interrupted. Completed steps are recorded.\n  troth runs resume one\n" in err
        assert "Traceback" not in err
        assert looking.show("one").step("greet").state == "done"
    assert app.run(["runs", "cancel", "one"]) == 0
