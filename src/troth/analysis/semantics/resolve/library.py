"""Classes and functions of libraries that are not at hand, through the bundled tables."""

from __future__ import annotations

import importlib
import re
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
        module = None if table is None else table.module(".".join(parts[:count]))
        if module is not None:
            return bool(module.get("c", {}).get(".".join(parts[count:]), {}).get("m"))
    return False


@cache
def is_plain(qualified: str) -> bool:
    """Whether the tables know a class as one that has nothing async in it; its methods are left out of them."""
    symbol = find(qualified)
    return symbol is not None and symbol.kind == "class" and bool(_tables().class_(symbol.name).get("s"))


def _words(top_level: str, meaning: str) -> frozenset[str]:
    """The words of a package that mean something in its table (`knowledge.Word`); none without a table."""
    tables = _tables()
    table = None if tables is None else tables.load(top_level)
    words: frozenset[str] = frozenset() if table is None else table.meaning(meaning)
    return words


@cache
def async_methods(top_level: str) -> frozenset[str]:
    """The methods that the classes of a package have as coroutine functions and in no other color."""
    return _words(top_level, "m")


@cache
def methods_of_async_twins(top_level: str) -> frozenset[str]:
    """Those of them that only classes have which are called async: the package has sync ones beside them.

    The plain `Client` of an `AsyncClient` is mostly not in the table, and has methods of the same names.
    """
    return _words(top_level, "t")


@cache
def plain_methods(top_level: str) -> frozenset[str]:
    """The methods of the classes of a package that give no awaitable."""
    return _words(top_level, "s")


@cache
def async_properties(top_level: str) -> frozenset[str]:
    """The properties of the classes of a package that give coroutines."""
    return _words(top_level, "r")


@cache
def working_methods(top_level: str) -> frozenset[str]:
    """The methods of a package whose result may be awaited and need not be: they do their work by themselves."""
    return _words(top_level, "o")


@cache
def async_names(top_level: str) -> frozenset[str]:
    """The last names of all callables of a package whose calls give awaitables."""
    return _words(top_level, "p")


@cache
def only_async_names(top_level: str) -> frozenset[str]:
    """The last names of a package's classes that only `async` can enter or loop over, and of those who make them."""
    return _words(top_level, "e")


def is_called_async(qualified: str) -> bool:
    """Whether the name of something in a package says that it is async: `AsyncClient`, `redis.asyncio`."""
    return _CALLED_ASYNC.search(qualified.partition(".")[2]) is not None


_CALLED_ASYNC = re.compile(r"Async(?![a-z])|Aio(?=[A-Z])|(?:^|[._])(?:async|asyncio|aio)(?:[._]|$)")


@cache
def is_only_async(qualified: str, how: str) -> bool:
    """Whether objects of a class can be entered (`__aenter__`) or looped over (`__aiter__`) asynchronously alone."""
    tables = _tables()
    return tables is not None and bool(tables.is_only_async(qualified, how))


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
    pairs = [] if table is None else [line.rpartition(" ") for line in table.source]
    return tuple((name, int(major)) for name, _, version in pairs if (major := version.partition(".")[0]).isdigit())


# Objects of these packages are requests that are sent when they are awaited; a handler may return one for that.
LAZY = ("aiogram.methods.",)
# Their objects ask a database when they are awaited; nothing else can be done with one but to make another of it.
QUERIES = ("tortoise.queryset.", "beanie.odm.queries.", "piccolo.query.", "odmantic.engine.AIOCursor")
