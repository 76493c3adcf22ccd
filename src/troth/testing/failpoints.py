"""Stop a program exactly at one of the runtime's commits.

    with failpoints.armed("step.begin.after"):           # raises InjectedFaultError there
        ...
    with failpoints.armed("run.finish.written", "kill"):  # SIGKILLs this very process there
        ...

`environment("step.begin.after", "kill", nth=3)` is the same for a process that is still to be started. The names are
listed by `names()`; a name that nobody has declared is refused, because a test that never stops proves nothing.
"""

import contextlib
import difflib
import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterator

import troth.runtime
from troth.errors import MisuseError
from troth.runtime.store import failpoints as hooks
from troth.runtime.store.failpoints import InjectedFaultError

__all__ = ["InjectedFaultError", "armed", "environment", "names"]


def names() -> list[str]:
    """Every failpoint of the runtime, in the order of declaration. Imports the whole runtime to know them."""
    has_postgres = importlib.util.find_spec("psycopg") is not None
    for module in pkgutil.walk_packages(troth.runtime.__path__, "troth.runtime."):
        if has_postgres or not module.name.startswith("troth.runtime.store.postgres."):
            importlib.import_module(module.name)
    return hooks.failpoint_names()


@contextlib.contextmanager
def armed(name: str, action: str | Callable[[str], None] = "raise", *, nth: int = 1) -> Iterator[None]:
    """Perform `action` at the `nth` arrival at `name`, as long as the block runs: raise, kill, exit, or a function."""
    _check(name)
    hooks.arm(name, hooks.action_named(action) if isinstance(action, str) else action, nth=nth)
    try:
        yield
    finally:
        hooks.disarm(name)


def environment(name: str, action: str = "kill", *, nth: int = 1) -> dict[str, str]:
    """The variable that arms `name` in a process started with it."""
    _check(name)
    hooks.action_named(action)
    return {hooks.VARIABLE: f"{name}={action}@{nth}"}


def _check(name: str) -> None:
    points = names()
    if name not in points:
        near = difflib.get_close_matches(name, points, n=1)
        raise MisuseError(
            f"There is no failpoint {name!r}{f'; did you mean {near[0]!r}?' if near else ''}\n"
            "Nothing was armed. `troth.testing.failpoints.names()` lists them."
        )
