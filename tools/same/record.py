"""Read and write a record: JSON lines, each of which says where it belongs and one thing that is true there.

The rows of a program follow one another: first what the program is (the digest of its text), then its findings in the
order in which they are reported. A row is named by `in`; no row depends on a module of Troth or on an absolute path.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["Row", "digest", "read", "write"]

Row = dict[str, object]


def read(file: Path) -> list[Row]:
    """The rows of a record."""
    # Not `splitlines`: a message may hold U+2028, which JSON leaves as it is.
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]


def write(file: Path, rows: Iterable[Row]) -> None:
    """Write a record, one row per line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    file.write_text(text, encoding="utf-8", newline="\n")


def digest(files: Mapping[str, bytes]) -> str:
    """A short name for the contents of some files."""
    whole = hashlib.sha256()
    for path, data in sorted(files.items()):
        whole.update(f"{path}\0{len(data)}\0".encode())
        whole.update(data)
    return whole.hexdigest()[:16]
