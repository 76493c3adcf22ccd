"""Whole programs in the styles in which people write them, and what is found on which of their lines."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.analysis.rules.test_cases import findings

BLOCK = re.compile(r"^```python (?P<path>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def programs_in(folder: str) -> Iterator[object]:
    """The programs of a folder's pages: each section of a page is one, each of its blocks a file."""
    for page in sorted((Path(__file__).parent / folder).glob("*.md")):
        for section in page.read_text(encoding="utf-8").split("\n## ")[1:]:
            name, _, body = section.partition("\n")
            files = {found["path"]: found["text"] for found in BLOCK.finditer(body)}
            yield pytest.param(files, id=f"{page.stem}-{name}")


@pytest.mark.parametrize("files", list(programs_in("specimens")))
def test_specimen(files: dict[str, str]) -> None:
    """Each marked line has a finding about a lost call, and no other line has one."""
    marked = {
        (path, number)
        for path, text in files.items()
        for number, line in enumerate(text.splitlines(), 1)
        if line.endswith("# bad")
    }
    found = {(f.span.path, f.span.line) for f in findings(files) if f.code.startswith(("TR0", "TR1", "TR2"))}
    assert found == marked
