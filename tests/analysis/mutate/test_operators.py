"""Each operator against its own cases, and what all of them promise together."""

import ast

import pytest

from troth.analysis.mutate.operators import all_operators
from troth.analysis.mutate.source.module import SourceModule
from troth.analysis.mutate.source.project import MutatedProject
from troth.analysis.mutate.source.splice import splice
from troth.analysis.mutate.source.text import decode

OPERATORS = all_operators()
CASES = [
    pytest.param(operator, case, id=f"{operator.name}: {case.name}")
    for operator in OPERATORS.values()
    for case in operator.cases
]


def mutants_of(operator, text):
    source = decode("m.py", text.encode())
    return source, list(operator.find(SourceModule(source), MutatedProject({"m.py": source}, {})))


@pytest.mark.parametrize(("operator", "case"), CASES)
def test_case(operator, case):
    """An operator makes of the program exactly what its case says, or leaves it alone."""
    source, found = mutants_of(operator, case.before)
    if case.after is None:
        assert [splice(source, mutant.edits).after.text for mutant in found] == []
        return
    made = [splice(source, mutant.edits).after.text for mutant in found]
    assert case.after in made
    at = made.index(case.after)
    assert found[at].shape == case.shape


@pytest.mark.parametrize(("operator", "case"), CASES)
def test_every_mutant_of_a_case_parses_and_is_of_a_known_shape(operator, case):
    """What is planted is Python, its shape has a cure, and it stands inside its function."""
    source, found = mutants_of(operator, case.before)
    for mutant in found:
        ast.parse(splice(source, mutant.edits).after.text)
        assert mutant.shape in operator.shapes
        assert mutant.home[0] <= mutant.marks[-1][0] < mutant.home[1]


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=list(OPERATORS))
def test_operator_is_complete(operator):
    """An operator has cases that change something and cases that stay, and a cure for each of its shapes."""
    assert set(operator.cures) == set(operator.shapes) == set(operator.needs)
    assert {case.shape for case in operator.cases if case.after is not None} == set(operator.shapes)
    assert any(case.after is None for case in operator.cases)
    assert operator.summary
