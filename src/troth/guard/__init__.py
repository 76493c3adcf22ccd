"""Watches a program while it runs, so that no promise is lost in silence.

    guard.install()                    the whole process: losses and blocked loops go to the log, with file and line
    with guard.watch() as report:      one block of code; `report.losses`, `report.blocks`
    python -m troth.guard script.py    a program one cannot edit; TROTH_GUARD=1 does the same
    pytest --troth                     the test that loses a coroutine or a task fails

`docs/reference/guard.md` has the details, `docs/how-to/catch-lost-coroutines.md` the way in.
"""

from typing import TYPE_CHECKING

from troth.guard.incident import Incident

if TYPE_CHECKING:
    from troth.guard._watch import LostPromiseError, Report, install, uninstall, watch

__all__ = ["Incident", "LostPromiseError", "Report", "install", "uninstall", "watch"]


def __getattr__(name: str) -> object:
    """Import the machinery at the first use: the pytest plugin lives in this package, and costs nothing while off."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from troth.guard import _watch

    return getattr(_watch, name)


def __dir__() -> list[str]:
    return __all__
