"""Knows what one file lets others see, so that an edit behind that face makes nobody else be looked at again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from troth.analysis.facts.model import ABSTRACT, FileFacts, ImportFacts, body_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from troth.analysis.facts.model import FunctionFacts
    from troth.analysis.program.imports import ModuleFinder

__all__ = ["Targets", "callers_of", "changed_names", "face", "importers"]

Targets = dict[str, tuple[tuple[ImportFacts, ...], frozenset[str]]]
"""The files that each file imports from, beside the imports that say so."""


def face(facts: FileFacts) -> object:
    """All that other files can learn from this one, without the places where it stands."""
    return (
        facts.imports,
        tuple(_function_face(f) for f in facts.functions[1:]),
        tuple(_without_places((*c[:4], *c[5:])) for c in facts.classes),
        _without_places(facts.variables),
        facts.exports,
    )


def _function_face(function: FunctionFacts) -> object:
    header = (
        function[:5],
        _without_places(function.params),
        _without_places(function.returns),
        _without_places(function.decorators),
    )
    # What annotations do not say is found out from the body: what it returns, and what it does with its arguments.
    telling = function.returns is None or any(p[1] is None for p in function.params[1:]) or function.name == "__init__"
    if telling and not function.flags & ABSTRACT:
        return (header, _without_places(body_of(function)))
    return header


def _without_places(node: Any) -> Any:
    if not isinstance(node, tuple):
        return node
    if len(node) == 4 and all(type(part) is int for part in node):
        return None
    return tuple([_without_places(part) for part in node])


def changed_names(old: FileFacts | None, new: FileFacts | None) -> set[str]:
    """The last names of callees about which this file now gives other evidence."""
    before, after = _evidence(old), _evidence(new)
    return {
        key[1].rpartition(".")[2].rpartition(" ")[2]
        for key in before.keys() | after.keys()
        if before[key] != after[key]
    }


def _evidence(facts: FileFacts | None) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for f in facts.functions if facts is not None else ():
        counts[f"{f.flags & 3} {f.owner >= 0}", f.name] += 1
        for callee in f.awaited:
            counts["awaited", callee] += 1
        for callee in f.calls:
            counts["bare", callee] += 1
    return counts


def importers(
    changed: set[str], facts: Mapping[str, FileFacts], finder: ModuleFinder, targets: Targets | None = None
) -> set[str]:
    """The files that import one of `changed`, directly or through others.

    `targets` is what an earlier call found out about the imports of files, if the project had the same files then.
    """
    users: dict[str, set[str]] = {}
    for path, file in facts.items():
        known = None if targets is None else targets.get(path)
        if known is None or known[0] is not file.imports:
            known = file.imports, _targets(path, file, finder)
            if targets is not None:
                targets[path] = known
        for target in known[1]:
            users.setdefault(target, set()).add(path)
    found: set[str] = set()
    waiting = list(changed)
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in found:
                found.add(user)
                waiting.append(user)
    folders = {path.rpartition("/")[0] for path in changed if path.endswith("conftest.py")}
    if folders:  # fixtures come without an import
        found |= {path for path in facts if any(path.startswith(f"{folder}/" if folder else "") for folder in folders)}
    return found


def _targets(path: str, file: FileFacts, finder: ModuleFinder) -> frozenset[str]:
    """The files of the project that one of them imports from."""
    found: set[str | None] = set()
    for imported in file.imports:
        for name in (imported.module, f"{imported.module}.{imported.name}"):
            if imported.level:
                found.add(finder.relative(path, imported.level, name if imported.module else imported.name or ""))
            else:
                found.add(finder.find(name, path))
    return frozenset(one for one in found if one is not None)


def callers_of(names: set[str], facts: Mapping[str, FileFacts]) -> Iterable[str]:
    """The files that call one of these names without awaiting it."""
    for path, file in facts.items():
        if any(callee.rpartition(".")[2] in names for f in file.functions for callee in f.calls):
            yield path
