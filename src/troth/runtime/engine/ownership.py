"""Knows how an engine owns runs: under one name for the whole process, with a heartbeat, one lease for each run."""

import contextlib
import logging
import os
import threading
import uuid

from troth.runtime.engine.errors import EngineClosedError
from troth.runtime.engine.points import OWNER_BEAT, OWNER_ENROLL, OWNER_RETIRE, RUN_RELEASE
from troth.runtime.store import Owner, Store, StoreError
from troth.runtime.store.identity import BEAT_EVERY, new_owner, retire

__all__ = ["Ownership", "new_token"]

log = logging.getLogger("troth.engine")


def new_token() -> str:
    """What tells one holding of a lease from every other."""
    return uuid.uuid4().hex


class Ownership:
    """Who this engine is in the store. It enrolls when it first needs to, and anew in a forked child."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._owner: Owner | None = None
        self._last_beat = 0.0
        self._unreleased: dict[str, str] = {}
        self._is_closed = False

    def owner(self) -> Owner:
        """The engine's name in the store, enrolled."""
        owner = self._owner
        if owner is not None and owner.pid == os.getpid():
            return owner
        with self._lock:
            if self._is_closed:
                raise EngineClosedError("The engine is closed. Nothing was started; open a new one.")
            if self._owner is None or self._owner.pid != os.getpid():
                now = self._store.clock()
                owner = new_owner(now)
                self._store.commit(OWNER_ENROLL, lambda tx: tx.enroll(owner))
                self._owner, self._last_beat = owner, now
            return self._owner

    def after_fork(self) -> None:
        """In the child: nothing that the parent owns is ours."""
        self._lock = threading.Lock()
        self._owner = None
        self._unreleased = {}

    def beat(self) -> None:
        """Say that the engine lives, if it is time to, and give back what could not be given back before."""
        owner, now = self._owner, self._store.clock()
        if owner is None or now - self._last_beat < BEAT_EVERY:
            return
        self._store.commit(OWNER_BEAT, lambda tx: tx.enroll(_at(owner, now)))
        self._last_beat = now
        for resource, token in list(self._unreleased.items()):
            self.release(resource, token)

    def release(self, resource: str, token: str) -> None:
        """Give a lease back; if the store cannot just now, with one of the next heartbeats."""
        try:
            self._store.commit(RUN_RELEASE, lambda tx: tx.release(resource, token))
        except StoreError as error:
            self._keep_for_later(resource, token, error)
        else:
            self._unreleased.pop(resource, None)

    async def arelease(self, resource: str, token: str) -> None:
        """`release` for a task that is being cancelled."""
        try:
            await self._store.acommit(RUN_RELEASE, lambda tx: tx.release(resource, token))
        except StoreError as error:
            self._keep_for_later(resource, token, error)

    def _keep_for_later(self, resource: str, token: str, error: StoreError) -> None:
        self._unreleased[resource] = token
        log.warning("The lease of %s could not be given back yet: %s", resource, error)

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
