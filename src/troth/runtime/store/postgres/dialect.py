"""Give psycopg the statements that both databases understand: a question mark becomes its own mark.

What such a statement says to the planner of SQLite alone is left out, and one function has another name.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["Execute", "in_psycopg", "translating"]

Execute = Callable[..., Any]
"""Carry out a statement of psycopg's, with values; the answer has `fetchone`, `fetchall` and `rowcount`."""

_OTHERWISE = {
    "%": "%%",
    "?": "%s",
    " CROSS JOIN ": " JOIN ",  # in SQLite: in this order
    "+d.state": "d.state",  # in SQLite: by another index
    " INDEXED BY runs_by_state": "",
    "instr(": "strpos(",
}


@functools.cache
def in_psycopg(statement: str) -> str:
    """The statement with `%s` for `?`. None of ours has a question mark in a text."""
    for word, other in _OTHERWISE.items():
        statement = statement.replace(word, other)
    return statement


def translating(execute: Execute) -> Execute:
    """`execute` for statements that are written for both databases."""

    def translated(statement: str, values: Sequence[object] | Mapping[str, object] = ()) -> Any:
        return execute(in_psycopg(statement), values)

    return translated
