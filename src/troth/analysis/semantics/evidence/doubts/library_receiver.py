"""Library receiver: the file puts an object of a library where the receiver is, or says that it is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import ASSIGN_TARGETS, ASSIGN_VALUE, ATTR_BASE, ATTR_NAME, CALL_FUNC, KIND
from troth.analysis.facts.nodes import of_kind
from troth.analysis.semantics.evidence.question import EvidenceCase
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.values import External, members_of

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.evidence.question import Question
    from troth.analysis.semantics.symbols import Function, Module

__all__ = ["CASES", "doubts"]

CASES = [
    EvidenceCase(
        "an attribute that is set from outside",
        "import factorio_rcon\n\n\nclass Tuner:\n    async def send_command(self, text): ...\n\n\n"
        "class Context:\n    def __init__(self):\n        self.rcon_client = None\n"
        "    async def show(self, text):\n        self.rcon_client.send_command(text)  # lost\n\n\n"
        "async def watch(ctx):\n    ctx.rcon_client = factorio_rcon.RCONClient('localhost')\n",
    ),
]


def doubts(question: Question) -> bool:
    """By what the other functions of the file assign to an attribute of that name: something of a library, always."""
    callee, module = question.callee, question.function.module
    if not question.is_method or callee[ATTR_BASE][KIND] != "attr":
        return False
    name = callee[ATTR_BASE][ATTR_NAME]
    answers: MutableMapping[tuple[str, str], bool] = question.program.answers_to("receivers that libraries make")
    key = (module.path, name)
    is_foreign = answers.get(key)
    if is_foreign is None:
        are_foreign = [_is_foreign(assigned, function, question) for function, assigned in _assigned(module, name)]
        is_foreign = answers[key] = bool(are_foreign) and all(are_foreign)
    return is_foreign


def _assigned(module: Module, name: str) -> Iterator[tuple[Function, Node]]:
    """What is called to make what the attribute holds."""
    for number, facts in enumerate(module.facts.functions):
        function = module.function(number)
        if not (facts.calls or facts.awaited) or not function.speaks_of((name,)):
            continue
        for statement in of_kind(function.body(), "assign"):
            assigned = statement[ASSIGN_VALUE]
            if assigned[KIND] == "call" and any(
                target[KIND] == "attr" and target[ATTR_NAME] == name for target in statement[ASSIGN_TARGETS]
            ):
                yield function, assigned[CALL_FUNC]


def _is_foreign(maker: Node, function: Function, question: Question) -> bool:
    """Whether a name that is imported from a library without a table is called."""
    values = members_of(question.program.static(function.module, function).value(maker))
    return any(
        isinstance(assigned, External) and not library.knows(assigned.path.partition(".")[0]) for assigned in values
    )
