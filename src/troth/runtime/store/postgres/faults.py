"""Tell what a failure of the database means: try again, the connection is gone, or it is refused."""

import psycopg
from psycopg import errors

from troth.runtime.store.errors import ReadOnlyStoreError, StoreError

__all__ = [
    "UnknownOutcomeError",
    "is_disconnected",
    "is_starting",
    "is_unavailable",
    "is_worth_another",
    "named",
    "unreachable",
]

_AGAIN = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.LockNotAvailable,
    errors.UniqueViolation,  # two have counted on at the same time: whoever comes second counts anew
    errors.InvalidSqlStatementName,  # what was prepared is gone, and is prepared again
)
_SERVER_GOES = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.IdleInTransactionSessionTimeout,
    errors.IdleSessionTimeout,
    errors.TooManyConnections,
)


class UnknownOutcomeError(StoreError):
    """The connection was lost in COMMIT, and the database could not be asked whether it was kept.

    `where` is the store, `number` the transaction as the database counts them.
    """

    def __init__(self, where: str, number: str) -> None:
        self.where = where
        self.number = number
        super().__init__(
            f"The connection to the store {where} was lost while a commit was made, and the database cannot be asked "
            f"now whether it was kept (transaction {number}).\n"
            "Check what is recorded before you repeat it; runs always resume from what is recorded."
        )

    def __reduce__(self) -> tuple[type["UnknownOutcomeError"], tuple[str, str]]:
        return UnknownOutcomeError, (self.where, self.number)


def is_worth_another(error: BaseException) -> bool:
    """Whether the same work may well be kept if it is done once more; nothing of it was kept."""
    return isinstance(error, _AGAIN)


def is_disconnected(error: BaseException, connection: "psycopg.Connection[object]") -> bool:
    """Whether the connection cannot be used any more."""
    return isinstance(error, psycopg.Error) and (connection.closed or connection.broken or is_unavailable(error))


def is_unavailable(error: BaseException) -> bool:
    """Whether the server cannot be reached just now, or goes away."""
    if isinstance(error, _SERVER_GOES):
        return True
    # 08 is a connection that went, which is also how a pooler says that the server behind it did.
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate is None or error.sqlstate.startswith("08"))


def is_starting(conninfo: str) -> bool | None:
    """Whether the server that is there is just being started or ended, and lets nobody in; nothing if none answers."""
    answer = psycopg.pq.PGconn.ping(conninfo.encode())
    return answer == psycopg.pq.Ping.REJECT if answer in (psycopg.pq.Ping.REJECT, psycopg.pq.Ping.OK) else None


def named(error: psycopg.Error, where: str) -> StoreError:
    """What is raised of a failure that trying again does not mend."""
    message = (error.diag.message_primary or str(error)).strip()
    if isinstance(error, errors.ReadOnlySqlTransaction):
        problem: StoreError = ReadOnlyStoreError(
            f"The store {where} is read-only: {message}. Nothing was written.\n"
            "Name the primary server; `target_session_attrs=read-write` in the address finds it among several hosts."
        )
    elif isinstance(error, errors.UndefinedTable):
        problem = StoreError(f"The store {where} has no tables: {message}. Nothing was written. Open it again.")
    elif isinstance(error, errors.DiskFull | errors.OutOfMemory):
        problem = StoreError(
            f"The store {where} could not be written: {message}. This commit was not kept.\n"
            "What was committed before is safe. Free disk space on the database server; nothing else is needed."
        )
    elif isinstance(error, psycopg.DataError):
        problem = StoreError(
            f"The store {where} cannot keep a value: {message}. This commit was not kept.\n"
            "PostgreSQL cannot store a NUL character; store such text as JSON, or encoded."
        )
    else:
        problem = StoreError(
            f"The store {where} could not be written: {message}. This commit was not kept.\n"
            "What was committed before is safe. The log of the database has the details."
        )
    problem.__cause__ = error
    return problem


def unreachable(error: BaseException, where: str, seconds: float) -> StoreError:
    """What is raised once the database could not be reached for as long as one waits."""
    message = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    problem = StoreError(
        f"The store {where} could not be reached for {seconds:g} s: {message}\n"
        "Nothing of this commit was kept; what was committed before is safe. It continues when the database "
        "can be reached again."
    )
    problem.__cause__ = error
    return problem
