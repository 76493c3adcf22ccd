"""Decide whether a step has lost a coroutine: made one, and let it die without anybody awaiting it.

`troth.guard` hears of it when the coroutine dies. Where it dies by losing its last reference, that happens within the
step, and the step's context names it. Where it dies in a reference cycle, Python collects it some time later, perhaps
in the middle of another step. So when a step ends and has left coroutines unawaited, or tasks pending, that are younger
than itself, the young objects are collected, and which of those die is this step's doing, if no other step was running.
The same holds where Python collects by itself before that, in whatever thread. What else dies, then or at any other
moment, is blamed on nobody.
"""

import asyncio
import contextvars
import gc
import inspect
import os
import threading
import time
import weakref
from collections.abc import Collection
from functools import partial
from types import (
    BuiltinFunctionType,
    CellType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    TracebackType,
)
from typing import TYPE_CHECKING, Any, NamedTuple

from troth.guard import watchers
from troth.runtime.engine.current_step import CURRENT, CurrentStep

if TYPE_CHECKING:
    from troth.guard import Incident

__all__ = ["begin_step", "end_step", "start_watching", "stop_watching"]

_Made = dict[object, "weakref.ref[CoroutineType[Any, Any, Any] | asyncio.Task[Any]]"]
_LOST = frozenset({"coroutine", "task"})
_running: dict[int, CurrentStep] = {}


class _Survivors:
    """What a step that is running had made and not awaited when Python last collected, by mark."""

    def __init__(self) -> None:
        self.by_mark: _Made = {}
        self.generation = 0
        """The oldest that one of them may be in by now."""

    def are_left(self) -> bool:
        return any(_is_unawaited(alive) for alive in [ref() for ref in self.by_mark.values()] if alive is not None)


_survivors: dict[int, _Survivors] = {}


class _Collection(NamedTuple):
    """A collection that is under way, and what of that which dies in it may be blamed on which step."""

    thread: int
    step: CurrentStep | None
    young: Collection[object]

    def blame(self, incident: "Incident") -> CurrentStep | None:
        mark = _mark(incident.kind, incident.stack, incident.task or incident.name)
        return self.step if mark in self.young else None


_collection: _Collection | None = None
"""There is at most one: Python collects in one thread at a time, and a second one that asks is sent away."""

_OLDEST = 2
_MANY = 100
"""Young objects. To look at several hundred after a step takes longer than the rest of the step."""
_AT_MOST = 8
"""Collections of the middle generation that we ask for before the collector is let come by itself. It then comes as
often as without us, and only it can tell whether its oldest generation is due."""

_LONGEST_WAIT = 1.0
"""Seconds to wait for a collection in another thread: what it frees may run code of its own that waits for us."""


class _StepWatcher:
    """Takes what a step has lost. What nobody's step has lost is left for others to tell, Python first of all."""

    depth = 1
    blocked = None
    generators = False

    def notice(self, incident: "Incident") -> bool:
        if incident.kind not in _LOST:
            return False
        collection = _collection
        if collection is not None and collection.thread == threading.get_ident():
            step = collection.blame(incident)
        else:
            step = CURRENT.get()
        if step is None:
            return False
        step.losses = (*step.losses, str(incident))
        return True


_watcher = _StepWatcher()
_engines = 0
_lock = threading.Lock()


def start_watching() -> None:
    """Hear of lost coroutines from now on; once for each engine."""
    global _engines, _collection  # noqa: PLW0603
    with _lock:
        _engines += 1
        if _engines == 1:
            _collection = None  # the hook may have been taken out in the middle of one
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


_young = 0  # objects, when they were last looked at
_asked_for = 0  # collections of the middle generation since the collector came by itself
_is_asking = False


def begin_step(step: CurrentStep) -> None:
    """Say that `step` is running."""
    if _young > _MANY and not _running:
        _let_age()
    _running[id(step)] = step


def _let_age() -> None:
    """Have young objects collected before there are many, so that there are few to look at after each step.

    Where the collector is disabled, they would be all that there are.
    """
    global _young, _asked_for, _is_asking  # noqa: PLW0603
    _young = 0
    is_middle_due = gc.get_count()[1] > gc.get_threshold()[1] > 0
    if is_middle_due and _asked_for >= _AT_MOST and gc.isenabled():
        return
    _is_asking = True
    try:
        gc.collect(1 if is_middle_due else 0)
    finally:
        _is_asking = False
    _asked_for += is_middle_due


def end_step(step: CurrentStep) -> tuple[str, ...]:
    """What `step` has lost, each in words with its place.

    All young objects are looked at, which takes 0.00001 s. The collector's count of them would not do instead: older
    objects that die meanwhile, in another thread perhaps, are taken off it. The collector itself is asked only if there
    is something to find: it would never come to its older generations by itself if we always came first.
    """
    if len(_running) == 1:
        if _collection is not None:
            _wait_for_collector()
        # `_younger` first: it holds what it looks at, which therefore survives a collection that comes meanwhile.
        young = bool(_younger(step))
        survivors = _survivors.get(id(step)) if _survivors else None
        older = survivors is not None and survivors.are_left()
        if young or older:
            gc.collect(survivors.generation if survivors is not None and older else 0)
            _wait_for_collector()  # where a collection began in another thread at this moment, ours did nothing
    _running.pop(id(step), None)
    if _survivors:
        _survivors.pop(id(step), None)
    return step.losses


def _wait_for_collector() -> None:
    """Until the collection under way in another thread has ended: it may be freeing what the step has dropped.

    Polled, because the hook of the collector can be called at any line and may take no lock.
    """
    deadline = time.monotonic() + _LONGEST_WAIT
    while _is_collecting_elsewhere() and time.monotonic() < deadline:
        time.sleep(0.0005)


def _is_collecting_elsewhere() -> bool:
    collection = _collection
    return collection is not None and collection.thread != threading.get_ident()


def _collector_works(phase: str, info: dict[str, int]) -> None:
    """Before Python collects, note what the step has made: its age is not to be told later, and it may be dying now."""
    global _collection, _asked_for  # noqa: PLW0603
    if phase == "stop":
        _collection = None
        return
    if not _is_asking:
        _asked_for = 0
    _collection = _Collection(threading.get_ident(), None, ())
    if len(_running) != 1:
        return
    for key, step in list(_running.items()):
        survivors = _survivors.get(key)
        if young := _younger(step):
            survivors = _survivors.setdefault(key, _Survivors())
            survivors.by_mark.update(young)
        if survivors is not None:
            survivors.generation = max(survivors.generation, min(info["generation"] + 1, _OLDEST))
            _collection = _Collection(threading.get_ident(), step, survivors.by_mark)


_NEITHER: set[type] = set()
_NEITHER |= {tuple, list, dict, set, type, FrameType, FunctionType, MethodType, BuiltinFunctionType, CellType}
_NEITHER |= {GeneratorType, TracebackType, partial, weakref.ref, contextvars.Context, contextvars.Token}
"""What most objects are, and no coroutine and no task is. Types of Python itself are added as they are met."""
_MADE_BY_PROGRAMS = 1 << 9  # the flag of a type that may go away again, and is not kept here


def _younger(step: CurrentStep) -> _Made:
    """The unawaited coroutines and pending tasks of the youngest generation that are younger than `step`.

    A generation is a list in the order of birth. Where Python has collected while the step ran, the step is not in this
    one any more, and whatever is in it is younger.
    """
    global _young  # noqa: PLW0603
    young: _Made = {}
    objects = gc.get_objects(0)
    _young = len(objects)
    for candidate in reversed(objects):
        kind = type(candidate)
        if kind in _NEITHER:  # most of them, and the step is not
            continue
        if candidate is step:
            break
        if kind is CoroutineType or isinstance(candidate, asyncio.Task):
            if _is_unawaited(candidate):
                young[_mark_of(candidate)] = weakref.ref(candidate)
        elif not kind.__flags__ & _MADE_BY_PROGRAMS:
            _NEITHER.add(kind)
    return young


def _is_unawaited(candidate: "CoroutineType[Any, Any, Any] | asyncio.Task[Any]") -> bool:
    if isinstance(candidate, CoroutineType):
        return inspect.getcoroutinestate(candidate) == inspect.CORO_CREATED
    return not candidate.done()


def _mark_of(candidate: "CoroutineType[Any, Any, Any] | asyncio.Task[Any]") -> object:
    if isinstance(candidate, CoroutineType):
        return _mark("coroutine", candidate.cr_origin or (), candidate.__qualname__)
    return _mark("task", (), candidate.get_name())


def _mark(kind: str, origin: tuple[Any, ...], name: str) -> object:
    """What tells one promise from another: each coroutine has an origin of its own, where origins are kept at all."""
    return id(origin) if kind == "coroutine" and origin else (kind, name)


def _forked() -> None:
    """In the child: the steps of the parent's other threads run there, and only the thread that forked is here."""
    global _lock, _collection
    _lock, _collection = threading.Lock(), None
    current = CURRENT.get()
    for key in list(_running):
        if current is None or key != id(current):
            _running.pop(key, None)


os.register_at_fork(after_in_child=_forked)
