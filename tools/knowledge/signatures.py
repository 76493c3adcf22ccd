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
        """The flags that tell the color; empty for a plain function."""
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
        made = Signature(flags, returns, tuple(self._roles(home, node, owner, skip_first=bound)))
        if isinstance(node, ast.AsyncFunctionDef):
            if returns == ANY and (plainly := self._returned(home, node, owner)) is not None:
                made = replace(made, returns=plainly)
            made = replace(made, is_async_def=True).recolored("g" if yields(node) else "a")
        elif "coroutine" in decorators:
            made = made.recolored("a")
        else:
            made = self._plain(home, node, owner, made)
        if node.name == "__await__" and returns.name == "collections.abc.Generator":
            return replace(made, returns=returns.args[2] if len(returns.args) == 3 else ANY)
        for decorator in reversed(node.decorator_list):
            made = self._decorated(home, decorator, made, returns)
        if made.color == "m" and "p" in flags and not made.is_async_def:
            return made.recolored("")  # an attribute that happens to be a client, not a manager made by reading it
        return made

    def _decorated(self, home: str, decorator: ast.expr, made: Signature, returns: Type) -> Signature:
        """The signature after one decorator, `returns` being the annotation of the function underneath."""
        name = self.decorators.name(home, decorator)
        if name in {"contextlib.asynccontextmanager", "asynccontextmanager"}:
            return replace(made, returns=Type(_MANAGER, (self.kinds.result(returns),)), is_async_def=False).recolored(
                "m"
            )
        if name in {"contextlib.contextmanager", "contextmanager"}:
            given = returns.args[0] if returns.args else ANY
            return replace(made, returns=Type("contextlib.AbstractContextManager", (given,))).recolored("")
        effect = self.decorators.effect(home, decorator)
        if effect == "keeps":
            return made
        if isinstance(effect, Type):
            value = (
                Type(effect.name, (made.returns,)) if effect.args and effect.args[0].name.startswith("~") else effect
            )
            return self._plain_as(replace(made, returns=value, is_async_def=False).recolored(""), self.kinds.of(value))
        return replace(made, unknown_decorator=True)

    def _plain(self, home: str, node: Def, owner: str, made: Signature) -> Signature:
        """A `def` whose result may still be something to await."""
        owner_type = Type(f"{home}.{owner}") if owner else ANY
        seen = union([owner_type if member == SELF else member for member in members(made.returns)])
        kinds = self.kinds.of(seen)
        made = replace(made, passes_on=passed_on(node))
        if kinds == {"any"}:
            if (shown := promised(node)) != "":
                return made.recolored(shown)
            returned = self._returned(home, node, owner)
            if returned is None:
                return replace(made, decided=not made.passes_on)
            made = replace(made, returns=returned, decided=not made.passes_on)
            kinds = self.kinds.of(owner_type if returned == SELF else returned)
        return self._plain_as(made, kinds)

    def _plain_as(self, made: Signature, kinds: set[str]) -> Signature:
        if kinds == {"coroutine"}:
            return replace(made, returns=self._fulfilled(made.returns)).recolored("a")
        manager = "m" if "manager" in kinds else ""
        if "awaitable" in kinds and kinds <= {"awaitable", "manager", "coroutine"}:
            objects = [
                member for member in members(made.returns) if "." in member.name and self.kinds.is_useful(member)
            ]
            if objects:  # a client or a builder that may also be awaited: nothing is lost where it is not
                return replace(made, decided=False).recolored("o" + manager)
            return made.recolored("w" + manager)
        if kinds & {"coroutine", "awaitable"}:
            return replace(made, returns=self._fulfilled(made.returns), decided=False).recolored("o")
        if kinds == {"iterator"}:
            return made.recolored("g")
        return made.recolored(manager) if kinds == {"manager"} else made

    def _fulfilled(self, given: Type) -> Type:
        """The type once every promise in it is kept."""
        promises = {"coroutine", "awaitable"}
        kept = [self.kinds.result(member) if self.kinds.of(member) & promises else member for member in members(given)]
        return union(kept)

    def _returned(self, home: str, node: Def, owner: str) -> Type | None:
        """What an unannotated function plainly returns: itself, or objects of classes it names."""
        found: list[Type] = []
        for value in returned_values(node):
            match value:
                case ast.Name(id="self") if owner:
                    found.append(SELF)
                case ast.Call(func=ast.Name() | ast.Attribute() as maker):
                    made = self.kinds.annotations.names.resolve(home, maker, owner)
                    if made is None or made.kind != "class":
                        return None
                    found.append(self.kinds.annotations.named(made))
                case ast.Constant(value=None):
                    found.append(NONE)
                case _:
                    return None
        return union(found) if found else None

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
        wanted = self.kinds.annotations.read(home, argument.annotation, owner)
        colors: set[str] = set()
        for member in members(wanted):
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

    def _holds_promises(self, wanted: Type) -> bool:
        """Whether it is an awaitable, an async iterator or manager, or a container of such."""
        if wanted.name == "collections.abc.Callable":
            return False
        if wanted.name.startswith("collections.abc.Async") or wanted.name == _MANAGER:
            return True
        if self.kinds.of(wanted) & {"coroutine", "awaitable"}:
            return True
        return any(self._holds_promises(member) for arg in wanted.args for member in members(arg))

    def _called(self, wanted: Type) -> set[str] | None:
        """What calling an object of a protocol class gives."""
        names = self.kinds.annotations.names
        found = names.find(wanted.name) if "." in wanted.name else None
        source = names.class_source(found) if found else None
        if found is None or source is None or "__call__" not in source.methods:
            return None
        if not any(ast.unparse(base).partition("[")[0].endswith("Protocol") for base in source.bases):
            return None
        node = source.methods["__call__"][-1]
        if isinstance(node, ast.AsyncFunctionDef):
            return {"coroutine"}
        return self.kinds.of(self.kinds.annotations.read(found.home, node.returns, found.local))


def _decorators(node: Def) -> set[str]:
    found = set()
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        found.add(ast.unparse(called).rpartition(".")[2])
    return found


def _merged_roles(each: list[dict[str, Wish]]) -> dict[str, Wish]:
    """The roles of overloads together: a promise is taken if any takes it, a color is wanted if all want it."""
    merged: dict[str, Wish] = {}
    for key in dict.fromkeys(key for roles in each for key in roles):
        said = {roles[key] for roles in each if key in roles}
        if "consumes" in said:
            merged[key] = "consumes"
        elif len(said) > 1:
            merged[key] = "either"
        elif said != {"any"}:
            merged[key] = said.pop()
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
