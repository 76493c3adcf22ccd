"""Describe a lost promise (coroutine, async generator, task, future) as an incident."""

import threading
import time
from types import AsyncGeneratorType, CodeType, CoroutineType, TracebackType
from typing import TYPE_CHECKING, Any

from troth.guard._place import making_frame
from troth.guard.incident import Incident

if TYPE_CHECKING:
    import asyncio

    Coroutine = CoroutineType[Any, Any, Any]
else:
    Coroutine = CoroutineType  # subscripted at run time only from Python 3.13 on

__all__ = [
    "Coroutine",
    "coroutine_incident",
    "exception_incident",
    "generator_incident",
    "task_incident",
    "thread_name",
]

Origin = tuple[tuple[str, int, str], ...]


def thread_name() -> str:
    """The name of this thread, without making `threading` believe that a foreign thread is its own."""
    ident = threading.get_ident()
    current = next((thread for thread in threading.enumerate() if thread.ident == ident), None)
    return current.name if current else f"thread {ident}"


def _defined(code: CodeType | None) -> tuple[str, int]:
    return (code.co_filename, code.co_firstlineno) if code else ("", 0)


def coroutine_incident(coroutine: Coroutine, detail: str = "") -> Incident:
    """A coroutine that was never awaited."""
    origin: Origin = coroutine.cr_origin or ()
    file, line, _ = making_frame(origin)
    defined_file, defined_line = _defined(coroutine.cr_code)
    return Incident(
        "coroutine", coroutine.__qualname__, file, line, thread_name(), time.time(), origin, defined_file, defined_line,
        detail=detail,
    )  # fmt: skip


def generator_incident(generator: "AsyncGeneratorType[Any, Any]", detail: str) -> Incident:
    """An async generator that was never iterated. Python keeps no origin for these: the `def` is all there is."""
    file, line = _defined(generator.ag_code)
    return Incident(
        "generator", generator.__qualname__, "", 0, thread_name(), time.time(), (), file, line, detail=detail
    )


def task_incident(task: "asyncio.Task[Any]", detail: str = "") -> Incident:
    """A task that is gone, or will never be run again, while still pending."""
    name, (file, line), defined, origin = _task_origin(task)
    return Incident(
        "task", name, file, line, thread_name(), time.time(), origin, *defined, task=task.get_name(), detail=detail
    )


def exception_incident(future: "asyncio.Future[Any]", error: BaseException | None) -> Incident:
    """A task or future whose exception nobody read. No coroutine made a plain future: its error's line serves."""
    detail = f"it was {error!r}" if error is not None else ""
    if not hasattr(future, "get_coro"):
        file, line = _raised_at(error.__traceback__ if error is not None else None)
        return Incident("exception", type(future).__name__, file, line, thread_name(), time.time(), detail=detail)
    task: Any = future
    name, (file, line), defined, origin = _task_origin(task)
    return Incident(
        "exception", name, file, line, thread_name(), time.time(), origin, *defined,
        task=task.get_name(), detail=detail,
    )  # fmt: skip


def _task_origin(task: "asyncio.Task[Any]") -> tuple[str, tuple[str, int], tuple[str, int], Origin]:
    """Name, place of making, place of definition and origin of the coroutine inside a task, where it still has one."""
    coroutine = task.get_coro()
    origin: Origin = getattr(coroutine, "cr_origin", None) or ()
    file, line, _ = making_frame(origin)
    code = getattr(coroutine, "cr_code", None) or getattr(coroutine, "gi_code", None)
    return getattr(coroutine, "__qualname__", repr(coroutine)), (file, line), _defined(code), origin


def _raised_at(traceback: TracebackType | None) -> tuple[str, int]:
    if traceback is None:
        return "", 0
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
