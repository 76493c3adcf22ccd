"""Code may be full of our own words: kinds of nodes, marks and names that our sources compare with. Nothing fails."""

import ast
import builtins
import io
import random
import tokenize
from collections.abc import Mapping
from functools import cache
from itertools import accumulate
from keyword import iskeyword
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.analysis.test_broken_files import programs

import troth.analysis
from troth.analysis.facts.nodes import KINDS
from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project
from troth.analysis.result import Analysis
from troth.analysis.rules import CheckRule, all_rules

SHAPES = sorted(kind for kind in KINDS if not iskeyword(kind))
EVERY_CASE = [case for rule in all_rules() for case in programs(rule)]
CALLED_SO = ("attr", "call", "compare", "index", "name")  # what people call something
EVERY_RULE = {rule.code for rule in all_rules()}


@cache
def our_words() -> list[str]:
    """Every word that stands in quotes somewhere in our own sources."""
    words: set[str] = set(SHAPES)
    for part in ("facts", "semantics", "rules"):
        for path in (Path(troth.analysis.__file__).parent / part).rglob("*.py"):
            constants = (
                node.value for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Constant)
            )
            words.update(word for word in constants if isinstance(word, str) and word.isidentifier())
    return sorted(word for word in words if not iskeyword(word))


def identifiers(text: str) -> list[str]:
    """The names, attributes, keywords, parameters and modules of a program."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sorted({t.string for t in tokens if t.type == tokenize.NAME and not iskeyword(t.string)})


def renamed(files: Mapping[str, bytes], names: Mapping[str, str]) -> dict[str, bytes]:
    """The program with other names, those of its files included."""
    changed: dict[str, bytes] = {}
    for path, data in files.items():
        inside = Path(path)
        home = "/".join([*(names.get(part, part) for part in inside.parts[:-1]), names.get(inside.stem, inside.stem)])
        changed[f"{home}{inside.suffix}"] = _with_names(data.decode(), names).encode()
    return changed


def _with_names(text: str, names: Mapping[str, str]) -> str:
    starts = list(accumulate((len(line) for line in text.splitlines(keepends=True)), initial=0))
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type == tokenize.NAME]
    for token in reversed(tokens):
        at = starts[token.start[0] - 1] + token.start[1]
        text = text[:at] + names.get(token.string, token.string) + text[at + len(token.string) :]
    return text


# Every place beside an expression that holds a name: imports, keywords, parameters, targets.
INSIDE = "import {0}, {0}.other as other; from {0} import {0}, other as {0}; {0}({0}={0}.{0}, **other)"
BELOW = """
@{0}({0}={0})
class Other({0}.{0}, {0}={0}):
    from {0} import {0}, other
    {0}: {0} = {0}.{0}({0}={0})
    async def {0}(self, {0}, /, other: {0} = {0}, *, {0}_: {0}.{0} = ()) -> {0}[{0}]:
        def inner():
            global {0}
            nonlocal other
            for {0} in other({0}=1): del {0}
            with other as {0}: {0}: {0} = [{0} for {0} in {0} if ({0} := other)]
            try: return lambda {0}, other={0}: {0}({0}={0})
            except {0} as {0}: raise {0}({0}={0})
        match {0}:
            case {0}({0}={0}): other
            case {{"{0}": {0}, **other}} if {0}: other
        return inner
"""


def surrounded(text: str, word: str) -> str:
    """The program with a word in each function, in each class and below it, in all places that hold names."""
    lines = text.splitlines()
    bodies = [
        node.body[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.body[0].lineno > node.lineno
    ]
    for first in sorted(bodies, key=lambda node: -node.lineno):
        line = min([first.lineno, *(decorator.lineno for decorator in getattr(first, "decorator_list", ()))])
        lines.insert(line - 1, " " * first.col_offset + INSIDE.format(word))
    return "\n".join([*lines, BELOW.format(word)])


def look_at(files: Mapping[str, bytes]) -> Analysis:
    """Under every rule; whatever fails, fails the test."""
    project = Project(Path("/nowhere"), tuple(sorted(files)))
    analysis = analyse(project, overlay=files, jobs=1, on_request=EVERY_RULE)
    assert not analysis.crashes
    return analysis


def test_renaming_is_exact() -> None:
    """The tests below would prove little if the programs came out otherwise."""
    for files in EVERY_CASE:
        assert renamed(files, {}) == files
    text = b"import a.b as c\ndef f(a, *, b=c):\n    return a.b(a=a,\n        c=b) + 'a'  # a\n"
    new = b"import call.b as c\ndef f(call, *, b=c):\n    return call.b(call=call,\n        c=b) + 'a'  # a\n"
    assert renamed({"a/b.py": text}, {"a": "call"}) == {"call/b.py": new}


def _surrounded(case: Mapping[str, bytes], word: str) -> dict[str, bytes]:
    return {path: surrounded(data.decode(), word).encode() for path, data in case.items()}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_program_is_full_of_a_shape(shape: str) -> None:
    """All cases of all rules as one project; one name of each is called so, or all that stands around it."""
    chance = random.Random(shape)
    files: dict[str, bytes] = {}
    for number, case in enumerate(EVERY_CASE[:: 4 if shape in CALLED_SO else 19]):
        names = [name for data in case.values() for name in identifiers(data.decode())]
        changed = _surrounded(case, shape) if number % 2 else renamed(case, {chance.choice(names): shape})
        files |= {f"p{number}/{path}": data for path, data in changed.items()}
    analysis = look_at(files)
    assert not analysis.unreadable
    assert any(finding.code.startswith("TR1") for finding in analysis.findings)


@st.composite
def case_in_our_words(draw: st.DrawFn) -> dict[str, bytes]:
    """A case of a rule, in which any names are replaced by words of ours, builtins and dunders too."""
    case = draw(st.sampled_from(EVERY_CASE))
    names = sorted({name for data in case.values() for name in identifiers(data.decode())})
    words = st.sampled_from(SHAPES) | st.sampled_from(our_words()) | st.sampled_from(dir(builtins)[-70:])
    if draw(st.booleans()):
        case = _surrounded(case, draw(words))
    return renamed(case, draw(st.dictionaries(st.sampled_from(names), words, min_size=1, max_size=6)))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(case_in_our_words())
def test_cases_in_our_words(files: dict[str, bytes]) -> None:
    """Attributes, keywords, modules, parameters: whatever they are called, there is an answer."""
    look_at(files)


@pytest.mark.soak
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(case_in_our_words())
def test_many_cases_in_our_words(files: dict[str, bytes]) -> None:
    """The same for a long time."""
    look_at(files)


@pytest.mark.soak
@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_every_name_of_every_case_is_called_like_a_shape(rule: CheckRule) -> None:
    """One after the other."""
    for case in programs(rule):
        for name in {name for data in case.values() for name in identifiers(data.decode())}:
            for shape in CALLED_SO:
                look_at(renamed(case, {name: shape}))
                look_at(renamed(_surrounded(case, shape), {name: shape}))
