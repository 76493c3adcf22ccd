"""The audit trail: six ways to tamper with it, done with plain sqlite3, and what happens without key or anchor."""

import hmac
import json
import sqlite3
import stat
import threading
from contextlib import closing

import pytest

from troth.errors import MisuseError, TrothError
from troth.runtime.engine import Append, Step, current_step
from troth.runtime.engine.commands import Govern
from troth.runtime.sessions import Action, Anchor, AnchorFailedError, AuditBrokenError, Hypervisor
from troth.runtime.sessions.audit.chain import FIRST, Signer, digest_of
from troth.runtime.sessions.audit.verify import verify_trail
from troth.runtime.sessions.commit_points import RECORD
from troth.runtime.sessions.governed_run import SessionGovernor
from troth.runtime.store import SqliteStore

KEY = "a key that is only used in tests"


def edit(connection):
    connection.execute("UPDATE audit SET data = replace(data, 'note 3', 'note X') WHERE seq = 6")


def delete(connection):
    connection.execute("DELETE FROM audit WHERE seq = 6")


def reorder(connection):
    connection.execute("UPDATE audit SET seq = -1 WHERE seq = 6")
    connection.execute("UPDATE audit SET seq = 6 WHERE seq = 7")
    connection.execute("UPDATE audit SET seq = 7 WHERE seq = -1")


def truncate(connection):
    connection.execute("DELETE FROM audit WHERE seq > 6")


def wipe(connection):
    connection.execute("DELETE FROM audit")


def rechain(connection):
    """Everything about the chain is public but the key."""
    edit(connection)
    before = FIRST
    for row in connection.execute("SELECT * FROM audit ORDER BY seq").fetchall():
        seq, at, session, agent, kind, data, key, *_ = row
        before = digest_of(before, seq, at, session, agent, kind, data, key)
        mac = Signer(b"another key, which is not the one").sign(before)
        connection.execute("UPDATE audit SET digest = ?, mac = ? WHERE seq = ?", (before, mac, seq))


@pytest.fixture
def written(path):
    with Hypervisor(path, audit_key=KEY) as hypervisor:
        session = hypervisor.create("ops")
        member = hypervisor.join(session, "a", score=0.8)
        hypervisor.activate(session)
        for number in range(1, 6):
            member.record(f"note {number}")
        assert hypervisor.verify_audit().is_valid
        yield hypervisor, session


@pytest.mark.parametrize("is_restarted", [False, True], ids=["at once", "after a restart"])
@pytest.mark.parametrize("tamper", [edit, delete, reorder, truncate, wipe, rechain])
def test_tampering_is_detected(path, written, tamper, is_restarted):
    """By whoever can write the store, but has neither key nor anchor; and a session does not end on it."""
    hypervisor, session = written
    if is_restarted:
        hypervisor.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        tamper(connection)
    if is_restarted:
        hypervisor = Hypervisor(path, audit_key=KEY)
    try:
        verdict = hypervisor.verify_audit()
        assert verdict.is_broken, verdict
        assert verdict.problem
        with pytest.raises(AuditBrokenError):
            hypervisor.terminate(session)
    finally:
        hypervisor.close()


def test_without_a_key_it_is_never_valid(path, written):
    """Consistent at most; an unknown key is named by its id."""
    hypervisor, _ = written
    anchor = Anchor.of_store(path)
    assert verify_trail(hypervisor.store, None, anchor).word == "consistent, head not anchored"
    key_id = hypervisor._trail.key.id
    hypervisor.close()
    with SqliteStore(path) as store, Hypervisor(store, audit_key="another key that is long enough") as other:
        verdict = other.verify_audit()
    assert (verdict.word, verdict.unknown_keys) == ("consistent, head not anchored", (key_id,))


def test_an_edit_is_seen_without_the_key(path, written):
    """Unless it was chained anew."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        edit(connection)
    assert verify_trail(written[0].store, None, None).is_broken


def test_a_store_ahead_of_its_anchor_is_valid(path, tmp_path, written):
    """A crash between commit and anchor leaves that."""
    hypervisor, _ = written
    file = next((tmp_path / "state/troth/anchors").iterdir())
    before = file.read_bytes()
    hypervisor.create("ops")
    file.write_bytes(before)
    assert hypervisor.verify_audit().is_valid


def test_the_key_file_is_the_users_own(path, state_home):
    """Made at first use with mode 0600; one that others can read is refused."""
    with Hypervisor(path) as hypervisor:
        hypervisor.create("ops")
    file = state_home / "troth/audit.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with Hypervisor(path) as hypervisor:
        assert hypervisor.verify_audit().is_valid
    file.chmod(0o644)
    with pytest.raises(MisuseError, match="chmod 600"):
        Hypervisor(path)
    assert file.read_bytes().strip() not in path.read_bytes()


def test_a_key_that_can_be_guessed_is_refused(path, monkeypatch):
    """From the environment too."""
    monkeypatch.setenv("TROTH_AUDIT_KEY", "short")
    with pytest.raises(MisuseError, match="guessed"):
        Hypervisor(path)


@pytest.mark.parametrize("color", ["sync", "async"])
def test_an_anchor_of_ones_own(path, color):
    """Of either color; it has the newest entry before the call returns."""
    put = []

    async def aput(number, mac):
        put.append((number, mac))

    anchor = Anchor(aput if color == "async" else lambda number, mac: put.append((number, mac)), lambda: put[-1])
    with Hypervisor(path, audit_key=KEY, anchor=anchor) as hypervisor:
        for number in range(1, 4):
            hypervisor.create("ops")
            assert put[-1][0] == number
        assert hypervisor.verify_audit().is_valid


@pytest.mark.parametrize("is_strict", [False, True], ids=["lenient", "strict"])
def test_an_anchor_that_fails_loses_nothing(path, is_strict):
    """It is an event and is caught up; with `strict` nothing goes on meanwhile."""
    works, put = threading.Event(), []

    def keep(number, mac):
        if not works.is_set():
            raise OSError("no network")
        put.append((number, mac))

    with Hypervisor(path, audit_key=KEY, anchor=Anchor(keep, lambda: put[-1] if put else None), strict=is_strict) as hv:
        hv.create("ops")
        assert "no network" in json.loads(next(row for row in hv.events() if row.kind == "anchor.failed").data)["error"]
        if is_strict:
            with pytest.raises(AnchorFailedError):
                hv.create("ops")
        else:
            hv.create("ops")
        works.set()
        hv.create("ops")
        assert hv.verify_audit().is_valid
        assert "anchor.works" in {row.kind for row in hv.events()}


def test_what_a_step_appends_is_an_entry(path):
    """By `current_step().append`, and by a decision's own `Append`; in the commit of the step, or not at all."""

    def announce(version):
        current_step().append("news", "deployed", {"version": version})

    def fail():
        current_step().append("news", "never", {})
        raise OSError("no network")

    def decision(session, agent):
        yield Govern(SessionGovernor(hypervisor.governance, session, agent, "run", "announcing"))
        yield Append("news", "said", {"by": "the decision"})
        return (yield Step("announce", announce, 2))

    actions = [Action("announce", announce, reversibility="partial"), Action("fail", fail, reversibility="partial")]
    with Hypervisor(path, audit_key=KEY, actions=actions) as hypervisor:
        session = hypervisor.create("ops")
        member = hypervisor.join(session, "a", score=0.8)
        hypervisor.activate(session)
        member.act("announce", version=1)
        with pytest.raises(TrothError):
            member.act("fail")
        hypervisor.engine.run(decision, session.id, "a")
        entries = [json.loads(row.data) for row in hypervisor.events() if row.kind == "event"]
        assert [(entry["kind"], entry["payload"]) for entry in entries] == [
            ("deployed", {"version": 1}),
            ("said", {"by": "the decision"}),
            ("deployed", {"version": 2}),
        ]
        assert [event.kind for event in hypervisor.store.events("news")] == ["deployed", "said", "deployed"]
        assert hypervisor.verify_audit().is_valid


def test_an_anchor_that_hangs_stops_no_heart(path):
    """It is caught up on a thread of its own: the store's goes on with heartbeats and news of other processes."""
    hangs, goes_on, fails = threading.Event(), threading.Event(), threading.Event()
    fails.set()

    def put(number, mac):
        if fails.is_set():
            raise OSError("no network")
        hangs.set()
        goes_on.wait(60)

    with Hypervisor(path, audit_key=KEY, anchor=Anchor(put)) as hypervisor:
        try:
            hypervisor.create("ops")
            fails.clear()
            assert hangs.wait(60)
            beats = threading.Semaphore(0)
            stop = hypervisor.store.chore(0.01, beats.release)
            assert all(beats.acquire(timeout=60) for _ in range(3))
            stop()
        finally:
            goes_on.set()


def test_eight_writers_and_a_valid_chain(path):
    """Numbers without gaps, whoever writes."""
    with Hypervisor(path, audit_key=KEY) as hypervisor:
        session = hypervisor.create("ops")
        members = [hypervisor.join(session, f"a{number}", score=0.8) for number in range(8)]
        hypervisor.activate(session)

        def write(member):
            for number in range(20):
                member.record(f"note {number}")

        threads = [threading.Thread(target=write, args=(member,)) for member in members]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        verdict = hypervisor.verify_audit()
        assert verdict.is_valid, verdict
        assert len([row for row in hypervisor.events() if row.kind == "note"]) == 160


@pytest.mark.parametrize("length", [16, 63, 64, 65, 200])
def test_a_signature_is_an_hmac(length):
    """Whoever has the key can check an entry with any tool."""
    secret = bytes(range(length))
    assert Signer(secret).sign(b"d" * 32) == hmac.digest(secret, b"d" * 32, "sha256")


def test_a_commit_that_is_taken_back_leaves_no_gap(hypervisor, session):
    """The newest entry is remembered; one that was not kept is forgotten."""
    trail = hypervisor.governance.trail

    def fail(tx, now):
        trail.add(tx, session.id, "a", "note", {}, now)
        raise ValueError("after the entry")

    for _ in range(3):
        with pytest.raises(ValueError, match="after the entry"):
            hypervisor.governance.commit(RECORD, fail)
        hypervisor.create("ops")
    assert hypervisor.verify_audit().is_valid
