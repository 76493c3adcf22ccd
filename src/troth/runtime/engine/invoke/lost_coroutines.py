"""Decide whether a step has lost a coroutine: made one, and let it die without anybody awaiting it.

`troth.guard` hears of it when the coroutine dies. Where it dies by losing its last reference, that happens within the
step, and the step's context names it. Where it dies in a reference cycle, Python collects it some time later, perhaps
in the middle of another step. So when a step ends and has left coroutines unawaited, or tasks pending, that are younger
than itself, the young objects are collected, and which of those die is this step's doing, if no other step was running.
What else dies, then or at any other moment, is blamed on nobody.
"""

import asyncio
import gc
import inspect
import os
import threading
from collections.abc import Collection
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from troth.guard import watchers
from troth.runtime.engine.current_step import CURRENT, CurrentStep

if TYPE_CHECKING:
    from troth.guard import Incident

__all__ = ["begin_step", "end_step", "start_watching", "stop_watching"]

_LOST = frozenset({"coroutine", "task"})
_running: dict[int, CurrentStep] = {}
_young: dict[int, set[object]] = {}
"""For a step that is running: the marks of what it had made and not awaited when Python last collected."""


class _Collecting(threading.local):
    """Whether this thread is collecting, and if it does so on behalf of a step, what may be blamed on that."""

    is_so = False
    step: CurrentStep | None = None
    young: Collection[object] = ()

    def blame(self, incident: "Incident") -> CurrentStep | None:
        mark = _mark(incident.kind, incident.stack, incident.task or incident.name)
        return self.step if mark in self.young else None


_collecting = _Collecting()


class _StepWatcher:
    """Takes what a step has lost. What nobody's step has lost is left for others to tell, Python first of all."""

    depth = 1
    blocked = None
    generators = False

    def notice(self, incident: "Incident") -> bool:
        if incident.kind not in _LOST:
            return False
        step = CURRENT.get() if not _collecting.is_so else _collecting.blame(incident)
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
            gc.callbacks.append(_collector_works)


def stop_watching() -> None:
    """The last one to stop takes the hooks out."""
    global _engines  # noqa: PLW0603
    with _lock:
        _engines -= 1
        if _engines == 0:
            watchers.leave(_watcher)
            gc.callbacks.remove(_collector_works)


def begin_step(step: CurrentStep) -> None:
    """Say that `step` is running."""
    _running[id(step)] = step


def end_step(step: CurrentStep) -> tuple[str, ...]:
    """What `step` has lost, each in words with its place.

    All young objects are looked at, which takes 0.00001 s. The collector's count of them would not do instead: older
    objects that die meanwhile, in another thread perhaps, are taken off it. The collector itself is asked only if there
    is something to find: it would never come to its older generations by itself if we always came first.
    """
    if len(_running) == 1:
        older = _young.pop(id(step), set())
        marks = older | _younger(step)
        if marks:
            _collecting.step, _collecting.young = step, marks
            try:
                gc.collect(1 if older else 0)
            finally:
                _collecting.step, _collecting.young = None, ()
    _running.pop(id(step), None)
    _young.pop(id(step), None)
    return step.losses


def _collector_works(phase: str, _: object) -> None:
    """Before Python collects in the middle of a step, note what the step has made: its age is not to be told later."""
    _collecting.is_so = phase == "start"
    if phase == "start" and len(_running) == 1:
        for key, step in list(_running.items()):
            if marks := _younger(step):
                _young.setdefault(key, set()).update(marks)


def _younger(step: CurrentStep) -> set[object]:
    """The marks of the unawaited coroutines and pending tasks of the youngest generation that are younger than `step`.

    A generation is a list in the order of birth. Where Python has collected while the step ran, the step is not in this
    one any more, and whatever is in it is younger.
    """
    marks: set[object] = set()
    objects = gc.get_objects(0)
    for index in range(len(objects) - 1, -1, -1):
        candidate = objects[index]
        if candidate is step:
            break
        if type(candidate) is CoroutineType:
            if inspect.getcoroutinestate(candidate) == inspect.CORO_CREATED:
                marks.add(_mark("coroutine", candidate.cr_origin or (), candidate.__qualname__))
        elif isinstance(candidate, asyncio.Task) and not candidate.done():
            marks.add(_mark("task", (), candidate.get_name()))
    return marks


def _mark(kind: str, origin: tuple[Any, ...], name: str) -> object:
    """What tells one promise from another: each coroutine has an origin of its own, where origins are kept at all."""
    return id(origin) if kind == "coroutine" and origin else (kind, name)


def _forked() -> None:
    """In the child: the steps of the parent's other threads run there, and only the thread that forked is here."""
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    current = CURRENT.get()
    for key in list(_running):
        if current is None or key != id(current):
            _running.pop(key, None)


os.register_at_fork(after_in_child=_forked)
