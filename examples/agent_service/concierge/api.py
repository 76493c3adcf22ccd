"""The HTTP front."""

import asyncio

from fastapi import FastAPI

from concierge.agent import TravelAgent
from concierge.notify import Mailer, Notifier
from concierge.policy import SpendingPolicy
from concierge.store import ConversationStore

app = FastAPI()
agent = TravelAgent(ConversationStore(), SpendingPolicy(limit=300), Notifier(Mailer()))


@app.post("/trips/{conversation_id}")
async def start_trip(conversation_id: str, address: str, city: str) -> dict[str, str]:
    asyncio.create_task(agent.handle(conversation_id, address, city))
    return {"status": "we are on it, and will write to you"}


@app.get("/trips/{conversation_id}")
async def show_trip(conversation_id: str) -> dict[str, str]:
    return {"summary": asyncio.run(agent.summary(conversation_id))}
