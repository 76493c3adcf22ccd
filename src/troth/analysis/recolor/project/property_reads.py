"""Find where a property is read: a place that has to call a method once the property is one."""

import ast
from collections.abc import Collection, Iterator

from troth.analysis.recolor.project.tree import Tree
from troth.analysis.semantics import Program
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import ClassObject, Instance, Nothing, SuperOf, Value, members_of

__all__ = ["is_property", "matched", "property_reads", "whose_property"]


def is_property(function: Function) -> bool:
    """Whether a function is a property that can become a method: what keeps its result is none."""
    return function.decorated_with("property") and not function.is_async


def property_reads(tree: Tree, names: Collection[str]) -> Iterator[ast.Attribute]:
    """Every attribute of one of these names that is read."""
    for node in list(tree.parents):
        if isinstance(node, ast.Attribute) and node.attr in names and isinstance(node.ctx, ast.Load):
            yield node


def matched(tree: Tree, names: Collection[str]) -> Iterator[tuple[ast.expr, str]]:
    """Where a pattern (`case Tape(size=3)`) reads an attribute of one of these names."""
    for node in list(tree.parents):
        if isinstance(node, ast.MatchClass):
            yield from ((node.cls, name) for name in node.kwd_attrs if name in names)


def whose_property(
    program: Program, base: Value | None, name: str, wanted: Collection[Function]
) -> tuple[bool, bool, tuple[Function, ...]]:
    """Whether something else may be read there, whether that is unknown, and which of `wanted` may be read."""
    ours: list[Function] = []
    is_other = is_unknown = False
    for member in members_of(base):
        if isinstance(member, Nothing):
            continue
        if isinstance(member, SuperOf):
            behind = _behind(program, member.cls, name)
            ours += [function for function in behind if function is not None and function in wanted]
            is_unknown = is_unknown or None in behind
            is_other = is_other or any(function is not None and function not in wanted for function in behind)
            continue
        cls = member.cls if isinstance(member, Instance | ClassObject) else None
        if member is None or (isinstance(member, Instance) and member.guess):
            is_unknown = True
        elif not isinstance(cls, Class):
            is_other = True
        else:
            defined = _defined(program, cls, name)
            if defined in wanted and defined is not None:
                ours.append(defined)
                is_other = is_other or isinstance(member, ClassObject)  # the property itself, and nothing it gives
            elif any(function.owner in program.classes.children(cls) for function in wanted if function.name == name):
                is_unknown = True
            else:
                is_other = True
    return is_other, is_unknown, tuple(ours)


def _defined(program: Program, cls: Class, name: str) -> Function | None:
    for base in program.classes.order(cls):
        if isinstance(base, Class) and name in base.methods:
            return base.module.function(base.methods[name][-1])
    return None


def _behind(program: Program, cls: Class, name: str) -> list[Function | None]:
    """What `super().name` may be in a method of `cls`: the next in the order of each class that derives from it.

    None stands for what nobody can tell.
    """
    behind: dict[Function | None, None] = {}
    for derived in (cls, *program.classes.children(cls)):
        order = program.classes.order(derived)
        for base in order[order.index(cls) + 1 :] if cls in order else ():
            if base is None:
                behind[None] = None
            elif isinstance(base, Class) and name in base.methods:
                behind[base.module.function(base.methods[name][-1])] = None
                break
    return list(behind)
