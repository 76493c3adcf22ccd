"""A read-only world costs the cache and nothing else; a file that has to be written and cannot is refused."""

import sys

import pytest

LOST = "async def save(): ...\nasync def main():\n    save()\n"
NEEDLESS = "async def add(a, b):\n    return a + b\nasync def main(r):\n    await r.go()\n    return await add(1, 2)\n"


def closed(project, kind):
    """Make the project's cache folder one that cannot be written."""
    cache = project.root / ".troth_cache"
    if kind == "no folder can be made":
        project.root.chmod(0o555)
        return
    cache.mkdir()
    if kind == "a folder that nobody may look into":
        cache.chmod(0)
    elif kind == "a folder that nobody may write":
        cache.chmod(0o555)
    elif kind == "a lock that nobody may write":
        (cache / "lock").touch()
        (cache / "lock").chmod(0o444)
    else:
        cache.rmdir()
        cache.write_text("a file that is called so\n")


@pytest.mark.parametrize(
    "kind",
    [
        "no folder can be made",
        "a folder that nobody may look into",
        "a folder that nobody may write",
        "a lock that nobody may write",
        "a file that is called so",
    ],
)
@pytest.mark.parametrize(
    ("command", "text", "after"),
    [
        ("fix", LOST, "await save()"),
        ("recolor src/app.py:add --to sync", NEEDLESS, "return add(1, 2)"),
        ("check", LOST, "    save()"),
        ("mutate --tool troth --n 1 src", LOST.replace("    save", "    await save"), "await save()"),
    ],
    ids=lambda value: value.split()[0],
)
def test_a_cache_that_cannot_be_written(project, kind, command, text, after, tmp_path):
    """The command does what it does elsewhere; originals are kept in the user's own folder meanwhile."""
    project.write({"src/app.py": text})
    closed(project, kind)
    done = project.forbidden(f"troth {command}", XDG_CACHE_HOME=str(tmp_path / "own"), TROTH_NO_CACHE="0")
    assert done.code == (1 if command == "check" else 0), done.err
    assert after in (project.root / "src/app.py").read_text()
    assert not list((tmp_path / "own").rglob("unfinished"))


@pytest.mark.parametrize("command", ["fix", "recolor app.py:add --to sync"])
def test_a_folder_that_cannot_be_written(project, command):
    """The file itself may be written, but is replaced in its folder: that is refused, with nothing changed."""
    project.write({"app.py": NEEDLESS + "async def other():\n    main(1)\n"})
    before = (project.root / "app.py").read_text()
    project.root.chmod(0o555)
    done = project.forbidden(f"troth {command}")
    assert done.code == 2
    assert "app.py: may not be written" in done.err
    assert (project.root / "app.py").read_text() == before
    assert "await main(1)" in project.forbidden("troth fix --diff --all").out


def test_nowhere_to_keep_the_originals(project):
    """Then nothing is changed, and both folders are named."""
    project.write({"src/app.py": LOST})
    project.root.chmod(0o555)
    done = project.forbidden("troth fix", XDG_CACHE_HOME=str(project.root / "own"))
    assert done.code == 2
    assert ".troth_cache" in done.err
    assert str(project.root / "own") in done.err
    assert (project.root / "src/app.py").read_text() == LOST


def test_cut_short_where_the_cache_cannot_be_written(project, tmp_path):
    """The next command finds the originals in the user's own folder, and puts them back."""
    project.write({"src/app.py": LOST, "src/other.py": LOST})
    project.root.chmod(0o555)
    script = (
        "import os, signal\nfrom troth.analysis.edits import write\nfrom troth.cli.app import run\nreal = write._replace\n"
        "def once(path, data):\n    real(path, data)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "write._replace = once\nrun(['fix'])\n"
    )
    (tmp_path / "killed.py").write_text(script)
    own = str(tmp_path / "own")
    killed = project.forbidden(f"{sys.executable} ../killed.py", XDG_CACHE_HOME=own)
    assert killed.code in (-9, 137)
    assert "await save()" in (project.root / "src/app.py").read_text() + (project.root / "src/other.py").read_text()
    done = project.forbidden("troth fix --diff", XDG_CACHE_HOME=own)
    assert "these files were restored: src/" in done.err
    assert (project.root / "src/app.py").read_text() == (project.root / "src/other.py").read_text() == LOST
