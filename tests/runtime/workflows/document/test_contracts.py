"""What a value has to look like, and what is said where it does not."""

import pytest

from troth.runtime.workflows.document.contracts import read_contract
from troth.runtime.workflows.document.durations import parse_duration, show_duration
from troth.runtime.workflows.document.nodes import SourceMark, node_of
from troth.runtime.workflows.document.problems import Problems
from troth.runtime.workflows.execute.failures import WrongInputsError, check_inputs


def contract(document):
    problems = Problems()
    found = read_contract(node_of(document, SourceMark("f")), problems)
    assert not problems.found
    return found


@pytest.mark.parametrize(
    ("document", "value", "complaint"),
    [
        pytest.param("string", "x", None, id="a text"),
        pytest.param("string", 1, "but the contract requires string", id="not a text"),
        pytest.param("integer", 3, None, id="a whole number"),
        pytest.param("integer", 3.0, None, id="JSON does not tell 3 from 3.0"),
        pytest.param("integer", 3.5, "integer", id="not whole"),
        pytest.param("integer", True, "a boolean", id="true is not 1"),
        pytest.param("number", 3, None, id="a whole number is a number"),
        pytest.param("any", object, None, id="anything"),
        pytest.param({"type": "string", "enum": ["a", "b"]}, "c", "none of 'a', 'b'", id="not among the words"),
        pytest.param({"type": "string", "pattern": "^a"}, "ba", "does not match", id="not the pattern"),
        pytest.param({"type": "number", "min": 1, "max": 3}, 4, "more than 3", id="too much"),
        pytest.param({"type": "number", "min": 1}, 0, "less than 1", id="too little"),
        pytest.param({"type": "list", "items": "string"}, ["a", 1], "`x[1]`", id="one item of another type"),
        pytest.param({"fields": {"a": "string"}}, {"a": "x"}, None, id="an object"),
        pytest.param({"fields": {"a": "string"}}, {}, "`x.a` is missing", id="a key is missing"),
        pytest.param({"fields": {"a": {"type": "string", "required": False}}}, {}, None, id="a key may be missing"),
        pytest.param(
            {"fields": {"amount": "any"}}, {"amount": 1, "amont": 2}, "Did you mean `amount`?", id="one key too many"
        ),
    ],
)
def test_a_value_against_a_contract(document, value, complaint):
    """Each complaint names the place in the value."""
    complaints = list(contract(document).complaints(value, "x"))
    assert (complaint is None) == (not complaints)
    assert complaint is None or complaint in complaints[0]


def test_inputs_are_completed_and_complained_about_at_once():
    """Defaults are filled in; missing, unknown and wrong ones are told together, and nothing is started."""
    contracts = {
        "order": contract("string"),
        "amount": contract({"type": "number", "default": 3}),
        "note": contract({"type": "string", "required": False}),
    }
    assert check_inputs("w", contracts, {"order": "A"}) == {"order": "A", "amount": 3, "note": None}
    with pytest.raises(WrongInputsError) as wrong:
        check_inputs("w", contracts, {"ordr": "A", "amount": "x"})
    text = str(wrong.value)
    assert "there is no input 'ordr'. Did you mean `order`?" in text
    assert "the input 'order' (string) is missing" in text
    assert "`inputs.amount` is a string ('x'), but the contract requires number" in text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("200ms", 0.2),
        ("5s", 5),
        ("1.5s", 1.5),
        ("2m", 120),
        ("1h", 3600),
        ("7d", 604800),
        ("1m30s", 90),
        ("1d12h", 129600),
    ],
)
def test_a_span_of_time(text, seconds):
    """It is written with its unit, and shown again in its shortest form."""
    assert parse_duration(text) == pytest.approx(seconds)
    assert parse_duration(show_duration(seconds)) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "s", "5 s", "-1s", "1e3s", "5sec", "1s2"])
def test_what_is_no_span_of_time(text):
    """No unit is guessed."""
    assert parse_duration(text) is None
