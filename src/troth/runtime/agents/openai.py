"""Talk to OpenAI's Chat Completions and to everything that speaks the same protocol.

The `openai` package is an extra, imported when a model is made. What is sent and how an answer is put together is
decided once, in `_asked` and `_Answer`; the two colors differ in the client they use and in one `await`.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from troth.bridge import call
from troth.bridge import run as bridge_run
from troth.errors import MisuseError
from troth.runtime.agents.model import Message, ModelError, Reply, Request, ToolCall, Usage

if TYPE_CHECKING:
    import openai

__all__ = ["OpenAIModel", "Price"]

_TIMEOUT = 120.0  # seconds
_RETRIES = 2  # as the SDK itself has it


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost, going in and coming out."""

    input: float
    output: float

    def of(self, usage: Usage) -> float:
        """The cost of these tokens."""
        return (usage.input_tokens * self.input + usage.output_tokens * self.output) / 1_000_000


class OpenAIModel:
    """A model behind an OpenAI-compatible URL.

    `base_url` and `api_key` default to the environment (`OPENAI_BASE_URL`, `OPENAI_API_KEY`), `timeout` to 120 seconds.
    A request that is answered with 429 or 5xx, or not at all, is made again up to `retries` times, after as long as
    `Retry-After` says; an answer that breaks off is not. `options` go into every request (`temperature`,
    `max_completion_tokens` …).

    For Azure, a proxy or settings of your own hand in a ready `client`, an `async_client`, or both. They bring their
    own URL, key, timeout and retries. Where only one is given, the other color uses it through the bridge.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float | None = None,
        retries: int | None = None,
        price: Price | None = None,
        options: Mapping[str, Any] | None = None,
        client: "openai.OpenAI | None" = None,
        async_client: "openai.AsyncOpenAI | None" = None,
    ) -> None:
        try:
            import openai
        except ModuleNotFoundError as missing:
            raise MisuseError(
                f"`OpenAIModel({name!r})` needs the package `openai`, which is not installed.\n"
                "No request was made.\nInstall it with `pip install 'troth[openai]'`."
            ) from missing
        self.name = name
        self.price = price
        self._openai = openai
        self._options = dict(options or {})
        self._given_client = client
        self._given_async_client = async_client
        self._loop_clients = _LoopClients(self._make_async_client)
        settings = {"base_url": base_url, "api_key": api_key, "timeout": timeout, "retries": retries}
        if client is not None or async_client is not None:
            self._check_clients(settings)
            return
        key = api_key or os.environ.get("OPENAI_API_KEY")
        if not key:
            raise MisuseError(
                f"`OpenAIModel({name!r})` has no API key: neither `api_key=` nor `OPENAI_API_KEY` is given.\n"
                "No request was made.\n"
                "Set one of them (most local servers accept any string), or use "
                "`troth.testing.scripted.ScriptedModel`, which needs neither key nor network."
            )
        self._client_options: dict[str, Any] = {
            "api_key": key,
            "base_url": base_url,
            "timeout": _TIMEOUT if timeout is None else timeout,
            "max_retries": _RETRIES if retries is None else retries,
        }

    def _check_clients(self, settings: Mapping[str, object]) -> None:
        """Refuse settings that nobody would look at, and clients of the wrong color."""
        unused = [f"`{name}`" for name, value in settings.items() if value is not None]
        if unused:
            raise MisuseError(
                f"`OpenAIModel({self.name!r})` is given a ready client, and {', '.join(unused)} beside it.\n"
                "The client has its own settings, so these would be ignored. The model was not made.\n"
                "Set them where the client is made."
            )
        wrong = (
            ("client", self._given_client, self._openai.AsyncOpenAI, "async_client"),
            ("async_client", self._given_async_client, self._openai.OpenAI, "client"),
        )
        for name, client, other_color, other_name in wrong:
            if isinstance(client, other_color):
                raise MisuseError(
                    f"`OpenAIModel({self.name!r}, {name}=…)` is given a client of the wrong color, "
                    f"`{type(client).__name__}`.\nThe model was not made.\nPass it as `{other_name}=`."
                )

    @cached_property
    def _client(self) -> "openai.OpenAI":
        return self._given_client or self._openai.OpenAI(**self._client_options)

    def _make_async_client(self) -> "openai.AsyncOpenAI":
        return self._openai.AsyncOpenAI(**self._client_options)

    def reply(self, request: Request) -> Reply:
        """Answer, on the caller's thread."""
        if self._given_client is None and self._given_async_client is not None:
            return bridge_run(self.areply, request)
        answer = _Answer(self.name, self.price)
        try:
            with self._client.chat.completions.create(**self._asked(request)) as chunks:
                for chunk in chunks:
                    answer.take(chunk, request)
        except self._openai.OpenAIError as problem:
            raise self._explained(problem) from problem
        return answer.reply()

    async def areply(self, request: Request) -> Reply:
        """Answer, without blocking the loop. All requests of one loop share a client, which ends with that loop."""
        if self._given_async_client is None and self._given_client is not None:
            return await call(self.reply, request)
        client = self._given_async_client or await self._loop_clients.here()
        answer = _Answer(self.name, self.price)
        try:
            async with await client.chat.completions.create(**self._asked(request)) as chunks:
                async for chunk in chunks:
                    answer.take(chunk, request)
        except self._openai.OpenAIError as problem:
            raise self._explained(problem) from problem
        return answer.reply()

    def _asked(self, request: Request) -> dict[str, Any]:
        asked: dict[str, Any] = {
            **self._options,
            "model": self.name,
            "messages": [_message(message) for message in request.messages],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            asked["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": dict(tool.parameters),
                    },
                }
                for tool in request.tools
            ]
        return asked

    def _explained(self, problem: Exception) -> ModelError:
        status = getattr(problem, "status_code", None)
        advice = {
            401: "Check the API key.",
            404: "Check the model's name and the base URL.",
            429: "The provider limits the rate of requests; try again later.",
        }.get(status or 0, "A retry may work." if status is None or status >= 500 else "Change the request.")
        return ModelError(
            f"The model {self.name!r} did not answer: {problem}\nNo answer was recorded.\n{advice}", status=status
        )


class _LoopClients:
    """One async client for each loop, because its connections belong to the loop they were opened on.

    Each is held by an async generator, which its loop closes when it is shut down, and the client with it.
    """

    def __init__(self, make: "Callable[[], openai.AsyncOpenAI]") -> None:
        self._make = make
        self._open: dict[asyncio.AbstractEventLoop, tuple[openai.AsyncOpenAI, AsyncGenerator[None, None]]] = {}

    async def here(self) -> "openai.AsyncOpenAI":
        """The client of this loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._open:
            for other in [other for other in list(self._open) if other.is_closed()]:
                self._open.pop(other, None)  # it was closed without being shut down
            client = self._make()
            life = self._live(loop, client)
            self._open[loop] = client, life
            await anext(life)
        return self._open[loop][0]

    async def _live(self, loop: asyncio.AbstractEventLoop, client: "openai.AsyncOpenAI") -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._open.pop(loop, None)
            await client.close()


def _message(message: Message) -> dict[str, Any]:
    row: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.calls:
        row["content"] = message.text or None
        row["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    if message.call_id is not None:
        row["tool_call_id"] = message.call_id
    return row


@dataclass(slots=True)
class _Answer:
    """An answer while it comes in, piece by piece."""

    model: str
    price: Price | None
    text: list[str] = field(default_factory=list)
    calls: dict[int, dict[str, str]] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    finish: str | None = None

    def take(self, chunk: Any, request: Request) -> None:
        if chunk.usage is not None:
            self.usage = Usage(chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
        for choice in chunk.choices[:1]:
            self.finish = choice.finish_reason or self.finish
            delta = choice.delta
            if delta is None:
                continue
            if delta.content:
                self.text.append(delta.content)
                if request.on_token is not None:
                    request.on_token(delta.content)
            for part in delta.tool_calls or ():
                call = self.calls.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
                call["id"] = part.id or call["id"]
                if part.function is not None:
                    call["name"] += part.function.name or ""
                    call["arguments"] += part.function.arguments or ""

    def reply(self) -> Reply:
        if self.finish is None:  # the SDK raises nothing when a stream just ends
            raise ModelError(
                f"The answer of {self.model!r} was interrupted after {len(''.join(self.text))} characters.\n"
                "It was not recorded, because a partial answer looks like a complete one.\nA retry may work."
            )
        if self.finish == "length":
            raise ModelError(
                f"The answer of {self.model!r} reached the length limit and is incomplete.\n"
                "It was not recorded, because a partial answer looks like a complete one.\n"
                "Allow more tokens (`options={'max_completion_tokens': …}`)."
            )
        calls = tuple(ToolCall(**call) for _, call in sorted(self.calls.items()))
        usage = self.usage
        if self.price is not None:
            usage = Usage(usage.input_tokens, usage.output_tokens, self.price.of(usage))
        return Reply(Message("assistant", "".join(self.text), calls), usage)
