"""One traveller, served once: `python -m concierge` shows what was kept and what was lost."""

import asyncio

from concierge.agent import TravelAgent
from concierge.notify import Mailer, Notifier
from concierge.policy import SpendingPolicy
from concierge.store import ConversationStore


async def main() -> None:
    store, mailer = ConversationStore(), Mailer()
    agent = TravelAgent(store, SpendingPolicy(limit=300), Notifier(mailer))
    answer = await agent.handle("c1", "ann@example.org", "Lisbon")
    kept = await store.load("c1")
    print(f"answer: {answer} (the limit is 300, the flight costs 420)")
    print(f"messages kept: {len(kept)} of 2")
    print(f"mails sent: {len(mailer.sent)}")


if __name__ == "__main__":
    asyncio.run(main())
