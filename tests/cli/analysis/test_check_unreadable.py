"""What cannot be read is told, and everything around it is checked."""

import json

import pytest

BOT = """\
class Bot:
    async def handle_a(self, m):
        print(m)
    async def handle_b(self, m):
        print(m)
    async def handle_c(self, m):
        print(m)
    async def on(self, kind, m):
        handler = getattr(self, f'handle_{kind}', None)
        if handler:
            await handler(m)
"""


def codes(out: str) -> list[str]:
    return sorted({one["code"] for one in json.loads(out)["findings"]})


@pytest.mark.parametrize("command", ["check", "fix --diff --all", "fix --diff --all --select TR"])
def test_a_file_that_may_not_be_opened(project, command):
    """A rule that looks for a word in all files does without that one; a repair that would need it is not offered."""
    project.write({"bot.py": BOT, "closed.py": "x = 1\n"})
    (project.root / "closed.py").chmod(0)
    done = project.forbidden(f"troth {command}")
    assert done.code == 1
    assert "Traceback" not in done.err
    if command == "check":
        assert "closed.py:1:1  TR001 unreadable-file" in done.out
        assert "TR303" in done.out
    else:
        assert "isawaitable" in done.out
        assert "-    async def handle_a" not in done.out


def test_a_file_that_may_be_opened_again(project):
    """Nothing but the permission has changed: the cache does not know better."""
    project.write({"bot.py": "x = 1\n", "closed.py": "async def f(): ...\ndef g():\n    f()\n"})
    (project.root / "closed.py").chmod(0)
    line = "troth check --output-format json"
    assert [codes(project.forbidden(line).out) for _ in range(2)] == [["TR001"], ["TR001"]]
    (project.root / "closed.py").chmod(0o644)
    assert codes(project.forbidden(line).out) == ["TR101"]


def test_a_folder_that_may_not_be_opened(project):
    """It is a finding like a file that cannot be read, in every format; what is around it is checked."""
    project.write(
        {"app.py": "async def f(): ...\ndef g():\n    f()\n", "a/closed/x.py": "x = 1\n", "b/y.py": "y = 1\n"}
    )
    (project.root / "a/closed").chmod(0)
    done = project.forbidden("troth check")
    assert done.code == 1
    assert "a/closed:1:1  TR001 unreadable-file" in done.out
    assert "this folder cannot be read, so nothing in it is checked: Permission denied" in done.out
    assert "app.py:3:5  TR101" in done.out
    assert "Found 2 problems (certain) in 1 folder and 1 of 2 files; " in done.out


@pytest.mark.parametrize(
    ("command", "code", "is_told"),
    [
        ("check a", 1, True),
        ("check a -o sarif:-", 1, True),
        ("check a --output-format github", 1, True),
        ("check b", 0, False),
        ("check b/y.py", 0, False),
        ("fix --diff", 0, False),
        ("fix", 1, True),
    ],
)
def test_a_folder_in_what_is_reported(project, command, code, is_told):
    """It is told by those who report it, and in every format."""
    project.write({"a/closed/x.py": "x = 1\n", "b/y.py": "y = 1\n"})
    (project.root / "a/closed").chmod(0)
    done = project.forbidden(f"troth {command}")
    assert (done.code, "a/closed" in done.out) == (code, is_told)


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("check", 1, "closed:1:1  TR001 unreadable-file"),
        ("check --since HEAD", 1, "app.py:5:5  TR101"),
        ("fix --allow-dirty", 1, "Repaired 1 problem in 1 file"),
        ("recolor app:f --to sync --plan", 0, "`f`"),
        ("mutate --list", 0, "app.py:3"),
    ],
)
def test_a_closed_folder_where_nothing_is_packaged(project, command, code, words):
    """The folders at the top are asked for lists of requirements; one that is closed has none."""
    (project.root / "pyproject.toml").unlink()
    text = "async def f(): ...\nasync def g():\n    await f()\nasync def h():\n    await f()\n"
    project.write({"app.py": text}).commit()
    project.write({"app.py": text.removesuffix("await f()\n") + "f()\n", "closed/x.py": "x = 1\n"})
    (project.root / "closed").chmod(0)
    done = project.forbidden(f"troth {command}")
    assert (done.code, words in done.out, "Internal error" in done.err) == (code, True, False), done


def test_a_folder_alone_that_may_not_be_opened(project):
    """Nothing was checked, and it is said why."""
    project.write({"a/closed/x.py": "x = 1\n"})
    (project.root / "a/closed").chmod(0)
    done = project.forbidden("troth check")
    assert done.code == 1
    assert "a/closed:1:1  TR001" in done.out
    assert "Found 1 problem (certain) in 1 folder; " in done.out


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".gitignore", "closed/\n"),
        ("troth.toml", 'exclude = ["a/closed"]\n'),
        ("a/troth.toml", 'exclude = ["closed"]\n'),
    ],
)
def test_a_folder_that_nobody_wants_opened(project, name, text):
    """What is left out need not be read."""
    project.write({"app.py": "x = 1\n", "a/x.py": "", "a/closed/x.py": "x = 1\n", name: text})
    (project.root / "a/closed").chmod(0)
    done = project.forbidden("troth check")
    assert (done.code, done.out) == (0, "All clear: 2 files checked\n")


def test_a_folder_known_to_the_baseline(project):
    """It can be taken stock of like other findings, and its entry is stale once the folder is open."""
    project.write({"app.py": "x = 1\n", "closed/x.py": "x = 1\n"})
    (project.root / "closed").chmod(0)
    assert project.forbidden("troth check --write-baseline").code == 0
    assert project.forbidden("troth check --baseline troth-baseline.json").code == 0
    (project.root / "closed").chmod(0o755)
    assert "1 entry is stale" in project.forbidden("troth check --baseline troth-baseline.json").out
