"""What async frameworks call the things they give: a middleware's `call_next`, the `receive` and `send` of ASGI.

Such names are agreed upon outside the project, so that what they stand for is mostly not written down in it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.values import Awaitable, CallableType, Instance, Value

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.program import Program
    from troth.analysis.semantics.symbols import Function

__all__ = ["ASYNC_BY_NAME", "PAIRS", "given_by_framework", "is_asgi_call", "is_asgi_message", "response_of"]

# The async twins of methods, as Django, LangChain, LlamaIndex, LiteLLM, httpx, Keycloak call them; no generators.
ASYNC_BY_NAME = re.compile(
    r"a(?:invoke|batch|close|read|run|call|chat|complet(?:e|ion)|create|save|generate\w*|predict\w*|embed\w*|retrieve\w*"
    r"|search|similarity_search\w*|add_(?:texts|documents|messages)|get_relevant_documents|kickoff\w*"
    r"|(?:get|update)(?:_or_create)?|count|exists|first|last|latest|earliest|aggregate|delete|bulk_(?:create|update)|in_bulk"
    r"|refresh_from_db|_(?!records?$)[a-z]\w{3,})$"
)
# Classes that give two objects when they are called.
PAIRS = {
    "anyio._core._streams.create_memory_object_stream": (
        "anyio.streams.memory.MemoryObjectSendStream",
        "anyio.streams.memory.MemoryObjectReceiveStream",
    ),
    "trio._channel.open_memory_channel": ("trio._channel.MemorySendChannel", "trio._channel.MemoryReceiveChannel"),
}

_ASGI = ("scope", "receive", "send")
_TYPE = ("const", "str", "type")
_MESSAGES = ("http.", "websocket.", "lifespan.")
_VERBS = frozenset({"get", "post", "put", "patch", "delete", "head", "options", "request"})
_RESPONSE = "aiohttp.client_reqrep.ClientResponse"
# What handlers are given, as everybody calls it: the name, the library that a file has to import, the class.
_HANDLED = (
    ("request", "aiohttp", "aiohttp.web_request.Request"),
    ("request", "starlette", "starlette.requests.Request"),
    ("request", "fastapi", "starlette.requests.Request"),
    ("websocket", "fastapi", "starlette.websockets.WebSocket"),
    ("websocket", "starlette", "starlette.websockets.WebSocket"),
    ("websocket", "websockets", "websockets.asyncio.client.ClientConnection"),
    ("ws", "websockets", "websockets.asyncio.client.ClientConnection"),
    ("ctx", "discord", "discord.ext.commands.context.Context"),
    ("interaction", "discord", "discord.interactions.Interaction"),
    ("message", "discord", "discord.message.Message"),
    ("member", "discord", "discord.member.Member"),
    ("guild", "discord", "discord.guild.Guild"),
    ("member", "nextcord", "nextcord.member.Member"),
    ("guild", "nextcord", "nextcord.guild.Guild"),
    ("member", "disnake", "disnake.member.Member"),
    ("guild", "disnake", "disnake.guild.Guild"),
    ("ctx", "nextcord", "nextcord.ext.commands.context.Context"),
    ("ctx", "disnake", "disnake.ext.commands.context.Context"),
    ("update", "telegram", "telegram._update.Update"),
    ("message", "aiogram", "aiogram.types.message.Message"),
)


def given_by_framework(function: Function, name: str) -> Value | None:
    """What a parameter without a type stands for in an `async def`, by its name and that of its neighbors.

    A websocket is kept by objects as well, whose `__init__` cannot be async.
    """
    if not function.is_async:
        return _handled(function, name) if function.name == "__init__" and name == "websocket" else None
    if name == "call_next":
        return CallableType(Awaitable(None), "`call_next` of a middleware gives the response to whoever awaits it")
    if name in {"receive", "send"} and "receive" in function.params and "send" in function.params:
        return CallableType(Awaitable(None), f"`{name}` of an ASGI application is a coroutine function")
    if name in {"reader", "writer"} and "reader" in function.params and "writer" in function.params:
        cls = "asyncio.streams.StreamReader" if name == "reader" else "asyncio.streams.StreamWriter"
        return _guess(cls, f"`{name}` of a handler of connections", function)
    handled = _handled(function, name)
    if handled is not None:
        return handled
    if name == "handler" and "request" in function.params and function.decorated_with("middleware"):
        return CallableType(Awaitable(None), "the `handler` of a middleware is a coroutine function")
    return None


def _handled(function: Function, name: str) -> Value | None:
    for word, top, qualified in _HANDLED:
        if word == name and top in function.module.packages:
            return _guess(qualified, f"`{name}` of a handler, in a file that imports {top}", function)
    return None


def _guess(qualified: str, text: str, function: Function) -> Value:
    return Instance(library.library_class(qualified), (), (text, *function.place), guess=True)


def is_asgi_call(node: Node) -> bool:
    """Whether a call hands a request on to an ASGI application: `self.app(scope, receive, send)`."""
    names = [arg[1] if arg[0] == "name" else "" for arg in node[2]]
    if len(names) != len(_ASGI) or node[3] or names[0] != _ASGI[0]:
        return False
    return names[1].startswith(_ASGI[1]) and names[2].startswith(_ASGI[2])  # `receive_request`, `send_response`


def is_asgi_message(node: Node) -> bool:
    """Whether a call sends a message of ASGI: `send({"type": "http.response.body", "body": b""})`."""
    if node[1] != ("name", "send") or len(node[2]) != 1 or node[3] or node[2][0][0] != "dict":
        return False
    _, keys, values = node[2][0]
    return any(
        key == _TYPE and value[:2] == ("const", "str") and len(value) == 3 and value[2].startswith(_MESSAGES)
        for key, value in zip(keys, values, strict=True)
    )


def response_of(program: Program, node: Node) -> Value | None:
    """What `async with session.get(url) as response` gives, whoever has the session: aiohttp has it so."""
    if node[0] != "call" or node[1][0] != "attr" or node[1][2] not in _VERBS or not (node[2] or node[3]):
        return None
    return Instance(library.library_class(_RESPONSE), (), None, guess=True) if program.imports("aiohttp") else None
