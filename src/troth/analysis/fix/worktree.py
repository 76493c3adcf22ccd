"""Decide whether a project's git work tree has changes that a repair would be mixed up with."""

import os
import subprocess
from collections.abc import Collection
from pathlib import Path

__all__ = ["uncommitted"]


def uncommitted(root: Path, paths: Collection[str]) -> list[str]:
    """Which of these files under `root` git tracks and has changes of that are not committed.

    None of them, where there is no git or no repository.
    """
    top = _git(root, "rev-parse", "--show-toplevel")
    rows = _git(root, "status", "--porcelain", "--untracked-files=no", "--no-renames", "-z", "--", ".")
    if top is None or rows is None:
        return []
    repository = Path(os.fsdecode(top.removesuffix(b"\n")))
    dirty = {repository / os.fsdecode(row[3:]) for row in rows.split(b"\0") if len(row) > 3}
    whole = root.resolve()
    return [path for path in paths if (whole / path).resolve() in dirty]


def _git(folder: Path, *words: str) -> bytes | None:
    try:
        process = subprocess.run(["git", *words], cwd=folder, capture_output=True, timeout=60, check=False)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    return process.stdout if process.returncode == 0 else None
