"""How each thing is written to PostgreSQL: the statements of one open transaction.

Nothing here begins or commits; `writer` does. The statements stand in `statements`, by name. `number` is that of the
transaction, by which the database can be asked what became of it.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from troth.runtime.store.errors import LeaseLostError
from troth.runtime.store.identity import Owner
from troth.runtime.store.json_codec import keep, read
from troth.runtime.store.list_records import changes_topic
from troth.runtime.store.postgres import statements
from troth.runtime.store.postgres.dialect import Execute, translating
from troth.runtime.store.postgres.link import CommitConnection
from troth.runtime.store.postgres.liveness import Liveness
from troth.runtime.store.postgres.promise_rows import PostgresPromiseRows
from troth.runtime.store.postgres.server_rows import PostgresServerRows
from troth.runtime.store.postgres.session_rows import PostgresSessionRows
from troth.runtime.store.promise_records import PromiseState
from troth.runtime.store.records import BegunStep, Event, Happened, OpenWait, Place, RunState, StepRecord, StepState
from troth.runtime.store.rows.conversations import CONVERSATIONS, ConversationRows
from troth.runtime.store.rows.history import fold
from troth.runtime.store.rows.promises import PromisedRun
from troth.runtime.store.rows.runs import events_of, owner_of, run_state_of, text_of
from troth.runtime.store.rows.server import ServerRows
from troth.runtime.store.rows.sessions import SessionRows
from troth.runtime.store.sqlite.transaction import history_topic, run_topic, stream_topic

__all__ = ["PostgresTransaction", "lost", "unheld_topic"]

unheld_topic = "unheld"
"""Of commits that leave a run without an owner before it is over."""


class PostgresTransaction:
    """The writes of one transaction, and the reads that they rely on. What is read is locked until the commit."""

    __slots__ = (
        "_appended",
        "_carry_out",
        "_channel",
        "_conversations",
        "_held",
        "_promised",
        "_session_rows",
        "_settled",
        "_unheld",
        "liveness",
        "number",
        "promises",
        "server",
        "sessions",
        "topics",
    )

    def __init__(
        self,
        link: CommitConnection,
        liveness: Liveness,
        channel: str,
        *,
        is_shared: bool,
        appended: Callable[[str, int], object] = lambda *_: None,
    ) -> None:
        self._appended = appended
        self.number = link.begin()
        if is_shared:
            link.command(statements.SHORT_PATIENCE)
        self._carry_out: Execute = link.execute
        self._settled: tuple[Any, ...] | None = None  # an answer that is written with what comes next
        self._channel = channel
        self.liveness = liveness
        self.topics: set[str] = set()
        self._unheld: set[str] = set()  # the leases of runs that were let go of, or have none yet
        self._held: set[str] = set()  # those that were taken, or are needed no more
        self._session_rows = PostgresSessionRows(self.execute, lambda: self.topics.add(changes_topic), locks=True)
        self._conversations = ConversationRows(translating(self.execute))
        self.sessions: SessionRows = self._session_rows
        self.server: ServerRows = PostgresServerRows(self.execute, liveness, locks=True)
        self._promised: dict[str, PromisedRun | None] = {}  # of runs that this transaction has begun
        self.promises = PostgresPromiseRows(self, self._promised)

    def execute(self, statement: str, values: Sequence[object] | Mapping[str, object] = ()) -> Any:
        """Carry out a statement of psycopg's, after what was asked for before."""
        if self._settled is not None:
            self.flush()
        return self._carry_out(statement, values)

    def flush(self) -> None:
        """Write what was kept back to be written with something else."""
        settled, self._settled = self._settled, None
        if settled is not None:
            self._carry_out(statements.SETTLE_STEP, (*settled, settled[0]))

    def tell(self, message: Callable[[set[str]], str | None]) -> None:
        """Have this commit tell other workers of what they may wait for."""
        if not self._unheld <= self._held:
            self.topics.add(unheld_topic)
        text = message(self.topics) if self.topics else None
        if text is not None:
            self.execute(statements.NOTIFY, (self._channel, text))

    def forget(self, topics: set[str]) -> None:
        """A piece of work was taken back: tell only of `topics`, and lock anew what it had locked."""
        self.topics = topics
        self._settled = None
        self._promised.clear()
        self._held.clear()
        self._session_rows.forget_locks()

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
        row = (run_id, decision, label, state._value_, args, code, parent, forked_from, now, now)
        if self.execute(statements.ADD_RUN, row).fetchone() is None:
            return False
        self.execute(statements.RUN_BEGUN, (run_id, now))
        self._promised[run_id] = None
        self._unheld.add(f"run:{run_id}")
        self.topics.add(history_topic(run_id))
        self.topics.add(changes_topic)
        return True

    def set_run_state(
        self, run_id: str, state: RunState, now: float, *, waiting_for: str | None = None, wake_at: float | None = None
    ) -> None:
        """Say that the run works or waits, and for what."""
        self.execute(statements.SET_RUN_STATE, (state._value_, waiting_for, wake_at, now, run_id))
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
        self.execute(statements.FINISH_RUN, (state._value_, result, error, ending, now, now, run_id))
        place = (run_id, None, None)
        self._append(place, Happened.RUN_ENDED, now, data=error, kind=state._value_, outcome=ending)
        self.promises.settle("run", run_id, PromiseState.of_run(state), now, result=result, error=error)
        self._held.add(f"run:{run_id}")
        self.topics.add(run_topic(run_id))
        self.topics.add(changes_topic)

    def reopen_run(self, run_id: str, now: float, *, ended_at: float | None) -> bool:
        """Make a run that failed or was cancelled one that can go on. False if that end is not its end any more."""
        if self.execute(statements.REOPEN_RUN, (now, run_id, ended_at)).fetchone() is None:
            return False
        self.promises.close_run(run_id)
        self._append((run_id, None, None), Happened.RUN_RESUMED, now)
        self._unheld.add(f"run:{run_id}")
        self.topics.add(run_topic(run_id))
        self.topics.add(changes_topic)
        return True

    def request_cancel(self, run_id: str, now: float) -> bool:
        """Write down that the run is to be cancelled. Answers whether there was anything left to cancel."""
        self.topics.update((run_topic(run_id), history_topic(run_id)))
        return self.execute(statements.REQUEST_CANCEL, (now, run_id)).fetchone() is not None

    def state_of(self, run_id: str) -> RunState | None:
        """The run's written state; it stays so until this commit."""
        row = self.execute(statements.STATE_OF, (run_id,)).fetchone()
        return None if row is None else run_state_of(row[0], run_id)

    def asked_of(self, run_id: str) -> tuple[str, str, RunState] | None:
        """Decision, arguments and written state of a run."""
        row = self.execute(statements.ASKED_OF, (run_id,)).fetchone()
        if row is None:
            return None
        place = f"run {run_id!r}"
        return text_of(row[0], place), text_of(row[1], place), run_state_of(row[2], run_id)

    def ending_of(self, run_id: str) -> tuple[RunState, str | None, str | None] | None:
        """State, result and error of a run that is over; nothing while it is not."""
        row = self.execute(statements.ENDING_OF, (run_id,)).fetchone()
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
        """`hold_run` and `begin_step` in one statement: what nearly every commit of a run consists of."""
        name, key, args, color, code, now, is_shown = begun
        run_id, branch, step = place
        if not is_shown:
            is_requested = self.hold_run(run_id, resource, token)
            self.begin_step(
                place, kind="step", name=name, key=key, args=args, now=now, color=color, code=code, is_shown=False
            )
            return is_requested
        own_key = None if key == f"{run_id}:{branch}{step}:{name}" else key  # what can be told is not kept
        values = (now, branch, step, name, own_key, args, color, code)
        settled = self._settled
        if settled is not None and settled[0] == run_id:
            self._settled = None
            values = (run_id, resource, token, *settled[1:], *values)
            row = self._carry_out(statements.SETTLE_AND_BEGIN, values).fetchone()
        else:
            row = self.execute(statements.BEGIN_HELD_STEP, (run_id, resource, token, *values)).fetchone()
        if row is None:
            raise lost(resource)
        self.topics.add(f"history:{run_id}")
        return bool(row[0])

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
            self.flush()
            self._settled = (run_id, state._value_, now, branch, step, name, data)  # the next one begins with it
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
        """Write down an attempt that did not succeed, with its own error, and when the next one is due."""
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
        """Write down that somebody who was told of the run raised. It may be driven by another worker meanwhile."""
        self.execute(statements.LOCK_RUN, (run_id,))
        self._append((run_id, None, None), Happened.CALLBACK_FAILED, now, name, data=error)

    def take_back_step(self, step: StepRecord, now: float, *, gives_back: bool = True) -> None:
        """Take a step's answer back, so that the decision asks anew. What happened stays in the history."""
        place = step.place
        self._append(place, Happened.TAKEN_BACK, now, step.name, is_shown=False, kind=step.kind)
        if gives_back:
            self.execute(statements.GIVE_SIGNALS_BACK, (place.run_id, str(place)))

    def _append(
        self,
        place: tuple[str, str | None, int | None],
        what: str,
        now: float,
        name: str | None = None,
        *,
        is_shown: bool = True,
        data: str | None = None,
        kind: str | None = None,
        key: str | None = None,
        args: str | None = None,
        color: str | None = None,
        code: str | None = None,
        attempt: int | None = None,
        outcome: str | None = None,
        began_at: float | None = None,
        wake_at: float | None = None,
        note: str | None = None,
    ) -> None:
        """Append an entry to a run's history.

        One that is shown gets the next number of its run; one that is not stands behind the last, with its number.
        """
        run_id, branch, step = place
        more = (data, kind, key, args, color, code, attempt, outcome, began_at, wake_at, note)
        statement = statements.APPEND_SHOWN if is_shown else statements.APPEND_HIDDEN
        self.execute(statement, (run_id, str(what), now, branch, step, name, *more, run_id))
        self.topics.add(history_topic(run_id))
        if kind == "wait":  # what a run waits for is listed, also while another branch of it works
            self.topics.add(changes_topic)

    def copy_steps(self, source: str, target: str, before: int) -> int:
        """Give `target` the history of the steps of `source` that come before trunk step `before`, with their branches.

        Numbered through behind what `target` has; answers how many steps that are.
        """
        last = self.execute(statements.LAST_ENTRY, (target,)).fetchone()[0]
        self.execute(statements.COPY_STEPS, (source, before, before, target, last, source))
        self.topics.add(history_topic(target))
        return len(self.steps(target))

    def steps(self, run_id: str) -> Sequence[StepRecord]:
        """The steps of a run, as this transaction sees them."""
        return fold(run_id, self.execute(statements.WHOLE_HISTORY, (run_id,)).fetchall()).steps

    # Signals

    def send_signal(self, run_id: str, name: str, payload: str, now: float, *, key: str | None = None) -> bool:
        """Write down a message to a run. Answers whether it is new; `key` makes a second sending harmless."""
        self.topics.update((run_topic(run_id), history_topic(run_id), changes_topic))
        return self.execute(statements.SEND_SIGNAL, (run_id, name, payload, key, now)).fetchone() is not None

    def take_signal(self, run_id: str, name: str, taken_by: str, *, before: float | None = None) -> str | None:
        """The payload of the oldest message of that name that nobody has taken, now taken by the step `taken_by`."""
        latest = math.inf if before is None else before
        row = self.execute(statements.TAKE_SIGNAL, (taken_by, run_id, name, latest)).fetchone()
        return None if row is None else text_of(row[1], f"signal {row[0]} to run {run_id!r}")

    def open_wait(self, run_id: str, name: str) -> OpenWait | None:
        """What steps of the run wait for under that name; nothing if none does."""
        open_waits: dict[tuple[Any, Any], float] = {}
        for what, branch, step, wake_at in self.execute(statements.WAITS, (run_id, name)):
            if what == Happened.WAITING:
                open_waits[branch, step] = math.inf if wake_at is None else wake_at
            else:
                open_waits.pop((branch, step), None)
        if not open_waits:
            return None
        last = max(open_waits.values())
        (sent,) = self.execute(statements.COUNT_UNTAKEN, (run_id, name, last)).fetchone()
        return OpenWait(None if last == math.inf else last, sent >= len(open_waits))

    # Events

    def append_event(self, stream: str, kind: str, payload: object, now: float) -> int:
        """Append to a stream; the answer is the entry's number in it, counted from 1 without gaps."""
        text, _ = keep(payload, f"event {kind!r}")
        (seq,) = self.execute(statements.APPEND_EVENT, (stream, stream, kind, text, now)).fetchone()
        self._appended(stream, seq)
        self.topics.add(stream_topic(stream))
        if stream.startswith(CONVERSATIONS) and isinstance(payload, Mapping):
            self._conversations.note(stream.removeprefix(CONVERSATIONS), kind, payload, now)
            self.topics.add(changes_topic)
        return int(seq)

    def append_events(self, stream: str, entries: Sequence[tuple[str, object]], now: float) -> int:
        """`append_event` for several entries; the answer is the number of the first."""
        first, *_ = [self.append_event(stream, kind, payload, now) for kind, payload in entries]
        return first

    def last_event(self, stream: str) -> int:
        """The number of the stream's last entry; 0 if it is empty. Nobody else appends to it until this commit."""
        return int(self.execute(statements.LOCK_STREAM, (stream,)).fetchone()[0])

    def events(self, stream: str, *, after: int = 0) -> list[Event]:
        """The entries of a stream that follow number `after`, all of them."""
        last = self.last_event(stream)
        rows = self.execute(statements.EVENTS_AFTER, (stream, after)).fetchall()
        if rows and rows[0][2] != after + 1:
            after = max(after, self.trimmed(stream))
        return events_of(rows, stream, after, last)

    def trim(self, stream: str, keep: int) -> int:
        """Cut off a stream's oldest entries but for the last `keep`. Answers how many that were."""
        last = self.last_event(stream) - keep
        if last <= self.trimmed(stream):
            return 0
        count = self.execute(statements.TRIM_EVENTS, (stream, last)).rowcount
        self.execute(statements.SET_TRIMMED, (stream, last))
        self.topics.add(stream_topic(stream))
        return int(count)

    def trimmed(self, stream: str) -> int:
        """The number of the last entry that was cut off from the beginning of a stream; 0 if none was."""
        row = self.execute(statements.TRIMMED, (stream,)).fetchone()
        return 0 if row is None else int(row[0])

    # Owners and leases

    def enroll(self, owner: Owner) -> None:
        """Write down who takes leases, and that it lives now, by the clock of the database."""
        moment = self.liveness.moment(owner.beat_at)
        self.execute(statements.ENROLL, (owner.id, owner.machine, owner.pid, owner.pid_started, moment))

    def beat(self, owner_id: str, now: float) -> None:
        """Say that the owner still lives, now by the clock of the database."""
        self.execute(statements.BEAT, (self.liveness.moment(now), owner_id))

    def retire(self, owner_id: str) -> None:
        """Give up everything the owner holds, and the owner."""
        for (resource,) in self.execute(statements.LEASES_OF, (owner_id,)):
            self.topics.add(resource)
        self.execute(statements.RETIRE_LEASES, (owner_id,))
        self.execute(statements.RETIRE_OWNER, (owner_id,))

    def claim(self, resource: str, owner_id: str, token: str, now: float) -> Owner | None:
        """Take the lease if it is free or its owner is dead. Answers the living owner if there is one, else nothing."""
        holder = self.holder_of(resource)
        living, dead = self.liveness.known(holder)
        values = (resource, owner_id, token, now, living, self.liveness.moment(now), self.liveness.lifetime, dead)
        if self.execute(statements.CLAIM, values).fetchone() is not None:
            self._held.add(resource)
            self.topics.add(resource)
            return None
        return self.holder_of(resource)

    def renew(self, resource: str, owner_id: str, token: str, now: float) -> bool:
        """Give the lease that `owner_id` has another token; whoever holds it under the old one is refused."""
        return self.execute(statements.RENEW, (token, now, resource, owner_id)).fetchone() is not None

    def holder_of(self, resource: str) -> Owner | None:
        """Whoever has the lease, dead or alive."""
        row = self.execute(statements.HOLDER_OF, (resource,)).fetchone()
        return None if row is None else owner_of(row)

    def hold(self, resource: str, token: str) -> None:
        """Make sure that the lease is ours, and stays so until this commit; otherwise nothing of it is written."""
        row = self.execute(statements.HOLD, (resource,)).fetchone()
        if row is None or row[0] != token:
            raise lost(resource)

    def hold_run(self, run_id: str, resource: str, token: str) -> bool:
        """Make sure that the run is still ours, and answer whether by requests cancellation."""
        row = self.execute(statements.HOLD_RUN, (run_id, resource)).fetchone()
        if row is None or row[0] != token:
            raise lost(resource)
        return bool(row[1])

    def release(self, resource: str, token: str) -> None:
        """Give the lease back, if it is still ours."""
        self.execute(statements.RELEASE_LEASE, (resource, token))
        if resource.startswith("run:"):
            self._unheld.add(resource)
        self.topics.add(resource)

    # The store itself

    def set_meta(self, key: str, value: object) -> None:
        """Remember one value for the whole store."""
        self.execute(statements.SET_META, (key, keep(value, f"meta {key!r}")[0]))

    def get_meta(self, key: str) -> Any:
        """One value remembered for the whole store, or nothing."""
        row = self.execute(statements.LOCK_META, (key,)).fetchone()
        return None if row is None else read(row[0], f"`{key}` of the store")


def lost(resource: str) -> LeaseLostError:
    """The error of a commit that does not hold the lease of `resource` any more."""
    return LeaseLostError(
        f"{resource!r} is owned by another process now, so nothing was written.\n"
        "This happens to a worker that was stopped, or could not reach the database, for longer than its lifetime: "
        "another one took over from the last recorded step. `engine.result` waits for it."
    )
