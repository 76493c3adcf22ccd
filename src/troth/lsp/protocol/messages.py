"""Answer every request, also one that cannot be read or comes at the wrong time."""

from __future__ import annotations

import logging
from typing import Any

from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidRequest,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import LanguageServerProtocol

__all__ = ["TrothProtocol"]

_log = logging.getLogger("troth.lsp")


class TrothProtocol(LanguageServerProtocol):
    """The protocol of pygls, which leaves a client waiting where a request has wrong parameters."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Leave an object as it is: pygls calls this for those inside of a message as well."""
        return data

    def handle_message(self, message: Any) -> None:
        """Carry out a message as it came, or say what is wrong with it."""
        if not isinstance(message, dict):
            _log.warning("a message that is no object was ignored")
            return
        method, number = message.get("method"), message.get("id")
        try:
            self._check(method, number)
            structured = super().structure_message(message)
            if isinstance(structured, dict):
                raise JsonRpcInvalidRequest("Invalid Request: `jsonrpc` is missing")
        except JsonRpcException as problem:
            _log.warning("%s was refused: %s", method if isinstance(method, str) else "a message", problem.message)
            if method is not None and isinstance(number, int | str):
                self._send_response(number, None, problem.to_response_error())
        else:
            super().handle_message(structured)

    def _check(self, method: object, number: object) -> None:
        """Refuse what comes before the client has introduced itself, or after it has said goodbye."""
        if method is None or method == types.EXIT:
            return
        if self._shutdown:
            raise JsonRpcInvalidRequest("Invalid Request: the server was shut down")
        is_first = method == types.INITIALIZE
        if is_first and self._workspace is not None:
            raise JsonRpcInvalidRequest("Invalid Request: the server is initialized already")
        if not is_first and self._workspace is None and number is not None:
            raise JsonRpcServerNotInitialized("Server Not Initialized: `initialize` comes first")
