"""The small language of conditions: it can ask, and it cannot act."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from troth.errors import MisuseError
from troth.runtime.workflows.document.expressions import ConditionError, Expression, parse_expression
from troth.runtime.workflows.document.nodes import SourceMark
from troth.runtime.workflows.document.problems import Unreadable

HERE = SourceMark("f", 1, 1)
STATE = {
    "inputs": {"amount": 12, "tags": ["a", "b"], "name": "Ann", "none": None},
    "steps": {"classify": {"kind": "bug", "score": 0.5, "odd key": 1}},
    "round": 3,
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("steps.classify.kind == 'bug'", True),
        ("steps.classify.kind != 'bug'", False),
        ("inputs.amount > 10 and inputs.amount <= 12", True),
        ("5 < inputs.amount < 11", False),
        ("not (inputs.amount > 10)", False),
        ("'a' in inputs.tags", True),
        ("'c' not in inputs.tags", True),
        ("inputs.tags[0] == 'a'", True),
        ("inputs.tags[-1] == 'b'", True),
        ("steps.classify['odd key'] == 1", True),
        ("len(inputs.tags) == 2", True),
        ("max(inputs.amount, 20) == 20 and min(1, 2) == 1 and abs(-3) == 3", True),
        ("inputs.amount * 2 + 1 == 25", True),
        ("inputs.amount % 5 == 2 and inputs.amount / 4 == 3 and inputs.amount - 12 == 0", True),
        ("inputs.name + '!' == 'Ann!'", True),
        ("inputs.none is None", True),
        ("inputs.none == null", True),
        ("true and not false", True),
        ("inputs.amount in [11, 12]", True),
        ("(1 if inputs.amount > 3 else 2) == 1", True),
        ("round == 3", True),
        ("inputs.none is not None and inputs.none.deep == 1", False),
    ],
)
def test_what_a_condition_answers(text, holds):
    """Python's comparisons and logic over the state of the run; `and` and `or` stop as soon as they know."""
    assert parse_expression(text, HERE).holds(STATE) is holds


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('x')",
        "inputs.name.upper()",
        "(lambda: 1)()",
        "[x for x in inputs.tags]",
        "2 ** 1000000",
        "inputs.tags[0:1]",
        "f'{inputs.name}'",
        "(x := 1)",
        "len(inputs.tags, key=1)",
        "len(*inputs.tags)",
        "{'a': 1}",
        "inputs.amount << 3",
        "open('x')",
        "b'x'",
        "1; 2",
        "",
        "...",
        "await x",
        "yield",
    ],
)
def test_what_a_condition_cannot_hold(text):
    """Nothing that acts, takes long or reaches into Python."""
    with pytest.raises(Unreadable):
        parse_expression(text, HERE)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("inputs.amount < 'x'", "cannot be evaluated", id="a number and a text"),
        pytest.param("inputs.amount / 0 == 1", "cannot be evaluated", id="by zero"),
        pytest.param("inputs.name * 99999 == 1", "is not a number", id="no long texts"),
        pytest.param("inputs.nosuch == 1", "has no `nosuch`", id="nothing there"),
        pytest.param("inputs.amount", "neither true nor false", id="a number is no condition"),
        pytest.param("len(inputs.amount) == 1", "cannot be evaluated", id="no length"),
    ],
)
def test_a_condition_without_an_answer(text, says):
    """It is an error of the call, so it is told and not tried again."""
    with pytest.raises(MisuseError, match=says):
        parse_expression(text, HERE).holds(STATE)


def test_the_same_condition_spaced_otherwise_is_the_same():
    """Comparing two workflows does not see the spaces."""
    assert parse_expression("inputs.a==1", HERE) == parse_expression("inputs.a  ==  1", SourceMark("g", 7, 3))


def test_the_places_of_its_paths():
    """An unknown name in the middle of a condition is shown where it stands."""
    paths = list(parse_expression("inputs.a == 1 and steps.b.c > 2", SourceMark("f", 3, 10)).paths())
    assert [(str(path), mark.column) for path, mark in paths] == [("inputs.a", 10), ("steps.b.c", 28)]


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=40) | st.from_regex(r"[a-z.\[\]()'0-9 =<>+*-]{0,30}", fullmatch=True))
def test_any_text_is_read_or_refused(text):
    """And whatever was read gives an answer or says why not; nothing else is ever raised."""
    try:
        expression = parse_expression(text, HERE)
    except Unreadable:
        return
    assert isinstance(expression, Expression)
    list(expression.paths())
    try:
        expression.value(STATE)
    except (ConditionError, MisuseError, KeyError):
        return
