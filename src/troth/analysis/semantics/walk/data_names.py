"""Tell from names that a call wants what an awaitable gives, and not the awaitable: `handle_message(message)`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.analysis.facts.names import last_name
from troth.analysis.semantics.walk.coroutine_sinks import looks_like_keeper

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node

__all__ = ["takes_as_data"]

# Names of variables that may well stand for an awaitable.
_OF_AWAITABLES = re.compile(
    r"(?i)coro|await|fut|promise|task|job|pending|work|async|call|action|operation|thunk|defer|^aws?$|^op$|^f$|^fn$|^c$"
)
_HANDLING = re.compile(r"(?i)^_*(?:handle|process|deliver|track|monitor|perform|complete|send|emit|insert)(?:_|$)")
# What somebody was given to call: a callback gets what has happened, and no awaitable of it.
_CALLBACK = re.compile(r"(?i)^_*(?:on_)?(?:\w+_)?(?:callback|handler|hook|cb)$")
_WITH_CALLBACKS = re.compile(
    r"(?i)^_*(?:add|set|register|run|wrap|with|schedule|call|invoke|get|create|make|use|remove|start|submit|defer|queue"
    r"|push|put|spawn|fire|exec\w*|append|attach|install|trigger|dispatch|await|async)_"
)
_ADDING = frozenset({"append", "add", "appendleft", "insert"})


def takes_as_data(callee: Node, variable: str) -> bool:
    """Whether the names of an unknown callee and of the variable it is given speak of a result."""
    if _OF_AWAITABLES.search(variable):
        return False
    name = last_name(callee)
    if name in _ADDING and callee[:1] == ("attr",):
        _, container, *_ = callee
        return container[:1] == ("attr",) and _is_one_of(variable, last_name(container))
    if _CALLBACK.match(name):
        return _WITH_CALLBACKS.match(name) is None
    return _HANDLING.match(name) is not None


def _is_one_of(variable: str, container: str) -> bool:
    """`message` and `ui_messages`."""
    item, items = variable.lower().rstrip("s"), container.lower().rstrip("s")
    return not looks_like_keeper(items) and (items.endswith(item) or item.endswith(items))
