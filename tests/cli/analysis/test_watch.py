"""`troth check --watch`: a real process beside files that come, change and go."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

STORE = "async def save(): ...\n"
GOOD = "from store import save\nasync def main():\n    await save()\n"
BAD = GOOD.replace("await save()", "save()")


class Watching:
    """A process that watches a folder, and its answers as they come."""

    def __init__(self, root: Path, *options: str, program: Sequence[str] = ("-m", "troth")) -> None:
        command = [sys.executable, *program, "check", "--watch", "--no-cache", *options]
        environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(command, cwd=root, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def line(self, limit: float = 30) -> str:
        return self._lines.get(timeout=limit).decode().rstrip("\r\n")

    def answer(self) -> dict[str, Any]:
        """The next answer that is settled."""
        while True:
            answer: dict[str, Any] = json.loads(self.line())
            if answer["settled"]:
                return answer

    def is_silent(self) -> bool:
        try:
            self.line(limit=1.5)
        except queue.Empty:
            return True
        return False

    def end(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGINT)
        assert self.process.stderr is not None
        code, said = self.process.wait(20), self.process.stderr.read().decode()
        self._reader.join(20)
        self.process.communicate()  # closes the pipes
        return code, said


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "shop"\n')
    (tmp_path / "store.py").write_text(STORE)
    (tmp_path / "app.py").write_text(GOOD)
    return tmp_path


@pytest.fixture
def watching(project: Path) -> Iterator[Watching]:
    one = Watching(project, "--output-format", "json")
    yield one
    if one.process.poll() is None:
        one.end()


def found(answer: dict[str, Any]) -> list[tuple[str, int, str]]:
    return [(one["path"], one["line"], one["code"]) for one in answer["findings"]]


def write(name: str, text: str) -> Callable[[Path], None]:
    def do(root: Path) -> None:
        (root / name).write_text(text)

    return do


def replaced(name: str, text: str) -> Callable[[Path], None]:
    """As editors save: a new file takes the place of the old one."""

    def do(root: Path) -> None:
        beside = root / f"{name}.swp"
        beside.write_text(text)
        beside.replace(root / name)

    return do


LOST = ("app.py", 3, "TR101")


@pytest.mark.parametrize(
    ("steps"),
    [
        pytest.param([(write("app.py", BAD), [LOST]), (write("app.py", GOOD), [])], id="an await goes and comes back"),
        pytest.param([(replaced("app.py", BAD), [LOST])], id="saved by renaming"),
        pytest.param(
            [(write("app.py", BAD), [LOST]), (write("store.py", STORE.replace("async ", "")), [])],
            id="the callee in another file turns plain",
        ),
        pytest.param(
            [
                (write("app.py", BAD), [LOST]),
                (write("store.py", "async def save(: ...\n"), [LOST, ("store.py", 1, "TR001")]),
                (write("store.py", STORE + "\n"), [LOST]),
            ],
            id="a syntax error while typing takes nothing from the callers",
        ),
        pytest.param(
            [
                (write("new.py", BAD), [("new.py", 3, "TR101")]),
                (lambda root: (root / "new.py").rename(root / "newer.py"), [("newer.py", 3, "TR101")]),
                (lambda root: (root / "newer.py").unlink(), []),
            ],
            id="a file comes, is renamed and goes",
        ),
        pytest.param(
            [
                (lambda root: (root / "deep").mkdir(), None),
                (write("deep/new.py", BAD), [("deep/new.py", 3, "TR101")]),
            ],
            id="a file in a new folder",
        ),
        pytest.param(
            [
                (write("app.py", BAD), [LOST]),
                (write("pyproject.toml", '[project]\nname = "shop"\n[tool.troth]\nignore = ["TR101"]\n'), []),
            ],
            id="the settings change",
        ),
    ],
)
def test_an_edit_is_answered(
    project: Path, watching: Watching, steps: list[tuple[Callable[[Path], None], list[tuple[str, int, str]] | None]]
) -> None:
    """Each change brings the findings that a check from scratch would have."""
    assert found(watching.answer()) == []
    for change, expected in steps:
        change(project)
        if expected is not None:
            assert found(watching.answer()) == expected


def test_what_is_no_source_wakes_nobody(project: Path, watching: Watching) -> None:
    """A report that is written into the project must not be taken for a change of it."""
    watching.answer()
    (project / "report.log").write_text("one\n")
    assert watching.is_silent()
    (project / "report.log").write_text("one\ntwo\n")
    assert watching.is_silent()


def test_settings_with_a_mistake_are_told_and_waited_for(project: Path, watching: Watching) -> None:
    """The watch goes on; the mistake is told, and what was found stays."""
    watching.answer()
    (project / "app.py").write_text(BAD)
    assert found(watching.answer()) == [LOST]
    (project / "pyproject.toml").write_text('[project]\nname = "shop"\n[tool.troth]\nnonsense = 1\n')
    answer = watching.answer()
    assert "nonsense" in answer["problem"]
    assert found(answer) == [LOST]
    (project / "pyproject.toml").write_text('[project]\nname = "shop"\n')
    assert watching.answer()["problem"] is None


def test_ctrl_c_ends_it(watching: Watching) -> None:
    """That is how a watch ends: no traceback, no failure."""
    watching.answer()
    assert watching.end() == (0, "")


def test_text_for_a_person(project: Path) -> None:
    """Each answer says what changed and how long it took; without a terminal there are no control codes."""
    watching = Watching(project)
    try:
        lines = [watching.line() for _ in range(5)]
        assert "2 files checked in" in lines[0]
        assert lines[-1] == "Watching for changes; Ctrl-C ends"
        (project / "app.py").write_text(BAD)
        assert "app.py changed; answered in" in watching.line()
        watching.line()
        assert watching.line().startswith("app.py:3:5  TR101")
        assert not any("\x1b" in line for line in lines)
    finally:
        assert watching.end() == (0, "")


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--since", "HEAD"], id="since"),
        pytest.param(["--write-baseline"], id="write a baseline"),
        pytest.param(["--show-files"], id="show files"),
        pytest.param(["-"], id="stdin"),
    ],
)
def test_what_is_made_for_one_run_is_refused(project: Path, options: list[str]) -> None:
    """An option that has no next time is not taken in silence."""
    command = [sys.executable, "-m", "troth", "check", "--watch", *options]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "--watch" in done.stderr
