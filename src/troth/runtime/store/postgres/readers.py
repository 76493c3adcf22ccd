"""Read beside the writer: connections of a pool, each lent for one question.

A question is only asked, so it can be asked again: over a connection that is lost, or while the server is restarted,
it is, for as long as a commit would wait.
"""

import logging
import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from troth.errors import MisuseError
from troth.runtime.store.errors import StoreError, half_letter
from troth.runtime.store.postgres import faults
from troth.runtime.store.postgres.address import Address
from troth.runtime.store.postgres.link import parameters

__all__ = ["PostgresReaders"]

T = TypeVar("T")
Connection = psycopg.Connection[Any]
_MOST = 8  # connections that read at the same time
_LENT_WITHIN = 3.0  # seconds to wait for a connection, before the question is put once more
_RECONNECT = 2.0
"""Seconds after which the pool gives up to connect, and begins anew for the next question. By itself it would wait
longer after each failure, and so notice a database that is back as long after its return as it was away."""
_NAME = "troth-readers"


class _NotOurs(logging.Filter):
    """Leaves out what the pool says of each failure to connect. Who asks is told once, with what to do."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (isinstance(record.args, tuple) and _NAME in record.args)


logging.getLogger("psycopg.pool").addFilter(_NotOurs())


class PostgresReaders:
    """Connections that only read."""

    def __init__(self, address: Address, is_committing_here: Callable[[], bool], patience: float) -> None:
        self._address = address
        self._is_committing_here = is_committing_here
        self._patience = patience
        self._is_closed = False
        self._kept: list[ConnectionPool[Connection]] = []
        self._pool = self._new_pool()

    def _new_pool(self) -> "ConnectionPool[Connection]":
        return ConnectionPool(
            self._address.conninfo,
            kwargs=parameters(self._address),
            min_size=0,
            max_size=_MOST,
            timeout=_LENT_WITHIN,
            reconnect_timeout=_RECONNECT,
            max_idle=60.0,
            num_workers=1,
            open=False,
            name=_NAME,
        )

    def after_fork(self) -> None:
        """In the child: the parent's connections are not ours to use or to close."""
        self._kept.append(self._pool)
        self._pool = self._new_pool()

    def ask(self, question: Callable[[Connection], T]) -> T:
        """The answer of `question`, which may be asked more than once."""
        if self._is_committing_here():
            raise MisuseError(
                f"The store {self._address.shown} was read inside a commit.\n"
                "Nothing was written. Read from the transaction instead: the store does not see what this commit, "
                "and those "
                "that share its transaction, have written."
            )
        if self._is_closed:
            raise MisuseError(f"The store {self._address.shown} is closed. Open it again to read from it.")
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return self._once(question)
            except UnicodeEncodeError as cause:
                raise half_letter(cause) from cause
            except (psycopg.Error, PoolTimeout) as error:
                if not isinstance(error, PoolTimeout) and not faults.is_unavailable(error):
                    raise self._unreadable(error) from error
                if time.monotonic() >= deadline or self._is_closed:
                    raise faults.unreachable(error, self._address.shown, self._patience) from error
            time.sleep(random.uniform(0.01, 0.1))  # noqa: S311  so that workers do not come back all at once

    def _once(self, question: Callable[[Connection], T]) -> T:
        self._pool.open()  # does nothing the second time
        connection = self._pool.getconn()
        try:
            return question(connection)
        finally:
            self._pool.putconn(connection)

    def _unreadable(self, cause: psycopg.Error) -> StoreError:
        message = (cause.diag.message_primary or str(cause)).strip()
        return StoreError(f"The store {self._address.shown} could not be read: {message}. Nothing was written.")

    def close(self) -> None:
        """Close what is not lent out; the rest is closed when it comes back."""
        self._is_closed = True
        self._pool.close(timeout=5.0)
