"""Read and write the rows of a server where other servers do so at the same time.

In a commit, whoever looks at a request locks its key first, whether it is there or not: of two servers that are sent
the same request, one carries it out. Reads outside of a commit lock nothing.
"""

import json

from troth.runtime.store.identity import Owner
from troth.runtime.store.postgres import statements
from troth.runtime.store.postgres.dialect import Execute, translating
from troth.runtime.store.postgres.liveness import Liveness
from troth.runtime.store.rows.server import RequestRow, ServerRows

__all__ = ["PostgresServerRows"]

_PUT_REQUEST = statements.upsert(statements.PUT_REQUEST, RequestRow._fields)


class PostgresServerRows(ServerRows):
    """The rows of a server, seen through one connection. `locks` is for a commit."""

    __slots__ = ("_liveness", "_locks", "_native")

    def __init__(self, execute: Execute, liveness: Liveness, *, locks: bool = False) -> None:
        super().__init__(translating(execute))
        self._native = execute
        self._liveness = liveness
        self._locks = locks

    def request(self, owner: str, key: str) -> RequestRow | None:
        """A request that came with this key."""
        if self._locks:
            self._native(statements.LOCK_REQUEST, (json.dumps([owner, key]),))
        return super().request(owner, key)

    def put_request(self, request: RequestRow) -> None:
        """Write down a request, or what became of it."""
        self._native(_PUT_REQUEST, request)

    def is_alive(self, owner_id: str, now: float) -> bool:  # noqa: ARG002  the database has its own clock
        """Whether the process lives that an owner's id names."""
        row = self._native(statements.FIND_OWNER, (owner_id,)).fetchone()
        return row is not None and self._liveness.is_alive(Owner(*row))
