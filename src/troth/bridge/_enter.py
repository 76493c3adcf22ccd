"""How sync code enters an async context manager."""

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Generic, TypeVar

from troth.bridge._errors import NotRunnableError
from troth.bridge._resident import Resident

__all__ = ["enter"]

T = TypeVar("T")


def enter(manager: AbstractAsyncContextManager[T, bool | None], /) -> AbstractContextManager[T, bool | None]:
    """Enter `manager` with a plain `with`, wherever `bridge.run` works.

    It is entered and left in one task of one loop. Between the two, its loop turns only while `bridge.run` or another
    part of the bridge works in this thread, unless this is a worker thread, whose home loop never stops.
    """
    if not (hasattr(type(manager), "__aenter__") and hasattr(type(manager), "__aexit__")):
        raise NotRunnableError(
            f"`bridge.enter` needs something that `async with` accepts, and {manager!r} is not.\nNothing ran."
        )
    return _Entered(manager)


class _Entered(AbstractContextManager[T, bool | None], Generic[T]):
    """A sync context manager around an asynchronous one."""

    def __init__(self, manager: AbstractAsyncContextManager[T, bool | None]) -> None:
        self._manager = manager
        self._resident = Resident(self._leave_alone)

    def __enter__(self) -> T:
        try:
            value: T = self._resident.ask(self._manager.__aenter__)
        except BaseException:
            self._resident.leave()
            raise
        return value

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> bool | None:
        try:
            suppressed: bool | None = self._resident.ask(lambda: self._manager.__aexit__(kind, error, traceback))
        finally:
            self._resident.leave()
        return suppressed

    async def _leave_alone(self) -> None:
        await self._manager.__aexit__(None, None, None)
