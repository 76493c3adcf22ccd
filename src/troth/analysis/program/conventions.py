"""Knows what async frameworks call the things they give: a middleware's `call_next`, the `receive` and `send` of ASGI.

Such names are agreed upon outside the project, so that what they stand for is mostly not written down in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.program import library
from troth.analysis.program.values import Awaitable, CallableType, Instance, Value

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.program.entities import Function
    from troth.analysis.program.link import Program

__all__ = ["given_by_framework", "is_asgi_call", "response_of"]

_ASGI = ("scope", "receive", "send")
_VERBS = frozenset({"get", "post", "put", "patch", "delete", "head", "options", "request"})
_RESPONSE = "aiohttp.client_reqrep.ClientResponse"
_REQUESTS = {"aiohttp": "aiohttp.web_request.Request", "starlette": "starlette.requests.Request"}


def given_by_framework(function: Function, name: str) -> Value | None:
    """What a parameter without a type stands for in an `async def`, by its name and that of its neighbors."""
    if not function.is_async:
        return None
    if name == "call_next":
        return CallableType(Awaitable(None), "`call_next` of a middleware gives the response to whoever awaits it")
    if name in {"receive", "send"} and all(one in function.params for one in _ASGI):
        return CallableType(Awaitable(None), f"`{name}` of an ASGI application is a coroutine function")
    if name == "request":
        for top, qualified in _REQUESTS.items():
            if any(i.module.partition(".")[0] == top for i in function.module.facts.imports if not i.level):
                why = (f"`request` of a handler, in a file that imports {top}", *function.place)
                return Instance(library.library_class(qualified), (), why, guess=True)
    if name == "handler" and "request" in function.params and function.decorated_with("middleware"):
        return CallableType(Awaitable(None), "the `handler` of a middleware is a coroutine function")
    return None


def is_asgi_call(node: Node) -> bool:
    """Whether a call hands a request on to an ASGI application: `self.app(scope, receive, send)`."""
    return tuple(arg[1] if arg[0] == "name" else "" for arg in node[2]) == _ASGI and not node[3]


def response_of(program: Program, node: Node) -> Value | None:
    """What `async with session.get(url) as response` gives, whoever has the session: aiohttp has it so."""
    if node[0] != "call" or node[1][0] != "attr" or node[1][2] not in _VERBS or not (node[2] or node[3]):
        return None
    return Instance(library.library_class(_RESPONSE), (), None, guess=True) if program.imports("aiohttp") else None
