"""Find what can be done about the place under the cursor.

What takes time is only named here, as a job; it is found out when the user picks it (`jobs.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lsprotocol import types

from troth.analysis.findings import Edit, Finding
from troth.analysis.fix.proposal import Proposal, proposals
from troth.analysis.semantics.symbols import Class, Function
from troth.lsp.features.allow import AllowComments
from troth.lsp.features.symbols import class_on, function_on
from troth.lsp.protocol.action_kinds import FIX_ALL, QUICK, REWRITE
from troth.lsp.protocol.workspace_edit import GroupedEdit
from troth.lsp.sessions.places import Places

__all__ = ["Offer", "Outcome", "is_sure_in", "offers"]

_LOST = ("TR1", "TR2")

Job = Mapping[str, Any]


class Offer(NamedTuple):
    """Something the user can pick: edits that are at hand, or a job that finds them out."""

    title: str
    kind: str
    edits: tuple[Edit, ...] = ()
    job: Job | None = None
    finding: Finding | None = None
    is_preferred: bool = False
    leads_on: bool = False  # to a change of color, which is shown before it is made

    @property
    def label(self) -> str:
        """The title as a menu shows it; an ellipsis says that there is more to decide."""
        return f"{self.title} …" if self.leads_on else self.title


class Outcome(NamedTuple):
    """The edits of a job, and its size in a sentence; or why there are none."""

    pieces: tuple[GroupedEdit, ...] = ()
    summary: str = ""
    problem: str = ""


def offers(
    places: Places, path: str, cell: int | None, place: types.Range, only: Sequence[str] | None
) -> Iterator[Offer]:
    """All offers for a range of a file, of the kinds that are asked for."""

    def wants(kind: str) -> bool:
        return only is None or any(
            kind == wanted_kind or kind.startswith(f"{wanted_kind}.") or not wanted_kind for wanted_kind in only
        )

    if wants(QUICK):
        touched = [
            finding
            for finding in places.look.findings_in(path)
            if finding.span.cell == cell and _touches(places, finding, place)
        ]
        comments = AllowComments(path, places.text(path)) if touched else None
        for finding in touched:
            yield from _for_finding(finding, comments)
        yield from _for_sync_functions(places, path, touched)
    is_whole = path not in places.look.broken  # else what is found cannot be looked at again after the repairs
    if wants(FIX_ALL) and is_whole and any(is_sure_in(path, finding) for finding in places.look.findings_in(path)):
        yield Offer("Apply all safe fixes in this file (Troth)", FIX_ALL, job={"do": "fix all", "path": path})
    if wants(REWRITE) and places.has_places(path):
        yield from _recolorings(places, path, place.start.line + 1)


def _touches(places: Places, finding: Finding, place: types.Range) -> bool:
    shown = places.positions(finding.span.path, finding.span.cell).range_of(finding.span)
    first, last = (shown.start.line, shown.start.character), (shown.end.line, shown.end.character)
    return (place.start.line, place.start.character) <= last and first <= (place.end.line, place.end.character)


def is_sure_in(path: str, finding: Finding) -> bool:
    """Whether its fix is sure, and edits that file alone."""
    fix = finding.fix
    return fix is not None and fix.safety == "sure" and all(edit.path == path for edit in fix.edits)


def _for_finding(finding: Finding, comments: AllowComments | None) -> Iterator[Offer]:
    fix = finding.fix
    if fix is not None:
        is_sure = fix.safety == "sure" and finding.confidence == "certain"
        title = f"{_capital(fix.title)} ({finding.code})" + ("" if is_sure else ", likely right")
        yield Offer(title, QUICK, fix.edits, None, finding, is_sure)
    if comments is not None and finding.code not in ("TR001", "TR002"):
        edit = comments.edit_for(finding)
        if edit is not None:
            yield Offer(f"Allow `{finding.rule}` on this line", QUICK, (edit,), None, finding)


def _for_sync_functions(places: Places, path: str, findings: Sequence[Finding]) -> Iterator[Offer]:
    """A loss in a plain `def`: the function becomes async with its callers, or the coroutine is run where it is."""
    if not places.has_places(path):
        return
    lost = [finding for finding in findings if finding.fix is None and finding.code.startswith(_LOST)]
    first = {finding.symbol: finding for finding in reversed(lost)}
    for proposal in proposals(places.look.program, lost):
        function = proposal.function
        if _is_sayable(function):
            job = {"do": "make async", "path": path, "symbol": function.qualname}
            yield Offer(_size(proposal), QUICK, (), job, first[function.qualname], leads_on=True)
    for finding in lost:
        where: Job = {"do": "bridge", "path": path, "code": finding.code, "span": list(finding.span)}
        yield Offer(f"Run it here with `bridge.run` ({finding.code})", QUICK, (), where, finding)


def _size(proposal: Proposal) -> str:
    name, count = proposal.function.name, len(proposal.others)
    callers = "" if not count else ", and its caller" if count == 1 else f", and its {count} callers"
    return f"Make `{name}` async{callers}"


def _recolorings(places: Places, path: str, line: int) -> Iterator[Offer]:
    module = places.look.program.module(path)
    function = function_on(module, line)
    if function is not None and _is_sayable(function):
        to = "sync" if function.is_async else "async"
        yield _recoloring(path, function.qualname, to)
    cls = class_on(module, line)
    if cls is not None and "<" not in cls.facts.qualname and cls.facts.outer == -1:
        colors = {method.is_async for method in _surface(cls)}
        for is_async in sorted(colors):
            yield _recoloring(path, cls.name, "sync" if is_async else "async")


def _recoloring(path: str, name: str, to: str) -> Offer:
    job = {"do": "recolor", "target": f"{path}:{name}", "to": to}
    return Offer(f"Make `{name}` {to}, and every call of it", REWRITE, (), job, leads_on=True)


def _is_sayable(function: Function) -> bool:
    """Whether the function has a name that a recolor takes: at the top of a file, or in a class there."""
    is_inner = function.parent is not None or function.qualname.count(".") > 1 or "<" in function.qualname
    return not is_inner and not _is_pythons(function.name)


def _surface(cls: Class) -> list[Function]:
    functions = [cls.module.function(index) for indexes in cls.methods.values() for index in indexes]
    return [method for method in functions if not _is_pythons(method.name)]


def _is_pythons(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
