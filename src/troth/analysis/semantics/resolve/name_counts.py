"""Count what all files say of a name: how it is defined, and where it is awaited.

These are facts, and no judgement: what follows from them for a call whose callee is unknown is decided by
`semantics/evidence/judge.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from troth.analysis.project.test_files import is_test

if TYPE_CHECKING:
    from collections.abc import MutableMapping, MutableSet

    from troth.analysis.facts.model import FunctionFacts
    from troth.analysis.incremental.counters import Holders
    from troth.analysis.semantics.resolve.project_files import ProjectFiles

__all__ = ["NameCounts", "counted", "tail"]

_DEFINITION = re.compile(r"^[ \t]*(async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)
_COUNTED = (
    "asynchronous",
    "methods",
    "rehearsed",
    "owners",
    "plain",
    "places",
    "generators",
    "_remote",
    "awaited_twice",
    "awaited_here",
    "awaited_names",
    "awaited_places",
)


class NameCounts:
    """The definitions and the awaits of the whole project, by name."""

    def __init__(self, program: ProjectFiles | None) -> None:
        """Without a program, only what one file says can be counted."""
        if program is not None:
            self._program = program
        self.asynchronous: Counter[str] = Counter()
        self.methods: Counter[str] = Counter()  # of the async ones, those that a class has
        self.rehearsed: Counter[str] = Counter()  # of these, the ones in tests and in functions: fakes and examples
        self.owners: MutableMapping[str, set[str]] = {}  # the classes that have them, in lower case
        self.plain: Counter[str] = Counter()
        self._unread: set[str] = set()  # of these, the ones in files that could not be read
        self.places: MutableMapping[str, tuple[str, int]] = {}
        self.generators: MutableSet[str] = set()  # names of async generators: calling one gives no coroutine
        self._remote: MutableSet[str] = set()  # a `__getattr__` makes async methods of any name: `await rpc.anything()`
        self.awaited_twice: MutableSet[str] = set()  # functions whose result is awaited as well
        self.awaited_here: Counter[tuple[str, str]] = Counter()  # by the place where the words mean the same
        self.awaited_names: Counter[str] = Counter()
        self.awaited_places: MutableMapping[str, tuple[str, int]] = {}
        self._bodied: MutableMapping[str, bool] = {} if program is None else program.answers()

    def count(self, path: str, functions: tuple[tuple[object, ...], ...]) -> None:
        """Take in what one file says."""
        for f in functions:
            parent = cast("int", f[2])
            if f[4] & 1 and parent > 0 and functions[parent][0] == "__getattr__":  # type: ignore[operator]
                self._remote.add("")
            name, flags, at, awaited = f[0], f[4], f[5], f[10]
            if flags & 1:  # type: ignore[operator]
                if flags & 2:  # type: ignore[operator]
                    self.generators.add(name)  # type: ignore[arg-type]
                self.asynchronous[name] += 1  # type: ignore[index]
                if f[3] != -1:
                    self.methods[name] += 1  # type: ignore[index]
                    if is_test(path) or parent:
                        self.rehearsed[name] += 1  # type: ignore[index]
                    owner = f[1].rpartition(".")[0].rpartition(".")[2]  # type: ignore[attr-defined]
                    self.owners.setdefault(name, set()).add(owner.lower())  # type: ignore[arg-type]
                self.places.setdefault(name, (path, at[0]))  # type: ignore[arg-type, index]
            else:
                self.plain[name] += 1  # type: ignore[index]
            for callee in awaited:  # type: ignore[attr-defined]
                if " " in callee:
                    if callee.startswith("await "):
                        self.awaited_twice.add(callee.rpartition(".")[2].rpartition(" ")[2])
                    continue
                self._count_await(path, f, functions, callee)

    def _count_await(self, path: str, f: Any, functions: Any, callee: str) -> None:
        """Take in that `f` awaits `callee`."""
        key = tail(callee)
        self.awaited_here[_home(path, f, functions, callee), callee] += 1
        self.awaited_names[key.rpartition(".")[2]] += 1
        self.awaited_places.setdefault(key, (path, f[5][0]))

    def count_unread(self, text: str) -> None:
        """Take in what the words of a file say that could not be read: of its definitions no more than their colors."""
        for is_async, name in _DEFINITION.findall(text):
            if is_async:
                self.asynchronous[name] += 1
            else:
                self.plain[name] += 1
                self._unread.add(name)

    def holders(self) -> Holders:
        """What is counted."""
        return ((self, _COUNTED),)

    @property
    def has_remote_objects(self) -> bool:
        """Whether a `__getattr__` makes async methods of any name."""
        return "" in self._remote

    def colors(self, name: str) -> tuple[int, int]:
        """How many definitions of that name are async, and how many are not."""
        return self.asynchronous[name], self.plain[name]

    def has_shapes(self, name: str) -> bool:
        """Whether calls of that name may give several things: sync and async definitions, or async generators too."""
        return (self.asynchronous[name] > 0 and self.plain[name] > 0) or name in self.generators

    def is_plain_somewhere(self, name: str) -> bool:
        """Whether a function of that name is plain, other than a method that only declares what subclasses have.

        The interfaces of many projects are plain, and all that implements them is `async def`.
        """
        if not self.plain[name]:
            return False
        if not self.asynchronous[name] or name in self._unread:
            return True
        answer = self._bodied.get(name)
        if answer is None:
            answer = self._bodied[name] = any(
                not (f.is_async or (f.is_abstract and f.decorated_with("abstractmethod")))
                for f in self._program.index.functions_named(name)
            )
        return answer

    def is_awaited(self, name: str) -> bool:
        """Whether a callee of that last name is awaited anywhere."""
        return self.awaited_names[name] > 0

    def async_names(self) -> set[str]:
        """Names with at least one async definition, and names that are awaited somewhere."""
        return set(self.asynchronous) | set(self.awaited_names)


def counted(path: str, functions: tuple[FunctionFacts, ...]) -> NameCounts:
    """What one file alone says."""
    alone = NameCounts(None)
    alone.count(path, functions)
    return alone


def tail(callee: str) -> str:
    """The last two names of a callee: the receiver as it is called, and the method."""
    parts = callee.split(".")
    return ".".join(parts[-2:])


def _home(path: str, f: Any, functions: Any, callee: str) -> str:
    """The place in which the same words mean the same object: the file, or for `self` the class."""
    if not callee.startswith(("self.", "cls.")):
        return path
    while f[3] == -1 and f[2] > 0:
        f = functions[f[2]]
    return f"{path} {f[1].rpartition('.')[0] if f[3] != -1 else ''}"
