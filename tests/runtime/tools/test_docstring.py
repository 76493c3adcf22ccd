"""What a docstring says of a function and its parameters."""

import pytest

from troth.runtime.tools.docstring import described

GOOGLE = """Search flights.

Only direct ones.

Args:
    city: where to,
        as people write it
    limit (int): how many

Returns:
    Flights: never more than asked.
"""
NUMPY = """Search flights.

Only direct ones.

Parameters
----------
city : str
    where to,
    as people write it
limit : int, optional
    how many

Returns
-------
list of str
    Flights.
"""
FIELDS = """Search flights.

Only direct ones.

:param str city: where to,
    as people write it
:param limit: how many
:returns: flights
"""


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, FIELDS], ids=["google", "numpy", "fields"])
def test_three_ways_of_writing_say_the_same(text):
    """Summary and parameters come out alike, and what is returned is no parameter."""
    said = described(text)
    assert said.summary == "Search flights.\n\nOnly direct ones."
    assert dict(said.parameters) == {"city": "where to, as people write it", "limit": "how many"}


@pytest.mark.parametrize(
    ("text", "summary", "parameters"),
    [
        pytest.param(None, "", {}, id="none"),
        pytest.param("", "", {}, id="empty"),
        pytest.param("Just a line.", "Just a line.", {}, id="a line"),
        pytest.param("Note: this is prose.", "Note: this is prose.", {}, id="prose with a colon"),
        pytest.param("Do.\n\nArgs:\n    x:\n", "Do.", {}, id="a parameter of which nothing is said"),
        pytest.param(
            "Do.\n\nRaises:\n    ValueError: bad\n\nArgs:\n    x: it\n", "Do.", {"x": "it"}, id="after another section"
        ),
    ],
)
def test_odd_docstrings(text, summary, parameters):
    """What is not said is not there, and nothing is invented."""
    said = described(text)
    assert (said.summary, dict(said.parameters)) == (summary, parameters)
