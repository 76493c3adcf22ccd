"""Hold an owner to the number of runs and turns that it may have at work at once."""

from troth.runtime.store.aread import aread
from troth.runtime.store.rows.server import ServerRows
from troth.server.access.scopes import Caller
from troth.server.context import ServerContext
from troth.server.errors import ApiError

__all__ = ["check_under_way", "refuse_too_many"]


async def check_under_way(context: ServerContext, caller: Caller) -> None:
    """Refuse more work than an owner may have at once."""
    store = context.store
    await aread(store, lambda: store.read_server(lambda rows: refuse_too_many(context, caller, rows)))


def refuse_too_many(context: ServerContext, caller: Caller, rows: ServerRows) -> None:
    """`check_under_way` in the commit that begins the work, where nobody else can begin some in between."""
    count = rows.under_way(caller.owner)
    if count >= context.limits.turns:  # whoever has left before the end has not told of it
        count -= rows.over_unnoticed(caller.owner)
    if count >= context.limits.turns:
        raise ApiError(
            429,
            "too_many_turns",
            f"{count} runs and turns of this owner are under way, and {context.limits.turns} is the limit.",
            advice="Wait until one of them is over.",
        )
