"""What the last walk met that rules tell of, and what speaks for each being meant so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.analysis.facts.model import body_of, speaks_of
from troth.analysis.semantics.incident import Incident, Site
from troth.analysis.semantics.infer.never_awaitable import mentions_awaitable, never_awaitable
from troth.analysis.semantics.values import Awaitable, Coroutine
from troth.analysis.semantics.walk.attribute_uses import collect_uses
from troth.analysis.semantics.walk.coroutine_sinks import looks_like_keeper

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.semantics.program import Program
    from troth.analysis.semantics.symbols import Class, Function

__all__ = [
    "incidents_by_siblings",
    "incidents_of",
    "lost_by_decorators",
    "returned_on_purpose",
    "stored_incidents",
]

_AWAITABLES = ("Awaitable", "Coro", "Future", "Task")  # and `Coro`, as many call the type for themselves


def incidents_of(program: Program, *kinds: str) -> Iterator[Incident]:
    """The incidents of these kinds."""
    for incident in program.incidents():
        if (
            incident.kind in kinds
            and not incident.site.by_siblings
            and not _is_of_several_classes(program, incident.site)
        ):
            yield incident


def _is_of_several_classes(program: Program, site: Site) -> bool:
    """Whether a plain function calls an attribute whose class the file asks for: `isinstance(self.stack, …)`.

    One of its classes is the plain one, which a function that cannot await is more likely to mean.
    """
    receiver = site.callee.rpartition(".")[0]
    if site.function.is_async or not receiver.startswith("self."):
        return False
    text = program.text(site.function.module.path).value
    return re.search(rf"\bisinstance\(\s*{re.escape(receiver)}\s*,", text) is not None


def incidents_by_siblings(program: Program) -> Iterator[Incident]:
    """The incidents of which only other sites of the same callee speak."""
    for incident in program.incidents():
        if incident.site.by_siblings:
            yield incident


def lost_by_decorators(program: Program) -> Iterator[tuple[Function, Function]]:
    """The async functions of the last walk whose decorator drops their coroutine, with that decorator."""
    for path in program.walked_files:
        module = program.module(path)
        for index, f in enumerate(module.facts.functions):
            if not f.decorators or f.flags & 3 != 1:
                continue
            function = module.function(index)
            decorator = program.effects.dropped_by(function)
            if decorator is not None:
                yield function, decorator


def returned_on_purpose(program: Program, incident: Incident) -> str:
    """Whether an async function means to return a coroutine: "on purpose", "perhaps", or "" for surely not."""
    function = incident.site.function
    returns = function.facts.returns
    if incident.site.is_query:
        return ""  # told of only where the annotation says otherwise
    if returns is not None:
        declared = program.types.annotated(returns, function.module, function.parent, function.owner)
        if never_awaitable(declared, program):
            return ""
        if isinstance(declared, Coroutine | Awaitable) or mentions_awaitable(returns, _AWAITABLES):
            return "on purpose"
    is_open = returns == ("name", "Any") and incident.site.target is None and not incident.site.is_firm
    if is_open or function.name in program.counts.awaited_twice:
        return "on purpose"
    if program.summary(function).returned_result:
        return ""
    return "perhaps"


def stored_incidents(program: Program) -> Iterator[Incident]:
    """Coroutines set as attributes that the class never awaits nor gives away."""
    for function in sorted(program.walked, key=lambda f: (f.module.path, f.index)):
        for target, value in program.summary(function).stored:
            if isinstance(value, Coroutine) and value.site is not None and not value.site.is_quiet:
                owner = function.class_around
                if owner is None:
                    continue
                proven = never_awaitable(program.classes.declared(owner, target[2]), program)
                if proven or _is_lost(program, owner, target[2], in_async=function.is_async):
                    yield Incident("stored", value.site, value.site.at, "", f"self.{target[2]}", sure=proven)


def _is_lost(program: Program, cls: Class, name: str, *, in_async: bool) -> bool:
    uses: set[str] = set()
    for module in {c.module for c in (cls, *program.classes.children(cls))}:
        for f in module.facts.functions:
            if speaks_of(f, (name,)):
                collect_uses(body_of(f), name, uses)
    if "awaited" in uses:
        return False
    # Whoever can await and does not, and wants the promise, names it so.
    return "misused" in uses or not uses - {"assigned", "given"} or (in_async and not looks_like_keeper(name))
