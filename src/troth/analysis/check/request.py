"""What a user can ask of a check."""

from pathlib import Path
from typing import NamedTuple

from troth.analysis.findings import Confidence

__all__ = ["CheckRequest"]


class CheckRequest(NamedTuple):
    """What a user asks for; None means that the settings decide.

    A named tuple, as all values that every run makes: a frozen dataclass takes eight times as long to define, and a
    dozen of them would be a tenth of the time that a small project takes.

    `cwd` is an absolute path without links in it. `stdin` is source text that stands for the file `stdin_name`, which
    need not exist; the paths are then left out of account. `config` are settings files, and settings in TOML.
    """

    cwd: Path
    paths: tuple[str, ...] = ()
    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    confidence: Confidence | None = None
    baseline: Path | None = None
    write_baseline: bool = False
    since: str | None = None
    python: str | None = None
    jobs: int = 0
    cache: bool = True
    cache_dir: Path | None = None
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    config: tuple[str, ...] = ()
    isolated: bool = False
    foreign_comments: bool = True
    stdin: bytes | None = None
    stdin_name: str = "stdin.py"
