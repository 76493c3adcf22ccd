"""YAML as it is written today: 1.2, in which `on`, `yes` and `NO` are words."""

import pytest

from troth.runtime.workflows.document.nodes import plain
from troth.runtime.workflows.document.problems import InvalidWorkflowError
from troth.runtime.workflows.document.yaml_reader import read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("on: yes", {"on": "yes"}, id="yes and on are words"),
        pytest.param("a: NO", {"a": "NO"}, id="Norway"),
        pytest.param("a: true", {"a": True}, id="true"),
        pytest.param("a: False", {"a": False}, id="False"),
        pytest.param("a: 1:30", {"a": "1:30"}, id="no sexagesimals"),
        pytest.param("a: 0o17", {"a": 15}, id="octal"),
        pytest.param("a: 017", {"a": 17}, id="a leading zero is decimal"),
        pytest.param("a: 0x1F", {"a": 31}, id="hexadecimal"),
        pytest.param("a: 1_000", {"a": "1_000"}, id="no underscores in numbers"),
        pytest.param("a: -2.5e3", {"a": -2500.0}, id="a float"),
        pytest.param("a: .5", {"a": 0.5}, id="a float without a zero"),
        pytest.param("a: .inf", {"a": ".inf"}, id="what JSON cannot hold stays a word"),
        pytest.param("a: 2026-11-15", {"a": "2026-11-15"}, id="a date is a word"),
        pytest.param("a: ~", {"a": None}, id="null"),
        pytest.param("a:", {"a": None}, id="nothing"),
        pytest.param("a: 'true'", {"a": "true"}, id="quoted"),
        pytest.param('"1": x', {"1": "x"}, id="keys are texts"),
        pytest.param("1: x", {"1": "x"}, id="keys are texts even if they look like numbers"),
        pytest.param("a: &x [1]\nb: *x", {"a": [1], "b": [1]}, id="an alias"),
        pytest.param("a: |\n  x\n  y\n", {"a": "x\ny\n"}, id="a block"),
    ],
)
def test_what_a_word_means(text, value):
    """By the core schema of YAML 1.2, not by the habits of 1.1."""
    assert plain(read_yaml(text, "f")) == value


BOMB = "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))])


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        pytest.param("a: 1\na: 2", "2:1", "is used twice", id="a key twice"),
        pytest.param("a: &x {b: 1}\nc: {<<: *x}", "2:5", "merging", id="merge keys"),
        pytest.param("? [1]\n: 2", "1:3", "a key has to be a string", id="a list as key"),
        pytest.param("a: !!set {x}", "1:4", "is not supported here", id="a tag"),
        pytest.param("a: &x [*x]", "1:4", "contains itself", id="an alias of itself"),
        pytest.param("[" * 150 + "]" * 150, "1:102", "nested more than 100", id="too deep"),
        pytest.param("a: [1", "2:1", "not YAML", id="unfinished"),
        pytest.param("b: 1\na: \x00", "2:4", "not YAML", id="a control letter"),
        pytest.param("a: 1\n---\nb: 2", "2:1", "a second document begins here", id="two documents"),
        pytest.param("a:\n\t- b", "2:1", "a tab cannot indent", id="a tab"),
        pytest.param(BOMB, "1:5", "copies that aliases make", id="aliases of aliases"),
    ],
)
def test_what_is_refused(text, place, what):
    """With its place."""
    with pytest.raises(InvalidWorkflowError) as refused:
        read_yaml(text, "f")
    (problem,) = refused.value.problems
    assert what in problem.what
    assert f"{problem.mark.line}:{problem.mark.column}" == place
