"""Send a statement that is prepared once per connection, over libpq itself: what nearly all commits consist of.

A cursor of psycopg looks at each value and each answer anew, and takes more of this process's time than the rest of a
step. Here the values are text already, and the answer is read as text. Nothing else is left out: an answer that is an
error is raised as psycopg raises it, and Ctrl-C cancels the statement and waits for its end.
"""

import contextlib
import itertools
import select
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import pq
from psycopg.errors import error_from_result

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

__all__ = ["Answer", "PreparedStatements", "can_be_prepared", "text_array", "texts_of"]

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
        return _rows(self._send(statement, values))

    def ask(self, statement: str, values: Texts) -> "Answer":
        """`execute`, with an answer that is read like that of a cursor, each value by its type."""
        return Answer(self._send(statement, values))

    def _send(self, statement: str, values: Texts) -> "PGresult":
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
        return result

    def execute_plainly(self, statements: bytes) -> list[list[str | None]]:
        """Carry out statements without values, one after the other; the answer has the rows of the last."""
        try:
            self._connection.pgconn.send_query(statements)
            return _rows(self._answer())
        except (KeyboardInterrupt, SystemExit):
            self._cancel()
            raise

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


class Answer:
    """The rows of an answer, and how many were written."""

    __slots__ = ("_next", "_rows", "rowcount")

    def __init__(self, result: "PGresult") -> None:
        value, columns = result.get_value, range(result.nfields)
        read = [_READ.get(result.ftype(column), bytes.decode) for column in columns]
        self._rows: list[tuple[Any, ...]] = []
        for row in range(result.ntuples):
            fields = [value(row, column) for column in columns]
            pairs = zip(read, fields, strict=True)
            self._rows.append(tuple([None if field is None else convert(field) for convert, field in pairs]))
        self._next = 0
        self.rowcount = result.command_tuples or 0

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or nothing."""
        if self._next == len(self._rows):
            return None
        self._next += 1
        return self._rows[self._next - 1]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows that are left."""
        rows, self._next = self._rows[self._next :], len(self._rows)
        return rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.fetchall())


_READ: dict[int, Callable[[bytes], Any]] = {
    16: b"t".__eq__,
    **dict.fromkeys((20, 21, 23), int),
    **dict.fromkeys((700, 701), float),
}
"""How a value is read, by the number of its type; all others are texts."""


def texts_of(values: Sequence[object]) -> list[str | None] | None:
    """The values as texts, whose type the server knows by their place; nothing if there is one of another kind."""
    texts: list[str | None] = []
    for value in values:
        kind = type(value)
        if kind is str or value is None:
            texts.append(value)  # type: ignore[arg-type]
        elif kind is float or kind is int:
            texts.append(repr(value))
        elif isinstance(value, list) and all(type(item) is str for item in value):
            texts.append(text_array(value))
        else:
            return None
    return texts


def _rows(result: "PGresult") -> list[list[str | None]]:
    """Each value as text."""
    value, count = result.get_value, result.ntuples
    if count == 1 and result.nfields == 1:  # what an ordinary commit answers
        field = value(0, 0)
        return [[None if field is None else field.decode()]]
    rows, columns = [], range(result.nfields)
    for row in range(count):
        fields = [value(row, column) for column in columns]
        rows.append([None if field is None else field.decode() for field in fields])
    return rows


def _numbered(statement: str) -> bytes:
    """The statement as libpq takes it: `$1` for the first `%s`, and so on."""
    head, *parts = statement.split("%s")
    return (head + "".join(f"${number}{part}" for number, part in enumerate(parts, 1))).replace("%%", "%").encode()


def text_array(texts: Sequence[str]) -> str:
    """A list of texts as PostgreSQL reads one."""
    quoted = ['"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts]
    return "{" + ",".join(quoted) + "}"
