"""Read the modules of a package: what each defines, imports and exports, without running it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

__all__ = ["ClassSource", "Def", "ModuleSource", "read_package"]

Def: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_NOT_SURFACE = {
    "tests",
    "test",
    "conftest",
    "examples",
    "_vendor",
    "vendor",
    "vendored",
    "__main__",
    "locale",
}
"""Parts of a module's name that are nobody's public surface."""

_DUAL = ("iscoroutinefunction", "isawaitable", "iscoroutine", "is_async_callable", "maybe_coroutine", "maybe_await")
"""A module that asks these accepts both colors, whatever its annotations say."""


@dataclass(slots=True)
class ClassSource:
    """One class as written. `name` is dotted for a nested class."""

    name: str
    node: ast.ClassDef
    bases: list[ast.expr]
    methods: dict[str, list[Def]] = field(default_factory=dict)
    attributes: dict[str, ast.expr] = field(default_factory=dict)
    """Annotations: of the class body, and of `self.x` in its methods."""
    values: dict[str, ast.expr] = field(default_factory=dict)
    """What is assigned without an annotation in the class body."""
    built: dict[str, tuple[ast.expr, Def]] = field(default_factory=dict)
    """What `__init__` assigns to `self.x` without an annotation."""


@dataclass(slots=True)
class ModuleSource:
    """One module as written. The first definition of a name wins: the newest branch, or the one made for checkers."""

    name: str
    is_package: bool
    is_stub: bool = False
    accepts_both: bool = False
    exports: list[str] | None = None
    imports: dict[str, str] = field(default_factory=dict)
    reexports: set[str] = field(default_factory=set)
    """Imported under the same name on purpose: `from x import Y as Y`."""
    stars: list[str] = field(default_factory=list)
    functions: dict[str, list[Def]] = field(default_factory=dict)
    classes: dict[str, ClassSource] = field(default_factory=dict)
    values: dict[str, ast.expr] = field(default_factory=dict)
    annotations: dict[str, ast.expr] = field(default_factory=dict)


def read_package(
    root: Path, top_level: str, only: tuple[str, ...] = (), without: tuple[str, ...] = ()
) -> dict[str, ModuleSource]:
    """All modules of `top_level` under the folder `root`, stubs before sources.

    `only` and `without` are prefixes of module names: a package of thousands of modules is read where it is used.
    """
    modules: dict[str, ModuleSource] = {}
    for name, path in sorted(_files(root, top_level).items()):
        is_chosen = not only or any(_within(name, prefix) or _within(prefix, name) for prefix in only)
        if not is_chosen or any(_within(name, prefix) for prefix in without):
            continue
        try:
            text = path.read_bytes().decode("utf-8-sig")
            tree = ast.parse(text, type_comments=False)
        except (SyntaxError, UnicodeDecodeError, ValueError):
            continue  # written for a newer interpreter or a template: no table can be made of it
        module = ModuleSource(name, path.stem == "__init__", is_stub=path.suffix == ".pyi")
        module.accepts_both = any(word in text for word in _DUAL)
        _read_body(module, tree.body)
        modules[name] = module
    return modules


def _within(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")


def _files(root: Path, top_level: str) -> dict[str, Path]:
    files: dict[str, Path] = {}
    candidates = [root / f"{top_level}.py", root / f"{top_level}.pyi"]
    for folder in (root / top_level, root / f"{top_level}-stubs"):
        if folder.is_dir():
            candidates += sorted(folder.rglob("*.py")) + sorted(folder.rglob("*.pyi"))
    for path in candidates:
        if not path.is_file():
            continue
        parts = list(path.relative_to(root).with_suffix("").parts)
        parts[0] = parts[0].removesuffix("-stubs")
        if parts[-1] == "__init__":
            parts.pop()
        if not all(part.isidentifier() for part in parts) or _NOT_SURFACE & set(parts[1:]):
            continue
        files[".".join(parts)] = path  # later wins: a stub lies after the source it speaks for
    return files


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        match statement:
            case ast.If(test=ast.Compare(left=ast.Attribute(attr="version_info"), ops=[ast.Lt()])):
                yield from _statements([*statement.orelse, *statement.body])  # the newer branch speaks first
            case ast.If() | ast.For() | ast.While():
                yield from _statements([*statement.body, *statement.orelse])
            case ast.Try():
                handlers = [inner for handler in statement.handlers for inner in handler.body]
                yield from _statements([*statement.body, *statement.orelse, *handlers, *statement.finalbody])
            case ast.With():
                yield from _statements(statement.body)
            case _:
                yield statement


def _read_body(module: ModuleSource, body: list[ast.stmt]) -> None:
    for statement in _statements(body):
        if (
            isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and statement.name in module.imports
        ):
            continue  # what stands in for an import that fails
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                _add_def(module.functions, statement, is_stub=module.is_stub)
            case ast.ClassDef():
                _read_class(module, statement, "")
            case ast.Import():
                for alias in statement.names:
                    target = alias.name if alias.asname else alias.name.partition(".")[0]
                    module.imports.setdefault(alias.asname or target, target)
            case ast.ImportFrom():
                _read_import(module, statement)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                _read_value(module, name, value)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                if name == "__all__" and value is not None:
                    _read_value(module, name, value)
                elif "TypeAlias" in ast.dump(annotation) and value is not None:
                    module.values.setdefault(name, value)
                else:
                    module.annotations.setdefault(name, annotation)
            case ast.AugAssign(target=ast.Name(id="__all__"), value=value):
                _read_value(module, "__all__", value)
            case ast.stmt() if type(statement).__name__ == "TypeAlias":
                alias_name, alias_value = statement.name.id, statement.value  # type: ignore[attr-defined]
                module.values.setdefault(alias_name, alias_value)
            case _:
                pass


def _read_value(module: ModuleSource, name: str, value: ast.expr) -> None:
    if name != "__all__":
        module.values.setdefault(name, value)
        return
    module.exports = module.exports or []
    for node in ast.walk(value):
        match node:
            case ast.Constant(value=str(text)):
                module.exports.append(text)
            case ast.Attribute(value=ast.Name(id=module_name), attr="__all__"):
                module.exports.append(f"*{module_name}")
            case _:
                pass


def _read_import(module: ModuleSource, statement: ast.ImportFrom) -> None:
    home = statement.module or ""
    if statement.level:
        parts = module.name.split(".")
        keep = len(parts) - statement.level + (1 if module.is_package else 0)
        home = ".".join([*parts[:keep], *([home] if home else [])])
    for alias in statement.names:
        if alias.name == "*":
            module.stars.append(home)
        else:
            module.imports.setdefault(alias.asname or alias.name, f"{home}.{alias.name}")
            if alias.asname == alias.name:
                module.reexports.add(alias.name)


def _add_def(into: dict[str, list[Def]], node: Def, *, is_stub: bool) -> None:
    defs = into.setdefault(node.name, [])
    if defs and (_is_setter(node) or not (_is_overload(defs[-1]) or (is_stub and _is_overload(node)))):
        return  # a setter, or a second branch of the same name
    defs.append(node)


def _is_overload(node: Def) -> bool:
    return any(ast.unparse(decorator).endswith("overload") for decorator in node.decorator_list)


def _is_setter(node: Def) -> bool:
    return any(isinstance(d, ast.Attribute) and d.attr in {"setter", "deleter"} for d in node.decorator_list)


def _read_class(module: ModuleSource, node: ast.ClassDef, outer: str) -> None:
    source = ClassSource(f"{outer}{node.name}", node, list(node.bases))
    if source.name in module.classes:
        return
    module.classes[source.name] = source
    for statement in _statements(node.body):
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                _add_def(source.methods, statement, is_stub=module.is_stub)
                if not module.is_stub:
                    _read_self(source, statement)
            case ast.ClassDef():
                _read_class(module, statement, f"{source.name}.")
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                is_alias = value is not None and "TypeAlias" in ast.dump(annotation)
                source.attributes[name] = value if is_alias and value is not None else annotation
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript(value=ast.Name(id=generic)) as value):
                source.values.setdefault(name, value)
                if generic[:1].isupper():  # `DEFAULT_TYPE = CallbackContext[Bot, Data]`: the name of a type
                    source.attributes.setdefault(name, value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                source.values.setdefault(name, value)
            case _:
                pass


def _read_self(source: ClassSource, method: Def) -> None:
    if not method.args.args:
        return
    this = method.args.args[0].arg
    for node in ast.walk(method):
        match node:
            case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id=owner), attr=name), annotation=annotation):
                if owner == this:
                    source.attributes.setdefault(name, annotation)
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=owner), attr=name)], value=value):
                if owner == this and method.name == "__init__":
                    source.built.setdefault(name, (value, method))
            case _:
                pass
