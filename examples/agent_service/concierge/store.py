"""Where conversations are kept."""

import asyncio
from dataclasses import dataclass, field


@dataclass
class Message:
    role: str
    text: str


@dataclass
class ConversationStore:
    """Messages per conversation. A real one would talk to a database; the lock stands for that."""

    _rows: dict[str, list[Message]] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def append(self, conversation_id: str, message: Message) -> int:
        async with self._lock:
            rows = self._rows.setdefault(conversation_id, [])
            rows.append(message)
            return len(rows)

    async def load(self, conversation_id: str) -> list[Message]:
        async with self._lock:
            return list(self._rows.get(conversation_id, []))

    async def close(self) -> None:
        async with self._lock:
            self._rows.clear()
