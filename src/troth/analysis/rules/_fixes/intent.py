"""Read from the words around a call whether somebody meant it to be awaited where it stands."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from troth.analysis.rules._syntax_position import Standing

__all__ = ["is_about_blocking", "is_for_later", "is_meant_to_be_dropped"]

_COMMENT = re.compile(r"#[^\n]*")
_NOT_AWAITED = re.compile(
    r"(?i)\b(?:not|n't|never|without|no|skip|avoid)\b[^.;]{0,40}\bawait|\bfire[- ]and[- ]forget\b|\bin (?:the )?background\b"
)
_LATER = re.compile(r"(?i)(task|coro|future|awaitable|promise)")
_BLOCKS = re.compile(r"(?i)block|stall|freez|hang|starv")
_PUTTING = frozenset({"append", "add", "insert", "appendleft", "put", "put_nowait"})


def is_meant_to_be_dropped(here: Standing) -> bool:
    """Whether a comment on the lines of the statement, or right above it, says that nobody is to wait for the call."""
    start, end = here.offsets(here.statement)
    text = here.text
    begin = text.rfind("\n", 0, start) + 1
    while begin > 0:
        above = text.rfind("\n", 0, begin - 1) + 1
        if not text[above : begin - 1].strip().startswith("#"):
            break
        begin = above
    stop = text.find("\n", end)
    lines = text[begin : len(text) if stop < 0 else stop]
    return any(_NOT_AWAITED.search(comment[0]) for comment in _COMMENT.finditer(lines))


def is_for_later(here: Standing, callee: str) -> bool:
    """Whether a variable takes it that is named for what is awaited later, or is put into a container.

    `task = send()` says that the result is a task to be; `task = load_task()` says what kind of thing is loaded.
    """
    statement = here.statement
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    if not isinstance(target, ast.Name) or getattr(statement, "value", None) is not here.node:
        return False
    word = _LATER.search(target.id)
    if word is not None and word[1].lower() not in callee.lower():
        return True
    around = here.function
    return around is not None and any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _PUTTING
        and isinstance(node.func.value, ast.Name)
        and _LATER.search(node.func.value.id) is not None
        and any(isinstance(arg, ast.Name) and arg.id == target.id for arg in node.args)
        for node in ast.walk(around)
    )


def is_about_blocking(here: Standing) -> bool:
    """Whether a function or class around it is named after a loop that is held up: there, blocking is the point."""
    names = (
        enclosing.name
        for enclosing in here.around
        if isinstance(enclosing, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    )
    return any(_BLOCKS.search(name) for name in names)
