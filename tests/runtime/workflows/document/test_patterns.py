"""A pattern is matched in time that grows with the text, whatever it is; what could not be is refused when it is read."""

import re

import pytest

from troth.cli import app
from troth.runtime.workflows.document.contracts import Contract, read_contract
from troth.runtime.workflows.document.nodes import SourceMark, node_of
from troth.runtime.workflows.document.patterns import matcher_of
from troth.runtime.workflows.document.problems import Problems


@pytest.mark.parametrize("pattern", [r"^(a+)+$", r"^(a|a)*$", r"^(a|aa)+$", r"(a*)*b$", r"^(\w+\s?)*$", r"(.*)*x{3}$"])
def test_no_pattern_explodes(pattern):
    """A hundred thousand letters, of which each way of `re` would try two to the power of."""
    (complaint,) = Contract("string", pattern=pattern).complaints("a" * 100_000 + "!", "x")
    assert "does not match" in complaint


@pytest.mark.parametrize(
    "pattern", [r"^[a-z]+(-[a-z]+)*$", r"\d{3}", r"(?i)abc", r"^A\Z", r"\bword\b", r"[^\s@]+@[^\s@]+", r"^\\Z$", r"é|ü"]
)
@pytest.mark.parametrize("text", ["", "a-b-c", "a--b", "xABCx", "A", "123", "a word.", "u@x", "\\Z", "ü", "A7"])
def test_patterns_mean_what_they_mean_in_python(pattern, text):
    """Where both know them."""
    assert matcher_of(pattern)(text) is bool(re.search(pattern, text))


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        pytest.param("[", "unclosed character class", id="broken"),
        pytest.param("(?=a)b", "look-around", id="look-ahead"),
        pytest.param(r"(a)\1", "backreferences", id="back reference"),
        pytest.param("(a{1000}){1000}", "size limit", id="too large"),
    ],
)
def test_what_is_refused_when_it_is_read(pattern, why):
    """With its place and the reason."""
    problems = Problems()
    read_contract(node_of({"type": "string", "pattern": pattern}, SourceMark("f")), problems)
    (problem,) = problems.found
    assert why in problem.what


def test_validate_does_not_hang(tmp_path, capsys):
    """A default that does not match such a pattern is told at once, and cut where it is long."""
    flow = tmp_path / "w.yaml"
    flow.write_text(
        "troth: 1\nname: w\ninputs: {x: {type: string, pattern: ^(a+)+$, default: "
        + "a" * 5000
        + "!}}\nsteps: [{id: z, sleep: 1s}]\n",
        encoding="utf-8",
    )
    assert app.run(["validate", str(flow)]) == 2
    out = capsys.readouterr().out
    assert "which does not match '^(a+)+$'" in out
    assert len(out) < 1000
