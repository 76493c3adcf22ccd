"""Say the way out where a future, a client or a pool belongs to another loop than the one that awaits it."""

from collections.abc import Iterator

__all__ = ["note_other_loop"]

# asyncio and the libraries on it say this with a bare RuntimeError or ValueError, so that its words are all there is to
# know it by.
_WORDS = (
    "different loop",
    "different event loop",
    "Event loop is closed",
    "bound to a different",
    "wrong event loop",
    "use same event loop",
    "event loop other than the current one",
)
_NOTE = (
    "What is awaited here belongs to another event loop than the one it is awaited on. Make it and use it on one loop: "
    "through one `bridge.Portal` for all calls, in a task with a `greenback` portal, or from a worker thread that "
    "`bridge.call` has started, which goes back to the loop that sent it."
)
_MOST = 50  # errors of one chain that are looked at; a chain may be a circle


def note_other_loop(error: BaseException) -> None:
    """Add the sentence to each error that is about two loops; once, however many calls it passes.

    A client may have put an error of its own around it, and a task group a group.
    """
    for part in _parts(error):
        if not isinstance(part, (RuntimeError, ValueError)) or _NOTE in getattr(part, "__notes__", ()):
            continue
        # No `__str__` of a stranger is run.
        message = " ".join(argument for argument in part.args if isinstance(argument, str))
        if any(words in message for words in _WORDS):
            part.add_note(_NOTE)


def _parts(error: BaseException) -> Iterator[BaseException]:
    waiting, visited = [error], set[int]()
    while waiting and len(visited) < _MOST:
        part = waiting.pop()
        if id(part) in visited:
            continue
        visited.add(id(part))
        yield part
        shown = part.__cause__ if part.__suppress_context__ else part.__context__
        if shown is not None:
            waiting.append(shown)
        if isinstance(part, BaseExceptionGroup):
            waiting.extend(part.exceptions)
