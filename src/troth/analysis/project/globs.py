"""Match paths against patterns as `.gitignore` writes them."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

__all__ = ["Globs", "Pattern", "parse"]


class Pattern(NamedTuple):
    """One line: what it matches, and whether it takes back (`!`) what lines before it have said."""

    regex: str
    negated: bool
    folders_only: bool
    last: str  # its last part, as written
    words: str  # without what anchors it
    is_anchored: bool


class _Any(NamedTuple):
    """Whether some of the patterns may match.

    Nearly all are a name, an end of names or a path, which are quick to ask for and need no regular expression:
    compiling those of a template took longer than all else in a warm run.
    """

    names: frozenset[str]
    ends: tuple[str, ...]
    paths: frozenset[str]
    others: str

    def may_match(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        if name in self.names or name.endswith(self.ends) or path in self.paths:
            return True
        return bool(self.others) and _compiled(self.others).match(path) is not None


class Globs(NamedTuple):
    """Patterns of one file, in order: the last one that matches decides.

    Only source files are ever asked about, so that the lines which cannot match one (`*.pyc`, `.env`) are left out of
    the question; a template of 200 lines then costs a file next to nothing.
    """

    for_files: tuple[Pattern, ...]
    for_folders: tuple[Pattern, ...]
    any_file: _Any
    any_folder: _Any

    def says(self, path: str, *, folder: bool) -> bool | None:
        """True: ignored; False: taken back; None: nothing is said of `path`, which is relative to the patterns."""
        quick, rows = (self.any_folder, self.for_folders) if folder else (self.any_file, self.for_files)
        if quick.may_match(path):
            for pattern in reversed(rows):
                if _compiled(pattern.regex).match(path) is not None:
                    return not pattern.negated
        return None

    def hides(self, path: str) -> bool:
        """Whether the file at `path`, or a folder it lies in, is matched."""
        parts = path.split("/")
        for end in range(1, len(parts)):
            if self.says("/".join(parts[:end]), folder=True):
                return True
        return bool(self.says(path, folder=False))


def parse(lines: Iterable[str], suffixes: tuple[str, ...] = ()) -> Globs:
    """Read patterns; with `suffixes`, files are only ever asked about if their names end so."""
    patterns = [pattern for line in lines if (pattern := _pattern(line)) is not None]
    files = [pattern for pattern in patterns if not pattern.folders_only and _may_match(pattern, suffixes)]
    return Globs(tuple(files), tuple(patterns), _any(files), _any(patterns))


def _any(patterns: Sequence[Pattern]) -> _Any:
    names: set[str] = set()
    paths: set[str] = set()
    ends: list[str] = []
    regexes: list[str] = []
    for pattern in patterns:
        if _SPECIAL.isdisjoint(pattern.words):
            (paths if pattern.is_anchored else names).add(pattern.words)
        elif not pattern.is_anchored and pattern.words[0] == "*" and _SPECIAL.isdisjoint(pattern.words[1:]):
            ends.append(pattern.words[1:])
        else:
            regexes.append(f"(?:{pattern.regex})")
    return _Any(frozenset(names), tuple(ends), frozenset(paths), "|".join(regexes))


@cache
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex, re.DOTALL)


_SPECIAL = frozenset("*?[\\")


def _may_match(pattern: Pattern, suffixes: tuple[str, ...]) -> bool:
    """Whether a file with one of the suffixes can match: a plain end of the pattern decides where there is one."""
    if not suffixes:
        return True
    end = pattern.last
    for at in range(len(end) - 1, -1, -1):
        if end[at] in "*?[]\\":
            end = end[at + 1 :]
            break
    return not end or end.endswith(suffixes) or any(suffix.endswith(end) for suffix in suffixes)


def _pattern(line: str) -> Pattern | None:
    text = line.rstrip("\r\n")
    while text.endswith(" ") and not text.endswith("\\ "):
        text = text[:-1]
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    if negated or text.startswith(("\\#", "\\!")):
        text = text[1:]
    folders_only = text.endswith("/")
    text = text.rstrip("/") if folders_only else text
    if not text:
        return None
    anchored = "/" in text
    text = text.removeprefix("/")
    try:
        body = _translate(text)
        if "[" in text:  # all else is plain
            re.compile(body)
    except re.error:
        return None  # a pattern git cannot read matches nothing there either
    regex = body + r"\Z" if anchored else rf"(?:.*/)?{body}\Z"
    return Pattern(regex, negated, folders_only, text.rsplit("/", 1)[-1], text, anchored)


def _translate(text: str) -> str:
    """The regular expression for one pattern; `*` and `?` stay within a part, `**` crosses them."""
    out: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if text.startswith("**/", at) and (at == 0 or text[at - 1] == "/"):
            out.append("(?:.*/)?")
            at += 3
        elif text.startswith("/**", at) and at + 3 == len(text):
            out.append("/.+")
            at += 3
        elif char == "*":
            while at + 1 < len(text) and text[at + 1] == "*":
                at += 1
            out.append("[^/]*")
            at += 1
        elif char == "?":
            out.append("[^/]")
            at += 1
        elif char == "[" and (end := _end_of_set(text, at)) is not None:
            inner = text[at + 1 : end]
            inner = "^" + inner[1:] if inner.startswith(("!", "^")) else inner
            out.append(f"(?!/)[{_posix(inner)}]")
            at = end + 1
        elif char == "\\" and at + 1 < len(text):
            out.append(re.escape(text[at + 1]))
            at += 2
        else:
            out.append(re.escape(char))
            at += 1
    return "".join(out)


def _end_of_set(text: str, start: int) -> int | None:
    at = start + 1
    if at < len(text) and text[at] in "!^":
        at += 1
    if at < len(text) and text[at] == "]":
        at += 1
    while at < len(text):
        if text.startswith("[:", at) and (close := text.find(":]", at)) > 0:
            at = close + 2
        elif text[at] == "]":
            return at
        else:
            at += 1
    return None


def _posix(inner: str) -> str:
    for name, chars in (("alpha", "a-zA-Z"), ("digit", "0-9"), ("alnum", "a-zA-Z0-9"), ("space", r"\s")):
        inner = inner.replace(f"[:{name}:]", chars)
    for special in ("[", "&", "~", "|"):  # plain characters in a set, but with a meaning of their own to `re`
        inner = inner.replace(special, f"\\{special}")
    return inner.replace("--", "-\\-")
