"""How a place is repaired that wants a function, in the words of the library that its file waits with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from troth.analysis.semantics.symbols import Module

__all__ = ["command_run_by_hand", "coroutine_awaited_itself", "function_handed_over", "plain_function_that_starts"]


class _Library(NamedTuple):
    starts: str  # how a sync function on the loop's own thread starts a coroutine of `work`
    runs: str  # how one in another thread, or in no loop, does


_LIBRARIES = {
    "asyncio": _Library("asyncio.create_task(work())", "asyncio.run(work())"),
    "anyio": _Library("task_group.start_soon(work)", "anyio.run(work)"),
    "trio": _Library("nursery.start_soon(work)", "trio.run(work)"),
}


def _library(module: Module) -> _Library:
    """What the file waits with: asyncio, unless it imports another one of the three and not asyncio."""
    others = () if "asyncio" in module.packages else ("anyio", "trio")
    return _LIBRARIES[next((name for name in others if name in module.packages), "asyncio")]


def plain_function_that_starts(module: Module) -> str:
    """For a slot whose callbacks are called on the loop's thread, or in any other."""
    own = _library(module)
    return (
        f"give it a sync function that starts the coroutine: `lambda: {own.starts}` on the loop's own thread, "
        f"`lambda: {own.runs}` in a thread or a command"
    )


def coroutine_awaited_itself(name: str) -> str:
    """For `await to_thread(work)`: the thread is for sync functions."""
    return f"await `{name}(…)` itself: a thread is for sync functions, and this one does not block the event loop"


def command_run_by_hand(module: Module) -> str:
    """For a decorator that calls the function and knows no loop: `@click.command()`."""
    return f"make this a plain `def`, and run the async part inside it: `{_library(module).runs}`"


def function_handed_over(module: Module) -> str:
    """For a coroutine in the place of a function."""
    return (
        "await it; where a function is wanted, hand over the function and its arguments (`start_soon(work, 1)`, "
        "`start_soon(partial(work, n=1))`), or, where that has to be a sync one, "
        f"`lambda: {_library(module).starts.replace('work()', 'work(1)').replace('work)', 'work, 1)')}`"
    )
