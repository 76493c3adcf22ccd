"""Unfit arguments: no definition of that name takes what the call gives, so that the receiver is of another class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import CALL_ARGS, CALL_KEYWORDS, KIND
from troth.analysis.facts.model import PARAM_DEFAULT, PARAM_KIND, PARAM_NAME
from troth.analysis.semantics.evidence.question import EvidenceCase

if TYPE_CHECKING:
    from troth.analysis.semantics.evidence.question import Question
    from troth.analysis.semantics.symbols import Function

__all__ = ["CASES", "doubts"]

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
]


def doubts(question: Question) -> bool:
    """By the parameters, where no decorator may have changed them."""
    definitions = question.program.index.functions_named(question.name)
    return bool(definitions) and not any(_takes(definition, question) for definition in definitions)


def _takes(definition: Function, question: Question) -> bool:
    """Whether the call gives what the definition needs, and nothing that it has no place for; yes where nobody can tell."""
    facts = definition.facts
    arguments, keywords = question.node[CALL_ARGS], dict(question.node[CALL_KEYWORDS])
    if facts.decorators or None in keywords or any(argument[KIND] == "star" for argument in arguments):
        return True
    params = facts.params[1:] if definition.owner is not None else facts.params
    kinds = {param[PARAM_KIND] for param in params}
    by_place = [param for param in params if param[PARAM_KIND] in {"", "/"}]
    by_name = {param[PARAM_NAME] for param in params if param[PARAM_KIND] in {"", "="}}
    if (len(arguments) > len(by_place) and "*" not in kinds) or ("**" not in kinds and not by_name.issuperset(keywords)):
        return False
    left = [*by_place[len(arguments) :], *(param for param in params if param[PARAM_KIND] == "=")]
    return all(param[PARAM_DEFAULT] is not None or param[PARAM_NAME] in keywords for param in left)
