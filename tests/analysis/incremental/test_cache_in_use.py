"""The cache is shared by processes that know nothing of each other and may end at any moment."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

MODULE = "import asyncio\nfrom m{other} import save{other}\nasync def save{own}(): ...\nasync def main{own}():\n    save{other}()\n"
COUNT = 6


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "pyproject.toml").touch()
    for own in range(COUNT):
        write(root, own)
    return root


def write(root: Path, own: int, more: str = "") -> None:
    (root / f"m{own}.py").write_text(MODULE.format(own=own, other=(own + 1) % COUNT) + more)


def start(root: Path, *options: str) -> "subprocess.Popen[str]":
    environment = {key: value for key, value in os.environ.items() if key not in {"VIRTUAL_ENV", "TROTH_NO_CACHE"}}
    command = [sys.executable, "-m", "troth", "check", "--output-format", "json", *options]
    return subprocess.Popen(
        command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def said(process: "subprocess.Popen[str]") -> str:
    out, problem = process.communicate(timeout=60)
    assert process.returncode == 1, problem
    return out


def cold(root: Path) -> str:
    return said(start(root, "--no-cache"))


def test_several_runs_at_once_say_the_same(project: Path) -> None:
    """On an empty cache, and again after an edit; whoever comes last leaves a cache that serves."""
    for edit in ("", "def more(): ...\n"):
        write(project, 0, edit)
        expected = cold(project)
        assert {said(one) for one in [start(project) for _ in range(3)]} == {expected}
        assert said(start(project)) == expected
    assert not list((project / ".troth_cache").glob("new-*"))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nothing ends a process at once here")
@pytest.mark.parametrize("is_warm", [False, True], ids=["on an empty cache", "after an edit"])
def test_a_run_that_is_killed_leaves_nothing_wrong(project: Path, is_warm: bool) -> None:
    """At whatever moment: the next run says what one without a cache says."""
    chance = random.Random(3)
    if is_warm:
        said(start(project))
    for number in range(4):
        write(project, number % COUNT, f"async def later{number}():\n    save{(number + 1) % COUNT}()\n")
        begun = start(project)
        time.sleep(chance.uniform(0.05, 0.4))
        begun.send_signal(signal.SIGKILL)
        begun.communicate(timeout=60)
        assert said(start(project)) == cold(project)


@pytest.mark.parametrize("name", ["facts.bin", "since.bin", "comments.bin"])
@pytest.mark.parametrize("damage", [b"", b"\0" * 64, b"half"], ids=["empty", "zeros", "half of it"])
def test_a_damaged_file_is_as_good_as_none(project: Path, name: str, damage: bytes) -> None:
    """Whichever file it is, and the next run repairs it."""
    expected = said(start(project))
    file = project / ".troth_cache" / name
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2] if damage == b"half" else damage)
    assert said(start(project)) == expected
    assert said(start(project)) == expected


def test_a_cache_that_is_a_file_is_no_cache(project: Path) -> None:
    """Nor is one that cannot be made: the check is done all the same."""
    (project / ".troth_cache").write_text("not a folder")
    assert said(start(project)) == cold(project)
