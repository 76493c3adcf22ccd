"""Where an `await` stands before the wrong part of a chain: `await load(x)[0]` as `(await load(x))[0]`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.facts.names import callee_text
from troth.analysis.findings import Edit
from troth.analysis.semantics.infer.never_awaitable import gives_no_awaitable
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import ClassObject

if TYPE_CHECKING:
    from troth.analysis.rules._syntax_position import Standing
    from troth.analysis.semantics import Program

__all__ = ["await_moved"]

_AWAIT = re.compile(r"await\s+")
_MODELS = frozenset({"pydantic", "BaseModel"})


class MovedChain(NamedTuple):
    """How the chain around a call is written once the call is awaited, and whether all of it is known."""

    edits: tuple[Edit, ...] | None
    is_sure: bool
    is_guess: bool = False  # nobody knows whether the method that is called on the result is async, too


def await_moved(program: Program, here: Standing, target: object) -> MovedChain | None:
    """What becomes of an `await` that stands before a chain which begins with the call; None where none does.

    What is subscripted, or asked for an attribute, is not awaited in turn: the `await` moves to the call. A method that is
    called on the result keeps it, unless it is known to be plain; of one that nobody knows that is a guess.
    """
    links: list[ast.AST] = [here.node]
    for outer in here.around:
        begins = outer.func if isinstance(outer, ast.Call) else getattr(outer, "value", None)
        if not isinstance(outer, ast.Attribute | ast.Subscript | ast.Call) or begins is not links[-1]:
            break
        links.append(outer)
    awaited = here.around[len(links) - 1]
    if len(links) == 1 or not isinstance(awaited, ast.Await):
        return None
    if any(isinstance(link, ast.Call) for link in links[1:]) and not _is_of_plain_library(program, target, links):
        method = _method(program, target, links)
        if method is None or method.is_async:
            return MovedChain(here.awaited(), method is not None, is_guess=method is None)
        if not gives_no_awaitable(program, method):
            return MovedChain(here.awaited(), is_sure=False)
    start, _ = here.offsets(awaited)
    if here.awaited() is None or _AWAIT.fullmatch(here.text[start : here.start]) is None:
        return MovedChain(None, is_sure=False)
    edits = (Edit(here.path, start, here.start, "(await "), Edit(here.path, here.end, here.end, ")"))
    return MovedChain(edits, is_sure=False)  # an `await` goes from where it stood


def _given(program: Program, target: object) -> Class | None:
    """The class of what `f()` gives, where `f` says it."""
    if not isinstance(target, Function) or target.facts.returns is None:
        return None
    declared = program.static(target.module, target.parent).value(target.facts.returns)
    return declared.cls if isinstance(declared, ClassObject) and isinstance(declared.cls, Class) else None


def _is_of_plain_library(program: Program, target: object, links: list[ast.AST]) -> bool:
    """Whether `f().method()` calls what a model has from pydantic, which has nothing async: `model_dump`."""
    result_class = _given(program, target)
    _, attribute, call, *remaining = [*links, None]
    if (
        result_class is None
        or remaining != [None]
        or not isinstance(attribute, ast.Attribute)
        or not isinstance(call, ast.Call)
    ):
        return False
    order = program.classes.order(result_class)
    own = [cls for cls in order if isinstance(cls, Class)]
    ancestors = [cls.qualified.partition(".")[0] for cls in order if cls is not None and not isinstance(cls, Class)]
    if None in order:
        ancestors += [callee_text(base).rpartition(".")[2] for cls in own for base in cls.facts.bases]
    names = {*_MODELS, *(cls.name for cls in own)}
    return (
        not any(attribute.attr in cls.methods for cls in own)
        and any(name in _MODELS for name in ancestors)
        and all(name in names or name in {"builtins", "typing", "abc"} for name in ancestors)
    )


def _method(program: Program, target: object, links: list[ast.AST]) -> Function | None:
    """The method that `f().method()` calls, where `f` says what it gives."""
    _, attribute, call, *remaining = [*links, None]
    result_class = _given(program, target)
    if result_class is None or remaining != [None]:
        return None
    if not isinstance(attribute, ast.Attribute) or not isinstance(call, ast.Call):
        return None
    for cls in program.classes.order(result_class):
        if not isinstance(cls, Class):
            return None
        if attribute.attr in cls.methods:
            method = cls.module.function(cls.methods[attribute.attr][-1])
            return method if not method.facts.decorators and not method.is_generator else None
    return None
