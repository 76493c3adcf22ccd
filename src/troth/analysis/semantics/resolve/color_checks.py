"""Find of what a function asks for the color: then a plain call of that is no accident."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from troth.analysis.semantics.resolve.project_files import ProjectFiles
    from troth.analysis.semantics.symbols import Function

__all__ = [
    "ASKS_FOR_FUNCTION",
    "asks_for_color",
    "asks_for_color_of",
    "asks_for_function",
    "asks_if_async",
    "speaks_of_color",
]

ASKS_FOR_FUNCTION = frozenset(
    {"iscoroutinefunction", "is_coroutine_function", "is_async_callable", "is_coroutine_callable"}
)
_OF_FUNCTIONS = ASKS_FOR_FUNCTION | {"isasyncgenfunction", "is_async"}
_OF_VALUES = frozenset(["isawaitable", "iscoroutine", "isasyncgen", "is_coroutine", "is_awaitable", "maybe_await"])
_QUESTIONS = _OF_FUNCTIONS | _OF_VALUES
_ASKED = re.compile(rf"\b({'|'.join(sorted(_QUESTIONS))})\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
# A word of the program's own that speaks of color: `is_async`, `needs_await`; not the keywords, and not `asyncio`.
_OF_COLOR = re.compile(r"(?i)\b(?!(?:async|await|asyncio|awaitable)\b)\w*(?:async|await|coro|sync)\w*")
_OWN = frozenset({"self", "cls"})


def asks_for_function(callee: str) -> bool:
    """Whether a call of that name asks if calling something would give a coroutine."""
    return callee.rpartition(".")[2] in ASKS_FOR_FUNCTION


def asks_for_color(callee: str) -> bool:
    """Whether a call of that name asks if something is async: `inspect.isawaitable`."""
    return callee.rpartition(".")[2] in _QUESTIONS


def asks_for_color_of(program: ProjectFiles, function: Function, text: str) -> bool:
    """Whether the function asks for the color of that callee, or of what it gives, as far as words can tell."""
    if not any(map(asks_for_color, function.facts.calls)):
        return False
    source = program.text(function.module.path).cut(*function.facts.at)
    words = _ASKED.findall(source)
    return not words or any(_is_about(how, subject.strip(), text, function) for how, subject in words)


def speaks_of_color(program: ProjectFiles, function: Function) -> bool:
    """Whether a function has words for color, such as a flag `is_async` by which it chooses whether to await."""
    return _OF_COLOR.search(program.text(function.module.path).cut(*function.facts.at)) is not None


def asks_if_async(program: ProjectFiles, function: Function, name: str) -> bool:
    """Whether the function asks if calling what `name` holds gives a coroutine, in so many words."""
    if not any(map(asks_for_function, function.facts.calls)):
        return False
    source = program.text(function.module.path).cut(*function.facts.at)
    return any(how in ASKS_FOR_FUNCTION and subject.strip() == name for how, subject in _ASKED.findall(source))


def _is_about(how: str, asked: str, text: str, function: Function) -> bool:
    first, *tail = text.split(".")
    root = f"{first}.{tail[0]}" if first in _OWN and tail else first
    if not re.fullmatch(r"[\w.]+", asked):
        words = set(re.findall(r"\w+", asked))
        return bool(words & {root.rpartition(".")[2], text.rpartition(".")[2]})
    if "." in asked:
        return asked.startswith(root) or asked.rpartition(".")[2] == text.rpartition(".")[2]
    if asked == root:
        return True
    origin = function.origins.get(asked)
    if origin is None:  # of a variable that is bound in several ways nobody can tell what it holds
        return how in _OF_VALUES and asked not in function.params
    return origin.removesuffix("()").rpartition(" ")[2] in {text, root}
