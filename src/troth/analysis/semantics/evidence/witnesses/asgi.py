"""ASGI: an application is called with `scope`, `receive` and `send`, and `send` takes messages of known types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import CALL_ARGS, CALL_FUNC, CALL_KEYWORDS, CONST_VALUE, KIND, NAME_ID
from troth.analysis.findings import Reason
from troth.analysis.semantics.evidence.question import EvidenceCase, Testimony

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
    EvidenceCase(
        "an application behind a middleware",
        "class Middleware:\n    def __init__(self, app):\n        self.app = app\n\n"
        "    async def __call__(self, scope, receive, send):\n        self.app(scope, receive, send)  # lost\n",
    ),
    EvidenceCase(
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
    names = [arg[NAME_ID] if arg[KIND] == "name" else "" for arg in node[CALL_ARGS]]
    if len(names) != len(_ASGI) or node[CALL_KEYWORDS] or names[0] != _ASGI[0]:
        return False
    return names[1].startswith(_ASGI[1]) and names[2].startswith(_ASGI[2])  # `receive_request`, `send_response`


def _is_message(node: Node) -> bool:
    """Whether a call sends a message: `send({"type": "http.response.body", "body": b""})`."""
    arguments = node[CALL_ARGS]
    if node[CALL_FUNC] != ("name", "send") or len(arguments) != 1 or node[CALL_KEYWORDS]:
        return False
    if arguments[0][KIND] != "dict":
        return False
    _, keys, values = arguments[0]
    return any(
        key == _TYPE and value[:2] == ("const", "str") and len(value) == 3 and value[CONST_VALUE].startswith(_MESSAGES)
        for key, value in zip(keys, values, strict=True)
    )
