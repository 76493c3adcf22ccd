"""Commit over one connection: what has queued up shares a transaction, and what fails is done again.

Whoever asks for a commit puts a unit into the queue and takes the lock. The thread that gets it commits all that has
queued up meanwhile, up to a hundred units; the others find theirs settled. Units stay in their order. The same shape
as the writer of the file (`store/sqlite/writer.py`), with three differences.

- There is a short way. An ordinary step of a run, and ordinary entries of a log, need no transaction around them: one
  statement proves the lease and writes (`ordinary_steps.py`, `ordinary_appends.py`). Steps of different runs that
  follow one another in the queue share one statement. A lease that was lost refuses its own step and no other. What
  the short way refuses has written nothing, and goes the long way.
- Other workers commit at the same time. A commit that met them (a deadlock, a number taken) is done again after a
  random pause; those that shared its transaction are then committed one by one, so that one does not fail for
  another.
- The connection can be lost. Before COMMIT was sent, nothing was kept, and all is done again over a new one. Lost in
  COMMIT, the database is asked by the number of the transaction whether it was kept, and nobody is told anything
  before it has answered. A statement of the short way has no such number, so it notes one that the worker gives it in
  a row of its connection; deleting that row waits for the statement, and tells whether it was kept.

So the work of a unit may be called more than once, and may write only through its transaction. What it raises itself
is its own error, and is raised to the one who asked. Ctrl-C in the thread that leads rolls back the units of the
others, which are then queued again.
"""

import contextlib
import itertools
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import psycopg

from troth.errors import MisuseError
from troth.runtime.store import failpoints
from troth.runtime.store.errors import StoreError, half_letter
from troth.runtime.store.failpoints import CommitPoint
from troth.runtime.store.list_records import changes_topic
from troth.runtime.store.postgres import faults, statements
from troth.runtime.store.postgres.commits.ordinary_appends import LastEntries, OrdinaryAppend, ordinary_append
from troth.runtime.store.postgres.commits.ordinary_steps import OrdinaryStep, ordinary_step
from troth.runtime.store.postgres.faults import UnknownOutcomeError
from troth.runtime.store.postgres.link import CommitConnection
from troth.runtime.store.postgres.transaction import PostgresTransaction, lost
from troth.runtime.store.rows.conversations import CONVERSATIONS
from troth.runtime.store.sqlite.transaction import history_topic, stream_topic
from troth.runtime.store.sqlite.writer import Unit

__all__ = ["PATIENCE", "PostgresWriter"]

T = TypeVar("T")
Begin = Callable[[CommitConnection, bool], PostgresTransaction]
"""Begin a transaction; the second value says whether several pieces of work share it."""

PATIENCE = 30.0
"""Seconds that a commit waits for a database that is restarted, fails over, or has no connection left."""

_TRIES = 10  # of work that met other workers
_MOST = 100  # units in one transaction: more would hold what they locked for too long


class PostgresWriter:
    """A connection that commits. Every method may be called from any thread."""

    def __init__(
        self,
        where: str,
        connect: Callable[[], CommitConnection],
        begin: Begin,
        committed: Callable[[set[str]], None],
        message: Callable[[set[str]], str | None],
        last_entries: LastEntries,
        patience: float = PATIENCE,
    ) -> None:
        self._last_entries = last_entries
        self._where = where
        self._connect = connect
        self._begin = begin
        self._committed = committed
        self._message = message
        self._patience = patience
        self._abandoned: list[CommitConnection] = []
        self._statements = itertools.count(1)
        self._fresh()

    def _fresh(self) -> None:
        self._lock = threading.Lock()
        self._queue: deque[Unit[Any]] = deque()
        self._link: CommitConnection | None = None
        self._holder: int | None = None

    def after_fork(self) -> None:
        """In the child: the connection is the parent's, not to be used and not to be closed."""
        if self._link is not None:
            self._abandoned.append(self._link)
        self._fresh()

    def is_committing_here(self) -> bool:
        """Whether this thread is in the middle of a commit's work."""
        return self._holder == threading.get_ident()

    def commit(self, point: CommitPoint, work: Callable[[PostgresTransaction], T]) -> T:
        """Commit `work`, with whatever else is queued; returns when it is kept."""
        if self._holder == threading.get_ident():
            raise MisuseError(
                f"A commit ({point.name!r}) was started inside another one of the same thread.\n"
                "It was not made: it would wait for itself. Write through the transaction that is already open."
            )
        is_short = point.is_step or point.is_append
        if is_short and not self._queue and not failpoints.armed and self._lock.acquire(blocking=False):
            self._holder = threading.get_ident()
            try:
                answer = self._commit_step_alone(point, work) if point.is_step else self._append_alone(point, work)
            finally:
                self._holder = None
                self._lock.release()
            if answer is not None:
                return answer[0]
        unit: Unit[T] = Unit(point, work)  # type: ignore[arg-type]  # a unit does not care whose transaction it is
        self._queue.append(unit)
        with self._lock:  # whoever holds it may commit our unit meanwhile
            while not unit.is_settled:
                self._commit_some()
        return unit.outcome()

    def _commit_step_alone(self, point: CommitPoint, work: Callable[[PostgresTransaction], T]) -> tuple[T] | None:
        """Commit `work` and nothing else, if it is an ordinary step. Nothing was kept where there is no answer.

        Nearly all commits of a program that carries out one run come here, so it does without a queue and a unit.
        """
        link = self._link
        step = None if link is None else ordinary_step(work)
        if link is None or step is None or step.settled is None:
            return None
        number = f"statement {next(self._statements)}"
        try:
            is_requested = link.commit_step(number, step)
        except BaseException as error:  # noqa: BLE001  it is raised again where it is not the database's
            unit: Unit[T] = Unit(point, work)  # type: ignore[arg-type]
            if not self._recover_steps([(unit, step)], link, number, error):
                return None
            return (unit.outcome(),)
        if is_requested is None:
            raise lost(step.resource)
        self._committed({history_topic(step.run_id)})
        return (is_requested,)  # type: ignore[return-value]  # what `begin_held_step` answers, and so the work

    def _append_alone(self, point: CommitPoint, work: Callable[[PostgresTransaction], T]) -> tuple[T] | None:
        """The same for ordinary entries of a log."""
        unit: Unit[T] = Unit(point, work)  # type: ignore[arg-type]
        return (unit.outcome(),) if self._commit_append(unit) else None

    def enqueue(self, units: Sequence[Unit[Any]]) -> None:
        """Have `units` committed by whoever commits next, before their own; `commit_queued` makes sure of it."""
        self._queue.extend(units)

    def commit_queued(self) -> None:
        """Commit what is queued, waiting as long as it takes; each unit keeps its own outcome."""
        with self._lock:
            while self._queue:
                self._commit_some()

    def _commit_some(self) -> None:
        """Commit the oldest of what is queued. The lock is held, so nobody else takes anything out."""
        queue = self._queue
        units = [queue.popleft() for _ in range(min(len(queue), _MOST))]
        try:
            self._commit_all(units)
        finally:
            # Ctrl-C in the thread that leads: the others' units were only rolled back, and are queued again.
            for unit in reversed(units):
                if not unit.is_settled:
                    queue.appendleft(unit)
            self._holder = None

    def _commit_all(self, units: list[Unit[Any]]) -> None:
        """Commit in their order: steps by one statement, as many as follow one another, and the rest between them."""
        steps: dict[str, tuple[Unit[Any], OrdinaryStep]] = {}  # by their runs: a run's next step comes after its last
        others: list[Unit[Any]] = []
        for unit in units:
            self._holder = threading.get_ident()
            if unit.point.is_append:
                self._commit_steps(steps)
                self._commit_the_long_way(others)
                if self._commit_append(unit):
                    continue
            step = ordinary_step(unit.work) if unit.point.is_step else None
            if step is None:
                self._commit_steps(steps)
                others.append(unit)
            else:
                self._commit_the_long_way(others)
                if step.run_id in steps:
                    self._commit_steps(steps)
                steps[step.run_id] = (unit, step)
        self._commit_steps(steps)
        self._commit_the_long_way(others)

    def _commit_the_long_way(self, units: list[Unit[Any]]) -> None:
        """Commit units in one transaction, or each in one if that cannot be; then there are none."""
        if not units:
            return
        waiting, units[:] = list(units), []
        if len(waiting) > 1:
            with contextlib.suppress(_ShareNoMoreError):
                self._persist(waiting)
                return
        for unit in waiting:
            if not unit.is_settled:
                self._persist([unit])

    def _commit_steps(self, steps: dict[str, tuple[Unit[Any], OrdinaryStep]]) -> None:
        """Commit ordinary steps of different runs by one statement, or the long way; then there are none."""
        if not steps:
            return
        waiting = list(steps.values())
        steps.clear()
        if not self._send_steps(waiting):
            self._commit_the_long_way([unit for unit, _ in waiting])

    def _send_steps(self, steps: list[tuple[Unit[Any], OrdinaryStep]]) -> bool:
        """Whether `steps` are settled. If not, nothing of them was kept."""
        try:
            if failpoints.armed:
                for unit, _ in steps:
                    failpoints.reach(unit.point.before)
                    failpoints.reach(unit.point.written)
            return self._try_steps(steps)
        except _LostError:
            return False
        except Exception as refused:
            if all(unit.is_settled for unit, _ in steps):
                raise  # a failpoint after the commit
            _fail([unit for unit, _ in steps], refused)
            return True

    def _try_steps(self, steps: list[tuple[Unit[Any], OrdinaryStep]]) -> bool:
        """Whether one statement has committed `steps`."""
        link, number = self._open(), f"statement {next(self._statements)}"
        try:
            answers = link.commit_steps(number, [step for _, step in steps])
        except BaseException as error:  # noqa: BLE001  it is raised again where it is not the database's
            return self._recover_steps(steps, link, number, error)
        self._settle_steps(steps, answers)
        return True

    def _recover_steps(
        self, steps: list[tuple[Unit[Any], OrdinaryStep]], link: CommitConnection, number: str, error: BaseException
    ) -> bool:
        """Whether the statement `number` has committed `steps` though it raised `error`; raises what is not its own."""
        if not isinstance(error, psycopg.Error):
            # Ctrl-C: psycopg has tried to cancel the statement, and has waited for its end
            is_kept = not link.connection.closed and link.call_off(link.id, number)
            self._drop(link)
            if is_kept:
                self._settle_steps(steps, None)
            raise error
        if not faults.is_disconnected(error, link.connection):
            return False  # it met other workers, say
        self._link = None
        link.connection.close()  # and no more: the row that tells what became of the statement is asked for now
        is_kept = self._was_decided(lambda asking: asking.call_off(link.id, number), number, error)
        if is_kept:
            self._settle_steps(steps, None)
        return is_kept

    def _commit_append(self, unit: Unit[Any]) -> bool:
        """Whether `unit` is settled by one statement. If not, nothing of it was kept."""
        append = ordinary_append(unit.work, self._last_entries)
        if append is None:
            return False
        try:
            if failpoints.armed:
                failpoints.reach(unit.point.before)
                failpoints.reach(unit.point.written)
            if not self._try_append(append):
                self._last_entries.forget(append.stream)
                return False
        except _LostError:
            return False
        except Exception as refused:  # noqa: BLE001  it belongs to who asked, and is raised there
            _fail([unit], refused)
            return True
        unit.value, unit.is_settled = append.answer, True
        self._last_entries.note(append.stream, append.last + len(append.entries))
        if failpoints.armed:
            failpoints.reach(unit.point.after)
        topics = {stream_topic(append.stream)}
        if append.stream.startswith(CONVERSATIONS):
            topics.add(changes_topic)
        self._committed(topics)
        return True

    def _try_append(self, append: OrdinaryAppend) -> bool:
        """Whether one statement has committed it."""
        link, number = self._open(), f"statement {next(self._statements)}"
        try:
            return link.commit_append(number, append)
        except psycopg.Error as error:
            if not faults.is_disconnected(error, link.connection):
                return False  # it met other workers, say
            self._link = None
            link.connection.close()  # and no more: the row that tells what became of the statement is asked for now
            return self._was_decided(lambda asking: asking.call_off(link.id, number), number, error)
        except BaseException:  # Ctrl-C: psycopg has tried to cancel the statement, and has waited for its end
            self._drop(link)
            raise

    def _settle_steps(self, steps: list[tuple[Unit[Any], OrdinaryStep]], answers: dict[int, bool] | None) -> None:
        """Tell each what came of it. Without answers, all that had their leases were kept: so ask who has one now."""
        for index, (unit, step) in enumerate(steps):
            if answers is None:
                asking: Unit[Any] = Unit(unit.point, lambda tx, step=step: tx.hold_run(*step[:3]))  # type: ignore[misc]
                self._persist([asking])
                unit.value, unit.error = asking.value, asking.error
            elif index in answers:
                unit.value = answers[index]
            else:
                unit.error = lost(step.resource)
            unit.is_settled = True
        if failpoints.armed:
            for unit, _ in steps:
                failpoints.reach(unit.point.after)
        self._committed({history_topic(step.run_id) for _, step in steps})

    def _persist(self, units: list[Unit[Any]]) -> None:
        """Try until `units` are kept, or cannot be. Raises if this thread is interrupted, or if they share no more."""
        deadline = time.monotonic() + self._patience
        tries = 0
        while True:
            try:
                topics = self._transact([unit for unit in units if not unit.is_settled])
            except _LostError as lost:
                error: Exception = faults.unreachable(lost.cause, self._where, self._patience)
                if time.monotonic() >= deadline:
                    _fail(units, error)
                    return
                time.sleep(random.uniform(0.02, 0.2))  # noqa: S311  so that workers do not come back all at once
            except psycopg.Error as met:
                if len(units) > 1:
                    raise _ShareNoMoreError from met
                tries += 1
                if not faults.is_worth_another(met) or tries >= _TRIES or time.monotonic() >= deadline:
                    _fail(units, faults.named(met, self._where))
                    return
                time.sleep(random.uniform(0, 0.002 * 2**tries))  # noqa: S311
            except Exception as refused:
                if all(unit.is_settled for unit in units):
                    raise  # a failpoint after the commit
                _fail(units, refused)  # it belongs to those who asked, and is raised to them
                return
            else:
                if topics:
                    self._committed(topics)
                return

    def _transact(self, units: list[Unit[Any]]) -> set[str]:
        """One transaction. _LostError if the connection went and nothing was kept; what was refused, otherwise."""
        link = self._open()
        self._holder = threading.get_ident()
        try:
            tx = self._begin(link, len(units) > 1)
            tried = [unit for unit in units if self._attempt(unit, link, tx, alone=len(units) == 1)]
            if tried:
                tx.tell(self._message)
                if failpoints.armed:
                    for unit in tried:
                        failpoints.reach(unit.point.written)
                self._end(link, tx.number)
            else:
                link.roll_back()
        except BaseException as error:
            self._give_up(link, error)
            raise
        finally:
            self._holder = None
        for unit in tried:
            unit.is_settled = True
        if failpoints.armed:
            for unit in tried:
                failpoints.reach(unit.point.after)
        return tx.topics

    def _attempt(self, unit: Unit[Any], link: CommitConnection, tx: PostgresTransaction, *, alone: bool) -> bool:
        """Do one unit's work. What it raises is its own; what the database raises is everybody's."""
        if failpoints.armed:
            failpoints.reach(unit.point.before)
        if not alone:
            link.command(statements.SAVEPOINT)
        topics = set(tx.topics)
        try:
            unit.value = unit.work(tx)  # type: ignore[arg-type]
            tx.flush()
        except psycopg.Error:
            raise
        except Exception as error:  # noqa: BLE001
            tx.forget(topics)
            if not alone:
                link.command(statements.ROLLBACK_TO)
            unit.error = half_letter(error) if isinstance(error, UnicodeEncodeError) else error
            unit.is_settled = True
            return False
        if not alone:
            link.command(statements.RELEASE)
        return True

    def _end(self, link: CommitConnection, number: str) -> None:
        try:
            link.command(statements.COMMIT)
        except psycopg.Error as error:
            if not faults.is_disconnected(error, link.connection):
                raise
            if not self._was_kept(link.id, number, error):
                raise _LostError(error) from error
            self._drop(link)

    def _was_kept(self, writer: str, number: str, cause: psycopg.Error) -> bool:
        """Ask whether a transaction was kept whose COMMIT was sent, and whose answer never came."""
        return self._was_decided(lambda asking: asking.was_kept(writer, number), number, cause)

    def _was_decided(self, ask: Callable[[CommitConnection], bool | None], number: str, cause: psycopg.Error) -> bool:
        """Ask over new connections until there is an answer."""
        deadline = time.monotonic() + self._patience
        while time.monotonic() < deadline:
            try:
                with contextlib.closing(self._connect()) as link:
                    was_kept = ask(link)
            except psycopg.Error:
                time.sleep(0.1)
                continue
            if was_kept is not None:
                return was_kept
            time.sleep(0.02)  # in progress: the server has not noticed yet that nobody is there any more
        raise UnknownOutcomeError(self._where, number) from cause

    def _give_up(self, link: CommitConnection, error: BaseException) -> None:
        """Leave the connection so that the next transaction can begin, or let go of it."""
        if isinstance(error, _LostError | UnknownOutcomeError):
            self._drop(link)
            return
        if isinstance(error, psycopg.Error) and faults.is_disconnected(error, link.connection):
            self._drop(link)
            raise _LostError(error) from error
        try:
            link.roll_back()
        except psycopg.Error:
            self._drop(link)

    def _open(self) -> CommitConnection:
        if self._link is None:
            try:
                self._link = self._connect()
            except psycopg.OperationalError as error:
                raise _LostError(error) from error
        return self._link

    def _drop(self, link: CommitConnection) -> None:
        self._link = None
        link.close()

    @contextlib.contextmanager
    def transaction(self, point: CommitPoint) -> Iterator[PostgresTransaction]:
        """Several writes in one commit, as a block, which cannot be done twice: what it meets, it raises."""
        with self._lock:
            try:
                link = self._open()
            except _LostError as lost:
                raise faults.unreachable(lost.cause, self._where, 0.0) from lost.cause
            self._holder = threading.get_ident()
            try:
                tx = self._begin(link, False)
                failpoints.reach(point.before)
                yield tx
                tx.flush()
                tx.tell(self._message)
                failpoints.reach(point.written)
                self._end(link, tx.number)
            except BaseException as error:
                try:
                    self._give_up(link, error)
                except _LostError as lost:
                    raise faults.unreachable(lost.cause, self._where, 0.0) from lost.cause
                if isinstance(error, _LostError):
                    raise faults.unreachable(error.cause, self._where, 0.0) from error.cause
                if isinstance(error, psycopg.Error):
                    raise faults.named(error, self._where) from error
                raise
            finally:
                self._holder = None
            failpoints.reach(point.after)
        if tx.topics:
            self._committed(tx.topics)

    def close(self) -> None:
        """Commit what is queued, and close the connection."""
        with contextlib.suppress(StoreError):
            self.commit_queued()
        with self._lock:
            if self._link is not None:
                self._drop(self._link)


class _LostError(Exception):
    """The connection is gone, and nothing of the transaction was kept."""

    def __init__(self, cause: psycopg.Error) -> None:
        super().__init__(str(cause))
        self.cause = cause


class _ShareNoMoreError(Exception):
    """A transaction that several shared failed: each is to be committed alone."""


def _fail(units: Sequence[Unit[Any]], error: BaseException) -> None:
    for unit in units:
        if not unit.is_settled:
            unit.error = error
            unit.is_settled = True
