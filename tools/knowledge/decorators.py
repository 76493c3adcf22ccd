"""What a package's own decorators do to the color of what they decorate, from how they are written."""

import ast
from dataclasses import dataclass
from typing import Literal

from tools.knowledge.annotations import ANY, Annotations, Type
from tools.knowledge.sources import Def

__all__ = ["Decorators", "Effect"]

Effect = Literal["keeps", "unknown"] | Type
"""`keeps` the color; gives objects of a type of its own; or `unknown`."""

_KEEPING = {  # by their last name; those of the standard library and the habits of the trade
    "abstractmethod", "classmethod", "staticmethod", "overload", "override", "final", "deprecated", "wraps",
    "no_type_check", "runtime_checkable", "type_check_only", "property", "cached_property", "abstractproperty",
    "hybrid_property", "reify", "cached_slot_property", "coroutine", "setter", "deleter", "getter",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Decorators:
    """Judges decorators as they are used in the modules of one package."""

    annotations: Annotations

    def name(self, home: str, decorator: ast.expr) -> str:
        """The fully qualified name of a decorator, or its last word where that cannot be told."""
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        definition = (
            self.annotations.names.resolve(home, called) if isinstance(called, ast.Name | ast.Attribute) else None
        )
        return definition.name if definition is not None else ast.unparse(called).rpartition(".")[2]

    def effect(self, home: str, decorator: ast.expr) -> Effect:
        """What the decorator makes of a function."""
        name = self.name(home, decorator)
        definition = self.annotations.names.find(name) if "." in name else None
        if definition is None or definition.kind != "function":
            return "keeps" if name.rpartition(".")[2] in _KEEPING else "unknown"
        node = self.annotations.names.modules[definition.home].functions[definition.local][-1]
        written = self._written(definition.home, node, is_factory=isinstance(decorator, ast.Call))
        if written != "unknown":
            return written
        if name.rpartition(".")[2] in _KEEPING:
            return "keeps"
        return "keeps" if _passes_through(node) else "unknown"

    def _written(self, home: str, node: Def, *, is_factory: bool) -> Effect:
        """From the annotations: `Callable[P, T] → Callable[P, T]` keeps, `→ Callable[P, Result]` gives a Result."""
        parameter = next((arg.annotation for arg in [*node.args.posonlyargs, *node.args.args]), None)
        result_type = node.returns
        if is_factory:
            match result_type:
                case ast.Subscript(slice=ast.Tuple(elts=[ast.List(elts=[parameter]), result_type])):
                    pass
                case _:
                    return "unknown"
        if result_type is None:
            return "unknown"
        if parameter is not None and ast.unparse(parameter) == ast.unparse(result_type):
            return "keeps"
        read = self.annotations.read(home, result_type)
        if read.name != "collections.abc.Callable" or not read.args or read.args[-1] == ANY:
            return "unknown"
        result = read.args[-1]
        return "unknown" if result.name.startswith("~") else result


def _passes_through(node: Def) -> bool:
    """Whether the innermost wrapper returns what the decorated function returns."""
    decorated = {
        arg.arg for inner in ast.walk(node) if isinstance(inner, ast.FunctionDef) for arg in inner.args.args[:1]
    }
    wrappers = [
        inner
        for inner in ast.walk(node)
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and inner is not node and inner.args.vararg
    ]
    if not wrappers:  # it only marks the function, if it gives that function back
        returned = [inner.value for inner in ast.walk(node) if isinstance(inner, ast.Return)]
        names = {value.id for value in returned if isinstance(value, ast.Name)}
        return bool(names & decorated)
    for wrapper in wrappers:
        returned = [inner.value for inner in ast.walk(wrapper) if isinstance(inner, ast.Return)]
        calls = [value.value if isinstance(value, ast.Await) else value for value in returned]
        if not calls or not all(
            isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in decorated
            for call in calls
        ):
            return False
    return True
