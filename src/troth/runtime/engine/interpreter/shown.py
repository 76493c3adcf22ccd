"""Decide what of a command is shown to those who follow the run, and with which words."""

import json

from troth.runtime.engine.commands import Append, Command, Sleep, Step, Wait

__all__ = ["note_of", "shows_begin", "shows_end"]


def shows_begin(ask: Command) -> bool:
    """Whether its beginning is an event."""
    match ask:
        case Step() | Sleep() | Append():
            return ask.shows in ("all", "begin")
        case Wait():
            return True
    return False


def shows_end(ask: Command) -> bool:
    """Whether its end is an event."""
    match ask:
        case Step() | Sleep() | Append():
            return ask.shows in ("all", "end")
        case Wait():
            return True
    return False


def note_of(ask: Command) -> str | None:
    """What the decision wants to have shown with it, as JSON."""
    if isinstance(ask, Wait | Append) and ask.note is not None:
        return json.dumps(dict(ask.note))
    return None
