"""Pin what each table was read from, so that it can be made again and a changed table is noticed.

`tables.lock` has a line for each table: its name, the first digits of the SHA-256 of its text, and the distributions it
was read from, with their versions. A build installs those versions unless `--upgrade` asks for the newest ones.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

__all__ = ["LOCK", "lines_of", "pinned", "write_lock"]

LOCK = Path(__file__).with_name("tables.lock")
_HEAD = "# Written by `python -m tools.knowledge build`: table, digest of its text, what it was read from.\n"
_DIGITS = 16


def lines_of(tables: Path) -> list[str]:
    """The line of each table in a folder."""
    return [_line(path) for path in sorted(tables.glob("*.json"))]


def _line(path: Path) -> str:
    text = path.read_bytes()
    digest = hashlib.sha256(text).hexdigest()[:_DIGITS]
    return f"{path.stem} {digest} {', '.join(json.loads(text)['source'])}\n"


def write_lock(tables: Path, lock: Path = LOCK) -> None:
    """Pin the tables of a folder."""
    lock.write_text(_HEAD + "".join(lines_of(tables)), encoding="utf-8")


def pinned(top: str, requirements: Iterable[str], lock: Path = LOCK) -> tuple[str, ...]:
    """The requirements of a table, each with the version that the lock names; as they are where it names none."""
    versions = _versions(top, lock)
    return tuple(f"{name}=={versions[name]}" if name in versions else name for name in requirements)


def _versions(top: str, lock: Path) -> dict[str, str]:
    for line in lock.read_text(encoding="utf-8").splitlines():
        name, _, entry = line.partition(" ")
        if name == top:
            sources = (source.rpartition(" ") for source in entry.partition(" ")[2].split(", "))
            return {distribution: version for distribution, _, version in sources}
    return {}
