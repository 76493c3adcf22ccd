"""What a name means in a module: where it is defined, through imports, stars and assignments."""

import ast
import builtins
from dataclasses import dataclass, field
from typing import Literal

from tools.knowledge.sources import ClassSource, ModuleSource

__all__ = ["Definition", "Names"]

_BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True, slots=True)
class Definition:
    """What a fully qualified name stands for. `external`: it belongs to another package and is taken as written."""

    kind: Literal["module", "class", "function", "value", "external", "builtin"]
    name: str
    home: str = ""
    local: str = ""


@dataclass(slots=True)
class Names:
    """The modules of one package, and the answers already given about them."""

    modules: dict[str, ModuleSource]
    _known: dict[tuple[str, str], Definition | None] = field(default_factory=dict)
    _tops: set[str] = field(default_factory=set)

    def find(self, dotted: str) -> Definition | None:
        """The definition behind a fully qualified name, however it was re-exported."""
        parts = dotted.split(".")
        if not self._tops:
            self._tops = {name.partition(".")[0] for name in self.modules}
        if parts[0] not in self._tops:
            return Definition("external", dotted)
        for count in range(len(parts), 0, -1):
            home = ".".join(parts[:count])
            if home in self.modules:
                return self._inside(Definition("module", home, home), parts[count:])
        return None

    def resolve(self, home: str, expression: ast.expr, scope: str = "") -> Definition | None:
        """What a dotted expression means in the module `home`, seen from inside the class `scope`."""
        parts: list[str] = []
        while isinstance(expression, ast.Attribute):
            parts.insert(0, expression.attr)
            expression = expression.value
        if not isinstance(expression, ast.Name):
            return None
        first = self._in_scope(home, scope, expression.id) or self.attribute(home, expression.id)
        if first is None:
            return Definition("builtin", expression.id) if expression.id in _BUILTINS and not parts else None
        return self._inside(first, parts)

    def _in_scope(self, home: str, scope: str, name: str) -> Definition | None:
        module = self.modules[home]
        while scope:
            if (nested := f"{scope}.{name}") in module.classes:
                return Definition("class", f"{home}.{nested}", home, nested)
            scope = scope.rpartition(".")[0]
        return None

    def _inside(self, start: Definition, parts: list[str]) -> Definition | None:
        definition: Definition | None = start
        for place, part in enumerate(parts):
            if definition is None:
                return None
            if definition.kind == "external":
                return Definition("external", ".".join([definition.name, *parts[place:]]))
            if definition.kind == "module":
                definition = self.attribute(definition.home, part)
            elif definition.kind == "class" and f"{definition.local}.{part}" in self.modules[definition.home].classes:
                local = f"{definition.local}.{part}"
                definition = Definition("class", f"{definition.home}.{local}", definition.home, local)
            else:
                return None
        return definition

    def attribute(self, home: str, name: str) -> Definition | None:
        """What `name` means as an attribute of the module `home`."""
        key = (home, name)
        if key not in self._known:
            self._known[key] = None  # a cycle of imports ends here
            self._known[key] = self._attribute(home, name)
        return self._known[key]

    def _attribute(self, home: str, name: str) -> Definition | None:
        module = self.modules[home]
        if name in module.classes:
            return Definition("class", f"{home}.{name}", home, name)
        if name in module.functions:
            return Definition("function", f"{home}.{name}", home, name)
        if (value := module.values.get(name)) is not None:
            if isinstance(value, ast.Name | ast.Attribute):
                target = self.resolve(home, value) if not (isinstance(value, ast.Name) and value.id == name) else None
                if target is not None and target.kind != "value":
                    return target
            return Definition("value", f"{home}.{name}", home, name)
        if name in module.annotations:
            return Definition("value", f"{home}.{name}", home, name)
        if (target_name := module.imports.get(name)) is not None:
            definition = self.find(target_name)
            if definition is not None:
                return definition
        for star in module.stars:
            source = self.modules.get(star)
            if source is None:
                continue
            exported = name in self.exports(star) if source.exports is not None else not name.startswith("_")
            if exported and (definition := self.attribute(star, name)) is not None:
                return definition
        if (submodule := f"{home}.{name}") in self.modules:
            return Definition("module", submodule, submodule)
        return None

    def exports(self, home: str) -> list[str]:
        """The names in `__all__`, those of other modules that it adds to its own included."""
        module = self.modules[home]
        names: list[str] = []
        for name in module.exports or []:
            if not name.startswith("*"):
                names.append(name)
                continue
            definition = self.attribute(home, name[1:])
            if definition is not None and definition.kind == "module" and definition.home != home:
                names += self.exports(definition.home)
        return names

    def class_source(self, definition: Definition) -> ClassSource | None:
        """The class as written, where the definition is one of this package."""
        if definition.kind != "class":
            return None
        return self.modules[definition.home].classes[definition.local]
