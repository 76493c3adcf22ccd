"""Knows whether a step has lost a coroutine: made one, and let it die without anybody awaiting it.

Python says so when the coroutine dies. Where it dies by losing its last reference, that happens within the step, and
the step's context names it. Where it dies in a reference cycle, Python collects it some time later, perhaps in the
middle of another step; so the young objects are collected when a step ends, and what dies then is this step's doing if
no other step was running. A collection that comes at any other moment blames nobody.
"""

import gc
import threading
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from troth.runtime.engine.current import CURRENT, CurrentStep

if TYPE_CHECKING:
    from types import CoroutineType

__all__ = ["begin_step", "end_step", "start_watching", "stop_watching"]

_YOUNG = 1  # generations that a step's own objects are in
_running: set[int] = set()
_collecting = threading.local()
_watchers = 0
_lock = threading.Lock()
_theirs: Callable[[Any], None] | None = None


def start_watching() -> None:
    """Hear of lost coroutines from now on."""
    global _watchers, _theirs  # noqa: PLW0603
    with _lock:
        _watchers += 1
        if _watchers == 1:
            _theirs = warnings._warn_unawaited_coroutine  # type: ignore[attr-defined]
            warnings._warn_unawaited_coroutine = _heard  # type: ignore[attr-defined]


def stop_watching() -> None:
    """The last one to stop takes the hooks out."""
    global _watchers  # noqa: PLW0603
    with _lock:
        _watchers -= 1
        if _watchers == 0:
            warnings._warn_unawaited_coroutine = _theirs  # type: ignore[attr-defined]


def begin_step(step: CurrentStep) -> None:
    """Say that `step` is running."""
    _running.add(id(step))


def end_step(step: CurrentStep) -> tuple[str, ...]:
    """What `step` has lost, each in words with its place."""
    if len(_running) == 1:
        _collecting.step = step
        try:
            gc.collect(_YOUNG)
        finally:
            _collecting.step = None
    _running.discard(id(step))
    return step.losses


def _is_collecting() -> bool:
    """Whether the garbage collector is at work: while it is, asking it to work does not even make it begin."""
    begun: list[str] = []

    def begin(phase: str, _: object) -> None:
        begun.append(phase)

    gc.callbacks.append(begin)
    try:
        gc.collect(0)
    finally:
        gc.callbacks.remove(begin)
    return not begun


def _heard(coroutine: "CoroutineType[Any, Any, Any]") -> None:
    step = getattr(_collecting, "step", None) if _is_collecting() else CURRENT.get()
    if step is not None:
        code = coroutine.cr_code
        step.losses = (*step.losses, f"`{coroutine.__qualname__}` ({code.co_filename}:{code.co_firstlineno})")
    elif _theirs is not None:
        _theirs(coroutine)
