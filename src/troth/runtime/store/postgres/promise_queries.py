"""How promises and their deliveries are read back from PostgreSQL."""

from collections.abc import Iterable
from typing import Any

from troth.runtime.store.postgres import statements
from troth.runtime.store.postgres.dialect import in_psycopg
from troth.runtime.store.postgres.liveness import Liveness
from troth.runtime.store.postgres.queries import living_owners
from troth.runtime.store.postgres.readers import PostgresReaders
from troth.runtime.store.rows.promise_queries import PromiseReader

__all__ = ["PostgresPromiseReader"]


class PostgresPromiseReader(PromiseReader):
    """Questions about promises. Every method may be called from any thread, and none of them changes anything."""

    _HOW_MANY = "count(*)"  # numbers have gaps

    def __init__(self, readers: PostgresReaders, liveness: Liveness) -> None:
        self._pool = readers
        self._liveness = liveness

    def _rows(self, question: str, values: Iterable[object] = ()) -> list[tuple[Any, ...]]:
        return self._native(in_psycopg(question), values)

    def _native(self, statement: str, values: Iterable[object] = ()) -> list[tuple[Any, ...]]:
        return self._pool.ask(lambda connection: connection.execute(statement.encode(), tuple(values)).fetchall())

    def _living(self) -> list[str]:
        return self._pool.ask(lambda connection: living_owners(connection, self._liveness))

    def unheld_runs(self, now: float) -> list[str]:  # noqa: ARG002  the database has its own clock
        """Runs with an open promise that nobody living carries out, the oldest first."""
        return [run for (run,) in self._native(statements.UNHELD_PROMISED, (self._living(),))]

    def is_living(self, owner_id: str, now: float) -> bool:  # noqa: ARG002
        """Whether the owner of that id is there, and alive."""
        return owner_id in self._living()

    def needs_sweep(self, now: float) -> bool:
        """Whether a lease is void, or something is due on a channel that nobody living serves."""
        living = self._living()
        return bool(self._native(statements.NEEDS_SWEEP, (living, now, living, living, living))[0][0])
