"""The port of a store: what the engine, and all that stands on it, need from whatever remembers.

SQLite implements it for one machine (`sqlite.py`), PostgreSQL for several (`postgres/`). Whoever implements it anew
passes `troth.testing.store_conformance`. Two rules carry
everything: what is written in one transaction is kept together or not at all, and nothing is committed without naming
its commit point.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from troth.runtime.store.failpoints import CommitPoint
from troth.runtime.store.identity import Owner
from troth.runtime.store.lists import StoreLists
from troth.runtime.store.notifications import Notifier
from troth.runtime.store.records import (
    BegunStep,
    Event,
    HistoryEntry,
    OpenWait,
    Place,
    Recorded,
    RunRecord,
    RunState,
    Signal,
    StepRecord,
    StepState,
)
from troth.runtime.store.rows.promise_queries import PromiseReader
from troth.runtime.store.rows.promises import PromiseRows
from troth.runtime.store.rows.server import ServerRows
from troth.runtime.store.rows.sessions import SessionRows

__all__ = ["Store", "Transaction"]

T = TypeVar("T")


class Transaction(Protocol):
    """The writes of one commit, and the reads that they rely on. Every method is quick and waits for nobody.

    What is read here is as this commit sees it: with what it has written, and with what other commits have that share
    its transaction. The store's own readers see neither, so they are not to be asked inside a commit's work.
    """

    sessions: SessionRows
    """The rows of governed sessions."""
    server: ServerRows
    """The rows of a server: keys, owners, requests."""

    @property
    def promises(self) -> PromiseRows:
        """The statements about promises and their deliveries."""

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

    def set_run_state(
        self, run_id: str, state: RunState, now: float, *, waiting_for: str | None = None, wake_at: float | None = None
    ) -> None:
        """Say that the run works or waits, and for what."""

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

    def reopen_run(self, run_id: str, now: float, *, ended_at: float | None) -> bool:
        """Make a run that failed or was cancelled one that can go on. False if that end is not its end any more."""

    def request_cancel(self, run_id: str, now: float) -> bool:
        """Write down that the run is to be cancelled. Answers whether there was anything left to cancel."""

    def state_of(self, run_id: str) -> RunState | None:
        """The run's written state, as this transaction sees it."""

    def asked_of(self, run_id: str) -> tuple[str, str, RunState] | None:
        """Decision, arguments and written state of a run."""

    def ending_of(self, run_id: str) -> tuple[RunState, str | None, str | None] | None:
        """State, result and error of a run that is over; nothing while it is not."""

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
        """Write down a step before its effect. `note` is JSON, shown with it; `is_shown` makes it part of its events.

        Everything that is written of a run's steps is appended to its history, and stays there.
        """

    def begin_held_step(self, place: Place, resource: str, token: str, begun: BegunStep) -> bool:
        """`hold_run` and `begin_step` in one statement; answers whether a cancellation was requested."""

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

    def begin_attempt(
        self, place: Place, attempt: int, now: float, *, kind: str = "step", name: str, code: str | None = None
    ) -> None:
        """Write down, before its effect, that a step is tried once more. It is not shown."""

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

    def tell_code_changed(self, place: Place, now: float, *, name: str, before: str, code: str) -> None:
        """Write down that a step's next attempt calls other code than the last one did."""

    def tell_callback_failed(self, run_id: str, now: float, *, name: str, error: str) -> None:
        """Write down that somebody who was told of the run raised."""

    def take_back_step(self, step: StepRecord, now: float, *, gives_back: bool = True) -> None:
        """Take a step's answer back, so that the decision asks anew; its signal is free if asked. The history stays."""

    def copy_steps(self, source: str, target: str, before: int) -> int:
        """Give `target` the history of the steps of `source` that come before trunk step `before`, with their branches.

        Answers how many steps that are.
        """

    def steps(self, run_id: str) -> Sequence[StepRecord]:
        """The steps of a run, as this transaction sees them."""

    def send_signal(self, run_id: str, name: str, payload: str, now: float, *, key: str | None = None) -> bool:
        """Write down a message to a run. Answers whether it is new; `key` makes a second sending harmless."""

    def take_signal(self, run_id: str, name: str, taken_by: str, *, before: float | None = None) -> str | None:
        """The payload of the oldest message of that name that nobody has taken, now taken by the step `taken_by`.

        Only of those sent before the moment `before`, if it is given.
        """

    def open_wait(self, run_id: str, name: str) -> OpenWait | None:
        """What steps of the run wait for under that name; nothing if none does."""

    def append_event(self, stream: str, kind: str, payload: object, now: float) -> int:
        """Append to a stream; the answer is the entry's number in it, counted from 1 without gaps."""

    def append_events(self, stream: str, entries: Sequence[tuple[str, object]], now: float) -> int:
        """`append_event` for several entries, at least one; the answer is the number of the first."""

    def last_event(self, stream: str) -> int:
        """The number of the stream's last entry; 0 if it is empty."""

    def events(self, stream: str, *, after: int = 0) -> Sequence[Event]:
        """The entries of a stream that follow number `after`, all of them."""

    def trim(self, stream: str, keep: int) -> int:
        """Cut off a stream's oldest entries but for the last `keep`. Answers how many that were."""

    def trimmed(self, stream: str) -> int:
        """The number of the last entry that was cut off from the beginning of a stream; 0 if none was."""

    def enroll(self, owner: Owner) -> None:
        """Write down who takes leases, and that it lives."""

    def beat(self, owner_id: str, now: float) -> None:
        """Say that the owner still lives."""

    def retire(self, owner_id: str) -> None:
        """Give up everything the owner holds, and the owner."""

    def claim(self, resource: str, owner_id: str, token: str, now: float) -> Owner | None:
        """Take the lease if it is free or its owner is dead. Answers the living owner if there is one, else nothing."""

    def renew(self, resource: str, owner_id: str, token: str, now: float) -> bool:
        """Give the lease that `owner_id` has another token; whoever holds it under the old one is refused from now on.

        False if somebody else has it, or nobody.
        """

    def holder_of(self, resource: str) -> Owner | None:
        """Whoever has the lease, dead or alive."""

    def hold(self, resource: str, token: str) -> None:
        """Make sure that the lease is still ours; otherwise nothing of this unit is written."""

    def hold_run(self, run_id: str, resource: str, token: str) -> bool:
        """Make sure that the run is still ours, and answer whether by requests cancellation."""

    def release(self, resource: str, token: str) -> None:
        """Give the lease back, if it is still ours."""

    def set_meta(self, key: str, value: object) -> None:
        """Remember one value for the whole file."""

    def get_meta(self, key: str) -> Any:
        """One value remembered for the whole file, or nothing."""


class Store(Protocol):
    """Whatever remembers. Every method may be called from any thread."""

    clock: Callable[[], float]

    name: str
    """What it is called in messages; no password is in it."""

    address: str
    """What `open_store` opens it with, also in another process. It may hold a password: not to be shown."""

    path: Path
    """Where the files lie that go with it on this machine: beside this path. Of a file, the file itself."""

    is_shared: bool
    """Whether workers on other machines use it, too."""

    machine_lifetime: float
    """Seconds after which the jobs of a machine are lost on which nobody looks after them."""

    beat_every: float
    """Seconds between the heartbeats of an owner."""

    @property
    def promises(self) -> PromiseReader:
        """What is known of promises and their deliveries."""
        ...

    @property
    def lists(self) -> StoreLists:
        """Lists with cursors, counts by state, what changed, and search: what pages and commands show."""
        ...

    def commit(self, point: CommitPoint, work: Callable[[Transaction], T]) -> T:
        """Do `work` in a transaction and return its answer once it is kept. Blocks; may share the transaction."""
        ...

    async def acommit(self, point: CommitPoint, work: Callable[[Transaction], T], *, is_large: bool = False) -> T:
        """`commit` for a loop: what its tasks commit in one turn may share one transaction.

        `is_large` says that so much is written that it takes noticeable time: never on the loop's own thread.
        """
        ...

    def commit_at_once(self, work: Callable[[Transaction], T]) -> tuple[T] | None:
        """`commit` if that needs no waiting at all; otherwise nothing is done and nothing is answered."""
        ...

    def transaction(self, point: CommitPoint) -> AbstractContextManager[Transaction]:
        """Several writes in one commit, as a block. Nothing inside may wait or run user code."""
        ...

    def run(self, run_id: str) -> RunRecord | None:
        """One run, with its state as it is now."""
        ...

    def runs(
        self,
        *,
        states: Iterable[RunState] | None = None,
        decision: str | None = None,
        label: str | None = None,
        parent: str | None = None,
        family: str | None = None,
        word: str | None = None,
        before: tuple[float, str] | None = None,
        limit: int = 100,
    ) -> Sequence[RunRecord]:
        """Runs, newest first.

        `family` is how the names of their decisions begin, up to the first colon; with it, `word` is what their
        decision said of their end, else their state. Runs of a family and a word cost the same however many there are.
        """
        ...

    def steps(self, run_id: str) -> Sequence[StepRecord]:
        """The steps of a run, in the order in which they were asked for."""
        ...

    def recorded(self, run_id: str) -> Recorded:
        """The steps of a run, and those whose answers were taken back."""
        ...

    def history(self, run_id: str, *, after: int = 0, limit: int = 1000) -> Sequence[HistoryEntry]:
        """What has happened in a run since entry `after` of its history; costs as much as there is to read."""
        ...

    def last_entry(self, run_id: str) -> int:
        """The number of the last entry of a run's history; 0 if there is none."""
        ...

    def signals(self, run_id: str) -> Sequence[Signal]:
        """The messages sent to a run, oldest first."""
        ...

    def events(self, stream: str, *, after: int = 0, limit: int = 1000) -> Sequence[Event]:
        """The entries of a stream that follow number `after`."""
        ...

    def last_event(self, stream: str) -> int:
        """The number of the stream's last entry; 0 if it is empty."""
        ...

    def trimmed(self, stream: str) -> int:
        """The number of the last entry that was cut off from the beginning of a stream; 0 if none was."""
        ...

    def trim(self, stream: str, keep: int) -> int:
        """Keep only the last `keep` entries of a stream, at least one. What is left keeps its numbers.

        Whoever follows the stream from further back is told so. For streams whose entries stand for themselves: what is
        folded from its first entry on, as a conversation is, loses its beginning.
        """
        ...

    def recent_streams(self, prefix: str, limit: int) -> Sequence[str]:
        """The streams whose names begin so, those that were written to last first."""

    def events_of_all(self, prefix: str, *, after: int = 0, limit: int = 1000) -> Sequence[Event]:
        """Entries of all streams whose names begin so, with an `id` above `after`, in the order of these ids."""
        ...

    def holder(self, resource: str) -> Owner | None:
        """Whoever has the lease, dead or alive."""
        ...

    def is_alive(self, owner: Owner) -> bool:
        """Whether an owner may still be at work."""
        ...

    def orphans(self, decisions: Iterable[str], *, patience: float = 0.0) -> Sequence[tuple[str, str]]:
        """Runs of these decisions that are not over and that nobody living holds, as (id, decision).

        For somebody who asks many times a second, `patience` is the seconds for which an answer of nothing may be
        repeated, as long as no owner has died and no commit that is known here has let go of a run.
        """
        ...

    def unheld(self, prefix: str, *, patience: float = 0.0) -> Sequence[str]:
        """The ids of runs that are not over and that nobody living holds, of decisions that begin so; oldest first.

        For `patience`, see `orphans`.
        """

    def open_decisions(self, prefix: str) -> Sequence[str]:
        """The names of decisions that begin so and have runs that are not over."""
        ...

    def cancelling(self) -> Sequence[str]:
        """Runs that are to be cancelled and are not over."""
        ...

    def signalled(self) -> Sequence[str]:
        """Runs that wait although they were sent messages that nobody has taken."""
        ...

    def read_sessions(self, question: Callable[[SessionRows], T]) -> T:
        """The answer of `question`, which reads rows of governed sessions: each statement at one moment."""
        ...

    def read_server(self, question: Callable[[ServerRows], T]) -> T:
        """The answer of `question`, which reads rows of a server: each statement at one moment."""
        ...

    def listening(self, bell: Notifier, *topics: str) -> AbstractContextManager[Notifier]:
        """Ring `bell` for every commit that touches one of `topics`, as long as the block runs."""
        ...

    def chore(self, interval: float, task: Callable[[], object]) -> Callable[[], None]:
        """Do `task` every `interval` seconds on the store's own thread, until the answer is called."""
        ...

    def close(self) -> None:
        """Finish what was asked for and let go of everything. May be called twice."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
