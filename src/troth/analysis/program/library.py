"""Knows classes and functions of libraries that are not at hand, through the bundled tables."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

__all__ = ["LibraryClass", "LibraryFunction", "find", "library_class", "member"]


class LibraryFunction:
    """A function or method of a library, as its table describes it.

    `flags` are letters: a (gives a coroutine), g (async iterator), p (property), c (classmethod), s (staticmethod),
    o (either color), m (async context manager), w (gives another awaitable).
    """

    __slots__ = ("flags", "name", "owner", "qualname", "returns", "roles")

    def __init__(self, qualname: str, signature: Any, owner: LibraryClass | None = None) -> None:
        self.qualname = qualname
        self.name = qualname.rpartition(".")[2]
        self.owner = owner
        self.flags: str = signature[0]
        self.returns: str = signature[1]
        self.roles: dict[str, str] = signature[2]


class LibraryClass:
    """A class of a library, by its qualified name; one object per name."""

    __slots__ = ("name", "qualified")

    def __init__(self, qualified: str) -> None:
        self.qualified = qualified
        self.name = qualified.rpartition(".")[2]


@cache
def _tables() -> Any:
    try:
        return importlib.import_module("troth.analysis.knowledge")
    except ModuleNotFoundError:
        return None


@cache
def find(dotted: str) -> Any:
    """What the tables know under a dotted name: something with `kind`, `name`, `sig`, `type`; None for nothing."""
    tables = _tables()
    return None if tables is None else tables.find(dotted)


@cache
def library_class(qualified: str) -> LibraryClass:
    """The class of that name."""
    return LibraryClass(qualified)


@cache
def member(qualified: str, name: str) -> Any:
    """The method, property or attribute of a library class, looked for along its bases; None where unknown."""
    tables = _tables()
    return None if tables is None else tables.method(qualified, name)


@cache
def has_members(qualified: str) -> bool:
    """Whether the tables list the methods of that class, so that what is not listed is not there."""
    tables = _tables()
    table = None if tables is None else tables.load(qualified.partition(".")[0])
    parts = qualified.split(".")
    for count in range(len(parts) - 1, 0, -1):
        module = None if table is None else table.modules.get(".".join(parts[:count]))
        if module is not None:
            return bool(module.get("c", {}).get(".".join(parts[count:]), {}).get("m"))
    return False


@cache
def is_plain(qualified: str) -> bool:
    """Whether the tables know a class as one that has nothing async in it; its methods are left out of them."""
    found = find(qualified)
    return found is not None and found.kind == "class" and bool(_tables().class_(found.name).get("s"))


@cache
def _classes(top_level: str) -> tuple[tuple[str, str, Any], ...]:
    """The classes that the table of a package tells of: module, name, what is known; none without a table."""
    tables = _tables()
    table = None if tables is None else tables.load(top_level)
    modules = {} if table is None else table.modules
    return tuple((path, cls, known) for path, m in modules.items() for cls, known in m.get("c", {}).items())


def _methods(top_level: str) -> Iterator[tuple[str, Any]]:
    """Their methods, each with its signature."""
    for _, _, known in _classes(top_level):
        yield from known.get("m", {}).items()


@cache
def async_methods(top_level: str) -> frozenset[str]:
    """The methods that the classes of a package have as coroutine functions and in no other color."""
    # The methods of a class with nothing async in it are left out of the table: `Models` beside `AsyncModels`.
    plain = {cls for _, cls, known in _classes(top_level) if known.get("s")}
    names = {
        name
        for path, cls, known in _classes(top_level)
        if not (_SAYS_ASYNC.search(f"{path}.{cls}") and _SAYS_ASYNC.sub("", cls) in plain)
        for name, sig in known.get("m", {}).items()
        if "a" in sig[0] and "p" not in sig[0]
    }
    return frozenset(names - plain_methods(top_level))


@cache
def methods_of_async_twins(top_level: str) -> frozenset[str]:
    """Those of them that only classes have which are called async: the package has plain ones beside them.

    The plain `Client` of an `AsyncClient` is mostly not in the table, and has methods of the same names.
    """
    native = {
        name
        for path, cls, known in _classes(top_level)
        if not is_called_async(f"{path}.{cls}")
        for name in known.get("m", ())
    }
    return async_methods(top_level) - native


def is_called_async(qualified: str) -> bool:
    """Whether the name of something in a package says that it is async: `AsyncClient`, `redis.asyncio`."""
    return _CALLED_ASYNC.search(qualified.partition(".")[2]) is not None


_CALLED_ASYNC = re.compile(r"Async(?![a-z])|Aio(?=[A-Z])|(?:^|[._])(?:async|asyncio|aio)(?:[._]|$)")
_SAYS_ASYNC = re.compile(r"(?i)\b_?(?:async|asyncio|aio)(?=[A-Z.]|\b)|(?:Async|Aio)\b")


@cache
def plain_methods(top_level: str) -> frozenset[str]:
    """The methods of the classes of a package that give no promise."""
    return frozenset(name for name, sig in _methods(top_level) if not set(sig[0]) & set("agmow"))


@cache
def async_properties(top_level: str) -> frozenset[str]:
    """The properties of the classes of a package that give coroutines."""
    return frozenset(name for name, sig in _methods(top_level) if {"a", "p"} <= set(sig[0]))


@cache
def working_methods(top_level: str) -> frozenset[str]:
    """The methods of a package whose result may be awaited and need not be: they do their work by themselves."""
    return frozenset(name for name, sig in _methods(top_level) if "o" in sig[0])


# `async with` and `async for` ask for the first, `with` and `for` for the second.
_PLAIN_TWINS = {"__aenter__": "__enter__", "__aiter__": "__iter__"}
# Its `__enter__` is there to say that it must not be used.
_REFUSING = frozenset({"aiohttp.client.ClientSession"})
_ONCE_BOTH = ("async_timeout.",)  # could be entered plainly in versions that old projects are written for
_OPEN = ("pydantic", "typing", "collections", "types")  # tables of these do not tell whether one can loop over them


@cache
def is_only_async(qualified: str, how: str) -> bool:
    """Whether objects of a class can be entered (`__aenter__`) or looped over (`__aiter__`) asynchronously alone."""
    if qualified in _REFUSING and how == "__aenter__":
        return True
    if member(qualified, how) is None or member(qualified, _PLAIN_TWINS[how]) is not None:
        return False
    if qualified.startswith(_ONCE_BOTH):
        return False
    if how == "__aenter__":
        return True
    if member(qualified, "__getitem__") is not None:
        return False
    tables = _tables()
    known = lineage(qualified)
    if any(one.partition(".")[0] in _OPEN for one in known):
        return False
    bases = {base for one in known for base in tables.class_(one).get("b", ())}
    return all(find(base) is not None and not base.startswith(_OPEN) for base in bases)


@cache
def only_async_names(top_level: str) -> frozenset[str]:
    """The last names of a package's classes that only `async` can enter or loop over, and of those who make them."""
    tables = _tables()
    library = None if tables is None else tables.load(top_level)
    if library is None:
        return frozenset()
    bases = {f"{home}.{name}": known for home, m in library.modules.items() for name, known in m.get("c", {}).items()}
    found = {name for name, known in bases.items() if not _PLAIN_TWINS.keys().isdisjoint(known.get("m", ()))}
    todo = bool(found)
    while todo:
        below = {name for name, known in bases.items() if not found.isdisjoint(known.get("b", ()))} - found
        found |= below
        todo = bool(below)
    only = {name for name in found if any(is_only_async(name, how) for how in _PLAIN_TWINS)}
    names = {name.rpartition(".")[2] for name in only}
    for module in library.modules.values() if only else ():
        names.update(name for name, sig in module.get("f", {}).items() if sig[1].partition("[")[0] in only)
        for known in module.get("c", {}).values():
            names.update(name for name, sig in known.get("m", {}).items() if sig[1].partition("[")[0] in only)
    return frozenset(names - {"__aenter__", "__aiter__", "__new__"})


@cache
def lineage(qualified: str) -> tuple[str, ...]:
    """The class and its known ancestors."""
    tables = _tables()
    return () if tables is None else tuple(tables.bases(qualified))


@cache
def knows(top_level: str) -> bool:
    """Whether there is a table for this package."""
    tables = _tables()
    return tables is not None and tables.load(top_level) is not None


@cache
def sources(top_level: str) -> tuple[tuple[str, int], ...]:
    """The distributions that the table of a package was read from, each with its major version."""
    tables = _tables()
    table = None if tables is None else tables.load(top_level)
    found = [] if table is None else [one.rpartition(" ") for one in table.source]
    return tuple((name, int(major)) for name, _, version in found if (major := version.partition(".")[0]).isdigit())


# Objects of these packages are requests that are sent when they are awaited; a handler may return one for that.
LAZY = ("aiogram.methods.",)
# Their objects ask a database when they are awaited; nothing else can be done with one but to make another of it.
QUERIES = ("tortoise.queryset.", "beanie.odm.queries.", "piccolo.query.", "odmantic.engine.AIOCursor")


_WAITING = (*LAZY, *QUERIES)


@cache
def async_names(top_level: str, letters: str = "agmw") -> frozenset[str]:
    """The last names of all callables of a package whose calls give promises of these kinds."""
    tables = _tables()
    library = None if tables is None else tables.load(top_level)
    if library is None:
        return frozenset()
    names: set[str] = set()
    kinds = frozenset(letters)
    for module in library.modules.values():
        for name, sig in module.get("f", {}).items():
            if sig[0] and not kinds.isdisjoint(sig[0]):
                names.add(name)
        for known in module.get("c", {}).values():
            for name, sig in known.get("m", {}).items():
                if sig[0] and (not kinds.isdisjoint(sig[0]) or ("w" in kinds and sig[1].startswith(_WAITING))):
                    names.add(name)
    for module in library.modules.values() if names else ():
        for name, target in module.get("x", {}).items():
            if name not in names and target.rpartition(".")[2] in names:
                names.add(name)  # `run_sync` of `trio.to_thread` is defined as `to_thread_run_sync`
    return frozenset(names)
