"""What each public package exports. A change here is a change for users: it belongs in the changelog."""

import importlib
import pkgutil

import pytest

import troth

FACES = {
    "troth": ["__version__"],
    "troth.color": ["Color"],
    "troth.errors": ["InternalError", "MisuseError", "RunError", "TrothError"],
}


@pytest.mark.parametrize("name", FACES)
def test_the_public_face_is_frozen(name):
    """`__all__` is exactly the list above, and every name in it exists."""
    module = importlib.import_module(name)
    assert sorted(module.__all__) == FACES[name]
    assert all(hasattr(module, export) for export in module.__all__)


def test_every_module_can_be_imported_and_says_what_it_knows():
    """Each module has a docstring, and imports by itself."""
    silent = []
    for found in pkgutil.walk_packages(troth.__path__, "troth."):
        if found.name.endswith("__main__"):
            continue
        if not importlib.import_module(found.name).__doc__:
            silent.append(found.name)
    assert not silent
