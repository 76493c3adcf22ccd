"""Anything may be called like the shapes in which expressions are kept: nothing fails, and the lost call is found."""

from keyword import iskeyword
from pathlib import Path

import pytest

from troth.analysis.facts.nodes import KINDS
from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project
from troth.analysis.rules import all_rules

SHAPES = sorted(kind for kind in KINDS if not iskeyword(kind))
TEXT = """\
import {0}
async def work(cb): ...
def plain(): ...
async def main(x):
    job = work(x)  # lost
    def inner(y):
        nonlocal x
        global {0}
        match y:
            case {{"a": {0}, **rest}}:
                return plain({0})
            case [{0}, *rest] if {0}:
                return lambda {0}: {0}
            case {0}:
                return {0}
    return inner
"""


@pytest.mark.parametrize("shape", SHAPES)
def test_name_like_a_shape(shape: str) -> None:
    """A variable, a parameter, a global and what a `match` takes out may all be called `attr` or `name`."""
    text = TEXT.format(shape)
    found = analyse(Project(Path("/nowhere"), ("a.py",)), overlay={"a.py": text.encode()}).findings
    assert [f.span.line for f in found if f.code == "TR102"] == [5]


STORED = """\
import asyncio, {0}
from {0} import {0} as other
async def load(): ...
class Box:
    from {0} import {0}
    import {0}.{0}
    {0}: {0} = {0}({0}={0})
    def start(self, {0}=None, *, other: {0}.{0} = ()):
        import {0} as {0}
        from {0} import ({0}, other)
        self.{0} = load()  # lost
        return lambda {0}, other=1: other({0}={0}, **other)
    def show(self):
        return self.{0} + 1
@{0}({0}={0}.{0})
class Row:
    {0} = {0}.{0}()
print(Row(1).{0})
"""


@pytest.mark.parametrize("shape", SHAPES)
def test_stored_under_a_name_like_a_shape(shape: str) -> None:
    """Who reads an attribute is looked for in all that the module says: imports, keywords and parameters too."""
    overlay = {"a.py": STORED.format(shape).encode()}
    project = Project(Path("/nowhere"), tuple(overlay))
    found = analyse(project, overlay=overlay, on_request={rule.code for rule in all_rules()}).findings
    assert [(f.code, f.span.line) for f in found] == [("TR110", 11)]
