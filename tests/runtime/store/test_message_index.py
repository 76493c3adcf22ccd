"""The index of messages in a file: it answers the same as looking through all of them, and forgets what is deleted."""

import itertools
import random
import sqlite3
import time
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troth.runtime.store import SqliteStore, commit_point
from troth.runtime.store.rows.search import search
from troth.runtime.store.sqlite import message_index
from troth.runtime.store.sqlite.message_index import INDEX, INDEXED, MessageIndex, index_messages

MOMENTS = itertools.count(1.0)
POINT = commit_point("test.message_index", "whatever a test writes")

needs_full_text = pytest.mark.skipif(not message_index.can_index(), reason="this SQLite has no full text by trigrams")


def say(store, texts, talk="talk"):
    def write(tx):
        for text in texts:
            tx.append_event(f"conversation/{talk}", "message", {"role": "user", "text": text}, next(MOMENTS))

    store.commit(POINT, write)


def index_all(store):
    """What the store's own thread does after a search."""
    while index_messages(store._ask, lambda work: store.commit(POINT, work)):
        pass


def texts(store, text, index, limit=1000):
    hits, cursor = [], None
    while True:
        page = store._ask(lambda execute: search(execute, text, {"message"}, cursor=cursor, limit=limit, index=index))
        hits += [(hit.id, hit.text) for hit in page]
        cursor = page.next
        if cursor is None:
            return hits


@needs_full_text
def test_it_is_made_after_a_search_and_kept_up(path):
    """By the store's own thread; whoever only writes pays nothing and has no index."""
    with SqliteStore(path) as store:
        say(store, [f"parcel n{number} weighs {number * 7} kg" for number in range(3000)])
        assert "message_index" not in tables(path)
        assert [hit.id for hit in store.lists.search("parcel n2999", kinds=["message"])] == ["talk"]
        deadline = time.monotonic() + 60
        while store._ask(MessageIndex.up_to) < 3000:
            assert time.monotonic() < deadline, "the index was not made"
            time.sleep(0.02)
        say(store, ["one more parcel"])
        assert texts(store, "more parcel", MessageIndex()) == [("talk", "one more parcel")]
        assert texts(store, "n1714 11998 parcel", MessageIndex()) == [("talk", "parcel n1714 weighs 11998 kg")]


@needs_full_text
def test_a_store_is_closed_while_it_is_made(path, caplog):
    """Nothing is complained of, and the next one continues from there."""
    with SqliteStore(path) as store:
        say(store, [f"parcel n{number}" for number in range(6000)])
    for _ in range(8):
        with SqliteStore(path) as store:
            assert len(store.lists.search("parcel n5999", kinds=["message"]).items) == 1
            time.sleep(0.03)
    assert caplog.records == []
    with SqliteStore(path) as store:
        index_all(store)
        assert texts(store, "n17 parcel", MessageIndex())[-1] == ("talk", "parcel n17")
        assert len(texts(store, "parcel", MessageIndex())) == 6000


def tables(path):
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


WORDS = [
    "parcel",
    "Parcel",
    "weiß",
    "WEISS",
    "Jürgen",
    "注文",
    "注文番号",
    "order-17",
    'say "no"',
    "100%",
    "a_b",
    "\\x",
    "so",
]


@needs_full_text
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32), query=st.lists(st.sampled_from([*WORDS, "arce", "rd", "文番", "%", "_b"]), min_size=1)
)
def test_it_finds_what_looking_through_finds(tmp_path_factory, seed, query):
    """Whatever stands in the index already, whatever is asked for, page by page."""
    chance = random.Random(seed)
    with SqliteStore(tmp_path_factory.mktemp("index") / "a.db") as store:
        for talk in ("one", "two"):
            say(store, [" ".join(chance.choices(WORDS, k=4)) for _ in range(15)], talk)
        index_all(store)
        say(store, [" ".join(chance.choices(WORDS, k=4)) for _ in range(chance.randrange(4))])
        text = " ".join(query)
        plain = texts(store, text, None)
        limit = chance.randrange(1, 8)
        assert texts(store, text, MessageIndex(), limit) == plain
        assert texts(store, text, None, limit) == plain


@needs_full_text
def test_what_is_deleted_is_forgotten(path):
    """Not only not found: it does not stand in the index any more."""
    with SqliteStore(path) as store:
        say(store, ["the secret of Ada", "and another"], "gone")
        say(store, ["nothing of note"], "stays")
        index_all(store)
        assert store.trim("conversation/gone", 1) == 1
        assert texts(store, "secret", MessageIndex()) == []
        assert texts(store, "another", MessageIndex()) == [("gone", "and another")]
        rows = store._ask(lambda execute: execute(f"SELECT rowid FROM {INDEX} WHERE {INDEX} MATCH 'sec'").fetchall())
        assert rows == []


@needs_full_text
def test_where_it_cannot_be_read_all_is_looked_through(path, monkeypatch):
    """A file goes from one Python to another: what was deleted where there is no full text is not found afterwards."""
    with SqliteStore(path) as store:
        say(store, ["the secret of Ada", "and another"])
        index_all(store)
        with monkeypatch.context() as without:
            without.setattr(message_index, "can_index", lambda: False)
            assert texts(store, "secret", MessageIndex()) == [("talk", "the secret of Ada")]
            assert store.trim("conversation/talk", 1) == 1
        assert store._ask(MessageIndex.up_to) == 0
        index_all(store)
        assert texts(store, "ada", MessageIndex()) == []
        assert texts(store, "another", MessageIndex()) == [("talk", "and another")]


@needs_full_text
def test_two_at_once_write_each_message_once(path):
    """Two processes may make the index at the same time: the slower one adds nothing."""
    with SqliteStore(path) as store, SqliteStore(path) as second:
        say(store, [f"parcel {number}" for number in range(10)])

        def late(work):
            index_all(second)
            return store.commit(POINT, work)

        assert index_messages(store._ask, late) is False
        assert len(texts(store, "parcel", MessageIndex())) == 10
        value = store._ask(lambda execute: execute("SELECT value FROM meta WHERE key = ?", (INDEXED,)).fetchone())
        assert value == ("10",)


@needs_full_text
@pytest.mark.parametrize(
    "text", ["\ud800 half a letter", "a\0b zero", "x" * 300_000 + " end"], ids=["half", "zero", "long"]
)
def test_strange_texts_do_not_stop_it(path, text):
    """The message after them is found, too."""
    with SqliteStore(path) as store:
        say(store, [text, "the parcel"])
        index_all(store)
        assert texts(store, "parcel", MessageIndex()) == [("talk", "the parcel")]
        assert store.trim("conversation/talk", 1) == 1


def test_an_older_file_is_searched_and_indexed(path):
    """Nothing has to be done for it."""
    from troth.runtime.store.sqlite import schema

    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        schema.migrate(connection, schema.MIGRATIONS[:8])
        connection.execute(
            "INSERT INTO events (stream, seq, kind, payload, at) VALUES "
            '(\'conversation/old\', 1, \'message\', \'{"role":"user","text":"an old parcel"}\', 1.0)'
        )
    with SqliteStore(path) as store:
        assert texts(store, "parcel", MessageIndex()) == [("old", "an old parcel")]
        if message_index.can_index():
            index_all(store)
        assert texts(store, "parcel", MessageIndex()) == [("old", "an old parcel")]
