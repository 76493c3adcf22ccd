"""The agent: takes a request, picks tools, keeps the conversation."""

from concierge.notify import Notifier
from concierge.policy import SpendingPolicy
from concierge.store import ConversationStore, Message
from concierge.tools import COSTS, TOOLS


class TravelAgent:
    def __init__(self, store: ConversationStore, policy: SpendingPolicy, notifier: Notifier) -> None:
        self.store = store
        self.policy = policy
        self.notifier = notifier

    async def handle(self, conversation_id: str, address: str, city: str) -> str:
        self.store.append(conversation_id, Message("user", f"to {city}, please"))
        flights = await TOOLS["search_flights"](city)
        if self.policy.allows("book_flight", COSTS["book_flight"]):
            answer = await TOOLS["book_flight"](flights[0])
            self.notifier.booked(address, flights[0])
        else:
            answer = "that is more than I may spend"
        await self.store.append(conversation_id, Message("agent", answer))
        return answer

    async def summary(self, conversation_id: str) -> str:
        messages = self.store.load(conversation_id)
        return f"{conversation_id}: {messages}"
