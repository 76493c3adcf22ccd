"""Find which words of a package mean what, whatever class or module they stand in; tables carry that along."""

import re
from collections.abc import Collection

from troth.analysis.knowledge import ClassEntry, Library, ModuleEntry, Tables, Word
from troth.analysis.knowledge.lookup import PLAIN_TWINS
from troth.analysis.semantics.resolve.library import LAZY, QUERIES, is_called_async

__all__ = ["words_of"]

_InModule = tuple[str, str, ClassEntry]

_SAYS_ASYNC = re.compile(r"(?i)\b_?(?:async|asyncio|aio)(?=[A-Z.]|\b)|(?:Async|Aio)\b")
_WAITING = (*LAZY, *QUERIES)  # such objects do their work when they are awaited
_PROTOCOL = {"__aenter__", "__aiter__", "__new__"}  # of what can be entered, and not what makes it


def words_of(library: Library, tables: Tables) -> dict[str, str]:
    """The words of a package that stands among `tables`, by the letters of all that they mean (`Word`)."""
    modules = [(home, module) for home in library.modules if (module := library.module(home)) is not None]
    classes = [(home, name, cls) for home, module in modules for name, cls in module.get("c", {}).items()]
    methods = [(name, sig) for _, _, cls in classes for name, sig in cls.get("m", {}).items()]
    plain = {name for name, sig in methods if not set(sig[0]) & set("agmow")}
    coroutines = _coroutine_methods(classes) - plain
    native = {
        name for home, owner, cls in classes if not is_called_async(f"{home}.{owner}") for name in cls.get("m", ())
    }
    meanings: dict[Word, Collection[str]] = {
        "p": _promising([module for _, module in modules], "agmw"),
        "c": _promising([module for _, module in modules], "a"),
        "e": _only_async([module for _, module in modules], classes, tables),
        "m": coroutines,
        "t": coroutines - native,
        "s": plain,
        "r": {name for name, sig in methods if {"a", "p"} <= set(sig[0])},
        "o": {name for name, sig in methods if "o" in sig[0]},
    }
    letters: dict[str, str] = {}
    for letter, words in meanings.items():
        for word in words:
            letters[word] = letters.get(word, "") + letter
    return {
        meaning: " ".join(sorted(word for word in letters if letters[word] == meaning))
        for meaning in sorted(set(letters.values()))
    }


def _coroutine_methods(classes: list[_InModule]) -> set[str]:
    # The methods of a class with nothing async in it are left out of the table: `Models` beside `AsyncModels`.
    plain = {owner for _, owner, cls in classes if cls.get("s")}
    return {
        name
        for home, owner, cls in classes
        if not (_SAYS_ASYNC.search(f"{home}.{owner}") and _SAYS_ASYNC.sub("", owner) in plain)
        for name, sig in cls.get("m", {}).items()
        if "a" in sig[0] and "p" not in sig[0]
    }


def _promising(modules: list[ModuleEntry], letters: str) -> set[str]:
    """The last names of all callables whose calls give promises of these kinds."""
    kinds = frozenset(letters)
    names: set[str] = set()
    for module in modules:
        names.update(name for name, sig in module.get("f", {}).items() if not kinds.isdisjoint(sig[0]))
        for cls in module.get("c", {}).values():
            for name, sig in cls.get("m", {}).items():
                if sig[0] and (not kinds.isdisjoint(sig[0]) or ("w" in kinds and sig[1].startswith(_WAITING))):
                    names.add(name)
    for module in modules:
        for name, target in module.get("x", {}).items():
            if target.rpartition(".")[2] in names:
                names.add(name)  # `run_sync` of `trio.to_thread` is defined as `to_thread_run_sync`
    return names


def _only_async(modules: list[ModuleEntry], in_modules: list[_InModule], tables: Tables) -> set[str]:
    """The last names of classes that only `async` can enter or loop over, and of those who make them."""
    classes = {f"{home}.{name}": cls for home, name, cls in in_modules}
    candidates = {name for name, cls in classes.items() if not PLAIN_TWINS.keys().isdisjoint(cls.get("m", ()))}
    below = candidates
    while below:
        below = {name for name, cls in classes.items() if not candidates.isdisjoint(cls.get("b", ()))} - candidates
        candidates |= below
    only = {name for name in candidates if any(tables.is_only_async(name, how) for how in PLAIN_TWINS)}
    names = {name.rpartition(".")[2] for name in only}
    for module in modules:
        names.update(name for name, sig in module.get("f", {}).items() if sig[1].partition("[")[0] in only)
        for cls in module.get("c", {}).values():
            names.update(name for name, sig in cls.get("m", {}).items() if sig[1].partition("[")[0] in only)
    return names - _PROTOCOL
