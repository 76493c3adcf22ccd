"""Knows functions of a plain flavor: made of the same text as async ones, or run only where nothing is async.

A file says so of itself (`_IS_SYNC = True`), a test by its decorator (`@require_sync`): what is awaited in the other
flavor is not awaited here, and gives no promise.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.analysis.facts.names import decorator_name

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.program.entities import Function, Module
    from troth.analysis.program.link import Program

__all__ = ["is_of_plain_flavor"]

_SAYS_SYNC = re.compile(r"(?i)^_*(?:is_?)?sync$")
_REQUIRING = re.compile(r"(?i)^(?:require|requires|needs?|only)_?sync$|^sync_only$|^skip_?(?:if_?)?async$")


def is_of_plain_flavor(program: Program, function: Function) -> bool:
    """Whether a plain function is one of those."""
    known: MutableMapping[Module, bool] = program.answers_to("plain flavors")
    module = function.module
    if module not in known:
        known[module] = any(
            value == ("const", "bool", "True") and _SAYS_SYNC.match(name) is not None
            for name, _, value in module.facts.variables
        )
    if known[module]:
        return True
    around: Function | None = function
    while around is not None:
        if any(_REQUIRING.match(decorator_name(one)) for one in around.facts.decorators):
            return True
        around = around.parent
    return False
