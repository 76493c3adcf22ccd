"""What the callers of a function give to one of its parameters."""

from troth.analysis.semantics import Program
from troth.analysis.semantics.infer.call_graph import Call
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import FunctionValue, Value, members_of

__all__ = ["given_in", "given_to"]


def given_to(program: Program, function: Function, param: str) -> list[Value | None]:
    """What each call in the project gives; empty where nobody calls it, None for what is unknown.

    A call of a namesake of which nobody can tell the receiver may be one of these, so it counts as unknown.
    """
    values: list[Value | None] = []
    for caller in program.calling.functions_naming([function.name]):
        for call in program.calling.of(caller):
            if call.text.rpartition(".")[2] != function.name:
                continue
            targets = [member.function for member in members_of(call.callee) if isinstance(member, FunctionValue)]
            if function in targets or call.callee is None:
                values.append(given_in(call, function, param) if function in targets else None)
    return values


def given_in(call: Call, function: Function, param: str) -> Value | None:
    """What one call gives; None where that is unknown or left to the default."""
    for keyword, value in call.given:
        if keyword == param:
            return value
    names = function.facts.positional
    bound = function.owner is not None and not function.decorated_with("staticmethod")
    receivers = [member.receiver for member in members_of(call.callee) if isinstance(member, FunctionValue)]
    if bound and any(receiver is not None for receiver in receivers):
        names = names[1:]
    plain = [value for keyword, value in call.given if keyword is None]
    if param in names and names.index(param) < len(plain):
        return plain[names.index(param)]
    return None
