"""The shape of facts: plain tuples that marshal writes and reads quickly, with names for their fields.

Expressions and statements are kept as nested tuples whose first item says what they are:

    ("name", id)  ("attr", base, name, at)  ("call", func, args, keywords, at)  ("await", value, at)
    ("const", type[, value])  ("index", base, key)  ("list" | "tuple" | "set", items)  ("dict", keys, values)
    ("ifexp", test, body, orelse)  ("and" | "or", values)  ("not", value)  ("compare", left, ops, others)
    ("binop", left, right, is_bitor)  ("lambda", params, body, at)  ("comp", kind, parts, generators, at)
    ("yield", value)  ("yieldfrom", value)  ("star", value)  ("fstr", values)  ("walrus", name, value)
    ("parts", values)  ("slice", values)

    ("expr", value[, at])  ("assign", targets, value)  ("annassign", target, annotation, value)
    ("augassign", target, value)  ("return", value, at)  ("if", test, body, orelse)  ("while", test, body, orelse)
    ("for", is_async, target, iter, body, orelse, at)  ("with", is_async, items, body, at)
    ("try", body, handlers, orelse, final)  ("raise", value)  ("assert", test)  ("del", targets)  ("break",)
    ("continue",)  ("import", names)  ("def", function)  ("class", number)  ("match", subject, cases)  ("scope", names)

A case of a `match` is `(class, captures, name, guard, body)`. `captures`, and the `names` of a scope, are one text with
spaces between them. What stands in a node, and what is only a tuple beside it, is known to `facts/nodes.py`.

`at` is `(line, column, end_line, end_column)`, lines from 1, columns in UTF-8 bytes from 0, as `ast` counts them.
The body of a function is kept as marshalled bytes and read only when somebody asks about that function.
"""

import marshal
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from troth.analysis.facts.checksum import opened, sealed

__all__ = [
    "ABSTRACT",
    "ASYNC",
    "FACTS_VERSION",
    "GENERATOR",
    "PARAM_ANNOTATION",
    "PARAM_DEFAULT",
    "PARAM_KIND",
    "PARAM_NAME",
    "WAITS",
    "AllFacts",
    "At",
    "ClassFacts",
    "FileFacts",
    "FunctionFacts",
    "ImportFacts",
    "Node",
    "Param",
    "body_of",
    "declares_scope",
    "speaks_of",
    "without_places",
]

FACTS_VERSION = 14

Node = tuple[Any, ...]
At = tuple[int, ...]  # four; compiled code would take a tuple of a known length apart, and put it together again

ASYNC = 1
GENERATOR = 2
WAITS = 8  # has an `await`, an `async for` or an `async with` of its own
ABSTRACT = 4  # a body that says nothing: `...`, `pass`, a docstring or `raise NotImplementedError`


class ImportFacts(NamedTuple):
    """`from module import name as local`; `name` is None for `import module`, "*" for a star."""

    scope: int  # the function it stands in; 0 is the module
    local: str
    module: str
    name: str | None
    level: int


# A parameter: name, annotation, default, kind; kind is "/", "", "*", "=" or "**" (positional only, plain, star,
# keyword only, star star). Its fields are read by these names, which compiled code replaces by their numbers.
Param = tuple[str, Node | None, Node | None, str]
PARAM_NAME: Final = 0
PARAM_ANNOTATION: Final = 1
PARAM_DEFAULT: Final = 2
PARAM_KIND: Final = 3


class FunctionFacts(NamedTuple):
    """A function, a method, or (number 0) the module itself."""

    name: str
    qualname: str
    parent: int  # the function around it, 0 for the module, -1 for the module's own entry
    owner: int  # the class whose method it is, -1 for none
    flags: int
    at: At
    params: tuple[Param, ...]
    returns: Node | None
    decorators: tuple[Node, ...]
    calls: tuple[str, ...]  # callees as written, of calls that are not awaited on the spot
    awaited: tuple[str, ...]  # callees of calls that are; "with f", "for f", "await f" for `async with f()` and so on
    keyed: tuple[str, ...]  # what is asked for a key: "user" in `user["name"]`, "await" in `(await f())[…]`, "users[]"
    taken: tuple[
        str, ...
    ]  # what plain `with`, `for` and comprehensions take: "lock", ".lock" of anything, "connect()";
    # and what their async kinds and `await` do: "with lock", "for .rows", "for rows()", "await []" for anything else,
    # "for await" for a generator with an `await` in its items
    origins: tuple[tuple[str, str], ...]  # variables bound in one way only: "a.b()", "with a.b()", "dict"
    body: bytes

    @property
    def positional(self) -> list[str]:
        """The names of the parameters that an argument reaches by its place, in order."""
        return [name for name, _, _, kind in self.params if kind in {"", "/"}]


class ClassFacts(NamedTuple):
    """A class with what its body and its methods say about its attributes."""

    name: str
    qualname: str
    parent: int  # the function around it
    outer: int  # the class around it, -1 for none
    at: At
    bases: tuple[Node, ...]
    decorators: tuple[Node, ...]
    methods: tuple[tuple[str, tuple[int, ...]], ...]
    annotations: tuple[tuple[str, Node], ...]
    values: tuple[tuple[str, Node], ...]
    self_attributes: tuple[tuple[str, int, Node | None, Node | None], ...]  # name, function, annotation, value


class FileFacts(NamedTuple):
    """All that one file says."""

    imports: tuple[ImportFacts, ...]
    functions: tuple[FunctionFacts, ...]
    classes: tuple[ClassFacts, ...]
    variables: tuple[tuple[str, Node | None, Node | None], ...]  # module level: name, annotation, value
    exports: tuple[str, ...] | None  # __all__, where it is a list; `*` for what is not written out in it
    mentions: tuple[str, ...] = ()  # names and attributes that stand somewhere as a value, not only as a callee

    def pack(self) -> bytes:
        """These facts as bytes."""
        parts: tuple[Any, ...] = (
            tuple(map(tuple, self.imports)),
            tuple(map(tuple, self.functions)),
            tuple(map(tuple, self.classes)),
            self.variables,
            self.exports,
            self.mentions,
        )
        return sealed(marshal.dumps(parts))

    @classmethod
    def unpack(cls, packed: bytes) -> "FileFacts":
        """The facts that `pack` wrote; `DamagedError` for anything else."""
        imports, functions, classes, variables, exports, mentions = marshal.loads(opened(packed))  # noqa: S302  our own
        make: Any = tuple.__new__  # what `_make` calls behind two functions of its own
        return cls(
            tuple([make(ImportFacts, i) for i in imports]),
            tuple([make(FunctionFacts, f) for f in functions]),
            tuple([make(ClassFacts, c) for c in classes]),
            variables,
            exports,
            mentions,
        )


class AllFacts(Mapping[str, FileFacts]):
    """The facts of many files by their path; those that came packed are read when somebody asks for them."""

    def __init__(self, facts: Mapping[str, "FileFacts | bytes"]) -> None:
        self._facts = dict(facts)
        self._read: dict[str, FileFacts] = {}

    def __getitem__(self, path: str) -> FileFacts:
        facts = self._read.get(path)
        if facts is None:
            packed = self._facts[path]
            facts = self._read[path] = packed if isinstance(packed, FileFacts) else FileFacts.unpack(packed)
        return facts

    def raw(self, path: str) -> "FileFacts | bytes":
        """The facts as they came, packed or not: what came packed need not be packed again."""
        return self._facts[path]

    def known(self, path: str) -> "FileFacts | bytes":
        """The facts as they are now, read or not."""
        return self._read.get(path) or self._facts[path]

    def __contains__(self, path: object) -> bool:
        return path in self._facts

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)


_PLACE = re.compile(r"\(\d+, \d+, \d+, \d+\)")


def without_places(value: object) -> str:
    """Facts as text, without the places they stand at."""
    return _PLACE.sub("@", repr(value))


def speaks_of(function: FunctionFacts, names: Iterable[str]) -> bool:
    """Whether one of `names` stands somewhere in the body of `function`; it is not read for that."""
    body = function.body
    for name in names:  # noqa: SIM110  most functions of a project are asked, and a generator costs as much as the look
        if _written(name) in body:
            return True
    return False


def declares_scope(function: FunctionFacts) -> bool:
    """Whether a `global` or `nonlocal` may stand in `function`; its body is not read for that."""
    return _written("scope") in function.body


@cache
def _written(name: str) -> bytes:
    """A name as marshal writes it, once in a body: behind its length, so that it is not found in a longer one."""
    data = name.encode()
    return bytes((len(data),)) + data if name.isascii() and len(data) < 256 else data


def body_of(function: FunctionFacts) -> tuple[Node, ...]:
    """The statements of `function`."""
    body: tuple[Node, ...] = marshal.loads(function.body)  # noqa: S302  our own bytes
    return body
