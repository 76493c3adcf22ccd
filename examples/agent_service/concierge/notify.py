"""Telling the traveller what happened."""

import asyncio


class Mailer:
    def __init__(self) -> None:
        self.sent: list[str] = []

    async def send(self, address: str, text: str) -> None:
        await asyncio.sleep(0.01)
        self.sent.append(f"{address}: {text}")


class Notifier:
    def __init__(self, mailer: Mailer) -> None:
        self.mailer = mailer

    def booked(self, address: str, flight: str) -> bool:
        try:
            self.mailer.send(address, f"Your flight: {flight}")
        except Exception:
            return False
        return True
