"""What a log says about calls that were lost: the lines of Python, of asyncio, and of `troth.guard`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Kind", "LoggedCall", "mentions"]

Kind = Literal["never awaited", "destroyed pending", "exception lost"]

_NEVER = re.compile(r"coroutine(?: method)? '(?P<name>[^']+)'(?: of '[^']*')? was never awaited")
_WARNED_AT = re.compile(r"(?:^|\s)(?P<file>[^\s:]+\.pyi?|<[^>]+>):(?P<line>\d+): RuntimeWarning:")
_MADE_AT = re.compile(r": made at (?P<file>.+?):(?P<line>\d+)")
_DROPPED = re.compile(r"task '[^']*' \('(?P<name>[^']+)'\) was dropped while pending")
_UNREAD = re.compile(r"the exception of '(?P<name>[^']+)' was never read")
_CORO = re.compile(
    r"coro=<(?P<name>[\w.<>]+)\(\)[^>]*?(?:running at|defined at|done at) (?P<file>[^>]*?):(?P<line>\d+)"
)
_BARE_CORO = re.compile(r"coro=<(?P<name>[\w.<>]+)\(\)")
_BIRTH = re.compile(r"^\s*(?:Coroutine created|Object allocated) at ")  # asyncio's debug mode; tracemalloc
_BORN = re.compile(r'^\s*File "(?P<file>[^"]+)", (?:line|lineno) (?P<line>\d+)')
_DESTROYED = "Task was destroyed but it is pending"
_UNRETRIEVED = "Task exception was never retrieved"
# The kinds of `troth.guard`; a loop that was blocked is late, not lost, and no business of ours here.
_KINDS: dict[object, Kind] = {
    "coroutine": "never awaited",
    "generator": "never awaited",
    "task": "destroyed pending",
    "exception": "exception lost",
}


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """One lost call: what became of it, whose coroutine it was, and a place if the log names one.

    `is_birth` says that the place is where the coroutine was made; otherwise it is only where Python noticed.
    """

    kind: Kind
    name: str
    file: str | None = None
    line: int | None = None
    is_birth: bool = False
    times: int = 1


def mentions(lines: Iterable[str]) -> list[LoggedCall]:
    """All lost calls that a log mentions, each once, in the order of their first mention."""
    merged: dict[tuple[Kind, str, str | None, int | None], LoggedCall] = {}
    for mention in _raw(lines):
        key = (mention.kind, mention.name, mention.file, mention.line)
        before = merged.get(key)
        times = mention.times + (before.times if before else 0)
        merged[key] = LoggedCall(mention.kind, mention.name, mention.file, mention.line, mention.is_birth, times)
    return list(merged.values())


def _raw(lines: Iterable[str]) -> Iterable[LoggedCall]:
    waiting: Kind | None = None  # asyncio names the task on the line after its complaint
    born: list[tuple[str, int]] | None = None  # with tracemalloc, Python tells where the coroutine was made
    pending: LoggedCall | None = None
    for line in lines:
        if born is not None:
            if place := _BORN.match(line):
                born.append((place["file"], int(place["line"])))
                continue
            if line.startswith(("    ", "\t")) and not _NEVER.search(line) and "RuntimeWarning" not in line:
                continue
            if pending is not None:
                yield _with_birth(pending, born)
            born = pending = None
        if pending is not None and _BIRTH.match(line):
            born = []
            continue
        if (guard := _of_guard(line)) is not None:
            yield guard
            continue
        if match := _NEVER.search(line):
            if pending is not None:
                yield pending
            place = _WARNED_AT.search(line)
            file, number = (place["file"], int(place["line"])) if place else (None, None)
            pending = LoggedCall("never awaited", match["name"], file, number)
            continue
        if _DESTROYED in line or _UNRETRIEVED in line:
            waiting = "destroyed pending" if _DESTROYED in line else "exception lost"
        if waiting is not None and (coro := _CORO.search(line) or _BARE_CORO.search(line)):
            places = coro.groupdict()
            number = int(places["line"]) if places.get("line") else None
            yield LoggedCall(waiting, coro["name"], places.get("file"), number)
            waiting = None
    if pending is not None:
        yield _with_birth(pending, born or [])


def _with_birth(mention: LoggedCall, born: list[tuple[str, int]]) -> LoggedCall:
    if not born:
        return mention
    file, line = born[-1]
    return LoggedCall(mention.kind, mention.name, file, line, is_birth=True)


def _of_guard(line: str) -> LoggedCall | None:
    """What `troth.guard` writes: a JSON object on a line of its own, or a sentence that says where it was made."""
    text = line.strip()
    if text.startswith("{"):
        return _of_object(text)
    origin = _MADE_AT.search(text)
    if origin is None:
        return None
    sentences: tuple[tuple[Kind, re.Pattern[str]], ...] = (
        ("never awaited", _NEVER),
        ("destroyed pending", _DROPPED),
        ("exception lost", _UNREAD),
    )
    for kind, pattern in sentences:
        if match := pattern.search(text):
            return LoggedCall(kind, match["name"], origin["file"], int(origin["line"]), is_birth=True)
    return None


def _of_object(text: str) -> LoggedCall | None:
    if '"kind"' not in text:
        return None
    import json

    try:
        data = json.loads(text)
    except ValueError:
        return None
    kind = _KINDS.get(data.get("kind"))
    name, file, line = data.get("coroutine") or data.get("name"), data.get("file"), data.get("line")
    if kind is None or not isinstance(name, str):
        return None
    if isinstance(file, str) and file and isinstance(line, int):
        return LoggedCall(kind, name, file, line, is_birth=True)
    return LoggedCall(kind, name)
