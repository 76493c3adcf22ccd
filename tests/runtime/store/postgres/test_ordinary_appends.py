"""What a talk writes is one statement: under the lease, behind the entry that was thought to be the last, or not at all."""

import contextlib

import pytest
from tests.runtime.store.postgres.proxy import Proxy

from troth.runtime.store import LeaseLostError, commit_point, open_store
from troth.runtime.store.identity import new_owner
from troth.runtime.store.postgres import statements
from troth.runtime.store.postgres.address import parse
from troth.runtime.store.postgres.commits.ordinary_appends import LastEntries, ordinary_append
from troth.testing import failpoints

POINT = commit_point("test.append", "whatever a test appends", is_append=True)
PLAIN = commit_point("test.append.plainly", "the same, the long way")


def say(text, token="t", more=()):
    """The work of a commit: under the lease `r`, `text` and `more`. It answers their numbers."""

    def work(tx):
        tx.hold("r", token)
        return [tx.append_event("s", "said", word, 1.0) for word in (text, *more)]

    return work


def said(store):
    return [(event.seq, event.payload) for event in store.events("s")]


@pytest.fixture
def address(postgres_server):
    return postgres_server.address()


def leased(store):
    """A lease in the store, and a first entry of the stream."""
    owner = new_owner(store.clock())
    store.commit(PLAIN, lambda tx: (tx.enroll(owner), tx.claim("r", owner.id, "t", 1.0)))
    store.commit(POINT, say("first"))
    return owner


def sent(store, monkeypatch):
    """Every statement that this store's connection for commits carries out from now on."""
    statements = []
    link = store._writer._link
    for sender in (link, link._prepared):
        carry_out = sender.execute
        monkeypatch.setattr(
            sender,
            "execute",
            lambda statement, values=(), carry_out=carry_out: (
                statements.append(statement) or carry_out(statement, values)
            ),
        )
    begin = link.begin
    monkeypatch.setattr(link, "begin", lambda: statements.append("BEGIN") or begin())
    return statements


def test_one_round_trip(address, monkeypatch):
    """For any number of entries; whoever asked is told their numbers."""
    with open_store(address) as store:
        leased(store)
        statements = sent(store, monkeypatch)
        assert store.commit(POINT, say("second", more=("third", "fourth"))) == [2, 3, 4]
        assert len(statements) == 1
        assert said(store) == [(1, "first"), (2, "second"), (3, "third"), (4, "fourth")]
        ids = [event.id for event in store.events("s")]
        assert ids == sorted(ids)


def test_somebody_else_has_appended(address, monkeypatch):
    """The guess is wrong, so nothing is written by it; the commit is made the long way, without a gap."""
    with open_store(address) as store, open_store(address) as other:
        leased(store)
        other.commit(PLAIN, lambda tx: tx.append_event("s", "said", "theirs", 1.0))
        statements = sent(store, monkeypatch)
        assert store.commit(POINT, say("ours")) == [3]
        assert "BEGIN" in statements
        assert said(store) == [(1, "first"), (2, "theirs"), (3, "ours")]
        assert store.commit(POINT, say("next")) == [4]


def test_the_lease_is_lost(address):
    """Whoever has it now goes on; nothing of the other is written."""
    with open_store(address) as store, open_store(address) as other:
        owner = leased(store)
        assert other.commit(PLAIN, lambda tx: tx.renew("r", owner.id, "new", 2.0))
        with pytest.raises(LeaseLostError):
            store.commit(POINT, say("late"))
        assert other.events("s")  # so that it has seen the last entry
        assert other.commit(POINT, say("theirs", "new")) == [2]
        assert said(store) == [(1, "first"), (2, "theirs")]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("how", ["before", "after"])
def test_the_answer_to_entries_alone_is_lost(postgres_server, address, how, count):
    """The same where nobody else commits, and no failpoint is armed: such entries go without a queue."""
    schema = parse(address).schema
    works = []
    with contextlib.closing(Proxy(postgres_server)) as proxy:
        through = (
            f"postgresql://troth@127.0.0.1:{proxy.port}/postgres?sslmode=disable&gssencmode=disable&schema={schema}"
        )

        def cutting(tx):
            if not works:
                proxy.cut(how)
            works.append(type(tx).__name__)
            return say(words[0], more=words[1:])(tx)

        words = ["it", "too"][:count]
        with open_store(through) as store:
            leased(store)
            assert store.commit(POINT, cutting) == [2, 3][:count]
            assert works[0] == "_Recorder"
            assert [text for _, text in said(store)] == ["first", *words]


@pytest.mark.parametrize("how", ["before", "after"])
def test_the_answer_is_lost(postgres_server, address, how):
    """The database is asked what became of it, and the entry is there once."""
    schema = parse(address).schema
    with contextlib.closing(Proxy(postgres_server)) as proxy:
        through = (
            f"postgresql://troth@127.0.0.1:{proxy.port}/postgres?sslmode=disable&gssencmode=disable&schema={schema}"
        )
        with open_store(through) as store:
            leased(store)
            with failpoints.armed(POINT.written, lambda _: proxy.cut(how)):
                assert store.commit(POINT, say("it")) == [2]
            assert store.commit(POINT, say("after")) == [3]
            assert said(store) == [(1, "first"), (2, "it"), (3, "after")]


def test_a_statement_that_was_called_off_writes_nothing(address):
    """However late it arrives: the row of its connection is gone, and it says so."""
    with open_store(address) as store:
        leased(store)
        link = store._writer._link
        append = ordinary_append(say("late"), store._last_entries)
        with contextlib.closing(store._connect_link()) as asking:
            assert asking.call_off(link.id, "statement x") is False
        assert link.execute("SELECT count(*) FROM writers WHERE id = %s", (link.id,)).fetchone() == (0,)
        ((kind, payload, at),) = append.entries
        last, number = append.last, "statement x"
        many = (None, link.id, "r", "t", 1, "s", last, number, link.id, last, [kind], [payload], [at])
        assert link.execute(statements.APPEND_HELD, many).fetchone() is None
        one = ("r", "t", "s", last, number, kind, payload, at)
        assert link.execute(link._append_one, one).fetchone() is None
        assert said(store) == [(1, "first")]


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda tx: tx.append_event("s", "said", "x", 1.0), id="no lease"),
        pytest.param(lambda tx: tx.hold("r", "t"), id="no entry"),
        pytest.param(lambda tx: (say("x")(tx), tx.append_event("other", "said", "x", 1.0)), id="two streams"),
        pytest.param(lambda tx: (say("x")(tx), tx.release("r", "t")), id="the lease is given back"),
        pytest.param(lambda tx: (say("x")(tx), tx.last_event("s")), id="it reads"),
        pytest.param(say("x" * 2_000_000), id="too large"),
        pytest.param(lambda tx: (tx.hold("r", "t"), tx.append_event("unseen", "said", "x", 1.0)), id="never seen"),
        pytest.param(lambda tx: 1 / 0, id="an error of its own"),
    ],
)
def test_what_is_not_ordinary(work):
    """It is committed the long way."""
    last_entries = LastEntries()
    last_entries.note("s", 3)
    assert ordinary_append(work, last_entries) is None
    assert ordinary_append(say("x"), last_entries).answer == [4]


def test_what_a_list_shows_is_not_ordinary():
    """The beginning and the end of a run, and what a person says, change the row of a conversation."""
    last_entries = LastEntries()
    last_entries.note("conversation/c", 1)

    def entry(kind, payload):
        return lambda tx: (tx.hold("r", "t"), tx.append_event("conversation/c", kind, payload, 1.0))

    assert ordinary_append(entry("message", {"role": "agent", "text": "x"}), last_entries) is not None
    for kind, payload in [("message", {"role": "user"}), ("run.started", {}), ("run.ended", {}), ("opened", {})]:
        assert ordinary_append(entry(kind, payload), last_entries) is None
