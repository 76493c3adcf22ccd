"""Whole programs with a mismatch of the other families, in the styles in which people write them."""

import re

import pytest
from tests.analysis.rules.test_cases import findings
from tests.analysis.test_specimens import programs_in

MARK = re.compile(r"  # (?P<codes>TR\d{3}(?: TR\d{3})*)$")


@pytest.mark.parametrize("files", list(programs_in("families")))
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
