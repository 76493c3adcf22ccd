"""What stands out among the calls of one object: all else that is asked of it is awaited."""

from pathlib import Path

import pytest

from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project

ASKED = ("create_order", "update_order", "load_order", "find_orders")
AWAITED = "".join(f"    await orders.{name}(1)\n" for name in ASKED)
OF_SELF = "".join(f"    async def {name}(self):\n        return await self.shop.{name}_there(1)\n" for name in ASKED)


def told(text: str) -> list[tuple[str, str, int]]:
    """The code, the confidence and the line of every finding."""
    found = analyse(Project(Path("/nowhere"), ("app.py",)), overlay={"app.py": text.encode()}).findings
    return [(f.code, f.confidence, f.span.line) for f in found]


SEEN = {
    "a parameter": f"async def use(orders):\n{AWAITED}async def drop(orders):\n    orders.erase_order(1)  # lost\n",
    "something imported": f"from shop import orders\nasync def use():\n{AWAITED}async def drop():\n    orders.erase_order(1)  # lost\n",
    "what a method hands on to": f"class Shop:\n{OF_SELF}    async def erase_order(self):\n        self.shop.erase_order(1)  # lost\n",
    "what plain objects have as well": f"async def use(orders):\n{AWAITED}    orders.close()  # lost\n",
    "a condition": f"async def use(orders):\n{AWAITED}async def look(orders):\n    if not orders.check_order(1):  # lost\n        return 1\n",
    "one of several of a library": f"import shop\nasync def use(orders):\n{AWAITED}async def drop(x, load):\n"
    "    orders = shop.Old() if x else load('shop')\n    orders.erase_order(1)  # lost\n",
    "a class with a base of which nothing is known": f"import shop\nclass Orders(shop.Client):\n    def name_of(self): ...\n"
    f"async def use(orders: Orders):\n{AWAITED}async def drop(orders: Orders):\n    orders.erase_order(1)  # lost\n",
    "one that is gathered does not count": f"import asyncio\nasync def use(orders):\n{AWAITED}    await asyncio.gather(orders.load_order(2))\n"
    "async def drop(orders):\n    orders.erase_order(1)  # lost\n",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in SEEN.items()])
def test_a_call_that_stands_out_is_told_as_likely(text: str) -> None:
    """The marked line, and nothing else, is found."""
    marked = [number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# lost")]
    assert told(text) == [("TR201", "likely", number) for number in marked]


SILENT = {
    "too little company": "async def use(orders):\n    await orders.create_order(1)\n    await orders.load_order(1)\n"
    "    await orders.find_orders(1)\n    orders.erase_order(1)\n",
    "too little for what plain objects have as well": "async def use(orders):\n    await orders.create_order(1)\n"
    "    await orders.load_order(1)\n    orders.close()\n",
    "too little for a condition": "async def use(orders):\n    await orders.create_order(1)\n    await orders.load_order(1)\n"
    "    if orders.check_order(1):\n        return 1\n",
    "a condition, and one call is otherwise": f"async def use(orders):\n{AWAITED}    print(orders.order_url(1))\n"
    "    if orders.check_order(1):\n        return 1\n",
    "what an object is asked for": f"async def use(orders):\n{AWAITED}    if orders.is_open():\n        return 1\n",
    "it is called so by others too": f"async def use(orders):\n{AWAITED}    orders.erase_order(1)\n    orders.watch_order(1)\n    orders.count_order(1)\n",
    "its result is taken": f"async def use(orders):\n{AWAITED}    url = orders.order_url(1)\n    return url\n",
    "it sets the object up": f"async def use(orders):\n{AWAITED}    orders.set_currency('EUR')\n    orders.register(print)\n    orders.add_listener(print)\n",
    "every other object has one": f"async def use(orders):\n{AWAITED}    orders.append(1)\n    orders.clear()\n",
    "the end of it is waited for": f"async def use(orders):\n{AWAITED}    orders.close()\n    await orders.wait_closed()\n",
    "in a sync function": f"async def use(orders):\n{AWAITED}def drop(orders):\n    orders.erase_order(1)\n",
    "the object of another class": f"class Shop:\n{OF_SELF}class Other:\n    async def erase_order(self):\n        self.shop.erase_order(1)\n",
    "a sync namesake in the project": f"class Orders:\n    def erase_order(self, x): ...\nasync def use(orders):\n{AWAITED}    orders.erase_order(1)\n",
    "a class of the project that lacks it": f"class Orders:\n    async def create_order(self, x): ...\nasync def use(orders):\n{AWAITED}"
    "async def drop():\n    orders = Orders()\n    orders.erase_order(1)\n",
    "a library that is known": f"import aiohttp\nasync def use(orders):\n{AWAITED}async def drop():\n"
    "    async with aiohttp.ClientSession() as orders:\n        orders.erase_order(1)\n",
    "a stand-in": "from unittest.mock import Mock\nasync def use(mock_orders):\n" + AWAITED.replace("orders.", "mock_orders.")
    + "    mock_orders.erase_order(1)\n",
    "the color is asked for": f"import inspect\nasync def use(orders):\n{AWAITED}    if not inspect.iscoroutinefunction(orders.erase_order):\n"
    "        orders.erase_order(1)\n",
}  # fmt: skip


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in SILENT.items()])
def test_what_may_well_be_plain_is_left_alone(text: str) -> None:
    """Nothing is found."""
    assert told(text) == []


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        pytest.param("", "4 other methods of `orders` are awaited here, none called plainly", id="none"),
        pytest.param(
            "    orders.order_url(1)\n", "4 other methods of `orders` are awaited here, 1 called plainly", id="one"
        ),
    ],
)
def test_the_reason_counts(others: str, reason: str) -> None:
    """How good the company is stands in the reason, also where one call is otherwise."""
    text = f"async def use(orders):\n{AWAITED}async def drop(orders):\n    orders.erase_order(1)\n{others}"
    found = analyse(Project(Path("/nowhere"), ("app.py",)), overlay={"app.py": text.encode()}).findings
    assert reason in [one.text for finding in found for one in finding.reasons]
