"""Send a statement that is prepared once per connection, over libpq itself: what nearly all commits consist of.

A cursor of psycopg looks at each value and each answer anew, and takes more of this process's time than the rest of a
step. Here the values are text already, and the answer is read as text. Nothing else is left out: an answer that is an
error is raised as psycopg raises it, and Ctrl-C cancels the statement and waits for its end.
"""

import contextlib
import itertools
import select
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import pq
from psycopg.errors import error_from_result

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

__all__ = ["PreparedStatements", "can_be_prepared", "text_array"]

_PATIENCE = 5.0  # seconds for a cancelled statement to end, as psycopg has it
_FINE = (int(pq.ExecStatus.TUPLES_OK), int(pq.ExecStatus.COMMAND_OK))
Texts = Sequence[str | None]


def can_be_prepared(connection: "psycopg.Connection[Any]") -> bool:
    """Whether text can be sent as it is encoded here."""
    return hasattr(select, "poll") and connection.info.encoding == "utf-8"


class PreparedStatements:
    """The statements that were prepared on one connection. One thread at a time, and nobody else uses it meanwhile."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection
        self._names: dict[str, bytes] = {}
        self._numbers = itertools.count(1)  # a name is never used again: it may have been prepared all the same
        self._poll = select.poll()
        self._poll.register(connection.fileno(), select.POLLIN)

    def execute(self, statement: str, values: Texts) -> list[list[str | None]]:
        """Carry out a statement whose `%s` are texts; the answer has its rows, each value as text."""
        pgconn = self._connection.pgconn
        sent = [None if value is None else value.encode() for value in values]
        if b"\0" in b"".join(filter(None, sent)):  # libpq would take the text to end there
            raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        try:
            name = self._names.get(statement)
            if name is None:
                name = f"troth_{next(self._numbers)}".encode()
                pgconn.send_prepare(name, _numbered(statement))
                self._answer()
                self._names[statement] = name
            pgconn.send_query_prepared(name, sent)
            result = self._answer()
        except psycopg.errors.InvalidSqlStatementName:  # somebody has sent DEALLOCATE
            self._names.clear()
            raise
        except (KeyboardInterrupt, SystemExit):
            self._cancel()
            raise
        value, count = result.get_value, result.ntuples
        if count == 1 and result.nfields == 1:  # what an ordinary commit answers
            field = value(0, 0)
            return [[None if field is None else field.decode()]]
        rows, columns = [], range(result.nfields)
        for row in range(count):
            fields = [value(row, column) for column in columns]
            rows.append([None if field is None else field.decode() for field in fields])
        return rows

    def _answer(self, until: float | None = None) -> "PGresult":
        """Wait for the answer; raises what the server says of the statement."""
        pgconn, poll = self._connection.pgconn, self._poll.poll
        while pgconn.flush():
            self._write()
        answer: PGresult | None = None
        is_fine = True
        while True:
            while pgconn.is_busy():
                poll(None if until is None else max(0.0, until - time.monotonic()) * 1000)
                if until is not None and time.monotonic() >= until:
                    raise TimeoutError
                try:
                    pgconn.consume_input()
                except psycopg.Error:
                    if answer is not None and answer.status == pq.ExecStatus.FATAL_ERROR:
                        break  # the server has said why it hangs up
                    raise
            result = pgconn.get_result()
            if result is None:
                break
            if is_fine:
                answer, is_fine = result, result.status in _FINE
        if answer is None:
            raise psycopg.OperationalError("the server has sent no answer")
        if not is_fine:
            raise error_from_result(answer)
        return answer

    def _write(self) -> None:
        """Wait until more of a large statement can be sent. The server may have something to say meanwhile."""
        self._poll.modify(self._connection.fileno(), select.POLLIN | select.POLLOUT)
        try:
            if any(event & select.POLLIN for _, event in self._poll.poll()):
                self._connection.pgconn.consume_input()
        finally:
            self._poll.modify(self._connection.fileno(), select.POLLIN)

    def _cancel(self) -> None:
        """End what is under way, so that the connection can be used again; close it if that cannot be."""
        if self._connection.pgconn.transaction_status != pq.TransactionStatus.ACTIVE:
            return
        try:
            with contextlib.suppress(psycopg.errors.QueryCanceled):
                self._connection.cancel_safe(timeout=_PATIENCE)
                self._answer(time.monotonic() + _PATIENCE)
        except (psycopg.Error, TimeoutError, KeyboardInterrupt):
            self._connection.close()


def _numbered(statement: str) -> bytes:
    """The statement as libpq takes it: `$1` for the first `%s`, and so on."""
    head, *parts = statement.split("%s")
    return (head + "".join(f"${number}{part}" for number, part in enumerate(parts, 1))).replace("%%", "%").encode()


def text_array(texts: Sequence[str]) -> str:
    """A list of texts as PostgreSQL reads one."""
    quoted = ['"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts]
    return "{" + ",".join(quoted) + "}"
