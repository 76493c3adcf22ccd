"""What value a type annotation promises."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import (
    ATTR_BASE,
    ATTR_NAME,
    BINOP_IS_BITOR,
    BINOP_LEFT,
    BINOP_RIGHT,
    CALL_ARGS,
    CALL_FUNC,
    CALL_KEYWORDS,
    CONST_TYPE,
    CONST_VALUE,
    INDEX_BASE,
    ITEMS,
    KIND,
    NAME_ID,
)
from troth.analysis.facts.from_ast.expressions import ExpressionReader
from troth.analysis.facts.names import last_name
from troth.analysis.knowledge.corrections import correction
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.values import (
    NONE,
    Awaitable,
    Builtin,
    CallableType,
    ClassObject,
    Coroutine,
    External,
    FunctionValue,
    Instance,
    TupleOf,
    Union,
    Value,
    Why,
    union,
)

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.infer.evaluator import Evaluator
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.symbols import Class, Function, Module

__all__ = ["Types", "names_async_iterator"]

BUILTINS = frozenset(
    [
        "str",
        "bytes",
        "bytearray",
        "int",
        "float",
        "complex",
        "bool",
        "dict",
        "list",
        "set",
        "frozenset",
        "tuple",
        "object",
        "type",
        "range",
        "slice",
        "memoryview",
    ]
)
_CONTAINERS = {
    "List": "list",
    "Set": "set",
    "FrozenSet": "frozenset",
    "Dict": "dict",
    "DefaultDict": "dict",
    "defaultdict": "dict",
    "OrderedDict": "dict",
    "Mapping": "dict",
    "MutableMapping": "dict",
    "Counter": "dict",
    "Sequence": "list",
    "MutableSequence": "list",
    "Iterable": "list",
    "Iterator": "iterator",
    "Collection": "list",
    "Container": "list",
    "AbstractSet": "set",
    "MutableSet": "set",
    "Deque": "list",
    "deque": "list",
    "Generator": "iterator",
    "KeysView": "list",
    "ValuesView": "list",
    "ItemsView": "list",
}
_ASYNC_ITERATORS = frozenset({"AsyncIterator", "AsyncIterable", "AsyncGenerator"})
_SPECIAL = frozenset({"Awaitable", "Coroutine", "Future", "Task", *_ASYNC_ITERATORS, "Callable"})
_TRANSPARENT = frozenset(
    {"Final", "ClassVar", "Required", "NotRequired", "ReadOnly", "InitVar", "Mapped", "Annotated"}
    | {"InstanceOf", "SkipValidation", "SerializeAsAny", "FromDishka"}
)
_TYPING = (
    "typing",
    "typing_extensions",
    "collections.abc",
    "collections",
    "contextlib",
    "asyncio",
    "builtins",
    "types",
)
_DEEPEST = 12


def names_async_iterator(annotation: Node) -> bool:
    """Whether an annotation is `AsyncIterator[int]` or a kin of it: for `async for`, and nothing to await."""
    return last_name(annotation[INDEX_BASE] if annotation[KIND] == "index" else annotation) in _ASYNC_ITERATORS


class Types:
    """Reads annotations."""

    def __init__(self, program: Inference) -> None:
        self._program = program
        self._written: dict[str, Value | None] = {}
        self._parsed: dict[str, Node | None] = {}
        self._scope: Evaluator | None = None  # that of the module asked about last
        self.arguments: dict[str, Value | None] = {}  # what the type variables of a generic class stand for just now

    def annotated(
        self,
        node: Node,
        module: Module,
        function: Function | None = None,
        owner: Class | None = None,
        why: Why | None = None,
        depth: int = 0,
    ) -> Value | None:
        """The value that something annotated with `node` has."""
        if depth > _DEEPEST:
            return None
        kind = node[0]
        if kind == "const":
            if node[CONST_TYPE] == "None":
                return NONE
            if node[CONST_TYPE] == "str" and len(node) > 2:
                parsed = self._parse(node[CONST_VALUE])
                return None if parsed is None else self.annotated(parsed, module, function, owner, why, depth + 1)
            return None
        if kind == "binop" and node[BINOP_IS_BITOR]:
            return union(
                [
                    self.annotated(part, module, function, owner, why, depth + 1)
                    for part in (node[BINOP_LEFT], node[BINOP_RIGHT])
                ]
            )
        if kind == "index":
            return self._subscripted(node, module, function, owner, why, depth)
        if kind in {"name", "attr"}:
            return self._plain(node, module, function, owner, why, depth)
        return None

    def written(self, text: str) -> Value | None:
        """The value of a type of the library tables, an expression with fully qualified names."""
        if not text:
            return None
        if text not in self._written:
            self._written[text] = None  # a type that mentions itself
            parsed = self._parse(text)
            self._written[text] = None if parsed is None else self.annotated(parsed, self._program.nowhere)
        return self._written[text]

    def _parse(self, text: str) -> Node | None:
        if text not in self._parsed:
            try:
                tree = ast.parse(text.strip(), mode="eval")
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self._parsed[text] = None
            else:
                self._parsed[text] = ExpressionReader().expr(tree.body)
        return self._parsed[text]

    def _plain(
        self, node: Node, module: Module, function: Function | None, owner: Class | None, why: Why | None, depth: int
    ) -> Value | None:
        last = node[NAME_ID] if node[KIND] == "name" else node[2]
        if self.arguments and node[KIND] == "name" and last in self.arguments:
            return self.arguments[last]
        if last == "Self" and owner is not None:
            return Instance(owner, (), why)
        value = self._resolve(node, module, function)
        if isinstance(value, ClassObject):
            # `Entry = ConfigEntry[Hub]` says more than its class.
            told = None if value.cls.name == last else self._alias(node, module, owner, why, depth)
            return told if isinstance(told, Instance) and told.args else self.instance(value.cls, (), why)
        if isinstance(value, Union) and all(isinstance(member, ClassObject) for member in value.members):
            # One of several libraries has it: `try: from fast import Client`.
            return union(
                [self.instance(member.cls, (), why) for member in value.members if isinstance(member, ClassObject)]
            )
        if isinstance(value, FunctionValue) and last[0].isupper():
            return self._program.calls.result(value)  # a function that is called like a class: what it makes is meant
        if isinstance(value, Instance) and node[KIND] == "attr" and isinstance(value.cls, LibraryClass):
            return value  # a class of a library holds the name of a type: `ContextTypes.DEFAULT_TYPE`
        if node[KIND] == "name" and last in BUILTINS and last not in {"object", "type"}:
            return Builtin(last)
        alias = self._alias(node, module, owner, why, depth)
        if alias is not None:
            return alias
        if isinstance(value, External) and last not in _CONTAINERS and last not in _SPECIAL:
            stands_for = correction(value.path).types.get(value.path)
            if stands_for is not None:
                return self.written(stands_for)
            return None if value.path.startswith(_TYPING) else External(f"{value.path}()")
        if last in _CONTAINERS:
            return Builtin(_CONTAINERS[last])
        if last in _SPECIAL:
            return self._known(last, ())
        return None

    def _alias(self, node: Node, module: Module, owner: Class | None, why: Why | None, depth: int) -> Value | None:
        """A name that stands for a type expression: `Store = Annotated[Db, Depends(get_db)]`."""
        if node[KIND] != "name":
            return None
        home, name = module, node[NAME_ID]
        for _ in range(5):
            bindings = home.bindings.get(name)
            if not bindings:
                return None
            binding = bindings[-1]
            if type(binding) is tuple:
                value = _bound_of(binding[1])
                if value is None or value[KIND] not in {"index", "binop", "name", "attr", "const"}:
                    return None
                return self.annotated(value, home, None, owner, why, depth + 1)
            target = self._program.names.imported_from(home, binding)
            if target is None:
                return None
            home, name = target
        return None

    def _resolve(self, node: Node, module: Module, function: Function | None) -> Value | None:
        if module is self._program.nowhere:
            dotted = _dotted(node)
            return self._program.names.library(dotted) if "." in dotted else None
        if function is None and node[KIND] == "name":  # most annotations; what a file means by a name keeps no state
            if self._scope is None or self._scope.module is not module:
                self._scope = self._program.static(module)
            return self._scope.outer(node[NAME_ID])
        return self._program.static(module, function).value(node)

    def instance(self, cls: Class | LibraryClass, args: tuple[Value | None, ...], why: Why | None) -> Value | None:
        """An instance of `cls`; classes of the standard library that stand for builtin shapes become those."""
        if isinstance(cls, LibraryClass):
            module, _, name = cls.qualified.rpartition(".")
            if module in _TYPING or module in {"_asyncio", "_collections_abc", "asyncio.futures", "asyncio.tasks"}:
                special = self._known(name, args)
                if special is not None:
                    return special
                if name in {"Any", "object"}:
                    return None
            if module == "builtins" and name in BUILTINS:
                return Builtin(name, args)
        return Instance(cls, args, why)

    def _known(self, name: str, args: tuple[Value | None, ...]) -> Value | None:
        """The value of a type of the standard library that has a value of its own here."""
        if name in _CONTAINERS:
            return Builtin(_CONTAINERS[name], args)
        last = args[-1] if args else None
        if name == "Coroutine":
            return Coroutine(None, lambda: last)
        if name in {"Task", "Future"}:
            return Awaitable(last, name.lower())
        if name == "Awaitable":
            return Awaitable(last)
        if name in _ASYNC_ITERATORS:
            return Builtin("async iterator", args[:1])
        if name in {"AsyncContextManager", "AbstractAsyncContextManager"}:
            return Builtin("async context", args[:1])
        if name in {"ContextManager", "AbstractContextManager"}:
            return Builtin("context", args[:1])
        return None

    def _subscripted(
        self, node: Node, module: Module, function: Function | None, owner: Class | None, why: Why | None, depth: int
    ) -> Value | None:
        base, index = node[1], node[2]
        last = base[NAME_ID] if base[KIND] == "name" else base[ATTR_NAME] if base[KIND] == "attr" else ""
        items: tuple[Node, ...] = index[ITEMS] if index[KIND] == "tuple" else (index,)

        def read(item: Node) -> Value | None:
            return self.annotated(item, module, function, owner, why, depth + 1)

        if last == "Optional":
            return union([read(items[0]), NONE])
        if last == "Union":
            return union([read(item) for item in items])
        if last == "Annotated":
            inner = read(items[0])
            return inner if inner is not None else self._program.parameters.injected(items[1:], module, function)
        if last in _TRANSPARENT:
            return read(items[0])
        if last in {"type", "Type"}:
            inner = read(items[0])
            return ClassObject(inner.cls) if isinstance(inner, Instance) else None
        if last == "Literal":
            return Builtin("str") if items[0][:2] == ("const", "str") else None
        if last in {"tuple", "Tuple"}:
            if len(items) == 2 and items[1] == ("const", "ellipsis"):
                return Builtin("tuple", (read(items[0]),))
            return TupleOf(tuple(read(item) for item in items))
        if last == "Callable":
            return CallableType(read(items[-1]) if len(items) > 1 else None)
        if last in BUILTINS and base[KIND] == "name":
            return Builtin(last, tuple(read(item) for item in items))
        args = tuple(read(item) for item in items)
        value = self._resolve(base, module, function)
        if isinstance(value, ClassObject):
            return self.instance(value.cls, args, why)
        inner = self._known(last, args)
        if inner is None:  # `Handler[int]` where `Handler = Callable[[T], Awaitable[None]]`
            inner = self._alias(base, module, owner, why, depth + 1)
        if inner is None and isinstance(value, External):
            return External(f"{value.path}()")
        return inner


def _bound_of(value: Node | None) -> Node | None:
    """The bound of a `TypeVar`, the target of a `NewType`; any other expression as it is."""
    if (
        value is not None
        and value[KIND] == "call"
        and value[CALL_FUNC][-1 if value[CALL_FUNC][KIND] == "name" else 2] in {"TypeVar", "NewType"}
    ):
        for name, bound in value[CALL_KEYWORDS]:
            if name == "bound":
                return bound  # type: ignore[no-any-return]
        return value[CALL_ARGS][1] if len(value[CALL_ARGS]) == 2 else None
    return value


def _dotted(node: Node) -> str:
    names: list[str] = []
    while node[KIND] == "attr":
        names.append(node[ATTR_NAME])
        node = node[ATTR_BASE]
    if node[KIND] != "name":
        return ""
    names.append(node[NAME_ID])
    return ".".join(reversed(names))
