"""The callables of the wrong color that are handed over in the functions a recolor passes through."""

from collections.abc import Iterable, Iterator

from troth.analysis.facts.model import Node, body_of
from troth.analysis.facts.nodes import children
from troth.analysis.recolor.plan import Listed
from troth.analysis.semantics import Program
from troth.analysis.semantics.infer.call_graph import Call
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import (
    AsyncGenerator,
    Awaitable,
    Coroutine,
    FunctionValue,
    Instance,
    Lambda,
    Value,
    members_of,
)

__all__ = ["wrong_colors"]


def wrong_colors(program: Program, callers: Iterable[Function]) -> Iterator[Listed]:
    """Each argument that is plain where the callee awaits what it returns, or async where the callee does not."""
    for caller in callers:
        for call in program.calling.of(caller):
            yield from _in_call(call)


def _in_call(call: Call) -> Iterator[Listed]:
    functions = [member for member in members_of(call.callee) if isinstance(member, FunctionValue)]
    if len(functions) != 1 or not isinstance(functions[0].function, Function):
        return
    function = functions[0].function
    names = function.facts.positional
    if functions[0].receiver is not None and function.owner is not None:
        names = names[1:]
    position = 0
    for keyword, value in call.given:
        name = keyword
        if keyword is None:
            name = names[position] if position < len(names) else None
            position += 1
        color = _color(value)
        if name is None or color is None:
            continue
        required = _wanted(function, name)
        if required is not None and required != color:
            kind = "a lambda" if isinstance(value, Lambda) else "a function"
            does = "awaits what it returns" if required == "async" else "never awaits what it returns"
            where = f"{function.place[0]}:{function.place[1]}"
            why = f"{kind} that is {color} is given as `{name}` to `{function.qualname}`, which {does} ({where})"
            yield Listed(call.caller.module.path, call.at[0], call.text, why)


def _color(value: Value | None) -> str | None:
    if isinstance(value, FunctionValue) and isinstance(value.function, Function):
        return (
            "async"
            if value.function.is_async and not value.function.is_generator
            else "sync"
            if not value.function.facts.returns
            else None
        )
    if isinstance(value, Lambda):
        awaitable = value.evaluate()
        if awaitable is None or isinstance(awaitable, Coroutine | Awaitable | AsyncGenerator | Instance):
            return "async" if isinstance(awaitable, Coroutine | Awaitable) else _by_body(value)
        return "sync"
    return None


def _by_body(value: Lambda) -> str | None:
    """A lambda whose body is no call, no name and no attribute makes nothing that could be awaited."""
    return (
        "sync"
        if value.body[0] in {"fstr", "const", "compare", "list", "dict", "tuple", "set", "binop", "not"}
        else None
    )


def _wanted(function: Function, param: str) -> str | None:
    """Which color the body asks of the callable in `param`: by how it treats what the callable returns."""
    calls: list[bool] = []
    _calls(body_of(function.facts), param, calls, awaited=False)
    if not calls:
        return None
    return "async" if all(calls) else "sync" if not any(calls) and not function.is_async else None


def _calls(nodes: Iterable[Node], param: str, found: list[bool], *, awaited: bool) -> None:
    for node in nodes:
        if node[0] == "call" and node[1] == ("name", param):
            found.append(awaited)
        # What stands in the arguments of an awaited call (`await wait_for(f(), 5)`) is awaited by that call.
        inside = node[0] == "await" or (awaited and node[0] != "lambda")
        _calls(children(node), param, found, awaited=inside)
