"""What begins as an id does is found at once, however old it is, and is told once."""

import pytest

from troth.errors import MisuseError
from troth.runtime.store import commit_point, open_store

POINT = commit_point("test.search ids", "whatever a test writes")
COUNT = 12_000  # more than two windows of a search


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def store(request, tmp_path_factory):
    is_file = request.param == "sqlite"
    address = (
        tmp_path_factory.mktemp("ids") / "store.db" if is_file else request.getfixturevalue("postgres_server").address()
    )
    with open_store(address) as store:

        def begin(tx):
            for number in range(COUNT):
                tx.add_run(f"run-{number:06}", "workflow:w@x", "[]", float(number), label="w")

        store.commit(POINT, begin)
        yield store


def all_of(store, text, limit):
    """The ids on each page."""
    pages, cursor = [], None
    while True:
        page = store.lists.search(text, kinds=["run"], cursor=cursor, limit=limit)
        pages.append([hit.id for hit in page.items])
        cursor = page.next
        if cursor is None:
            return pages


def test_a_whole_id_is_on_the_first_page(store):
    """Of the oldest run: newer ones are not looked through for it."""
    (hit,) = store.lists.search("run-000003", limit=50).items
    assert (hit.kind, hit.id, hit.text) == ("run", "run-000003", "run-000003")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("run-000003", ["run-000003"], id="a whole id"),
        pytest.param("run-00000", [f"run-{number:06}" for number in range(10)], id="the beginning of a few"),
        pytest.param("run-0011", [f"run-{number:06}" for number in range(1100, 1200)], id="of more than a page"),
        pytest.param("run-01199", [f"run-{number:06}" for number in range(11990, 12000)], id="of new ones"),
        pytest.param("1999", ["run-001999", "run-011999"], id="a part in the middle"),
        pytest.param("run-9", [], id="of none"),
    ],
)
def test_each_is_told_once(store, text, expected):
    """Over all pages, also where the first had some of them out of their order."""
    pages = all_of(store, text, limit=20)
    ids = [run for page in pages for run in page]
    assert sorted(ids) == expected
    assert not expected or pages[0]


def test_a_common_beginning_does_not_mix_old_ones_with_the_newest(store):
    """The newest come first, in their order, as everywhere else."""
    page = store.lists.search("run-0", kinds=["run"], limit=20)
    assert [hit.id for hit in page.items] == [f"run-{number:06}" for number in range(COUNT - 1, COUNT - 21, -1)]


@pytest.mark.parametrize("cursor", ["eyJpZHMiOiBbImZvbyJdfQ", "eyJpZHMiOiAxfQ", "eyJmb28iOiBbXX0"])
def test_a_cursor_that_was_made_up(store, cursor):
    """Refused, and nothing is looked for."""
    with pytest.raises(MisuseError, match="is not a cursor"):
        store.lists.search("x", cursor=cursor)
