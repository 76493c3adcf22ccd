"""A chat-like channel, written against the public names alone: a room with members, where results are posted.

    python examples/channel/chat_channel.py

The room stands for somebody else's chat service: it has message ids, can be offline, and remembers which deliveries it
has shown, so that a result that is sent again after a crash is shown once.
"""

import asyncio
import tempfile
from pathlib import Path

from troth.runtime import Capability, Channel, Delivery, Pushed, Receipt, Runtime, bind
from troth.runtime.channels import Deduplicator


class Room:
    """The other side: a chat room."""

    def __init__(self) -> None:
        self.is_online = True
        self.messages: list[str] = []
        self.received: list[str] = []
        self._shown = Deduplicator()

    async def post(self, text: str, key: str) -> str:
        await asyncio.sleep(0)
        if not self.is_online:
            raise ConnectionError("the room is offline")
        self.received.append(key)
        if self._shown.is_new(key):
            self.messages.append(text)
        return f"message-{len(self.messages)}"


class ChatChannel(Channel):
    """Posts what it is given to a room. It can push as long as the room is online, and says so."""

    name = "chat"

    def __init__(self, room: Room) -> None:
        self.room = room

    @property
    def capability(self) -> Capability:
        return Capability.PUSH if self.room.is_online else Capability.STORE

    async def send(self, delivery: Delivery) -> Receipt:
        late = f" ({delivery.age:.0f} s ago)" if delivery.age > 60 else ""
        return Receipt.done(await self.room.post(delivery.text + late, key=delivery.id))


def shout(prompt: str) -> str:
    return prompt.upper()


def main() -> None:
    room = Room()
    with (
        tempfile.TemporaryDirectory() as folder,
        Runtime(Path(folder) / "troth.db", agents={"shouter": shout}) as runtime,
    ):
        channel = ChatChannel(room)
        runtime.open_channel(channel)
        with bind("room-7", channel):
            outcome = runtime.promises.start("shouter", prompt="tell me when it is done")
        assert isinstance(outcome, Pushed)
        outcome.promise.wait(10)
        while runtime.outbox.counts().stored:
            asyncio.run(asyncio.sleep(0.01))
        print(room.messages)
        print(runtime.outbox.counts())


if __name__ == "__main__":
    main()
