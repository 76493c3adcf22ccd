"""Hear from Python that a coroutine died without ever having been awaited.

CPython looks up `warnings._warn_unawaited_coroutine` by name each time and hands it the coroutine. Taking that place is
exact: no filter, no registry of "already warned" lines, no exception that a `__del__` would swallow. The name is
private, so where it is missing we go the documented way round: a filter turns the warning into an error, an error in a
finalizer goes to `sys.unraisablehook`, and that is told which coroutine it was. The way round hears nothing inside a
`warnings.catch_warnings()` block that ignores RuntimeWarning; the direct way does.
"""

import re
import sys
import warnings
from collections.abc import Callable
from types import CoroutineType
from typing import Any, Protocol

from troth.guard._describe import Coroutine

__all__ = ["UnawaitedHook", "unawaited_hook"]

_NAME = "_warn_unawaited_coroutine"
_MESSAGE = r"coroutine '.*' was never awaited"

Hear = Callable[[Coroutine], bool]
"""Takes the coroutine; true where the loss has been said, false where Python should say it in its own way as well."""


class UnawaitedHook(Protocol):
    """Something that hears of dead coroutines between `open` and `close`."""

    def open(self) -> None:
        """Begin to hear; also brings back what others have pushed aside since."""

    def close(self) -> None:
        """Put back what was there before, unless somebody has since put something of their own on top of ours."""


def unawaited_hook(hear: Hear) -> UnawaitedHook:
    """The direct way where this Python has it, the way round otherwise."""
    return _DirectEar(hear) if hasattr(warnings, _NAME) else _FilterEar(hear)


class _DirectEar:
    def __init__(self, hear: Hear) -> None:
        self._hear = hear
        self._is_open = False
        self._theirs: Callable[[Coroutine], None] | None = None

    def open(self) -> None:
        self._is_open = True
        current = getattr(warnings, _NAME, None)
        if current != self._never_awaited and self._theirs is None:
            self._theirs = current
            setattr(warnings, _NAME, self._never_awaited)

    def close(self) -> None:
        self._is_open = False
        if getattr(warnings, _NAME, None) == self._never_awaited:
            setattr(warnings, _NAME, self._theirs)
            self._theirs = None

    def _never_awaited(self, coroutine: Coroutine) -> None:
        is_reported = self._is_open and self._hear(coroutine)
        if not is_reported and self._theirs is not None:
            self._theirs(coroutine)


class _FilterEar:
    def __init__(self, hear: Hear) -> None:
        self._hear = hear
        self._layer: _Layer | None = None
        self._filter = ("error", re.compile(_MESSAGE, re.IGNORECASE), RuntimeWarning, None, 0)

    def open(self) -> None:
        if not warnings.filters or warnings.filters[0] != self._filter:
            # The public call puts the filter in front and tells the C half of `warnings` that filters have changed.
            warnings.filterwarnings("error", message=_MESSAGE, category=RuntimeWarning)
        if self._layer is None or sys.unraisablehook is not self._layer:
            if self._layer is not None:
                self._layer.hear = None
            self._layer = sys.unraisablehook = _Layer(self._hear, sys.unraisablehook)

    def close(self) -> None:
        if self._layer is not None:
            self._layer.hear = None
            if sys.unraisablehook is self._layer:
                sys.unraisablehook = self._layer.theirs
            self._layer = None
        remaining = [entry for entry in warnings.filters if entry != self._filter]
        if len(remaining) != len(warnings.filters):
            warnings.filters[:] = remaining  # type: ignore[index]  # a list in every CPython
            warnings.simplefilter("default", category=_Never, append=True)  # the public way to say "filters changed"
            warnings.filters[:] = remaining  # type: ignore[index]


class _Layer:
    """Our unraisable hook.

    One that others have covered is made mute and a new one put on top: should they call the old one, it hands on to
    what was there before it, so no ring can arise.
    """

    def __init__(self, hear: Hear, theirs: Callable[[Any], object]) -> None:
        self.hear: Hear | None = hear
        self.theirs = theirs

    def __call__(self, unraisable: Any) -> None:
        lost = unraisable.object
        is_loss = isinstance(lost, CoroutineType) and isinstance(unraisable.exc_value, RuntimeWarning)
        if self.hear is not None and is_loss and re.match(_MESSAGE, str(unraisable.exc_value)) and self.hear(lost):
            return
        self.theirs(unraisable)


class _Never(Warning):
    """A category nobody raises."""
