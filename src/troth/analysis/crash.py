"""Tell what an exception of our own costs, so that it costs no more than that.

An exception in a rule costs that rule in one file, one in the reading of a file costs that file, and one in following a
function costs what is known of that function. All else is reported as usual; the exit code says that something is
missing. Nothing that such a run found out is kept for the next one.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

__all__ = ["Crash", "contained", "grouped", "kinds", "line_of", "raise_at_once", "sentence"]


class Crash(NamedTuple):
    """An exception that was contained.

    `path` and `line` tell what was looked at; the path is empty where it was no single file. `rule` is the code of the
    rule that failed, empty where it was none. `cost` says what was not done, `place` where in Troth the exception came
    from.
    """

    path: str
    line: int
    rule: str
    cost: str
    error: str  # the kind of exception
    message: str
    place: str
    trace: str
    others: int = 0  # places at which the same happened


class _Mode:
    is_raising = False


def raise_at_once(*, is_on: bool) -> None:
    """Let exceptions end the run, for whoever looks for a bug: a test, or `TROTH_DEBUG=1`."""
    _Mode.is_raising = is_on


def contained(error: Exception, path: str, cost: str, *, line: int = 1, rule: str = "") -> Crash:
    """What is reported of an exception instead of the end of the run."""
    if _Mode.is_raising:
        raise error
    import traceback  # late: hardly any run needs it

    frames = traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "an unknown place"
    trace = "".join(traceback.format_exception(error))
    return Crash(path, line, rule, cost, type(error).__name__, " ".join(str(error).split())[:200], place, trace)


def sentence(crash: Crash) -> str:
    """One line that says what was not done, why, and how to report it."""
    message = f": {crash.message}" if crash.message else ""
    more = "" if not crash.others else f", and in {crash.others:,} other place" + ("s" if crash.others > 1 else "")
    return (
        f"{crash.cost} ({crash.error} at {crash.place}{message}){more}; "
        "this is a bug in Troth, and `troth explain TR000` explains how to report it"
    )


def line_of(crash: Crash, shown: Callable[[str], str]) -> str:
    """The same with its place, which `shown` says as a person reads it."""
    place = f"{shown(crash.path)}:{crash.line}  " if crash.path else ""
    return f"{place}TR000 internal-error  {sentence(crash)}"


def kinds(crashes: Iterable[Crash]) -> set[tuple[str, str, str]]:
    """What tells one bug from another."""
    return {(crash.rule, crash.error, crash.place) for crash in crashes}


def grouped(crashes: Iterable[Crash]) -> tuple[Crash, ...]:
    """One of each kind, with the number of the others: one bug may show in every file."""
    groups: dict[tuple[str, str, str], dict[tuple[str, int, str], Crash]] = {}
    for crash in crashes:
        groups.setdefault((crash.rule, crash.error, crash.place), {}).setdefault(
            (crash.path, crash.line, crash.cost), crash
        )
    return tuple(next(iter(group.values()))._replace(others=len(group) - 1) for group in groups.values())
