"""Knows how to read the Python of a notebook: its code cells, one after the other."""

import json
from bisect import bisect_right
from dataclasses import dataclass

__all__ = ["Notebook", "read_notebook"]


@dataclass(frozen=True, slots=True)
class Notebook:
    """The code of all cells as one file, and the line on which each cell begins."""

    source: str
    starts: tuple[int, ...]  # the first line of each code cell, from 1

    def cell_of(self, line: int) -> tuple[int, int]:
        """The number of the code cell that a line belongs to, and how many lines come before that cell."""
        index = bisect_right(self.starts, line) - 1
        return index + 1, self.starts[index] - 1 if index >= 0 else 0


def read_notebook(data: bytes) -> Notebook:
    """The code of a notebook. Raises ValueError where the file is no notebook.

    Magics and shell lines become comments, cells in another language become nothing; line numbers stay as they are.
    """
    document = json.loads(data.decode("utf-8"))
    if not isinstance(document, dict) or not isinstance(document.get("cells"), list):
        raise ValueError("this is not a notebook: it has no list of cells")  # noqa: TRY004  a bad value, not a bad type
    lines: list[str] = []
    starts: list[int] = []
    for cell in document["cells"]:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", "")
        text = "".join(source) if isinstance(source, list) else str(source)
        starts.append(len(lines) + 1)
        lines += _plain(text.split("\n"))
    return Notebook("\n".join(lines) + "\n", tuple(starts))


def _plain(lines: list[str]) -> list[str]:
    if lines and lines[0].lstrip().startswith("%%") and not lines[0].lstrip().startswith(("%%time", "%%capture")):
        return ["" for _ in lines]
    return [_without_magic(line) for line in lines]


def _without_magic(line: str) -> str:
    stripped = line.lstrip()
    if stripped.startswith(("%", "!", "?")) or stripped.rstrip().endswith("?"):
        return line[: len(line) - len(stripped)] + "pass"  # a block may consist of nothing else
    return line
