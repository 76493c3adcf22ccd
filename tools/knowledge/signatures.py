"""What calling a function gives, and what its parameters do with what they are given."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tools.knowledge.annotations import ANY, NONE, SELF, Type, members, union
from tools.knowledge.bodies import passed_on, promised, returned_values, yields
from tools.knowledge.decorators import Decorators
from tools.knowledge.kinds import Kinds
from tools.knowledge.sources import Def
from troth.analysis.knowledge import Role

__all__ = ["COLORS", "Signature", "Signatures"]

COLORS = frozenset("agwmo")

Wish: TypeAlias = Role | Literal["any"]
"""A role, or `any`: a function of any color, which says nothing alone and something beside other overloads."""

_PROPERTIES = {
    "property",
    "cached_property",
    "abstractproperty",
    "hybrid_property",
    "reify",
    "cached_slot_property",
    "class_property",
}
_MANAGER = "contextlib.AbstractAsyncContextManager"


@dataclass(frozen=True, slots=True)
class Signature:
    """One callable. `flags`, `returns` and `roles` as in the table; the rest is what a later look can sharpen."""

    flags: str
    returns: Type = ANY
    roles: tuple[tuple[str, Wish], ...] = ()
    passes_on: tuple[str, ...] = ()
    """Methods of the same object, one of whose results is what this one returns."""
    decided: bool = True
    """Whether the annotations settle the color; if not, `passes_on` may."""
    unknown_decorator: bool = False
    is_async_def: bool = False

    @property
    def color(self) -> str:
        """The flags that tell the color; empty for a sync function."""
        return "".join(flag for flag in self.flags if flag in COLORS)

    def recolored(self, color: str) -> "Signature":
        """The same callable of another color."""
        return replace(self, flags=color + "".join(flag for flag in self.flags if flag not in COLORS))


@dataclass(frozen=True, slots=True)
class Signatures:
    """Reads functions of one package."""

    kinds: Kinds
    decorators: Decorators

    def of(self, home: str, defs: list[Def], owner: str = "") -> Signature:
        """The signature of a function with all its overloads; `owner` is the class around a method."""
        each = [self._one(home, node, owner) for node in defs]
        if len(each) == 1:
            return replace(each[0], roles=tuple(pair for pair in each[0].roles if pair[1] != "any"))
        stubbed = [sig for sig, node in zip(each, defs, strict=True) if "overload" in _decorators(node)]
        body = each[-1]
        if isinstance(defs[-1], ast.AsyncFunctionDef) and "overload" not in _decorators(defs[-1]):
            stubbed = [sig for sig in stubbed if sig.color] or stubbed
        colors = {sig.color for sig in stubbed}
        color = colors.pop() if len(colors) == 1 else "o"
        if color == "o":
            stubbed = [replace(sig, returns=self._fulfilled(sig.returns)) for sig in stubbed]
        results = list(dict.fromkeys(member for sig in stubbed for member in members(sig.returns)))
        returns = union(results) if len(results) <= 4 else body.returns
        roles = _merged_roles([dict(sig.roles) for sig in stubbed])
        merged = replace(body, returns=returns, roles=tuple(sorted(roles.items())), decided=color != "o")
        return merged.recolored(color)

    def _one(self, home: str, node: Def, owner: str) -> Signature:
        decorators = _decorators(node)
        flags = ("p" if decorators & _PROPERTIES else "") + ("c" if "classmethod" in decorators else "")
        flags += "s" if "staticmethod" in decorators else ""
        bound = bool(owner) and "s" not in flags
        own = _own_variable(node) if bound else ""
        returns = self.kinds.annotations.read(home, node.returns, owner, own)
        signature = Signature(flags, returns, tuple(self._roles(home, node, owner, skip_first=bound)))
        if isinstance(node, ast.AsyncFunctionDef):
            if returns == ANY and (plainly := self._returned(home, node, owner)) is not None:
                signature = replace(signature, returns=plainly)
            signature = replace(signature, is_async_def=True).recolored("g" if yields(node) else "a")
        elif "coroutine" in decorators:
            signature = signature.recolored("a")
        else:
            signature = self._plain(home, node, owner, signature)
        if node.name == "__await__" and returns.name == "collections.abc.Generator":
            return replace(signature, returns=returns.args[2] if len(returns.args) == 3 else ANY)
        for decorator in reversed(node.decorator_list):
            signature = self._decorated(home, decorator, signature, returns)
        if signature.color == "m" and "p" in flags and not signature.is_async_def:
            return signature.recolored("")  # an attribute that happens to be a client, not a manager made by reading it
        return signature

    def _decorated(self, home: str, decorator: ast.expr, signature: Signature, returns: Type) -> Signature:
        """The signature after one decorator, `returns` being the annotation of the function underneath."""
        name = self.decorators.name(home, decorator)
        if name in {"contextlib.asynccontextmanager", "asynccontextmanager"}:
            return replace(
                signature, returns=Type(_MANAGER, (self.kinds.result(returns),)), is_async_def=False
            ).recolored("m")
        if name in {"contextlib.contextmanager", "contextmanager"}:
            yielded = returns.args[0] if returns.args else ANY
            return replace(signature, returns=Type("contextlib.AbstractContextManager", (yielded,))).recolored("")
        effect = self.decorators.effect(home, decorator)
        if effect == "keeps":
            return signature
        if isinstance(effect, Type):
            value = (
                Type(effect.name, (signature.returns,))
                if effect.args and effect.args[0].name.startswith("~")
                else effect
            )
            return self._plain_as(
                replace(signature, returns=value, is_async_def=False).recolored(""), self.kinds.of(value)
            )
        return replace(signature, unknown_decorator=True)

    def _plain(self, home: str, node: Def, owner: str, signature: Signature) -> Signature:
        """A `def` whose result may still be something to await."""
        owner_type = Type(f"{home}.{owner}") if owner else ANY
        returns = union([owner_type if member == SELF else member for member in members(signature.returns)])
        kinds = self.kinds.of(returns)
        signature = replace(signature, passes_on=passed_on(node))
        if kinds == {"any"}:
            if (shown := promised(node)) != "":
                return signature.recolored(shown)
            returned = self._returned(home, node, owner)
            if returned is None:
                return replace(signature, decided=not signature.passes_on)
            signature = replace(signature, returns=returned, decided=not signature.passes_on)
            kinds = self.kinds.of(owner_type if returned == SELF else returned)
        return self._plain_as(signature, kinds)

    def _plain_as(self, signature: Signature, kinds: set[str]) -> Signature:
        if kinds == {"coroutine"}:
            return replace(signature, returns=self._fulfilled(signature.returns)).recolored("a")
        manager = "m" if "manager" in kinds else ""
        if "awaitable" in kinds and kinds <= {"awaitable", "manager", "coroutine"}:
            objects = [
                member for member in members(signature.returns) if "." in member.name and self.kinds.is_useful(member)
            ]
            if objects:  # a client or a builder that may also be awaited: nothing is lost where it is not
                return replace(signature, decided=False).recolored("o" + manager)
            return signature.recolored("w" + manager)
        if kinds & {"coroutine", "awaitable"}:
            return replace(signature, returns=self._fulfilled(signature.returns), decided=False).recolored("o")
        if kinds == {"iterator"}:
            return signature.recolored("g")
        return signature.recolored(manager) if kinds == {"manager"} else signature

    def _fulfilled(self, type_: Type) -> Type:
        """The type once every promise in it is kept."""
        promises = {"coroutine", "awaitable"}
        results = [
            self.kinds.result(member) if self.kinds.of(member) & promises else member for member in members(type_)
        ]
        return union(results)

    def _returned(self, home: str, node: Def, owner: str) -> Type | None:
        """What an unannotated function plainly returns: itself, or objects of classes it names."""
        types: list[Type] = []
        for value in returned_values(node):
            match value:
                case ast.Name(id="self") if owner:
                    types.append(SELF)
                case ast.Call(func=ast.Name() | ast.Attribute() as maker):
                    cls = self.kinds.annotations.names.resolve(home, maker, owner)
                    if cls is None or cls.kind != "class":
                        return None
                    types.append(self.kinds.annotations.named(cls))
                case ast.Constant(value=None):
                    types.append(NONE)
                case _:
                    return None
        return union(types) if types else None

    def _roles(self, home: str, node: Def, owner: str, *, skip_first: bool) -> Iterator[tuple[str, Wish]]:
        arguments = node.args
        positional = [*arguments.posonlyargs, *arguments.args][1 if skip_first else 0 :]
        roles: dict[str, Wish] = {}
        for place, argument in enumerate(positional):
            role = self._role(home, argument, owner)
            if role:
                roles[str(place)] = role
                if argument not in arguments.posonlyargs:
                    roles[argument.arg] = role
        for argument in arguments.kwonlyargs:
            if role := self._role(home, argument, owner):
                roles[argument.arg] = role
        if arguments.vararg and (role := self._role(home, arguments.vararg, owner)):
            roles["*"] = role
        if self.kinds.annotations.names.modules[home].accepts_both:
            roles = {key: "either" if role == "plain_function" else role for key, role in roles.items()}
        yield from sorted(roles.items())

    def _role(self, home: str, argument: ast.arg, owner: str) -> Wish | None:
        if argument.annotation is None:
            return None
        type_ = self.kinds.annotations.read(home, argument.annotation, owner)
        colors: set[str] = set()
        for member in members(type_):
            if member.name == "collections.abc.Callable" and member.args:
                colors |= self.kinds.of(member.args[-1])
            elif (called := self._called(member)) is not None:
                colors |= called
            elif self._holds_promises(member):
                return "consumes"
        if not colors:
            return None
        if "any" in colors:
            return "any"
        promised = colors & {"coroutine", "awaitable", "iterator"}
        if not promised:
            return "plain_function"
        return "either" if colors - promised else "coroutine_function"

    def _holds_promises(self, type_: Type) -> bool:
        """Whether it is an awaitable, an async iterator or manager, or a container of such."""
        if type_.name == "collections.abc.Callable":
            return False
        if type_.name.startswith("collections.abc.Async") or type_.name == _MANAGER:
            return True
        if self.kinds.of(type_) & {"coroutine", "awaitable"}:
            return True
        return any(self._holds_promises(member) for arg in type_.args for member in members(arg))

    def _called(self, type_: Type) -> set[str] | None:
        """What calling an object of a protocol class gives."""
        names = self.kinds.annotations.names
        protocol = names.find(type_.name) if "." in type_.name else None
        source = names.class_source(protocol) if protocol else None
        if protocol is None or source is None or "__call__" not in source.methods:
            return None
        if not any(ast.unparse(base).partition("[")[0].endswith("Protocol") for base in source.bases):
            return None
        node = source.methods["__call__"][-1]
        if isinstance(node, ast.AsyncFunctionDef):
            return {"coroutine"}
        return self.kinds.of(self.kinds.annotations.read(protocol.home, node.returns, protocol.local))


def _decorators(node: Def) -> set[str]:
    names = set()
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        names.add(ast.unparse(called).rpartition(".")[2])
    return names


def _merged_roles(each: list[dict[str, Wish]]) -> dict[str, Wish]:
    """The roles of overloads together: a promise is taken if any takes it, a color is wanted if all want it."""
    merged: dict[str, Wish] = {}
    for key in dict.fromkeys(key for roles in each for key in roles):
        wishes = {roles[key] for roles in each if key in roles}
        if "consumes" in wishes:
            merged[key] = "consumes"
        elif len(wishes) > 1:
            merged[key] = "either"
        elif wishes != {"any"}:
            merged[key] = wishes.pop()
    return merged


def _own_variable(node: Def) -> str:
    """The type variable that stands for the receiver, where the receiver is annotated with one."""
    first = next(iter([*node.args.posonlyargs, *node.args.args]), None)
    if first is None or first.annotation is None:
        return ""
    annotation = first.annotation
    if isinstance(annotation, ast.Subscript):  # `cls: type[T]`
        annotation = annotation.slice
    return annotation.id if isinstance(annotation, ast.Name) else ""
