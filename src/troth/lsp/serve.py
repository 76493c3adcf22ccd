"""Serve the language server protocol to one client, until it leaves."""

import contextlib
import os
import sys

from troth.lsp.handlers.code_actions import serve_code_actions
from troth.lsp.handlers.lifecycle import serve_folders, serve_lifecycle
from troth.lsp.handlers.questions import serve_call_hierarchy, serve_questions
from troth.lsp.handlers.texts import serve_notebooks, serve_texts
from troth.lsp.server import TrothServer
from troth.lsp.tcp import serve_port

__all__ = ["serve"]


def serve(*, port: int | None = None) -> bool:
    """Serve one client, over stdin and stdout or over a port of this machine, until it leaves; whether it said so."""
    server = _server()
    if port is None:
        # Nobody else may write to the client: what is printed by accident goes to stderr, which editors show as a log.
        with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stdout:
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
            with contextlib.suppress(BrokenPipeError):
                server.start_io(sys.stdin.buffer, stdout)
    else:
        serve_port(server, port)
    return server.has_left


def _server() -> TrothServer:
    server = TrothServer()
    serve_lifecycle(server)
    serve_folders(server)
    serve_texts(server)
    serve_notebooks(server)
    serve_code_actions(server)
    serve_questions(server)
    serve_call_hierarchy(server)
    return server
