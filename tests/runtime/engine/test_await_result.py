"""How often somebody who waits for a run looks at it."""

import pytest

from troth.runtime.engine.await_result import look_again


@pytest.mark.parametrize(
    ("is_shared", "looks", "pause"),
    [
        pytest.param(False, 0, 0.25, id="a file, at first"),
        pytest.param(False, 10_000, 0.25, id="a file, always"),
        pytest.param(True, 0, 0.25, id="a database, at first"),
        pytest.param(True, 2, 1.0, id="a database, after a while"),
        pytest.param(True, 10_000, 2.0, id="a database, however long it takes"),
    ],
)
def test_looks_grow_rare_where_they_cost(is_shared, looks, pause):
    """A look at a file costs microseconds; one at a database is some round trips, and news come by themselves."""
    assert look_again(looks, is_shared=is_shared) == pause
