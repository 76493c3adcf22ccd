"""Every rule is held to its own cases: what it finds, what its fix makes of it, and what it leaves alone."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from troth.analysis.findings import Finding
from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project
from troth.analysis.rules import Case, CheckRule, all_rules

CASES = [pytest.param(rule, case, id=f"{rule.code}-{case.name}") for rule in all_rules() for case in rule.cases]


def files(sources: str | Mapping[str, str]) -> dict[str, str]:
    return {"case.py": sources} if isinstance(sources, str) else dict(sources)


def findings(sources: str | Mapping[str, str], asked: CheckRule | None = None) -> list[Finding]:
    """What is found with the rules that are on by default, and the one that is asked for."""
    texts = {path: text.encode() for path, text in files(sources).items()}
    project = Project(Path("/nowhere"), tuple(sorted(texts)))
    return list(analyse(project, overlay=texts, on_request={asked.code} if asked else ()).findings)


@pytest.mark.parametrize(("rule", "case"), CASES)
def test_case(rule: CheckRule, case: Case) -> None:
    """The bad source has one finding, or one on each marked line; the fix makes the fixed source; the good is silent."""
    if case.bad is not None:
        found = findings(case.bad, rule)
        marks = sum(line.endswith("# here") for text in files(case.bad).values() for line in text.splitlines())
        assert [f.code for f in found] == [rule.code] * max(marks, 1)
        assert len({(f.span.path, f.span.line) for f in found}) == len(found)
        finding = found[0]
        for one in found if marks else ():
            line = files(case.bad)[one.span.path].splitlines()[one.span.line - 1]
            assert line.endswith("# here"), line
        assert finding.message
        assert finding.reasons
        assert finding.rule == rule.name
        if case.fixed is not None:
            assert finding.fix is not None
            texts = files(case.bad)
            for edit in sorted(finding.fix.edits, reverse=True):
                text = texts[edit.path]
                texts[edit.path] = text[: edit.start] + edit.text + text[edit.end :]
            assert texts == files(case.fixed)
            assert not findings(texts, rule)
    if case.good is not None:
        assert not findings(case.good, rule)


# Cases in which a library awaits or makes the coroutine, or `__aiter__` says async without the word: that stays when the
# case's own `async` is gone.
OF_A_LIBRARY = {
    ("TR401", "an attribute that holds something else than its annotation says"),
    ("TR102", "put into a dict by a loop, whose values are gathered"),
    ("TR602", "under a condition in a function that knows the other sleep: it may hold up everything on purpose"),
    ("TR106", "a response that nobody can enter"),
    ("TR101", "a plain call where awaiting it raised TypeError, because another version is plain"),
    ("TR101", "a session of a maker that is told its class"),
    ("TR401", "decorated into async"),
    ("TR404", "beside the hooks, called by the class itself"),
    ("TR401", "a collection of tasks"),
    ("TR401", "a sync method of an async session"),
    ("TR401", "an async method of an async session"),
    ("TR401", "a response that is there already"),
    ("TR401", "a response that is read as it comes"),
    ("TR402", "given back by the thread, and run then"),
    ("TR402", "given back by the thread, and dropped"),
    ("TR101", "a class of a library that is called like a function"),
    ("TR101", "what a stack of contexts enters"),
    ("TR110", "a context that was to be awaited"),
    ("TR110", "a context that is entered later"),
    ("TR116", "an object"),
    ("TR116", "an answer that is streamed"),
    ("TR116", "an answer that is perhaps streamed"),
    ("TR114", "a context nobody enters"),
    ("TR402", "context managers of both colors"),
    ("TR403", "an async context manager"),
    ("TR403", "a context manager of either color"),
    ("TR403", "under a time limit"),
    ("TR404", "a hook that is awaited"),
    ("TR405", "a plain `__anext__`"),
    ("TR415", "a context manager"),
    ("TR417", "an async function"),
    ("TR501", "the color of it"),
    ("TR604", "the loop of a thread"),
}


@pytest.mark.parametrize(("rule", "case"), CASES)
def test_without_async_nothing_remains(rule: CheckRule, case: Case) -> None:
    """Strip `async` and `await` from a case whose coroutines are all its own: what is still found is a false alarm."""
    source = case.bad if case.bad is not None else case.good
    assert source is not None
    if rule.family == 9:
        pytest.skip("it is about the library, whatever its caller is")
    if rule.code in {"TR117", "TR411", "TR412"}:
        pytest.skip("`__aenter__`, or `AsyncMock`, says async without the word")
    if (rule.code, case.name) in OF_A_LIBRARY:
        pytest.skip("the coroutine, or the one who awaits, is a library's")
    if any(word in str(source) for word in ("Awaitable[", "Coroutine[")):
        pytest.skip("an annotation says that something is awaitable without the word")
    texts = {path: text.replace("async ", "").replace("await ", "") for path, text in files(source).items()}
    # Tasks and contexts of a library stay what they are.
    left = [f for f in findings(texts, rule) if f.code not in {"TR112", "TR117", "TR001"}]
    advice = (
        f"If a library makes the coroutine or awaits it, name the case in OF_A_LIBRARY: {(rule.code, case.name)!r}."
    )
    assert not left, f"{case.name}: found without `async` and `await`. {advice}"


def test_codes_and_names_are_unique() -> None:
    """A code and a name mean one rule."""
    rules = all_rules()
    assert len({r.code for r in rules}) == len({r.name for r in rules}) == len(rules)
