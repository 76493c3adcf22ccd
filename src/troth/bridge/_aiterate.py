"""How async code iterates what is synchronous without blocking its loop."""

import inspect
from collections.abc import AsyncGenerator, Iterable
from typing import TypeVar

from troth.bridge._call import call
from troth.bridge._errors import NotRunnableError

__all__ = ["aiterate"]

T = TypeVar("T")
_END = object()


def aiterate(iterable: Iterable[T], /, *, thread: bool = True) -> AsyncGenerator[T, None]:
    """Iterate `iterable` with `async for`; every step runs in a worker thread, as with `bridge.call`.

    Steps never overlap, but two of them may run in different threads; `thread=False` takes them on the loop, for what
    is bound to its thread. When the iteration ends, early or not, a generator is closed and its `finally` blocks run:
    wrap it in `contextlib.aclosing` to have that happen at a certain place.
    """
    if not hasattr(type(iterable), "__iter__") and not hasattr(type(iterable), "__getitem__"):
        raise NotRunnableError(f"`bridge.aiterate` needs something that `for` accepts, and {iterable!r} is not.")
    return _steps(iterable, thread=thread)


async def _steps(iterable: Iterable[T], *, thread: bool) -> AsyncGenerator[T, None]:
    iterator = await call(iter, iterable, thread=thread)
    try:
        while True:
            item = await call(next, iterator, _END, thread=thread)
            if item is _END:
                return
            yield item  # type: ignore[misc]
    finally:
        if inspect.isgenerator(iterator):
            await call(iterator.close, thread=thread)
