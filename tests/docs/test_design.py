"""The design pages name modules and what is in them; both exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "design").glob("*.md"))
PATH = re.compile(r"`([\w./-]+(?:\.py|/))`")
# `Name` in `path.py`, or `Name` (`path.py`), also over the end of a line
NAMED = re.compile(r"`(?P<name>\w+)(?:\(\))?`(?:\s+in\s+|\s+of\s+`\w+`\s+\(|\s+\()`(?P<path>[\w./-]+\.py)`")


def file_of(path):
    return next((base / path for base in (ROOT / "src" / "troth", ROOT) if (base / path).exists()), None)


def defined(path):
    """The names of functions, classes, methods and variables that a module defines."""
    tree = ast.parse(path.read_text("utf-8"))
    names = {node.name for node in ast.walk(tree) if hasattr(node, "name") and isinstance(node.name, str)}
    return names | {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_modules_exist(page):
    """A page that names a module which has moved sends its reader nowhere."""
    assert [path for path in PATH.findall(page.read_text("utf-8")) if file_of(path) is None] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_are_in_their_modules(page):
    """What a page says is in a module is defined there."""
    pairs = [(match["name"], file_of(match["path"])) for match in NAMED.finditer(page.read_text("utf-8"))]
    assert [name for name, path in pairs if path is None or name not in defined(path)] == []


def test_names_are_looked_for():
    """Neither test above passes because it finds nothing."""
    text = (ROOT / "docs" / "design" / "life-of-an-awaitable.md").read_text("utf-8")
    assert len(NAMED.findall(text)) > 10
    assert len(PATH.findall(text)) > 10
