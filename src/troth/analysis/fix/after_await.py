"""What turns out wrong once a call is awaited: its result is an object that the next line takes for a dict."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.findings.phrases import with_article
from troth.analysis.rules._syntax_position import standing
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import ClassObject, FunctionValue, members_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from troth.analysis.findings import Finding
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.infer.call_graph import Call

__all__ = ["Mistaken", "mistaken"]

_OF_A_DICT = frozenset({"get", "items", "keys", "values"})
_LIKE_A_DICT = frozenset({"TypedDict", "NamedTuple", "Protocol", "Any", "Mapping", "Generic"})


class Mistaken(NamedTuple):
    """A line that uses an awaited result as a dict although it is an object of a class."""

    path: str
    line: int
    use: str
    cls: Class

    def words(self) -> str:
        """One sentence, for the user."""
        return f"the call is awaited now; `{self.use}` takes it for a dict, and it is {with_article(self.cls.name)}"


def mistaken(program: Program, applied: Iterable[Finding]) -> list[Mistaken]:
    """All of them in the functions that `applied` has put an `await` into; `program` is the one after the repair."""
    places = {(finding.span.path, finding.symbol) for finding in applied if finding.fix is not None and finding.symbol}
    mistaken: dict[Mistaken, None] = {}
    for module in program.own_modules():
        if not any(path == module.path for path, _ in places):
            continue
        for index, facts in enumerate(module.facts.functions):
            if (module.path, facts.qualname) in places:
                for call in program.calling.of(module.function(index)):
                    mistaken.update(dict.fromkeys(_after(program, call)))
    return sorted(mistaken, key=lambda one: (one.path, one.line))


def _after(program: Program, call: Call) -> Iterator[Mistaken]:
    cls = _result(program, call) if call.is_awaited else None
    position = standing(program, call.caller.module.path, call.at) if cls is not None else None
    if cls is None or position is None or not isinstance(position.parent, ast.Await) or position.function is None:
        return
    awaited, holder = position.parent, position.around[1]
    targets = holder.targets if isinstance(holder, ast.Assign) else [getattr(holder, "target", None)]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    bound = [
        node for node in ast.walk(position.function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    names = {
        name for name in names if sum(store.id == name for store in bound) == 1
    }  # bound twice, it may be another thing
    for node in ast.walk(position.function):
        if isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in _OF_A_DICT):
            value = node.value
            if value is not awaited and not (isinstance(value, ast.Name) and value.id in names):
                continue
            if not _has(program, cls, "__getitem__" if isinstance(node, ast.Subscript) else node.attr):
                start, end = position.offsets(node)
                yield Mistaken(position.path, node.lineno, " ".join(position.text[start:end].split()), cls)


def _result(program: Program, call: Call) -> Class | None:
    """The class of the project that an awaited call gives, as its annotation says; None where that is not certain."""
    targets = members_of(call.callee)
    if len(targets) != 1 or not isinstance(targets[0], FunctionValue):
        return None
    function = targets[0].function
    if not isinstance(function, Function) or not function.is_async or function.facts.returns is None:
        return None
    value = program.static(function.module, function.parent).value(function.facts.returns)
    return value.cls if isinstance(value, ClassObject) and isinstance(value.cls, Class) else None


def _has(program: Program, cls: Class, name: str) -> bool:
    """Whether objects of the class may have an attribute of that name; yes where a base is not known."""
    for base in program.classes.order(cls):
        if base is None:
            return True
        if isinstance(base, LibraryClass):
            if base.qualified.rpartition(".")[2] in _LIKE_A_DICT or library.member(base.qualified, name) is not None:
                return True
            continue
        own = {
            *base.methods,
            *base.annotations,
            *base.values,
            *(attribute[0] for attribute in base.facts.self_attributes),
        }
        if name in own or "__getattr__" in own:
            return True
    return False
