"""Decisions and steps that the conformance suite runs. Real ones: they leave their effects in a file.

A module of its own, so that other processes can import what they are to carry out.
"""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from troth.runtime.engine import (
    Command,
    Retry,
    RunCancelledError,
    Sleep,
    Step,
    StepFailedError,
    Together,
    Wait,
    WaitTimeoutError,
    current_step,
)

__all__ = ["DECISIONS", "effects"]

Decided = Generator[Command, Any, object]


def effects(path: str | Path) -> list[tuple[str, str]]:
    """What was done, in order, as (name, key)."""
    file = Path(path)
    if not file.exists():
        return []
    return [tuple(line.split(" ", 1)) for line in file.read_text("utf-8").splitlines()]  # type: ignore[misc]


def do(path: str, name: str) -> None:
    """Have an effect, and be known for it."""
    line = f"{name} {current_step().key}\n"
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(line)  # one write of one line: whole, also if the process dies right after it


def note(path: str, name: str) -> str:
    """A sync step."""
    do(path, name)
    return name


async def anote(path: str, name: str) -> str:
    """An async step."""
    do(path, name)
    await asyncio.sleep(0)
    return name


def order(path: str) -> Decided:
    """Three steps of both colors."""
    first = yield Step("one", note, path, "one")
    second = yield Step("two", anote, path, "two")
    third = yield Step("three", note, path, "three")
    return [first, second, third]


def as_json() -> Decided:
    """Answers arrive as they will be read back."""
    value = yield Step("pair", _pair)
    return value


def _pair() -> tuple[int, dict[str, tuple[int, ...]]]:
    return 1, {"more": (2, 3)}


def flaky(path: str, failures: int, attempts: int) -> Decided:
    """Fails some times, then succeeds."""
    return (yield Step("flaky", _fail_at_first, path, failures, retry=Retry(attempts, delay=0.01)))


def _fail_at_first(path: str, failures: int) -> int:
    do(path, "flaky")
    attempt = current_step().attempt
    if attempt <= failures:
        raise ValueError(f"attempt {attempt}")
    return attempt


def caught(path: str) -> Decided:
    """A failure is thrown where the step was asked for, and can be dealt with."""
    try:
        yield Step("flaky", _fail_at_first, path, 99)
    except StepFailedError as failed:
        yield Step("instead", note, path, "instead")
        return [failed.step, failed.type, failed.message]
    return None


def picky(path: str) -> Decided:
    """Only what is listed is worth another attempt."""
    return (yield Step("picky", _fail_at_first, path, 1, retry=Retry(5, on=(KeyError, "TimeoutError"), delay=0.01)))


def slow_sync(path: str, seconds: float, limit: float) -> Decided:
    """A sync step that takes longer than it may."""
    return (yield Step("slow", _slow, path, seconds, timeout=limit))


def _slow(path: str, seconds: float) -> str:
    do(path, "slow")
    time.sleep(seconds)
    return "too late"


def slow_async(path: str, seconds: float, limit: float) -> Decided:
    """An async step that takes longer than it may."""
    return (yield Step("slow", _aslow, path, seconds, timeout=limit))


async def _aslow(path: str, seconds: float) -> str:
    do(path, "slow")
    await asyncio.sleep(seconds)
    return "too late"


def returns_coroutine(path: str) -> Decided:
    """A sync function that gives a coroutine back: it is awaited."""
    return (yield Step("lambda", lambda: anote(path, "awaited")))


def loses_coroutine(path: str) -> Decided:
    """A step that forgets an await. It returns, and part of it never happens."""
    return (yield Step("forgetful", _forgets, path, retry=Retry(3, delay=0.01)))


def _forgets(path: str) -> str:
    do(path, "forgetful")
    anote(path, "never")  # type: ignore[unused-coroutine]  # troth: allow unawaited-coroutine (the very mistake)
    return "fine"


def not_json(path: str) -> Decided:
    """A step whose result cannot be kept."""
    return (yield Step("odd", _odd, path, retry=Retry(3, delay=0.01)))


def _odd(path: str) -> object:
    do(path, "odd")
    return {"things": [1, {2, 3}]}


def dies(path: str, at: str) -> Decided:
    """Kills its own process, once: after the effect of step two, or between steps two and three."""
    first = yield Step("one", note, path, "one")
    second = yield Step("two", _die_once, path, "two" if at == "step" else "")
    third = yield Step("three", _die_once, path, "three" if at == "next" else "")
    return [first, second, third]


def _die_once(path: str, name: str) -> str:
    marker = Path(f"{path}.died")
    mine = current_step().name
    if name == mine and not marker.exists():
        marker.touch()
        do(path, mine)
        os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()
    do(path, mine)
    return mine


def waits_for_ever(path: str, color: str) -> Decided:
    """Something that only a cancellation ends; it cleans up."""
    yield Step("begin", note, path, "begin")
    try:
        if color == "async step":
            yield Step("hang", _hang, path)
        elif color == "sleep":
            yield Sleep(3600)
        else:
            yield Wait("never")
    except RunCancelledError:
        yield Step("undo", anote, path, "undo")
        raise
    return "not cancelled"


async def _hang(path: str) -> None:
    do(path, "hang")
    await asyncio.Event().wait()


def approval(path: str) -> Decided:
    """Waits for somebody."""
    yield Step("ask", note, path, "ask")
    answer = yield Wait("answer")
    yield Step("done", note, path, "done")
    return answer


def patient(path: str, seconds: float) -> Decided:
    """Waits for somebody for so long, and then for as long as it takes."""
    yield Step("ask", note, path, "ask")
    try:
        return (yield Wait("answer", timeout=seconds))
    except WaitTimeoutError:
        yield Step("nobody", note, path, "nobody")
    return ["too late", (yield Wait("answer"))]


def naps(path: str, seconds: float) -> Decided:
    """Sleeps durably."""
    yield Step("before", note, path, "before")
    yield Sleep(seconds)
    return (yield Step("after", note, path, "after"))


def needs_a_file(path: str) -> Decided:
    """Deals with one failure, and stops at another until a file is there."""
    yield Step("one", note, path, "one")
    try:
        yield Step("hopeless", _fail_quietly)
    except StepFailedError:
        yield Step("instead", note, path, "instead")
    return (yield Step("needs", _needs, path))


def _fail_quietly() -> None:
    raise ValueError("as ever")


def _needs(path: str) -> str:
    do(path, "needs")
    if not Path(f"{path}.file").exists():
        raise FileNotFoundError(f"{path}.file")
    return "found"


def fans_out(path: str, count: int) -> Decided:
    """Several branches at once, with steps of both colors in each."""
    return (yield Together.of(_branch(path, number) for number in range(count)))


def _branch(path: str, number: int) -> Decided:
    yield Step("sync", note, path, f"sync-{number}")
    return (yield Step("async", anote, path, f"async-{number}"))


DECISIONS = [
    order,
    as_json,
    flaky,
    caught,
    picky,
    slow_sync,
    slow_async,
    returns_coroutine,
    loses_coroutine,
    not_json,
    dies,
    waits_for_ever,
    approval,
    patient,
    naps,
    needs_a_file,
    fans_out,
]
