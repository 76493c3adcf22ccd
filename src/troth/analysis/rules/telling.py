"""Knows how to turn an incident into a finding: its place, its words, its reasons and its fix."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.analysis.findings import Finding, Fix, Span
from troth.analysis.rules.standing import standing

if TYPE_CHECKING:
    from troth.analysis.facts.model import At
    from troth.analysis.findings import Confidence, Reason, Safety
    from troth.analysis.program import Program
    from troth.analysis.program.entities import Function
    from troth.analysis.program.sites import Incident

__all__ = ["await_fix", "call_text", "span", "tell", "tell_at"]

_LONGEST = 60
_STRING = re.compile(r"'[^']*'|\"[^\"]*\"")
_PARENTHESISED = 2  # edits: an `await` with its parentheses; more of them turn a generator into a list


def span(program: Program, function: Function, at: At) -> Span:
    """The place `at`, as people count."""
    return program.span(function.module.path, at)


def call_text(program: Program, incident: Incident) -> str:
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
    incident: Incident,
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
        _of_future(message) if site.promise == "future" else message,
        "certain" if incident.sure and site.sure else "likely",
        (*site.reasons, *incident.more),
        fix,
        site.function.qualname,
        site.callee,
    )


def _of_future(message: str) -> str:
    """A future runs by itself; what is lost is its result, and that anybody waits for it."""
    return message.replace("coroutine", "future").replace("never runs", "is not waited for")


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
    """The finding about the place `at` in `function`, where no promise is made."""
    where = span(program, function, at)
    confidence: Confidence = "certain" if sure else "likely"
    return Finding(code, name, where, message, confidence, reasons, fix, function.qualname, subject or function.name)


def await_fix(program: Program, incident: Incident, *, safety: Safety | None = None) -> Fix | None:
    """`await` put before the call, as the place asks for it; nothing where the place cannot await.

    Nothing either where the same variable is awaited further on: the call would be awaited twice.
    """
    site = incident.site
    here = standing(program, site.function.module.path, site.at)
    edits = here.awaited() if here is not None else None
    if here is None or edits is None or here.is_awaited_later:
        return None
    sure: Safety = safety or ("sure" if incident.sure and site.sure and len(edits) <= _PARENTHESISED else "likely")
    return Fix("await the call", sure, edits)
