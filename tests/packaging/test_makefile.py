"""What `make` installs and when, with the real Makefile and an environment whose programs only write down their call."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = ("python", "ruff", "mypy", "lint-imports", "troth")
CALL = '#!/bin/sh\necho "compile=$TROTH_COMPILE $(basename "$0") $*" >> "$CALLS"\n'
PLAIN, COMPILED, EDITABLE, TOOLS = "plain", "compiled", "editable", "tools"

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


class Tree:
    """A clone with a prepared environment."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("Makefile", "pyproject.toml", "hatch_build.py"):
            shutil.copy(ROOT / name, root)
        self.source = root / "src" / "troth" / "module.py"
        self.source.parent.mkdir(parents=True)
        self.source.write_text("")
        parts = ("requirements/dev.lock", "requirements/bench.lock", "bench/part/__init__.py")
        code_server = ("editors/vscode/package.json", "build/code-server/.complete")  # there, so no test fetches it
        for part in parts + code_server:
            (root / part).parent.mkdir(parents=True, exist_ok=True)
            (root / part).write_text("")
        programs = root / ".venv" / "bin"
        programs.mkdir(parents=True)
        for name in PROGRAMS:
            (programs / name).write_text(CALL)
            (programs / name).chmod(0o755)
        self._past = 1_000_000_000
        self._make_older()

    def make(self, *words: str) -> list[str]:
        """What was installed on the way to these goals."""
        self._make_older()
        calls = self.root / "calls"
        calls.unlink(missing_ok=True)
        outer = ("MAKEFLAGS", "MAKELEVEL", "COMPILE", "INSTALL", "TROTH_COMPILE", "VENV")
        environment = {name: value for name, value in os.environ.items() if name not in outer}
        done = subprocess.run(
            ["make", *words], cwd=self.root, env=environment | {"CALLS": str(calls)}, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        lines = calls.read_text().splitlines()
        return [kind for line in lines if " -m pip install " in line for kind in [self._kind(line)] if kind]

    def edit(self) -> None:
        """Change a source file after all that was installed so far."""
        self._make_older()
        os.utime(self.source)

    @staticmethod
    def _kind(line: str) -> str | None:
        if "--editable" in line:
            return EDITABLE
        if "dev.lock" in line:
            return TOOLS
        if "bench.lock" in line:
            return None
        return COMPILED if line.startswith("compile=1 ") else PLAIN

    def _make_older(self) -> None:
        """Age every file in the order of its time, so that a coarse clock cannot make two of them equally old."""
        files = sorted((file for file in self.root.rglob("*") if file.is_file()), key=lambda file: file.stat().st_mtime)
        for file in files:
            self._past += 10
            os.utime(file, (self._past, self._past))


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def test_run_test_run(tree):
    """`make run` installs in seconds, `make test` compiles, and what is compiled is good enough for `make run`."""
    assert tree.make("run") == [PLAIN]
    assert tree.make("run") == []
    assert tree.make("test") == [COMPILED, TOOLS]
    assert tree.make("test") == []
    assert tree.make("run") == []


def test_an_edit(tree):
    """`make run` does not compile what was edited; `make test` does, once."""
    tree.make("test")
    tree.edit()
    assert tree.make("run") == [PLAIN]
    assert tree.make("test") == [COMPILED]
    tree.edit()
    assert tree.make("test") == [COMPILED]
    assert tree.make("run") == []


@pytest.mark.parametrize(
    ("goal", "installs"),
    [
        pytest.param("run", [PLAIN], id="run"),
        pytest.param("lint", [PLAIN, TOOLS], id="lint"),
        pytest.param("docs", [PLAIN, TOOLS], id="docs"),
        pytest.param("test", [COMPILED, TOOLS], id="test"),
        pytest.param("bench", [COMPILED, TOOLS], id="bench"),
        pytest.param("soak", [COMPILED, TOOLS], id="soak"),
    ],
)
def test_what_each_goal_needs(tree, goal, installs):
    """What proves or measures is compiled, as users have it; the rest is not worth the wait."""
    assert tree.make(goal) == installs


def test_two_goals_at_once(tree):
    """One install serves both, also where make works in parallel."""
    assert tree.make("-j4", "run", "test") == [COMPILED, TOOLS]


def test_develop(tree):
    """From then on nothing is installed again after an edit, by any goal, until somebody asks for compiled code."""
    tree.make("test")
    assert tree.make("develop") == [EDITABLE]
    tree.edit()
    assert tree.make("run") == tree.make("test") == tree.make("bench") == []
    assert tree.make("test", "COMPILE=1") == [COMPILED]
    assert tree.make("test") == tree.make("run") == []
    assert tree.make("develop") == [EDITABLE]


def test_without_compiling(tree):
    """`COMPILE=0` tests the plain install."""
    assert tree.make("test", "COMPILE=0") == [PLAIN, TOOLS]
    assert tree.make("run") == []


def test_a_failed_install_is_tried_again(tree):
    """Nothing is taken for installed because an install was begun."""
    tree.make("test")
    tree.edit()
    python = tree.root / ".venv" / "bin" / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(AssertionError):
        tree.make("run")
    python.write_text(CALL)
    assert tree.make("run") == [PLAIN]
