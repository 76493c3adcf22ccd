"""Functions that come in two colors: each sync half is what `troth recolor --to both` makes of its async half.

Left out are async halves that only carry their sync one to a thread, and the pairs below, which do something else in each
color. To write the others again: `troth recolor MODULE:CLASS.aNAME --to both`.
"""

import ast
from pathlib import Path

import pytest

from troth.analysis.check import CheckRequest, prepare
from troth.analysis.recolor.project.workspace import Subject, read_workspace
from troth.analysis.recolor.twin.half import half_of, pairs

ROOT = Path(__file__).resolve().parents[1]
# What differs in more than color: drivers, which wait in another way; who takes a batch, a large value or a loop into account.
OTHERWISE = frozenset((Path(__file__).parent / "data" / "halves_that_differ.txt").read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def verdicts():
    """What became of each pair, by its module and name."""
    prepared = prepare(CheckRequest(cwd=ROOT, cache=False, paths=("src/troth",)))
    workspace = read_workspace(
        prepared.scope.project, lambda _program: Subject(frozenset(), {}), within=lambda _path: False
    )
    verdicts = {}
    for module in workspace.program.own_modules():
        if module.path.startswith("src/troth/"):
            for function, partner in pairs(module):
                half = half_of(workspace, function)
                carries = is_carried(workspace.definition(function)[1], partner.name)
                verdict = "carried" if carries else "otherwise" if half.problems or half.edits else "made"
                verdicts[f"{module.path.removeprefix('src/troth/')}:{function.qualname}"] = verdict
    return verdicts


def is_carried(node, partner):
    """Whether all that an async half does is to have its sync half done elsewhere."""
    *_, last = node.body
    statements = [part for part in node.body if not isinstance(part, ast.Expr) or isinstance(part.value, ast.Await)]
    value = getattr(last, "value", None)
    called = {part.attr for part in ast.walk(last) if isinstance(part, ast.Attribute)}
    return len(statements) == 1 and isinstance(value, ast.Await) and partner in called


def test_sync_halves_are_made_from_async_ones(verdicts):
    """A change of one half alone is seen here."""
    assert sorted(name for name, verdict in verdicts.items() if verdict == "otherwise" and name not in OTHERWISE) == []


def test_the_list_of_those_that_differ_only_shrinks(verdicts):
    """A pair that came to differ by its color alone stays so."""
    assert sorted(name for name in OTHERWISE if verdicts.get(name) != "otherwise") == []


def test_pairs_are_found(verdicts):
    """Neither test above passes because there is nothing to look at."""
    assert sum(verdict == "made" for verdict in verdicts.values()) > 40
    assert sum(verdict == "carried" for verdict in verdicts.values()) > 25
