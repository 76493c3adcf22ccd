"""The small language of conditions: Python's comparisons and logic over the run's state, and nothing that acts.

`steps.classify.kind == "bug" and len(inputs.tags) > 2`. Names are the roots of paths; `.name` looks a key up, as in a
path. There are no attributes of Python objects, no calls but those in `FUNCTIONS`, no powers and no comprehensions, so
a condition can neither act nor take long. It is checked when the workflow is loaded.
"""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from troth.errors import MisuseError
from troth.runtime.workflows.document.nodes import SourceMark
from troth.runtime.workflows.document.paths import Path
from troth.runtime.workflows.document.problems import Unreadable, did_you_mean

__all__ = ["FUNCTIONS", "ConditionError", "Expression", "parse_expression"]

FUNCTIONS: Mapping[str, Callable[..., object]] = {"len": len, "min": min, "max": max, "abs": abs}
_COMPARE: Mapping[type[ast.cmpop], Callable[[object, object], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,  # type: ignore[dict-item]  # compared as they come; a TypeError becomes a ConditionError
    ast.LtE: operator.le,  # type: ignore[dict-item]
    ast.Gt: operator.gt,  # type: ignore[dict-item]
    ast.GtE: operator.ge,  # type: ignore[dict-item]
    ast.In: lambda a, b: a in b,  # type: ignore[operator]
    ast.NotIn: lambda a, b: a not in b,  # type: ignore[operator]
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_ARITHMETIC: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
_NAMED = {"true": True, "false": False, "null": None}  # as YAML and JSON spell them; Python's own spelling works too
_LONGEST = 2_000


class ConditionError(MisuseError):
    """A condition could not be answered with the values it met. Asking again would meet the same."""


@dataclass(frozen=True)
class Expression:
    """A checked condition. Two are equal if they say the same, however they are spaced."""

    text: str
    mark: SourceMark = field(compare=False)

    @cached_property
    def _tree(self) -> ast.expr:
        return ast.parse(self.text, mode="eval").body

    @property
    def constant(self) -> object:
        """Its value if it is one whatever happens (`true`), else None."""
        tree = self._tree
        if isinstance(tree, ast.Name):
            return _NAMED.get(tree.id)
        return tree.value if isinstance(tree, ast.Constant) else None

    def value(self, state: Mapping[str, object]) -> object:
        """The answer in `state`."""
        try:
            return _value(self._tree, state)
        except (TypeError, ArithmeticError, ValueError) as broken:
            raise ConditionError(f"{self.mark}: the condition `{self.text}` cannot be evaluated: {broken}") from broken

    def holds(self, state: Mapping[str, object]) -> bool:
        """Whether it is true in `state`. An answer that is not a boolean is refused: `len(x)` is not a condition."""
        answer = self.value(state)
        if isinstance(answer, bool):
            return answer
        raise ConditionError(
            f"{self.mark}: the condition `{self.text}` evaluates to {answer!r}, which is neither true nor false.\n"
            "Compare it with a value, as in `… == …` or `len(…) > 0`."
        )

    def paths(self) -> Iterator[tuple[Path, SourceMark]]:
        """Every path it reads, with its place."""
        return _paths(self._tree, self.mark)

    def dump(self) -> object:
        """As it is written in a document."""
        return self.text


def parse_expression(text: str, mark: SourceMark) -> Expression:
    """The condition in `text`, checked; `mark` is the place of its first letter."""
    try:
        if len(text) > _LONGEST:
            raise Unreadable(mark, f"a condition has at most {_LONGEST} characters, this one has {len(text)}")
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as broken:
        raise Unreadable(mark.shifted((broken.offset or 1) - 1), f"`{text}` is not a condition: {broken.msg}") from None
    except (RecursionError, MemoryError, ValueError) as broken:
        raise Unreadable(mark, f"this is not a condition: {broken}") from None
    _check(tree, mark)
    return Expression(ast.unparse(tree), mark)


def _check(node: ast.expr, mark: SourceMark) -> None:
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str()):
            return
        case ast.Name() | ast.Attribute() | ast.Subscript():
            if _path(node) is None:
                raise _refused(node, mark)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            if name not in FUNCTIONS:
                advice = did_you_mean(name, FUNCTIONS, kind="function")
                raise Unreadable(_at(node, mark), f"a condition cannot call `{name}`", advice)
            if not args:
                raise Unreadable(_at(node, mark), f"`{name}()` needs an argument")
        case ast.BoolOp() | ast.Compare() | ast.IfExp() | ast.List() | ast.Tuple():
            pass
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            pass
        case ast.BinOp(op=op) if type(op) in _ARITHMETIC:
            pass
        case _:
            raise _refused(node, mark)
    for child in _operands(node):
        _check(child, mark)


def _operands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        return []
    if isinstance(node, ast.Call):
        return node.args
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]


def _refused(node: ast.expr, mark: SourceMark) -> Unreadable:
    advice = (
        f"It can contain comparisons, `and`, `or`, `not`, `in`, + - * / %, lists, paths, and {', '.join(FUNCTIONS)}."
    )
    return Unreadable(_at(node, mark), f"a condition cannot contain `{ast.unparse(node)}`", advice)


def _at(node: ast.expr, mark: SourceMark) -> SourceMark:
    return mark.shifted(node.col_offset) if node.lineno == 1 else mark


def _path(node: ast.expr) -> Path | None:
    """The path that names, keys and indexes spell; None where something else is in it."""
    parts: list[str | int] = []
    while True:
        match node:
            case ast.Name(id=root):
                return Path(root, tuple(reversed(parts)))
            case ast.Attribute(value=below, attr=name):
                parts.append(name)
            case ast.Subscript(value=below, slice=ast.Constant(value=int() | str() as key)) if not isinstance(
                key, bool
            ):
                parts.append(key)
            case ast.Subscript(
                value=below, slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as back))
            ):
                parts.append(-back)
            case _:
                return None
        node = below


def _paths(node: ast.expr, mark: SourceMark) -> Iterator[tuple[Path, SourceMark]]:
    path = _path(node)
    if path is None:
        for child in _operands(node):
            yield from _paths(child, mark)
    elif not (path.root in _NAMED and not path.parts):
        yield path, _at(node, mark)


def _value(node: ast.expr, state: Mapping[str, object]) -> object:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name) if name in _NAMED:
            return _NAMED[name]
        case ast.Name() | ast.Attribute() | ast.Subscript():
            path = _path(node)
            assert path is not None  # checked when the workflow was loaded
            return path.look_up(state)
        case ast.BoolOp(op=ast.And(), values=values):
            return _last(values, state, stop=False)
        case ast.BoolOp(values=values):
            return _last(values, state, stop=True)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return not _value(inner, state)
        case ast.UnaryOp(operand=inner):
            return -_number(_value(inner, state))
        case ast.BinOp(left=lhs, op=op, right=rhs):
            return _calculate(type(op), _value(lhs, state), _value(rhs, state))
        case ast.Compare(left=lhs, ops=ops, comparators=operands):
            return _compare(_value(lhs, state), ops, operands, state)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, state) else orelse, state)
        case ast.Call(func=ast.Name(id=name), args=args):
            return FUNCTIONS[name](*[_value(arg, state) for arg in args])
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item, state) for item in items]
    raise AssertionError(ast.dump(node))  # `_check` lets nothing else through


def _last(values: list[ast.expr], state: Mapping[str, object], *, stop: bool) -> object:
    answer: object = None
    for value in values:
        answer = _value(value, state)
        if bool(answer) is stop:
            return answer
    return answer


def _compare(lhs: object, ops: list[ast.cmpop], operands: list[ast.expr], state: Mapping[str, object]) -> bool:
    for op, operand in zip(ops, operands, strict=True):
        rhs = _value(operand, state)
        if not _COMPARE[type(op)](lhs, rhs):
            return False
        lhs = rhs
    return True


def _calculate(op: type[ast.operator], lhs: object, rhs: object) -> object:
    if op is ast.Add and isinstance(lhs, str) and isinstance(rhs, str):
        return lhs + rhs
    return _ARITHMETIC[op](_number(lhs), _number(rhs))  # numbers only: "x" * 10**9 would take the memory


def _number(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise TypeError(f"{value!r} is not a number")
