"""Knows the things a project consists of: modules, classes, functions, each a thin handle on its facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.model import ABSTRACT, ASYNC, GENERATOR, WAITS

if TYPE_CHECKING:
    from troth.analysis.facts.model import ClassFacts, FileFacts, FunctionFacts, ImportFacts, Param

__all__ = ["Class", "Function", "Module"]


class Module:
    """A file of the project, or of an installed package."""

    __slots__ = (
        "_bindings",
        "_classes",
        "_functions",
        "_inner",
        "_local_imports",
        "facts",
        "is_package",
        "name",
        "own",
        "path",
    )

    def __init__(self, path: str, name: str, facts: FileFacts, *, own: bool = True) -> None:
        self.path = path
        self.name = name
        self.facts = facts
        self.own = own  # of the project itself, so that findings may be reported in it
        self.is_package = path.endswith(("__init__.py", "__init__.pyi"))
        self._bindings: dict[str, list[object]] | None = None
        self._functions: dict[int, Function] = {}
        self._classes: dict[int, Class] = {}
        self._local_imports: dict[int, list[ImportFacts]] | None = None
        self._inner: dict[int, dict[str, list[Function | Class]]] | None = None

    def function(self, index: int) -> Function:
        """The function with this number."""
        found = self._functions.get(index)
        if found is None:
            found = self._functions[index] = Function(self, index)
        return found

    def cls(self, index: int) -> Class:
        """The class with this number."""
        found = self._classes.get(index)
        if found is None:
            found = self._classes[index] = Class(self, index)
        return found

    @property
    def bindings(self) -> dict[str, list[object]]:
        """What each name at module level is bound to: functions, classes, imports, `(annotation, value)` pairs."""
        if self._bindings is None:
            bindings: dict[str, list[object]] = {}
            self._bindings = bindings
            facts = self.facts
            for function in range(1, len(facts.functions)):
                f = facts.functions[function]
                if f.parent == 0 and f.owner == -1:
                    bindings.setdefault(f.name, []).append(self.function(function))
            for index, c in enumerate(facts.classes):
                if c.parent == 0 and c.outer == -1:
                    bindings.setdefault(c.name, []).append(self.cls(index))
            for imported in facts.imports:
                if imported.scope == 0 and imported.local and imported.name != "*":
                    bindings.setdefault(imported.local, []).append(imported)
            for name, annotation, value in facts.variables:
                bindings.setdefault(name, []).append((annotation, value))
        return self._bindings

    def imports_in(self, function: int) -> list[ImportFacts]:
        """The imports that stand inside a function."""
        if self._local_imports is None:
            self._local_imports = {}
            for imported in self.facts.imports:
                if imported.scope:
                    self._local_imports.setdefault(imported.scope, []).append(imported)
        return self._local_imports.get(function, [])

    def inner(self, function: int) -> dict[str, list[Function | Class]]:
        """The functions and classes defined inside a function."""
        if self._inner is None:
            self._inner = {}
            for index, f in enumerate(self.facts.functions):
                if f.parent > 0 and f.owner == -1:
                    self._inner.setdefault(f.parent, {}).setdefault(f.name, []).append(self.function(index))
            for index, c in enumerate(self.facts.classes):
                if c.parent > 0 and c.outer == -1:
                    self._inner.setdefault(c.parent, {}).setdefault(c.name, []).append(self.cls(index))
        return self._inner.get(function, {})


class Function:
    """A function or method of the project."""

    __slots__ = ("_origins", "_params", "facts", "index", "module")

    def __init__(self, module: Module, index: int) -> None:
        self.module = module
        self.index = index
        self.facts: FunctionFacts = module.facts.functions[index]
        self._params: dict[str, Param] | None = None
        self._origins: dict[str, str] | None = None

    @property
    def origins(self) -> dict[str, str]:
        """Where those variables come from that are bound in one simple way only."""
        if self._origins is None:
            self._origins = dict(self.facts.origins)
        return self._origins

    @property
    def params(self) -> dict[str, Param]:
        """Its parameters by name."""
        if self._params is None:
            self._params = {param[0]: param for param in self.facts.params}
        return self._params

    @property
    def name(self) -> str:
        """Its name alone."""
        return self.facts.name

    @property
    def qualname(self) -> str:
        """Its name with the classes and functions around it."""
        return self.facts.qualname

    @property
    def owner(self) -> Class | None:
        """The class it is a method of."""
        return self.module.cls(self.facts.owner) if self.facts.owner >= 0 else None

    @property
    def parent(self) -> Function | None:
        """The function around it; None at module level."""
        return self.module.function(self.facts.parent) if self.facts.parent > 0 else None

    @property
    def class_around(self) -> Class | None:
        """The class whose method it is, or in a method of which it is defined."""
        method: Function | None = self
        while method is not None and method.owner is None:
            method = method.parent
        return None if method is None else method.owner

    @property
    def is_async(self) -> bool:
        """Written `async def`."""
        return bool(self.facts.flags & ASYNC)

    @property
    def is_generator(self) -> bool:
        """Has a `yield` of its own."""
        return bool(self.facts.flags & GENERATOR)

    @property
    def waits(self) -> bool:
        """Has an `await`, an `async for` or an `async with` of its own, not only in a function inside it."""
        return bool(self.facts.flags & WAITS)

    @property
    def is_abstract(self) -> bool:
        """Its body says nothing."""
        return bool(self.facts.flags & ABSTRACT)

    @property
    def place(self) -> tuple[str, int]:
        """Path and line of its definition."""
        return self.module.path, self.facts.at[0]

    def decorated_with(self, *names: str) -> bool:
        """Whether one of its decorators is called one of `names`, whatever it is imported from."""
        for decorator in self.facts.decorators:
            node = decorator[1] if decorator[0] == "call" else decorator
            if node[0] == "name" and node[1] in names:
                return True
            if node[0] == "attr" and node[2] in names:
                return True
        return False


class Class:
    """A class of the project."""

    __slots__ = ("annotations", "facts", "index", "methods", "module", "values")

    def __init__(self, module: Module, index: int) -> None:
        self.module = module
        self.index = index
        self.facts: ClassFacts = module.facts.classes[index]
        self.methods = dict(self.facts.methods)
        self.annotations = dict(self.facts.annotations)
        self.values = dict(self.facts.values)

    @property
    def name(self) -> str:
        """Its name alone."""
        return self.facts.name

    @property
    def qualified(self) -> str:
        """Its name with module and outer classes."""
        return f"{self.module.name}.{self.facts.qualname}"

    @property
    def place(self) -> tuple[str, int]:
        """Path and line of its definition."""
        return self.module.path, self.facts.at[0]
