"""What the bridge will do, and why, before it does."""

from typing import Literal, overload

from troth.bridge._color.classify import Verdict, classify
from troth.bridge._crossing.strategy import Explanation, choose, last_choice

__all__ = ["explain"]

_HERE = object()


@overload
def explain() -> Explanation: ...
@overload
def explain(*, last: Literal[True]) -> Explanation | None: ...
@overload
def explain(target: object, /) -> Verdict: ...
def explain(target: object = _HERE, /, *, last: bool = False) -> Explanation | Verdict | None:
    """Say what the bridge does here, or what it makes of a callable.

    explain()           the way `bridge.run` would take if it were called here, and why
    explain(last=True)  the way this thread's latest `bridge.run` took; None if there was none
    explain(function)   the color of a callable, the reason, and what to do where it is UNKNOWN
    """
    if target is not _HERE:
        return classify(target)
    return last_choice() if last else choose().explanation
