"""How an annotation becomes a type with fully qualified names."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from tools.knowledge.names import Definition, Names

__all__ = ["ANY", "NONE", "SELF", "Annotations", "Type", "members", "union"]

_MOST_EXPANSIONS = 8  # aliases of aliases; recursive ones (JSON values) must end
_LONGEST = 160  # characters; a type longer than this tells a checker nothing that its head does not

_ABSTRACT = (
    "AsyncGenerator", "AsyncIterable", "AsyncIterator", "Awaitable", "Callable", "Collection", "Container",
    "Coroutine", "Generator", "Iterable", "Iterator", "Mapping", "MutableMapping", "MutableSequence",
    "MutableSet", "Reversible", "Sequence", "Set", "Hashable", "Sized", "ByteString", "ItemsView", "KeysView",
    "MappingView", "ValuesView",
)  # fmt: skip
_RENAMED = {
    **{f"{home}.{name}": f"collections.abc.{name}" for home in ("typing", "typing_extensions") for name in _ABSTRACT},
    **{f"_collections_abc.{name}": f"collections.abc.{name}" for name in _ABSTRACT},
    **{
        f"{home}.{old}": new
        for home in ("typing", "typing_extensions")
        for old, new in {
            "List": "list",
            "Dict": "dict",
            "Set": "set",
            "AbstractSet": "collections.abc.Set",
            "FrozenSet": "frozenset",
            "Tuple": "tuple",
            "Type": "type",
            "Text": "str",
            "Deque": "collections.deque",
            "DefaultDict": "collections.defaultdict",
            "OrderedDict": "collections.OrderedDict",
            "AsyncContextManager": "contextlib.AbstractAsyncContextManager",
            "ContextManager": "contextlib.AbstractContextManager",
            "LiteralString": "str",
            "TypeGuard": "bool",
            "TypeIs": "bool",
            "Never": "typing.NoReturn",
            "NoReturn": "typing.NoReturn",
            "Any": "typing.Any",
            "Self": "typing.Self",
        }.items()
    },
}
_TRANSPARENT = {"Annotated", "ClassVar", "Final", "Required", "NotRequired", "ReadOnly", "InitVar", "Mapped", "Unpack"}


@dataclass(frozen=True, slots=True)
class Type:
    """A type: a name and its arguments. A union is named `|`; a type variable without a bound is named `~T`."""

    name: str
    args: tuple["Type", ...] = ()

    def __str__(self) -> str:
        if self.name == "|":
            alternatives = dict.fromkeys(str(arg) for arg in self.args if arg != ANY and not arg.name.startswith("~"))
            text = " | ".join(alternatives) if alternatives.keys() - {"None"} else "typing.Any"
        elif self.name == "collections.abc.Callable":
            text = f"{self.name}[..., {self.args[-1]}]" if self.args else self.name
        elif self.args and any(arg.name != "typing.Any" and not arg.name.startswith("~") for arg in self.args):
            text = f"{self.name}[{', '.join(map(str, self.args))}]"
        else:
            text = self.name
        if text.startswith("~"):
            return "typing.Any"
        return text if len(text) <= _LONGEST or self.name == "|" else self.name

    def written(self) -> str:
        """As it stands in a table: nothing where it says nothing."""
        text = str(self)
        return "" if text in {"typing.Any", "object"} or len(text) > _LONGEST * 3 else text


ANY = Type("typing.Any")
NONE = Type("None")
SELF = Type("typing.Self")


def union(types: list[Type]) -> Type:
    """One type out of several, flat and without repetition."""
    flat = dict.fromkeys(member for alternative in types for member in members(alternative))
    return next(iter(flat)) if len(flat) == 1 else Type("|", tuple(flat))


def members(type_: Type) -> tuple[Type, ...]:
    """The alternatives of a union, or the type alone."""
    return type_.args if type_.name == "|" else (type_,)


@dataclass(slots=True)
class Annotations:
    """Reads annotations of the modules that `names` knows; `renamed` gives private homes their public names."""

    names: Names
    renamed: dict[str, str] = field(default_factory=dict)

    def read(self, home: str, node: ast.expr | None, scope: str = "", own: str = "", depth: int = 0) -> Type:
        """The type that `node` means in the module `home`, inside class `scope`.

        `own` is the name of a type variable that stands for the class itself (`def f(self: T) -> T`).
        """
        if node is None or depth > _MOST_EXPANSIONS:
            return ANY
        match node:
            case ast.Constant(value=None):
                return NONE
            case ast.Constant(value=str(text)):
                try:
                    quoted = ast.parse(text.strip(), mode="eval").body
                except (SyntaxError, ValueError):
                    return ANY
                return self.read(home, quoted, scope, own, depth + 1)
            case ast.BinOp(op=ast.BitOr(), left=lhs, right=rhs):
                return union([self.read(home, side, scope, own, depth) for side in (lhs, rhs)])
            case ast.Name() | ast.Attribute():
                if isinstance(node, ast.Name) and node.id == own:
                    return SELF
                return self._named(home, node, scope, depth)
            case ast.Subscript():
                return self._subscript(home, node, scope, own, depth)
            case ast.Starred(value=value):
                return self.read(home, value, scope, own, depth)
            case _:
                return ANY

    def _named(self, home: str, node: ast.expr, scope: str, depth: int) -> Type:
        definition = self.names.resolve(home, node, scope)
        if definition is None:
            return ANY
        if definition.kind == "value" and definition.name not in _RENAMED:
            return self._alias(definition, depth)
        if definition.kind in {"function", "module"}:
            return ANY
        return self.named(definition)

    def named(self, definition: Definition) -> Type:
        """The type of a definition, under its public name."""
        name = self.renamed.get(definition.name, definition.name)
        name = _RENAMED.get(name, name)
        name = name.removeprefix("builtins.")
        return ANY if name in {"Any", "typing.Incomplete", "_typeshed.Incomplete"} else Type(name)

    def _alias(self, definition: Definition, depth: int) -> Type:
        module = self.names.modules[definition.home]
        value = module.values.get(definition.local)
        match value:
            case ast.Call(func=func, args=args, keywords=keywords):
                maker = ast.unparse(func).rpartition(".")[2]
                if maker == "TypeVar":
                    bounds = [word.value for word in keywords if word.arg == "bound"] or args[1:]
                    if bounds:
                        return union([self.read(definition.home, bound, depth=depth + 1) for bound in bounds])
                    return Type(f"~{definition.local}")
                if maker == "NewType" and len(args) == 2:
                    return self.read(definition.home, args[1], depth=depth + 1)
                return ANY
            case ast.Subscript() | ast.BinOp() | ast.Name() | ast.Attribute() | ast.Constant(value=str()):
                return self.read(definition.home, value, depth=depth + 1)
            case _:
                return ANY

    def _subscript(self, home: str, node: ast.Subscript, scope: str, own: str, depth: int) -> Type:
        value, index = node.value, node.slice
        items = list(index.elts) if isinstance(index, ast.Tuple) else [index]
        special = ast.unparse(value).rpartition(".")[2]
        if special == "Optional":
            return union([self.read(home, items[0], scope, own, depth), NONE])
        if special == "Union":
            return union([self.read(home, item, scope, own, depth) for item in items])
        if special in _TRANSPARENT:
            return self.read(home, items[0], scope, own, depth)
        if special == "Literal":
            kinds = [type(item.value).__name__ for item in items if isinstance(item, ast.Constant)]
            return union([NONE if kind == "NoneType" else Type(kind) for kind in kinds]) if kinds else ANY
        if special in {"TypeGuard", "TypeIs"}:
            return Type("bool")
        base = self._named(home, value, scope, depth) if isinstance(value, ast.Name | ast.Attribute) else ANY
        if base.name == "collections.abc.Callable":
            result = items[-1] if len(items) == 2 else None
            return Type(base.name, (self.read(home, result, scope, own, depth),))
        if base.name in {"typing.Any", "|"}:
            return base  # an alias with parameters: what it stands for is enough
        if base.args:  # `Alias = Awaitable[T]`, used as `Alias[X]`: put X where T stands
            arguments = iter(self.read(home, item, scope, own, depth) for item in items)
            return Type(base.name, tuple(_fill(arg, arguments) for arg in base.args))
        return Type(base.name, tuple(self.read(home, item, scope, own, depth) for item in items))


def _fill(arg: Type, arguments: Iterator[Type]) -> Type:
    return next(arguments, ANY) if arg.name.startswith("~") else arg
