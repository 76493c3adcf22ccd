"""The frame of the command line: exit codes, help, and the ways out of the program."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from troth import __version__
from troth.cli import app
from troth.cli.command import Command, Example
from troth.cli.completion import SHELLS
from troth.cli.exit import Exit
from troth.errors import InternalError, MisuseError, RunError

ROOT = Path(__file__).resolve().parents[2]


def troth(*args: str, env: dict[str, str] | None = None, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "troth", *args],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **(env or {})},
        check=False,
        **options,
    )


def command(run) -> Command:
    return Command(summary="a trial", description="A trial.", examples=(), add_arguments=lambda _: None, run=run)


def raising(error: BaseException):
    def run(_args):
        raise error

    return run


@pytest.fixture
def trial(monkeypatch):
    """Adds a command `trial` whose work is the given function."""

    def add(run):
        monkeypatch.setitem(app.COMMANDS, "trial", ("nowhere", "a trial"))
        monkeypatch.setattr(app, "load", lambda _name: command(run))

    return add


@pytest.mark.parametrize(
    ("run", "code"),
    [
        pytest.param(lambda _: Exit.CLEAN, 0, id="done and clean"),
        pytest.param(lambda _: Exit.FOUND, 1, id="findings"),
        pytest.param(raising(RunError("the disk is full")), 1, id="a run that failed"),
        pytest.param(raising(MisuseError("no such path")), 2, id="bad input"),
        pytest.param(raising(InternalError("a promise of ours was broken")), 3, id="our own bug, known"),
        pytest.param(raising(KeyError("surprise")), 3, id="our own bug, a surprise"),
        pytest.param(raising(KeyboardInterrupt()), 130, id="Ctrl-C"),
    ],
)
def test_each_way_out_has_its_exit_code(trial, capsys, run, code):
    """One meaning per number, whatever the command."""
    trial(run)
    assert app.run(["trial"]) == code
    if code in (1, 2) and capsys.readouterr().err:
        assert "Traceback" not in capsys.readouterr().err


def test_the_documented_exit_codes_are_the_real_ones():
    """The page in the reference lists each number of `Exit`, and no other."""
    page = (ROOT / "docs/reference/exit-codes.md").read_text(encoding="utf-8")
    assert {int(n) for n in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)} == {int(code) for code in Exit}


def test_our_own_bug_gives_a_short_report_and_a_file(trial, capsys, monkeypatch, tmp_path):
    """The user sees a few lines to paste; the traceback lies in the file they name."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    trial(raising(KeyError("surprise")))
    app.run(["trial", *()])
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert len(err.splitlines()) <= 6
    named = Path(re.search(r"traceback is in (\S+)", err)[1])
    assert "KeyError: 'surprise'" in named.read_text(encoding="utf-8")


def test_debugging_shows_the_traceback_at_once(trial, capsys, monkeypatch, tmp_path):
    """`TROTH_DEBUG=1` is for the one who looks for the bug."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TROTH_DEBUG", "1")
    trial(raising(KeyError("surprise")))
    app.run(["trial"])
    assert "Traceback (most recent call last)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        pytest.param([], 2, "usage: troth COMMAND", id="nothing asked"),
        pytest.param(["completoin"], 2, "Did you mean `troth completion`?", id="near miss"),
        pytest.param(["quux"], 2, "`troth --help` lists the commands", id="nothing near"),
        pytest.param(["--nosuch"], 2, "There is no option `--nosuch` here", id="unknown option"),
        pytest.param(["completion", "ksh"], 2, "invalid choice: 'ksh'", id="wrong value"),
        pytest.param(["completion", "--nosuch"], 2, "troth completion --help", id="unknown option of a command"),
        pytest.param(["check", "--exit-zer"], 2, "Did you mean `--exit-zero`?", id="option that is nearly right"),
        pytest.param(["check", "--exlude=a"], 2, "Did you mean `--exclude`?", id="option with a value, nearly right"),
    ],
)
def test_wrong_use_is_told_plainly(capsys, argv, code, says):
    """What was wrong, that nothing was done, and where help is; no traceback."""
    assert app.run(argv) == code
    err = capsys.readouterr().err
    assert says in err
    assert "Traceback" not in err


@pytest.mark.parametrize("name", app.COMMANDS)
def test_each_command_is_listed_as_it_calls_itself_and_has_examples(capsys, name):
    """The overview is made without importing the commands, so the two are held together here."""
    loaded = app.load(name)
    assert app.COMMANDS[name][1] == loaded.summary
    assert loaded.examples, f"`troth {name} --help` shows no example"
    assert app.run([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert "examples:" in out
    assert all(isinstance(example, Example) and example.line in out for example in loaded.examples)


@pytest.mark.parametrize("argv", [["--help"], ["-h"], ["help"]])
def test_help_lists_every_command_and_the_exit_codes(capsys, argv):
    """The first thing a newcomer types answers."""
    assert app.run(argv) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in app.COMMANDS)
    assert "exit codes:" in out


def test_help_of_a_command_by_its_name(capsys):
    """`troth help X` is `troth X --help`."""
    assert app.run(["help", "completion"]) == 0
    assert "usage: troth completion" in capsys.readouterr().out


@pytest.mark.parametrize("args", [["--version"], ["-V"]])
def test_the_version(args):
    """As a module; the console script enters at the same function."""
    assert troth(*args).stdout == f"troth {__version__}\n"


def test_the_version_imports_no_command():
    """Editors ask for it at every start."""
    code = "import sys; sys.argv = ['troth', '--version']; from troth.__main__ import main; main(); print(sorted(m for m in sys.modules if m.startswith('troth')))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert out.splitlines()[1] == "['troth', 'troth.__main__']"


def test_a_command_imports_no_other():
    """Start-up pays for what is used."""
    code = "import sys; from troth.cli.app import run; run(['completion', '--help']); print([m for m in sys.modules if m.startswith('troth.analysis')], 'shtab' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert out.splitlines()[-1] == "[] False"


def test_a_reader_who_leaves_is_no_failure():
    """`troth … | head -1` prints no traceback."""
    line = f"'{sys.executable}' -m troth completion bash | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "0"


@pytest.mark.parametrize(
    ("closed", "code", "out", "err"),
    [
        (">&-", "1", "", ""),
        ("2>&-", "1", "TR101", ""),
        ("<&-", "1", "TR101", ""),
        ("<&- >&- 2>&-", "1", "", ""),
        ("--nonsense >&-", "2", "", "unrecognized arguments"),
    ],
)
def test_a_stream_that_is_closed(tmp_path, closed, code, out, err):
    """The work is done, and its exit code is the one it would be; no file gets what was meant for the stream."""
    source = "async def f(): ...\nasync def g():\n    f()\n"
    (tmp_path / "a.py").write_text(source)
    line = f"'{sys.executable}' -m troth check a.py --jobs 2 {closed}; echo $?"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    printed, _, ended = done.stdout.rstrip().rpartition("\n")
    assert (ended, bool(printed), out in printed, err in done.stderr) == (code, bool(out), True, True)
    assert "Internal error" not in done.stderr
    assert (tmp_path / "a.py").read_text() == source


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_knows_every_command(shell):
    """The script is made from the same parsers that read the command line."""
    done = troth("completion", shell)
    assert done.returncode == 0
    assert all(name in done.stdout for name in app.COMMANDS)


def test_completion_that_is_too_old_for_a_shell(monkeypatch, capsys):
    """An older shtab may be installed, which knows fewer shells."""
    import shtab

    monkeypatch.setattr(shtab, "SUPPORTED_SHELLS", ["bash"])
    assert app.run(["completion", "fish"]) == 2
    assert "pip install --upgrade shtab" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["comple"], "completion"),
        (["runs", "res"], "resume"),
        (["check", "--output-format", "jso"], "json"),
        (["check", "some/wh"], "some/where.py"),
        (["check", "a.py", "some/wh"], "some/where.py"),
        (["check", "--baseline", "some/wh"], "some/where.py"),
        (["check", "--cache-dir", "some/in"], "some/inner"),
        (["run", "some/wh"], "some/where.py"),
        (["runs", "show", "--store", "some/wh"], "some/where.py"),
    ],
)
def test_completion_for_bash_works_in_bash(tmp_path, words, completed):
    """Bash reads the script and completes with it: commands, options, and paths where a path is meant."""
    (tmp_path / "some/inner").mkdir(parents=True)
    (tmp_path / "some/where.py").touch()
    ask = (
        f"eval \"$('{sys.executable}' -m troth completion bash)\"; COMP_WORDS=(troth {' '.join(words)}); "
        f'COMP_CWORD={len(words)}; _shtab_troth 2>/dev/null; echo "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(["bash", "-c", ask], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert completed in done.stdout.replace("/ ", " ").split()


def test_ctrl_c_from_a_terminal_ends_with_130(tmp_path):
    """A real signal, while a command works."""
    script = tmp_path / "held.py"
    script.write_text(
        "import sys, time\n"
        "from troth.cli import app\n"
        "from troth.cli.command import Command\n"
        "def run(args):\n"
        "    print('working', flush=True)\n"
        "    time.sleep(60)\n"
        "app.COMMANDS['trial'] = ('nowhere', '')\n"
        "app.load = lambda name: Command('', '', (), lambda parser: None, run)\n"
        "sys.exit(app.run(['trial']))\n",
        encoding="utf-8",
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "working\n"
        time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=30)
    assert child.returncode == 130
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("argv", "advice"),
    [
        pytest.param(["check", "--output-format", "JSON"], "Did you mean `json`?", id="in capitals"),
        pytest.param(["check", "--output-format=sarrif"], "Did you mean `sarif`?", id="misspelt"),
        pytest.param(["check", "--confidence", "high"], "`troth check --help` shows its usage.", id="nothing near"),
        pytest.param(["check", "--json"], "Write `--output-format json`.", id="an option of runtime commands"),
        pytest.param(["completion", "zhs"], "Did you mean `zsh`?", id="an argument"),
    ],
)
def test_a_wrong_choice(argv, advice, capsys):
    """The nearest one is named, where one is near."""
    assert app.run(argv) == 2
    assert capsys.readouterr().err.splitlines()[1:] == ["Nothing was done.", advice]
