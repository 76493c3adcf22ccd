"""Find which definitions change color together: overrides, what they override, protocols, stubs."""

from collections.abc import Collection, Iterable

from troth.analysis.semantics import Program
from troth.analysis.semantics.queries.color_requirements import is_protocol
from troth.analysis.semantics.symbols import Class, Function

__all__ = ["family", "fulfilling", "may_fulfil", "protocols_met"]

_TELLING = 2  # methods that a class hardly has by chance


def family(program: Program, functions: Iterable[Function]) -> tuple[Function, ...]:
    """`functions` with all that Python or a type checker takes for the same method, in the order they are met."""
    found: dict[Function, None] = {}
    todo = list(functions)
    while todo:
        function = todo.pop(0)
        if function in found:
            continue
        found[function] = None
        todo += _twins(program, function)
        owner = function.owner
        if owner is None:
            continue
        related = [one for one in program.classes.order(owner) if isinstance(one, Class)]
        related += [*program.classes.children(owner), *protocols_met(program, owner, function.name)]
        if is_protocol(owner):
            related += fulfilling(program, owner)
        for cls in related:
            todo += [cls.module.function(index) for index in cls.methods.get(function.name, ())]
    return tuple(found)


def protocols_met(program: Program, cls: Class, name: str) -> list[Class]:
    """The protocols of the project with a method `name` that only `cls` and its relatives can stand in for.

    One that other classes fulfil as well speaks for them too; it is not the target's to change.
    """
    result = []
    for protocol in _protocols(program):
        wanted = set(protocol.methods)
        if name not in wanted or not wanted <= _all_methods(program, cls):
            continue
        kin = {cls, *program.classes.children(cls), *program.classes.order(cls)}
        others = [
            one
            for one in _classes(program)
            if one not in kin
            and one is not protocol
            and not is_protocol(one)
            and wanted <= set(one.methods)
            and not _are_twins(one, cls)
        ]
        if not others:
            result.append(protocol)
    return result


def fulfilling(program: Program, protocol: Class) -> list[Class]:
    """The classes of the project that can stand in for a protocol: they have all of its methods, and more than one."""
    wanted = set(protocol.methods)
    if len(wanted) < _TELLING:
        return []
    return [one for one in _classes(program) if not is_protocol(one) and wanted <= _all_methods(program, one)]


def may_fulfil(program: Program, function: Function, changed: Collection[Function]) -> list[Function]:
    """The methods of other classes that may be called for one of a protocol, whose only method says too little."""
    owner = function.owner
    if owner is None or not is_protocol(owner) or len(owner.methods) >= _TELLING:
        return []
    found = [
        one.module.function(index)
        for one in _classes(program)
        if not is_protocol(one)
        for index in one.methods.get(function.name, ())
    ]
    return [one for one in found if one not in changed and one.is_async == function.is_async]


def _twins(program: Program, function: Function) -> list[Function]:
    """The same function in the stub beside its module, or the other way round, and its overloads."""
    path = function.module.path
    other = path[:-1] if path.endswith(".pyi") else f"{path}i"
    twins: list[Function] = []
    for one in (path, other):
        if one in program.paths:
            module = program.module(one)
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
    return {name for one in program.classes.order(cls) if isinstance(one, Class) for name in one.methods}
