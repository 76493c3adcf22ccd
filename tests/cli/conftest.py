"""Real projects in temporary folders, and the command as users call it."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from troth.cli.app import run

STORE = "class Store:\n    async def save(self): ...\n    async def load(self): ...\n"
SERVICE = "from store import Store\n\n\nasync def main():\n    store = Store()\n    store.save()\n"
CLEAN = SERVICE.replace("    store.save()", "    await store.save()")


@dataclass
class Done:
    """What a command line came to."""

    code: int
    out: str
    err: str


class Project:
    """A project on the disk, with the commands a user would give in it."""

    store = STORE
    service = SERVICE  # loses the call in line 6
    clean = CLEAN

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def write(self, files: dict[str, str | bytes]) -> "Project":
        for name, text in files.items():
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return self

    def git(self, *arguments: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *arguments], cwd=self.root, check=True, capture_output=True)

    def commit(self) -> None:
        if not (self.root / ".git").exists():
            self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-qm", "x", "--allow-empty")

    def troth(self, *argv: str, cwd: str = ".") -> Done:
        """Run a command in this process."""
        self._monkeypatch.chdir(self.root / cwd)
        self._capsys.readouterr()
        code = run(argv)
        captured = self._capsys.readouterr()
        return Done(int(code), captured.out, captured.err)

    def shell(self, line: str, *, before: tuple[str, ...] = (), **environ: str) -> Done:
        """Run a line of bash, with `troth` being this one; `before` is a command that starts others."""
        env = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
        script = f'troth() {{ "{sys.executable}" -m troth "$@"; }}\n{line}'
        done = subprocess.run(
            [*before, "bash", "-c", script],
            cwd=self.root,
            env=env | environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def forbidden(self, line: str, **environ: str) -> Done:
        """The same for a user whom permissions stop (root gives up what makes it go through all of them), with the cache."""
        if sys.platform != "linux" or (os.geteuid() == 0 and shutil.which("setpriv") is None):
            pytest.skip("permissions stop nobody here")
        before = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
        return self.shell(line, before=before, **{"TROTH_NO_CACHE": "0"} | environ)


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty project; `TROTH_NO_CACHE` keeps runs apart, and no environment is switched on."""
    monkeypatch.setenv("TROTH_NO_CACHE", "1")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    root = tmp_path / "project"
    root.mkdir()
    return Project(root, capsys, monkeypatch).write({"pyproject.toml": ""})


@pytest.fixture
def buggy(project: Project) -> Project:
    """A project with one lost call, in `service.py`, line 6."""
    return project.write({"store.py": STORE, "service.py": SERVICE})
