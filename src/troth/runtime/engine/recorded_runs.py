"""What every engine does in the same way: all that it takes for it is the store in which runs are recorded."""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager

from troth.errors import MisuseError
from troth.runtime.engine.commit_points import RUN_CALLBACK, RUN_FORK, RUN_RESUME
from troth.runtime.engine.errors import NotAwaitedError, TooLateError, UnknownRunError
from troth.runtime.engine.failure import describe
from troth.runtime.engine.read_pool import ReadPool
from troth.runtime.engine.rewind import at_one_moment, write_fork, write_reopening
from troth.runtime.store import HistoryEntry, Notifier, RunRecord, RunState, StepRecord, Store, Transaction
from troth.runtime.store.large_values import keep_well
from troth.runtime.store.sqlite.transaction import history_topic, run_topic

__all__ = ["RecordedRuns", "signal_text", "unknown_run"]


class RecordedRuns:
    """The runs in one store: how they are looked at, told something, taken back to an earlier step, and listed."""

    def __init__(self, store: Store, read_pool: ReadPool) -> None:
        self.store = store
        self._read_pool = read_pool

    # Telling

    def _sending(
        self, run_id: str, name: str, payload: object, key: str | None, *, awaited: bool, text: str | None = None
    ) -> Callable[[Transaction], bool]:
        message = signal_text(name, payload) if text is None else text

        def work(tx: Transaction) -> bool:
            state = tx.state_of(run_id)
            if state is None:
                raise unknown_run(run_id)
            if state.is_over:
                raise MisuseError(
                    f"The signal {name!r} was not sent: run {run_id!r} is {state.value}, so it cannot receive it."
                )
            now = self.store.clock()
            if awaited:
                _check_awaited(tx, run_id, name, now)
            return tx.send_signal(run_id, name, message, now, key=key)

        return work

    def _cancelling(self, run_id: str) -> Callable[[Transaction], bool]:
        def work(tx: Transaction) -> bool:
            if tx.state_of(run_id) is None:
                raise unknown_run(run_id)
            return tx.request_cancel(run_id, self.store.clock())

        return work

    # Going back

    def reopen(
        self,
        run: RunRecord,
        again: Sequence[StepRecord],
        *,
        gives_back: Callable[[StepRecord], bool] = lambda _step: True,
        also: Callable[[Transaction, float], object] | None = None,
    ) -> bool:
        """Make a run that ended one that can go on, without the answers of `again`; nobody carries it out yet.

        Answers whether it was at that end still. `also` writes more in the same commit, in any case.
        """

        def work(tx: Transaction) -> bool:
            now = self.store.clock()
            if also is not None:
                also(tx, now)
            return write_reopening(tx, run, again, now, gives_back)

        return self.store.commit(RUN_RESUME, work)

    def write_fork(self, run: RunRecord, fork_id: str, args: Sequence[object], before: int) -> None:
        """Write a new run down that has the answers of `run` up to a trunk step; nobody carries it out yet."""
        self.store.commit(RUN_FORK, lambda tx: write_fork(tx, run, fork_id, args, before, self.store.clock()))

    # Looking

    def find_with_steps(self, run_id: str) -> tuple[RunRecord, Sequence[StepRecord]] | None:
        """A run and its steps, as they were at one moment; nothing if there is no such run."""
        snapshot = at_one_moment(self.store, run_id)
        if snapshot is None or snapshot[1]:
            return snapshot
        return snapshot[0], self.store.steps(run_id)

    def is_held(self, run_id: str) -> bool:
        """Whether somebody has taken the run, dead or alive, and has not let it go."""
        return self.store.holder(run_topic(run_id)) is not None

    def is_carried_out(self, run_id: str) -> bool:
        """Whether somebody living carries the run out, here or elsewhere."""
        holder = self.store.holder(run_topic(run_id))
        return holder is not None and self.store.is_alive(holder)

    def orphans(self, decisions: Iterable[str]) -> Sequence[str]:
        """Runs of these decisions that are not over and that nobody living carries out, oldest first."""
        return [run_id for run_id, _ in self.store.orphans(decisions)]

    def find(self, run_id: str) -> RunRecord | None:
        """A run as it is now."""
        return self.store.run(run_id)

    async def afind(self, run_id: str) -> RunRecord | None:
        """`find` for a task."""
        return await self._read_pool.beside(lambda: self.find(run_id))

    def list(
        self,
        *,
        states: Iterable[RunState] | None = None,
        decision: str | None = None,
        label: str | None = None,
        family: str | None = None,
        word: str | None = None,
        before: tuple[float, str] | None = None,
        limit: int = 100,
    ) -> Sequence[RunRecord]:
        """Runs, newest first. `before` is the `(created_at, id)` of the last one of the page before.

        `family` is how the names of their decisions begin, up to the first colon; with it, `word` is the word for how
        they stand: what their decision said of their end, else their state. That costs the same however many runs
        there are.
        """
        return self.store.runs(
            states=states, decision=decision, label=label, family=family, word=word, before=before, limit=limit
        )

    async def alist(
        self,
        *,
        states: Iterable[RunState] | None = None,
        decision: str | None = None,
        label: str | None = None,
        family: str | None = None,
        word: str | None = None,
        before: tuple[float, str] | None = None,
        limit: int = 100,
    ) -> Sequence[RunRecord]:
        """`list` for a task."""
        return await self._read_pool.beside(
            lambda: self.list(
                states=states, decision=decision, label=label, family=family, word=word, before=before, limit=limit
            )
        )

    def steps(self, run_id: str) -> Sequence[StepRecord]:
        """What a run has asked for, in order, with every failed attempt."""
        return self.store.steps(run_id)

    async def asteps(self, run_id: str) -> Sequence[StepRecord]:
        """`steps` for a task."""
        return await self._read_pool.beside(lambda: self.steps(run_id))

    def history(self, run_id: str, *, after: int = 0, limit: int = 500) -> Sequence[HistoryEntry]:
        """What has happened in a run since entry `after` of its history; costs as much as there is to read."""
        return self.store.history(run_id, after=after, limit=limit)

    async def ahistory(self, run_id: str, *, after: int = 0, limit: int = 500) -> Sequence[HistoryEntry]:
        """`history` for a task."""
        return await self._read_pool.beside(lambda: self.history(run_id, after=after, limit=limit))

    def last_entry(self, run_id: str) -> int:
        """The number of the last entry of a run's history; 0 if there is none."""
        return self.store.last_entry(run_id)

    def listening(self, bell: Notifier, run_id: str) -> AbstractContextManager[Notifier]:
        """Ring `bell` when the history of a run grows or its state changes, here or in another process."""
        return self.store.listening(bell, history_topic(run_id), run_topic(run_id))

    def tell_callback_failed(self, run_id: str, name: str, error: BaseException) -> None:
        """Write into a run's history that somebody who was told of it raised."""
        text = json.dumps(describe(error))
        self.store.commit(
            RUN_CALLBACK, lambda tx: tx.tell_callback_failed(run_id, self.store.clock(), name=name, error=text)
        )


def signal_text(name: str, payload: object) -> str:
    """The payload of a signal, as it is kept."""
    return keep_well(payload, f"signal {name!r}").text


def _check_awaited(tx: Transaction, run_id: str, name: str, now: float) -> None:
    """Refuse a signal that the run does not wait for, or not any more."""
    wait = tx.open_wait(run_id, name)
    if wait is None:
        raise NotAwaitedError(f"The signal {name!r} was not sent: run {run_id!r} does not wait for it.")
    if wait.deadline is not None and now >= wait.deadline:
        late = f"its timeout was over {now - wait.deadline:.3g} s ago"
        raise TooLateError(f"The signal {name!r} was not sent to run {run_id!r}: {late}.", wait.deadline)
    if wait.is_answered:
        raise NotAwaitedError(f"The signal {name!r} was not sent: run {run_id!r} has already received it.")


def unknown_run(run_id: str) -> UnknownRunError:
    """The error of asking for a run that nobody has begun."""
    return UnknownRunError(f"There is no run {run_id!r} in this store. `engine.list()` lists the runs.")
