"""Find which definitions change color together: overrides, what they override, protocols, stubs."""

from collections.abc import Collection, Iterable

from troth.analysis.facts.model import PARAM_KIND, PARAM_NAME
from troth.analysis.semantics import Program
from troth.analysis.semantics.queries.color_requirements import is_protocol
from troth.analysis.semantics.symbols import Class, Function

__all__ = ["family", "fulfilling", "may_fulfil", "protocols_met", "stands_in"]

_TELLING = 2  # methods that a class hardly has by chance


def family(program: Program, functions: Iterable[Function]) -> tuple[Function, ...]:
    """`functions` with all that Python or a type checker takes for the same method, in the order they are met."""
    members: dict[Function, None] = {}
    todo = list(functions)
    while todo:
        function = todo.pop(0)
        if function in members:
            continue
        members[function] = None
        todo += _twins(program, function)
        owner = function.owner
        if owner is None:
            continue
        related = [base for base in program.classes.order(owner) if isinstance(base, Class)]
        related += [*program.classes.children(owner), *protocols_met(program, owner, function.name)]
        if is_protocol(owner):
            related += fulfilling(program, owner)
        for cls in related:
            todo += [cls.module.function(index) for index in cls.methods.get(function.name, ())]
    return tuple(members)


def protocols_met(program: Program, cls: Class, name: str) -> list[Class]:
    """The protocols of the project with a method `name` that only `cls` and its relatives can stand in for.

    One that other classes fulfil as well speaks for them too; it is not the target's to change.
    """
    result = []
    for protocol in _protocols(program):
        names = set(protocol.methods)
        if name not in names or not names <= _all_methods(program, cls):
            continue
        kin = {cls, *program.classes.children(cls), *program.classes.order(cls)}
        fulfilling = [
            candidate
            for candidate in _classes(program)
            if candidate not in kin
            and candidate is not protocol
            and not is_protocol(candidate)
            and names <= set(candidate.methods)
            and not _are_twins(candidate, cls)
        ]
        if not fulfilling:
            result.append(protocol)
    return result


def fulfilling(program: Program, protocol: Class) -> list[Class]:
    """The classes of the project that can stand in for a protocol: they have all of its methods.

    One method is had by chance as well; where it takes something, under the same names, it is taken for the same.
    """
    able = stands_in(program, protocol)
    if len(protocol.methods) >= _TELLING:
        return able
    return [cls for cls in able if all(_takes_the_same(program, protocol, cls, name) for name in protocol.methods)]


def stands_in(program: Program, protocol: Class) -> list[Class]:
    """The classes of the project that have all methods of a protocol, be it a single one."""
    names = set(protocol.methods)
    return [cls for cls in _classes(program) if not is_protocol(cls) and names <= _all_methods(program, cls)]


def _takes_the_same(program: Program, protocol: Class, cls: Class, name: str) -> bool:
    asked = _parameters(program, protocol, name)
    return len(asked) > 1 and not name.startswith("__") and _parameters(program, cls, name) == asked


def _parameters(program: Program, cls: Class, name: str) -> list[str]:
    """The names of the parameters of a method, wherever the class has it from."""
    for base in program.classes.order(cls):
        if isinstance(base, Class) and name in base.methods:
            return [param[PARAM_NAME] for param in base.module.function(base.methods[name][-1]).facts.params]
    return []


def may_fulfil(program: Program, function: Function, changed: Collection[Function]) -> list[Function]:
    """The methods of other classes that may be called for one of a protocol, whose only method says too little."""
    owner = function.owner
    if owner is None or not is_protocol(owner) or len(owner.methods) >= _TELLING:
        return []
    methods = [
        cls.module.function(index)
        for cls in _classes(program)
        if not is_protocol(cls)
        for index in cls.methods.get(function.name, ())
    ]
    asked = len(function.facts.positional)
    return [
        method
        for method in methods
        if method not in changed and method.is_async == function.is_async and _takes(method, asked)
    ]


def _takes(method: Function, count: int) -> bool:
    """Whether a method may be called with so many arguments by their place."""
    kinds = {param[PARAM_KIND] for param in method.facts.params}
    return len(method.facts.positional) >= count or "*" in kinds


def _twins(program: Program, function: Function) -> list[Function]:
    """The same function in the stub beside its module, or the other way round, and its overloads."""
    path = function.module.path
    stub = path[:-1] if path.endswith(".pyi") else f"{path}i"
    twins: list[Function] = []
    for file in (path, stub):
        if file in program.paths:
            module = program.module(file)
            twins += [
                module.function(index)
                for index, facts in enumerate(module.facts.functions)
                if index and facts.qualname == function.qualname
            ]
    return twins


def _are_twins(one: Class, other: Class) -> bool:
    """Whether one is the other's stub."""
    paths = sorted((one.module.path, other.module.path))
    return one.facts.qualname == other.facts.qualname and paths[1] == f"{paths[0]}i"


def _classes(program: Program) -> list[Class]:
    return [module.cls(index) for module in program.own_modules() for index in range(len(module.facts.classes))]


def _protocols(program: Program) -> list[Class]:
    return [cls for cls in _classes(program) if cls.methods and is_protocol(cls)]


def _all_methods(program: Program, cls: Class) -> set[str]:
    return {name for base in program.classes.order(cls) if isinstance(base, Class) for name in base.methods}
