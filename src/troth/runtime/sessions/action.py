"""Describe an action that members of a session may have performed: what it calls, and how it is taken back."""

from collections.abc import Callable, Iterable

from troth.errors import MisuseError
from troth.runtime.sagas.checked_callable import CheckedCallable, judge
from troth.runtime.sessions.checks import check_id, check_number
from troth.runtime.sessions.policy.ring import Reversibility, Ring

__all__ = ["Action"]


class Action:
    """A function of either color under a name. What it needs follows from how far it can be taken back.

    `is_admin` needs ring 0; what cannot be taken back needs ring 1; what only reads needs ring 3; all else ring 2.
    `undo` is called with those inputs it has parameters for, and with `result`; after `undo_window` seconds it is not
    called any more, and that is said. `timeout` limits one call. `command` names the input that is a command line or a
    list of words, `paths` those that are paths of files: they are compared with what the session allows.
    """

    __slots__ = (
        "call",
        "command",
        "is_admin",
        "name",
        "paths",
        "read_only",
        "reversibility",
        "timeout",
        "undo",
        "undo_window",
    )

    def __init__(
        self,
        name: str,
        call: Callable[..., object],
        *,
        undo: Callable[..., object] | None = None,
        reversibility: Reversibility | str | None = None,
        read_only: bool = False,
        is_admin: bool = False,
        undo_window: float | None = None,
        timeout: float | None = None,
        command: str | None = None,
        paths: Iterable[str] = (),
    ) -> None:
        self.name = check_id("The name of an action", name)
        self.call: CheckedCallable = judge(call, f"the action {name!r}")
        self.undo = None if undo is None else judge(undo, f"the undo of {name!r}")
        default = Reversibility.FULL if undo is not None or read_only else Reversibility.NONE
        self.reversibility = default if reversibility is None else Reversibility(reversibility)
        if self.reversibility is Reversibility.FULL and undo is None and not read_only:
            raise MisuseError(f"The action {name!r} is declared fully reversible, but has no `undo`. Give it one.")
        if undo_window is not None and undo is None:
            raise MisuseError(f"The action {name!r} has an `undo_window` but no `undo`, so the window has no effect.")
        self.command = command
        self.paths = tuple(paths)
        for name_of_input in (*self.paths, *(() if command is None else (command,))):
            if self.call.takes is not None and name_of_input not in self.call.takes:
                raise MisuseError(f"The action {name!r} has no input {name_of_input!r}: nothing would be checked.")
        self.read_only = read_only
        self.is_admin = is_admin
        self.undo_window = None if undo_window is None else check_number("`undo_window`", undo_window, 0, 1e9)
        self.timeout = None if timeout is None else check_number("`timeout`", timeout, 1e-3, 1e9)

    @property
    def ring(self) -> Ring:
        """The ring it needs."""
        if self.is_admin:
            return Ring.ROOT
        if self.read_only:
            return Ring.SANDBOX
        return Ring.PRIVILEGED if self.reversibility is Reversibility.NONE else Ring.STANDARD

    def __repr__(self) -> str:
        return f"Action({self.name!r}, ring={int(self.ring)})"
