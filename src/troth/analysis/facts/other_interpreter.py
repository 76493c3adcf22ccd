"""Have files read by a newer interpreter that is installed on this machine.

What `def f[T](…)`, `type X = …` or a quote inside an f-string means, only an interpreter that knows them can say. The
newest one found is started once, without its site packages and outside the project, and runs our own reader on the
files this interpreter refused. Nothing of the project is run: an interpreter is taken from PATH, from the folders of
pyenv and uv, or from the user's own `--python`, never from the checked project.
"""

from __future__ import annotations

import marshal
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from troth.analysis.facts.model import FileFacts
from troth.analysis.source.read import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["newest_python", "read_with"]

_NEWEST = 20  # minor versions that are looked for on PATH
_PATIENCE = 120  # seconds; reading takes milliseconds per file, a hung interpreter must not hang the check
_FORMAT = 4  # of marshal: what every interpreter since 3.4 reads

_READ = """
import marshal, sys
sys.path.insert(0, sys.argv[1])
from troth.analysis.facts.extract_many import read_facts
from troth.analysis.source.read import Problem
answers = {}
for path, data in marshal.loads(sys.stdin.buffer.read()).items():
    facts = read_facts(path, data)
    if isinstance(facts, Problem):
        answers[path] = (facts.line, facts.column, facts.text, facts.newer_syntax, facts.is_template)
    else:
        answers[path] = facts.pack()
sys.stdout.buffer.write(marshal.dumps(answers, 4))
"""


def newest_python(python: Path | None = None) -> Path | None:
    """The newest interpreter that is newer than this one; None where there is none."""
    interpreters: dict[tuple[int, int], Path] = {}
    for version, path in _candidates(python):
        if version > sys.version_info[:2] and version not in interpreters and _is_there(path):
            interpreters[version] = path
    return interpreters[max(interpreters)] if interpreters else None


def _candidates(python: Path | None) -> Iterator[tuple[tuple[int, int], Path]]:
    if python is not None:
        home = re.search(
            r"^version(?:_info)?\s*=\s*(\d+)\.(\d+)", _text(python.parent.parent / "pyvenv.cfg"), re.MULTILINE
        )
        if home is not None:
            yield (int(home[1]), int(home[2])), python
    for minor in range(_NEWEST, sys.version_info.minor, -1):
        on_path = shutil.which(f"python3.{minor}")
        if on_path is not None and ".pyenv/shims" not in on_path:  # a shim may refuse
            yield (3, minor), Path(on_path)
    for variable, usual in (("PYENV_ROOT", "~/.pyenv"), ("UV_PYTHON_INSTALL_DIR", "~/.local/share/uv/python")):
        for folder in _folders_in(os.environ.get(variable, usual), "versions" if variable == "PYENV_ROOT" else ""):
            version = re.search(r"(?:^|-)3\.(\d+)", folder.name)
            if version is not None:
                minor = int(version[1])
                yield (3, minor), folder / "bin" / f"python3.{minor}"


def _folders_in(root: str, below: str) -> list[Path]:
    """The interpreters that a tool has installed there; none where there is no home, or nobody may look."""
    try:
        return sorted((Path(root).expanduser() / below).glob("*3.*"))
    except (OSError, RuntimeError):
        return []


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # in a folder that nobody may look into
        return False


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def read_with(python: Path, files: Mapping[str, bytes]) -> dict[str, FileFacts | Problem]:
    """The facts of `files`, as that interpreter reads them; nothing where it cannot be run."""
    ours = str(Path(__file__).resolve().parents[3])
    command = [str(python), "-I", "-S", "-X", "utf8", "-B", "-c", _READ, ours]
    try:
        process = subprocess.run(
            command,
            input=marshal.dumps(dict(files), _FORMAT),
            capture_output=True,
            timeout=_PATIENCE,
            check=True,
            cwd=os.sep,
        )
        answers: dict[str, Any] = marshal.loads(process.stdout)  # noqa: S302  our own bytes
        return {
            path: FileFacts.unpack(answer) if isinstance(answer, bytes) else Problem(*answer)
            for path, answer in answers.items()
        }
    except (OSError, subprocess.SubprocessError, ValueError, EOFError, TypeError):
        return {}  # the files stay unread, which is told
