"""Find which parameters of a project's functions are called and awaited, so that they want an async function.

A parameter counts where every call of it is awaited on the spot or given to somebody who awaits
(`wait_for(executor())`), in the function itself, in a function inside it, or, kept as an attribute, anywhere in its
class; and where nobody asks for its color first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.facts.fields import AT, ATTR_BASE, ATTR_NAME, CALL_ARGS, CALL_FUNC, CALL_KEYWORDS, KIND, NAME_ID
from troth.analysis.facts.names import last_name
from troth.analysis.facts.nodes import children
from troth.analysis.semantics.resolve.name_index import AWAITING, gives_to_awaiter
from troth.analysis.semantics.symbols import Class

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, MutableMapping

    from troth.analysis.facts.model import At, Node
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.symbols import Function

__all__ = ["AwaitedParameter", "asks_for_color", "awaited_parameters"]

_ASKING = re.compile(r"(?i)is_?async|is_?coro|is_?awaitable|maybe|callable_is|async_callable")


class AwaitedParameter(NamedTuple):
    """A parameter, and the place where what it is given is called and awaited."""

    function: Function
    name: str
    path: str
    at: At


def awaited_parameters(program: Inference, function: Function) -> dict[str, AwaitedParameter]:
    """Those of `function` by their names, worked out once."""
    answers: MutableMapping[Function, dict[str, AwaitedParameter]] = program.answers_to("awaited parameters")
    answer = answers.get(function)
    if answer is None:
        answer = answers[function] = function.module.recalled(
            ("awaited parameters", function.index),
            lambda: {parameter.name: parameter for parameter in _find(function)},
        )
    return answer


def _find(function: Function) -> Iterator[AwaitedParameter]:
    module, facts = function.module, function.facts
    params = {param[0] for param in facts.params if param[3] not in {"*", "**"}}
    if not params:
        return
    if facts.name == "__init__" and function.owner is not None:
        yield from _kept(function, function.owner)
    inside = [
        binding
        for bindings in module.inner(function.index).values()
        for binding in bindings
        if not isinstance(binding, Class)
    ]
    every = [function, *inside]
    around = [function.facts for function in every]
    called = {callee for f in around for callee in f.awaited if callee in params}
    called |= {callee for f in around for callee in f.calls if callee in params and gives_to_awaiter(f)}
    if called and not any(_asks(f.calls) for f in around):
        for name in sorted(called):
            uses = [use for function in every for use in _uses(function.body(), ("name", name), "", [])]
            if uses and all(how == "awaited" for how, _ in uses):
                yield AwaitedParameter(function, name, module.path, uses[0][1])


def _kept(init: Function, cls: Class) -> Iterator[AwaitedParameter]:
    """`self.on_error = on_error` in the constructor, and `await self.on_error()` elsewhere in the class."""
    receiver = init.facts.params[0][0] if init.facts.params else ""
    params = {param[0] for param in init.facts.params}
    every = [cls.module.function(index) for indexes in cls.methods.values() for index in indexes]
    methods = [function.facts for function in every]
    for attribute, index, _, value in cls.facts.self_attributes:
        if index != init.index or value is None or value[KIND] != "name" or value[NAME_ID] not in params:
            continue
        written = f"{receiver}.{attribute}"
        if not any(written in method.awaited or written in method.calls for method in methods):
            continue
        if any(_asks(method.calls) for method in methods):
            continue
        if sum(1 for self_attribute in cls.facts.self_attributes if self_attribute[0] == attribute) > 1:
            continue  # set again elsewhere
        uses = [use for function in every for use in _uses(function.body(), ("attr", receiver, attribute), "", [])]
        if uses and all(how == "awaited" for how, _ in uses):
            yield AwaitedParameter(init, value[NAME_ID], cls.module.path, uses[0][1])


def asks_for_color(function: Function) -> bool:
    """Whether the function asks, before it calls what it is given, which color that has; or somebody inside it does."""
    module, index = function.module, function.index
    inside = (inner.calls for _, inner in module.functions_in(index))
    return _asks(function.facts.calls) or any(map(_asks, inside))


def _asks(calls: tuple[str, ...]) -> bool:
    return any(_ASKING.search(callee.rpartition(".")[2]) for callee in calls)


def _uses(
    nodes: Iterable[Node], wanted: tuple[str, ...], how: str, found: list[tuple[str, At]]
) -> list[tuple[str, At]]:
    """Every call of the wanted name, with "awaited" or "" for how its value is used."""
    for node in nodes:
        if node[KIND] == "call" and _is(node[CALL_FUNC], wanted):
            found.append((how, node[AT]))
        if node[KIND] == "await":
            _uses(children(node), wanted, "awaited", found)
        elif node[KIND] == "call":
            _uses((node[CALL_FUNC],), wanted, "", found)
            arguments = (*node[CALL_ARGS], *[value for _, value in node[CALL_KEYWORDS]])
            # It may be run in a thread by whoever gets it, or be asked for its color.
            found += [("handed on", node[AT]) for argument in arguments if _is(argument, wanted)]
            _uses(arguments, wanted, "awaited" if last_name(node[CALL_FUNC]) in AWAITING else "", found)
        else:
            _uses(children(node), wanted, "", found)
    return found


def _is(node: Node, wanted: tuple[str, ...]) -> bool:
    if wanted[KIND] == "name":
        return bool(node == wanted)
    return bool(node[KIND] == "attr" and node[ATTR_NAME] == wanted[2] and node[ATTR_BASE] == ("name", wanted[1]))
