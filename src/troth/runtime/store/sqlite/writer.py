"""Commit: one connection under one lock, and many commits at once in one transaction.

This is the only module that begins or ends a transaction, and it cannot be asked to without a commit point. Whoever
gets the lock commits everything that has queued up meanwhile (group commit): with `synchronous=FULL` a hundred threads
share one fsync, and with NORMAL they share one write. A unit that fails is rolled back alone.
"""

import contextlib
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from troth.errors import MisuseError
from troth.runtime.store import failpoints
from troth.runtime.store.errors import FAULTS, StoreBusyError, StoreError, half_letter
from troth.runtime.store.failpoints import CommitPoint
from troth.runtime.store.sqlite.read_only import cannot_be_written, not_writable
from troth.runtime.store.sqlite.transaction import RunMemory, SqliteTransaction

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CHECKPOINT_EVERY", "SqliteWriter", "Unit"]

T = TypeVar("T")

CHECKPOINT_EVERY = 1000  # transactions; SQLite itself checkpoints about every 1000 pages
_forked: list[sqlite3.Connection] = []
"""Connections that came with a fork. They are the parent's: not used, not closed, never collected."""


class Unit(Generic[T]):
    """One piece of work that is committed whole or not at all, possibly together with others."""

    __slots__ = ("error", "is_settled", "point", "value", "work")

    def __init__(self, point: CommitPoint, work: Callable[[SqliteTransaction], T]) -> None:
        self.point = point
        self.work = work
        self.value: T | None = None
        self.error: BaseException | None = None
        self.is_settled = False

    def outcome(self) -> T:
        """What `work` returned, or what it raised."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]  # settled without an error: `work` has returned a T


class SqliteWriter:
    """The one connection that writes. Every method may be called from any thread."""

    def __init__(
        self,
        path: "Path",
        connect: Callable[[], sqlite3.Connection],
        committed: Callable[[set[str]], None],
        busy_timeout: float,
    ) -> None:
        self._path = path
        self._connect = connect
        self._committed = committed
        self._busy_timeout = busy_timeout
        self._fresh()

    def _fresh(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._queue: deque[Unit[Any]] = deque()
        self._connection: sqlite3.Connection | None = None
        self._holder: int | None = None
        self.since_checkpoint = 0
        self._seen_version: int | None = None
        self._numbers = RunMemory()

    def after_fork(self) -> None:
        """In the child: leave the parent's connection and locks alone, and start again."""
        if self._connection is not None:
            _forked.append(self._connection)
        self._fresh()

    def commit(self, point: CommitPoint, work: Callable[[SqliteTransaction], T]) -> T:
        """Commit `work`, with whatever else is queued; returns when it is kept. Waits for the lock and for the disk."""
        if self._lock.acquire(False):
            if not self._queue and not failpoints.armed:
                return self._alone(work, self._busy_timeout)
            unit = Unit(point, work)
            self._locked([unit], self._busy_timeout)
            return unit.outcome()
        unit = Unit(point, work)
        if self.is_committing_here():
            raise MisuseError(
                f"A commit ({unit.point.name!r}) was started inside another one of the same thread.\n"
                "It was not made: it would wait for itself. Write through the transaction that is already open."
            )
        self._queue.append(unit)
        self._lock.acquire()  # whoever holds it may commit our unit meanwhile
        if unit.is_settled:
            self._lock.release()
        else:
            self._locked([], self._busy_timeout)
        return unit.outcome()

    def is_committing_here(self) -> bool:
        """Whether this thread is in the middle of a commit's work."""
        return self._holder == threading.get_ident()

    def commit_alone_now(self, work: Callable[[SqliteTransaction], T]) -> T:
        """Commit one piece of work if that needs no waiting; if it does, StoreBusyError, and nothing is done."""
        if not self._lock.acquire(blocking=False):
            raise StoreBusyError("Another connection is writing.")
        if self._queue or failpoints.armed:
            self._lock.release()
            raise StoreBusyError("There is more to write than this.")
        return self._alone(work, 0.0)

    def _alone(self, work: Callable[[SqliteTransaction], T], patience: float) -> T:
        """Commit one piece of work that nobody else shares; the lock is held, and is given back.

        What `_locked` does for one unit while no failpoint is armed, with less ceremony: this is most commits.
        """
        topics: set[str] | None = None
        try:
            connection = self._connection or self._open()
            tx = self._tx
            execute = tx.execute
            try:
                execute("BEGIN IMMEDIATE")
            except FAULTS as error:
                self._begin_despite(error, connection, patience)
            self._holder = threading.get_ident()
            try:
                answer = work(tx)
                execute("COMMIT")
            except BaseException as error:
                self._roll_back(connection)
                tx.take_topics()
                if isinstance(error, FAULTS):
                    raise self._named(error) from error
                if isinstance(error, UnicodeEncodeError):
                    raise half_letter(error) from error
                raise
            self.since_checkpoint += 1
            if tx.topics:
                topics = tx.take_topics()
        finally:
            self._holder = None
            self._lock.release()
        if topics:
            self._committed(topics)
        return answer

    def commit_now(self, units: list[Unit[Any]]) -> bool:
        """Commit if that needs no waiting for anybody; otherwise do nothing and say so. For event loops."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self._locked(units, 0.0)
        except StoreBusyError:
            return False
        return True

    def enqueue(self, units: list[Unit[Any]]) -> None:
        """Have `units` committed by whoever commits next, before their own; `commit_queued` makes sure of it."""
        self._queue.extend(units)

    def commit_queued(self) -> None:
        """Commit what is queued, waiting as long as it takes; each unit keeps its own outcome."""
        self._lock.acquire()
        if self._queue:
            self._locked([], self._busy_timeout)
        else:
            self._lock.release()  # somebody was quicker

    @contextlib.contextmanager
    def transaction(self, point: CommitPoint) -> Iterator[SqliteTransaction]:
        """Several writes in one commit. Holds the writer's lock: nothing inside may wait or call user code."""
        with self._lock:
            connection = self._open()
            self._begin(connection, self._busy_timeout)
            tx = SqliteTransaction(connection, self._numbers)
            self._holder = threading.get_ident()
            try:
                failpoints.reach(point.before)
                yield tx
                failpoints.reach(point.written)
                self._end(connection)
            except BaseException:
                self._roll_back(connection)
                raise
            finally:
                self._holder = None
            failpoints.reach(point.after)
        if tx.topics:
            self._committed(tx.topics)

    def _drain(self) -> list[Unit[Any]]:
        units = []
        with contextlib.suppress(IndexError):
            while True:
                units.append(self._queue.popleft())
        return units

    def _locked(self, own: list[Unit[Any]], patience: float) -> None:
        """Commit `own` and what is queued; the lock is held, and is given back.

        Raises only if nothing was tried, or if this thread was interrupted. What had queued up is then queued again.
        """
        queued = self._drain() if self._queue else []
        topics: set[str] = set()
        try:
            topics = self._transact([*queued, *own] if queued else own, patience)
        except StoreError as error:
            if not patience and isinstance(error, StoreBusyError):
                raise
            _fail([*queued, *own], error)
        finally:
            self._queue.extendleft(unit for unit in reversed(queued) if not unit.is_settled)
            self._holder = None
            self._lock.release()
        if topics:
            self._committed(topics)

    def _transact(self, units: list[Unit[Any]], patience: float) -> set[str]:
        connection = self._open()
        self._begin(connection, patience)
        self._holder = threading.get_ident()
        tx = SqliteTransaction(connection, self._numbers)
        tried: list[Unit[Any]] = []
        try:
            for unit in units:
                if failpoints.armed:
                    failpoints.reach(unit.point.before)
                if self._attempt(unit, connection, tx, alone=len(units) == 1):
                    tried.append(unit)
            if failpoints.armed:
                for unit in tried:
                    failpoints.reach(unit.point.written)
            self._end(connection)
        except BaseException as error:
            refusal = self._named(error) if isinstance(error, FAULTS) else error
            # On a full disk SQLite itself rolls everything back, so that being in no transaction does not mean kept.
            if not connection.in_transaction and not isinstance(refusal, StoreError):
                _settle(tried)  # interrupted just after the commit: it is kept
                raise
            self._roll_back(connection)
            if isinstance(refusal, Exception):
                _fail(units, refusal)
                return set()
            raise  # Ctrl-C in the thread that leads: the others' units were only rolled back, and are queued again
        _settle(tried)
        if failpoints.armed:
            for unit in tried:
                failpoints.reach(unit.point.after)
        return tx.topics

    def _attempt(self, unit: Unit[Any], connection: sqlite3.Connection, tx: SqliteTransaction, *, alone: bool) -> bool:
        """Do one unit's work; on failure take back that unit's writes alone."""
        if not alone:
            connection.execute("SAVEPOINT unit")
        try:
            unit.value = unit.work(tx)
        except Exception as error:  # it belongs to the unit, and is raised to whoever asked for it
            if isinstance(error, FAULTS):
                error = self._named(error)
                if not connection.in_transaction:
                    raise error from error.__cause__  # everything was rolled back with it, the others' writes too
            elif isinstance(error, UnicodeEncodeError):
                error = half_letter(error)
            self._numbers.clear()
            if not alone:
                connection.execute("ROLLBACK TO unit")
                connection.execute("RELEASE unit")
            else:
                self._roll_back(connection)
                connection.execute("BEGIN")  # an empty transaction, so that the caller's end is the same
            unit.error = error
            unit.is_settled = True
            return False
        if not alone:
            connection.execute("RELEASE unit")
        return True

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        self._numbers.clear()  # of entries that are not there now
        if connection.in_transaction:
            connection.execute("ROLLBACK")

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
            self._tx = SqliteTransaction(self._connection, self._numbers)
        return self._connection

    def _begin(self, connection: sqlite3.Connection, patience: float) -> None:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except FAULTS as error:
            self._begin_despite(error, connection, patience)

    def _begin_despite(self, first: Exception, connection: sqlite3.Connection, patience: float) -> None:
        """Another process writes just now: try again, in short pauses that grow."""
        if not _is_busy(first):
            raise self._named(first) from first
        deadline = time.monotonic() + patience
        pause = 0.0005
        while time.monotonic() < deadline:
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)
            try:
                connection.execute("BEGIN IMMEDIATE")
            except FAULTS as error:
                if not _is_busy(error):
                    raise self._named(error) from error
            else:
                return
        raise StoreBusyError(
            f"{str(self._path)!r} was locked by another process for {patience:g} s. Nothing was written.\n"
            "A process that stopped in the middle of a transaction (a debugger, a shell with an open BEGIN) causes "
            "this; "
            "end it, or raise `busy_timeout`."
        ) from first

    def _end(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("COMMIT")
        except FAULTS as error:
            raise self._named(error) from error
        self.since_checkpoint += 1

    def _named(self, error: Exception) -> StoreError:
        if cannot_be_written(error):
            return not_writable(self._path, error)
        store_error = StoreError(
            f"The store {str(self._path)!r} could not be written: {error}. This commit was not kept.\n"
            "What was committed before is safe. Check the free space of the disk."
        )
        store_error.__cause__ = error
        return store_error

    @property
    def wants_checkpoint(self) -> bool:
        """Whether enough was written that the log should be folded into the file."""
        return self.since_checkpoint >= CHECKPOINT_EVERY

    def checkpoint(self) -> None:
        """Fold the log into the file, if nobody needs it otherwise; with the disk's fsync, so never on a loop.

        On the writer's own connection and under its lock: a checkpoint beside a writer, from another connection, is
        where SQLite had its rare WAL-reset fault.
        """
        with self._lock:
            self.since_checkpoint = 0
            connection = self._open()
            # Busy: another process is at it; next time. Damaged, or the disk is full: whoever commits next is told.
            with contextlib.suppress(*FAULTS):
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def has_foreign_changes(self) -> bool:
        """Whether another process may have committed since the last look; the first look cannot tell, so it may.

        Answers no while the writer is in use: the next look tells.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            version: int = self._open().execute("PRAGMA data_version").fetchone()[0]
        except FAULTS as error:
            raise StoreError(f"The store {str(self._path)!r} could not be read: {error}.") from error
        else:
            is_changed = version != self._seen_version
            self._seen_version = version
            return is_changed
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the connection, after whoever is writing."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def _settle(units: Sequence[Unit[Any]]) -> None:
    for unit in units:
        unit.is_settled = True


def _fail(units: Sequence[Unit[Any]], error: BaseException) -> None:
    for unit in units:
        if not unit.is_settled:
            unit.error = error
            unit.is_settled = True


def _is_busy(error: Exception) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
