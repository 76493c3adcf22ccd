"""Files in syntax that this interpreter does not know."""

import sys
from pathlib import Path

import pytest

from troth.analysis.facts.other_interpreter import newest_python, read_with
from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project
from troth.analysis.source.syntax import problem_in

NEWER = """
from collections.abc import Awaitable, Callable
type Handler[T] = Callable[[T], Awaitable[None]]
class Repo[T]:
    async def save(self, item: T) -> None: ...
async def first[T](items: list[T]) -> T:
    return items[0]
async def main(repo: Repo[int], handle: Handler[int]):
    repo.save(1)
    handle(1)
    return f"{first([{"a": 1}])}"
"""
USER = "from newer import Repo\nclass Own:\n    async def save(self): ...\nasync def go(own: Own):\n    own.save()\n"
BROKEN = "async def f(:\n    pass\n"

needs_newer = pytest.mark.skipif(
    newest_python() is None or sys.version_info >= (3, 12), reason="no newer interpreter, or none is needed"
)


def project(root: Path, **files: str) -> Project:
    for name, text in files.items():
        (root / f"{name}.py").write_text(text, encoding="utf-8")
    return Project(root, tuple(sorted(f"{name}.py" for name in files)), ("",))


@needs_newer
def test_a_newer_interpreter_reads_what_this_one_cannot(tmp_path: Path) -> None:
    """Type parameters, `type` statements and quotes in f-strings hide nothing where a newer Python is installed."""
    result = analyse(project(tmp_path, newer=NEWER))
    assert [(f.code, f.span.line) for f in result.findings] == [("TR101", 9), ("TR101", 10), ("TR107", 11)]
    assert not result.newer_syntax


@needs_newer
def test_what_no_interpreter_can_read_is_a_finding(tmp_path: Path) -> None:
    """A mistake stays a mistake, whoever reads it."""
    result = analyse(project(tmp_path, broken=BROKEN))
    assert [f.code for f in result.findings] == ["TR001"]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this interpreter knows the syntax")
def test_without_a_newer_interpreter_nothing_near_is_certain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is counted, is no finding, and what imports it is not called certain."""
    monkeypatch.setattr("troth.analysis.facts.other_interpreter.newest_python", lambda _given: None)
    result = analyse(project(tmp_path, newer=NEWER, user=USER, far=USER.replace("from newer import Repo\n", "")))
    assert result.newer_syntax == ("newer.py",)
    assert {(f.span.path, f.confidence) for f in result.findings} == {("user.py", "likely"), ("far.py", "certain")}


def test_an_interpreter_that_cannot_be_run_reads_nothing(tmp_path: Path) -> None:
    """The files stay unread instead of the check coming to an end."""
    fake = tmp_path / "python3.99"
    fake.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    fake.chmod(0o755)
    assert read_with(fake, {"a.py": b"x = 1\n"}) == {}


HANDLERS = """
import asyncio
class Store:
    async def save(self): ...
async def main(store: Store):
    try:
        await store.save()
    except OSError, asyncio.TimeoutError:  # as 3.14 has it
        store.save()
    except* KeyError ,ValueError:
        pass
"""


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this interpreter knows the syntax")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param(HANDLERS.replace("except* KeyError ,ValueError:\n        pass", ""), 9, id="a handler"),
        pytest.param(
            HANDLERS.partition("    except OSError")[0] + HANDLERS[HANDLERS.index("    except*") :], 0, id="*"
        ),
    ],
)
def test_handlers_without_parentheses_need_no_other_interpreter(
    text: str, line: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Formatters write most handlers so; the fix of what is found keeps its place."""
    monkeypatch.setattr("troth.analysis.facts.other_interpreter.newest_python", lambda _given: None)
    result = analyse(project(tmp_path, app=text))
    assert not result.newer_syntax
    assert problem_in("app.py", text.encode()) is None  # so that a fix may be written into it
    assert [f.span.line for f in result.findings] == ([line] if line else [])
    for finding in result.findings:
        assert finding.fix is not None
        assert text[finding.fix.edits[0].start :].startswith("store.save()")


def test_python_2_is_no_newer_syntax(tmp_path: Path) -> None:
    """`except Error, e` is what both have; `print` is not."""
    result = analyse(project(tmp_path, old="try:\n    pass\nexcept OSError, e:\n    print e\n"))
    assert [f.code for f in result.findings] == ["TR001"]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this interpreter knows the syntax")
def test_the_definitions_of_an_unread_file_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is seen of a name is async, and the sync one stands in a file that nobody here can read."""
    monkeypatch.setattr("troth.analysis.facts.other_interpreter.newest_python", lambda _given: None)
    core = "type Key = str\nclass States:\n    def push_state(self, key: Key): ...\n"
    other = "class Store:\n    async def push_state(self, key): ...\n"
    app = "async def main(hub):\n    hub.states.push_state('a')\n"
    assert [f.code for f in analyse(project(tmp_path, other=other, app=app)).findings] == ["TR101"]
    assert analyse(project(tmp_path, core=core, other=other, app=app)).findings == ()


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param("x" * 5000, id="a name too long to ask for"),
        pytest.param("~nobody-of-that-name/versions", id="a home of nobody"),
    ],
)
def test_folders_that_cannot_be_looked_into_hold_no_interpreter(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An odd `PYENV_ROOT`, or one of somebody else, costs the other interpreter and not the run."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("PYENV_ROOT", folder)
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", folder)
    assert newest_python() is None
