"""Find which promises were made since the last look and are still unkept, without looking at every object each time.

Python's collector sorts objects by age. What was made since the last look is young, unless a collection has moved it
on; so we look at the young ones just before each collection that moves them, and once more when asked. A look at a few
thousand young objects costs a tenth of a millisecond, where a full one costs tens.
"""

import gc
import sys
import weakref
from typing import Any

from troth.guard._heap_scan import abandoned, is_unbegun, is_unread, take

__all__ = ["NewAwaitables"]

# A collection of generation 1 moves objects out of reach of the next look; from 3.14 on every collection may.
_MOVES_ON = 1 if sys.version_info < (3, 14) else 0


class NewAwaitables:
    """What has been made since `forget` and is not kept yet."""

    def __init__(self) -> None:
        self._new: dict[int, weakref.ref[Any]] = {}
        self._old: dict[int, weakref.ref[Any]] = {}

    def open(self) -> None:
        """Begin; from here on the collector announces itself. What is alive already is old."""
        self._look()
        self.forget()
        gc.callbacks.append(self._before_collection)

    def close(self) -> None:
        """End."""
        gc.callbacks.remove(self._before_collection)

    def forget(self) -> None:
        """Make all that was found by the last look count as old."""
        references = self._old | self._new
        self._old = {at: reference for at, reference in references.items() if reference() is not None}
        self._new = {}

    def settle(self) -> list[Any]:
        """Have everything that is already dead heard of, and return what is alive, unkept and in nobody's charge.

        That is: coroutines not begun that no task or suspended function holds, and failed tasks unread although their
        loop is closed. The collector is only called where the look has found something that could be lost.
        """
        self._look()
        if not self._new:
            return []
        gc.collect(1)
        if any(_is_unkept(thing) for thing in self._alive()):
            gc.collect()  # moved on by an earlier collection, perhaps, and dead since
        unkept = [thing for thing in self._alive() if _is_unkept(thing)]
        return [
            *abandoned([thing for thing in unkept if hasattr(thing, "cr_frame")]),
            *(thing for thing in unkept if not hasattr(thing, "cr_frame")),
        ]

    def _alive(self) -> list[Any]:
        return [thing for reference in self._new.values() if (thing := reference()) is not None]

    def _look(self) -> None:
        census = take(gc.get_objects(generation=0) + gc.get_objects(generation=1))
        for thing in (*census.coroutines, *census.pending, *census.unread):
            if not _has(self._old, thing) and not _has(self._new, thing):
                self._new[id(thing)] = weakref.ref(thing)

    def _before_collection(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] >= _MOVES_ON:
            self._look()


def _has(references: dict[int, weakref.ref[Any]], thing: object) -> bool:
    reference = references.get(id(thing))
    return reference is not None and reference() is thing


def _is_unkept(thing: Any) -> bool:
    if hasattr(thing, "cr_frame"):
        return is_unbegun(thing)
    return hasattr(thing, "get_loop") and is_unread(thing) and thing.get_loop().is_closed()
