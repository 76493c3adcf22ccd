"""The samples of the tests for every tool: lines where a call is lost, and programs in which nothing is.

Only samples of one file that import nothing but the standard library: whoever installs the libraries would see more.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["KEPT", "LOST", "Place", "lay_out"]

Place = tuple[str, int]

_SPECIMENS = Path(__file__).resolve().parents[2] / "tests/analysis/specimens"
_BLOCK = re.compile(r"^```python (?P<path>\S+\.py)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LOST, KEPT = ("lost", "ways", "witnesses", "seen"), ("kept",)


def lay_out(folder: Path, pages: tuple[str, ...]) -> tuple[set[Place], int]:
    """Write the samples of these pages into a folder; the marked lines, and how many samples there are."""
    marked: set[Place] = set()
    count = 0
    for page, number, text in _single_files(pages):
        file = folder / f"{page}_{number:03}.py"
        file.write_text(text, encoding="utf-8")
        count += 1
        marked |= {(file.name, at) for at, row in enumerate(text.splitlines(), 1) if row.endswith("# bad")}
    return marked, count


def _single_files(pages: tuple[str, ...]) -> Iterator[tuple[str, int, str]]:
    for page in pages:
        for number, section in enumerate((_SPECIMENS / f"{page}.md").read_text(encoding="utf-8").split("\n## ")[1:]):
            blocks = _BLOCK.findall(section)
            if len(blocks) == 1 and _is_alone(blocks[0][1]):
                yield page, number, blocks[0][1]


def _is_alone(text: str) -> bool:
    """Whether it imports nothing that has to be installed."""
    names = [
        name
        for node in ast.walk(ast.parse(text))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or "."]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    ]
    return all(name.partition(".")[0] in sys.stdlib_module_names for name in names)
