"""What governance costs: a note, an act, a verification, a list of sessions, and the origin's scenarios beside ours.

    python -m bench.runtime.sessions [--quick] [--peers PYTHON]

"bare" is what one would write by hand: `with db:` and one row, the same note with `json.dumps`, into a table that can
be looked at by session (WAL, synchronous=NORMAL). Each measurement is repeated, turn by turn with the others, and its
best round is shown. `--peers` names an interpreter that has `agent-hypervisor`; without it the origin is left out.
"""

import argparse
import gc
import hashlib
import json
import os
import resource
import sqlite3
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.runtime import _sessions_peers as peers

from troth.runtime.engine import EmbeddedEngine, Step
from troth.runtime.sagas.saga import Saga
from troth.runtime.sessions import (
    Action,
    Hypervisor,
    Member,
    PolicyRequest,
    PolicyTable,
    Rule,
    Session,
    SessionConfig,
    SessionState,
)
from troth.runtime.store import commit_point
from troth.runtime.store.rows.sessions import SessionRow

POINT = commit_point("bench.sessions", "many rows at once")
KEY = "a key that is only used in benchmarks"
NOTE = {"service": "checkout", "version": 41}
RATES = dict.fromkeys(range(4), (1000000000.0, 1000000000.0))  # asked for and counted, and never used up


class Bare:
    """A table of notes as one would make it by hand."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = NORMAL")
        self.db.execute("CREATE TABLE notes (seq INTEGER PRIMARY KEY, at REAL, session, agent, kind, data)")
        self.db.execute("CREATE INDEX notes_by_session ON notes (session, seq)")

    def record(self, session: str, agent: str, kind: str, data: Mapping[str, object]) -> None:
        """Write one note down."""
        with self.db:
            self.db.execute(
                "INSERT INTO notes (at, session, agent, kind, data) VALUES (?, ?, ?, ?, ?)",
                (time.time(), session, agent, kind, json.dumps(data)),
            )


def best_of(rounds: int, count: int, works: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """CPU microseconds for each of `count`, of the best round of each work. Turn by turn."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            gc.collect()
            begun = time.process_time()
            for _ in range(count):
                work()
            best[name] = min(best[name], (time.process_time() - begun) / count * 1e6)
    return best


def show(what: str, value: float, unit: str, ratio: float | None = None, bar: float | None = None) -> None:
    times = "" if ratio is None else f"{ratio:7.2f} x"
    limit = "" if bar is None else f"   the bar is {bar:g}"
    print(f"  {what:<58}{value:>10,.1f} {unit:<4}{times}{limit}")


def member_of(hypervisor: Hypervisor, **config: object) -> Member:
    session = hypervisor.create("ops", SessionConfig(rates=RATES, **config))
    member = hypervisor.join(session, "agent-1", score=0.8)
    hypervisor.activate(session)
    return member


def add(x: int) -> int:
    return x + 1


def one_step(x: int):
    return (yield Step("add", add, kwargs={"x": x}))


def notes_and_acts(folder: Path, rounds: int) -> None:
    print("\nCPU of one call")
    bare = Bare(folder / "bare.db")
    actions = [Action("add", add, undo=_nothing), Action("send", add, reversibility="partial")]
    with (
        Hypervisor(folder / "acts.db", actions=actions, audit_key=KEY) as hypervisor,
        EmbeddedEngine(folder / "runs.db", decisions=[one_step]) as engine,
    ):
        member = member_of(hypervisor)
        works = {
            "bare": lambda: bare.record(member.session, "agent-1", "note", NOTE),
            "record": lambda: member.record("note", NOTE),
            "run": lambda: engine.run(one_step, 1),
            "act": lambda: member.act("add", x=1),
            "act without undo": lambda: member.act("send", x=1),
        }
        cost = best_of(rounds, 1000, works)  # so many that each has its share of the log's folding into the file
        assert hypervisor.verify_audit().is_valid
    show("a bare one-row commit", cost["bare"], "µs")
    show("member.record, audited and anchored", cost["record"], "µs", cost["record"] / cost["bare"], 2.5)
    show("the function as a one-step run", cost["run"], "µs")
    show("member.act, with an undo", cost["act"], "µs", cost["act"] / cost["run"], 1.5)
    show("member.act, without", cost["act without undo"], "µs", cost["act without undo"] / cost["run"], 1.5)


def policies(folder: Path, rounds: int) -> None:
    """What a table of twenty rules adds to an act, of which the last one fits; and what to ask it costs by itself."""
    print("\na policy of ours: twenty rules, the last one fits")
    actions = [Action("send", add, reversibility="partial")]
    rules = [Rule("deny", action=f"deploy-{number}", arguments={"x": number}) for number in range(19)]
    table = PolicyTable([*rules, Rule("allow", action="se*", agent="agent-*", rings=[1, 2], arguments={"x": [1, 2]})])
    with Hypervisor(folder / "policies.db", actions=actions, audit_key=KEY) as hypervisor:
        free, governed = member_of(hypervisor), member_of(hypervisor, policy=table)
        request = PolicyRequest(governed.session, "agent-1", "send", "act", 2, {"x": 1})
        works = {
            "asking": lambda: table(request),
            "act": lambda: free.act("send", x=1),
            "act with a policy": lambda: governed.act("send", x=1),
        }
        cost = best_of(rounds, 1000, works)
    more = cost["act with a policy"] - cost["act"]
    show("to ask it", cost["asking"], "µs")
    show("what it adds to an act, audit entry included", more, "µs", more / 50, None)
    print("  the bar is 50 µs")


def fill_audit(hypervisor: Hypervisor, entries: int) -> None:
    """A trail of that length, in few commits."""
    member = member_of(hypervisor)
    trail = hypervisor.governance.trail

    def add_many(tx, now):
        for _ in range(min(10_000, entries - done)):
            trail.add(tx, member.session, "agent-1", "note", {"what": "note", "data": NOTE}, now)

    for done in range(0, entries, 10_000):  # noqa: B007  `add_many` reads it
        hypervisor.governance.commit(POINT, add_many)


def read_and_hash(path: Path) -> int:
    """What any verification has to do at least: read every row and hash its text."""
    count = 0
    db = sqlite3.connect(path)
    for row in db.execute("SELECT seq, at, session, agent, kind, data, key, digest, mac FROM audit ORDER BY seq"):
        text = f"{row[0]}|{row[1]!r}|{row[6]}|{row[2]}{row[3]}{row[4]}{row[5]}"
        hashlib.sha256(row[7] + text.encode()).digest()
        count += 1
    db.close()
    return count


def verification(folder: Path, sizes: Sequence[int], rounds: int) -> None:
    print("\nverifying the audit trail")
    for entries in sizes:
        path = folder / f"audit-{entries}.db"
        with Hypervisor(path, audit_key=KEY) as hypervisor:
            fill_audit(hypervisor, entries)
            works = {"read": lambda path=path: read_and_hash(path), "verify": hypervisor.verify_audit}
            cost = best_of(rounds, 1, works)
            before = peak()
            assert hypervisor.verify_audit().is_valid
            more = peak() - before
        ratio = cost["verify"] / cost["read"]
        show(f"{entries:,} entries, for each", cost["verify"] / entries, "µs", ratio, 3)
        show(f"{entries:,} entries, memory above the peak before", more, "MB")


def peak() -> float:
    """The most memory this process ever had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def listing(folder: Path, archived: int, rounds: int) -> None:
    print("\nlisting sessions: 50 open ones")
    cost = {}
    for many in (0, archived):
        with Hypervisor(folder / f"list-{many}.db", audit_key=KEY) as hypervisor:
            config = SessionConfig().to_json()

            def add_many(tx, now, many=many, config=config):
                for number in range(many):
                    state = SessionState.ARCHIVED.value
                    row = SessionRow(f"old-{number}", "ops", state, config, now - number, now, now, None)
                    tx.sessions.add_session(row)

            hypervisor.governance.commit(POINT, add_many)
            for _ in range(50):
                hypervisor.join(hypervisor.create("ops"), "agent-1", score=0.8)
            assert len(hypervisor.sessions()) == 50
            cost[many] = best_of(rounds, 20, {"list": hypervisor.sessions})["list"]
    show("nothing archived", cost[0], "µs")
    show(f"{archived:,} archived", cost[archived], "µs", cost[archived] / cost[0])


def scenarios(folder: Path, rounds: int, python: str | None) -> None:
    """The origin's own: a lifecycle (create, join, activate, terminate), and a saga of three steps."""
    print("\nthe origin's scenarios; ours are durable, audited and anchored, its are kept in memory")
    saga = Saga("three")
    for name in ("one", "two", "three"):
        saga.step(name, do=_nothing, undo=_nothing)
    with Hypervisor(folder / "scenarios.db", audit_key=KEY) as hypervisor:

        def lifecycle() -> Session:
            session = hypervisor.create("ops")
            hypervisor.join(session, "agent-1", score=0.8)
            hypervisor.activate(session)
            return hypervisor.terminate(session)

        member = member_of(hypervisor)
        lifecycle_cost = best_of(rounds, 1, {"lifecycle": lifecycle})["lifecycle"]
        saga_cost = best_of(rounds, 20, {"saga": lambda: member.run(saga)})["saga"]
    theirs = peers.measure(python)
    if isinstance(theirs, str):
        show("lifecycle", lifecycle_cost, "µs")
        show("a saga of three steps", saga_cost, "µs")
        print(f"  agent-hypervisor: {theirs}")
        return
    show(f"agent-hypervisor {theirs.version}, lifecycle", theirs.lifecycle, "µs")
    show("lifecycle", lifecycle_cost, "µs", lifecycle_cost / theirs.lifecycle)
    show("agent-hypervisor, a saga of three steps", theirs.saga, "µs")
    show("a saga of three steps", saga_cost, "µs", saga_cost / theirs.saga)


def _nothing() -> None:
    return None


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds and entries")
    parser.add_argument("--peers", metavar="PYTHON", help="an interpreter that has agent-hypervisor")
    options = parser.parse_args(arguments)
    quick = options.quick
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_STATE_HOME"] = name
        notes_and_acts(folder, 3 if quick else 8)
        policies(folder, 3 if quick else 8)
        verification(folder, (1_000, 10_000) if quick else (10_000, 100_000), 3)
        listing(folder, 10_000 if quick else 100_000, 5)
        scenarios(folder, 10, options.peers)


if __name__ == "__main__":
    main()
