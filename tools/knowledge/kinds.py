"""What a value of a type asks of its holder: to be awaited, iterated, entered, or nothing."""

import ast
import re
from dataclasses import dataclass, field

from tools.knowledge.annotations import ANY, Annotations, Type, members
from tools.knowledge.names import Definition
from troth.analysis import knowledge
from troth.analysis.knowledge import Tables

__all__ = ["Kinds"]

_COROUTINES = {"collections.abc.Coroutine", "types.CoroutineType"}
_AWAITABLES = {
    "collections.abc.Awaitable",
    *(
        f"{home}.{name}"
        for home in ("asyncio", "_asyncio", "asyncio.futures", "asyncio.tasks")
        for name in ("Future", "Task")
    ),
}
_ITERATORS = {
    "collections.abc.AsyncIterator",
    "collections.abc.AsyncIterable",
    "collections.abc.AsyncGenerator",
    "types.AsyncGeneratorType",
}
_MANAGERS = {
    "contextlib.AbstractAsyncContextManager",
    "contextlib._AsyncGeneratorContextManager",
    "contextlib.AsyncExitStack",
}


_A_CLIENT = 3  # async methods; thin awaitables have none or one (`TelegramMethod.emit`), clients have dozens


@dataclass(slots=True)
class Kinds:
    """Judges types of one package; classes of other packages are judged by the tables already bundled."""

    annotations: Annotations
    bundled: Tables = field(default_factory=lambda: Tables(knowledge.load))
    _methods: dict[tuple[str, str], bool] = field(default_factory=dict)

    def of(self, type_: Type) -> set[str]:
        """Some of `coroutine`, `awaitable`, `iterator`, `manager`, `plain`, `any`: one for each alternative."""
        kinds: set[str] = set()
        for member in members(type_):
            if member.name in _COROUTINES:
                kinds.add("coroutine")
            elif member.name in _AWAITABLES:
                kinds.add("awaitable")
            elif member.name in _ITERATORS:
                kinds.add("iterator")
            elif member.name in _MANAGERS:
                kinds.add("manager")
            elif member.name.startswith("~") or member == ANY:
                kinds.add("any")
            elif member.name == "None":
                kinds.add("plain")
            else:
                kinds |= self._of_class(member)
        return kinds

    def _of_class(self, type_: Type) -> set[str]:
        kinds = set()
        if self.has(type_.name, "__await__"):
            kinds.add("awaitable")
        if self.has(type_.name, "__aenter__") and not self.has(type_.name, "__enter__"):
            kinds.add("manager")
        return kinds or {"plain"}

    def is_useful(self, type_: Type) -> bool:
        """Whether an awaitable object is worth holding for its own sake: a client, or a builder of itself."""
        if type_.name in _AWAITABLES | _COROUTINES:
            return False
        async_methods = 0
        for cls in self.lineage(type_.name):
            source = self.annotations.names.class_source(cls)
            assert source is not None
            own = {"Self", cls.local}
            for name, defs in source.methods.items():
                if name.startswith("_"):
                    continue
                async_methods += any(isinstance(node, ast.AsyncFunctionDef) for node in defs)
                returns = defs[-1].returns
                if isinstance(defs[-1], ast.FunctionDef) and returns is not None and _words(returns) & own:
                    return True
        return async_methods >= _A_CLIENT

    def result(self, type_: Type) -> Type:
        """What awaiting or entering a value gives, as far as its own type arguments tell."""
        if type_.name in _COROUTINES:
            return type_.args[2] if len(type_.args) == 3 else ANY
        if type_.name in _AWAITABLES | _MANAGERS | _ITERATORS:
            return type_.args[0] if type_.args else ANY
        return ANY

    def has(self, class_name: str, method: str) -> bool:
        """Whether the class defines or inherits `method`."""
        key = (class_name, method)
        if key not in self._methods:
            self._methods[key] = False
            self._methods[key] = self._has(class_name, method)
        return self._methods[key]

    def _has(self, class_name: str, method: str) -> bool:
        names = self.annotations.names
        definition = names.find(class_name)
        if definition is None or definition.kind == "builtin":
            return False
        if definition.kind == "external":
            return self.bundled.method(class_name, method) is not None
        source = names.class_source(definition)
        if source is None:
            return False
        if method in source.methods or method in source.values:
            return True
        return any(self.has(base.name, method) for base in self.bases(definition))

    def bases(self, cls: Definition) -> list[Type]:
        """The bases of a class of this package."""
        source = self.annotations.names.class_source(cls)
        if source is None:
            return []
        outer = cls.local.rpartition(".")[0]
        read = [self.annotations.read(cls.home, base, outer) for base in source.bases]
        unbound = [
            base for base in read if base.name.rpartition(".")[2] not in {"Generic", "Protocol", "Any", "object"}
        ]
        return [member for base in unbound for member in members(base)]

    def lineage(self, class_name: str) -> list[Definition]:
        """The class and its ancestors in this package, in the order Python looks through them."""
        met = self._preorder(class_name, frozenset())
        last = {cls.name: place for place, cls in enumerate(met)}
        return [cls for place, cls in enumerate(met) if last[cls.name] == place]

    def _preorder(self, class_name: str, above: frozenset[str]) -> list[Definition]:
        cls = self.annotations.names.find(class_name)
        if cls is None or cls.kind != "class" or cls.name in above:
            return []
        met = [cls]
        for base in self.bases(cls):
            met += self._preorder(base.name, above | {cls.name})
        return met


def _words(annotation: ast.expr) -> set[str]:
    return set(re.findall(r"\w+", ast.unparse(annotation)))
