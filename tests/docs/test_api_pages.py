"""The pages of the Python API are made from the docstrings, and those in the repository are current."""

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"

_spec = importlib.util.spec_from_file_location("troth_docs_api", DOCS / "_ext/api.py")
api = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = api
_spec.loader.exec_module(api)


def test_the_pages_are_current(tmp_path):
    """As the code is now. If this fails: `python docs/_ext/api.py`."""
    (tmp_path / "gone.md").write_text("old")
    written = {path.name: path.read_text(encoding="utf-8") for path in api.write_api_pages(tmp_path)}
    committed = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.md")}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(written) == sorted(committed)
    assert [name for name, text in written.items() if committed[name] != text] == [], "run `python docs/_ext/api.py`"


@pytest.mark.parametrize("page", api.PAGES)
def test_every_public_name_has_an_entry(page):
    """With the line that imports it, and with words of its own."""
    text = (DOCS / f"api/{page}.md").read_text(encoding="utf-8")
    for module in api.PAGES[page].modules:
        for name in importlib.import_module(module).__all__:
            assert f"## `{name}`\n\n`from {module} import {name}`\n" in text
    assert all(
        getattr(importlib.import_module(module), name, None) is not None for module, name in api.PAGES[page].more
    ), "a name that the page is to have is gone"


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("runtime", "    functions: Mapping[str, Callable[..., object]] | None = None,"),
        ("runtime", "    not_undone: tuple[StepFailed, ...] = (),"),
        ("agents", "## `Price`"),
        ("agents", "## `Reply`"),
        ("agents", "## `Model`"),
        ("tools", "timeout: float | None = None"),
        ("conversations", "await ainterrupt() -> Stopping"),
    ],
)
def test_what_is_looked_for_is_there(page, shown):
    """Arguments, options and fields, and not only names."""
    assert shown in (DOCS / f"api/{page}.md").read_text(encoding="utf-8")
