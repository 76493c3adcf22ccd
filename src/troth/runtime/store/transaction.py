"""Knows how each thing is written: the statements of one open transaction.

Nothing here begins or commits; `writer` does. Every method is quick and waits for nobody. `topics` collects who has to
be told once the transaction is kept.
"""

import sqlite3
from collections.abc import Sequence
from typing import Any

from troth.runtime.store import schema
from troth.runtime.store.errors import LeaseLostError
from troth.runtime.store.identity import Owner, is_alive
from troth.runtime.store.payload import keep, read
from troth.runtime.store.records import BegunStep, Place, RunState, StepState

__all__ = ["SqliteTransaction", "run_topic", "stream_topic"]


# A member's text, without the property that an enum's `value` is: it is read for every step that is written.
_BEGUN, _RESTING, _RUNNING = StepState.BEGUN._value_, StepState.RESTING._value_, RunState.RUNNING._value_


def run_topic(run_id: str) -> str:
    """What is published when something happens to a run that its waiters should look at."""
    return f"run:{run_id}"


def stream_topic(stream: str) -> str:
    """What is published when a stream has grown."""
    return f"stream:{stream}"


class SqliteTransaction:
    """The writes of one transaction."""

    __slots__ = ("_connection", "_execute", "execute", "topics")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        # One cursor for all, also for the writer's BEGIN and COMMIT: each answer is read before the next question, and
        # a new cursor for each would cost as much as a short statement.
        self.execute = self._execute = connection.cursor().execute
        self.topics: set[str] = set()

    def take_topics(self) -> set[str]:
        """The topics so far, to be told; from now on there are none."""
        topics, self.topics = self.topics, set()
        return topics

    # Runs

    def add_run(
        self,
        run_id: str,
        decision: str,
        args: str,
        now: float,
        *,
        label: str | None = None,
        code: str | None = None,
        parent: str | None = None,
        forked_from: str | None = None,
        state: RunState = RunState.RUNNING,
    ) -> bool:
        """Write down a run before it starts. Answers whether it is new; an existing one is left as it is."""
        done = self._execute(
            "INSERT INTO runs (id, decision, label, state, args, code, parent, forked_from, created_at, updated_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            (run_id, decision, label, state._value_, args, code, parent, forked_from, now, now),
        )
        return done.rowcount == 1

    def set_run_state(
        self, run_id: str, state: RunState, now: float, *, waiting_for: str | None = None, wake_at: float | None = None
    ) -> None:
        """Say that the run works or waits, and for what."""
        self._execute(
            "UPDATE runs SET state = ?, waiting_for = ?, wake_at = ?, updated_at = ? WHERE id = ?",
            (state._value_, waiting_for, wake_at, now, run_id),
        )

    def finish_run(
        self, run_id: str, state: RunState, now: float, *, result: str | None = None, error: str | None = None
    ) -> None:
        """Close the run: completed with `result`, failed or cancelled with `error`."""
        self._execute(
            "UPDATE runs SET state = ?, result = ?, error = ?, waiting_for = NULL, wake_at = NULL, updated_at = ?, "
            "finished_at = ? WHERE id = ?",
            (state._value_, result, error, now, now, run_id),
        )
        self.topics.add(run_topic(run_id))

    def reopen_run(self, run_id: str, now: float, *, ended_at: float | None) -> bool:
        """Make a run that failed or was cancelled one that can go on. False if that end is not its end any more.

        `ended_at` is when the end was that somebody looked at to decide what to take back. If the run was taken up and
        ended again since, that decision is out of date.
        """
        done = self._execute(
            "UPDATE runs SET state = ?, result = NULL, error = NULL, cancel_requested = 0, finished_at = NULL, "
            "updated_at = ? WHERE id = ? AND state IN ('failed', 'cancelled') AND finished_at = ?",
            (_RUNNING, now, run_id, ended_at),
        )
        self.topics.add(run_topic(run_id))
        return done.rowcount == 1

    def request_cancel(self, run_id: str, now: float) -> bool:
        """Write down that the run is to be cancelled. Answers whether there was anything left to cancel."""
        done = self._execute(
            "UPDATE runs SET cancel_requested = 1, updated_at = ? WHERE id = ? AND state IN ('running', 'waiting')",
            (now, run_id),
        )
        self.topics.add(run_topic(run_id))
        return done.rowcount == 1

    def state_of(self, run_id: str) -> RunState | None:
        """The run's written state, as this transaction sees it."""
        row = self._execute("SELECT state FROM runs WHERE id = ?", (run_id,)).fetchone()
        return None if row is None else RunState(row[0])

    def asked_of(self, run_id: str) -> tuple[str, str, RunState] | None:
        """Decision, arguments and written state of a run."""
        row = self._execute("SELECT decision, args, state FROM runs WHERE id = ?", (run_id,)).fetchone()
        return None if row is None else (row[0], row[1], RunState(row[2]))

    def ending_of(self, run_id: str) -> tuple[RunState, str | None, str | None] | None:
        """State, result and error of a run that is over; nothing while it is not."""
        row = self._execute("SELECT state, result, error FROM runs WHERE id = ?", (run_id,)).fetchone()
        if row is None or not RunState(row[0]).is_over:
            return None
        return RunState(row[0]), row[1], row[2]

    # Steps

    def begin_step(
        self,
        place: Place,
        *,
        kind: str,
        name: str,
        key: str,
        args: str,
        now: float,
        state: StepState = StepState.BEGUN,
        wake_at: float | None = None,
        color: str | None = None,
        code: str | None = None,
    ) -> None:
        """Write down a step before its effect."""
        self._execute(
            "INSERT INTO steps (run_id, branch, seq, kind, name, state, key, attempt, args, code, color, started_at, "
            "wake_at) VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?)",
            (*place, kind, name, state._value_, key, args, code, color, now, wake_at),
        )

    def begin_held_step(self, place: Place, resource: str, token: str, begun: BegunStep) -> bool:
        """`hold_run` and `begin_step` in one statement: what nearly every commit of a run consists of.

        Answers whether somebody asked for the run's cancellation; the step is written down all the same.
        """
        name, key, args, color, code, now = begun
        done = self._execute(
            "INSERT INTO steps (run_id, branch, seq, kind, name, state, key, attempt, args, code, color, started_at) "
            "SELECT ?, ?, ?, 'step', ?, 'begun', ?, 1, ?, ?, ?, ? FROM leases, runs "
            "WHERE leases.resource = ? AND leases.token = ? AND runs.id = ? AND runs.cancel_requested = 0",
            (*place, name, key, args, code, color, now, resource, token, place[0]),
        )
        if done.rowcount == 1:
            return False
        is_requested = self.hold_run(place.run_id, resource, token)
        self.begin_step(place, kind="step", name=name, key=key, args=args, now=now, color=color, code=code)
        return is_requested

    def settle_step(
        self,
        place: Place,
        state: StepState,
        now: float,
        *,
        result: str | None = None,
        error: str | None = None,
    ) -> None:
        """Write down a step's answer."""
        self._execute(
            "UPDATE steps SET state = ?, result = ?, error = ?, finished_at = ?, wake_at = NULL "
            "WHERE run_id = ? AND branch = ? AND seq = ?",
            (state._value_, result, error, now, *place),
        )

    def begin_attempt(self, place: Place, attempt: int, now: float) -> None:
        """Write down, before its effect, that a step is tried once more."""
        self._execute(
            "UPDATE steps SET state = ?, attempt = ?, started_at = ?, wake_at = NULL "
            "WHERE run_id = ? AND branch = ? AND seq = ?",
            (_BEGUN, attempt, now, *place),
        )

    def rest_step(self, place: Place, next_at: float) -> None:
        """Write down when a step is tried again."""
        self._execute(
            "UPDATE steps SET state = ?, wake_at = ? WHERE run_id = ? AND branch = ? AND seq = ?",
            (_RESTING, next_at, *place),
        )

    def add_attempt(
        self,
        place: Place,
        *,
        number: int,
        outcome: str,
        error: str | None,
        started_at: float | None,
        now: float,
        next_at: float | None,
    ) -> None:
        """Write down an attempt that did not succeed, with its own error."""
        self._execute(
            "INSERT INTO attempts (run_id, branch, seq, number, outcome, error, started_at, finished_at, next_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*place, number, outcome, error, started_at, now, next_at),
        )

    def forget_step(self, place: Place, *, gives_back: bool = True) -> None:
        """Take a step's answer back, so that the decision asks anew. Its attempts stay on record.

        A signal that it had received can be received again, unless it was an answer that is not to be heard twice.
        """
        self._execute("DELETE FROM steps WHERE run_id = ? AND branch = ? AND seq = ?", place)
        if gives_back:
            given_back = (place.run_id, str(place))
            self._execute("UPDATE signals SET taken_by = NULL WHERE run_id = ? AND taken_by = ?", given_back)

    def copy_steps(self, source: str, target: str, before: int) -> int:
        """Give `target` the settled steps of `source` that come before trunk step `before`, with their branches."""
        columns = "kind, name, state, key, attempt, args, code, color, result, error, started_at, finished_at, wake_at"
        copied: int = self._execute(
            f"INSERT INTO steps (run_id, branch, seq, {columns}) SELECT ?, branch, seq, {columns} FROM steps "  # noqa: S608
            "WHERE run_id = ? AND ((branch = '' AND seq < ?) OR (branch != '' AND CAST(branch AS INTEGER) < ?))",
            (target, source, before, before),
        ).rowcount
        self._execute(
            "INSERT INTO attempts SELECT ?, branch, seq, number, outcome, error, started_at, finished_at, next_at "
            "FROM attempts WHERE run_id = ? AND ((branch = '' AND seq < ?) OR "
            "(branch != '' AND CAST(branch AS INTEGER) < ?))",
            (target, source, before, before),
        )
        return copied

    # Signals

    def send_signal(self, run_id: str, name: str, payload: str, now: float, *, key: str | None = None) -> bool:
        """Write down a message to a run. Answers whether it is new; `key` makes a second sending harmless."""
        done = self._execute(
            "INSERT INTO signals (run_id, name, payload, key, sent_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (run_id, name, payload, key, now),
        )
        self.topics.add(run_topic(run_id))
        return done.rowcount == 1

    def take_signal(self, run_id: str, name: str, taken_by: str) -> str | None:
        """The payload of the oldest message of that name that nobody has taken, now taken by the step `taken_by`."""
        row = self._execute(
            "SELECT id, payload FROM signals WHERE run_id = ? AND name = ? AND taken_by IS NULL ORDER BY id LIMIT 1",
            (run_id, name),
        ).fetchone()
        if row is None:
            return None
        self._execute("UPDATE signals SET taken_by = ? WHERE id = ?", (taken_by, row[0]))
        payload: str = row[1]
        return payload

    # Events

    def append_event(self, stream: str, kind: str, payload: object, now: float) -> int:
        """Append to a stream; the answer is the entry's number in it, counted from 1 without gaps."""
        text, _ = keep(payload, f"event {kind!r}")
        (last,) = self._execute("SELECT max(seq) FROM events WHERE stream = ?", (stream,)).fetchone()
        seq = (last or 0) + 1
        self._execute(
            "INSERT INTO events (stream, seq, kind, payload, at) VALUES (?, ?, ?, ?, ?)", (stream, seq, kind, text, now)
        )
        self.topics.add(stream_topic(stream))
        return seq

    # Owners and leases

    def enroll(self, owner: Owner) -> None:
        """Write down who takes leases, and that it lives."""
        self._execute(
            "INSERT INTO owners (id, machine, pid, pid_started, beat_at) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET beat_at = excluded.beat_at",
            (owner.id, owner.machine, owner.pid, owner.pid_started, owner.beat_at),
        )

    def beat(self, owner_id: str, now: float) -> None:
        """Say that the owner still lives."""
        self._execute("UPDATE owners SET beat_at = ? WHERE id = ?", (now, owner_id))

    def retire(self, owner_id: str) -> None:
        """Give up everything the owner holds, and the owner."""
        for (resource,) in self._execute("SELECT resource FROM leases WHERE owner = ?", (owner_id,)).fetchall():
            self.topics.add(resource)
        self._execute("DELETE FROM leases WHERE owner = ?", (owner_id,))
        self._execute("DELETE FROM owners WHERE id = ?", (owner_id,))

    def claim(self, resource: str, owner_id: str, token: str, now: float) -> Owner | None:
        """Take the lease if it is free or its owner is dead. Answers the living owner if there is one, else nothing."""
        holder = self.holder_of(resource)
        if holder is not None and is_alive(holder, now):
            return holder
        self._execute(
            "INSERT INTO leases (resource, owner, token, taken_at) VALUES (?, ?, ?, ?) ON CONFLICT (resource) "
            "DO UPDATE SET owner = excluded.owner, token = excluded.token, taken_at = excluded.taken_at",
            (resource, owner_id, token, now),
        )
        self.topics.add(resource)
        return None

    def holder_of(self, resource: str) -> Owner | None:
        """Whoever has the lease, dead or alive."""
        row = self._execute(
            "SELECT o.id, o.machine, o.pid, o.pid_started, o.beat_at FROM leases l JOIN owners o ON o.id = l.owner "
            "WHERE l.resource = ?",
            (resource,),
        ).fetchone()
        return None if row is None else Owner(*row)

    def hold(self, resource: str, token: str) -> None:
        """Make sure that the lease is still ours; otherwise nothing of this unit is written."""
        row = self._execute("SELECT token FROM leases WHERE resource = ?", (resource,)).fetchone()
        if row is None or row[0] != token:
            raise _lost(resource)

    def hold_run(self, run_id: str, resource: str, token: str) -> bool:
        """Make sure that the run is still ours, and answer whether somebody asked for its cancellation."""
        row = self._execute(
            "SELECT l.token, r.cancel_requested FROM leases l JOIN runs r ON r.id = ? WHERE l.resource = ?",
            (run_id, resource),
        ).fetchone()
        if row is None or row[0] != token:
            raise _lost(resource)
        return bool(row[1])

    def release(self, resource: str, token: str) -> None:
        """Give the lease back, if it is still ours."""
        self._execute("DELETE FROM leases WHERE resource = ? AND token = ?", (resource, token))
        self.topics.add(resource)

    # The file itself

    def migrate(self, migrations: Sequence[str] = schema.MIGRATIONS) -> None:
        """Bring the tables to today's version."""
        schema.migrate(self._connection, migrations)

    def set_meta(self, key: str, value: object) -> None:
        """Remember one value for the whole file."""
        self._execute(
            "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (key, keep(value, f"meta {key!r}")[0]),
        )

    def get_meta(self, key: str) -> Any:
        """One value remembered for the whole file, or nothing."""
        row = self._execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else read(row[0])


def _lost(resource: str) -> LeaseLostError:
    return LeaseLostError(
        f"{resource!r} is owned by somebody else now, so nothing was written.\n"
        "This happens to a process that was stopped, or silent, for so long that another one took over and went on "
        "from the last recorded step. Attach to it with `engine.wait`."
    )
