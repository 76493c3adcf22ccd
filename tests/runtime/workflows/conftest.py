"""A small shop whose functions the workflows of these tests call."""

import sys
import textwrap

import pytest

SHOP = '''
"""Functions of a small shop, sync and async."""

def charge(order, amount=10):
    return {"payment": f"pay-{order}", "amount": amount}

async def refund(order, result=None):
    return None

def ship(order):
    return {"parcel": order}

def classify(text):
    return {"kind": "bug" if "bug" in text else "feature"}

def numbers():
    yield 1

async def stream():
    yield 1

class Caller:
    async def __call__(self, order):
        return order

caller = Caller()
PRICE = 3
'''


@pytest.fixture
def shop(tmp_path):
    """A folder with the shop's module; workflows written into it find the module beside them."""
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    yield tmp_path
    sys.modules.pop("shop", None)


@pytest.fixture
def written(shop):
    """Writes a workflow into the shop's folder: `written(steps)` with a head, `written(whole, head=False)` as it is."""

    def write(text, *, head=True, name="flow.yaml"):
        text = textwrap.dedent(text).lstrip("\n")
        if head:
            text = "troth: 1\nname: order\ninputs:\n  order: string\nsteps:\n" + textwrap.indent(text, "  ")
        path = shop / name
        path.write_text(text, encoding="utf-8")
        return path

    return write
