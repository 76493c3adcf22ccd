"""Collect the names that the prefilter rests on: of what may make awaitables, and of what holds or takes such things.

They come from all files together, or from what an earlier run found and the files that have changed since.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from troth.analysis.facts.fields import ATTR_NAME, BODY, ITEMS, KIND, NAME_ID, ORELSE
from troth.analysis.facts.model import PARAM_NAME, FileFacts, without_places
from troth.analysis.facts.names import decorator_name, other_name_of
from troth.analysis.facts.nodes import words_of
from troth.analysis.semantics.infer.function_results import TO_COROUTINE
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.color_checks import ASKS_FOR_FUNCTION
from troth.analysis.semantics.walk.async_only_objects import held_in, is_only_async, makers_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from troth.analysis.facts.model import ClassFacts, FunctionFacts, Node
    from troth.analysis.incremental.saved_tables import SavedTables
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.symbols import Module

__all__ = ["collected", "restored"]

_ALWAYS = frozenset(
    {
        "create_task",
        "ensure_future",
        "gather",
        "shield",
        "run_in_executor",
        "anext",
        "__anext__",
        "__aenter__",
        "__aexit__",
        "call_next",
        "Future",
    }
)


def collected(program: Inference, modules: Sequence[Module]) -> dict[str, frozenset[str]]:
    """The names of all files: of what may make awaitables, and of what only `async with` or `async for` takes."""
    own = program.counts.async_names()
    given: set[str] = set(_ALWAYS | ASKS_FOR_FUNCTION)
    tops = _packages_of(modules)
    for top in tops:
        given |= library.async_names(top) | program.installed_async(top)
    names = own | given
    for module in modules:
        for c in module.facts.classes:
            if _is_entered_async(c):
                names.add(c.name)
        for imported in module.facts.imports:
            if imported.name in names and imported.local != imported.name:
                names.add(imported.local)
    wrapping = {name for module in modules for name in _wrapping(module.facts)} | TO_COROUTINE
    for module in modules:
        for f in module.facts.functions:
            if not f.flags & 1 and any(decorator_name(d) in wrapping for d in f.decorators):
                names.add(f.name)
    for module in modules:
        for name, _, value in module.facts.variables:
            if value is not None and not names.isdisjoint(_named(value)):
                names.add(name)
    names |= {name for module in modules for name, called in _renamed(module.facts) if called in names}
    slots = _async_types(modules)
    names |= _async_attributes(modules, slots)
    makers = makers_of((module.facts for module in modules), tops)
    return {
        "makers": makers,
        "holders": frozenset(name for module in modules for name in held_in(module.facts, makers)),
        "names": frozenset(names),
        "given": frozenset(given),  # by libraries, whatever the files say
        "slots": slots,
    }


def restored(program: Inference, tables: SavedTables) -> dict[str, frozenset[str]] | None:
    """What `collected` would find, from what it found in the last run; None where only a look at all files can tell.

    That is so when a file no longer says what many others may say as well, or says something from which more follows:
    a class, an import, a variable, a decorator.
    """
    sets = {kind: set(names) for kind, names in tables.prefilter.items()}
    if not sets:
        return None
    counts = program.counts
    gone: set[str] = set()
    for before, now in tables.lately.values():
        old, new = (_hints(file, sets["slots"], sets["makers"]) for file in (before, now))
        if old.rest != new.rest:
            return None
        for name in old.own - new.own:
            if not (counts.colors(name)[0] or counts.is_awaited(name)):
                gone.add(name)
        if any(program.index.other_names(name) or _is_renamed(program, name) for name in new.own - old.own):
            return None
        tables.coined -= new.own - old.own  # another file says it as well
        tables.coined |= new.own - old.own - sets["names"]
        sets["names"] |= new.own
    sets["names"] -= gone & tables.coined
    if not gone <= tables.coined and not _is_settled(program, tables, gone - tables.coined, sets):
        return None
    tables.coined -= gone
    return {kind: frozenset(names) for kind, names in sets.items()}


_MANY_GONE = 6  # names; then a look at all files takes less time than asking for each


def _is_settled(program: Inference, tables: SavedTables, gone: Collection[str], sets: Mapping[str, set[str]]) -> bool:
    """Take names out of the sets that nobody says any more; False where only a look at all files can tell."""
    if len(gone) > _MANY_GONE or not sets["given"].isdisjoint(gone):
        return False
    changed = [_hints(now, sets["slots"], sets["makers"]) for _, now in tables.since.values()]
    for name in gone:
        saying = tables.saying(name)
        if saying is None:
            return False
        facts = [program.module(program.paths[number])._facts for number in saying]
        hints = [*changed, *(_hints(file, sets["slots"], sets["makers"]) for file in facts)]
        if any(name in repr(hint.rest) for hint in hints):
            return False  # it may be among the names for another reason
        if not any(name in hint.own for hint in hints):
            sets["names"].discard(name)
    return True


class _Hints(NamedTuple):
    """What a file says that the names rest on; from `rest` follows more than its own names."""

    own: set[str]
    rest: tuple[Any, ...]


def _hints(file: FileFacts | None, slots: Collection[str], makers: Collection[str]) -> _Hints:
    file = file or FileFacts((), (), (), (), None)
    is_known = _knows(file, slots)
    unnamed = (
        sorted({(i.module, i.name or "") for i in file.imports if not i.level and i.module}),
        sorted(c.name for c in file.classes if is_only_async(c)),
        sorted(held_in(file, makers)),
        sorted({(i.name, i.local) for i in file.imports if i.name is not None and i.local != i.name}),
        sorted(c.name for c in file.classes if _is_entered_async(c)),
        sorted(_wrapping(file)),
        sorted((decorator_name(d), f.name) for f in file.functions if not f.flags & 1 for d in f.decorators),
        [
            (name, without_places(value))
            for name, _, value in file.variables
            if value is not None and value[KIND] in _TELLING
        ],
        sorted(file.classes[f.owner].name for f in file.functions if _is_async_call(f)),
        sorted({*_renamed(file)}),
        # Annotations tell only in a file that knows one of the words.
        [without_places((c.annotations, list(_set_attributes(file, c)))) for c in file.classes] if is_known else [],
    )
    awaited = {callee.rpartition(".")[2] for f in file.functions for callee in f.awaited if " " not in callee}
    return _Hints(
        {f.name for f in file.functions if f.flags & 1} | awaited,
        unnamed,
    )


_TELLING = frozenset({"name", "attr", "index", "binop", "ifexp", "or"})


def _is_entered_async(c: ClassFacts) -> bool:
    methods = {name for name, _ in c.methods}
    return "__aenter__" in methods and "__enter__" not in methods


def _is_async_call(f: FunctionFacts) -> bool:
    return f.name == "__call__" and bool(f.flags & 1) and f.owner >= 0


def _packages_of(modules: Sequence[Module]) -> set[str]:
    """The packages that the files import from, and those that what they import comes from: FastAPI's `WebSocket`."""
    imported = {(i.module, i.name) for m in modules for i in m.facts.imports if not i.level and i.module}
    tops = {module.partition(".")[0] for module, _ in imported}
    tables = {top for top in tops if top not in sys.stdlib_module_names and library.knows(top)}
    imported_names = [f"{module}.{name}" for module, name in imported if name and module.partition(".")[0] in tables]
    symbols = [library.find(name) for name in imported_names]
    return tops | {symbol.name.partition(".")[0] for symbol in symbols if symbol is not None}


def _async_types(modules: Sequence[Module]) -> frozenset[str]:
    """Names of types that stand for callables that give awaitables: aliases, and classes with an async `__call__`."""
    words = {"Awaitable", "Coroutine"}
    for module in modules:
        for name, _, value in module.facts.variables if _knows(module.facts, words) else ():
            if value is not None and value[KIND] in {"index", "binop"} and _mentions_any(value, words):
                words.add(name)
        for f in module.facts.functions:
            if _is_async_call(f):
                words.add(module.facts.classes[f.owner].name)
    return frozenset(words)


def _async_attributes(modules: Sequence[Module], slots: frozenset[str]) -> set[str]:
    """Attributes that hold such callables, by what they are annotated with or by the parameter they are set to."""
    names: set[str] = set()
    for module in modules:
        for c in module.facts.classes if _knows(module.facts, slots) else ():
            names.update(name for name, node in c.annotations if _mentions_any(node, slots))
            names.update(
                name for name, annotation in _set_attributes(module.facts, c) if _mentions_any(annotation, slots)
            )
    return names


def _set_attributes(file: FileFacts, c: ClassFacts) -> Iterator[tuple[str, Node]]:
    """The attributes that methods set, with their annotation or that of the parameter they are set to."""
    for name, index, annotation, value in c.self_attributes:
        declared = annotation
        if declared is None and value is not None and value[KIND] == "name":
            declared = next((p[1] for p in file.functions[index].params if p[0] == value[NAME_ID]), None)
        if declared is not None:
            yield name, declared


def _renamed(file: FileFacts) -> Iterator[tuple[str, str]]:
    """What objects have under a name of their own, with the name it is called by: `self._send = self._send_remote`.

    What a parameter holds is another thing for whoever makes the object. The body of a class may do so, too.
    """
    for c in file.classes:
        for second_name, behind in c.values:
            method = other_name_of(behind)
            if method:
                yield second_name, method
        for attribute, index, _, value in c.self_attributes:
            for name in () if value is None else _named(value):
                if name != attribute and (value != ("name", name) or not _has_param(file.functions[index], name)):
                    yield attribute, name


def _is_renamed(program: Inference, name: str) -> bool:
    """Whether a variable or an object has what is called so under another name."""
    files = (program.module(path)._facts for path in program.index.files_mentioning([name]))
    return any(
        any(name == called for _, called in _renamed(file))
        or any(value is not None and name in _named(value) for _, _, value in file.variables)
        for file in files
    )


def _has_param(f: FunctionFacts, name: str) -> bool:
    return any(param[PARAM_NAME] == name for param in f.params)


def _named(value: Node) -> tuple[str, ...]:
    """The last names of what an expression stands for, on whichever of its branches."""
    kind = value[0]
    if kind == "name":
        return (value[NAME_ID],)
    if kind == "attr":
        return (value[ATTR_NAME],)
    branches = (value[BODY], value[ORELSE]) if kind == "ifexp" else value[ITEMS] if kind == "or" else ()
    return tuple(branch[1 if branch[KIND] == "name" else 2] for branch in branches if branch[KIND] in {"name", "attr"})


def _knows(file: FileFacts, words: Collection[str]) -> bool:
    """Whether a file has one of these words at all; one in quotes is imported, for the type checker's sake."""
    words = frozenset(words)
    return not words.isdisjoint(file.mentions) or any(i.local in words for i in file.imports)


def _mentions_any(node: Node, words: Collection[str]) -> bool:
    """Whether an annotation has one of these words; a string is looked through as text."""
    return any(text in words or ("[" in text and any(word in text for word in words)) for text in words_of(node))


def _wrapping(file: FileFacts) -> Iterator[str]:
    """The functions with an async function inside: as decorators they may make a sync function async."""
    functions = file.functions
    for f in functions:
        if f.flags & 1 and f.parent > 0:
            outer = functions[f.parent]
            yield outer.name
            if outer.parent > 0:
                yield functions[outer.parent].name
