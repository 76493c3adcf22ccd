"""What a table says of a method by its name alone."""

import pytest

from troth.analysis.semantics.resolve.library import async_methods


@pytest.mark.parametrize(
    ("package", "method", "is_async"),
    [
        pytest.param("discord", "add_roles", True, id="of classes that have no sync twin"),
        pytest.param("google", "generate_content", False, id="of an async class beside a sync one that is left out"),
        pytest.param("discord", "permissions_for", False, id="a sync method"),
        pytest.param("nowhere", "load", False, id="of a package without a table"),
    ],
)
def test_a_method_is_async_in_every_class_that_has_it(package: str, method: str, is_async: bool) -> None:
    """A class with nothing async in it is in the table without its methods, so a name it may have too says nothing."""
    assert (method in async_methods(package)) is is_async
