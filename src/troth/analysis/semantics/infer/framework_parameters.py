"""What async frameworks call the things they give: a middleware's `call_next`, the `receive` and `send` of ASGI.

Such names are agreed upon outside the project, so that what they stand for is mostly not written down in it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import ATTR_NAME, CALL_ARGS, CALL_FUNC, CALL_KEYWORDS, KIND
from troth.analysis.knowledge.corrections import corrected, correction
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.values import OF_CLASS, Awaitable, CallableType, Instance, Value

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.resolve.project_files import ProjectFiles
    from troth.analysis.semantics.symbols import Function

__all__ = ["given_by_framework", "response_of"]

_VERBS = frozenset({"get", "post", "put", "patch", "delete", "head", "options", "request"})
_RESPONSE = "aiohttp.client_reqrep.ClientResponse"
# Of several libraries that a file imports, the one that says most; those that are not named here come after them.
_ORDER = ("aiohttp", "starlette", "fastapi", "websockets", "discord", "nextcord", "disnake", "telegram", "aiogram")


def given_by_framework(program: ProjectFiles, function: Function, name: str) -> Value | None:
    """What a parameter without a type stands for in an `async def`, by its name and that of its neighbors.

    A websocket is kept by objects as well, whose `__init__` cannot be async.
    """
    if not function.is_async:
        return _handled(program, function, name) if function.name == "__init__" and name == "websocket" else None
    if name == "call_next":
        return CallableType(Awaitable(None), "`call_next` of a middleware returns a coroutine with the response")
    if name in {"receive", "send"} and "receive" in function.params and "send" in function.params:
        return CallableType(Awaitable(None), f"`{name}` of an ASGI application is a coroutine function")
    if name in {"reader", "writer"} and "reader" in function.params and "writer" in function.params:
        cls = "asyncio.streams.StreamReader" if name == "reader" else "asyncio.streams.StreamWriter"
        return _guess(cls, f"`{name}` of a handler of connections is {OF_CLASS}", function)
    handled = _handled(program, function, name)
    if handled is not None:
        return handled
    if name == "handler" and "request" in function.params and function.decorated_with("middleware"):
        return CallableType(Awaitable(None), "the `handler` of a middleware is a coroutine function")
    return None


def _handled(program: ProjectFiles, function: Function, name: str) -> Value | None:
    packages = function.module.packages
    for top in _libraries():
        qualified = correction(top).parameters.get(name) if top in packages else None
        if qualified is not None:
            if program.finder.find(top, function.module.path) is not None:
                continue  # the project is that library, or an edition of it that the tables do not know
            return _guess(qualified, f"`{name}` of a handler is {OF_CLASS}, in a file that imports {top}", function)
    return None


@cache
def _libraries() -> tuple[str, ...]:
    return (*_ORDER, *sorted(corrected().difference(_ORDER)))


def _guess(qualified: str, text: str, function: Function) -> Value:
    return Instance(library.library_class(qualified), (), (text, *function.place), guess=True)


def response_of(program: ProjectFiles, node: Node) -> Value | None:
    """What `async with session.get(url) as response` gives, whoever has the session: aiohttp has it so."""
    if (
        node[KIND] != "call"
        or node[CALL_FUNC][KIND] != "attr"
        or node[CALL_FUNC][ATTR_NAME] not in _VERBS
        or not (node[CALL_ARGS] or node[CALL_KEYWORDS])
    ):
        return None
    return Instance(library.library_class(_RESPONSE), (), None, guess=True) if program.imports("aiohttp") else None
