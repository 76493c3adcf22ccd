"""Governed sessions and their audit trail."""

import itertools
import json
from functools import partial
from typing import Any

from troth.runtime.store import (
    Store,
    Transaction,
)
from troth.runtime.store.rows.sessions import AskRow, FileRow, MemberRow, SessionRow
from troth.testing.store_conformance.check import POINT, StoreGround, check, in_threads

__all__: list[str] = []


def _session(session_id: str) -> SessionRow:
    return SessionRow(session_id, "ops", "active", "{}", 1.0, 1e6, None, None)


def _member(session_id: str, agent: str, **more: Any) -> MemberRow:
    row = MemberRow(session_id, agent, "present", 2, 0.5, "[]", "[]", None, 1.0, None, None, None, None, 1.0, 0.0, 0.0)
    return row._replace(**more)


@check("sessions")
def members_come_and_act(ground: StoreGround) -> None:
    """What an act is judged on is read with it, and a rate is used up once by each of those who act at once."""

    def write(tx: Transaction) -> None:
        assert tx.sessions.add_session(_session("s")) is True
        assert tx.sessions.add_session(_session("s")) is False
        tx.sessions.put_member(_member("s", "a"))
        tx.sessions.put_member(_member("s", "a", score=0.75))
        tx.sessions.put_member(_member("s", "b", state="left"))

    def act(store: Store) -> bool:
        return store.commit(POINT, lambda tx: tx.sessions.use_token("s", "a", 2, 0.0, 5.0, 2.0))

    with ground.open() as store, ground.open() as second:
        store.commit(POINT, write)
        standing = store.read_sessions(lambda rows: rows.standing("s", "a"))
        assert standing is not None
        assert (standing.session_state, standing.score) == ("active", 0.75)
        assert store.read_sessions(lambda rows: (rows.present("s"), rows.count_present("s"))) == (["a"], 1)
        acts = in_threads([partial(act, each) for each in (store, second) for _ in range(4)])
        assert sorted(map(bool, acts)) == [False] * 3 + [True] * 5
        assert [
            row.id for row in second.read_sessions(lambda rows: rows.sessions(states=None, before=None, limit=9))
        ] == ["s"]
        text = FileRow("/a/b", "hello", "a", None, None, 1.0)
        store.commit(POINT, lambda tx: tx.sessions.put_file("s", text))
        store.commit(POINT, lambda tx: tx.sessions.put_file("s", text._replace(text="again")))
        assert second.read_sessions(lambda rows: rows.files("s", "/a/")) == [text._replace(text="again")]
        ask = AskRow("k", "s", "a", "w", "{}", "d", "p", "r", 1, 1.0, 2.0, "open", "[]")
        for row in (ask, ask._replace(answers='["yes"]')):
            store.commit(POINT, lambda tx, row=row: tx.sessions.put_ask(row))  # type: ignore[misc]
        assert second.read_sessions(lambda rows: rows.open_asks(None)) == [ask._replace(answers='["yes"]')]


@check("sessions")
def the_audit_trail_has_no_gaps_and_no_forks(ground: StoreGround) -> None:
    """Each entry follows the one before it, whichever store wrote that."""

    def add(store: Store, number: int) -> int:
        def work(tx: Transaction) -> int:
            while True:
                seq, digest = tx.sessions.audit_head() or (0, b"")
                row = (seq + 1, 1.0, "s", "a", "kind", json.dumps(number), "key", digest[-8:] + b"%d," % seq, b"mac")
                if tx.sessions.add_audit(row):
                    return seq + 1

        return store.commit(POINT, work)

    with ground.open() as store, ground.open() as second:
        works = [partial(add, each, number) for number in range(15) for each in (store, second)]
        assert sorted(in_threads(works)) == list(range(1, 31))  # type: ignore[type-var]
        rows = store.read_sessions(lambda rows: rows.audit(limit=100))
        assert [row.seq for row in rows] == list(range(1, 31))
        for before, after in itertools.pairwise(rows):
            assert after.digest == before.digest[-8:] + b"%d," % before.seq, "it follows another entry"
