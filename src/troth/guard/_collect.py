"""Bring losses to light that Python itself would only mention later, or never.

A coroutine in a reference cycle dies when the collector gets to it; one that a module still holds when the program ends
dies without a word. A sweep looks for such promises now.
"""

import gc
import weakref

from troth.guard._describe import (
    coroutine_incident,
    exception_incident,
    generator_incident,
    task_incident,
)
from troth.guard._heap_scan import abandoned, is_unread, take
from troth.guard._hub import Hub

__all__ = ["collect", "tell_what_is_left"]


def collect(hub: Hub) -> None:
    """Run the collector if there is anything that could be lost, so that what sits in a dead cycle is heard of now."""
    census = take(gc.get_objects())
    if not census:
        return
    # Python says nothing when an async generator dies, so each one is described beforehand.
    doomed = [
        (weakref.ref(generator), generator_incident(generator, "it was in a reference cycle"))
        for generator in census.generators
    ]
    del census  # it would keep alive the very things the collector is asked about
    gc.collect()
    for reference, incident in doomed:
        if reference() is None:
            hub.tell(incident)


def tell_what_is_left(hub: Hub) -> None:
    """At the end of the program: tell of everything that is still waiting to be kept, and now never will be.

    What belongs to a loop that still turns in a daemon thread is left alone: it is being worked on to the last moment.
    """
    collect(hub)
    census = take(gc.get_objects())
    if not census:
        return
    for coroutine in abandoned(census.coroutines):
        hub.mark_reported(coroutine)
        hub.tell(coroutine_incident(coroutine, "it was still referenced when the program ended"))
    for task in census.pending:
        if not task.done() and not task.get_loop().is_running():
            hub.mark_reported(task)
            if hasattr(inner := task.get_coro(), "cr_frame"):
                hub.mark_reported(inner)
            hub.tell(task_incident(task, "its loop had stopped when the program ended"))
    for future in census.unread:
        if is_unread(future) and not future.get_loop().is_running():
            hub.mark_reported(future)
            hub.tell(exception_incident(future, future._exception))
    for generator in census.generators:
        hub.tell(generator_incident(generator, "it was still referenced when the program ended"))
