"""How sync code iterates what is asynchronous to iterate."""

import asyncio
import sys
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from typing import Generic, TypeVar

from troth.bridge._errors import NotRunnableError, WrongThreadError
from troth.bridge._long_lived_task import LeftEarly, LongLivedTask

__all__ = ["Iteration", "iterate"]

T = TypeVar("T")


def iterate(source: AsyncIterable[T], /) -> "Iteration[T]":
    """Iterate `source` from sync code, wherever `bridge.run` works.

    The source runs only while its next item is asked for. Leaving the loop early closes it, and its `finally` blocks
    run: at once when the iterator is dropped, which a `break` does, or when `close()` is called. All steps run in one
    task, so timeouts and task groups inside an async generator work. It stays on the thread of its first step.
    """
    if not hasattr(type(source), "__aiter__"):
        raise NotRunnableError(
            f"`bridge.iterate` needs something that `async for` accepts, and {source!r} is not.\n"
            "Nothing ran. Call an async generator function first; loop over a sync iterable directly."
        )
    return Iteration(source)


class Iteration(Iterator[T], Generic[T]):
    """A sync iterator over an asynchronous source."""

    def __init__(self, source: AsyncIterable[T]) -> None:
        self._steps = _Steps(source)
        self._resident = LongLivedTask(self._steps.interrupt)
        self._is_over = False

    def __next__(self) -> T:
        if self._is_over:
            raise StopIteration
        try:
            item: T = self._resident.ask(self._steps.next)
        except StopAsyncIteration:
            self._end()
            raise StopIteration from None
        except LeftEarly as departure:
            reason = departure.reason
        except WrongThreadError:
            raise
        except BaseException:
            self._end()
            raise
        else:
            return item
        self._end()
        if reason is None:
            raise StopIteration
        raise reason

    def close(self) -> None:
        """Close the source, and run its `finally` blocks here and now."""
        if self._is_over:
            return
        if self._steps.have_begun:
            try:
                self._resident.ask(self._steps.close)
            except LeftEarly:
                self._is_over = True  # closed already, and nobody wants to know any more what came of it
        self._end()

    def __enter__(self) -> "Iteration[T]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self._resident.can_be_asked and not sys.is_finalizing():
            self.close()  # elsewhere, the end of its own thread closes the source

    def _end(self) -> None:
        self._is_over = True
        self._resident.leave()


class _Steps(Generic[T]):
    """The asynchronous side. It knows nothing of the iterator, which can so be dropped while this lives on the loop."""

    def __init__(self, source: AsyncIterable[T]) -> None:
        self._source = source
        self._iterator: AsyncIterator[T] | None = None

    @property
    def have_begun(self) -> bool:
        return self._iterator is not None

    async def next(self) -> T:
        if self._iterator is None:
            self._iterator = aiter(self._source)
        return await anext(self._iterator)

    async def interrupt(self, request: asyncio.CancelledError) -> None:
        """Raise the cancellation where the source stands: if it comes from a timeout of its own, that knows it."""
        throw = getattr(self._iterator, "athrow", None)
        if throw is None:
            await self.close()
            raise request
        try:
            await throw(request)
        except StopAsyncIteration:
            return
        await self.close()
        raise request

    async def close(self) -> None:
        close = getattr(self._iterator, "aclose", None)
        if close is not None:
            await close()
