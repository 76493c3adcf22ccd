"""ASGI: an application is called with `scope`, `receive` and `send`, and `send` takes messages of known types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.findings import Reason
from troth.analysis.semantics.evidence.question import Case, Testimony

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.evidence.question import Question

__all__ = ["CASES", "testify"]

_ASGI = ("scope", "receive", "send")
_TYPE = ("const", "str", "type")
_MESSAGES = ("http.", "websocket.", "lifespan.")
_CALL = "an ASGI application is called with `scope`, `receive` and `send`"
_MESSAGE = "the `send` of ASGI, which takes messages like this one, is a coroutine function"

CASES = [
    Case(
        "an application behind a middleware",
        "class Middleware:\n    def __init__(self, app):\n        self.app = app\n\n"
        "    async def __call__(self, scope, receive, send):\n        self.app(scope, receive, send)  # lost\n",
    ),
    Case(
        "a message",
        "def respond(send):\n    async def finish():\n"
        '        send({"type": "http.response.body", "body": b""})  # lost\n    return finish\n',
    ),
]


def testify(question: Question) -> Testimony | None:
    """By what is passed."""
    if not question.function.is_async:
        return None
    if _is_message(question.node):
        return Testimony(Reason(_MESSAGE), is_shape=True, is_proof=True)
    return Testimony(Reason(_CALL), is_shape=True) if _is_call(question.node) else None


def _is_call(node: Node) -> bool:
    """Whether a call hands a request on to an application: `self.app(scope, receive, send)`."""
    names = [arg[1] if arg[0] == "name" else "" for arg in node[2]]
    if len(names) != len(_ASGI) or node[3] or names[0] != _ASGI[0]:
        return False
    return names[1].startswith(_ASGI[1]) and names[2].startswith(_ASGI[2])  # `receive_request`, `send_response`


def _is_message(node: Node) -> bool:
    """Whether a call sends a message: `send({"type": "http.response.body", "body": b""})`."""
    if node[1] != ("name", "send") or len(node[2]) != 1 or node[3] or node[2][0][0] != "dict":
        return False
    _, keys, values = node[2][0]
    return any(
        key == _TYPE and value[:2] == ("const", "str") and len(value) == 3 and value[2].startswith(_MESSAGES)
        for key, value in zip(keys, values, strict=True)
    )
