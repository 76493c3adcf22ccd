"""Where long lines are broken."""

import pytest

from troth.analysis.report.wrapping import wrapped

RED, END = "\x1b[31m", "\x1b[0m"


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        pytest.param("aaa bbb ccc", None, ["> aaa bbb ccc"], id="any length"),
        pytest.param("a" * 9 + " " + "b" * 12 + " c", 24, ["> aaaaaaaaa bbbbbbbbbbbb", "  c"], id="at a word"),
        pytest.param("x " + "a" * 30 + " y", 24, ["> x", "  " + "a" * 30, "  y"], id="a long word stays whole"),
        pytest.param("aaa bbb ccc", 10, ["> aaa bbb ccc"], id="too narrow to be of use"),
        pytest.param(
            f"{RED}aaaaaaaaa{END} bbbbbbbbbbbb", 24, [f"> {RED}aaaaaaaaa{END} bbbbbbbbbbbb"], id="color takes no room"
        ),
        pytest.param("a  b", 30, ["> a  b"], id="blanks stay"),
        pytest.param("", 30, ["> "], id="nothing"),
    ],
)
def test_wrapped(text, width, lines):
    """No line is longer than the width, unless a word is."""
    assert list(wrapped(text, width, first="> ", rest="  ")) == lines
