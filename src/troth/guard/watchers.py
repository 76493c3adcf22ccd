"""Add a watcher of one's own beside `install` and `watch`: for the parts of Troth that act on a loss.

A watcher hears of every incident in the process from `join` to `leave`, in whatever thread it happens.
"""

from troth.guard._hub import HUB, Watcher

__all__ = ["Watcher", "join", "leave"]


def join(watcher: Watcher) -> None:
    """Let `watcher` hear everything from now on. The first one puts the hooks into place."""
    HUB.join(watcher)


def leave(watcher: Watcher) -> None:
    """Let it go; the last one to leave takes the hooks out."""
    HUB.leave(watcher)
