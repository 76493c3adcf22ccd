"""Have a package installed in an environment of its own, and how to look at it there."""

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.knowledge.catalogue import Entry
from tools.knowledge.observed import Observed, read_observed

__all__ = ["Environment", "installed", "running", "stubs_of_mypy"]

_INSTALL_SECONDS = 600
_IMPORT_SECONDS = 240
_INTROSPECT = Path(__file__).with_name("introspect.py")


@dataclass(frozen=True, slots=True)
class Environment:
    """An interpreter and the folder its packages lie in."""

    python: str
    packages: Path

    def versions(self, distributions: tuple[str, ...]) -> list[str]:
        """`name version` of each distribution, as installed."""
        names = [distribution.partition("[")[0].partition("=")[0].partition("<")[0] for distribution in distributions]
        code = (
            "import sys, json, importlib.metadata as m\n"
            "print(json.dumps([f'{n} {m.version(n)}' for n in sys.argv[1:]]))"
        )
        process = subprocess.run(
            [self.python, "-c", code, *names], check=True, capture_output=True, text=True, timeout=60
        )
        installed_versions: list[str] = json.loads(process.stdout)
        return installed_versions

    def observe(self, entry: Entry) -> Observed:
        """Import the package in a process of its own and note what it offers."""
        if entry.source_only:
            return Observed()
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "seen.json"
            command = [self.python, "-W", "ignore", str(_INTROSPECT), str(out), entry.top, "--prepare", entry.prepare]
            for prefix in entry.only:
                command += ["--only", prefix]
            for prefix in entry.without:
                command += ["--without", prefix]
            process = subprocess.run(
                command, check=False, capture_output=True, text=True, timeout=_IMPORT_SECONDS, cwd=folder
            )
            if not out.exists():
                print(f"{entry.top}: could not be imported\n{process.stderr[-800:]}", file=sys.stderr)
                return Observed()
            return read_observed(out)


def _packages_of(python: str) -> Path:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    process = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    return Path(process.stdout.strip())


def running() -> Environment:
    """The environment this process runs in."""
    return Environment(sys.executable, _packages_of(sys.executable))


@contextlib.contextmanager
def installed(entry: Entry, requirements: tuple[str, ...]) -> Iterator[Environment]:
    """A fresh environment with the package, as `requirements` pin it, and all it needs; gone afterwards."""
    if sys.version_info[:2] < entry.python:
        version = ".".join(map(str, entry.python))
        raise OSError(f"its sources are written for Python {version}; run `python{version} -m tools.knowledge` for it")
    if shutil.which("uv") is None:
        raise OSError("it is installed with `uv`, which is not on the PATH; `pip install uv` puts it there")
    with tempfile.TemporaryDirectory(prefix="knowledge-") as folder:
        subprocess.run(
            ["uv", "venv", "--quiet", "--python", sys.executable, f"{folder}/env"],
            check=True,
            timeout=_INSTALL_SECONDS,
        )
        python = f"{folder}/env/bin/python"
        needs = [] if not entry.source_only else ["--no-deps"]
        subprocess.run(
            ["uv", "pip", "install", "--quiet", "--python", python, *needs, *requirements, *entry.extra],
            check=True,
            timeout=_INSTALL_SECONDS,
        )
        yield Environment(python, _packages_of(python))


def stubs_of_mypy() -> tuple[Path, str]:
    """The standard library's stubs that ship inside mypy, and the version they came with."""
    environment = running()
    [version] = environment.versions(("mypy",))
    return environment.packages / "mypy" / "typeshed" / "stdlib", f"typeshed in {version}"
