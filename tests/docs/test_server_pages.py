"""The page of the server's routes is made from the OpenAPI document, and the one in the repository is current."""

from pathlib import Path

from troth.server.openapi.reference import page

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/server-routes.md"


def test_the_page_is_current():
    """As the routes are now. If this fails: `python -m troth.server.openapi.reference docs/reference/server-routes.md`."""
    assert PAGE.read_text(encoding="utf-8") == page()
