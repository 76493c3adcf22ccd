"""What the agent can do."""

import asyncio
import time

COSTS = {"search_flights": 0, "book_flight": 420}


async def search_flights(city: str) -> list[str]:
    await asyncio.sleep(0.01)
    return [f"TP579 to {city}", f"LH1166 to {city}"]


async def book_flight(flight: str) -> str:
    time.sleep(0.2)  # the airline is slow: no other request is served
    return f"booked {flight}"


TOOLS = {"search_flights": search_flights, "book_flight": book_flight}
