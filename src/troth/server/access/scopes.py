"""Say who may do what: scopes, the caller of a request, and how a route declares what it needs."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from fastapi import Depends, Request

from troth.server.direct_route import resolved_by
from troth.server.errors import ApiError

__all__ = ["LOCAL", "NOBODY", "Caller", "CallerDep", "Scope", "needs"]


class Scope(StrEnum):
    """What a key may be used for.

    READ   look at what its owner began
    RUN    begin runs and turns, and say something to agents
    ACT    answer, cancel, resume, fork, acknowledge, execute
    KILL   kill agents and end sessions
    ADMIN  all of that, for what anybody began; the audit trail and the metrics
    """

    READ = "read"
    RUN = "run"
    ACT = "act"
    KILL = "kill"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever sent a request. `owner` is whose things it may see; an admin sees everybody's."""

    owner: str
    scopes: frozenset[Scope]
    key_id: str | None = None

    @property
    def is_admin(self) -> bool:
        """Whether it sees what others began."""
        return Scope.ADMIN in self.scopes

    @property
    def sees(self) -> str | None:
        """The owner to whose things it is limited; None for an admin."""
        return None if self.is_admin else self.owner

    def may(self, scope: Scope) -> bool:
        """Whether it may do what takes `scope`."""
        return scope in self.scopes or self.is_admin


LOCAL = Caller("local", frozenset(Scope))
"""The caller of a server without keys, which listens on loopback alone."""

NOBODY = Caller("", frozenset())
"""The caller of a route that needs no key."""


def caller_of(request: Request) -> Caller:
    """The caller, as the gate has found it out."""
    caller: Caller = request.scope["troth.caller"]
    return caller


async def _caller(request: Request) -> Caller:  # async: FastAPI calls a sync one in a thread
    return caller_of(request)


CallerDep = Annotated[Caller, Depends(resolved_by(_caller)(_caller))]


def needs(scope: Scope | None, channel: str | None = None) -> dict[str, Any]:
    """For the decorator of a route: the scope that it takes, and the channel its agents are bound to.

        @router.post("/runs", **needs(Scope.RUN, "http"))

    None as the scope means that nobody has to show a key. A route that runs an agent names its channel: `http`,
    `stream` or `socket`.
    """
    extra: dict[str, Any] = {"x-troth-scope": None if scope is None else scope.value, "x-troth-channel": channel}
    if scope is None:
        return {"openapi_extra": {**extra, "security": []}}
    return {"openapi_extra": extra, "dependencies": [Depends(_checking(scope))]}


def _checking(scope: Scope) -> Callable[[Request], Awaitable[None]]:
    async def check(request: Request) -> None:
        check_scope(caller_of(request), scope)

    return resolved_by(check)(check)


def check_scope(caller: Caller, scope: Scope) -> None:
    """Refuse a caller whose key does not reach so far."""
    if not caller.may(scope):
        raise ApiError(
            403,
            "missing_scope",
            f"This key does not have the scope `{scope}`, which this route needs.",
            advice=f"Make a key that has it: `troth keys create --scopes {scope},…`.",
        )
