"""What can be kept, and what is refused with the path to it."""

import datetime as dt
import enum
from typing import NamedTuple

import pytest

from troth.runtime.store.errors import NotJsonError
from troth.runtime.store.json_codec import keep, read


class Color(enum.StrEnum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


@pytest.mark.parametrize(
    ("value", "back"),
    [
        pytest.param(None, None, id="nothing"),
        pytest.param(2**70, 2**70, id="a number beyond 64 bits"),
        pytest.param(0.1, 0.1, id="a float, exactly"),
        pytest.param("ß\ud800\x00", "ß\ud800\x00", id="text with a lone surrogate and a zero"),
        pytest.param({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}, id="nested"),
        pytest.param((1, (2, 3)), [1, [2, 3]], id="tuples come back as lists"),
        pytest.param(Point(1, 2), [1, 2], id="a named tuple comes back as a list"),
        pytest.param({"c": Color.RED}, {"c": "red"}, id="a text enum comes back as its text"),
        pytest.param(True, True, id="a truth value stays one"),
    ],
)
def test_what_is_kept(value, back):
    """The decision is given the value as it will be read back, on the first run too."""
    text, now = keep(value, "result")
    assert now == back
    assert read(text, "it") == back


class Stubborn(dict):
    """A mapping that cannot be compared with anything."""

    def __eq__(self, other):
        raise ZeroDivisionError

    __hash__ = None


def test_what_cannot_be_compared_is_kept_all_the_same():
    """The user's own `__eq__` may raise."""
    assert keep(Stubborn(a=1), "result")[1] == {"a": 1}


async def lost():
    """Never runs."""


def circle():
    value = {}
    value["self"] = [value]
    return value


def deep():
    value = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "path", "says"),
    [
        pytest.param({"a": [1, {2}]}, "result['a'][1]", "sorted", id="a set inside"),
        pytest.param({"a": {1: "x"}}, "result['a'][1]", "JSON keys are strings", id="a number as key"),
        pytest.param({True: 1}, "result[True]", "JSON keys are strings", id="a truth value as key"),
        pytest.param([float("nan")], "result[0]", "no such number", id="not a number"),
        pytest.param({"x": float("inf")}, "result['x']", "no such number", id="infinity"),
        pytest.param(b"x", "result", "bytes", id="bytes"),
        pytest.param(dt.date(2026, 1, 1), "result", "isoformat", id="a date"),
        pytest.param((1, object()), "result[1]", "a object", id="an object in a tuple"),
        pytest.param(circle(), "result['self'][0]", "contains itself", id="a circle"),
        pytest.param(deep(), "result", "nested too deeply", id="too deep"),
        pytest.param(10**5000, "result", "more digits than Python can write", id="a number that is too long"),
        pytest.param({"n": [-(10**5000)]}, "result['n'][0]", "use a string", id="… inside"),
        pytest.param(
            Stubborn({1: 2}), "result[1]", "JSON keys are strings", id="what cannot be compared, with a bad key"
        ),
    ],
)
def test_what_is_refused(value, path, says):
    """The message leads to the part that cannot be kept, and says what to keep instead."""
    with pytest.raises(NotJsonError, match="cannot be kept as JSON") as refused:
        keep(value, "result")
    assert refused.value.path == path
    assert says in str(refused.value)


def test_a_coroutine_is_named():
    """A coroutine in a result is a forgotten await, and is called that."""
    coroutine = lost()
    with pytest.raises(NotJsonError, match=r"a coroutine \(`lost`\) that was not awaited"):
        keep({"x": coroutine}, "result")
    coroutine.close()
