"""Real projects: how to unpack one at a commit, give it an environment of its own, and run its tests."""

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from xml.etree import ElementTree as ET

__all__ = [
    "CULTURE",
    "HYPERVISOR",
    "SUITES",
    "Difference",
    "Real",
    "difference",
    "environment",
    "outcomes",
    "unpacked",
    "untouched",
]


class Real(NamedTuple):
    """A project at a commit, or as a source distribution where `repo` is "" and `commit` its name and version.

    `folder` is where its tests are run, `tests` what pytest is given there.
    """

    name: str
    repo: str
    commit: str
    needs: tuple[str, ...]
    tests: tuple[str, ...] = ()
    folder: str = "."
    python: str = "3.11"
    env: Mapping[str, str] = {}
    metadata: str = ""  # a distribution that the project asks for its own version
    after: str = ""  # the commit of the human change, where there is one


_PYTEST = ("pytest", "pytest-asyncio", "pytest-timeout", "pytest-xdist")
HYPERVISOR = Real(
    "agent-hypervisor",
    "microsoft/agent-governance-toolkit",
    "81955d48025c6b11deb3fc9dabf89f74f4145775",
    (*_PYTEST, "pydantic", "fastapi", "httpx", "uvicorn", "rich", "click", "structlog", "prometheus_client", "pyyaml"),
    folder="agent-governance-python/agent-hypervisor",
    env={"PYTHONPATH": "src"},
    after="1c76630f90aae59584174f025d5f59a0bad09ab9",
)
CULTURE = Real(
    "culture",
    "agentculture/culture",
    "c54ef1051319dff56562ed0f46316f2974047066",
    (*_PYTEST, "pyyaml", "anthropic", "claude-agent-sdk", "mistune", "aiohttp", "textual"),
    tests=("-n", "2"),
    python="3.12",
    env={"PYTHONPATH": "."},
    metadata="culture",
    after="c63ff06ee57fcf5c46e1832149582b3294803726",
)
SUITES = (
    Real(
        "starlette",
        "encode/starlette",
        "cb8f84f5",
        (
            "pytest",
            "pytest-timeout",
            "anyio>=4,<4.10",
            "httpx<1",
            "itsdangerous",
            "jinja2",
            "python-multipart",
            "pyyaml",
            "trio",
        ),
        tests=("-W", "ignore::DeprecationWarning"),
        env={"PYTHONPATH": "."},
    ),
    Real(
        "aiofiles",
        "Tinche/aiofiles",
        "6fdc25c",
        (*_PYTEST,),
        env={"PYTHONPATH": "src"},
    ),
    Real(
        "kopf",
        "",
        "kopf-1.45.2",
        (
            *_PYTEST,
            "kopf==1.45.2",
            "certbuilder",
            "certvalidator",
            "freezegun",
            "kmock>=0.5",
            "looptime>=0.8",
            "pytest-aiohttp",
            "pytest-mock",
        ),
        tests=(
            "tests/primitives",
            "tests/handling/indexing",
            "tests/k8s/test_watching_with_freezes.py",
            "tests/timing",
        ),
        env={"PYTHONPATH": "."},
    ),
    Real(
        "aiocache",
        "aio-libs/aiocache",
        "43f6a24",
        (*_PYTEST, "redis", "aiomcache", "msgpack", "marshmallow", "pytest-mock"),
        tests=("tests/ut", "-o", "addopts="),
        env={"PYTHONPATH": "."},
    ),
)


def unpacked(repos: Path, real: Real, here: Path, commit: str = "") -> Path:
    """A tree of the project, unpacked anew.

    `repos` holds bare repositories as `owner+name/repo`; a source distribution is fetched from the package index.
    """
    here.mkdir(parents=True)
    if not real.repo:
        name, _, version = real.commit.rpartition("-")
        fetch = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--no-binary",
            ":all:",
        ]
        with TemporaryDirectory() as folder:
            subprocess.run([*fetch, "-d", folder, f"{name}=={version}"], check=True)
            (archive,) = Path(folder).iterdir()
            with tarfile.open(archive) as packed:
                packed.extractall(here, filter="data")
        (inner,) = here.iterdir()
        return inner
    bare = repos / real.repo.replace("/", "+") / "repo"
    archive = ["git", "-C", str(bare), "archive", commit or real.commit]
    packing = subprocess.run(archive, stdout=subprocess.PIPE, check=True)
    with tarfile.open(fileobj=io.BytesIO(packing.stdout)) as packed:
        packed.extractall(here, filter="data")
    return here


def environment(folder: Path, real: Real) -> Path:
    """The interpreter of an environment with what the project's tests need; made once."""
    home = folder / real.name
    python = home / "bin" / "python"
    if not (home / ".complete").exists():
        subprocess.run(["uv", "venv", "-q", "--clear", "-p", real.python, str(home)], check=True)
        subprocess.run(["uv", "pip", "install", "-q", "--python", str(python), *real.needs], check=True)
        if real.metadata:
            (packages,) = home.glob("lib/python*/site-packages")
            info = packages / f"{real.metadata}-0.0.0.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {real.metadata}\nVersion: 0.0.0\n")
        (home / ".complete").touch()
    return python


def outcomes(tree: Path, real: Real, python: Path, *options: str) -> dict[str, str]:
    """How each test of the project ends."""
    report = tree / ".outcomes.xml"
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "120", *real.tests, *options]
    subprocess.run(
        [*command, f"--junitxml={report}"],
        cwd=tree / real.folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **real.env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=1800,
        check=False,
    )
    if not report.exists():
        raise SystemExit(f"{real.name}: the tests could not be run at all")
    found: dict[str, str] = {}
    for case in ET.parse(report).iter("testcase"):
        words = {one.tag for one in case} & {"failure", "error", "skipped"}
        found[f"{case.get('classname')}.{case.get('name')}"] = next(iter(sorted(words)), "passed")
    report.unlink()
    return found


def untouched(tree: Path, real: Real, python: Path, keep: Path) -> dict[str, str]:
    """The same for the project as it is, run once and kept in the folder `keep`."""
    file = keep / f"{real.name}-{real.commit[:9] if real.repo else real.commit}.json"
    if not file.exists():
        file.write_text(json.dumps(outcomes(tree, real, python)), encoding="utf-8")
    found: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return found


class Difference(NamedTuple):
    """Two runs of one suite."""

    before: Mapping[str, str]
    after: Mapping[str, str]

    @property
    def worse(self) -> Sequence[str]:
        """The tests that passed and do not any more."""
        return [name for name, how in self.before.items() if how == "passed" != self.after.get(name, "gone")]

    def __str__(self) -> str:
        """Both runs, in one line."""
        same = "equally green" if not self.worse else f"{len(self.worse)} worse: {', '.join(self.worse[:5])}"
        return f"before {_counts(self.before)}; after {_counts(self.after)}; {same}"


def difference(before: Mapping[str, str], after: Mapping[str, str]) -> Difference:
    """The two runs, side by side."""
    return Difference(before, after)


def _counts(found: Mapping[str, str]) -> str:
    words = {word: sum(one == word for one in found.values()) for word in ("passed", "failure", "error", "skipped")}
    return ", ".join(f"{count} {word}" for word, count in words.items() if count)
