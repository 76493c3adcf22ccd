"""Say the way out where a future, a client or a pool belongs to another loop than the one that awaits it."""

__all__ = ["note_other_loop"]

# asyncio and the libraries on it say this with a bare RuntimeError, so that its words are all there is to know it by.
_WORDS = ("different loop", "different event loop", "Event loop is closed", "bound to a different", "wrong event loop")
_NOTE = (
    "What is awaited here belongs to another event loop than the one it is awaited on. Make it and use it on one loop: "
    "through one `bridge.Portal` for all calls, in a task with a `greenback` portal, or from a worker thread that "
    "`bridge.call` has started, which goes back to the loop that sent it."
)


def note_other_loop(error: BaseException) -> None:
    """Add the sentence to an error that is about two loops; once, however many calls it passes."""
    if not isinstance(error, RuntimeError) or _NOTE in getattr(error, "__notes__", ()):
        return
    if any(words in str(error) for words in _WORDS):
        error.add_note(_NOTE)
