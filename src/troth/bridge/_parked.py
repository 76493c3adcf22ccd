"""Which threads are waiting on the bridge and so can wake nobody.

A wait can be proved endless only if no other thread is left that could end it. Threads the bridge itself keeps
(a worker without work, a caller waiting for its portal) are not such threads. Everybody else is.
"""

import sys
import threading

__all__ = ["PARKED", "anybody_else_awake"]

PARKED: set[int] = set()
"""Idents of threads that do nothing until the bridge wakes them. Added and removed by the thread itself."""


def anybody_else_awake() -> bool:
    """Say whether any thread but this one could still do something.

    `threading` knows the threads Python started, the interpreter the foreign ones that are inside Python code. A
    thread of an extension module that has never yet called into Python is in neither list.
    """
    known = {thread.ident for thread in threading.enumerate()} | sys._current_frames().keys()
    return bool(known - PARKED - {threading.get_ident()})
