"""Turn an incident into a finding: its place, its words, its reasons and its fix."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.analysis.findings import Finding, Fix, Span
from troth.analysis.rules._fixes.await_each import is_mapped, with_each_awaited
from troth.analysis.rules._fixes.intent import is_for_later, is_meant_to_be_dropped
from troth.analysis.rules._fixes.move_await import await_moved
from troth.analysis.rules._places_of_use import reasons_of_use
from troth.analysis.rules._syntax_position import standing
from troth.analysis.semantics.queries.call_target import is_unchanged
from troth.analysis.semantics.resolve.library import LibraryClass, LibraryFunction
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import Builtin, FunctionValue, Instance, Nothing, Table, TupleOf, members_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.analysis.facts.model import At
    from troth.analysis.findings import Confidence, Reason, Safety
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.incident import LossIncident

__all__ = ["await_fix", "call_text", "span", "tell", "tell_at"]

_LONGEST = 60
_STRING = re.compile(r"'[^']*'|\"[^\"]*\"")
_OF_GENERATORS = frozenset({"dropped generator", "awaited generator", "plain for"})  # whose rules say what to do
_ENTERED = {"async with": "__aenter__", "async iteration": "__aiter__"}
_ITERATED = "loop over it with `async for`, or collect what it yields: `[item async for item in …]`"
_PARENTHESISED = 2  # edits: an `await` with its parentheses; more of them turn a generator into a list


def span(program: Program, function: Function, at: At) -> Span:
    """The place `at`, as people count."""
    return program.span(function.module.path, at)


def call_text(program: Program, incident: LossIncident) -> str:
    """The call as it is written, shortened to one line."""
    site = incident.site
    text = " ".join(program.text(site.function.module.path).cut(*site.at).split())
    return text if len(text) <= _LONGEST else _shortened(text)


def _shortened(text: str) -> str:
    """A long call without its arguments; `loop().create_task(work(…))` is a call of `create_task`, not of `loop`."""
    head = text[: _opening(text)].rstrip()
    return f"{head}(…)" if len(head) < _LONGEST else f"…{head[-_LONGEST:].lstrip()}(…)"


def _opening(text: str) -> int:
    """Where the parenthesis opens that the end of `text` closes."""
    bare = _STRING.sub(lambda found: "_" * len(found[0]), text)
    depth = 0
    for index in range(len(bare) - 1, 0, -1):
        depth += (bare[index] == ")") - (bare[index] == "(")
        if depth == 0:
            return index
    return text.find("(")


def tell(
    program: Program,
    code: str,
    name: str,
    incident: LossIncident,
    message: str,
    *,
    fix: Fix | None = None,
    at: At | None = None,
) -> Finding:
    """The finding about `incident`."""
    site = incident.site
    return Finding(
        code,
        name,
        span(program, site.function, at or incident.at),
        _in_words_of(site.awaitable, message),
        "certain" if incident.sure and site.sure else "likely",
        (*site.reasons, *incident.more, *reasons_of_use(program, incident)),
        fix,
        site.function.qualname,
        site.callee,
        is_resolved=is_unchanged(program, site.target),
        repair=_ITERATED if site.awaitable == "generator" and incident.kind not in _OF_GENERATORS else "",
    )


# Rules speak of a coroutine; what another awaitable is called, and what becomes of it. The first that fits counts.
_WORDS: Mapping[str, tuple[tuple[str, str], ...]] = {
    # An async generator is no coroutine: it cannot be awaited.
    "generator": (
        ("a coroutine object", "an async generator"),
        ("a coroutine", "an async generator"),
        ("coroutine", "async generator"),
        ("before it is awaited", "before anything loops over it"),
    ),
    # A future runs by itself; what is lost is its result, and that anybody waits for it.
    "future": (("coroutine", "future"), ("never runs", "is not waited for")),
}


def _in_words_of(awaitable: str, message: str) -> str:
    """A message about another awaitable than a coroutine. The user's own names, in backticks, stay as they are."""
    parts = message.split("`")
    for index in range(0, len(parts), 2):
        for word, other in _WORDS.get(awaitable, ()):
            parts[index] = parts[index].replace(word, other)
    return "`".join(parts)


def tell_at(
    program: Program,
    code: str,
    name: str,
    function: Function,
    at: At,
    message: str,
    *,
    sure: bool,
    reasons: tuple[Reason, ...],
    fix: Fix | None = None,
    subject: str = "",
) -> Finding:
    """The finding about the place `at` in `function`, where no awaitable is made."""
    where = span(program, function, at)
    confidence: Confidence = "certain" if sure else "likely"
    return Finding(code, name, where, message, confidence, reasons, fix, function.qualname, subject or function.name)


def await_fix(program: Program, incident: LossIncident, *, safety: Safety | None = None) -> Fix | None:
    """`await` put before the call, as the place asks for it; nothing where the place cannot await.

    Nothing either where what holds the coroutine is awaited further on, because it would be awaited twice, and none for
    a generator, which nobody can await. `safety` is how sure it is at most.
    """
    site = incident.site
    if site.awaitable not in {"coroutine", "future"} or _is_async_generator(site.target):
        return None
    position = standing(program, site.function.module.path, site.at, within=site.function)
    if position is None or position.is_awaited_later:
        return None
    if is_mapped(position):
        edits = with_each_awaited(position)
        return None if edits is None else Fix("await each of the calls", "likely", edits)
    moved = await_moved(program, position, site.target)
    edits = moved.edits if moved is not None else position.awaited()
    if edits is None:
        return None
    is_resolved = is_unchanged(program, site.target)
    is_clear = incident.sure and site.sure and len(edits) <= _PARENTHESISED and not position.is_collected
    if incident.kind in _ENTERED:
        enters = _can_enter(program, incident)
        if enters is False:
            return None  # what the call gives cannot be entered either: another call was meant
        is_clear = is_clear and enters is True
    sure: Safety = "sure" if is_clear and (moved is None or moved.is_sure) else "likely"
    if (
        site.is_guess
        or (moved is not None and moved.is_guess)
        or is_meant_to_be_dropped(position)
        or is_for_later(position, site.target_name)
    ):
        sure = "guess"
    elif safety is not None and sure == "sure":
        sure = safety
    return Fix("await the call", sure, edits, is_resolved)


def _can_enter(program: Program, incident: LossIncident) -> bool | None:
    """Whether what the awaited call gives can be entered, or looped over, as the statement does; None: nobody can tell.

    Of a class of a library only the async methods are known, and an `__aenter__` would be among them: a response of
    httpx has none, though that of aiohttp has.
    """
    target = incident.site.target
    if not isinstance(target, Function | LibraryFunction):
        return None  # what is annotated as awaitable, or comes out of a decorator, may be entered as well
    dunder = _ENTERED[incident.kind]
    answers = set[bool | None]()
    for member in members_of(program.calls.result(FunctionValue(target))):
        if isinstance(member, Instance):
            answer = program.classes.has(member.cls, dunder)
            answers.add(False if answer is None and isinstance(member.cls, LibraryClass) else answer)
        elif isinstance(member, Nothing):
            answers.add(False)
        elif isinstance(member, Builtin | Table | TupleOf):
            answers.add(False if incident.kind == "async with" else None)  # a plain loop is what a list is for
        else:
            answers.add(None)
    if answers == {False}:
        return False
    if not answers or None in answers:
        return False if isinstance(target, LibraryFunction) and incident.kind == "async with" else None
    return answers == {True}


def _is_async_generator(target: object) -> bool:
    return isinstance(target, Function) and target.is_async and target.is_generator
