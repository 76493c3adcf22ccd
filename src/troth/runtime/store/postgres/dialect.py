"""Give psycopg the statements that both databases understand: a question mark becomes its own mark."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["Execute", "in_psycopg", "translating"]

Execute = Callable[..., Any]
"""Carry out a statement of psycopg's, with values; the answer has `fetchone`, `fetchall` and `rowcount`."""


@functools.cache
def in_psycopg(statement: str) -> str:
    """The statement with `%s` for `?`. None of ours has a question mark in a text."""
    return statement.replace("%", "%%").replace("?", "%s")


def translating(execute: Execute) -> Execute:
    """`execute` for statements that are written for both databases."""

    def translated(statement: str, values: Sequence[object] | Mapping[str, object] = ()) -> Any:
        return execute(in_psycopg(statement), values)

    return translated
