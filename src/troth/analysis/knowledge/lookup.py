"""Find a dotted name in the tables, through re-exports and bases and across packages."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from troth.analysis.knowledge.library import ClassEntry, Library, ModuleEntry, Sig, load

__all__ = ["PLAIN_TWINS", "Found", "Tables", "bases", "class_", "find", "fulfilled", "is_only_async", "method"]

_MOST_REEXPORTS = 20  # a chain is 1 to 4 long in real packages; a cycle between two tables must still end
_PLAIN: Sig = ("", "", {})
# `async with` and `async for` ask for the first, `with` and `for` for the second.
PLAIN_TWINS: dict[Literal["__aenter__", "__aiter__"], str] = {"__aenter__": "__enter__", "__aiter__": "__iter__"}
_REFUSING = frozenset({"aiohttp.client.ClientSession"})  # its `__enter__` is there to say that it must not be used
_ONCE_BOTH = ("async_timeout.",)  # could be entered plainly in versions that old projects are written for
_OPEN = ("pydantic", "typing", "collections", "types")  # tables of these do not tell whether one can loop over them


@dataclass(frozen=True, slots=True)
class Found:
    """Where a name leads. `name` is the fully qualified name of the definition."""

    kind: Literal["module", "class", "function", "method", "attribute"]
    name: str
    sig: Sig | None = None
    """For functions and methods. A sync function that was left out of its table has the signature `("", "", {})`."""
    type: str = ""
    """For attributes and module variables."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables that `load` gives, seen as one world."""

    load: Callable[[str], Library | None]
    _lineages: dict[str, tuple[tuple[str, ClassEntry], ...]] = field(default_factory=dict)
    _packages: dict[str, frozenset[str]] = field(default_factory=dict)

    def find(self, dotted: str) -> Found | None:
        """What `dotted` (as an import would spell it) stands for, or None where the tables do not say."""
        for _ in range(_MOST_REEXPORTS):
            library = self.load(dotted.partition(".")[0])
            if library is None:
                return None
            home, parts = _split(dotted, library)
            if not home:
                return None
            if not parts:
                return Found("module", home)
            module = library.module(home)
            assert module is not None
            target = module.get("x", {}).get(parts[0])
            if target is None:
                return self._in_module(home, module, parts) or self._package(dotted, library)
            dotted = ".".join((target, *parts[1:]))
        return None

    def _package(self, dotted: str, library: Library) -> Found | None:
        """A package that has modules and nothing of its own: the `asyncio` of `websockets.asyncio.client`."""
        packages = self._packages.get(library.name)
        if packages is None:
            around = (module.rpartition(".")[0] for module in library.modules)
            packages = self._packages[library.name] = frozenset(around) - library.modules.keys()
        return Found("module", dotted) if dotted in packages else None

    def _in_module(self, home: str, module: ModuleEntry, parts: list[str]) -> Found | None:
        name = ".".join(parts)
        full = f"{home}.{name}"
        if (sig := module.get("f", {}).get(name)) is not None:
            return Found("function", full, sig)
        if (type_ := module.get("v", {}).get(name)) is not None:
            return Found("attribute", full, type=type_)
        classes = module.get("c", {})
        if name in classes:
            return Found("class", full)
        if name in module.get("s", "").split():
            return Found("function", full, _PLAIN)
        owner, _, last = name.rpartition(".")
        return self.method(f"{home}.{owner}", last) if owner in classes else None

    def method(self, class_name: str, name: str) -> Found | None:
        """The method, property or attribute `name` of a class, looked for along its bases."""
        for owner, entry in self._lineage(class_name):
            if (sig := entry.get("m", {}).get(name)) is not None:
                return Found("method", f"{owner}.{name}", sig)
            if (type_ := entry.get("a", {}).get(name)) is not None:
                return Found("attribute", f"{owner}.{name}", type=type_)
        return None

    def fulfilled(self, type_: str, by: Literal["__await__", "__aenter__"]) -> str:
        """What awaiting (or entering) an object of a type gives, as a type; empty where the tables do not say.

        The class says it (`__aenter__` of `asyncpg.pool.PoolAcquireContext`), or leaves it to its type argument:
        awaiting `aiohttp.client._BaseRequestContextManager[X]` gives an `X`.
        """
        name, _, arguments = type_.partition("[")
        method = self.method(name, by)
        returns = method.sig[1] if method is not None and method.sig is not None else ""
        if returns == "typing.Self":
            return type_
        return returns or arguments.removesuffix("]")

    def bases(self, class_name: str) -> Iterator[str]:
        """The class and all its ancestors that the tables know, in the order Python looks through them."""
        for owner, _ in self._lineage(class_name):
            yield owner

    def _lineage(self, class_name: str) -> tuple[tuple[str, ClassEntry], ...]:
        # Depth first and left to right, where a class met twice counts at its last place: in a diamond the branches
        # come before what they share, as in Python's own order.
        if class_name not in self._lineages:
            met = list(self._preorder(class_name, frozenset()))
            last = {name: place for place, (name, _) in enumerate(met)}
            self._lineages[class_name] = tuple(pair for place, pair in enumerate(met) if last[pair[0]] == place)
        return self._lineages[class_name]

    def _preorder(self, class_name: str, above: frozenset[str]) -> Iterator[tuple[str, ClassEntry]]:
        resolved = self.find(class_name)
        if resolved is None or resolved.kind != "class" or resolved.name in above:
            return
        entry = self.class_(resolved.name)
        yield resolved.name, entry
        for base in entry.get("b", []):
            yield from self._preorder(base, above | {resolved.name})

    def class_(self, full: str) -> ClassEntry:
        """The entry of a class that `find` has found."""
        library = self.load(full.partition(".")[0])
        assert library is not None
        home, parts = _split(full, library)
        module = library.module(home)
        assert module is not None
        return module["c"][".".join(parts)]

    def is_only_async(self, class_name: str, how: Literal["__aenter__", "__aiter__"]) -> bool:
        """Whether objects of a class can be entered, or looped over, asynchronously alone."""
        if class_name in _REFUSING and how == "__aenter__":
            return True
        if self.method(class_name, how) is None or self.method(class_name, PLAIN_TWINS[how]) is not None:
            return False
        if class_name.startswith(_ONCE_BOTH):
            return False
        if how == "__aenter__":
            return True
        if self.method(class_name, "__getitem__") is not None:
            return False
        lineage = self._lineage(class_name)
        if any(name.partition(".")[0] in _OPEN for name, _ in lineage):
            return False
        bases = {base for _, entry in lineage for base in entry.get("b", ())}
        return all(self.find(base) is not None and not base.startswith(_OPEN) for base in bases)


def _split(dotted: str, library: Library) -> tuple[str, list[str]]:
    """The longest module in `dotted`, and what is left of it."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        if (home := ".".join(parts[:count])) not in library.modules:
            continue
        if count < len(parts) or not _is_shadowed(parts, library):
            return home, parts[count:]
    return "", parts


def _is_shadowed(parts: list[str], library: Library) -> bool:
    """Whether the package around a module gives its name to something else: `tenacity.retry` is the decorator."""
    *around, last = parts
    parent = library.module(".".join(around))
    if parent is None:
        return False
    if last in parent.get("f", ()) or last in parent.get("c", ()):
        return True
    return parent.get("x", {}).get(last, ".".join(parts)) != ".".join(parts)


_BUNDLED = Tables(load)
find = _BUNDLED.find
method = _BUNDLED.method
fulfilled = _BUNDLED.fulfilled
bases = _BUNDLED.bases
class_ = _BUNDLED.class_
is_only_async = _BUNDLED.is_only_async
