"""What the last walk met that rules tell of, and what speaks for each being meant so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import ATTR_BASE, ATTR_NAME, CALL_ARGS, CALL_FUNC, KIND, WITH_ITEMS
from troth.analysis.facts.model import body_of, speaks_of
from troth.analysis.facts.names import callee_text, last_name
from troth.analysis.facts.nodes import walk
from troth.analysis.semantics.incident import LossIncident, Site
from troth.analysis.semantics.infer.never_awaitable import mentions_awaitable, never_awaitable
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import Awaitable, AwaitableContext, AwaitableObject, Coroutine, Instance, Value
from troth.analysis.semantics.walk.attribute_uses import collect_uses
from troth.analysis.semantics.walk.coroutine_sinks import looks_like_keeper

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.incident import IncidentKind
    from troth.analysis.semantics.walk.walking import Walking

__all__ = [
    "incidents_by_siblings",
    "incidents_of",
    "lost_by_decorators",
    "returned_on_purpose",
    "stored_incidents",
]

_AWAITABLES = ("Awaitable", "Coro", "Future", "Task")  # and `Coro`, as many call the type for themselves


def incidents_of(program: Walking, *kinds: IncidentKind) -> Iterator[LossIncident]:
    """The incidents of these kinds."""
    for incident in program.incidents():
        if (
            incident.kind in kinds
            and not incident.site.by_siblings
            and not _is_of_several_classes(program, incident.site)
        ):
            yield incident


def _is_of_several_classes(program: Walking, site: Site) -> bool:
    """Whether a sync function calls an attribute whose class the file asks for: `isinstance(self.stack, …)`.

    One of its classes is the sync one, which a function that cannot await is more likely to mean.
    """
    receiver = site.callee.rpartition(".")[0]
    if site.function.is_async or not receiver.startswith("self."):
        return False
    text = program.text(site.function.module.path).value
    return re.search(rf"\bisinstance\(\s*{re.escape(receiver)}\s*,", text) is not None


def incidents_by_siblings(program: Walking) -> Iterator[LossIncident]:
    """The incidents of which only other sites of the same callee speak."""
    for incident in program.incidents():
        if incident.site.by_siblings:
            yield incident


def lost_by_decorators(program: Walking) -> Iterator[tuple[Function, Function]]:
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


def returned_on_purpose(program: Walking, incident: LossIncident) -> str:
    """Whether an async function means to return a coroutine: "on purpose", "perhaps", or "" for surely not."""
    function = incident.site.function
    returns = function.facts.returns
    if incident.site.is_query:
        return ""  # told of only where the annotation says otherwise
    if incident.site.sure and incident.site.callee == f"super().{function.name}":
        return ""  # who calls the override gets what the base's method promises, once awaited
    if returns is not None:
        declared = program.types.annotated(returns, function.module, function.parent, function.owner)
        if never_awaitable(declared, program):
            return ""
        if _is_result_of(program, incident.site, declared):
            return ""
        if isinstance(declared, Coroutine | Awaitable) or mentions_awaitable(returns, _AWAITABLES):
            return "on purpose"
    is_open = returns == ("name", "Any") and incident.site.target is None and not incident.site.is_firm
    if is_open or function.name in program.counts.awaited_twice:
        return "on purpose"
    if program.summary(function).returned_result:
        return ""
    return "perhaps"


def _is_result_of(program: Walking, site: Site, declared: Value | None) -> bool:
    """Whether both functions are declared to give objects of one class of the project, whatever it is called.

    `async def start(self) -> Task: return self.change(1)`, where `change` gives a `Task` too: a row of a table.
    """
    target = site.target
    if not isinstance(target, Function) or not target.is_async or target.facts.returns is None:
        return False
    if not isinstance(declared, Instance) or not isinstance(declared.cls, Class):
        return False
    given = program.types.annotated(target.facts.returns, target.module, target.parent, target.owner)
    return isinstance(given, Instance) and given.cls is declared.cls


def stored_incidents(program: Walking) -> Iterator[LossIncident]:
    """Coroutines set as attributes that the class never awaits nor gives away."""
    for function in sorted(program.walked, key=lambda f: (f.module.path, f.index)):
        for target, value in program.summary(function).stored:
            if isinstance(value, Coroutine | AwaitableContext) and value.site is not None and not value.site.is_quiet:
                owner = function.class_around
                if owner is None or not _is_meant_as_result(program, owner, target[2], value):
                    continue
                proven = never_awaitable(program.classes.declared(owner, target[2]), program)
                if (
                    proven
                    or _is_lost(program, owner, target[2], in_async=function.is_async)
                    or _is_result_elsewhere(owner, target[2], value.site.callee)
                ):
                    yield LossIncident("stored", value.site, value.site.at, "", f"self.{target[2]}", sure=proven)


def _is_meant_as_result(program: Walking, cls: Class, name: str, value: Value) -> bool:
    """Whether nobody enters what could be entered as well as awaited; a context has to be used as what it gives."""
    if not isinstance(value, AwaitableContext | AwaitableObject):
        return True
    uses: set[str] = set()
    for module in {c.module for c in (cls, *program.classes.children(cls))}:
        for f in module.facts.functions:
            if speaks_of(f, (name,)):
                body = body_of(f)
                collect_uses(body, name, uses)
                if any(_enters(node, name) for node in walk(body)):
                    return False
    return "misused" in uses or isinstance(value, AwaitableObject)


def _enters(node: Node, name: str) -> bool:
    """`async with self.x`, `self.x.__aenter__()`, `stack.enter_async_context(self.x)`."""
    if node[KIND] == "with":
        return any(_is_attribute(item[0], name) for item in node[WITH_ITEMS])
    if node[KIND] == "attr":
        return bool(node[ATTR_NAME] in {"__aenter__", "__aexit__"} and _is_attribute(node[ATTR_BASE], name))
    return (
        node[KIND] == "call"
        and last_name(node[CALL_FUNC]).startswith("enter")
        and any(_is_attribute(argument, name) for argument in node[CALL_ARGS])
    )


def _is_attribute(node: Node, name: str) -> bool:
    return bool(node[KIND] == "attr" and node[ATTR_NAME] == name)


def _is_result_elsewhere(cls: Class, name: str, callee: str) -> bool:
    """Whether another method sets the attribute to what awaiting the same call gives: here the `await` is missing."""
    return any(
        attribute == name
        and value is not None
        and value[0] == "await"
        and value[1][0] == "call"
        and callee_text(value[1][1]) == callee
        for attribute, _, _, value in cls.facts.self_attributes
    )


def _is_lost(program: Walking, cls: Class, name: str, *, in_async: bool) -> bool:
    uses: set[str] = set()
    for module in {c.module for c in (cls, *program.classes.children(cls))}:
        for f in module.facts.functions:
            if speaks_of(f, (name,)):
                collect_uses(body_of(f), name, uses)
    if "awaited" in uses:
        return False
    # Whoever can await and does not, and wants the awaitable, names it so.
    return "misused" in uses or not uses - {"assigned", "given"} or (in_async and not looks_like_keeper(name))
