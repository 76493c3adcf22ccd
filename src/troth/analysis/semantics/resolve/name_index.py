"""Find who of a project says a name: calls it, defines it, derives from it, is decorated with it, mentions it.

Each of these is a table, made in one look through all files when the first question comes, or taken from an earlier
run; a place in it is the number of the file and that of the function or class in one. Whoever asks is noted as a reader
of what all files say under that name; `said` gives what one file says under each, so that two versions of it can be
compared.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from troth.analysis.facts.fields import ASSIGN_TARGETS, KIND, NAME_ID
from troth.analysis.facts.model import ASYNC, GENERATOR, PARAM_NAME, body_of
from troth.analysis.facts.names import class_keys, decorator_name, function_keys, last_name
from troth.analysis.facts.nodes import of_kind
from troth.analysis.incremental.dependencies import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from troth.analysis.facts.model import ClassFacts, FileFacts, FunctionFacts, Param
    from troth.analysis.semantics.resolve.project_files import ProjectFiles
    from troth.analysis.semantics.symbols import Class, Function

__all__ = ["AWAITING", "Index", "called_in", "gives_to_awaiter", "receiver_in", "said"]

AWAITING = frozenset(
    {"wait_for", "shield", "create_task", "ensure_future", "gather", "start_soon", "run_until_complete"}
)
_PUTTING = frozenset({"append", "add", "appendleft"})
_ANY = "?"  # a base that is no name: what it means only a look at it can tell
_BITS = 20  # for the number of a function or class in its file
_WITHIN = (1 << _BITS) - 1


class Index:
    """Functions, classes and files by the names they say."""

    def __init__(self, program: ProjectFiles) -> None:
        self._program = program
        self._tables: dict[str, dict[str, list[Any]]] = {}
        self._since: dict[str, dict[str, list[Any]]] = {}

    def _look(self, kind: str, name: str) -> list[Any]:
        """What files say under a name, in the order of files."""
        program = self._program
        if program.reads is not None:
            program.reads.log.append((kind, name))
        table = self._tables.get(kind)
        if table is None:
            table = self._tables[kind] = self._made(kind)
        answer = table.get(name, ())
        since = self._since.get(kind)
        if since is None:
            return list(answer)
        assert program.tables is not None
        changed = program.tables.since
        return sorted([*(entry for entry in answer if _file(entry) not in changed), *since.get(name, ())])

    def _made(self, kind: str) -> dict[str, list[Any]]:
        tables = self._program.tables
        by_name: dict[str, list[Any]] | None = None if tables is None else tables.get(f"index {kind}")
        if by_name is None or tables is None:
            return _table(kind, self._program.all_facts())
        now = ((number, facts) for number, (_, facts) in tables.since.items() if facts is not None)
        self._since[kind] = _table(kind, now)
        return by_name

    def make_ready(self) -> None:
        """Make the tables that take longest, all of which are asked for by rules that are on by default."""
        for kind in _ASKED_FOR:
            if kind not in self._tables:
                self._tables[kind] = self._made(kind)

    def tables(self) -> dict[str, dict[str, list[Any]]]:
        """The tables that were made from all facts, for the next run."""
        return {kind: table for kind, table in self._tables.items() if kind not in self._since}

    def functions_naming(self, names: Iterable[str]) -> Iterator[Function]:
        """The functions in which a callee's last name is one of `names`, in the order of files."""
        places: set[int] = set()
        for name in names:
            places.update(self._look("calls", name))
        return self._functions(sorted(places))

    def called_names(self) -> Collection[str]:
        """The last names of all that is called."""
        if self._program.reads is not None:
            self._program.reads.log.append(EVERYTHING)
        if "calls" not in self._tables:
            self._tables["calls"] = self._made("calls")
        return self._tables["calls"].keys() | self._since.get("calls", {}).keys()

    def functions_named(self, name: str) -> list[Function]:
        """The functions and methods that are called `name`."""
        return list(self._functions(self._look("defs", name)))

    def functions_calling_on(self, receiver: str) -> Iterator[Function]:
        """The functions that call a method of something whose last name is `receiver`."""
        return self._functions(self._look("receivers", receiver))

    def plain_callers(self, name: str) -> Iterator[Function]:
        """The sync functions, no generators and not decorated, that call something of that last name."""
        return self._functions(caller[0] for caller in self._look("plain calls", name))

    def names_of_plain_callers(self, name: str) -> set[str]:
        """Their names alone."""
        return {caller[1] for caller in self._look("plain calls", name)}

    def constructors_of(self, name: str) -> list[Function]:
        """The `__init__` of each class that is called `name`."""
        return list(self._functions(self._look("inits", name)))

    def decorated_with(self, name: str) -> list[Function]:
        """The functions with a decorator whose last name is `name`."""
        return list(self._functions(self._look("decorated", name)))

    def functions_annotated(self, name: str) -> list[Function]:
        """The functions with a parameter that is annotated with something of that last name."""
        return list(self._functions(self._look("annotated", name)))

    def may_await_parameters(self, name: str) -> list[Function]:
        """The functions and constructors of that name that may await what a parameter gives, or whose class may."""
        return list(self._functions(dict.fromkeys(self._look("awaiting", name))))

    def is_awaited(self, name: str) -> bool:
        """Whether some function calls and awaits something of that name."""
        return bool(self._look("awaited", name))

    def classes_based_on(self, name: str) -> Iterator[Class]:
        """The classes that have a base of that last name, or one that is no name."""
        return self._classes([*self._look("bases", name), *self._look("bases", _ANY)])

    def other_names(self, name: str) -> set[str]:
        """The names under which something called `name` is imported or assigned somewhere."""
        return {alias[1] for alias in self._look("aliases", name)}

    def classes_like(self, word: str) -> list[Class]:
        """The classes at module level that are called `word`, whatever their case and underscores."""
        return list(self._classes(self._look("convention", word)))

    def is_data(self, name: str) -> bool:
        """Whether some class keeps data under that name."""
        return bool(self._look("data", name))

    def classes_keeping(self, name: str) -> list[Class]:
        """The classes that keep data under that name."""
        program = self._program
        modules = [program.module(program.paths[_file(place)]) for place in self._look("data", name)]
        return [
            module.cls(number)
            for module in modules
            for number, facts in enumerate(module._facts.classes)
            if name in set(_kept(facts))
        ]

    def files_mentioning(self, names: Iterable[str]) -> list[str]:
        """The files in which one of `names` stands as a value, not only as a callee."""
        places = {_file(place) for name in names for place in self._look("mentions", name)}
        return [self._program.paths[number] for number in sorted(places)]

    def _functions(self, places: Iterable[int]) -> Iterator[Function]:
        program = self._program
        for place in places:
            yield program.module(program.paths[place >> _BITS]).function(place & _WITHIN)

    def _classes(self, places: Iterable[int]) -> Iterator[Class]:
        program = self._program
        for place in places:
            yield program.module(program.paths[place >> _BITS]).cls(place & _WITHIN)


def _file(one: Any) -> int:
    place: int = one if isinstance(one, int) else one[0]
    return place >> _BITS


def _table(kind: str, files: Iterable[tuple[int, FileFacts]]) -> dict[str, list[Any]]:
    by_name: dict[str, list[Any]] = {}
    say = _SAYING[kind]
    for number, file in files:
        for name, entry in say(file, number << _BITS):
            by_name.setdefault(name, []).append(entry)
    return by_name


# -- what one file says; `start` is the place of its first function or class ---------------------------------------


def _calls(file: FileFacts, start: int) -> Iterator[tuple[str, int]]:
    for place, f in enumerate(file.functions, start):
        for name in called_in(f):
            yield name, place


def _receivers(file: FileFacts, start: int) -> Iterator[tuple[str, int]]:
    for place, f in enumerate(file.functions, start):
        names: set[str] = set()
        for callees in (f.calls, f.awaited):
            for callee in callees:
                if "." in callee:
                    names.add(receiver_in(callee))
        for name in names:
            if name:
                yield name, place


def receiver_in(callee: str) -> str:
    """The last name of the object whose method a callee is; empty where there is none."""
    return "" if " " in callee else callee.rpartition(".")[0].rpartition(".")[2]


def _plain_calls(file: FileFacts, start: int) -> Iterator[tuple[str, tuple[int, str]]]:
    for place, f in enumerate(file.functions, start):
        if f.calls and not (f.flags & (ASYNC | GENERATOR) or f.decorators):
            caller = (place, f.name)
            for name in {callee.rpartition(".")[2] for callee in f.calls}:
                yield name, caller


def _defs(file: FileFacts, start: int) -> Iterator[tuple[str, int]]:
    for place, f in enumerate(file.functions, start):
        yield f.name, place


def _decorated(file: FileFacts, start: int) -> Iterator[tuple[str, int]]:
    for place, f in enumerate(file.functions, start):
        for decorator in f.decorators:
            yield decorator_name(decorator), place


def _annotated(file: FileFacts, start: int) -> Iterator[tuple[str, int]]:
    for place, f in enumerate(file.functions, start):
        for name in {last_name(annotation) for _, annotation, _, _ in f.params if annotation is not None}:
            if name:
                yield name, place


def _awaited(file: FileFacts, start: int) -> Iterator[tuple[str, int]]:
    for name in {callee.rpartition(".")[2] for f in file.functions for callee in f.awaited}:
        yield name, start


def _awaiting(file: FileFacts, start: int) -> Iterator[tuple[str, int]]:
    """Functions by name, constructors by their class too, that seem to await what calling a parameter gives."""
    for place, f in enumerate(file.functions, start):
        if not f.params and f.parent <= 0:
            continue
        is_kept = f.name == "__init__" and f.owner >= 0 and _awaits_kept(file, place - start)
        if is_kept:
            yield file.classes[f.owner].name, place
        if is_kept or _awaits_one(f.params, f):
            yield f.name, place
        if f.parent > 0:  # what a function inside awaits may be a parameter of the one around
            around = file.functions[f.parent]
            if _awaits_one(around.params, f):
                yield around.name, start + f.parent


def _awaits_one(params: tuple[Param, ...], f: FunctionFacts) -> bool:
    names = [param[PARAM_NAME] for param in params]
    return any(name in f.awaited for name in names) or (any(name in f.calls for name in names) and gives_to_awaiter(f))


def _awaits_kept(file: FileFacts, index: int) -> bool:
    """Whether a constructor keeps a parameter that its class seems to await, by the name of the attribute.

    What is kept in a collection is awaited as one of its items, or as the variable of a loop.
    """
    init = file.functions[index]
    cls = file.classes[init.owner]
    params = {param[PARAM_NAME] for param in init.params}
    attributes = {
        attribute
        for attribute, setter, _, value in cls.self_attributes
        if setter == index and value is not None and value[KIND] == "name" and value[NAME_ID] in params
    }
    inside = f"{cls.qualname}."
    has_items = False
    for f in file.functions:
        if not f.qualname.startswith(inside):
            continue
        for callee in (*f.awaited, *f.calls) if gives_to_awaiter(f) else f.awaited:
            _, dot, name = callee.rpartition(".")
            if dot and name in attributes:
                return True
            has_items = has_items or not dot
    return has_items and _collects(init)


def _collects(f: FunctionFacts) -> bool:
    """Whether a function puts something into a collection."""
    if any("." in callee and callee.rpartition(".")[2] in _PUTTING for callee in f.calls):
        return True
    assigns = of_kind(body_of(f), "assign")
    return any(target[KIND] == "index" for assign in assigns for target in assign[ASSIGN_TARGETS])


def gives_to_awaiter(f: FunctionFacts) -> bool:
    """Whether a function calls something that may await what else it calls: `wait_for(f(), 1)`."""
    return any(callee.rpartition(".")[2] in AWAITING for callee in (*f.calls, *f.awaited))


def _inits(file: FileFacts, start: int) -> Iterator[tuple[str, int]]:
    for c in file.classes:
        for name, indexes in c.methods:
            if name == "__init__":
                yield c.name, start + indexes[-1]


def _bases(file: FileFacts, start: int) -> Iterator[tuple[str, int]]:
    for place, c in enumerate(file.classes, start):
        for base in c.bases:
            node = base[1] if base[0] == "index" else base
            yield node[1] if node[0] == "name" else node[2] if node[0] == "attr" else _ANY, place


def _aliases(file: FileFacts, start: int) -> Iterator[tuple[str, tuple[int, str]]]:
    for imported in file.imports:
        if imported.name is not None and imported.local != imported.name:
            yield imported.name, (start, imported.local)
    for name, _, value in file.variables:
        if value is not None and value[0] in {"name", "attr"}:
            yield value[1 if value[0] == "name" else 2], (start, name)


def _convention(file: FileFacts, start: int) -> Iterator[tuple[str, int]]:
    for place, c in enumerate(file.classes, start):
        if c.parent == 0:
            yield c.name.strip("_").lower(), place


def _data(file: FileFacts, start: int) -> Iterator[tuple[str, int]]:
    for name in {name for c in file.classes for name in _kept(c)}:
        yield name, start


def _mentions(file: FileFacts, start: int) -> Iterator[tuple[str, int]]:
    for name in file.mentions:
        yield name, start


_SAYING: dict[str, Callable[[FileFacts, int], Iterator[tuple[str, Any]]]] = {
    "calls": _calls,
    "receivers": _receivers,
    "plain calls": _plain_calls,
    "defs": _defs,
    "decorated": _decorated,
    "annotated": _annotated,
    "awaited": _awaited,
    "awaiting": _awaiting,
    "inits": _inits,
    "bases": _bases,
    "aliases": _aliases,
    "convention": _convention,
    "data": _data,
    "mentions": _mentions,
}
_ASKED_FOR = ("calls", "awaiting", "receivers", "plain calls", "annotated", "mentions", "defs")
_OF_CLASSES = frozenset({"bases", "convention"})
_OF_FILES = frozenset({"awaited", "data", "mentions"})


def called_in(f: FunctionFacts) -> set[str]:
    """The last names of all that a function calls."""
    names = {callee.rpartition(".")[2] for callee in f.calls}
    for callee in f.awaited:
        names.add(callee.rpartition(".")[2] if "." in callee else callee.rpartition(" ")[2])
    return names


def _kept(c: ClassFacts) -> Iterator[str]:
    for name, _ in c.annotations:
        yield name
    for name, _, _, _ in c.self_attributes:
        yield name


def said(file: FileFacts) -> dict[tuple[str, str], list[Any]]:
    """What a file adds under each name, by the kind of question; where it stands in the file does not matter."""
    functions, classes = function_keys(file), class_keys(file)
    entries: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for kind, say in _SAYING.items():
        keys = classes if kind in _OF_CLASSES else functions
        for name, entry in say(file, 0):
            if kind == "aliases":
                entries[kind, name].append(entry[1])
            elif kind in _OF_FILES:
                entries[kind, name].append("")
            else:
                entries[kind, name].append(keys[entry if isinstance(entry, int) else entry[0]])
    return entries
