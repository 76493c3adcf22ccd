"""What things of the async color are called in plain code."""

from troth.analysis.semantics.resolve import library

__all__ = ["plain_attribute", "plain_class", "plain_dotted"]

# What Python and its libraries call the same in both colors, as methods and as names.
_WORDS = {
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "aclose": "close",
    "enter_async_context": "enter_context",
    "push_async_exit": "push",
    "StopAsyncIteration": "StopIteration",
    "AsyncIterator": "Iterator",
    "AsyncIterable": "Iterable",
    "AsyncGenerator": "Generator",
    "AsyncContextManager": "ContextManager",
    "AbstractAsyncContextManager": "AbstractContextManager",
    "AsyncExitStack": "ExitStack",
    "asynccontextmanager": "contextmanager",
    "anext": "next",
    "aiter": "iter",
}
_DOTTED = {
    "asyncio.sleep": "time.sleep",
    "asyncio.Lock": "threading.Lock",
    "asyncio.Event": "threading.Event",
    "asyncio.Semaphore": "threading.Semaphore",
    "asyncio.Condition": "threading.Condition",
    "asyncio.Queue": "queue.Queue",
    "asyncio.TimeoutError": "TimeoutError",
}


def plain_attribute(name: str) -> str | None:
    """The plain word for a method or a name of Python's own; None if there is none."""
    return _WORDS.get(name)


def plain_class(name: str) -> str:
    """How the sync twin of a class is called: `AsyncStore` is the twin of `Store`, and `Store` that of `SyncStore`."""
    if name.startswith("Async") and len(name) > len("Async"):
        return name.removeprefix("Async")
    if name.endswith("Async") and len(name) > len("Async"):
        return name.removesuffix("Async")
    if name.startswith("_Async"):
        return f"_{name.removeprefix('_Async')}"
    return f"Sync{name}"


def plain_dotted(dotted: str) -> str | None:
    """The sync twin of something of a library by its full name (`httpx.AsyncClient`); None if none is known."""
    if dotted in _DOTTED:
        return _DOTTED[dotted]
    head, _, last = dotted.rpartition(".")
    if "Async" not in last:
        return None
    twin = f"{head}.{last.replace('Async', '', 1)}"
    return twin if library.find(twin) is not None else None
