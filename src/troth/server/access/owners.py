"""Know what belongs to whom. What one owner began is told to no other one: not that it is there, nor that it was."""

from collections.abc import Mapping

from troth.bridge import call
from troth.runtime.store import commit_point
from troth.runtime.store.aread import aread
from troth.runtime.store.rows.server import Belonging
from troth.server.access.scopes import Caller
from troth.server.context import ServerContext
from troth.server.errors import ApiError, not_found

__all__ = ["acheck_seen", "aclaim", "afind", "alist", "created_at", "page_cursor", "page_end"]

CLAIM = commit_point("server.claim", "the owner of something, before it is started")


async def aclaim(
    context: ServerContext, caller: Caller, kind: str, thing: str, about: Mapping[str, object] | None = None
) -> None:
    """Write down the owner of something, before it is started. Refused if it is somebody else's."""
    now = context.store.clock()
    whose = await context.store.acommit(CLAIM, lambda tx: tx.server.claim(kind, thing, caller.owner, now, about or {}))
    if whose != caller.owner and not caller.is_admin:
        raise ApiError(409, f"{kind}_exists", f"The id {thing!r} cannot be used for a new {kind}.", param="id")


async def afind(context: ServerContext, caller: Caller, kind: str, thing: str) -> Belonging | None:
    """What is known of something. An admin also gets at what no server began: then nothing is known about it."""
    store = context.store
    belonging = await aread(store, lambda: store.read_server(lambda rows: rows.belonging(kind, thing)))
    if not caller.is_admin and (belonging is None or belonging.owner != caller.owner):
        raise not_found(kind, thing)
    return belonging


async def acheck_seen(context: ServerContext, caller: Caller, thing: str, *kinds: str) -> bool:
    """Whether the caller may see something that is one of these kinds."""
    if caller.is_admin:
        return True
    store = context.store
    whose = await aread(store, lambda: store.read_server(lambda rows: [rows.belonging(kind, thing) for kind in kinds]))
    return any(belonging is not None and belonging.owner == caller.owner for belonging in whose)


async def alist(
    context: ServerContext, caller: Caller, kind: str, *, before: tuple[float, str] | None, limit: int
) -> list[Belonging]:
    """What the caller may see of a kind, newest first."""
    return await call(
        context.store.read_server,
        lambda rows: rows.belongings(kind, owner=caller.sees, before=before, limit=limit),
    )


async def created_at(context: ServerContext, kind: str, thing: str) -> float:
    """When something that was claimed was begun: the same for every repetition of its request."""
    belonging: Belonging | None = await call(context.store.read_server, lambda rows: rows.belonging(kind, thing))
    return context.store.clock() if belonging is None else belonging.created_at


def page_cursor(word: str | None) -> tuple[float, str] | None:
    """Where a page begins: `next` of the previous page it."""
    if word is None:
        return None
    moment, colon, thing = word.partition(":")
    try:
        if colon:
            return float(moment), thing
    except ValueError:
        pass
    raise ApiError(
        400,
        "invalid_cursor",
        f"`before` is {word[:40]!r}, which is not a cursor.",
        param="before",
        advice="Give the `next` of the previous page.",
    )


def page_end(page: list[Belonging], limit: int) -> str | None:
    """What `?before=` takes for the page after this one; nothing if this is the last one."""
    return f"{page[-1].created_at!r}:{page[-1].id}" if page and len(page) == limit else None
