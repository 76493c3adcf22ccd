"""What a name at module level stands for, through imports, re-exports and stars."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

from troth.analysis.facts.fields import ASSIGN_TARGETS, ASSIGN_VALUE, KIND, NAME_ID, SCOPE_NAMES
from troth.analysis.facts.model import ImportFacts, declares_scope
from troth.analysis.facts.nodes import of_kind
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.symbols import Class, Function, Module
from troth.analysis.semantics.values import (
    NONE,
    ClassObject,
    External,
    FunctionValue,
    Instance,
    ModuleValue,
    Value,
    says_something,
    union,
)

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.resolve.project_files import ProjectFiles

__all__ = ["Names"]

_UNASKED = object()
_LONG = 20  # names that are asked for inside one another, before a row of mere names is passed along at once
_DEEPEST = 40  # and beyond which nothing is known; large projects come to nine


class Names:
    """Answers what names mean; every answer is kept."""

    def __init__(self, program: ProjectFiles) -> None:
        self._program = program
        self._known: MutableMapping[tuple[str, str], Value | None] = program.answers()
        self._asking: set[tuple[str, str]] = set()
        self._library: dict[str, Value | None] = {}

    def at_module(self, module: Module, name: str) -> Value | None:
        """What `name` stands for at the level of `module`; unknown where nothing or too much binds it."""
        key = (module.path, name)
        answer: Any = self._known.get(key, _UNASKED)
        if answer is not _UNASKED:
            return answer  # type: ignore[no-any-return]
        if key in self._asking:
            return None
        if len(self._asking) >= _LONG:
            last = self._last(module, name)
            if last is None or len(self._asking) >= _DEEPEST:
                return None
            module, name = last
        self._asking.add(key)
        try:
            value = self._look(module, name)
        finally:
            self._asking.discard(key)
        self._known[key] = value
        return value

    def _last(self, module: Module, name: str) -> tuple[Module, str] | None:
        """The end of a row of names that only stand for one another, in one file or many; None for a circle."""
        passed: set[tuple[str, str]] = set()
        while (module.path, name) not in passed:
            passed.add((module.path, name))
            bindings = module.bindings.get(name)
            binding = bindings[0] if bindings is not None and len(bindings) == 1 else None
            if isinstance(binding, ImportFacts) and binding.name is not None:
                target = self._target(module, binding.module, binding.level)
                if not isinstance(target, Module) or target is module or binding.name not in target.bindings:
                    return module, name
                module, name = target, binding.name
            elif (
                type(binding) is tuple and binding[0] is None and binding[1] is not None and binding[1][KIND] == "name"
            ):
                if binding[1][NAME_ID] not in module.bindings:
                    return module, name
                name = binding[1][NAME_ID]
            else:
                return module, name
        return None

    def binds(self, module: Module, name: str) -> bool:
        """Whether the module has such a name at all."""
        return name in module.bindings or self._star(module, name) is not None

    def _look(self, module: Module, name: str) -> Value | None:
        bindings = module.bindings.get(name)
        if bindings is None:
            starred = self._star(module, name)
            if starred is not None:
                return starred
            part = self._submodule(module, name)
            return None if part is None else ModuleValue(f"{module.name}.{name}", part)
        values = [self._binding(module, b) for b in self._settled(bindings)]
        if len(values) > 1:  # `X = None` before or in an `except ImportError` says nothing about the real one
            values = [v for v in values if v is not None and v is not NONE] or values[:1]
            values = [v for v in values if not isinstance(v, External)] or values[:1]  # the other one is not installed
        value = union(values)
        return (self._set_by_functions(module, name) or NONE) if value is NONE else value

    def _set_by_functions(self, module: Module, name: str) -> Value | None:
        """What functions set a name to that the module leaves empty (`client = None`), if all set the same class."""
        values: list[Value | None] = []
        for index, facts in enumerate(module.facts.functions):
            if not declares_scope(facts):
                continue
            function = module.function(index)
            body = function.body()
            if not any(name in node[SCOPE_NAMES].split() for node in of_kind(body, "scope")):
                continue
            assigned = [
                node[ASSIGN_VALUE] for node in of_kind(body, "assign") if ("name", name) in node[ASSIGN_TARGETS]
            ]
            values += [self._program.value_of(node, module, function) for node in assigned]
        real = [value for value in values if value is not NONE]
        first = real[0] if real else None
        if not isinstance(first, Instance) or not all(isinstance(v, Instance) and v.cls == first.cls for v in real):
            return None
        return Instance(first.cls, first.args, first.why, guess=True)

    def _settled(self, bindings: list[object]) -> list[object]:
        """The bindings that count: the last of several functions of one color, never an overload."""
        functions = [b for b in bindings if isinstance(b, Function) and not b.decorated_with("overload")]
        if len(functions) > 1 and len({f.is_async for f in functions}) == 1:
            functions = functions[-1:]
        classes = [b for b in bindings if isinstance(b, Class)][-1:]
        assigned = [b for b in bindings if not isinstance(b, Function | Class)]
        if functions or classes:
            assigned = [b for b in assigned if isinstance(b, ImportFacts)]
        return [*functions, *classes, *assigned]

    def _binding(self, module: Module, binding: object) -> Value | None:
        if isinstance(binding, Function):
            return FunctionValue(binding)
        if isinstance(binding, Class):
            return ClassObject(binding)
        if isinstance(binding, ImportFacts):
            return self.imported(module, binding.module, binding.name, binding.level)
        annotation, value = cast("tuple[Node | None, Node | None]", binding)
        if annotation is not None:
            annotated = self._program.annotated(annotation, module)
            if says_something(annotated) or value is None:
                return annotated
        return None if value is None else self._program.value_of(value, module)

    def _star(self, module: Module, name: str) -> Value | None:
        for imported in module.stars:
            target = self._target(module, imported.module, imported.level)
            if isinstance(target, Module):
                exports = target.exports
                is_public = exports is None or "*" in exports
                if (is_public and not name.startswith("_")) or (exports is not None and name in exports):
                    binding = self.at_module(target, name)
                    if binding is not None:
                        return binding
            elif isinstance(target, str) and not name.startswith("_"):
                binding = self.library(f"{target}.{name}")
                if binding is not None and not isinstance(binding, External):
                    return binding
        return None

    def imported_from(self, module: Module, binding: object) -> tuple[Module, str] | None:
        """The module and name behind an import of a name."""
        if not isinstance(binding, ImportFacts) or binding.name is None:
            return None
        target = self._target(module, binding.module, binding.level)
        return (target, binding.name) if isinstance(target, Module) else None

    def _target(self, module: Module, name: str, level: int) -> Module | str | None:
        """The module an import names: of the project, else a library's dotted name."""
        program = self._program
        if level:
            path = program.finder.relative(module.path, level, name) if module.own else None
            if path is not None:
                return program.module(path)
            base = module.name.split(".")
            if not module.is_package:
                base = base[:-1]
            base = base[: len(base) - (level - 1)] if level > 1 else base
            dotted = ".".join([*base, *([name] if name else [])])
            return program.installed(dotted) or dotted
        path = program.finder.find(name, module.path) if module.own else None
        if path is not None and path != module.path:
            return program.module(path)
        return program.installed(name) or name

    def module(self, dotted: str, importer: Module) -> Value | None:
        """The module of that dotted name, as seen from `importer`."""
        target = self._target(importer, dotted, 0)
        if isinstance(target, Module):
            return ModuleValue(dotted, target)
        return ModuleValue(dotted)

    def imported(self, module: Module, name: str, attribute: str | None, level: int) -> Value | None:
        """What `from name import attribute` (or `import name`) binds in `module`."""
        target = self._target(module, name, level)
        if attribute is None:
            return ModuleValue(name, target) if isinstance(target, Module) else ModuleValue(name)
        if isinstance(target, Module):
            if target is module:  # `from . import part` in the package itself
                part = self._submodule(target, attribute)
                if part is not None:
                    return ModuleValue(f"{target.name}.{attribute}", part)
            if attribute in target.bindings:
                return self.at_module(target, attribute)
            starred = self._star(target, attribute)
            if starred is not None:
                return starred
            sub = self._submodule(target, attribute)
            if sub is None:
                return None if level or not module.own else self._of_namesake(module, target, name, attribute)
            return ModuleValue(f"{target.name}.{attribute}", sub)
        if target is None:
            return None
        if level or self._program.finder.has_folder(name, module.path):  # a namespace package of the project
            path = self._program.finder.relative(module.path, level or 1, f"{name}.{attribute}" if name else attribute)
            path = path if level else self._program.finder.find(f"{name}.{attribute}", module.path)
            if path is not None:
                return ModuleValue(f"{target}.{attribute}", self._program.module(path))
        return self.library(f"{target}.{attribute}")

    def _of_namesake(self, module: Module, target: Module, name: str, attribute: str) -> Value | None:
        """What another module of that name has, of the project or of a library: `target` was the wrong one.

        Tests and scripts have folders of their own on `sys.path`, and files are called like the library they use.
        """
        if "__getattr__" in target.bindings or target.stars:
            return None  # it may have more than can be seen
        finder = self._program.finder
        part = finder.find(f"{name}.{attribute}", module.path)
        if part is not None:
            return ModuleValue(f"{name}.{attribute}", self._program.module(part))
        for path in finder.namesakes(name, module.path):
            namesake = self._program.module(path)
            if namesake is not target and namesake is not module and attribute in namesake.bindings:
                return self.at_module(namesake, attribute)
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or library.knows(top):
            return self.library(f"{name}.{attribute}")
        return None

    def _submodule(self, package: Module, name: str) -> Module | None:
        if not package.is_package:
            return None
        if package.own:
            path = self._program.finder.relative(package.path, 1, name)
            return None if path is None else self._program.module(path)
        return self._program.installed(f"{package.name}.{name}")

    def attribute(self, value: ModuleValue, name: str) -> Value | None:
        """What `module.name` stands for."""
        if value.module is not None:
            module = value.module
            if name in module.bindings:
                return self.at_module(module, name)
            starred = self._star(module, name)
            if starred is not None:
                return starred
            sub = self._submodule(module, name)
            return None if sub is None else ModuleValue(f"{module.name}.{name}", sub)
        starred = self.library(f"{value.name}.{name}")
        if starred is not None and not isinstance(starred, External):
            return starred
        path = self._program.finder.find(f"{value.name}.{name}", "")
        if path is not None:
            return ModuleValue(f"{value.name}.{name}", self._program.module(path))
        installed = self._program.installed(f"{value.name}.{name}")
        return starred if installed is None else ModuleValue(f"{value.name}.{name}", installed)

    def library(self, dotted: str) -> Value | None:
        """What a dotted name of a library stands for, by the tables."""
        if dotted not in self._library:
            self._library[dotted] = self._in_tables(dotted)
        return self._library[dotted]

    def _in_tables(self, dotted: str) -> Value | None:
        if "." in dotted:
            installed = self._program.installed(dotted.rpartition(".")[0])
            if installed is not None:
                binding = self.at_module(installed, dotted.rpartition(".")[2])
                if binding is not None:
                    return binding
        found_there = library.find(dotted)
        if found_there is None or self._program.is_older(dotted.partition(".")[0]):
            return External(dotted)
        if found_there.kind == "module":
            return ModuleValue(dotted)
        if found_there.kind == "class":
            return ClassObject(library.library_class(found_there.name))
        if found_there.kind in {"function", "method"}:
            return FunctionValue(library.LibraryFunction(found_there.name, found_there.sig))
        return self._program.written(found_there.type)
