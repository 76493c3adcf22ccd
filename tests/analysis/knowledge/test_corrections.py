"""Every name in a correction is one that the tables know."""

import pytest

from troth.analysis import knowledge
from troth.analysis.knowledge.corrections import corrected, correction


def names():
    """The dotted names of classes in all corrections."""
    for library in sorted(corrected()):
        data = correction(library)
        for name in (*data.parameters.values(), *(cls for pair in data.pairs.values() for cls in pair), *data.pairs):
            yield pytest.param(name, id=f"{library}: {name}")
        for name in data.type_arguments:
            yield pytest.param(name.rpartition(".")[0], id=f"{library}: {name}")


@pytest.mark.parametrize("name", list(names()))
def test_the_tables_know_it(name):
    """A name that moved in its library would silently correct nothing."""
    assert knowledge.find(name) is not None


def test_an_edition_names_functions_that_are_async_now():
    """What is plain in another edition is async in the one of the tables."""
    edition = correction("discord.Client").edition
    assert edition is not None
    assert edition.sync <= knowledge.load("discord").meaning("c") | {"cog_unload"}


def test_a_library_without_a_file_has_no_corrections():
    """Nothing is read for it."""
    assert correction("json.dumps") == correction("no_such_library")
