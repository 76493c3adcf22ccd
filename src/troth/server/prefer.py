"""Read what a client prefers: `Prefer: respond-async, wait=N` (RFC 7240)."""

import re
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from fastapi import Depends, Header, Request

from troth.server.context import ContextDep, ServerContext, context_of
from troth.server.direct_route import resolved_by

__all__ = ["PreferDep", "Preference"]

_WAIT = re.compile(r"wait\s*=\s*\"?(\d{1,9})\"?", re.ASCII)


class Preference(NamedTuple):
    """How long a client wants to wait for a result. None where it says nothing."""

    wait: float | None
    is_async: bool
    applied: str | None
    """What is told back as `Preference-Applied`."""

    @property
    def headers(self) -> dict[str, str]:
        """What is told back."""
        return {} if self.applied is None else {"Preference-Applied": self.applied}


async def _preferred(request: Request) -> Preference:
    return _preference(context_of(request), request.headers.getlist("prefer"))


@resolved_by(_preferred)
async def preference_of(  # async: FastAPI calls a sync one in a thread
    context: ContextDep,
    request: Request,
    prefer: Annotated[  # noqa: ARG001  for the document: a header may come in several lines
        str | None, Header(description="`respond-async`, or `wait=N` to wait up to N seconds for the result")
    ] = None,
) -> Preference:
    """The preferences of a request."""
    return _preference(context, request.headers.getlist("prefer"))


def _preference(context: ServerContext, lines: Sequence[str]) -> Preference:
    """The preferences that are known; others are no duty, and are passed over."""
    words = [word.strip().lower() for line in lines for word in line.replace(";", ",").split(",")]
    is_async = "respond-async" in words
    seconds = next((int(match[1]) for word in words if (match := _WAIT.fullmatch(word))), None)
    wait = None if seconds is None else float(min(seconds, context.limits.wait))
    applied = ["respond-async"] if is_async else []
    if wait is not None:
        applied.append(f"wait={wait:g}")
    return Preference(wait, is_async, ", ".join(applied) or None)


PreferDep = Annotated[Preference, Depends(preference_of)]
