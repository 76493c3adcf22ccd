"""Whole programs with a mismatch of the other families, in the styles in which people write them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.analysis.rules.test_cases import findings

FOLDER = Path(__file__).parent / "families"
BLOCK = re.compile(r"^```python (?P<path>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"  # (?P<codes>T\d{3}(?: T\d{3})*)$")


def programs() -> Iterator[object]:
    for page in sorted(FOLDER.glob("*.md")):
        for section in page.read_text(encoding="utf-8").split("\n## ")[1:]:
            name, _, body = section.partition("\n")
            files = {found["path"]: found["text"] for found in BLOCK.finditer(body)}
            yield pytest.param(files, id=f"{page.stem}-{name}")


@pytest.mark.parametrize("files", list(programs()))
def test_program(files: dict[str, str]) -> None:
    """Each marked line has a finding of the rule it names, and no other line has one of any rule."""
    marked = {
        (path, number, code)
        for path, text in files.items()
        for number, line in enumerate(text.splitlines(), 1)
        if (found := MARK.search(line))
        for code in found["codes"].split()
    }
    assert {(f.span.path, f.span.line, f.code) for f in findings(files)} == marked
