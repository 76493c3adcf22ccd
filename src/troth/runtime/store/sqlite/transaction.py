"""How each thing is written: the statements of one open transaction.

Nothing here begins or commits; `writer` does. Every method is quick and waits for nobody. `topics` collects who has to
be told once the transaction is kept.
"""

import json
import math
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from troth.runtime.store.errors import LeaseLostError
from troth.runtime.store.identity import Owner, is_alive
from troth.runtime.store.json_codec import keep, read
from troth.runtime.store.list_records import changes_topic
from troth.runtime.store.promise_records import PromiseState
from troth.runtime.store.records import BegunStep, Event, Happened, OpenWait, Place, RunState, StepRecord, StepState
from troth.runtime.store.rows.conversations import CONVERSATIONS, ENDED, OPENED, ConversationRows
from troth.runtime.store.rows.history import fold
from troth.runtime.store.rows.promises import RUN, PromisedRun, PromiseRows
from troth.runtime.store.rows.runs import EVENT, HISTORY, events_of, owner_of, run_state_of, text_of
from troth.runtime.store.rows.server import ServerRows
from troth.runtime.store.rows.sessions import SessionRows
from troth.runtime.store.sqlite import schema
from troth.runtime.store.sqlite.message_index import forget_messages

__all__ = ["RunMemory", "SqliteTransaction", "history_topic", "run_topic", "stream_topic"]


_RUNNING = RunState.RUNNING._value_
_ENDED = Happened.RUN_ENDED._value_

_INTO = "INSERT INTO history (run_id, seq, sub, what, at, branch, step, name"
_SETTLE = f"{_INTO}, data) VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?)"
_RUN_BEGUN = "INSERT INTO history (run_id, seq, sub, what, at) VALUES (?, 1, 0, 'run begun', ?)"
_RUN_ENDED = "INSERT INTO history (run_id, seq, sub, what, at, data, kind, outcome) VALUES (?, ?, 0, ?, ?, ?, ?, ?)"
_TAKE = "INSERT INTO leases (resource, owner, token, taken_at) VALUES (?, ?, ?, ?) ON CONFLICT (resource) DO NOTHING"
_TAKE_OVER = "UPDATE leases SET owner = ?, token = ?, taken_at = ? WHERE resource = ?"
_MANY = 10_000  # runs whose last numbers are remembered
_COPIED = "what, at, branch, step, name, data, kind, key, args, color, code, attempt, outcome, began_at, wake_at, note"
_COPY = (
    "WITH picked AS (SELECT *, sum(sub = 0 AND seq > 0) OVER (ORDER BY seq, sub) AS number FROM history "  # noqa: S608
    "WHERE run_id = ? AND ((branch = '' AND step < ?) OR (branch != '' AND CAST(branch AS INTEGER) < ?))) "
    f"INSERT INTO history (run_id, seq, sub, {_COPIED}, done_by) SELECT ?, ? + number, "
    "row_number() OVER (PARTITION BY number ORDER BY seq, sub) - (number > 0), "
    f"{_COPIED}, coalesce(done_by, ?) FROM picked"
)
_BEGIN_HELD = (
    f"{_INTO}, kind, key, args, color, code) "  # noqa: S608
    "SELECT ?, ?, 0, 'begun', ?, ?, ?, ?, 'step', ?, ?, ?, ? FROM leases, runs "
    "WHERE leases.resource = ? AND leases.token = ? AND runs.id = ? AND runs.cancel_requested = 0"
)


def run_topic(run_id: str) -> str:
    """What is published when something happens to a run that its waiters should look at."""
    return f"run:{run_id}"


def history_topic(run_id: str) -> str:
    """What is published when the history of a run has grown."""
    return f"history:{run_id}"


def stream_topic(stream: str) -> str:
    """What is published when a stream has grown."""
    return f"stream:{stream}"


class RunMemory(dict[str, tuple[int, int]]):
    """What is remembered of runs that were begun here: the last number in their history, and what they have promised.

    Whoever rolls back forgets it all. What is not remembered is looked up.
    """

    def __init__(self) -> None:
        super().__init__()
        self.promised: dict[str, PromisedRun | None] = {}

    def clear(self) -> None:
        """Forget everything."""
        super().clear()
        self.promised.clear()


class SqliteTransaction:
    """The writes of one transaction, and the reads that they rely on."""

    __slots__ = (
        "_connection",
        "_conversations",
        "_execute",
        "_numbers",
        "execute",
        "promises",
        "server",
        "sessions",
        "topics",
    )

    def __init__(self, connection: sqlite3.Connection, numbers: RunMemory) -> None:
        self._connection = connection
        self._numbers = numbers
        # One cursor for all, also for the writer's BEGIN and COMMIT: each answer is read before the next question, and
        # a new cursor for each would cost as much as a short statement.
        self.execute = self._execute = connection.cursor().execute
        self.topics: set[str] = set()
        self.sessions = SessionRows(self._execute, lambda: self.topics.add(changes_topic))
        self._conversations = ConversationRows(self._execute)
        self.server = ServerRows(self._execute)
        self.promises = PromiseRows(self, numbers.promised)

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
        cursor = self._execute(
            "INSERT INTO runs (id, decision, label, state, args, code, parent, forked_from, created_at, updated_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            (run_id, decision, label, state._value_, args, code, parent, forked_from, now, now),
        )
        if cursor.rowcount != 1:
            return False
        self._execute(_RUN_BEGUN, (run_id, now))
        self._numbers[run_id] = 1, 0
        self._numbers.promised[run_id] = None
        self.topics.add(history_topic(run_id))
        self.topics.add(changes_topic)
        return True

    def set_run_state(
        self, run_id: str, state: RunState, now: float, *, waiting_for: str | None = None, wake_at: float | None = None
    ) -> None:
        """Say that the run works or waits, and for what."""
        self._execute(
            "UPDATE runs SET state = ?, waiting_for = ?, wake_at = ?, updated_at = ? WHERE id = ?",
            (state._value_, waiting_for, wake_at, now, run_id),
        )
        self.topics.add(changes_topic)

    def finish_run(
        self,
        run_id: str,
        state: RunState,
        now: float,
        *,
        result: str | None = None,
        error: str | None = None,
        ending: str | None = None,
    ) -> None:
        """Close the run: completed with `result`, failed or cancelled with `error`; `ending` is the word for it."""
        self._execute(
            "UPDATE runs SET state = ?, result = ?, error = ?, ending = ?, waiting_for = NULL, wake_at = NULL, "
            "updated_at = ?, finished_at = ? WHERE id = ?",
            (state._value_, result, error, ending, now, now, run_id),
        )
        number = self._last(run_id)[0] + 1
        try:
            self._execute(_RUN_ENDED, (run_id, number, _ENDED, now, error, state._value_, ending))
        except sqlite3.IntegrityError:  # another process has told of something: of a callback, say
            del self._numbers[run_id]
            place = (run_id, None, None)
            self._append(place, Happened.RUN_ENDED, now, data=error, kind=state._value_, outcome=ending)
        self.topics.add(f"history:{run_id}")
        self._numbers.pop(run_id, None)
        self.promises.settle(RUN, run_id, PromiseState.of_run(state), now, result=result, error=error)
        self.topics.add(run_topic(run_id))
        self.topics.add(changes_topic)

    def reopen_run(self, run_id: str, now: float, *, ended_at: float | None) -> bool:
        """Make a run that failed or was cancelled one that can go on. False if that end is not its end any more.

        `ended_at` is when the end was that somebody looked at to decide what to take back. If the run was taken up and
        ended again since, that decision is out of date.
        """
        cursor = self._execute(
            "UPDATE runs SET state = ?, result = NULL, error = NULL, ending = NULL, cancel_requested = 0, "
            "finished_at = NULL, updated_at = ? WHERE id = ? AND state IN ('failed', 'cancelled') AND finished_at = ?",
            (_RUNNING, now, run_id, ended_at),
        )
        if cursor.rowcount != 1:
            return False
        self._numbers.pop(run_id, None)
        self.promises.close_run(run_id)
        self._append((run_id, None, None), Happened.RUN_RESUMED, now)
        self.topics.add(run_topic(run_id))
        self.topics.add(changes_topic)
        return True

    def request_cancel(self, run_id: str, now: float) -> bool:
        """Write down that the run is to be cancelled. Answers whether there was anything left to cancel."""
        cursor = self._execute(
            "UPDATE runs SET cancel_requested = 1, updated_at = ? WHERE id = ? AND state IN ('running', 'waiting')",
            (now, run_id),
        )
        self.topics.update((run_topic(run_id), history_topic(run_id)))
        return cursor.rowcount == 1

    def state_of(self, run_id: str) -> RunState | None:
        """The run's written state, as this transaction sees it."""
        row = self._execute("SELECT state FROM runs WHERE id = ?", (run_id,)).fetchone()
        return None if row is None else run_state_of(row[0], run_id)

    def asked_of(self, run_id: str) -> tuple[str, str, RunState] | None:
        """Decision, arguments and written state of a run."""
        row = self._execute("SELECT decision, args, state FROM runs WHERE id = ?", (run_id,)).fetchone()
        if row is None:
            return None
        place = f"run {run_id!r}"
        return text_of(row[0], place), text_of(row[1], place), run_state_of(row[2], run_id)

    def ending_of(self, run_id: str) -> tuple[RunState, str | None, str | None] | None:
        """State, result and error of a run that is over; nothing while it is not."""
        row = self._execute("SELECT state, result, error FROM runs WHERE id = ?", (run_id,)).fetchone()
        state = None if row is None else run_state_of(row[0], run_id)
        return None if state is None or not state.is_over else (state, row[1], row[2])

    # Steps: what a step is, its entries say

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
        note: str | None = None,
        is_shown: bool = True,
    ) -> None:
        """Write down a step before its effect."""
        self._append(
            place,
            state._value_,
            now,
            name,
            is_shown=is_shown,
            kind=kind,
            key=key,
            args=args,
            color=color,
            code=code,
            wake_at=wake_at,
            note=note,
        )

    def begin_held_step(self, place: Place, resource: str, token: str, begun: BegunStep) -> bool:
        """`hold_run` and `begin_step` in one statement: what nearly every commit of a run consists of.

        Answers whether somebody asked for the run's cancellation; the step is written down all the same.
        """
        name, key, args, color, code, now, is_shown = begun
        run_id, branch, step = place
        if is_shown:
            number = (self._numbers.get(run_id) or self._last(run_id))[0] + 1
            own_key = None if key == f"{run_id}:{branch}{step}:{name}" else key  # what can be told is not kept
            row = (run_id, number, now, branch, step, name, own_key, args, color, code, resource, token, run_id)
            try:
                changed = self._execute(_BEGIN_HELD, row).rowcount
            except sqlite3.IntegrityError:
                changed = 0  # somebody else told of something; what follows counts anew
            if changed == 1:
                self._numbers[run_id] = number, 0
                self.topics.add(f"history:{run_id}")
                return False
        is_requested = self.hold_run(run_id, resource, token)
        self.begin_step(
            place, kind="step", name=name, key=key, args=args, now=now, color=color, code=code, is_shown=is_shown
        )
        return is_requested

    def settle_step(
        self,
        place: Place,
        state: StepState,
        now: float,
        *,
        kind: str,
        name: str,
        attempt: int = 1,
        result: str | None = None,
        error: str | None = None,
        note: str | None = None,
        is_shown: bool = True,
    ) -> None:
        """Write down a step's answer."""
        data = result if error is None else error
        if is_shown and kind == "step" and attempt == 1:  # nearly every one
            run_id, branch, step = place
            number = (self._numbers.get(run_id) or self._last(run_id))[0] + 1
            try:
                self._execute(_SETTLE, (run_id, number, state._value_, now, branch, step, name, data))
            except sqlite3.IntegrityError:
                pass
            else:
                self._numbers[run_id] = number, 0
                self.topics.add(f"history:{run_id}")
                return
        self._append(
            place, state._value_, now, name, is_shown=is_shown, data=data, kind=kind, attempt=attempt, note=note
        )

    def begin_attempt(
        self, place: Place, attempt: int, now: float, *, kind: str = "step", name: str, code: str | None = None
    ) -> None:
        """Write down, before its effect, that a step is tried once more. It is not shown."""
        self._append(place, Happened.AGAIN, now, name, is_shown=False, kind=kind, attempt=attempt, code=code)

    def add_attempt(
        self,
        place: Place,
        *,
        name: str,
        number: int,
        outcome: str,
        error: str | None,
        started_at: float | None,
        now: float,
        next_at: float | None,
        kind: str = "step",
        is_shown: bool = True,
    ) -> None:
        """Write down an attempt that did not succeed, with its own error, and when the next one is due.

        Shown is one that is followed by another: the last one is told by the end of its step.
        """
        self._append(
            place,
            Happened.ATTEMPT,
            now,
            name,
            is_shown=is_shown and next_at is not None,
            kind=kind,
            attempt=number,
            outcome=outcome,
            began_at=started_at,
            wake_at=next_at,
            data=error,
        )

    def tell_code_changed(self, place: Place, now: float, *, name: str, before: str, code: str) -> None:
        """Write down that a step's next attempt calls other code than the last one did."""
        note = json.dumps({"before": before})
        self._append(place, Happened.CODE_CHANGED, now, name, kind="step", code=code, note=note)

    def tell_callback_failed(self, run_id: str, now: float, *, name: str, error: str) -> None:
        """Write down that somebody who was told of the run raised."""
        self._append((run_id, None, None), Happened.CALLBACK_FAILED, now, name, data=error)

    def take_back_step(self, step: StepRecord, now: float, *, gives_back: bool = True) -> None:
        """Take a step's answer back, so that the decision asks anew. What happened stays in the history.

        A signal that it had received can be received again, unless it was an answer that is not to be heard twice.
        """
        place = step.place
        self._append(place, Happened.TAKEN_BACK, now, step.name, is_shown=False, kind=step.kind)
        if gives_back:
            given_back = (place.run_id, str(place))
            self._execute("UPDATE signals SET taken_by = NULL WHERE run_id = ? AND taken_by = ?", given_back)

    def _append(
        self,
        place: tuple[str, str | None, int | None],
        what: str,
        now: float,
        name: str | None = None,
        *,
        is_shown: bool = True,
        **more: Any,
    ) -> None:
        """Append an entry to a run's history.

        One that is shown gets the next number of its run; one that is not stands behind the last, with its number.
        """
        run_id, branch, step = place
        sql = f"{_INTO}{''.join(f', {column}' for column in more)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?{', ?' * len(more)})"
        while True:
            seq, sub = self._last(run_id)
            number = (seq + 1, 0) if is_shown else (seq, sub + 1)
            try:
                self._execute(sql, (run_id, *number, what, now, branch, step, name, *more.values()))
            except sqlite3.IntegrityError:  # another process has told of something: of a callback, say
                del self._numbers[run_id]
                continue
            self._numbers[run_id] = number
            self.topics.add(history_topic(run_id))
            if more.get("kind") == "wait":  # what a run waits for is listed, also while another branch of it works
                self.topics.add(changes_topic)
            return

    def _last(self, run_id: str) -> tuple[int, int]:
        """The number of the last entry of a run's history, and how many stand behind it.

        It is remembered, because to ask costs as much as to write. Whoever takes the run over starts again, and numbers
        are unique, so what another process has written in the meantime is found out.
        """
        last = self._numbers.get(run_id)
        if last is None:
            row = self._execute(
                "SELECT seq, sub FROM history WHERE run_id = ? ORDER BY seq DESC, sub DESC LIMIT 1", (run_id,)
            ).fetchone()
            if len(self._numbers) >= _MANY:
                self._numbers.clear()
            last = self._numbers[run_id] = (0, -1) if row is None else (row[0], row[1])
        return last

    def copy_steps(self, source: str, target: str, before: int) -> int:
        """Give `target` the history of the steps of `source` that come before trunk step `before`, with their branches.

        Numbered through behind what `target` has; answers how many steps that are.
        """
        last = self._execute("SELECT ifnull(max(seq), 0) FROM history WHERE run_id = ?", (target,)).fetchone()[0]
        self._numbers.pop(target, None)
        self._execute(_COPY, (source, before, before, target, last, source))
        self.topics.add(history_topic(target))
        rows = self._execute(f"SELECT {HISTORY.sql} FROM history WHERE run_id = ? ORDER BY seq, sub", (target,))  # noqa: S608
        return len(fold(target, rows.fetchall()).steps)

    def steps(self, run_id: str) -> Sequence[StepRecord]:
        """The steps of a run, as this transaction sees them."""
        rows = self._execute(f"SELECT {HISTORY.sql} FROM history WHERE run_id = ? ORDER BY seq, sub", (run_id,))  # noqa: S608
        return fold(run_id, rows.fetchall()).steps

    # Signals

    def send_signal(self, run_id: str, name: str, payload: str, now: float, *, key: str | None = None) -> bool:
        """Write down a message to a run. Answers whether it is new; `key` makes a second sending harmless."""
        cursor = self._execute(
            "INSERT INTO signals (run_id, name, payload, key, sent_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (run_id, name, payload, key, now),
        )
        self.topics.update((run_topic(run_id), history_topic(run_id), changes_topic))
        return cursor.rowcount == 1

    def take_signal(self, run_id: str, name: str, taken_by: str, *, before: float | None = None) -> str | None:
        """The payload of the oldest message of that name that nobody has taken, now taken by the step `taken_by`.

        Only of those sent before the moment `before`, if it is given.
        """
        row = self._execute(
            "SELECT id, payload FROM signals WHERE run_id = ? AND name = ? AND taken_by IS NULL AND sent_at < ? "
            "ORDER BY id LIMIT 1",
            (run_id, name, math.inf if before is None else before),
        ).fetchone()
        if row is None:
            return None
        self._execute("UPDATE signals SET taken_by = ? WHERE id = ?", (taken_by, row[0]))
        return text_of(row[1], f"signal {row[0]} to run {run_id!r}")

    def open_wait(self, run_id: str, name: str) -> OpenWait | None:
        """What steps of the run wait for under that name; nothing if none does."""
        open_waits: dict[tuple[Any, Any], float] = {}
        for what, branch, step, wake_at in self._execute(
            "SELECT what, branch, step, wake_at FROM history WHERE run_id = ? AND kind = 'wait' AND name = ? "
            "ORDER BY seq, sub",
            (run_id, name),
        ):
            if what == Happened.WAITING:
                open_waits[branch, step] = math.inf if wake_at is None else wake_at
            else:
                open_waits.pop((branch, step), None)
        if not open_waits:
            return None
        last = max(open_waits.values())
        (sent,) = self._execute(
            "SELECT count(*) FROM signals WHERE run_id = ? AND name = ? AND taken_by IS NULL AND sent_at < ?",
            (run_id, name, last),
        ).fetchone()
        return OpenWait(None if last == math.inf else last, sent >= len(open_waits))

    # Events

    def append_event(self, stream: str, kind: str, payload: object, now: float) -> int:
        """Append to a stream; the answer is the entry's number in it, counted from 1 without gaps."""
        text, _ = keep(payload, f"event {kind!r}")
        seq = self.last_event(stream) + 1
        self._execute(
            "INSERT INTO events (stream, seq, kind, payload, at) VALUES (?, ?, ?, ?, ?)", (stream, seq, kind, text, now)
        )
        self.topics.add(stream_topic(stream))
        if stream.startswith(CONVERSATIONS) and isinstance(payload, Mapping):
            self._conversations.note(stream.removeprefix(CONVERSATIONS), kind, payload, now)
            self.topics.add(changes_topic)
        return seq

    def append_events(self, stream: str, entries: Sequence[tuple[str, object]], now: float) -> int:
        """`append_event` for several entries, the number of the first: one look for the end, one row for a new talk."""
        last = self.last_event(stream)
        rows = []
        for seq, (kind, payload) in enumerate(entries, last + 1):
            text, _ = keep(payload, f"event {kind!r}")
            rows.append((stream, seq, kind, text, now))
        self._connection.executemany("INSERT INTO events (stream, seq, kind, payload, at) VALUES (?, ?, ?, ?, ?)", rows)
        self.topics.add(stream_topic(stream))
        if stream.startswith(CONVERSATIONS):
            talk_id = stream.removeprefix(CONVERSATIONS)
            shown = [(kind, payload) for kind, payload in entries if isinstance(payload, Mapping)]
            kinds = [kind for kind, _ in shown]
            begins = OPENED in kinds[:1] and ENDED not in kinds
            if not (begins and self._conversations.note_beginning(talk_id, shown, now)):
                for kind, payload in shown:
                    self._conversations.note(talk_id, kind, payload, now)
            self.topics.add(changes_topic)
        return last + 1

    def last_event(self, stream: str) -> int:
        """The number of the stream's last entry; 0 if it is empty."""
        (last,) = self._execute("SELECT max(seq) FROM events WHERE stream = ?", (stream,)).fetchone()
        return last or 0

    def events(self, stream: str, *, after: int = 0) -> list[Event]:
        """The entries of a stream that follow number `after`, all of them."""
        rows = self._execute(
            f"SELECT {EVENT.sql} FROM events WHERE stream = ? AND seq > ? ORDER BY seq",  # noqa: S608
            (stream, after),
        ).fetchall()
        if rows and rows[0][2] != after + 1:
            after = max(after, self.trimmed(stream))
        return events_of(rows, stream, after, self.last_event(stream))

    def trim(self, stream: str, keep: int) -> int:
        """Cut off a stream's oldest entries but for the last `keep`. Answers how many that were."""
        last = self.last_event(stream) - keep
        if last <= self.trimmed(stream):
            return 0
        forget_messages(self._execute, stream, last)
        count = self._execute("DELETE FROM events WHERE stream = ? AND seq <= ?", (stream, last)).rowcount
        self._execute(
            "INSERT INTO trimmed (stream, last) VALUES (?, ?) ON CONFLICT (stream) DO UPDATE SET last = excluded.last",
            (stream, last),
        )
        self.topics.add(stream_topic(stream))
        return int(count)

    def trimmed(self, stream: str) -> int:
        """The number of the last entry that was cut off from the beginning of a stream; 0 if none was."""
        row = self._execute("SELECT last FROM trimmed WHERE stream = ?", (stream,)).fetchone()
        return 0 if row is None else int(row[0])

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
        if self._execute(_TAKE, (resource, owner_id, token, now)).rowcount != 1:
            holder = self.holder_of(resource)
            if holder is not None and is_alive(holder, now):
                return holder
            self._execute(_TAKE_OVER, (owner_id, token, now, resource))
        run_id = resource.removeprefix("run:")
        if f"history:{run_id}" not in self.topics:  # else this very transaction has begun it, and knows its numbers
            self._numbers.pop(run_id, None)
        self.topics.add(resource)
        return None

    def renew(self, resource: str, owner_id: str, token: str, now: float) -> bool:
        """Give the lease that `owner_id` has another token; whoever holds it under the old one is refused."""
        statement = "UPDATE leases SET token = ?, taken_at = ? WHERE resource = ? AND owner = ?"
        is_ours = self._execute(statement, (token, now, resource, owner_id)).rowcount == 1
        run_id = resource.removeprefix("run:")
        if f"history:{run_id}" not in self.topics:  # another process may have written under the old token
            self._numbers.pop(run_id, None)
        return is_ours

    def holder_of(self, resource: str) -> Owner | None:
        """Whoever has the lease, dead or alive."""
        row = self._execute(
            "SELECT o.id, o.machine, o.pid, o.pid_started, o.beat_at FROM leases l JOIN owners o ON o.id = l.owner "
            "WHERE l.resource = ?",
            (resource,),
        ).fetchone()
        return None if row is None else owner_of(row)

    def hold(self, resource: str, token: str) -> None:
        """Make sure that the lease is still ours; otherwise nothing of this unit is written."""
        row = self._execute("SELECT token FROM leases WHERE resource = ?", (resource,)).fetchone()
        if row is None or row[0] != token:
            raise _lost(resource)

    def hold_run(self, run_id: str, resource: str, token: str) -> bool:
        """Make sure that the run is still ours, and answer whether by requests cancellation."""
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

    def migrate(self, migrations: Sequence[Sequence[schema.Migration]] = schema.MIGRATIONS) -> None:
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
        return None if row is None else read(row[0], f"`{key}` of the file")


def _lost(resource: str) -> LeaseLostError:
    return LeaseLostError(
        f"{resource!r} is owned by another process now, so nothing was written.\n"
        "This happens to a process that was stopped, or silent, for so long that another one took over and went on "
        "from the last recorded step. `engine.result` waits for it."
    )
