"""Programs that nobody would write, made by a machine from Python's own grammar, do not make the analysis fail."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project

hypothesmith = pytest.importorskip("hypothesmith")

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

# Pieces that are about promises; a program is made of them in any order and nesting.
PIECES = [
    "{v} = {f}()",
    "{f}()",
    "await {v}",
    "{v} = await {f}()",
    "return {v}",
    "return {f}()",
    "print({v}, f'{{{v}}}')",
    "self.{v} = {v}",
    "{v}.append({f}())",
    "{v}['{v}'] = {f}",
    "{v}, {w} = {w}, {v}",
    "{v} = [{f}() for {w} in {v} if {f}()]",
    "yield {v}",
    "raise {v}",
    "{v} = lambda {w}=None: {f}({w})",
    "del {v}",
    "global {v}",
    "asyncio.gather(*{v})",
    "{v} = {w} or {f}() if {v} else {f}",
    "match {v}:\n    case {{'{w}': {v}}}: {f}()",
]
BLOCKS = [
    "if {v}:",
    "while {f}():",
    "for {v} in {f}():",
    "async for {v} in {f}():",
    "with {f}() as {v}:",
    "async with {f}() as {v}:",
    "try:",
    "async def {f}({v}):",
    "def {f}({v}, *{w}):",
    "class {c}({c}, {d}):",
    "@{f}\nasync def {g}(self, {v}: {c} = {f}()):",
]
words = {
    "v": ("a", "b", "self"),
    "w": ("a", "c"),
    "f": ("f", "g", "a.f", "self.g"),
    "g": ("f", "g"),
    "c": "CD",
    "d": "CD",
}


@st.composite
def program(draw: st.DrawFn, depth: int = 0) -> str:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        filled = {name: draw(st.sampled_from(choice)) for name, choice in words.items()}
        if depth < 3 and draw(st.booleans()):
            head = draw(st.sampled_from(BLOCKS)).format(**filled)
            inside = draw(program(depth=depth + 1)).replace("\n", "\n    ")
            lines += [head, f"    {inside}"]
            if head == "try:":
                lines += ["except Exception:", "    pass"]
        else:
            lines.append(draw(st.sampled_from(PIECES)).format(**filled))
    return "\n".join(lines)


def look_at(text: str) -> None:
    """Whatever it is, there is an answer; one that cannot be compiled is told as such."""
    for finding in analyse(
        Project(Path("/nowhere"), ("a.py",)), overlay={"a.py": text.encode("utf-8", "replace")}
    ).findings:
        assert finding.message
        assert finding.span.line >= 1


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(program())
def test_programs_about_promises(text: str) -> None:
    """Promises made, kept, lost and named after each other in every order."""
    look_at(text)


@settings(max_examples=15, deadline=None, suppress_health_check=SLOW)
@given(hypothesmith.from_grammar() | hypothesmith.from_node())
def test_programs_of_the_grammar(text: str) -> None:
    """Anything that Python's grammar allows."""
    look_at(text)


@pytest.mark.soak
@settings(max_examples=3000, deadline=None, suppress_health_check=SLOW)
@given(program())
def test_many_programs_about_promises(text: str) -> None:
    """The same for a long time."""
    look_at(text)


@pytest.mark.soak
@settings(max_examples=600, deadline=None, suppress_health_check=SLOW)
@given(hypothesmith.from_grammar() | hypothesmith.from_node())
def test_many_programs_of_the_grammar(text: str) -> None:
    """The same for a long time."""
    look_at(text)
