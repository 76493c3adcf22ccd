"""Bind a request's turn to the channel that the request came by. What the channel can do is not a parameter.

HTTP answers and is gone: what comes later is stored. A stream and a socket push as long as they are open; what comes
after that is stored. Results that were pushed and not acknowledged when the last reader leaves are pending again.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import ClassVar

from troth.bridge import call
from troth.runtime.assemble import Runtime
from troth.runtime.channels import Binding, Capability, Channel, Delivery, Receipt, bind

__all__ = ["HttpChannel", "OpenChannels", "Reader", "SocketChannel", "StreamChannel"]


class HttpChannel(Channel):
    """A request and its answer. Nobody can be told anything after it: results are kept until somebody asks."""

    name = "http"
    capability = Capability.STORE

    def send(self, delivery: Delivery) -> Receipt:  # noqa: ARG002
        """Nobody is there; the outbox does not come here, because the channel cannot push."""
        return Receipt.refused("an answer cannot be followed by another one")

    @classmethod
    @contextmanager
    def session(cls, session: str) -> Iterator[Binding]:
        """Bind what is begun in the block to `session`. What it promises is stored."""
        with bind(session, _HTTP) as binding:
            yield binding


_HTTP = HttpChannel()


class _Reached(Channel):
    """The readers of one session that are connected to this process by one kind of connection."""

    kind: ClassVar[str]
    is_local = True  # whoever is connected to another process is reached there

    def __init__(self, session: str) -> None:
        self.name = f"{self.kind}:{session}"
        self.readers: set[Reader] = set()

    @property
    def capability(self) -> Capability:
        """PUSH while somebody is connected."""
        return Capability.PUSH if self.readers else Capability.STORE

    def send(self, delivery: Delivery) -> Receipt:
        """Hand it to everybody who is connected. It is delivered once somebody acknowledges it."""
        readers = list(self.readers)
        for reader in readers:
            reader.put(delivery)
        return Receipt.accepted() if readers else Receipt.refused("no client is connected", retry_after=0.0)

    @classmethod
    @asynccontextmanager
    async def session(cls, channels: "OpenChannels", session: str) -> "AsyncIterator[Reader]":
        """Be a reader of `session` for the block, and bind what is begun in it to that.

        The outbox learns of the channel with the first reader of the session, and forgets it after the last one.
        """
        async with channels.reading(cls, session) as (channel, reader):
            with bind(session, channel):
                yield reader


class StreamChannel(_Reached):
    """An open event stream."""

    kind = "stream"
    capability = _Reached.capability


class SocketChannel(_Reached):
    """An open WebSocket."""

    kind = "socket"
    capability = _Reached.capability


class Reader:
    """One connection that is told of a session's results as they come."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Delivery] = []
        self._news = asyncio.Event()

    def put(self, delivery: Delivery) -> None:
        """For the channel: something has come. From any thread."""
        self._loop.call_soon_threadsafe(self._put, delivery)

    def _put(self, delivery: Delivery) -> None:
        self._waiting.append(delivery)
        self._news.set()

    def take(self) -> list[Delivery]:
        """What has come since the last look."""
        self._news.clear()
        waiting, self._waiting = self._waiting, []
        return waiting

    async def wait(self) -> None:
        """Wait until something has come."""
        await self._news.wait()


class OpenChannels:
    """The channels of one runtime that are open because somebody reads."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._open: dict[str, _Reached] = {}
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def reading(self, kind: type[_Reached], session: str) -> "AsyncIterator[tuple[_Reached, Reader]]":
        """Open the channel of a session for one more reader, as long as the block runs."""
        reader = Reader()
        channel = await self._join(kind, session, reader)
        try:
            yield channel, reader
        finally:
            await asyncio.shield(asyncio.ensure_future(self._leave(channel, reader)))

    async def _join(self, kind: type[_Reached], session: str, reader: Reader) -> _Reached:
        async with self._lock:
            name = f"{kind.kind}:{session}"
            channel = self._open.get(name)
            if channel is None:
                channel = kind(session)
                channel.readers.add(reader)
                await call(self._runtime.open_channel, channel)
                self._open[name] = channel
            channel.readers.add(reader)
            return channel

    async def _leave(self, channel: _Reached, reader: Reader) -> None:
        async with self._lock:
            channel.readers.discard(reader)
            if not channel.readers and self._open.get(channel.name) is channel:
                del self._open[channel.name]
                await call(self._runtime.close_channel, channel)
