"""Knows how to call the tools a model asked for, side by side, and makes data of whatever goes wrong.

Sync tools run in worker threads, async ones on a loop. A tool that takes too long is given up: an async one is
cancelled, the thread of a sync one is abandoned, counted and named in the log.
"""

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from troth.bridge import run as bridge_run
from troth.color import Color
from troth.errors import MisuseError, RunError
from troth.runtime.engine.workers import Job, Workers
from troth.runtime.store.payload import keep
from troth.runtime.tools.call import ToolOutcome
from troth.runtime.tools.tool import Tool

__all__ = ["aperform", "perform"]


class Wish(Protocol):
    """What a model asked for."""

    @property
    def id(self) -> str:
        """The id that the answer has to carry."""

    @property
    def name(self) -> str:
        """The tool."""

    @property
    def arguments(self) -> str:
        """JSON text, perhaps not valid."""


def perform(wishes: Sequence[Wish], tools: Mapping[str, Tool], workers: Workers) -> list[ToolOutcome]:
    """Call them from sync code. A single sync tool without a timeout runs on this very thread."""
    if len(wishes) == 1:
        tool, arguments, refused = _prepared(wishes[0], tools)
        if refused is not None:
            return [refused]
        if tool is not None and tool.color is Color.SYNC and tool.timeout is None:
            try:
                value = tool.function(**arguments)
                if inspect.isawaitable(value):
                    value = bridge_run(_await(value))
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as problem:  # noqa: BLE001 - the model is told, and decides what to do
                return [_failed(wishes[0], problem)]
            return [_answered(wishes[0], value)]
    return bridge_run(aperform, wishes, tools, workers)


async def aperform(wishes: Sequence[Wish], tools: Mapping[str, Tool], workers: Workers) -> list[ToolOutcome]:
    """Call them from a loop, which stays free."""
    return list(await asyncio.gather(*(_one(wish, tools, workers) for wish in wishes)))


async def _one(wish: Wish, tools: Mapping[str, Tool], workers: Workers) -> ToolOutcome:
    tool, arguments, refused = _prepared(wish, tools)
    if refused is not None or tool is None:
        return refused or ToolOutcome(wish.id, wish.name, error="unknown tool")
    limit = asyncio.timeout(tool.timeout)
    try:
        async with limit:
            if tool.color is Color.ASYNC:
                value = await tool.function(**arguments)
            else:
                value = await _in_thread(tool, arguments, workers)
            while inspect.isawaitable(value):
                value = await value
    except TimeoutError as problem:
        if limit.expired():
            return ToolOutcome(wish.id, tool.name, error=f"{tool.name} did not answer within {tool.timeout:g} s")
        return _failed(wish, problem)
    except asyncio.CancelledError as problem:
        if _is_cancelled():
            raise
        return _failed(wish, problem)  # raised by the tool itself: nobody has cancelled this call
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as problem:  # noqa: BLE001 - SystemExit too: out of a task, it would end the loop for everybody
        return _failed(wish, problem)
    return _answered(wish, value)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def _in_thread(tool: Tool, arguments: Mapping[str, Any], workers: Workers) -> Any:
    job = workers.submit(Job(f"tool {tool.name!r}", partial(tool.function, **arguments)))
    try:
        await job.await_done(None)
    except asyncio.CancelledError:
        workers.abandon(job)
        raise
    if job.error is not None:
        problem, job.error = job.error, None
        if isinstance(problem, Exception) and not isinstance(problem, StopIteration):
            raise problem
        raise RunError(f"the tool raised {type(problem).__name__}: {problem}") from problem
    return job.value


async def _await(thing: Any) -> Any:
    return await thing


def _prepared(wish: Wish, tools: Mapping[str, Tool]) -> tuple[Tool | None, dict[str, Any], ToolOutcome | None]:
    tool = tools.get(wish.name)
    if tool is None:
        known = ", ".join(sorted(tools)) or "none"
        said = f"there is no tool {wish.name!r}; the tools are: {known}"
        return None, {}, ToolOutcome(wish.id, wish.name, error=said)
    try:
        return tool, tool.arguments(wish.arguments), None
    except MisuseError as problem:
        return tool, {}, ToolOutcome(wish.id, wish.name, error=str(problem))


def _answered(wish: Wish, value: Any) -> ToolOutcome:
    try:
        _, kept = keep(value, f"the answer of the tool {wish.name!r}")
    except MisuseError as problem:
        return ToolOutcome(wish.id, wish.name, error=str(problem))
    except RunError as problem:
        return ToolOutcome(wish.id, wish.name, error=str(problem))
    return ToolOutcome(wish.id, wish.name, kept)


def _failed(wish: Wish, problem: BaseException) -> ToolOutcome:
    return ToolOutcome(wish.id, wish.name, error=f"{type(problem).__name__}: {problem}")
