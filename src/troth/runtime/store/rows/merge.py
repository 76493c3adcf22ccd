"""Read the first rows of several ranges of an index, in order."""

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["merge"]


def merge(
    execute: Callable[..., Any], arm: str, values: Sequence[Sequence[object]], order: str, size: int, *, page: str = ""
) -> list[tuple[Any, ...]]:
    """The first `size` rows of what `arm` selects with each of `values`, in one order.

    SQLite merges ranges as it reads them, and stops. PostgreSQL would read and sort all of each, unless it is told that
    no more than `size` of one are needed. `page` is a statement around it, with `{rows}` where these rows belong.
    """
    inner: list[object] = [value for given in values for value in given]
    if getattr(execute, "limits_arms", False):
        arm = f"SELECT * FROM ({arm} ORDER BY {order} LIMIT ?) AS arm"  # noqa: S608  statements of our own
        inner = [value for given in values for value in (*given, size)]
    statement = f"{' UNION ALL '.join([arm] * len(values))} ORDER BY {order} LIMIT ?"
    rows: list[tuple[Any, ...]] = execute(page.format(rows=statement) if page else statement, (*inner, size)).fetchall()
    return rows
