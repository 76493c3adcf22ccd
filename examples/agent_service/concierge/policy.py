"""Who may use which tool."""

import asyncio


class SpendingPolicy:
    """Asks the accounting service whether a tool may spend money."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    async def allows(self, tool: str, cost: int) -> bool:
        await asyncio.sleep(0.01)  # the accounting service answers
        return cost <= self.limit
