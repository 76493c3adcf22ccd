"""What does not matter to a promise does not matter to the finding: names, order, and the file a definition is in."""

import ast
import re
from collections.abc import Callable

import pytest
from tests.analysis.rules.test_cases import files, findings

from troth.analysis.rules import Case, CheckRule, all_rules

CASES = [
    pytest.param(rule, case, id=f"{rule.code}-{case.name}")
    for rule in all_rules()
    for case in rule.cases
    if rule.code.startswith(("TR1", "TR2")) and isinstance(case.bad or case.good, str)
]
# Cases in which the name itself is the evidence.
BY_NAME = {
    "the namesake of a method of the project's own",
    "the namesake of a method that may be a library's",
    "a runner that leaves the running to somebody unknown",
}
IN_ITS_FILE = {
    "a function on a line of its own",  # an imported name alone on a line may keep an import in use
    "yielded by an async generator, whose items are gathered",  # the file that yields them is asked what it gathers
}


def definitions(tree: ast.Module) -> list[ast.stmt]:
    return [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]


def cut(text: str, node: ast.stmt) -> str:
    """A definition with its decorators and with what is said behind its last line."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


def renamed(text: str) -> dict[str, str]:
    """Every function and class of the case under another name."""
    names = {
        n.name
        for n in ast.walk(ast.parse(text))
        if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not n.name.startswith(("__", "test"))
    }
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"\b{name}\b", f"{name}Zq" if name[0].isupper() else f"{name}_zq", text)
    return {"case.py": text}


def reordered(text: str) -> dict[str, str]:
    """The definitions in the opposite order, after everything else that stands before them."""
    tree = ast.parse(text)
    blocks = definitions(tree)
    rest = [cut(text, n) for n in tree.body if n not in blocks]
    return {"case.py": "\n".join([*rest, *(cut(text, n) for n in reversed(blocks)), ""])}


def split(text: str) -> dict[str, str]:
    """All definitions but the last in a module of their own."""
    tree = ast.parse(text)
    blocks = definitions(tree)
    rest = [cut(text, n) for n in tree.body if n not in blocks]
    if len(blocks) < 2 or any(isinstance(n, ast.Assign | ast.Expr | ast.Try | ast.If) for n in tree.body):
        pytest.skip("nothing to be moved, or something that binds the file together")
    moved = [n.name for n in blocks[:-1] if hasattr(n, "name")]
    return {
        "parts.py": "\n".join([*rest, *(cut(text, n) for n in blocks[:-1]), ""]),
        "case.py": "\n".join([*rest, f"from parts import {', '.join(moved)}", cut(text, blocks[-1]), ""]),
    }


@pytest.mark.parametrize("change", [renamed, reordered, split], ids=lambda change: change.__name__)
@pytest.mark.parametrize(("rule", "case"), CASES)
def test_what_does_not_matter(rule: CheckRule, case: Case, change: Callable[[str], dict[str, str]]) -> None:
    """The same findings on the same lines, whatever they are called and wherever they stand."""
    source = case.bad or case.good
    assert isinstance(source, str)
    if change is renamed and case.name in BY_NAME:
        pytest.skip("the name is the evidence")
    if change is split and case.name in IN_ITS_FILE:
        pytest.skip("something else in its file is the evidence")
    if change is split and rule.code.startswith("TR2"):
        pytest.skip("the siblings in the file are the evidence")
    texts = change(source)
    before = sorted((f.code, line_of(source, f.span.line)) for f in findings(source, rule))
    after = sorted((f.code, line_of(files(texts)[f.span.path], f.span.line)) for f in findings(texts, rule))
    assert after == before


def line_of(text: str, line: int) -> str:
    """A line without the marks of renaming."""
    return re.sub(r"_zq\b|Zq\b", "", text.splitlines()[line - 1]).strip()
