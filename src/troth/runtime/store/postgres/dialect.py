"""Give psycopg the statements that both databases understand: a question mark becomes its own mark.

What such a statement says to the planner of SQLite alone is left out, and one function has another name.
"""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["Execute", "Translated", "in_psycopg", "translating"]

Execute = Callable[..., Any]
"""Carry out a statement of psycopg's, with values; the answer has `fetchone`, `fetchall` and `rowcount`."""

_OTHERWISE = {
    "%": "%%",
    "?": "%s",
    " CROSS JOIN ": " JOIN ",  # in SQLite: in this order
    "+d.state": "d.state",  # in SQLite: by another index
    "instr(": "strpos(",
    " LIKE ": " ILIKE ",
}

_INDEXED_BY = re.compile(r" INDEXED BY \w+")  # in SQLite: by this index


@functools.lru_cache(maxsize=1000)  # a list is asked for with any number of states and owners
def in_psycopg(statement: str) -> str:
    """The statement with `%s` for `?`. None of ours has a question mark in a text."""
    for word, replacement in _OTHERWISE.items():
        statement = statement.replace(word, replacement)
    return _INDEXED_BY.sub("", statement)


def translating(execute: Execute) -> Execute:
    """`execute` for statements that are written for both databases."""

    def translated(statement: str, values: Sequence[object] | Mapping[str, object] = ()) -> Any:
        return execute(in_psycopg(statement), values)

    return translated


class Translated:
    """A connection that carries out statements that are written for both databases."""

    __slots__ = ("connection",)

    limits_arms = True
    """See `merge`."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def __call__(self, statement: str, values: Sequence[object] = ()) -> Any:
        """Carry one out."""
        return self.connection.execute(in_psycopg(statement).encode(), values)
