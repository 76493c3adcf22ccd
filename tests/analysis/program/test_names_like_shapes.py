"""Variables may be called like the shapes in which expressions are kept: nothing fails, and the lost call is found."""

from pathlib import Path

import pytest

from troth.analysis.run import analyse
from troth.analysis.source.project import Project

SHAPES = ("name", "attr", "call", "const", "index", "list", "tuple", "set", "dict", "ifexp", "compare", "binop", "comp")
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
    assert [f.span.line for f in found if f.code == "T102"] == [5]
