"""A small shop: what the workflow calls. Sync and async functions are called alike.

The carrier's line is down the first time it is called, so that a retry can be seen; a parcel of more than thirty
kilograms is refused, so that everything done before it can be seen being undone.
"""

import asyncio
import time

PRICES = {"lamp": 80.0, "shade": 30.0, "bulb": 4.5}
_calls = {"ship": 0}


def charge(order: str, items: list[str]) -> dict[str, object]:
    """Take the money."""
    return {"payment": f"pay-{order}", "total": sum(PRICES.get(item, 10.0) for item in items)}


async def refund(order: str) -> None:
    """Give it back. Harmless if nothing was taken."""
    await asyncio.sleep(0.01)
    print(f"refunded {order}")


def reserve(order: str, thing: str) -> dict[str, str]:
    """Put a thing aside."""
    time.sleep(0.02)
    return {"shelf": f"{order}/{thing}"}


def release(order: str, thing: str) -> None:
    """Put it back on the shelf. Harmless if it is there."""
    print(f"released {thing} of {order}")


async def insure(payment: str) -> str:
    """Insure what is dear."""
    await asyncio.sleep(0.02)
    return f"policy-{payment}"


def invoice(payment: str) -> str:
    """Write the invoice."""
    time.sleep(0.03)
    return f"invoice-{payment}"


async def label(order: str) -> str:
    """Print the label."""
    await asyncio.sleep(0.05)
    return f"label-{order}"


async def ship(order: str, weight: float, label: str) -> dict[str, str]:
    """Hand the parcel to the carrier."""
    _calls["ship"] += 1
    await asyncio.sleep(0.02)
    if _calls["ship"] == 1:
        raise ConnectionError("the carrier does not answer")
    if weight > 30:
        raise ValueError(f"parcel too heavy: {weight:g} kg")
    return {"parcel": f"box-{order}", "label": label}
