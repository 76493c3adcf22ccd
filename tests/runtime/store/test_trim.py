"""Streams are cut off at their beginning; what is left keeps its numbers, and readers from further back are told."""

import pytest

from troth.errors import MisuseError
from troth.runtime.store import CursorTrimmedError, Follower, SqliteStore, commit_point

POINT = commit_point("test.trim", "whatever a test writes")


@pytest.fixture
def store(path):
    with SqliteStore(path) as store:
        store.commit(POINT, lambda tx: [tx.append_event("s", "k", number, 0.0) for number in range(10)])
        yield store


def numbers(events):
    return [event.seq for event in events]


def test_the_newest_are_kept_with_their_numbers(store):
    """Reading begins at what is left; the next entry has the next number."""
    assert store.trim("s", 3) == 7
    assert store.trimmed("s") == 7
    assert numbers(store.events("s")) == [8, 9, 10]
    assert numbers(store.events("s", after=4)) == [8, 9, 10]
    assert numbers(store.events("s", after=9)) == [10]
    assert store.commit(POINT, lambda tx: (numbers(tx.events("s")), tx.append_event("s", "k", 0, 0.0))) == (
        [8, 9, 10],
        11,
    )


@pytest.mark.parametrize("keep", [10, 11, 1000])
def test_nothing_to_cut_off(store, keep):
    """A stream that is not longer stays as it is."""
    assert store.trim("s", keep) == 0
    assert store.trimmed("s") == 0
    assert store.trim("none", keep) == 0


@pytest.mark.parametrize("keep", [0, -1, 1.5, "1"])
def test_the_last_entry_stays(store, keep):
    """It carries the number."""
    with pytest.raises(MisuseError):
        store.trim("s", keep)


def test_a_follower_from_further_back_is_told_once(store):
    """It says from where to where, and goes on with what is left; one that is further on notices nothing."""
    with Follower(store, "s", after=2) as behind, Follower(store, "s", after=8) as ahead:
        store.trim("s", 3)
        with pytest.raises(CursorTrimmedError) as told:
            behind.take(0)
        assert (told.value.after, told.value.first) == (2, 8)
        assert numbers(behind.take(0)) == [8, 9, 10]
        assert numbers(ahead.take(0)) == [9, 10]


def test_a_missing_entry_is_still_damage(store, path):
    """What was not cut off by us is not taken for it."""
    from contextlib import closing
    from sqlite3 import connect

    from troth.runtime.store import DamagedStoreError

    store.trim("s", 5)
    with closing(connect(path)) as raw:
        raw.execute("DELETE FROM events WHERE stream = 's' AND seq = 8")
        raw.commit()
    with pytest.raises(DamagedStoreError):
        store.events("s")
