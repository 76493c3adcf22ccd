"""Knows whether a step has lost a coroutine: made one, and let it die without anybody awaiting it.

`troth.guard` hears of it when the coroutine dies. Where it dies by losing its last reference, that happens within the
step, and the step's context names it. Where it dies in a reference cycle, Python collects it some time later, perhaps
in the middle of another step; so the young objects are collected when a step ends, and what dies then is this step's
doing if no other step was running. A collection that comes at any other moment blames nobody.
"""

import gc
import os
import threading
from typing import TYPE_CHECKING

from troth.guard import watchers
from troth.runtime.engine.current import CURRENT, CurrentStep

if TYPE_CHECKING:
    from troth.guard import Incident

__all__ = ["begin_step", "end_step", "start_watching", "stop_watching"]

_LOST = frozenset({"coroutine", "task"})
_running: set[int] = set()
_collecting = threading.local()


class _StepWatcher:
    """Takes what a step has lost. What nobody's step has lost is left for others to tell, Python first of all."""

    depth = 1
    blocked = None
    generators = False

    def notice(self, incident: "Incident") -> bool:
        if incident.kind not in _LOST:
            return False
        step = getattr(_collecting, "step", None) if _is_collecting() else CURRENT.get()
        if step is None:
            return False
        step.losses = (*step.losses, str(incident))
        return True


_watcher = _StepWatcher()
_engines = 0
_lock = threading.Lock()


def start_watching() -> None:
    """Hear of lost coroutines from now on; once for each engine."""
    global _engines  # noqa: PLW0603
    with _lock:
        _engines += 1
        if _engines == 1:
            watchers.join(_watcher)


def stop_watching() -> None:
    """The last one to stop takes the hooks out."""
    global _engines  # noqa: PLW0603
    with _lock:
        _engines -= 1
        if _engines == 0:
            watchers.leave(_watcher)


def begin_step(step: CurrentStep) -> int:
    """Say that `step` is running; give the answer to `end_step`."""
    _running.add(id(step))
    return gc.get_count()[1]


def end_step(step: CurrentStep, begun: int) -> tuple[str, ...]:
    """What `step` has lost, each in words with its place.

    Its objects are in the youngest generation, unless Python has collected meanwhile: the counter tells. To look into
    the second one every time would cost more than all the rest of a short step.
    """
    if len(_running) == 1:
        _collecting.step = step
        try:
            gc.collect(0 if gc.get_count()[1] == begun else 1)
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


def _forked() -> None:
    """In the child: the steps of the parent's other threads run there, and only the thread that forked is here."""
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    here = CURRENT.get()
    _running.intersection_update({id(here)} if here is not None else ())


os.register_at_fork(after_in_child=_forked)
