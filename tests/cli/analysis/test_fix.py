"""`troth fix` on real projects: what is changed, what is not, and what is refused."""

import subprocess
import sys

import pytest

from troth.cli import app

STORE = "class Store:\n    async def save(self, x): ...\n    async def load(self): ...\n"
APP = (
    "from store import Store\r\n"
    "\r\n"
    "async def main(store: Store):  # keep this comment\r\n"
    "    store.save(1)\r\n"
    "    data   =   store.load()\r\n"
    "    return data['é']\r\n"
)


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (tmp_path / "store.py").write_text(STORE)
    (tmp_path / "app.py").write_bytes(APP.encode())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def git(project, *args):
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *args],
        cwd=project,
        check=True,
        timeout=60,
        capture_output=True,
    )


def test_repaired_and_nothing_else_touched(project, capsys):
    """Line endings, spacing, comments and the other file stay byte for byte; twice changes nothing."""
    assert app.run(["fix"]) == 0
    fixed = (project / "app.py").read_bytes()
    assert (
        fixed
        == APP.replace("store.save(1)", "await store.save(1)").replace("store.load()", "await store.load()").encode()
    )
    assert (project / "store.py").read_text() == STORE
    out = capsys.readouterr().out
    assert "Repaired 2 problems in 1 file" in out
    assert "All clear" in out
    assert app.run(["fix"]) == 0
    assert (project / "app.py").read_bytes() == fixed


def test_diff_shows_exactly_what_would_change(project, capsys):
    """Exit 1 because something would; the diff, applied by git, is the repair."""
    assert app.run(["fix", "--diff"]) == 1
    shown = capsys.readouterr().out
    assert (project / "app.py").read_bytes() == APP.encode()
    git(project, "init", "-q")
    done = subprocess.run(
        [sys.executable, "-m", "troth", "fix", "--diff"], capture_output=True, cwd=project, check=False
    )
    assert done.returncode == 1
    subprocess.run(["git", "apply", "-"], input=done.stdout, cwd=project, check=True)
    by_diff = (project / "app.py").read_bytes()
    (project / "app.py").write_bytes(APP.encode())
    app.run(["fix", "--allow-dirty"])
    assert (project / "app.py").read_bytes() == by_diff
    assert "+    await store.save(1)" in shown


def test_a_file_with_edits_that_are_not_committed_is_refused(project, capsys):
    """Until they are, or the user says so; `--diff` works all the same."""
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-qm", "x")
    (project / "app.py").write_bytes(APP.encode() + b"# mine\n")
    assert app.run(["fix"]) == 2
    assert "uncommitted edits: app.py" in capsys.readouterr().err
    assert (project / "app.py").read_bytes() == APP.encode() + b"# mine\n"
    assert app.run(["fix", "--diff"]) == 1
    assert app.run(["fix", "--allow-dirty"]) == 0


@pytest.mark.parametrize("inner", [".", "inner"])
def test_edits_elsewhere_do_not_matter(inner, tmp_path, monkeypatch):
    """Only those in files that would be changed are looked at, wherever the project lies in its repository."""
    root = tmp_path / inner
    root.mkdir(exist_ok=True)
    for name, text in (("store.py", STORE), ("app.py", APP), (".gitignore", "x\n"), ("gone.py", ""), ("old.py", "")):
        (root / name).write_bytes(text.encode())
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "x")
    (root / "store.py").write_text(STORE + "# mine\n")
    (root / ".gitignore").write_text("y\n")
    (root / "gone.py").unlink()
    (root / "old.py").rename(root / "new.py")
    git(tmp_path, "add", "-A", ".")
    monkeypatch.chdir(root)
    assert app.run(["fix"]) == 0
    assert b"await store.save(1)" in (root / "app.py").read_bytes()


def test_undo(project, capsys):
    """The last repair goes, byte for byte; once more, and it is there again."""
    before = (project / "app.py").read_bytes()
    assert app.run(["fix", "--undo"]) == 2
    assert "There is no change to undo" in capsys.readouterr().err
    assert app.run(["fix"]) == 0
    after = (project / "app.py").read_bytes()
    assert after != before
    capsys.readouterr()
    for expected in (before, after, before):
        assert app.run(["fix", "--undo"]) == 0
        assert "Undid the last change, in 1 file" in capsys.readouterr().out
        assert (project / "app.py").read_bytes() == expected


def test_undo_loses_no_edit(project, capsys):
    """A file that was edited since stops it, and nothing is written."""
    (project / "other.py").write_bytes(APP.encode())
    assert app.run(["fix"]) == 0
    repaired = (project / "app.py").read_bytes()
    (project / "other.py").write_text("edited = True\n")
    assert app.run(["fix", "--undo"]) == 2
    assert "other.py: edited since" in capsys.readouterr().err
    assert (project / "app.py").read_bytes() == repaired
    assert (project / "other.py").read_text() == "edited = True\n"


def test_undo_is_shown_before(project, capsys):
    """With `--diff` nothing is written; the patch leads back."""
    before = (project / "app.py").read_bytes()
    assert app.run(["fix"]) == 0
    after = (project / "app.py").read_bytes()
    capsys.readouterr()
    assert app.run(["fix", "--undo", "--diff"]) == 1
    assert (project / "app.py").read_bytes() == after
    patch = project / "back.patch"
    patch.write_text(capsys.readouterr().out)
    git(project, "apply", patch.name)
    assert (project / "app.py").read_bytes() == before


@pytest.mark.parametrize(
    ("paths", "says"),
    [
        pytest.param(["app.py"], "The last change also reached other.py.", id="one of two files"),
        pytest.param(["-"], "source on stdin is not a file", id="stdin"),
        pytest.param([], "", id="no path"),
        pytest.param(["."], "", id="a folder with both"),
        pytest.param(["other.py", "app.py"], "", id="both files"),
    ],
)
def test_undo_takes_back_a_change_whole(paths, says, project, capsys):
    """Where only a part of it is named, it is refused."""
    (project / "other.py").write_bytes((project / "app.py").read_bytes())
    before = (project / "app.py").read_bytes()
    assert app.run(["fix"]) == 0
    after = (project / "app.py").read_bytes()
    capsys.readouterr()
    assert app.run(["fix", "--undo", *paths]) == (2 if says else 0)
    assert says in capsys.readouterr().err
    for name in ("app.py", "other.py"):
        assert (project / name).read_bytes() == (after if says else before)


def fix_on_stdin(project, source, *options):
    command = [sys.executable, "-m", "troth", "fix", "-", *options]
    return subprocess.run(command, input=source, cwd=project, capture_output=True, timeout=60, check=False)


def test_source_on_stdin(project):
    """It is printed as the file would be after the repair, byte for byte, and no file is touched."""
    done = fix_on_stdin(project, APP.encode(), "--stdin-filename", "app.py")
    assert done.returncode == 0, done.stderr
    assert b"All clear" in done.stderr
    assert (project / "app.py").read_bytes() == APP.encode()
    app.run(["fix"])
    assert (project / "app.py").read_bytes() == done.stdout
    again = fix_on_stdin(project, done.stdout, "--stdin-filename", "app.py", "--quiet")
    assert (again.returncode, again.stdout, again.stderr) == (0, done.stdout, b"")


def test_source_on_stdin_that_cannot_be_repaired(project):
    """What is left is told on stderr, and stdout is still the source."""
    source = b"from store import Store\ndef main(store: Store):\n    store.save(1)\n"
    done = fix_on_stdin(project, source)
    assert (done.returncode, done.stdout) == (1, source)
    assert b"stdin.py:3:5  TR101" in done.stderr
    assert fix_on_stdin(project, source, "--exit-zero").returncode == 0
    diff = fix_on_stdin(project, APP.encode(), "--diff", "--stdin-filename", "app.py")
    assert diff.stdout.startswith(b"--- a/app.py")


def test_source_on_stdin_is_repaired_alone(project):
    """A fix that would change other files as well is not applied."""
    (project / "needless.py").write_text("async def answer():\n    return 42\n")
    (project / "uses.py").write_text("from needless import answer\nasync def main():\n    return await answer()\n")
    source = (project / "needless.py").read_bytes()
    done = fix_on_stdin(project, source, "--stdin-filename", "needless.py", "--select", "TR301", "--all")
    assert done.stdout == source


def test_selected_rules_and_paths_only(project):
    """What is not selected, or not named, stays."""
    (project / "other.py").write_bytes(APP.encode())
    assert app.run(["fix", "--select", "TR101", "app.py"]) == 0
    assert b"await store.save(1)" in (project / "app.py").read_bytes()
    assert b"await store.load()" not in (project / "app.py").read_bytes()
    assert (project / "other.py").read_bytes() == APP.encode()


def test_what_remains_is_told_and_exits_1(project, capsys):
    """A sync function cannot await: nothing is offered that would hide the loss."""
    (project / "app.py").write_text("from store import Store\ndef main(store: Store):\n    store.save(1)\n")
    assert app.run(["fix"]) == 1
    out = capsys.readouterr().out
    assert "TR101" in out
    assert (project / "app.py").read_text().endswith("    store.save(1)\n")


def test_fix_repairs_as_many_as_check_announces(project, capsys):
    """The number in the last line of `check` is the number `fix` repairs."""
    assert app.run(["check"]) == 1
    assert "`troth fix` repairs 2" in capsys.readouterr().out
    app.run(["fix"])
    assert "Repaired 2 problems" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        pytest.param(["fix", "nowhere.py"], "nowhere.py", id="missing path"),
        pytest.param(["fix", "--select", "TR999"], "TR999", id="unknown rule"),
    ],
)
def test_bad_input(project, capsys, argv, says):
    """Exit 2, the thing named, nothing changed."""
    assert app.run(argv) == 2
    assert says in capsys.readouterr().err
    assert (project / "app.py").read_bytes() == APP.encode()


def test_silenced_and_baselined_findings_are_left_alone(project):
    """Whoever allowed a finding does not want it repaired."""
    (project / "app.py").write_text(
        "from store import Store\nasync def main(store: Store):\n    store.save(1)  # troth: allow unawaited-coroutine\n"
    )
    before = (project / "app.py").read_bytes()
    assert app.run(["fix"]) == 0
    assert (project / "app.py").read_bytes() == before


def test_a_file_that_changed_meanwhile_is_not_overwritten(project, monkeypatch, capsys):
    """Somebody saves the file while the fixes are worked out."""
    from troth.analysis.fix import settle as module

    real = module.settle

    def slowly(*args, **kwargs):
        settled = real(*args, **kwargs)
        (project / "app.py").write_bytes(b"# mine\n")
        return settled

    monkeypatch.setattr(module, "settle", slowly)
    assert app.run(["fix"]) == 2
    assert "changed on disk" in capsys.readouterr().err
    assert (project / "app.py").read_bytes() == b"# mine\n"


def test_findings_that_share_a_fix_count_each(project, capsys):
    """Two lines that take one coroutine for its result are two problems for `check`, and two for `fix`."""
    (project / "app.py").write_text(
        "from store import Store\nasync def main(store: Store, n):\n    data = store.load()\n    if n:\n        return data.a\n    return [1, data.b]\n"
    )
    app.run(["check"])
    announced = capsys.readouterr().out
    app.run(["fix"])
    count = announced.split("`troth fix` repairs ")[1].split(",")[0]
    assert f"Repaired {count} problem" in capsys.readouterr().out


def test_a_change_of_color_is_proposed_with_its_size(project, capsys):
    """Where a sync function loses the call, who would have to change with it is said; hiding the loss is not."""
    (project / "app.py").write_text(
        "from store import Store\ndef record(store: Store):\n    store.save(1)\ndef main():\n    record(Store())\n"
    )
    assert app.run(["fix", "--all"]) == 1
    out = capsys.readouterr().out
    assert "troth recolor app:record --to async" in out
    assert "1 caller (`main`)" in out
    assert "_ =" not in out


@pytest.mark.parametrize(
    ("cls", "use", "told"),
    [
        pytest.param("class Stats:\n    n: int\n", "stats['n']", True, id="an object taken for a dict"),
        pytest.param("class Stats:\n    n: int\n", "stats.get('n')", True, id="by a method of dicts"),
        pytest.param("class Stats:\n    n: int\n", "stats.n", False, id="used as what it is"),
        pytest.param("class Stats(dict): ...\n", "stats['n']", False, id="a dict"),
        pytest.param("from lib import Base\nclass Stats(Base): ...\n", "stats['n']", False, id="a base nobody knows"),
    ],
)
def test_the_aftermath_is_shown_in_the_same_run(project, capsys, cls, use, told):
    """The call runs now, and what it gives is not what the next line takes it for."""
    (project / "store.py").write_text(f"{cls}class Store:\n    async def stats(self) -> Stats: ...\n")
    (project / "app.py").write_text(
        f"from store import Store\nasync def main(store: Store):\n    stats = store.stats()\n    print({use})\n"
    )
    app.run(["fix"])
    out = capsys.readouterr().out
    assert "Repaired 1 problem" in out
    said = f"app.py:4  the call is awaited now; `{use.partition('(')[0]}` takes it for a dict, and it is a `Stats`"
    assert (said in out) == told


ODD = [
    pytest.param(b"async def f(): ...\r\nasync def g():\r\n\tf()\r\n", id="CRLF and tabs"),
    pytest.param(b"\xef\xbb\xbfasync def f(): ...\nasync def g():\n    f()\n", id="byte order mark"),
    pytest.param(b"# -*- coding: latin-1 -*-\n# \xe4\nasync def f(x): ...\nasync def g():\n    f('\xfc')\n", id="latin-1"),
    pytest.param(b"#!/usr/bin/env python\n\x0c\nasync def f(): ...\n\x0casync def g():\n    x = '\x0c'; f()\n", id="form feeds"),
    pytest.param(b"async def f(): ...\nasync def g(): f()", id="no last newline"),
    pytest.param("async def f(x): ...\nasync def g():\n    f('\u2028 \x85'); f('\U0001f600')\n".encode(), id="other line ends in strings"),
]  # fmt: skip


@pytest.mark.parametrize("data", ODD)
def test_odd_files_keep_every_other_byte(project, data):
    """Only `await ` is put in; twice changes nothing."""
    (project / "odd.py").write_bytes(data)
    assert app.run(["fix", "odd.py"]) == 0
    after = (project / "odd.py").read_bytes()
    assert after != data
    assert after.replace(b"await ", b"") == data
    assert app.run(["fix", "odd.py"]) == 0
    assert (project / "odd.py").read_bytes() == after


def test_without_git(project, monkeypatch):
    """No git on the machine, no repository: nothing can be dirty, and the repair is made."""
    monkeypatch.setenv("PATH", str(project))
    assert app.run(["fix"]) == 0
    assert b"await store.save(1)" in (project / "app.py").read_bytes()


def test_a_file_behind_a_link(project, tmp_path_factory, capsys):
    """The link stays a link, and the file it leads to is repaired."""
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "shared.py"
    elsewhere.write_text("async def f(): ...\nasync def g():\n    f()\n")
    (project / "linked.py").symlink_to(elsewhere)
    assert app.run(["fix", "linked.py"]) == 0
    assert (project / "linked.py").is_symlink()
    assert "await f()" in elsewhere.read_text()


def test_a_read_only_file_is_refused(project, capsys):
    """It is named, and the writable ones are left as they were, too."""
    (project / "store.py").write_text(STORE + "async def other(s: Store):\n    s.load()\n")
    (project / "app.py").chmod(0o444)
    before = {path.name: path.read_bytes() for path in project.glob("*.py")}
    assert app.run(["fix"]) == 2
    assert "app.py: may not be written" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in project.glob("*.py")} == before


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_while_it_writes(project):
    """The next command puts back what a killed one left half done, and says so."""
    (project / "store.py").write_text(STORE + "async def other(s: Store):\n    s.load()\n")
    before = {path.name: path.read_bytes() for path in project.glob("*.py")}
    script = (
        "import os, signal, sys\nfrom troth.analysis.edits import write\nfrom troth.cli.app import run\n"
        "real = write._replace\n"
        "def once(path, data):\n    real(path, data)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "write._replace = once\nrun(['fix'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=project, check=False, timeout=120, capture_output=True)
    assert done.returncode == -9
    assert {path.name: path.read_bytes() for path in project.glob("*.py")} != before
    done = subprocess.run(
        [sys.executable, "-m", "troth", "fix", "--diff"], cwd=project, check=False, timeout=120, capture_output=True
    )
    assert done.returncode == 1
    assert b"An earlier change was interrupted" in done.stderr
    assert {path.name: path.read_bytes() for path in project.glob("*.py")} == before


BOT = (
    "class {name}:\n    async def on(self, kind, m):\n        handler = getattr(self, f'_do_{{kind}}')\n        await handler(m)\n"
    "    {a}def _do_a(self, m):\n        print(m)\n    {a}def _do_b(self, m):\n        print(m)\n    {a}def _do_c(self, m):\n        print(m)\n"
)


def test_handlers_of_two_unrelated_dispatchers_are_freed(project):
    """Methods of the same names in a class that has nothing to do with it keep nobody from becoming plain."""
    for name in ("First", "Second"):
        (project / f"{name.lower()}.py").write_text(BOT.format(name=name, a="async "))
    app.run(["fix", "--all", "--select", "TR303"])
    for name in ("First", "Second"):
        text = (project / f"{name.lower()}.py").read_text()
        assert text.count("async def") == 1
        assert "if inspect.isawaitable(result):\n            await result\n" in text
