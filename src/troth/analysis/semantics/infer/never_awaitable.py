"""Decide whether what a function returns can certainly not be awaited."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import CALL_FUNC, KIND, NAME_ID
from troth.analysis.facts.names import callee_text, decorator_name, last_name
from troth.analysis.facts.nodes import words_of
from troth.analysis.knowledge.semantics import semantics
from troth.analysis.semantics.infer.identity_functions import returned
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.library import LibraryClass, LibraryFunction
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import (
    Builtin,
    Coroutine,
    External,
    FunctionValue,
    Instance,
    Nothing,
    Table,
    TupleOf,
    Union,
    members_of,
)

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.values import Value

__all__ = [
    "AWAITABLE_NAME",
    "gives_a_result_sometimes",
    "gives_no_awaitable",
    "is_harmless",
    "is_no_awaitable",
    "keeps_color",
    "library_gives_no_awaitable",
    "mentions_awaitable",
    "never_awaitable",
]

_HARMLESS = frozenset({"staticmethod", "classmethod", "override", "final"})
_OF_COLORS = re.compile(r"(?i)async|sync|coro|await|future|task|defer")
_AWAITABLES = ("Awaitable", "Coroutine", "Future", "Task", "Deferred")
_CALLED_AWAITABLE = re.compile(r"Promise|Future|Deferred|Awaitable|Task")
_PROMISING = frozenset("agmow")  # flags of library functions whose result may be awaited, or whose color is open

# Modules of the standard library of which no function gives anything that can be awaited.
_WITHOUT_AWAITABLES = frozenset(
    {"base64", "csv", "datetime", "glob", "hashlib", "html", "json", "math", "os", "pathlib", "pickle", "random", "re"}
    | {"shutil", "statistics", "string", "struct", "subprocess", "tempfile", "textwrap", "time", "uuid", "zlib"}
    | {"builtins", "genericpath", "posixpath", "ntpath", "logging", "platform", "secrets", "binascii", "itertools"}
)
# Libraries whose tables tell of every method what color it has: one without a mark gives no awaitable.
_READ_WHOLE = frozenset({"asyncio", "aiohttp", "anthropic", "httpx", "openai", "pymongo", "sqlalchemy"})
_BUILTIN_TYPES: dict[str, type] = {
    kind.__name__: kind
    for kind in (str, bytes, bytearray, int, float, complex, bool, dict, list, set, frozenset, tuple)
}
_GIVING_ITEMS = frozenset({"get", "pop", "popitem", "setdefault", "copy", "__getitem__"})
# These hand on whatever they are given or find.
_HANDING_ON = ("anext", "aiter", "getattr", "next", "super", "eval", "min", "max", "sum")
_OPEN = frozenset(f"builtins.{name}" for name in _HANDING_ON)


def gives_no_awaitable(program: Inference, function: Function) -> bool:
    """Whether calling this sync function gives something that `await` refuses.

    False where anything is left open: an unknown decorator, a body that says nothing, a result nobody can tell.
    """
    if function.is_async or any(
        not is_harmless(program, function, decorator) for decorator in function.facts.decorators
    ):
        return False
    if function.is_generator:
        return True
    if function.is_abstract or program.effects.of(function) != "plain":
        return False
    returns = function.facts.returns
    if returns is not None:
        declared = program.types.annotated(returns, function.module, function.parent, function.owner)
        if declared is not None:
            return is_no_awaitable(declared, program) and not _may_hand_on_an_awaitable(program, function)
        if mentions_awaitable(returns, _AWAITABLES):
            return False
    body = function.body()
    if next(returned(body), None) is None:
        return bool(body[-1][KIND] != "raise")  # one that never comes back gives nothing at all
    return is_no_awaitable(program.inferred(function), program)


def _may_hand_on_an_awaitable(program: Inference, function: Function) -> bool:
    """Whether the body may return an awaitable, whatever the annotation says.

    `def size(self) -> int: return self.execute("SIZE")` is often shared by a plain and an async client.
    """
    inferred = members_of(program.inferred(function))
    if any(isinstance(m, Coroutine) for m in inferred) or _casts_an_awaitable(program, function):
        return True
    if any(m is None or isinstance(m, External) for m in inferred):
        scope = program.static(function.module, function)
        return any(
            node[KIND] in {"name", "ifexp"}
            or (node[KIND] == "call" and not _is_evident(program, scope.value(node[CALL_FUNC])))
            for node in returned(function.body())
        )
    return False


def _casts_an_awaitable(program: Inference, function: Function) -> bool:
    """`return cast(Future, loop.run_in_executor(…))`: what is cast may well be awaited, whatever it is called."""
    for node in returned(function.body()):
        kind, *parts = node
        if kind != "call":
            continue
        callee, arguments, *_ = parts
        if last_name(callee) == "cast" and len(arguments) == 2:
            _, value = arguments
            if not is_no_awaitable(program.static(function.module, function).value(value), program):
                return True
    return False


def _is_evident(program: Inference, callee: Value | None) -> bool:
    """Whether what is called is a library's function that gives no awaitable."""
    function = callee.function if isinstance(callee, FunctionValue) else None
    return isinstance(function, LibraryFunction) and library_gives_no_awaitable(program, function)


def gives_a_result_sometimes(program: Inference, function: Function) -> bool:
    """Whether a sync function gives a number, a text or a collection on one of its paths, and an awaitable on none.

    What it gives on the others may be unknown: whoever awaits it fails on that one path at least.
    """
    if function.is_async or function.is_generator or function.is_abstract or program.effects.of(function) != "plain":
        return False
    if any(not is_harmless(program, function, decorator) for decorator in function.facts.decorators):
        return False
    returns = function.facts.returns
    if returns is not None and mentions_awaitable(returns, _AWAITABLES):
        return False
    words = [param[0] for param in function.facts.params] + list(function.facts.calls)
    if any(_OF_COLORS.search(word) for word in words):
        return False  # it may give the one or the other
    if any(node[KIND] == "name" and node[NAME_ID] in function.params for node in returned(function.body())):
        return False  # it gives back what it is given, which may be an awaitable
    resolved = [member for member in members_of(program.inferred(function)) if member is not None]
    return any(isinstance(member, Builtin | TupleOf | Table) for member in resolved) and all(
        is_no_awaitable(member, program) for member in resolved
    )


def library_gives_no_awaitable(program: Inference, function: LibraryFunction) -> bool:
    """Whether a function of a library gives a builtin object, or nothing, or its whole module knows no awaitables."""
    if _PROMISING & set(function.flags) or program.majors_behind(function.qualname.partition(".")[0]) > 0:
        return False
    top, _, tail = function.qualname.partition(".")
    if top in _READ_WHOLE:
        return True
    if not function.returns:
        if top == "builtins" and "." in tail:
            return _is_of_builtins(*tail.split(".", 1))
        return top in _WITHOUT_AWAITABLES and function.qualname not in _OPEN and not function.roles
    result = program.types.written(function.returns)
    members = members_of(result)
    return all(isinstance(m, Builtin | TupleOf | Nothing) for m in members) and is_no_awaitable(result, program)


def _is_of_builtins(kind: str, name: str) -> bool:
    """Whether a method of a builtin type gives something that it made itself, rather than what it holds."""
    return kind in _BUILTIN_TYPES and name not in _GIVING_ITEMS and hasattr(_BUILTIN_TYPES[kind], name)


def is_no_awaitable(value: Value | None, program: Inference) -> bool:
    """Whether every alternative of `value` is known, and none can be awaited."""
    return all(isinstance(m, Nothing) or (m is not None and _is_result(m, program)) for m in members_of(value))


def _is_result(value: Value, program: Inference) -> bool:
    if isinstance(value, Instance) and isinstance(value.cls, LibraryClass):
        if value.cls.name == "AsyncMock":
            return False  # a function annotated with one gives whatever a call of it gives
        # Of another version than the one that is asked for, an object may well be another.
        behind = program.majors_behind(value.cls.qualified.partition(".")[0])
        return behind <= 0 and never_awaitable(value, program)
    if isinstance(value, Instance) and isinstance(value.cls, Class):
        order = program.classes.order(value.cls)  # a base in the tables would tell of its `__await__`
        if None in order or any(ancestor is not None and _can_be_awaited(ancestor) for ancestor in order):
            return False
        # What returns `self` gives an object of the class that it was made of: a query that can be awaited, say.
        return not any(_can_be_awaited(child) for child in program.classes.children(value.cls))
    return never_awaitable(value, program)


def _can_be_awaited(cls: Class | LibraryClass) -> bool:
    if isinstance(cls, LibraryClass):
        return cls.name in _AWAITABLES or library.member(cls.qualified, "__await__") is not None
    return (
        "__await__" in cls.methods
        or any(mentions_awaitable(base, _AWAITABLES) for base in cls.facts.bases)
        or (cls.module.path.endswith(".pyi") and _CALLED_AWAITABLE.search(cls.name) is not None)  # a stub tells not all
    )


def is_harmless(program: Inference, function: Function, decorator: Node) -> bool:
    """Whether a decorator leaves the color of the function alone."""
    return decorator_name(decorator) in _HARMLESS or keeps_color(program, function, decorator)


def keeps_color(program: Inference, function: Function, decorator: Node) -> bool:
    """Whether a library is known to have a decorator that leaves the color of a function alone."""
    value = program.effects.decorator(function, decorator)
    if isinstance(value, FunctionValue) and not isinstance(value.function, Function):
        return semantics().decorators.get(value.function.qualname) == "keeps"
    return False


def never_awaitable(value: Value | None, program: Inference) -> bool:
    """Whether a value of this type can certainly not be an awaitable."""
    if value is None:
        return False
    if isinstance(value, Union):
        real = [m for m in value.members if not isinstance(m, Nothing)]
        return all(never_awaitable(m, program) for m in real)
    if isinstance(value, Builtin):
        return value.name not in {"object", "type", "async iterator", "async context", "context", "iterator"}
    if isinstance(value, TupleOf | Table):
        return True
    if isinstance(value, Instance):
        if isinstance(value.cls, LibraryClass):
            return library.member(value.cls.qualified, "__await__") is None
        is_awaitable = program.classes.has(value.cls, "__await__")
        return is_awaitable is False or (is_awaitable is None and not _sounds_awaitable(value.cls))
    return False


_MODELS = frozenset(
    {"BaseModel", "SQLModel", "RootModel", "DeclarativeBase", "TypedDict", "NamedTuple", "Enum", "StrEnum"}
)
AWAITABLE_NAME = re.compile(r"(?i)await|async|maybe|futur|task|coro|deferred|promise|result|response|query|run|job")


def _sounds_awaitable(cls: Class) -> bool:
    """Whether a class with an unknown base is called, or derives from something called, as if it could be awaited."""
    if any(last_name(base) in _MODELS for base in cls.facts.bases):
        return False  # a `Task` or a `Response` that is data
    return any(AWAITABLE_NAME.search(text) for text in (cls.name, *map(callee_text, cls.facts.bases)))


def mentions_awaitable(node: Node, words: tuple[str, ...] = ("Awaitable", "Coro", "Future", "Task", "Any")) -> bool:
    """Whether an annotation speaks of something that can be awaited, or of anything at all."""
    return any(word in text for text in words_of(node) for word in words)
