"""The way from an installed package to its table, and how much of the package the table covers."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.knowledge.annotations import Type
from tools.knowledge.catalogue import Entry
from tools.knowledge.environment import Environment, stubs_of_mypy
from tools.knowledge.names import Names
from tools.knowledge.observed import Observed
from tools.knowledge.sources import ModuleSource, read_package
from tools.knowledge.surface import Surface, read_surface
from tools.knowledge.table import make_tables, write_table
from tools.knowledge.words import words_of
from troth.analysis import knowledge
from troth.analysis.knowledge import Library, ModuleEntry, Tables

__all__ = ["Report", "build_library", "build_stdlib", "measure_library", "renew_words", "stdlib_surface"]


_NOBODYS = {"lib2to3", "distutils", "antigravity", "this", "xxlimited", "turtle", "tkinter"}
"""Parts of the standard library that no async program is written against."""


_LOOKERS = (
    "inspect",
    "typing",
    "typing_extensions",
    "types",
    "annotationlib",
    "functools",
    "dataclasses",
    "unittest.mock",
)
"""Modules that look at functions without calling them for their result: any color will do."""


@dataclass(frozen=True, slots=True)
class Report:
    """What one table covers: of the `public` coroutine functions seen in the real package, those that are async in it.

    `read`: found by reading alone; `tabled`: in the table as written; `wrong`: async in the table and plain in reality.
    """

    top: str
    version: str
    public: int
    read: int | None
    tabled: int
    size: int
    missing: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    """Modules that could not be imported, and why."""

    def __str__(self) -> str:
        def share(part: int | None) -> str:
            return f"{100 * part / self.public:7.1f}%" if self.public and part is not None else "-"

        row = f"{self.top:24}{self.version:>14}{self.public:8}{share(self.read):>8}{share(self.tabled):>8}"
        return f"{row}{len(self.wrong):7}{self.size:9}"


def build_library(entry: Entry, environment: Environment, into: Path, *, measure_reading: bool = True) -> Report:
    """Read, look, and write the table of one package; `measure_reading` also judges what reading alone would give."""
    modules = read_package(environment.packages, entry.top, entry.only, entry.without)
    if not modules:
        raise FileNotFoundError(f"{entry.top!r} has no sources under {environment.packages}")
    observed = environment.observe(entry)
    versions = environment.versions(entry.install)
    tops = frozenset({entry.top})
    unseen = make_tables(read_surface(modules, Observed()), tops) if measure_reading else {}
    surface = read_surface(modules, observed)
    for attribute, type_ in entry.declares:
        owner, _, name = attribute.rpartition(".")
        if owner not in surface.classes or type_ not in surface.classes:
            raise LookupError(f"The catalogue declares {attribute!r} as {type_!r}; {entry.top} has no such classes.")
        surface.classes[owner].attributes[name] = Type(type_)
    table = make_tables(surface, tops).get(entry.top, {})
    library = _library(entry.top, versions, table)
    tables = _beside_bundled(library)
    size = write_table(into / f"{entry.top}.json", library, tables)
    missing = tuple(name for name in observed.public if not _is_async(tables, name))
    tabled = len(observed.public) - len(missing)
    read_only = _beside_bundled(_library(entry.top, [], unseen.get(entry.top, {})))
    read = sum(_is_async(read_only, name) for name in observed.public) if measure_reading else None
    wrong = tuple(_contradicted(surface, observed))
    knowledge.load.cache_clear()
    knowledge.bundled.cache_clear()
    version = versions[0].split()[1]
    return Report(
        entry.top,
        version,
        len(observed.public),
        read,
        tabled,
        size,
        missing,
        wrong,
        tuple(map(": ".join, observed.failed.items())),
    )


def measure_library(entry: Entry, environment: Environment, tables: Path) -> Report:
    """How much of a real package, as installed today, the table that lies there covers; nothing is written."""
    observed = environment.observe(entry)
    version = environment.versions(entry.install)[0].split()[1]
    bundled = Tables(knowledge.load)
    missing = tuple(name for name in observed.public if not _is_async(bundled, name))
    file = tables / f"{entry.top}.json"
    size = file.stat().st_size if file.exists() else 0
    failed = tuple(map(": ".join, observed.failed.items()))
    wrong = tuple(name for name, color in observed.colors.items() if color == "s" and _is_coroutine(bundled, name))
    tabled = len(observed.public) - len(missing)
    return Report(entry.top, version, len(observed.public), None, tabled, size, missing, wrong, failed)


def _is_coroutine(tables: Tables, dotted: str) -> bool:
    entry = tables.find(dotted)
    return entry is not None and entry.sig is not None and "a" in entry.sig[0] and "o" not in entry.sig[0]


def _is_async(tables: Tables, dotted: str) -> bool:
    entry = tables.find(dotted)
    return entry is not None and entry.sig is not None and bool(set(entry.sig[0]) & set("awo"))


def _library(top: str, source: list[str], modules: dict[str, ModuleEntry]) -> Library:
    return Library(top, tuple(source), {**modules})


def _beside_bundled(*replacements: Library) -> Tables:
    """The bundled tables, with some of them replaced."""
    by_name = {library.name: library for library in replacements}
    return Tables(lambda top: by_name.get(top) or knowledge.load(top))


def renew_words(into: Path) -> Iterator[str]:
    """Write what words mean anew into the tables that lie there: bases of classes may be in one that was rebuilt."""
    bundled = Tables(knowledge.load)
    for top in knowledge.bundled():
        library = knowledge.load(top)
        assert library is not None
        if words_of(library, bundled) != library.words:
            write_table(into / f"{top}.json", library, bundled)
            yield f"{top:24}  what its words mean has changed"
    knowledge.load.cache_clear()


def _contradicted(surface: Surface, observed: Observed) -> Iterator[str]:
    """What is written `async def` and has become something plain in the real package."""
    for name, sig in surface.functions.items():
        if sig.is_async_def and sig.color == "a" and observed.colors.get(name) == "s":
            yield name
    for owner, cls in surface.classes.items():
        for method, sig in cls.methods.items():
            if sig.is_async_def and sig.color == "a" and observed.colors.get(f"{owner}.{method}") == "s":
                yield f"{owner}.{method}"


def stdlib_surface() -> tuple[Surface, str]:
    """The whole standard library, from the stubs that ship inside mypy, and their version."""
    stubs, version = stubs_of_mypy()
    modules: dict[str, ModuleSource] = {}
    for top in sorted({path.name.partition(".")[0] for path in stubs.iterdir()}):
        if top.isidentifier():
            modules |= read_package(stubs, top)
    for home in _LOOKERS:
        modules[home].accepts_both = True
    return read_surface(modules, Observed(), _public_names(modules)), version


def build_stdlib(into: Path) -> Iterator[str]:
    """Write one table for each public top-level module of the standard library."""
    surface, version = stdlib_surface()
    tops = {name.partition(".")[0] for name in surface.names.modules}
    public = frozenset(top for top in tops if not top.startswith("_") and top not in _NOBODYS)
    tables = make_tables(surface, public, keep_plain=True)
    libraries = [_library(top, [version], table) for top, table in tables.items()]
    total = sum(
        write_table(into / f"{library.name}.json", library, _beside_bundled(*libraries)) for library in libraries
    )
    knowledge.load.cache_clear()
    knowledge.bundled.cache_clear()
    yield f"{'stdlib':24}{version.split()[-1]:>14}{'':31}{total:9}  in {len(tables)} tables"


def _public_names(modules: dict[str, ModuleSource]) -> dict[str, str]:
    """Public names for what lives in private modules: `_asyncio.Task` is `asyncio.tasks.Task` to everybody."""
    names = Names(modules)
    renamed: dict[str, str] = {}
    for home, module in sorted(modules.items()):
        if home.startswith("_"):
            continue
        for local in module.imports:
            definition = names.attribute(home, local)
            if (
                definition is None
                or definition.kind not in {"class", "function"}
                or not definition.home.startswith("_")
            ):
                continue
            if (
                local in module.reexports
                and not local.startswith("_")
                and definition.home != "_typeshed"
                and local == definition.local
            ):
                renamed.setdefault(definition.name, f"{home}.{local}")
    return renamed
