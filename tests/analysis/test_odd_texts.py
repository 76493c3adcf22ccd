"""What a file begins with, and what else stands in it, does not matter to a finding: a byte order mark, newer syntax."""

import sys
from pathlib import Path

import pytest
from tests.analysis.rules.test_cases import files, findings

from troth.analysis.facts import other_interpreter
from troth.analysis.rules import CheckRule, all_rules

MARK = "\ufeff"
NEWER = "\n\ntype NewerThanThis = int\n"


def said(sources: dict[str, str], rule: CheckRule) -> list[tuple[str, str, int]]:
    return sorted((f.code, f.span.path, f.span.line) for f in findings(sources, rule))


def bad_cases(rule: CheckRule) -> list[dict[str, str]]:
    return [files(case.bad) for case in rule.cases if case.bad is not None]


def python_only(sources: dict[str, str]) -> bool:
    return all(path.endswith(".py") for path in sources)


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_a_byte_order_mark_changes_nothing(rule: CheckRule) -> None:
    """Windows editors put one before the first line; Python reads over it, and so does every rule."""
    for sources in filter(python_only, bad_cases(rule)):
        marked = {path: MARK + text for path, text in sources.items()}
        assert said(marked, rule) == said(sources, rule)


@pytest.fixture(scope="module")
def read_by_another() -> dict[bytes, other_interpreter.FileFacts | other_interpreter.Problem]:
    """All cases with a line of newer syntax, read by the newer interpreter in one go."""
    python = other_interpreter.newest_python()
    if python is None or sys.version_info >= (3, 12):
        pytest.skip("no newer interpreter, or none is needed")
    texts = {(text + NEWER).encode() for rule in all_rules() for case in bad_cases(rule) for text in case.values()}
    numbered = {f"{number}.py": text for number, text in enumerate(sorted(texts))}
    read = other_interpreter.read_with(python, numbered)
    return {text: read[path] for path, text in numbered.items()}


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_newer_syntax_beside_changes_nothing(
    rule: CheckRule,
    read_by_another: dict[bytes, other_interpreter.FileFacts | other_interpreter.Problem],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rule that looks at the syntax of a file may find that only another interpreter could read it."""

    def read_with(
        _python: Path, texts: dict[str, bytes]
    ) -> dict[str, other_interpreter.FileFacts | other_interpreter.Problem]:
        return {path: read_by_another[data] for path, data in texts.items()}

    if rule.code.startswith("TR9"):
        pytest.skip("a migration rewrites what stands in the syntax tree, which this interpreter cannot make")
    monkeypatch.setattr(other_interpreter, "read_with", read_with)
    for sources in filter(python_only, bad_cases(rule)):
        changed = {path: text + NEWER for path, text in sources.items()}
        assert said(changed, rule) == said(sources, rule)
