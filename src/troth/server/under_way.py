"""Hold an owner to the number of runs and turns that it may have at work at once."""

from troth.server.access import Caller
from troth.server.context import ServerContext
from troth.server.errors import ApiError

__all__ = ["check_under_way"]


async def check_under_way(context: ServerContext, caller: Caller) -> None:
    """Refuse more work than an owner may have at once."""
    count = context.store.read_server(lambda rows: rows.under_way(caller.owner))  # quicker than a thread would be
    if count >= context.limits.turns:
        raise ApiError(
            429,
            "too_many_turns",
            f"{count} runs and turns of this owner are under way, and {context.limits.turns} is the limit.",
            advice="Wait until one of them is over.",
        )
