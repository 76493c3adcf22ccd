"""What the environment asks for: `TROTH_GUARD` and what goes with it.

TROTH_GUARD          1, yes, true, on: watch this process; 0, no, false, off, or empty: do not
TROTH_GUARD_MODE     raise (the default here: losses make the process exit with 120) or report
TROTH_GUARD_LOG      a file for JSON lines, added to whatever is in it
TROTH_GUARD_BLOCKED  seconds after which a loop counts as blocked; 0: blocked loops are left alone
"""

import os
import sys

from troth.errors import MisuseError
from troth.guard._watch import Mode, Report, install

__all__ = ["is_asked_for", "start"]

_YES = {"1", "yes", "true", "on"}
_TOLD: set[str] = set()
_NO = {"", "0", "no", "false", "off"}


def is_asked_for() -> bool:
    """Whether `TROTH_GUARD` says yes."""
    value = os.environ.get("TROTH_GUARD", "").strip().lower()
    if value not in _YES | _NO:
        raise MisuseError(
            f"TROTH_GUARD is {value!r}, which is neither 1 nor 0.\nThe guard was not started.\nSet it to 1 or to 0."
        )
    return value in _YES


def start() -> Report | None:
    """Install the guard as the environment asks; a wrong setting is said on stderr, for the program must run."""
    try:
        if not is_asked_for():
            return None
        mode, blocked = _mode(), _blocked()
        return install(mode=mode, blocked=blocked, log=os.environ.get("TROTH_GUARD_LOG") or None)
    except MisuseError as problem:
        if sys.stderr is not None and str(problem) not in _TOLD:
            sys.stderr.write(f"troth.guard: {problem}\n")
        _TOLD.add(str(problem))  # in a virtual environment Python reads the start file twice
        return None


def _mode() -> Mode:
    value = os.environ.get("TROTH_GUARD_MODE", "raise").strip().lower()
    if value == "report":
        return "report"
    if value == "raise":
        return "raise"
    raise MisuseError(
        f"TROTH_GUARD_MODE is {value!r}.\nThe guard was not started.\nThe modes are `report` and `raise`."
    )


def _blocked() -> float | None:
    value = os.environ.get("TROTH_GUARD_BLOCKED", "0.25").strip()
    try:
        seconds = float(value)
    except ValueError:
        raise MisuseError(
            f"TROTH_GUARD_BLOCKED is {value!r}, which is not a number of seconds.\nThe guard was not started.\n"
            "Give a number such as 0.25, or 0 to switch this off."
        ) from None
    return seconds if seconds > 0 else None
