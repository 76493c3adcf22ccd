"""The whole surface of one package: every function and class with its signature, corrected by what was seen."""

import ast
from dataclasses import dataclass, field

from tools.knowledge.annotations import ANY, Annotations, Type
from tools.knowledge.decorators import Decorators
from tools.knowledge.kinds import Kinds
from tools.knowledge.names import Definition, Names
from tools.knowledge.observed import Observed
from tools.knowledge.signatures import Signature, Signatures
from tools.knowledge.sources import ClassSource, ModuleSource

__all__ = ["ClassSurface", "Surface", "read_surface"]


@dataclass(slots=True)
class ClassSurface:
    """One class: its bases, methods and attribute types."""

    bases: list[Type]
    methods: dict[str, Signature] = field(default_factory=dict)
    attributes: dict[str, Type] = field(default_factory=dict)


@dataclass(slots=True)
class Surface:
    """What a package defines, by fully qualified name, and which names its modules pass on."""

    names: Names
    kinds: Kinds
    functions: dict[str, Signature] = field(default_factory=dict)
    classes: dict[str, ClassSurface] = field(default_factory=dict)
    variables: dict[str, Type] = field(default_factory=dict)
    exports: dict[str, str] = field(default_factory=dict)
    """`module.name` → what it stands for, where that is defined elsewhere."""
    homes: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Fully qualified name of a function, class or variable → its module and its name there."""


def read_surface(
    modules: dict[str, ModuleSource], observed: Observed, renamed: dict[str, str] | None = None
) -> Surface:
    """Everything the modules offer, private things included; `prune` decides what is worth keeping."""
    names = Names(modules)
    annotations = Annotations(names, renamed or {})
    surface = Surface(names, Kinds(annotations))
    signatures = Signatures(surface.kinds, Decorators(annotations))
    public = annotations.renamed
    for home, module in modules.items():
        for name, defs in module.functions.items():
            full = public.get(f"{home}.{name}", f"{home}.{name}")
            surface.functions[full] = observed.corrected(full, signatures.of(home, defs))
            surface.homes[full] = _place(full, home, name, public)
        for name, source in module.classes.items():
            full = public.get(f"{home}.{name}", f"{home}.{name}")
            surface.classes[full] = _read_class(surface, signatures, observed, home, source)
            surface.homes[full] = _place(full, home, name, public)
        _read_variables(surface, home, module)
        _read_exports(surface, home, module)
    for alias, target in observed.aliases.items():
        if alias not in surface.homes and alias not in surface.exports and target in surface.homes:
            surface.exports[alias] = target
    _settle_passed_on(surface)
    return surface


def _place(full: str, home: str, name: str, renamed: dict[str, str]) -> tuple[str, str]:
    if f"{home}.{name}" not in renamed:
        return home, name
    return full[: -len(name) - 1], name


def _read_class(
    surface: Surface, signatures: Signatures, observed: Observed, home: str, source: ClassSource
) -> ClassSurface:
    definition = Definition("class", f"{home}.{source.name}", home, source.name)
    full = surface.kinds.annotations.renamed.get(definition.name, definition.name)
    read = surface.kinds.annotations.read
    cls = ClassSurface(surface.kinds.bases(definition))
    for name, defs in source.methods.items():
        cls.methods[name] = observed.corrected(f"{full}.{name}", signatures.of(home, defs, source.name))
    for name, annotation in source.attributes.items():
        cls.attributes[name] = read(home, annotation, source.name)
    for name, value in source.values.items():
        if isinstance(value, ast.Name) and value.id in cls.methods:
            cls.methods.setdefault(name, cls.methods[value.id])
        elif name not in cls.methods and isinstance(value, ast.Name | ast.Attribute):
            taken = surface.names.resolve(home, value, source.name)  # `__enter__ = helpers._sync_enter`
            if taken is not None and taken.kind == "function":
                cls.methods[name] = signatures.of(taken.home, surface.names.modules[taken.home].functions[taken.local])
    for name, (value, init) in source.built.items():
        if name not in cls.attributes and name not in cls.methods:
            cls.attributes[name] = _built(surface, home, source, value, init.args)
    for name, color in observed.methods_of(full).items():
        if name not in cls.methods and color in "agm":
            cls.methods[name] = Signature(color)  # made by a decorator or a metaclass
    return cls


def _built(surface: Surface, home: str, source: ClassSource, value: ast.expr, arguments: ast.arguments) -> Type:
    """The type of what `__init__` puts on `self`: an annotated parameter, or an object of a class it names."""
    match value:
        case ast.Name(id=name):
            for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
                if argument.arg == name and argument.annotation is not None:
                    return surface.kinds.annotations.read(home, argument.annotation, source.name)
        case ast.Call(func=ast.Name() | ast.Attribute() as maker):
            cls = surface.names.resolve(home, maker, source.name)
            if cls is not None and cls.kind == "class":
                return surface.kinds.annotations.named(cls)
        case _:
            pass
    return ANY


def _read_variables(surface: Surface, home: str, module: ModuleSource) -> None:
    for name, annotation in module.annotations.items():
        surface.variables[f"{home}.{name}"] = surface.kinds.annotations.read(home, annotation)
        surface.homes[f"{home}.{name}"] = (home, name)
    for name, value in module.values.items():
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name | ast.Attribute):
            cls = surface.names.resolve(home, value.func)
            if cls is not None and cls.kind == "class":
                surface.variables[f"{home}.{name}"] = surface.kinds.annotations.named(cls)
                surface.homes[f"{home}.{name}"] = (home, name)


def _read_exports(surface: Surface, home: str, module: ModuleSource) -> None:
    names = [*module.imports, *surface.names.exports(home)]
    names += [name for name, value in module.values.items() if isinstance(value, ast.Name | ast.Attribute)]
    for star in module.stars:
        star_source = surface.names.modules.get(star)
        if star_source is None:
            continue
        listed = surface.names.exports(star)
        names += listed if star_source.exports is not None else _all_names(surface.names, star, frozenset())
    exported = set(surface.names.exports(home)) if module.exports is not None else None
    for name in dict.fromkeys(names):
        if name.startswith("_") or (exported is not None and name not in exported and not module.is_package):
            continue
        definition = surface.names.attribute(home, name)
        if definition is None or definition.kind in {"value", "builtin"}:
            continue
        target = surface.kinds.annotations.renamed.get(definition.name, definition.name)
        if target != f"{home}.{name}":
            surface.exports[f"{home}.{name}"] = target


def _all_names(names: Names, home: str, above: frozenset[str]) -> list[str]:
    module = names.modules[home]
    all_names = [*module.classes, *module.functions, *module.imports]
    for star in module.stars:
        if star in names.modules and star not in above:
            all_names += _all_names(names, star, above | {home})
    return [name for name in all_names if not name.startswith("_") and "." not in name]


def _settle_passed_on(surface: Surface) -> None:
    """Give methods that only pass on another one's result the color that one has in each class.

    `def get(self, key): return self.execute_command(...)` is plain in a client whose `execute_command` is plain and a
    coroutine in one whose `execute_command` is async; both clients inherit the same `get`.
    """
    for full, cls in surface.classes.items():
        lineage = [surface.classes[name] for name in _lineage(surface, full)]
        for name in dict.fromkeys(name for owner in lineage for name, sig in owner.methods.items() if sig.passes_on):
            sig = next(owner.methods[name] for owner in lineage if name in owner.methods)
            if sig.decided or not sig.passes_on:
                continue
            color = _color_in(lineage, name, 0)
            if color is not None and color != sig.color:
                cls.methods[name] = sig.recolored(color)


def _lineage(surface: Surface, full: str) -> list[str]:
    renamed = surface.kinds.annotations.renamed
    names = [renamed.get(definition.name, definition.name) for definition in surface.kinds.lineage(full)]
    return [name for name in names if name in surface.classes]


def _color_in(lineage: list[ClassSurface], name: str, depth: int) -> str | None:
    """The color of a method in the class at the head of `lineage`; None where it cannot be told."""
    place = next((place for place, owner in enumerate(lineage) if name in owner.methods), None)
    if place is None or depth > 6:
        return None
    sig = lineage[place].methods[name]
    if sig.decided or not sig.passes_on:
        return sig.color
    colors = set()
    for target in sig.passes_on:
        if target.startswith("super."):
            colors.add(_color_in(lineage[place + 1 :], target.removeprefix("super."), depth + 1))
        else:
            colors.add(_color_in(lineage, target, depth + 1))
    if None in colors:
        return None
    return colors.pop() if len(colors) == 1 else "o"
