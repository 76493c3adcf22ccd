"""Play a language model from a script, so that agents are tried without key or network."""

import re
from collections.abc import Callable, Sequence

from troth.errors import MisuseError
from troth.runtime.agents.model import Message, Reply, Request, ToolCall, Usage

__all__ = ["ScriptedModel", "call"]

Line = str | ToolCall | Sequence[ToolCall] | Exception | Callable[[Request], "Line"]


def call(tool: str, arguments: str = "{}", *, id: str | None = None) -> ToolCall:  # noqa: A002 - the protocol's own word
    """A line of the script in which the model asks for a tool. Without an id it is named after the tool."""
    return ToolCall(id or f"call-{tool}", tool, arguments)


class ScriptedModel:
    """Answers with the lines of a script, one per request.

    A line is a text, one or more tool calls, an exception to raise, or a function of the request that returns one of
    these. `requests` keeps what was asked. A request beyond the last line is an error, so that a loop cannot hide.
    """

    def __init__(self, *lines: Line, usage: Usage = Usage(input_tokens=10, output_tokens=5)) -> None:  # noqa: B008 - frozen
        self._lines = list(lines)
        self._usage = usage
        self.requests: list[Request] = []

    def reply(self, request: Request) -> Reply:
        """The next line."""
        line = self._next(request)
        if isinstance(line, Exception):
            raise line
        if isinstance(line, str):
            if request.on_token is not None:
                for piece in re.findall(r"\s*\S+|\s+", line):
                    request.on_token(piece)
            return Reply(Message("assistant", line), self._usage)
        calls = (line,) if isinstance(line, ToolCall) else tuple(line)
        return Reply(Message("assistant", "", calls), self._usage)

    async def areply(self, request: Request) -> Reply:
        """The next line, after giving the loop a turn as a real model would."""
        import asyncio

        await asyncio.sleep(0)
        return self.reply(request)

    def _next(self, request: Request) -> str | ToolCall | Sequence[ToolCall] | Exception:
        self.requests.append(request)
        if len(self.requests) > len(self._lines):
            raise MisuseError(
                f"The script has {len(self._lines)} lines, and this is request {len(self.requests)}.\n"
                "Nothing was answered.\n"
                "Add a line to `ScriptedModel(…)`, or find out why the agent asks again."
            )
        line = self._lines[len(self.requests) - 1]
        while callable(line) and not isinstance(line, Exception):
            line = line(request)
        return line
