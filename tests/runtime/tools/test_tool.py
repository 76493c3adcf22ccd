"""Functions become tools: described by their signature, checked before they are called."""

import enum
import functools
import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated, Literal
from unittest.mock import MagicMock

import pytest
from jsonschema import Draft202012Validator

from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.tools import ToolArgumentsError, ToolOutcome, tool


class Seat(enum.Enum):
    AISLE = "aisle"
    WINDOW = "window"


@dataclass
class Traveller:
    name: str
    age: int = 30


@tool
def search(city: str, limit: int = 5, seat: Seat | None = None, who: list[Traveller] | None = None) -> list[str]:
    """Search flights.

    Args:
        city: where to
    """
    return [f"{city} {limit} {seat} {who}"]


@tool(name="book-it", timeout=2.5)
async def book(flight: Annotated[str, "the flight's number"], way: Literal["one", "both"]) -> str:
    """Book a flight."""
    return flight + way


def test_described_by_its_signature():
    """Name, text, schema and color are there before anything is called."""
    assert (search.name, search.description, search.color) == ("search", "Search flights.", Color.SYNC)
    assert search.parameters["required"] == ["city"]
    assert search.parameters["properties"]["city"] == {"type": "string", "description": "where to"}
    assert search.parameters["properties"]["limit"] == {"type": "integer", "default": 5}
    assert search.parameters["additionalProperties"] is False
    assert (book.name, book.color, book.timeout) == ("book-it", Color.ASYNC, 2.5)
    assert book.parameters["properties"]["flight"]["description"] == "the flight's number"
    assert book.parameters["properties"]["way"] == {"type": "string", "enum": ["one", "both"]}
    Draft202012Validator.check_schema(search.parameters)


def test_still_a_function():
    """Code that is no model calls it as before."""
    assert search("Rome", 1) == ["Rome 1 None None"]


def test_arguments_become_python_values():
    """Enums and dataclasses arrive as themselves, defaults are filled in."""
    given = search.arguments('{"city": "Rome", "seat": "aisle", "who": [{"name": "Ann"}]}')
    assert given == {"city": "Rome", "limit": 5, "seat": Seat.AISLE, "who": [Traveller("Ann")]}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param("{", "not JSON", id="broken JSON"),
        pytest.param("[1]", "list, not an object", id="not an object"),
        pytest.param("{}", "city: Field required", id="missing"),
        pytest.param('{"city": "Rome", "town": 1}', "town: Extra inputs", id="unknown"),
        pytest.param('{"city": "Rome", "limit": "many"}', "limit: Input should be a valid integer", id="wrong type"),
        pytest.param('{"city": "Rome", "who": [{"age": 1}]}', "who.0.name: Field required", id="deep inside"),
    ],
)
def test_wrong_arguments_are_told_to_the_model(given, says):
    """The message names the place, so that the model can correct itself; the function is not called."""
    with pytest.raises(ToolArgumentsError) as caught:
        search.arguments(given)
    assert says in str(caught.value)


def test_no_arguments_at_all():
    """Some models send an empty text for a tool without parameters."""
    assert tool(name="now")(lambda: 1).arguments("") == {}


class Counter:
    def __init__(self):
        self.n = 0

    async def add(self, amount: int) -> int:
        """Add."""
        self.n += amount
        return self.n

    async def __call__(self, amount: int) -> int:
        return amount


@pytest.mark.parametrize(
    ("function", "color"),
    [
        pytest.param(Counter().add, Color.ASYNC, id="bound async method"),
        pytest.param(Counter(), Color.ASYNC, id="object with async __call__"),
        pytest.param(functools.partial(Counter.add, Counter()), Color.ASYNC, id="partial"),
        pytest.param(lambda amount: amount, Color.SYNC, id="lambda"),
    ],
)
def test_all_kinds_of_callables(function, color):
    """The color is what a call gives back, however the function is wrapped."""
    made = tool(name="it")(function)
    assert made.color is color
    assert made.arguments('{"amount": 2}') == {"amount": 2}


def numbers():
    yield 1


async def stream(x: int):
    yield x


@pytest.mark.parametrize(
    ("function", "options", "says"),
    [
        pytest.param(lambda: 1, {}, "cannot be the name of a tool", id="no usable name"),
        pytest.param(len, {"name": "with space"}, "cannot be the name of a tool", id="bad name"),
        pytest.param(search.function, {"timeout": 0}, "not a positive duration", id="timeout of nothing"),
        pytest.param(
            search.function, {"timeout": float("nan")}, "Give a number of seconds", id="timeout that is no number"
        ),
        pytest.param(stream, {}, "is a generator function", id="async generator"),
        pytest.param(numbers, {}, "is a generator function", id="generator"),
        pytest.param(functools.partial(numbers), {"name": "m"}, "is a generator function", id="partial of a generator"),
        pytest.param(int, {}, "has no readable signature", id="what says nothing about itself"),
        pytest.param(MagicMock(), {"name": "m"}, "whose color cannot be determined", id="bare mock"),
        pytest.param(lambda *args: 1, {"name": "m"}, "cannot fill by name", id="*args"),
        pytest.param(lambda **kw: 1, {"name": "m"}, "cannot fill by name", id="**kwargs"),
        pytest.param(lambda x, /: 1, {"name": "m"}, "cannot fill by name", id="positional-only"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_when_it_is_made(function, options, says):
    """Nothing is called, and the message says what to change."""
    with pytest.raises(MisuseError, match=says):
        tool(**options)(function) if options else tool(function)


def test_an_annotation_that_no_json_describes_is_refused():
    """A model could never fill it."""

    def send(socket: type(sys)):
        """Send."""

    with pytest.raises(MisuseError, match="no JSON can describe"):
        tool(send)


def test_a_name_that_is_not_defined_is_named():
    """Mostly an import under TYPE_CHECKING."""

    def send(x: "Nowhere"):  # noqa: F821
        """Send."""

    with pytest.raises(MisuseError, match="annotated with 'Nowhere'"):
        tool(send)


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        pytest.param(ToolOutcome("1", "t", "plain"), "plain", id="text stays"),
        pytest.param(ToolOutcome("1", "t", {"a": [1, "é"]}), '{"a": [1, "é"]}', id="values are JSON"),
        pytest.param(ToolOutcome("1", "t", error="no seat"), '{"error": "no seat"}', id="an error is data"),
    ],
)
def test_what_the_model_is_told(outcome, text):
    """An error goes back as data, so that the model can go on."""
    assert outcome.text() == text


def test_pydantic_is_imported_with_the_first_tool():
    """`import troth.runtime.tools` stays quick."""
    code = "import sys, troth.runtime.tools; print('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
