"""A message about another awaitable than a coroutine is worded for it, and leaves the user's own names alone."""

import pytest

from troth.analysis.rules._finding import _in_words_of

MESSAGE = "`make_coroutine()` makes a coroutine and drops it, so `coroutine.never runs` never runs"


@pytest.mark.parametrize(
    ("promise", "message"),
    [
        pytest.param("coroutine", MESSAGE, id="a coroutine"),
        pytest.param(
            "generator",
            "`make_coroutine()` makes an async generator and drops it, so `coroutine.never runs` never runs",
            id="an async generator",
        ),
        pytest.param(
            "future",
            "`make_coroutine()` makes a future and drops it, so `coroutine.never runs` is not waited for",
            id="a future",
        ),
    ],
)
def test_names_of_the_user_stay(promise, message):
    """What stands in backticks is code."""
    assert _in_words_of(promise, MESSAGE) == message
