"""How an engine owns runs: under one name for the whole process, with a heartbeat, one lease for each run."""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from troth.runtime.engine.commit_points import OWNER_BEAT, OWNER_ENROLL, OWNER_RETIRE, RUN_RELEASE
from troth.runtime.engine.errors import EngineClosedError
from troth.runtime.store import LeaseLostError, Owner, Store, StoreError, Transaction
from troth.runtime.store.identity import new_owner, retire

__all__ = ["Ownership", "new_token"]

log = logging.getLogger("troth.engine")

Write = Callable[[Transaction], object]


class Lease(Protocol):
    """What is given back."""

    resource: str
    token: str
    is_given_up: bool


def new_token() -> str:
    """What tells one holding of a lease from every other."""
    return os.urandom(16).hex()


class Ownership:
    """Who this engine is in the store. It enrolls when it first needs to, and anew in a forked child."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._owner: Owner | None = None
        self._last_beat = 0.0
        self._unreleased: dict[str, Write] = {}
        self._told: set[str] = set()
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """Whether everything is given back for good."""
        return self._is_closed

    def owner(self) -> Owner:
        """The engine's name in the store, enrolled."""
        owner = self._owner
        if owner is not None and owner.pid == os.getpid():
            return owner
        with self._lock:
            if self._is_closed:
                raise EngineClosedError("The engine is closed. Nothing was started; open a new one.")
            if self._owner is None or self._owner.pid != os.getpid():
                owner = new_owner(self._store.clock())
                self._store.commit(OWNER_ENROLL, lambda tx: tx.enroll(owner))
                self._owner, self._last_beat = owner, time.monotonic()
            return self._owner

    def after_fork(self) -> None:
        """In the child: nothing that the parent owns is ours."""
        self._lock = threading.Lock()
        self._owner = None
        self._unreleased = {}
        self._told = set()

    def beat(self) -> None:
        """Give back what could not be given back before, and say that the engine lives, if it is time to."""
        owner, passed = self._owner, time.monotonic()
        if owner is None:
            return
        for token in list(self._unreleased):
            self._release(token)
        if (
            passed - self._last_beat >= self._store.beat_every
        ):  # by the time that passes: a clock that is set back stops no heart
            self._store.commit(OWNER_BEAT, lambda tx: tx.enroll(_at(owner, self._store.clock())))
            self._last_beat = passed

    def give_back(self, claim: Lease, left_behind: Sequence[Write] = ()) -> None:
        """Give a lease back, with what is still to be written under it; if the store cannot just now, a moment later.

        A claim that is not written yet will not be: it does not matter which of the two commits comes first.
        """
        self._keep(claim, left_behind)
        self._release(claim.token)

    async def agive_back(self, claim: Lease, left_behind: Sequence[Write] = ()) -> None:
        """`give_back` for a task, which may be cancelled once more meanwhile: that only ends the waiting."""
        if self._is_closed:
            return  # all of them are given back
        release = self._keep(claim, left_behind)
        try:
            await self._store.acommit(RUN_RELEASE, release)
        except (StoreError, LeaseLostError) as error:
            self._failed(claim.token, error)
        else:
            self._unreleased.pop(claim.token, None)

    def give_back_soon(self, claim: Lease) -> None:
        """`give_back` where nobody can wait: now if that is possible at once, else with the engine's next look."""
        release = self._keep(claim, ())
        if not self._is_closed and self._store.commit_at_once(release) is not None:
            self._unreleased.pop(claim.token, None)

    def _keep(self, claim: Lease, left_behind: Sequence[Write]) -> Write:
        claim.is_given_up = True

        def release(tx: Transaction) -> None:
            if left_behind:
                tx.hold(claim.resource, claim.token)
            for write in left_behind:
                write(tx)
            tx.release(claim.resource, claim.token)

        self._unreleased[claim.token] = release
        return release

    def _release(self, token: str) -> None:
        release = self._unreleased.get(token)
        if release is None or self._is_closed:
            return
        try:
            self._store.commit(RUN_RELEASE, release)
        except (StoreError, LeaseLostError) as error:
            self._failed(token, error)
        else:
            self._unreleased.pop(token, None)

    def _failed(self, token: str, error: StoreError | LeaseLostError) -> None:
        if isinstance(error, LeaseLostError):
            self._unreleased.pop(token, None)  # somebody else has it: there is nothing to give back
        self._told &= self._unreleased.keys()
        level = logging.DEBUG if token in self._told else logging.WARNING  # once: a disk may be full for hours
        self._told.add(token)
        log.log(level, "A lease could not be given back: %s", error)

    def close(self) -> None:
        """Give back everything."""
        with self._lock:
            owner, self._owner = self._owner, None
            self._is_closed = True
        if owner is not None and owner.pid == os.getpid():
            retire(owner)
            with contextlib.suppress(StoreError):  # then its heartbeats stop, and its process ends: that is seen too
                self._store.commit(OWNER_RETIRE, lambda tx: tx.retire(owner.id))


def _at(owner: Owner, now: float) -> Owner:
    return Owner(owner.id, owner.machine, owner.pid, owner.pid_started, now)
