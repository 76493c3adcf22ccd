"""Write a place in a list as text, and read it back."""

from troth.errors import MisuseError

__all__ = ["moment_cursor", "number_cursor", "read_moment", "read_number"]


def moment_cursor(moment: float, thing: str) -> str:
    """The place behind what happened at a moment; `thing` tells those of one moment apart."""
    return f"{moment!r}:{thing}"


def read_moment(cursor: str | None) -> tuple[float, str] | None:
    """What `moment_cursor` wrote."""
    if cursor is None:
        return None
    moment, colon, thing = cursor.partition(":")
    try:
        if colon:
            return float(moment), thing
    except ValueError:
        pass
    raise _unreadable(cursor)


def number_cursor(*parts: object) -> str:
    """The place behind what has a number; `parts` after it tell those of one number apart."""
    return ":".join(map(str, parts))


def read_number(cursor: str | None, more: int = 0) -> tuple[int | str, ...] | None:
    """What `number_cursor` wrote, with `more` parts after the number; a part that is a number is read as one."""
    if cursor is None:
        return None
    parts = cursor.split(":")
    if len(parts) != more + 1 or not parts[0].isdecimal() or len(parts[0]) > 18:
        raise _unreadable(cursor)
    return int(parts[0]), *(int(part) if part.isdecimal() and len(part) < 18 else part for part in parts[1:])


def _unreadable(cursor: str) -> MisuseError:
    return MisuseError(f"{cursor[:40]!r} is not a cursor. Nothing was listed. Give the `next` of the previous page.")
