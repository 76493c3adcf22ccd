"""Knows which paths a `.gitignore` leaves out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["IgnoreFile", "is_ignored", "read_ignore"]


@dataclass(frozen=True, slots=True)
class _Pattern:
    regex: re.Pattern[str]
    only_directories: bool
    keeps: bool  # the pattern started with `!`


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """The patterns of one `.gitignore`; `base` is its directory relative to the root, `""` or ending in a slash."""

    base: str
    patterns: tuple[_Pattern, ...]


def read_ignore(path: Path, base: str) -> IgnoreFile:
    """Read one file; a line that is no pattern (blank, comment) says nothing."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return IgnoreFile(base, tuple(pattern for line in lines if (pattern := _compile(line)) is not None))


def is_ignored(path: str, files: Sequence[IgnoreFile], *, is_directory: bool) -> bool:
    """Whether `path` (relative to the root) is left out; the last pattern that matches decides, nearer files later.

    A path inside an ignored directory is ignored too, but that is for the one who walks: it never goes there.
    """
    ignored = False
    for file in files:
        if not path.startswith(file.base):
            continue
        inner = path[len(file.base) :]
        for pattern in file.patterns:
            if pattern.only_directories and not is_directory:
                continue
            if pattern.regex.fullmatch(inner):
                ignored = not pattern.keeps
    return ignored


def _compile(line: str) -> _Pattern | None:
    text = re.sub(r"(?<!\\)\s+$", "", line)
    if not text or text.startswith("#"):
        return None
    keeps = text.startswith("!")
    text = text.removeprefix("!")
    only_directories = text.endswith("/")
    text = text.rstrip("/")
    if not text:
        return None
    anchored = "/" in text
    body = _translate(text.removeprefix("/"))
    try:
        return _Pattern(re.compile(body if anchored else f"(?:.*/)?{body}"), only_directories, keeps)
    except re.error:
        return None  # git ignores a pattern it cannot read, such as `[z-a]`


def _translate(glob: str) -> str:
    """The glob as a regular expression: `*` and `?` stop at a slash, `**` does not."""
    out: list[str] = []
    at = 0
    while at < len(glob):
        char = glob[at]
        if glob.startswith("**/", at):
            out.append("(?:.*/)?")
            at += 3
        elif glob.startswith("/**", at) and at + 3 == len(glob):
            out.append("/.*")
            at += 3
        elif char == "*":
            out.append("[^/]*")
            at += 1
        elif char == "?":
            out.append("[^/]")
            at += 1
        elif char == "[" and (close := glob.find("]", at + 2)) != -1:
            inside = glob[at + 1 : close].replace("\\", "\\\\")
            out.append(f"[{'^' + inside[1:] if inside[0] in '!^' else inside}]")
            at = close + 1
        elif char == "\\" and at + 1 < len(glob):
            out.append(re.escape(glob[at + 1]))
            at += 2
        else:
            out.append(re.escape(char))
            at += 1
    return "".join(out)
