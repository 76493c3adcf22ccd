"""Edits change what they name and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.analysis.edits.apply import apply, compatible
from troth.analysis.findings import Edit, Fix
from troth.errors import InternalError


def edit(start: int, end: int, text: str = "") -> Edit:
    return Edit("a.py", start, end, text)


def fix(*edits: Edit) -> Fix:
    return Fix("a fix", "sure", edits)


@pytest.mark.parametrize(
    ("edits", "after"),
    [
        pytest.param([], "save(x)", id="nothing"),
        pytest.param([edit(0, 0, "await ")], "await save(x)", id="insertion"),
        pytest.param([edit(5, 6, "order")], "save(order)", id="replacement"),
        pytest.param([edit(5, 6, "y"), edit(0, 4, "load")], "load(y)", id="given in any order"),
        pytest.param([edit(0, 0, "await "), edit(0, 0, "await ")], "await save(x)", id="the same twice counts once"),
        pytest.param([edit(0, 0, "("), edit(7, 7, ")")], "(save(x))", id="both ends"),
    ],
)
def test_applied(edits, after):
    """Everything between the edits stays."""
    assert apply("save(x)", edits) == after


@pytest.mark.parametrize("edits", [[edit(0, 4), edit(3, 6)], [edit(5, 99)]], ids=["overlap", "outside"])
def test_an_impossible_edit_is_our_bug(edits):
    """Two edits of one place never get here; if they do, nothing is written."""
    with pytest.raises(InternalError):
        apply("save(x)", edits)


@pytest.mark.parametrize(
    ("fixes", "kept"),
    [
        pytest.param([fix(edit(0, 2)), fix(edit(2, 4))], [0, 1], id="side by side"),
        pytest.param([fix(edit(0, 3)), fix(edit(2, 4))], [0], id="overlap: the first"),
        pytest.param([fix(edit(0, 0, "x")), fix(edit(0, 0, "y"))], [0], id="two insertions at one place"),
        pytest.param([fix(edit(0, 0, "x")), fix(edit(0, 0, "x"), edit(5, 6))], [0, 1], id="the same insertion shared"),
        pytest.param([fix(edit(0, 1)), fix(edit(5, 6), edit(0, 1, "z"))], [0], id="a fix is taken whole or not"),
    ],
)
def test_fixes_that_go_together(fixes, kept):
    """A fix is applied with all its edits, or waits for the next round."""
    assert compatible(fixes) == [fixes[number] for number in kept]


@given(
    st.text(max_size=40), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5), st.text(max_size=3)), max_size=6)
)
def test_what_is_compatible_can_be_applied(text, raw):
    """Whatever fixes are asked for, the chosen ones apply."""
    fixes = [fix(edit(min(s, len(text)), min(s + n, len(text)), t)) for s, n, t in raw]
    apply(text, [e for f in compatible(fixes) for e in f.edits])
