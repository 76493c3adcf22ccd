"""Knows what a user can ask of a check."""

from dataclasses import dataclass
from pathlib import Path

from troth.analysis.findings import Confidence

__all__ = ["Request"]


@dataclass(frozen=True, slots=True)
class Request:
    """What a user asks for; None means that the settings decide.

    `cwd` is an absolute path without links in it. `stdin` is source text that stands for the file `stdin_name`, which
    need not exist; the paths are then left out of account.
    """

    cwd: Path
    paths: tuple[str, ...] = ()
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    confidence: Confidence | None = None
    baseline: Path | None = None
    write_baseline: bool = False
    since: str | None = None
    python: str | None = None
    jobs: int = 0
    cache: bool = True
    cache_dir: Path | None = None
    force_exclude: bool = False
    stdin: bytes | None = None
    stdin_name: str = "stdin.py"
