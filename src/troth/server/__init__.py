"""Serve runs, conversations, sessions and promises over HTTP, server-sent events and WebSocket.

    from troth.runtime import Runtime
    from troth.server import Server

    server = Server(Runtime("shop.db"), agents={"clerk": Clerk()}, workflows=["order.yaml"])
    server.serve()                      # or mount `server.app` in an application of your own

It needs `pip install 'troth[server]'`. Importing this package imports nothing heavy: each name is fetched when used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from troth.server.access.keys import Keys
    from troth.server.access.scopes import Caller, Scope
    from troth.server.limits import Limits
    from troth.server.server import Server
    from troth.server.webhooks import Receiver, Webhooks

__all__ = ["Caller", "Keys", "Limits", "Receiver", "Scope", "Server", "Webhooks"]

_HOMES = {
    "Caller": "troth.server.access.scopes",
    "Keys": "troth.server.access.keys",
    "Limits": "troth.server.limits",
    "Receiver": "troth.server.webhooks",
    "Scope": "troth.server.access.scopes",
    "Server": "troth.server.server",
    "Webhooks": "troth.server.webhooks",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
