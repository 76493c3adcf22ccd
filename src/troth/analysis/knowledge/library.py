"""What the table of one top-level package holds, and reads it when it is asked for.

A type is written as an expression with fully qualified names: `aiohttp.client.ClientSession`, `list[x.Y]`,
`x.Y | None`, `collections.abc.Callable[..., x.Y]`; builtins stand bare (`str`, `None`), `typing.Self` is the class of
the receiver, `""` is not known. A name of the same package is always in the same table; a name of another package is
looked for in that package's own table, and is a plain word where there is none.

In the repository a table is JSON that a person can read and compare (`tables/NAME.json`): what it was read from
(`source`), its `modules`, and which words of them mean what (`words`). A wheel carries the same as lines of JSON under
zlib (`tables/NAME.z`, packed by `hatch_build.py`): a first one with all but the modules, then one for each module,
parsed when somebody asks for that module.
"""

import json
import zlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, TypedDict

__all__ = ["Attributes", "ClassEntry", "Library", "ModuleEntry", "Role", "Roles", "Sig", "Word", "bundled", "load"]

Role = Literal["consumes", "coroutine_function", "plain_function", "either"]
Roles: TypeAlias = dict[str, Role]
"""What a parameter does with what it is given, by position (`"0"`, not counting `self`), name, or `"*"` for all
positions from there on. `consumes`: awaits or keeps an awaitable. The others: which color a function may have."""

Attributes: TypeAlias = dict[str, str]

Sig: TypeAlias = tuple[str, str, Roles]
"""`(flags, returns, roles)`; a JSON list on disk and in memory.

flags:
    a  calling gives a coroutine; `returns` is what awaiting it gives
    g  calling gives an async iterator; `returns` is that iterator, `collections.abc.AsyncIterator[X]`
    w  calling gives another awaitable: a Future, a Task, an object with `__await__`; `returns` is that object
    m  calling gives an async context manager; `returns` is that manager
    o  gives an awaitable or not, depending on arguments or on the class it is called on
    The method `__await__` is written with what awaiting the object gives.
    p  property: reading it is the call          c  classmethod          s  staticmethod
No color flag: a sync function, `returns` is what it returns.
"""

Word = Literal["p", "c", "e", "m", "t", "s", "r", "o"]
"""What a word means somewhere in a package, whatever class or module it stands in:
    p  calling it gives an awaitable of any kind: flag a, g, m or w
    c  calling it gives a coroutine
    e  it is a class whose objects only `async` can enter or loop over, or gives such an object
    m  a method that gives a coroutine, and nothing else in any class of the package
    t  one of those that only classes have which are called async: `AsyncClient` beside a plain `Client`
    s  a method that gives no awaitable
    r  a property that gives a coroutine
    o  a method that gives an awaitable or not (flag o): what it does is done without being awaited
"""


class ClassEntry(TypedDict, total=False):
    """One class. A nested one is named `Outer.Inner`."""

    b: list[str]
    """Fully qualified bases, in order; `object` is left out."""
    m: dict[str, Sig]
    """Methods and properties defined by the class itself; inherited ones are found through `b`."""
    a: Attributes
    """Types of attributes that are not properties."""
    s: int
    """1: nothing about it is async; its methods were left out and all of them are plain."""


class ModuleEntry(TypedDict, total=False):
    """One module. Absent keys are empty."""

    f: dict[str, Sig]
    c: dict[str, ClassEntry]
    x: dict[str, str]
    """Re-exports: the name here, and the fully qualified name of the class, function or module it stands for."""
    v: Attributes
    """Types of module variables."""
    s: str
    """Names of sync functions that lead to nothing async, separated by spaces."""


@dataclass(frozen=True, slots=True)
class Library:
    """What is known of one top-level package."""

    name: str
    source: tuple[str, ...]
    """What it was read from: `aiohttp 3.14.5`."""
    modules: dict[str, ModuleEntry | str]
    """By their names; one that nobody has asked for yet as its line of JSON."""
    words: dict[str, str] = field(default_factory=dict)
    """The words that mean the same, separated by spaces, by the letters of all that they mean."""

    def module(self, home: str) -> ModuleEntry | None:
        """What is known of one module; None where nothing is."""
        module = self.modules.get(home)
        if isinstance(module, str):
            parsed: ModuleEntry = json.loads(module)
            self.modules[home] = module = parsed
        return module

    def meaning(self, word: Word) -> frozenset[str]:
        """All words of the package that mean this."""
        return frozenset(name for letters, words in self.words.items() if word in letters for name in words.split(" "))


_TABLES = Path(__file__).parent / "tables"


@cache
def load(top_level: str) -> Library | None:
    """The table of the package `top_level`, or None where nothing is bundled. Read once and kept."""
    if not top_level.isidentifier():
        return None
    try:
        packed = (_TABLES / f"{top_level}.z").read_bytes()
    except FileNotFoundError:
        return _load_text(top_level)
    head, *lines = zlib.decompress(packed).decode("ascii").split("\n")
    table = json.loads(head)
    return Library(top_level, tuple(table["source"]), dict(zip(table["modules"], lines, strict=True)), table["words"])


def _load_text(top_level: str) -> Library | None:
    try:
        table = json.loads((_TABLES / f"{top_level}.json").read_bytes())
    except FileNotFoundError:
        return None
    return Library(top_level, tuple(table["source"]), table["modules"], table["words"])


@cache
def bundled() -> tuple[str, ...]:
    """The top-level packages that have a table, in alphabetical order."""
    return tuple(sorted({path.stem for path in _TABLES.iterdir() if path.suffix in {".json", ".z"}}))
