"""Keep everything in one schema of a PostgreSQL database, from any thread, any loop and many machines at once.

    from troth.runtime.store import open_store

    with open_store("postgresql://user@host/database") as store:
        ...

A commit is kept when the database says so, with `synchronous_commit` as the server has it. Nothing here runs on a loop:
what a task commits is committed by a thread of the store's own, together with what other tasks commit meanwhile.
"""

import asyncio
import atexit
import contextlib
import dataclasses
import hashlib
import os
import random
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import psycopg

from troth.errors import MisuseError
from troth.runtime.arguments import check_count
from troth.runtime.store.errors import ReadOnlyStoreError, StoreError
from troth.runtime.store.failpoints import CommitPoint
from troth.runtime.store.identity import Owner
from troth.runtime.store.lists import StoreLists
from troth.runtime.store.loop_batch import LoopBatch
from troth.runtime.store.maintenance_thread import MaintenanceThread
from troth.runtime.store.notifications import Notifications, Notifier
from troth.runtime.store.postgres import faults, pooler, queries, schema, statements
from troth.runtime.store.postgres.address import parse
from troth.runtime.store.postgres.clock import DatabaseClock
from troth.runtime.store.postgres.commits.ordinary_appends import LastEntries
from troth.runtime.store.postgres.commits.writer import PATIENCE, PostgresWriter
from troth.runtime.store.postgres.dialect import Translated
from troth.runtime.store.postgres.horizon import Horizon
from troth.runtime.store.postgres.link import CommitConnection, connect, connect_plain
from troth.runtime.store.postgres.liveness import Liveness
from troth.runtime.store.postgres.news import News
from troth.runtime.store.postgres.promise_queries import PostgresPromiseReader
from troth.runtime.store.postgres.readers import PostgresReaders
from troth.runtime.store.postgres.server_rows import PostgresServerRows
from troth.runtime.store.postgres.session_rows import PostgresSessionRows
from troth.runtime.store.postgres.transaction import PostgresTransaction, unheld_topic
from troth.runtime.store.records import Event, HistoryEntry, Recorded, RunRecord, RunState, Signal, StepRecord
from troth.runtime.store.rows.runs import owner_of
from troth.runtime.store.rows.server import ServerRows
from troth.runtime.store.rows.sessions import SessionRows
from troth.runtime.store.sqlite.store import STREAM_TRIM
from troth.runtime.store.sqlite.writer import Unit

__all__ = ["PostgresStore"]

T = TypeVar("T")

_ASK_TIME_EVERY = 10.0  # seconds; clocks that run on their own drift by far less than a heartbeat in that time
_open_stores: "weakref.WeakSet[PostgresStore]" = weakref.WeakSet()


class PostgresStore:
    """A store in a schema of a database. `patience` is how long it waits for a database that is away, in seconds.

    `read_only=True` looks at a store, also where nothing may be written, and refuses to write. With a `clock` of your
    own, which tests have, heartbeats go by that clock instead of the database's.
    """

    def __init__(
        self,
        url: str,
        *,
        patience: float = PATIENCE,
        clock: Callable[[], float] | None = None,
        read_only: bool = False,
    ) -> None:
        self._address = parse(url)
        self.address = url
        self.name = self._address.shown
        self.path = _folder() / hashlib.sha256(self.name.encode()).hexdigest()[:32] / "store"
        self.is_shared = True
        self.machine_lifetime = self._address.machine_lifetime
        self.beat_every = self._address.heartbeat
        self.is_read_only = read_only
        self._patience = patience
        self._is_closed = False
        self._database_clock = DatabaseClock()
        self.clock: Callable[[], float] = clock or self._database_clock
        self._liveness = Liveness(self._address.silence, self.clock, is_database_clock=clock is None)
        self._prepare()
        self._batches: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopBatch] = weakref.WeakKeyDictionary()
        self._given_away: list[LoopBatch] = []
        self.keeper = MaintenanceThread("troth-store")
        self._committer = MaintenanceThread("troth-commits")
        self.notices = Notifications(self._watch)
        self._news = News(
            lambda: connect(self._address),
            f"troth_{self._address.schema}"[:63],
            self.notices,
            self.name,
            can_listen=not self._address.is_pooled,
        )
        self._unheld = Notifier()
        self._hears_of_unheld = False
        self._nothing_unheld: dict[tuple[str, ...], tuple[tuple[int, frozenset[str]], float]] = {}
        self._last_entries = LastEntries()
        self._writer = self._new_writer()
        self._chore_writer = self._new_writer()
        self._horizon = Horizon("events")
        self._change_horizon = Horizon("state_changes")
        self._readers = PostgresReaders(self._address, self._is_committing_here, patience)
        self.promises = PostgresPromiseReader(self._readers, self._liveness)
        self.lists = StoreLists(self._ask, self._living, self._complete_changes)
        self.keeper.every(_ASK_TIME_EVERY, self._ask_time)
        _open_stores.add(self)

    def _prepare(self) -> None:
        """Make the tables, or bring them up to date; what is wrong with the address is said now.

        A server that is just being started or ended is waited for, as a commit does. One that is not there is not: the
        address may be wrong.
        """
        deadline = time.monotonic() + self._patience
        is_in, was_refused = False, False
        while True:
            try:
                with contextlib.closing(connect_plain(self._address)) as connection:
                    is_in = True
                    self._prepare_over(connection)
                    return
            except psycopg.Error as cause:
                if is_in:
                    is_waited_for = faults.is_unavailable(cause)
                elif (is_starting := faults.is_starting(self._address.conninfo)) is None:
                    is_waited_for = False
                else:  # if it lets others in, it may have come up since: it has to refuse us twice
                    is_waited_for = is_starting or not was_refused
                    was_refused = not is_starting
                if not is_waited_for or time.monotonic() >= deadline:
                    if faults.is_unavailable(cause) or isinstance(cause, psycopg.OperationalError):
                        raise _unopened(self.name, cause) from cause
                    raise faults.named(cause, self.name) from cause
            is_in = False
            time.sleep(random.uniform(0.05, 0.3))  # noqa: S311  so that workers do not come back all at once

    def _prepare_over(self, connection: "psycopg.Connection[Any]") -> None:
        self._address = dataclasses.replace(self._address, is_pooled=pooler.is_between(connection))
        version = schema.version_of(connection, self._address.schema)
        if version != schema.VERSION:
            if self.is_read_only:
                raise ReadOnlyStoreError(
                    f"The store {self.name} has to be created or migrated before it can be read."
                    "\nIt was not changed. Open it once for writing."
                )
            schema.migrate(connection, self._address.schema)
        if not self.is_read_only:
            for statement in (statements.FORGET_OLD_WRITERS, statements.FOLD_COUNTS):  # of those that are gone
                connection.execute(pooler.qualified(statement, self._address.schema).encode())
        self._database_clock.measure(lambda: _time_of(connection))

    def _connect_link(self) -> CommitConnection:
        # A worker that is stopped in the middle of a transaction would keep what it has locked forever. The server
        # ends its session when it would be taken for dead, so that whoever takes over does not wait for it.
        life = f"{int(self._address.silence * 1000)}ms"
        return CommitConnection(self._address, idle_in_transaction_session_timeout=life, lock_timeout="10s")

    def _new_writer(self) -> PostgresWriter:
        return PostgresWriter(
            *(self.name, self._connect_link, self._begin, self._committed, self._news.in_commit),
            *(self._last_entries, self._patience),
        )

    def _begin(self, link: CommitConnection, is_shared: bool) -> PostgresTransaction:  # noqa: FBT001  as `Begin` has it
        return PostgresTransaction(
            link, self._liveness, self._news.channel, is_shared=is_shared, appended=self._last_entries.note
        )

    def _committed(self, topics: set[str]) -> None:
        self.notices.publish(topics)
        self._news.tell(topics)

    def _is_committing_here(self) -> bool:
        return self._writer.is_committing_here() or self._chore_writer.is_committing_here()

    def _ask_time(self) -> None:
        self._database_clock.measure(lambda: self._readers.ask(_time_of))

    # Writing

    def commit(self, point: CommitPoint, work: Callable[[PostgresTransaction], T]) -> T:
        """Do `work` in a transaction and return its answer once it is kept. Blocks; may share the transaction.

        `work` may be done more than once: what it did before is then rolled back.
        """
        self._check_open()
        # Over a connection of their own: a heartbeat must not wait behind a commit that waits for a lock.
        writer = self._chore_writer if self.keeper.is_here else self._writer
        return writer.commit(point, work)

    @contextlib.contextmanager
    def transaction(self, point: CommitPoint) -> Iterator[PostgresTransaction]:
        """Several writes in one commit, as a block. Nothing inside may wait or run user code."""
        self._check_open()
        with self._writer.transaction(point) as tx:
            yield tx

    async def acommit(
        self,
        point: CommitPoint,
        work: Callable[[PostgresTransaction], T],
        *,
        is_large: bool = False,  # noqa: ARG002  nothing is written on the loop's thread
    ) -> T:
        """`commit` for a loop: what its tasks commit meanwhile shares one transaction, on the store's own thread.

        A cancelled `acommit` may have been kept all the same.
        """
        self._check_open()
        unit: Unit[T] = Unit(point, work)  # type: ignore[arg-type]  # a unit does not care whose transaction it is
        loop = asyncio.get_running_loop()
        batch = self._batches.get(loop)
        if batch is None:
            batch = self._batches[loop] = LoopBatch(loop)
            loop.call_soon(self._flush, loop)
        await batch.add(unit)
        return unit.outcome()

    def commit_at_once(self, work: Callable[[PostgresTransaction], T]) -> tuple[T] | None:  # noqa: ARG002
        """Nothing: to commit always means to wait for the database."""
        return None

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        # Into the writer's queue, so that a later commit cannot overtake it: a lease is given back after the answer
        # that was written under it.
        batch = self._batches.pop(loop)
        self._writer.enqueue(batch.units)
        self._given_away.append(batch)
        self._committer.soon(self._commit_given_away)

    def _commit_given_away(self) -> None:
        batches, self._given_away = self._given_away, []
        if not batches:
            return  # an earlier turn has taken them all
        error: Exception | None = None
        try:
            self._writer.commit_queued()
        except Exception as raised:  # noqa: BLE001  it belongs to those who await
            error = raised
        for batch in batches:
            batch.resolve_threadsafe(error)

    # Reading

    def run(self, run_id: str) -> RunRecord | None:
        """One run, with its state as it is now."""
        return self._readers.ask(lambda connection: queries.find_run(connection, run_id, self._liveness))

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
    ) -> list[RunRecord]:
        """Runs, newest first. `before` is the `(created_at, id)` of the last one of the page before."""
        wanted_states = None if states is None else list(states)
        return self._readers.ask(
            lambda connection: queries.find_runs(
                connection,
                self._liveness,
                states=wanted_states,
                decision=decision,
                label=label,
                parent=parent,
                family=family,
                word=word,
                before=before,
                limit=limit,
            )
        )

    def steps(self, run_id: str) -> Sequence[StepRecord]:
        """The steps of a run, in the order in which they were asked for."""
        return self.recorded(run_id).steps

    def recorded(self, run_id: str) -> Recorded:
        """The steps of a run, and those whose answers were taken back."""
        return self._readers.ask(lambda connection: queries.recorded(connection, run_id))

    def history(self, run_id: str, *, after: int = 0, limit: int = 1000) -> list[HistoryEntry]:
        """What has happened in a run since entry `after` of its history, as far as it is shown."""
        return self._readers.ask(lambda connection: queries.history_after(connection, run_id, after, limit))

    def last_entry(self, run_id: str) -> int:
        """The number of the last entry of a run's history; 0 if there is none."""
        return self._readers.ask(lambda connection: queries.last_entry(connection, run_id))

    def signals(self, run_id: str) -> list[Signal]:
        """The messages sent to a run, oldest first."""
        return self._readers.ask(lambda connection: queries.signals_of(connection, run_id))

    def events(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[Event]:
        """The entries of a stream that follow number `after`."""
        events = self._readers.ask(lambda connection: queries.events_after(connection, stream, after, limit))
        if events:
            self._last_entries.note(stream, events[-1].seq)
        return events

    def last_event(self, stream: str) -> int:
        """The number of the stream's last entry; 0 if it is empty."""
        return self._readers.ask(lambda connection: queries.last_event(connection, stream))

    def trimmed(self, stream: str) -> int:
        """The number of the last entry that was cut off from the beginning of a stream; 0 if none was."""
        return self._readers.ask(lambda connection: queries.trimmed(connection, stream))

    def trim(self, stream: str, keep: int) -> int:
        """Keep only the last `keep` entries of a stream, at least one; answers how many are gone. See `Store.trim`."""
        check_count("keep", keep)
        return self.commit(STREAM_TRIM, lambda tx: tx.trim(stream, keep))

    def events_of_all(self, prefix: str, *, after: int = 0, limit: int = 1000) -> list[Event]:
        """Entries of all streams whose names begin so, with an `id` above `after`, in the order of these ids.

        An entry is not told before every lower one is there: what others commit meanwhile can hold it back.
        """
        return self._readers.ask(
            lambda connection: queries.events_of_all(connection, prefix, after, self._horizon.ask(connection), limit)
        )

    def recent_streams(self, prefix: str, limit: int) -> list[str]:
        """The streams whose names begin so, those that were written to last first."""
        return self._readers.ask(lambda connection: queries.recent_streams(connection, prefix, limit))

    def holder(self, resource: str) -> Owner | None:
        """Whoever has the lease, dead or alive."""
        return self._readers.ask(lambda connection: queries.holder_of(connection, resource))

    def is_alive(self, owner: Owner) -> bool:
        """Whether an owner may still be at work."""
        return self._liveness.is_alive(owner)

    def orphans(self, decisions: Iterable[str], *, patience: float = 0.0) -> list[tuple[str, str]]:
        """Runs of these decisions that are not over and that nobody living holds, as (id, decision)."""
        names = sorted(decisions)
        return self._ask_for_unheld(names, patience, lambda *where: queries.orphans(where[0], names, where[1]))

    def unheld(self, prefix: str, *, patience: float = 0.0) -> list[str]:
        """The ids of runs that are not over and that nobody living holds, of decisions that begin so; oldest first."""
        return self._ask_for_unheld([prefix, "*"], patience, lambda *where: queries.unheld(where[0], prefix, where[1]))

    def open_decisions(self, prefix: str) -> list[str]:
        """The names of decisions that begin so and have runs that are not over."""
        return self._readers.ask(lambda connection: queries.open_decisions(connection, prefix))

    def _ask_for_unheld(
        self, names: list[str], patience: float, ask: "Callable[[psycopg.Connection[Any], list[str]], list[T]]"
    ) -> list[T]:
        """The runs that `ask` finds. It reads all that are not over; to see who lives, only the few owners are read."""
        if patience and not self._hears_of_unheld:
            self._hears_of_unheld = True
            self.notices.add(self._unheld, [unheld_topic])

        def question(connection: "psycopg.Connection[Any]") -> list[T]:
            rings, looked_at = self._unheld.count, time.monotonic()
            living = queries.living_owners(connection, self._liveness)
            seen = rings, frozenset(living)
            last = self._nothing_unheld.get(tuple(names))
            if last is not None and last[0] == seen and looked_at - last[1] < patience:
                return []
            runs = ask(connection, living)
            if not runs:
                self._nothing_unheld[tuple(names)] = seen, looked_at
            return runs

        return self._readers.ask(question)

    def cancelling(self) -> list[str]:
        """Runs that are to be cancelled and are not over."""
        return self._readers.ask(queries.cancelling)

    def signalled(self) -> list[str]:
        """Runs that wait although they were sent messages that nobody has taken."""
        return self._readers.ask(queries.signalled)

    def _ask(self, question: Callable[[Callable[..., Any]], T]) -> T:
        return self._readers.ask(lambda connection: question(Translated(connection)))

    def _living(self, execute: Callable[..., Any]) -> list[str]:
        return self._liveness.living(owner_of(row) for row in execute(statements.OWNERS).fetchall())

    def _complete_changes(self, execute: Callable[..., Any]) -> int:
        """The number of the last change that no other can come before any more."""
        assert isinstance(execute, Translated)
        return self._change_horizon.ask(execute.connection)

    def read_sessions(self, question: Callable[[SessionRows], T]) -> T:
        """The answer of `question`, which reads rows of governed sessions: each statement at one moment."""
        return self._readers.ask(lambda connection: question(PostgresSessionRows(connection.execute)))

    def read_server(self, question: Callable[[ServerRows], T]) -> T:
        """The answer of `question`, which reads rows of a server: each statement at one moment."""
        return self._readers.ask(lambda connection: question(PostgresServerRows(connection.execute, self._liveness)))

    # Being told

    def listening(self, bell: Notifier, *topics: str) -> contextlib.AbstractContextManager[Notifier]:
        """Ring `bell` for every commit that touches one of `topics`, as long as the block runs."""
        return self.notices.listening(bell, *topics)

    def chore(self, interval: float, task: Callable[[], object]) -> Callable[[], None]:
        """Do `task` every `interval` seconds on the store's own thread, until the answer is called."""
        chore = self.keeper.every(interval, task)
        return lambda: self.keeper.stop(chore)

    def _watch(self) -> None:
        self._news.listen()

    def wait_until_listening(self, timeout: float = 30.0) -> bool:
        """Begin to listen to other workers, and wait until that is so; answers whether it is. For tests."""
        self._news.listen()
        return self._news.wait_until_listening(timeout)

    # The end

    def _check_open(self) -> None:
        if self._is_closed:
            raise MisuseError(f"The store {self.name} is closed. Nothing was written; open it again.")
        if self.is_read_only:
            raise ReadOnlyStoreError(f"The store {self.name} was opened read-only, so nothing was written.")

    def _after_fork(self) -> None:
        for part in (self._writer, self._chore_writer, self._readers, self.keeper, self._committer, self.notices):
            part.after_fork()
        self._news.after_fork()
        self._given_away = []
        self._unheld = Notifier()
        self._hears_of_unheld = False

    def close(self) -> None:
        """Commit what was given to the store's thread, tell of it, and close every connection. May be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        self.keeper.close(self._patience)
        self._committer.close(self._patience)
        with contextlib.suppress(StoreError):
            self._writer.close()
        with contextlib.suppress(StoreError):
            self._chore_writer.close()
        self._news.close()
        self._readers.close()
        _open_stores.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _time_of(connection: "psycopg.Connection[Any]") -> float:
    row = connection.execute(statements.NOW).fetchone()
    assert row is not None
    return float(row[0])


def _folder() -> Path:
    """Where files lie that go with a store on this machine: the logs of jobs, for one."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "troth" / "stores"


def _unopened(where: str, cause: psycopg.Error) -> StoreError:
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return StoreError(
        f"The store {where} could not be opened: {lines[0]}\n"
        "Nothing was written. Check that the server is running and accepts this user: `psql` with the same address."
    )


def _forked() -> None:
    for store in list(_open_stores):
        store._after_fork()


def _close_all() -> None:
    for store in list(_open_stores):
        store.close()


os.register_at_fork(after_in_child=_forked)
atexit.register(_close_all)
