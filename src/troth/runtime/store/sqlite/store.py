"""Keep everything in one SQLite file, from any thread, any loop and several processes at once.

`synchronous="NORMAL"` (the default) survives `kill -9` of every process at any instant; a power cut may take the last
moments, never the file's consistency. `synchronous="FULL"` survives the power cut too, at the price of one fsync per
group of commits; a loop's commits then go to the store's own thread.
"""

import asyncio
import atexit
import contextlib
import math
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, Self, TypeVar

from troth.errors import MisuseError
from troth.runtime.arguments import check_count, check_path, check_seconds
from troth.runtime.store.errors import FAULTS, ReadOnlyStoreError, StoreBusyError, StoreError, UnsupportedSqliteError
from troth.runtime.store.failpoints import CommitPoint, commit_point
from troth.runtime.store.identity import BEAT_EVERY, Owner, is_alive
from troth.runtime.store.lists import StoreLists
from troth.runtime.store.loop_batch import LoopBatch
from troth.runtime.store.maintenance_thread import Chore, MaintenanceThread
from troth.runtime.store.notifications import Notifications, Notifier
from troth.runtime.store.records import Event, HistoryEntry, Recorded, RunRecord, RunState, Signal, StepRecord
from troth.runtime.store.rows.promise_queries import PromiseReader
from troth.runtime.store.rows.runs import text_or_bytes
from troth.runtime.store.rows.server import ServerRows
from troth.runtime.store.rows.sessions import SessionRows
from troth.runtime.store.sqlite import queries, schema
from troth.runtime.store.sqlite.message_index import (
    MESSAGES_INDEX,
    MessageIndex,
    can_index,
    index_messages,
    is_behind,
)
from troth.runtime.store.sqlite.read_only import cannot_be_written, not_writable, open_for_reading
from troth.runtime.store.sqlite.readers import SqliteReaders
from troth.runtime.store.sqlite.transaction import SqliteTransaction
from troth.runtime.store.sqlite.writer import CHECKPOINT_EVERY, SqliteWriter, Unit

__all__ = ["SqliteStore"]

T = TypeVar("T")

STREAM_TRIM = commit_point("stream.trim", "which entries of a stream are gone, and up to where")
STORE_MIGRATE = commit_point("store.migrate", "the tables of a new file, or of an older version brought to today's")

_LOOK_EVERY = 0.05  # seconds between looks for commits of other processes, while somebody waits
_INDEX_EVERY = 0.02  # seconds between two pieces of the index, which are for whoever else writes
_INDEX_FROM = 1000  # entries that are looked through at each search rather than put into the index
_IDLE_LOOKS = 20  # looks for nobody, after which the looking ends
_open_stores: "weakref.WeakSet[SqliteStore]" = weakref.WeakSet()


class SqliteStore:
    """A store in one file. Reads and `commit` block shortly; `acommit` is for loops. Close it, or use `with`.

    `read_only=True` looks at a file, also where neither it nor its folder can be written, and refuses to write.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: Literal["NORMAL", "FULL"] = "NORMAL",
        busy_timeout: float = 10.0,
        clock: Callable[[], float] = time.time,
        read_only: bool = False,
    ) -> None:
        check_path("path", path)
        check_seconds("busy_timeout", busy_timeout, may_be_none=False)
        if str(path) in {"", ":memory:"}:
            raise MisuseError(
                f"A store cannot live at {str(path)!r}: it has to outlive the process, which memory does not.\n"
                "Name a file; for a test, one in a temporary directory."
            )
        if synchronous not in {"NORMAL", "FULL"}:
            raise MisuseError(f"`synchronous` is {synchronous!r}; it can be 'NORMAL' or 'FULL'.")
        self.path = Path(path).absolute()
        self.name = self.address = str(self.path)
        self.is_shared = False
        self.machine_lifetime = math.inf
        self.beat_every = BEAT_EVERY
        self.synchronous = synchronous
        self.clock = clock
        self._file = open_for_reading(self.path) if read_only else None
        self._busy_timeout = busy_timeout
        self._is_closed = False
        self._looking = threading.Lock()
        self._look: Chore | None = None
        self._idle_looks = 0
        self._batches: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopBatch] = weakref.WeakKeyDictionary()
        self._given_away: list[LoopBatch] = []
        self.keeper = MaintenanceThread("troth-store")
        self.notices = Notifications(self._watch)
        self._writer = SqliteWriter(self.path, self._connect, self.notices.publish, busy_timeout)
        self._readers = SqliteReaders(self._connect_reader, self.path, self._writer.is_committing_here)
        self.promises = PromiseReader(self._readers)
        self.lists = StoreLists(self._ask, self._living, index=MessageIndex(), after_search=self._index_soon)
        self._indexing: Chore | None = None
        try:
            self._prepare()
        except BaseException:
            self._writer.close()
            if self._file is not None:
                self._file.close()
            raise
        _open_stores.add(self)

    def _prepare(self) -> None:
        with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
            schema.probe(memory)
        if not self.path.parent.is_dir():
            raise MisuseError(
                f"The store {str(self.path)!r} cannot be made: the directory {str(self.path.parent)!r} does not exist."
            )
        if self._file is not None:
            if schema.inspect_file(self._file.path) != schema.VERSION:
                raise ReadOnlyStoreError(
                    f"The store {str(self.path)!r} was written by an older version of Troth, and has to be migrated "
                    "before it can be read.\nIt was not changed. Open it, or a copy of it, once for writing."
                )
        elif schema.inspect_file(self.path) != schema.VERSION:
            self._writer.commit(STORE_MIGRATE, lambda tx: tx.migrate())
        else:
            self._writer.has_foreign_changes()  # opens the connection, so what is wrong is said now

    def _connect(self) -> sqlite3.Connection:
        if self._file is not None:
            return self._connect_reader()
        try:
            # Timeout 0: the writer does the waiting itself, because a loop must not wait at all.
            connection = sqlite3.connect(self.path, timeout=0.0, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA busy_timeout = 5000")
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                connection.close()
                raise UnsupportedSqliteError(
                    f"{str(self.path)!r} is in a place where SQLite cannot use a write-ahead log (it returned "
                    f"{mode!r}).\n"
                    "Nothing was written. Network file systems cause this; name a file on a local disk."
                )
            connection.execute(f"PRAGMA synchronous = {self.synchronous}")
            connection.execute("PRAGMA wal_autocheckpoint = 0")  # its fsync would fall on whoever commits, also a loop
            connection.execute("PRAGMA busy_timeout = 0")
            connection.text_factory = text_or_bytes
        except FAULTS as cause:
            if cannot_be_written(cause) and self.path.exists():
                raise not_writable(self.path, cause) from cause
            raise StoreError(f"The store {str(self.path)!r} could not be opened: {cause}.") from cause
        return connection

    def _connect_reader(self) -> sqlite3.Connection:
        if self._is_closed:
            raise MisuseError(f"The store {str(self.path)!r} is closed. Open it again to read from it.")
        connection = sqlite3.connect(
            self.path if self._file is None else self._file.uri,
            timeout=self._busy_timeout,
            isolation_level=None,
            check_same_thread=False,
            uri=self._file is not None,
        )
        connection.execute("PRAGMA query_only = 1")
        connection.text_factory = text_or_bytes
        return connection

    # Writing

    def commit(self, point: CommitPoint, work: Callable[[SqliteTransaction], T]) -> T:
        """Do `work` in a transaction and return its answer once it is kept. Blocks; may share the transaction."""
        if self._is_closed or self._file is not None:
            self._check_open()
        writer = self._writer
        answer = writer.commit(point, work)
        if writer.since_checkpoint >= CHECKPOINT_EVERY:
            writer.checkpoint()
        return answer

    @contextlib.contextmanager
    def transaction(self, point: CommitPoint) -> Iterator[SqliteTransaction]:
        """Several writes in one commit, as a block. Nothing inside may wait or run user code."""
        self._check_open()
        with self._writer.transaction(point) as tx:
            yield tx

    async def acommit(self, point: CommitPoint, work: Callable[[SqliteTransaction], T], *, is_large: bool = False) -> T:
        """`commit` for a loop: what its tasks commit in one turn of the loop shares one transaction.

        With NORMAL it is written on the loop's thread if nobody else is writing and none of it is large, which takes
        microseconds; in every other case on the store's thread. A cancelled `acommit` may have been kept all the same.
        """
        self._check_open()
        unit = Unit(point, work)
        loop = asyncio.get_running_loop()
        batch = self._batches.get(loop)
        if batch is None:
            batch = self._batches[loop] = LoopBatch(loop)
            loop.call_soon(self._flush, loop)
        if is_large:
            batch.is_large = True
        await batch.add(unit)
        return unit.outcome()

    def commit_at_once(self, work: Callable[[SqliteTransaction], T]) -> tuple[T] | None:
        """`commit` for a loop with one task that commits: now, if that needs no waiting for anybody or for the disk.

        Otherwise nothing is done and nothing is answered; then `acommit`.
        """
        if self._is_closed or self.synchronous != "NORMAL" or self._file is not None:
            return None
        try:
            answer = self._writer.commit_alone_now(work)
        except StoreBusyError:
            return None
        if self._writer.since_checkpoint >= CHECKPOINT_EVERY:
            self._checkpoint_soon()
        return (answer,)

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        batch = self._batches.pop(loop)
        try:
            is_committed = self.synchronous == "NORMAL" and not batch.is_large and self._writer.commit_now(batch.units)
        except BaseException as error:
            batch.resolve(error)
            if isinstance(error, Exception):
                return  # whoever awaits has heard of it
            raise
        if is_committed:
            self._checkpoint_soon()
            batch.resolve()
        else:
            # Into the writer's queue, so that a later commit cannot overtake it: a lease is given back after the
            # answer that was written under it.
            self._writer.enqueue(batch.units)
            self._given_away.append(batch)
            self.keeper.soon(self._commit_given_away)

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
        if self._writer.wants_checkpoint:
            self._writer.checkpoint()

    def _checkpoint_soon(self) -> None:
        if self._writer.wants_checkpoint:
            self.keeper.soon(self._checkpoint_if_wanted)

    def _checkpoint_if_wanted(self) -> None:
        if self._writer.wants_checkpoint:
            self._writer.checkpoint()

    # Reading

    def run(self, run_id: str) -> RunRecord | None:
        """One run, with its state as it is now."""
        with self._readers.lend() as connection:
            return queries.find_run(connection, run_id, self.clock())

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
        with self._readers.lend() as connection:
            return queries.find_runs(
                connection,
                self.clock(),
                states=states,
                decision=decision,
                label=label,
                parent=parent,
                family=family,
                word=word,
                before=before,
                limit=limit,
            )

    def steps(self, run_id: str) -> Sequence[StepRecord]:
        """The steps of a run, in the order in which they were asked for."""
        return self.recorded(run_id).steps

    def recorded(self, run_id: str) -> Recorded:
        """The steps of a run, and those whose answers were taken back."""
        with self._readers.lend() as connection:
            return queries.recorded(connection, run_id)

    def history(self, run_id: str, *, after: int = 0, limit: int = 1000) -> list[HistoryEntry]:
        """What has happened in a run since entry `after` of its history, as far as it is shown."""
        with self._readers.lend() as connection:
            return queries.history_after(connection, run_id, after, limit)

    def last_entry(self, run_id: str) -> int:
        """The number of the last entry of a run's history; 0 if there is none."""
        with self._readers.lend() as connection:
            return queries.last_entry(connection, run_id)

    def signals(self, run_id: str) -> list[Signal]:
        """The messages sent to a run, oldest first."""
        with self._readers.lend() as connection:
            return queries.signals_of(connection, run_id)

    def events(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[Event]:
        """The entries of a stream that follow number `after`."""
        with self._readers.lend() as connection:
            return queries.events_after(connection, stream, after, limit)

    def last_event(self, stream: str) -> int:
        """The number of the stream's last entry; 0 if it is empty."""
        with self._readers.lend() as connection:
            return queries.last_event(connection, stream)

    def trimmed(self, stream: str) -> int:
        """The number of the last entry that was cut off from the beginning of a stream; 0 if none was."""
        with self._readers.lend() as connection:
            return queries.trimmed(connection, stream)

    def trim(self, stream: str, keep: int) -> int:
        """Keep only the last `keep` entries of a stream, at least one; answers how many are gone. See `Store.trim`."""
        check_count("keep", keep)
        return self.commit(STREAM_TRIM, lambda tx: tx.trim(stream, keep))

    def recent_streams(self, prefix: str, limit: int) -> list[str]:
        """The streams whose names begin so, those that were written to last first."""
        with self._readers.lend() as connection:
            return queries.recent_streams(connection, prefix, limit)

    def events_of_all(self, prefix: str, *, after: int = 0, limit: int = 1000) -> list[Event]:
        """Entries of all streams whose names begin so, with an `id` above `after`, in the order of these ids."""
        with self._readers.lend() as connection:
            return queries.events_of_all(connection, prefix, after, limit)

    def holder(self, resource: str) -> Owner | None:
        """Whoever has the lease, dead or alive."""
        with self._readers.lend() as connection:
            return queries.holder_of(connection, resource)

    def is_alive(self, owner: Owner) -> bool:
        """Whether an owner may still be at work."""
        return is_alive(owner, self.clock())

    def orphans(self, decisions: Iterable[str], *, patience: float = 0.0) -> list[tuple[str, str]]:  # noqa: ARG002
        """Runs of these decisions that are not over and that nobody living holds, as (id, decision)."""
        with self._readers.lend() as connection:
            return queries.orphans(connection, decisions, self.clock())

    def unheld(self, prefix: str, *, patience: float = 0.0) -> list[str]:  # noqa: ARG002
        """The ids of runs that are not over and that nobody living holds, of decisions that begin so; oldest first."""
        with self._readers.lend() as connection:
            return queries.unheld(connection, prefix, self.clock())

    def open_decisions(self, prefix: str) -> list[str]:
        """The names of decisions that begin so and have runs that are not over."""
        with self._readers.lend() as connection:
            return queries.open_decisions(connection, prefix)

    def cancelling(self) -> list[str]:
        """Runs that are to be cancelled and are not over."""
        with self._readers.lend() as connection:
            return queries.cancelling(connection)

    def signalled(self) -> list[str]:
        """Runs that wait although they were sent messages that nobody has taken."""
        with self._readers.lend() as connection:
            return queries.signalled(connection)

    def _ask(self, question: Callable[[Callable[..., sqlite3.Cursor]], T]) -> T:
        with self._readers.lend() as connection:
            connection.text_factory = str  # a function of ours, called for each text, costs a quarter of a list
            try:
                return question(connection.execute)
            except sqlite3.OperationalError:
                connection.text_factory = text_or_bytes  # a text may be none; anything else fails again
                return question(connection.execute)
            finally:
                connection.text_factory = text_or_bytes

    def _living(self, execute: Callable[..., sqlite3.Cursor]) -> list[str]:
        return queries.living_owners(execute, self.clock())

    def read_sessions(self, question: Callable[[SessionRows], T]) -> T:
        """The answer of `question`, which reads rows of governed sessions: each statement at one moment."""
        with self._readers.lend() as connection:
            return question(SessionRows(connection.execute))

    def read_server(self, question: Callable[[ServerRows], T]) -> T:
        """The answer of `question`, which reads rows of a server: each statement at one moment."""
        with self._readers.lend() as connection:
            return question(ServerRows(connection.execute))

    # Being told

    def listening(self, bell: Notifier, *topics: str) -> contextlib.AbstractContextManager[Notifier]:
        """Ring `bell` for every commit that touches one of `topics`, as long as the block runs."""
        return self.notices.listening(bell, *topics)

    def chore(self, interval: float, task: Callable[[], object]) -> Callable[[], None]:
        """Do `task` every `interval` seconds on the store's own thread, until the answer is called."""
        chore = self.keeper.every(interval, task)
        return lambda: self.keeper.stop(chore)

    def _watch(self) -> None:
        """Look abroad from now on. The looking ends by itself: to wake the store's thread for every run is dear."""
        with self._looking:
            self._idle_looks = 0
            if self._look is None:
                self._look = self.keeper.every(_LOOK_EVERY, self._look_abroad)

    def _look_abroad(self) -> None:
        with self._looking:
            self._idle_looks = 0 if self.notices.is_listened_to else self._idle_looks + 1
            if self._idle_looks > _IDLE_LOOKS and self._look is not None:
                self.keeper.stop(self._look)
                self._look = None
                return
        if self._writer.has_foreign_changes():
            self.notices.publish_all()

    # Searching

    def _index_soon(self) -> None:
        """After a search: let the index of messages reach what has come since, on the store's own thread."""
        if self._file is not None or not can_index() or not self._ask(lambda execute: is_behind(execute, _INDEX_FROM)):
            return
        with self._looking:
            if self._indexing is None:
                self._indexing = self.keeper.every(_INDEX_EVERY, self._index_more)

    def _index_more(self) -> None:
        has_more = False
        try:
            has_more = index_messages(self._ask, lambda work: self.commit(MESSAGES_INDEX, work))
        except MisuseError:
            if not self._is_closed:
                raise
            # It was closed meanwhile; whoever searches next lets it go on from there.
        finally:
            if not has_more:
                with self._looking:
                    if self._indexing is not None:
                        self.keeper.stop(self._indexing)
                    self._indexing = None

    # The end

    def _check_open(self) -> None:
        if self._is_closed:
            raise MisuseError(f"The store {str(self.path)!r} is closed. Nothing was written; open it again.")
        if self._file is not None:
            raise ReadOnlyStoreError(f"The store {str(self.path)!r} was opened read-only, so nothing was written.")

    def _after_fork(self) -> None:
        self._writer.after_fork()
        self._readers.after_fork()
        self.notices.after_fork()
        self._looking = threading.Lock()
        self._look = self._indexing = None
        self._given_away = []

    def close(self) -> None:
        """Write what was given to the store's thread, fold the log into the file, and close it. May be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        self.keeper.close(self._busy_timeout)
        if self._file is None:
            self._writer.checkpoint()
        self._writer.close()
        self._readers.close()
        if self._file is not None:
            self._file.close()
        _open_stores.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _forked() -> None:
    for store in list(_open_stores):
        store._after_fork()


def _close_all() -> None:
    for store in list(_open_stores):
        store.close()


os.register_at_fork(after_in_child=_forked)
atexit.register(_close_all)
