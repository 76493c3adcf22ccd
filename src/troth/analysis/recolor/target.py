"""What a target names: `package.module:Class`, `:function`, `:Class.method`, or a file and the same."""

from dataclasses import dataclass
from difflib import get_close_matches

from troth.analysis.semantics import Program
from troth.analysis.semantics.symbols import Class, Function, Module
from troth.analysis.semantics.values import ClassObject, FunctionValue, members_of
from troth.errors import MisuseError

__all__ = ["Target", "find_target"]


@dataclass(frozen=True, slots=True)
class Target:
    """What is recolored: a class's methods, or functions. `cls` is the class of a class target."""

    text: str
    functions: tuple[Function, ...]
    cls: Class | None = None
    module: Module | None = None


def find_target(program: Program, text: str) -> Target:
    """The functions behind `text`; `MisuseError` says what is there if it names nothing."""
    where, _, name = text.partition(":")
    module = _module(program, where)
    if module is None:
        near = get_close_matches(where, [module.name for module in program.own_modules()], n=3, cutoff=0.6)
        hint = f" Did you mean {' or '.join(f'`{module}`' for module in near)}?" if near else ""
        raise MisuseError(
            f"No module of the project is called {where!r}.{hint}\nNothing was changed.\n"
            "A target is `package.module:Class`, `package.module:function`, `package.module:Class.method` or "
            "`path/to/file.py:Class`."
        )
    if not name:
        functions = [module.function(index) for index in range(1, len(module.facts.functions))]
        return Target(text, tuple(function for function in functions if function.parent is None), None, module)
    head, _, method = name.partition(".")
    for member in members_of(program.names.at_module(module, head) if program.names.binds(module, head) else None):
        if isinstance(member, ClassObject) and isinstance(member.cls, Class):
            return _of_class(text, member.cls, method)
        if isinstance(member, FunctionValue) and isinstance(member.function, Function) and not method:
            return Target(text, (member.function,))
    if (target := _inside(text, module, name)) is not None:
        return target
    names = sorted(module.bindings)
    if head in names:
        raise MisuseError(_nothing_inside(module, head, name))
    near = get_close_matches(head, names, n=3, cutoff=0.5)
    raise MisuseError(
        f"{module.path} has no class or function {head!r}.\nNothing was changed.\n"
        + (
            f"Did you mean {' or '.join(f'`{module}`' for module in near)}?"
            if near
            else f"It has {', '.join(names[:12])}."
        )
    )


def _inside(text: str, module: Module, name: str) -> Target | None:
    """What is defined in a function, or in a class of a class, by its whole name: `outer.inner`."""
    functions = [index for index, facts in enumerate(module.facts.functions) if index and facts.qualname == name]
    if functions:
        return Target(text, tuple(module.function(index) for index in functions))
    classes = [index for index, facts in enumerate(module.facts.classes) if facts.qualname == name]
    return _of_class(text, module.cls(classes[-1]), "") if classes else None


def _nothing_inside(module: Module, head: str, name: str) -> str:
    inner = [facts.qualname for facts in module.facts.functions[1:] if facts.qualname.startswith(f"{head}.")]
    near = get_close_matches(name, inner, n=3, cutoff=0.5) or inner[:12]
    is_said = f"It has {', '.join(f'`{inside}`' for inside in near)}." if near else "Name it alone."
    return f"{module.path}: nothing in {head!r} is called {name.partition('.')[2]!r}.\nNothing was changed.\n{is_said}"


def _of_class(text: str, cls: Class, method: str) -> Target:
    if not method:
        functions = [cls.module.function(index) for indexes in cls.methods.values() for index in indexes]
        return Target(text, tuple(functions), cls)
    if method not in cls.methods and (inner := _inside(text, cls.module, f"{cls.facts.qualname}.{method}")) is not None:
        return inner
    if method not in cls.methods:
        near = get_close_matches(method, cls.methods, n=3, cutoff=0.5)
        raise MisuseError(
            f"`{cls.name}` ({cls.place[0]}:{cls.place[1]}) has no method {method!r} of its own.\nNothing was changed.\n"
            f"{'Did you mean ' + ' or '.join(near) + '?' if near else 'It has ' + ', '.join(cls.methods) + '.'}"
        )
    return Target(text, tuple(cls.module.function(index) for index in cls.methods[method]))


def _module(program: Program, where: str) -> Module | None:
    tidy = where.removeprefix("./")
    if tidy in program.paths:
        return program.module(tidy)
    path = program.finder.find(where, "") if where and "/" not in where else None
    if path is None:
        return None
    if path.endswith(".pyi") and path[:-1] in program.paths:
        path = path[:-1]  # a stub describes; the module beside it is the thing itself
    return program.module(path)
