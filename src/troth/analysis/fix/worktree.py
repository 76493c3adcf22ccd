"""Knows whether a project's git work tree has changes that a repair would be mixed up with."""

import subprocess
from pathlib import Path

__all__ = ["uncommitted"]


def uncommitted(root: Path) -> list[str]:
    """The tracked files under `root` with changes not committed; none where there is no git or no repository."""
    try:
        done = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no", "-z", "--", "."],
            cwd=root,
            capture_output=True,
            timeout=60,
            check=False,
        )
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return []
    if done.returncode != 0:
        return []
    return [row[3:].decode("utf-8", "replace") for row in done.stdout.split(b"\0") if len(row) > 3]
