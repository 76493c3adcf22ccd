"""Hear from event loops of tasks that were dropped and of exceptions nobody read.

A dying task or future tells its loop through `loop.call_exception_handler`. We listen there, for loops made of
asyncio's `BaseEventLoop` and for uvloop's, and always pass the message on: the program's own handler keeps its say. A
loop class that overrides the method without calling the one it inherits is not heard.
"""

import sys
from collections.abc import Callable
from typing import Any

from troth.guard._describe import exception_incident, task_incident
from troth.guard.incident import Incident

__all__ = ["TaskHooks"]

_METHOD = "call_exception_handler"


class TaskHooks:
    """Hears of lost tasks between `open` and `close`."""

    def __init__(self, hear: Callable[[Incident, object], object]) -> None:
        self._hear = hear
        self._hooked: dict[type, tuple[object, Any, bool]] = {}

    def open(self) -> None:
        """Listen to every loop class there is by now; called again, it takes in uvloop where that came later."""
        import asyncio

        self._take(asyncio.BaseEventLoop)
        if uvloop := sys.modules.get("uvloop"):
            self._take(getattr(uvloop, "Loop", None))

    def close(self) -> None:
        """Put back the methods that are still ours."""
        for loop_class, (ours, theirs, was_own) in self._hooked.items():
            if loop_class.__dict__.get(_METHOD) is not ours:
                continue
            if was_own:
                setattr(loop_class, _METHOD, theirs)
            else:
                delattr(loop_class, _METHOD)
        self._hooked.clear()

    def _take(self, loop_class: type | None) -> None:
        if loop_class is None or loop_class in self._hooked:
            return
        theirs = getattr(loop_class, _METHOD)
        hear = self._hear

        def call_exception_handler(loop: object, context: dict[str, Any]) -> object:
            if incident := _incident(context):
                hear(incident, context.get("task") or context.get("future"))
            return theirs(loop, context)

        self._hooked[loop_class] = (call_exception_handler, theirs, _METHOD in loop_class.__dict__)
        setattr(loop_class, _METHOD, call_exception_handler)


def _incident(context: dict[str, Any]) -> Incident | None:
    message = str(context.get("message", ""))
    if "task" in context and "destroyed but it is pending" in message:
        return task_incident(context["task"])
    if "future" in context and "exception was never retrieved" in message:
        return exception_incident(context["future"], context.get("exception"))
    return None
