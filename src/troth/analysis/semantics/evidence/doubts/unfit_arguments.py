"""Unfit arguments: no definition that may be meant takes what the call gives: the receiver is of another class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import CALL_ARGS, CALL_KEYWORDS, KIND
from troth.analysis.facts.model import PARAM_DEFAULT, PARAM_KIND, PARAM_NAME
from troth.analysis.semantics.evidence.question import EvidenceCase

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.evidence.question import Question
    from troth.analysis.semantics.symbols import Function

__all__ = ["CASES", "doubts", "takes"]

CASES = [
    EvidenceCase(
        "fewer than each definition needs",
        "class Display:\n    async def show_briefly(self, player_id, parts): ...\n\n\n"
        "async def main(player):\n    player.show_briefly({})  # lost\n",
    ),
    EvidenceCase(
        "more than each definition has a place for",
        "class Display:\n    async def show_briefly(self, text): ...\n\n\n"
        "async def main(player):\n    player.show_briefly(1, 2)  # lost\n",
    ),
    EvidenceCase(
        "a keyword that no definition knows",
        "class Display:\n    async def show_briefly(self, text=None): ...\n\n\n"
        "async def main(player):\n    player.show_briefly(seconds=2)  # lost\n",
    ),
    EvidenceCase(
        "of an object that is only called like the class",
        "class PodClient:\n    async def get_pod(self, name): ...\n\n\n"
        "class Detector:\n    def __init__(self, pod_client=None):\n        self._pod_client = pod_client\n\n"
        "    def detect(self):\n        pod = self._pod_client.get_pod('here', 'name')  # lost\n"
        "        return pod.labels\n",
    ),
]


def doubts(question: Question) -> bool:
    """By the parameters, where no decorator may have changed them."""
    definitions = question.program.index.functions_named(question.name)
    return bool(definitions) and not any(takes(definition, question.node) for definition in definitions)


def takes(definition: Function, call: Node) -> bool:
    """Whether the call gives what the definition needs, and nothing else; yes where nobody can tell."""
    facts = definition.facts
    arguments, keywords = call[CALL_ARGS], dict(call[CALL_KEYWORDS])
    if facts.decorators or None in keywords or any(argument[KIND] == "star" for argument in arguments):
        return True
    params = facts.params[1:] if definition.owner is not None else facts.params
    kinds = {param[PARAM_KIND] for param in params}
    by_place = [param for param in params if param[PARAM_KIND] in {"", "/"}]
    by_name = {param[PARAM_NAME] for param in params if param[PARAM_KIND] in {"", "="}}
    is_left_over = len(arguments) > len(by_place) and "*" not in kinds
    if is_left_over or ("**" not in kinds and not by_name.issuperset(keywords)):
        return False
    left = [*by_place[len(arguments) :], *(param for param in params if param[PARAM_KIND] == "=")]
    return all(param[PARAM_DEFAULT] is not None or param[PARAM_NAME] in keywords for param in left)
