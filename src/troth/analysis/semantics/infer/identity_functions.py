"""The functions that give back what they are given: `some(load())` is what `load()` is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import ATTR_NAME, CALL_FUNC, KIND, NAME_ID, VALUE
from troth.analysis.facts.nodes import walk
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import FunctionValue, Nothing, Value, members_of, union

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.resolve.project_files import ProjectFiles

__all__ = ["gives_back", "handed_back", "may_give_itself", "returned"]


def handed_back(
    program: ProjectFiles, func: FunctionValue, node: Node, values: list[tuple[str | None, Value | None]]
) -> Value | None:
    """What a function of the project is given at `node` and gives back; None where it gives something else."""
    function = func.function
    assert isinstance(function, Function)
    name = gives_back(program, function)
    if not name or any(arg[KIND] == "star" for arg in node[2]):
        return None
    params = [param[0] for param in function.facts.params]
    if func.receiver is not None and function.owner is not None and not function.decorated_with("staticmethod"):
        params = params[1:]
    argument = next((value for keyword, value in values if keyword == name), None)
    if argument is None and name in params and params.index(name) < len(node[2]):
        argument = values[params.index(name)][1]
    return union([m for m in members_of(argument) if not isinstance(m, Nothing)])  # which it mostly asks for


def gives_back(program: ProjectFiles, function: Function) -> str:
    """The parameter that it returns wherever it returns anything; empty where there is none, or it is set anew."""
    answers = program.answers_to("handed back")
    name: str | None = answers.get(function)
    if name is None:
        name = answers[function] = _param_given_back(function)
    return name


def _param_given_back(function: Function) -> str:
    if function.is_async or function.is_generator or function.is_abstract or function.facts.decorators:
        return ""
    returned_nodes = set(returned(function.body()))
    if len(returned_nodes) != 1:
        return ""
    (node,) = returned_nodes
    name = node[NAME_ID] if node[KIND] == "name" else ""
    return name if name in function.params and name not in function.origins else ""


def may_give_itself(function: Function) -> bool:
    """Whether a method may return its own object: it says so, passes on what `super()` says, or returns nothing."""
    nodes = list(returned(function.body()))
    own = [param[0] for param in function.facts.params[:1]]
    return not nodes or any(
        node[NAME_ID] in own if node[KIND] == "name" else _asks_the_method_above(node, function.name) for node in nodes
    )


def _asks_the_method_above(node: Node, name: str) -> bool:
    call = node[VALUE] if node[KIND] == "await" else node
    return bool(call[KIND] == "call" and call[CALL_FUNC][KIND] == "attr" and call[CALL_FUNC][ATTR_NAME] == name)


def returned(body: tuple[Node, ...]) -> Iterator[Node]:
    """What stands after the `return`s among the statements."""
    for node in walk(body, skip=("expr", "assign", "lambda")):
        if node[KIND] == "return" and node[VALUE] is not None:
            yield node[VALUE]
