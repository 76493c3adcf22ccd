"""The versions of libraries that a project allows itself."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from troth.analysis.project.optional_file import handwritten, is_file_there

__all__ = ["newest_allowed", "normalized", "oldest_allowed"]

_FILES = ("pyproject.toml", "setup.py", "setup.cfg", "Pipfile")
_LISTS = ("requirements*.txt", "requirements/*.txt")
# What a lock names is what is installed, whatever the lists would allow.
_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock")
_LOCKED = re.compile(r'^name = "([^"\n]+)"\nversion = "v?(\d+)', re.MULTILINE)
_EXACT = re.compile(r"==v?(\d+)")
_LARGEST_LOCK = 8_000_000  # bytes; a program writes them
# `name[extra] >= 1, < 3`, wherever it stands: in a list of TOML, in quotes, on a line of its own; `name = ">= 1, < 3"`.
_REQUIRED = re.compile(
    r"(?<![\w.-])(?P<name>[A-Za-z][\w.-]*)(?:\[[^\]\n]*\]|[\"'](?=[ \t]*=[ \t]*[\"'{]))?"
    r"(?:[ \t]*=[ \t]*(?:\{[^}\n]*?version[ \t]*=[ \t]*)?[\"'])?[ \t]*\(?"
    r"(?P<bounds>(?:(?:===?|~=|<=?|>=?|!=)[ \t]*[\w.*]+[ \t]*,?[ \t]*)+)"
)
_BOUND = re.compile(r"(?P<how>===?|~=|<=?)[ \t]*v?(?P<major>\d+)(?P<rest>[\w.*]*)")
_LOWER_BOUND = re.compile(r"(?:===?|~=|>=?)[ \t]*v?(?P<major>\d+)")
_OF_POETRY = re.compile(
    r"""^["']?(?P<name>[A-Za-z][\w.-]*)["']?[ \t]*=[ \t]*(?:\{[^}\n]*version[ \t]*=[ \t]*)?["'][\^~](?P<major>\d+)""",
    re.MULTILINE,
)

# A name alone allows whatever there is.
_BARE = re.compile(
    r"""^[ \t]*["']?(?P<name>[A-Za-z][\w.-]*)(?:\[[^\]\n]*\])?["']?[ \t]*,?[ \t]*(?:[#;].*)?$""", re.MULTILINE
)
_ANY = 999


def newest_allowed(root: Path) -> Mapping[str, int]:
    """The highest major version that the project's lists of requirements allow, by the library's normalized name."""
    allowed: dict[str, int] = {}

    def take(name: str, major: int) -> None:
        key = normalized(name)
        allowed[key] = max(allowed.get(key, 0), major)  # of several lists the most generous one counts

    for path in _lists(root):
        text = handwritten(path)
        for requirement in _REQUIRED.finditer(text):
            majors = [_highest(bound) for bound in _BOUND.finditer(requirement["bounds"])]
            if majors:
                take(requirement["name"], min(majors))
        if path.suffix == ".txt":
            for requirement in _BARE.finditer(text):
                take(requirement["name"], _ANY)
        for requirement in _OF_POETRY.finditer(text):
            take(requirement["name"], int(requirement["major"]))
    return {**allowed, **_locked(root)}


def oldest_allowed(root: Path) -> Mapping[str, int]:
    """The lowest major version that the project's lists of requirements allow, where they give a lowest one."""
    allowed: dict[str, int] = {}
    for path in _lists(root):
        text = handwritten(path)
        lowest = [
            (requirement["name"], int(bound["major"]))
            for requirement in _REQUIRED.finditer(text)
            for bound in _LOWER_BOUND.finditer(requirement["bounds"])
        ]
        lowest += [(requirement["name"], int(requirement["major"])) for requirement in _OF_POETRY.finditer(text)]
        for name, major in lowest:
            key = normalized(name)
            allowed[key] = min(allowed.get(key, major), major)  # of several lists the most generous one counts
    return {**allowed, **_locked(root)}


def _lists(root: Path) -> list[Path]:
    """The files that may name requirements: of a folder that has none, those of the projects in it."""
    return _lists_in(root) or [path for folder in sorted(root.glob("*/")) for path in _lists_in(folder)]


def _lists_in(folder: Path) -> list[Path]:
    lists = [
        *(folder / name for name in _FILES),
        *(path for pattern in _LISTS for path in sorted(folder.glob(pattern))),
    ]
    return [path for path in lists if is_file_there(path)]


def _locked(root: Path) -> dict[str, int]:
    """The major versions that lock files name; the highest of each."""
    locked: dict[str, int] = {}
    for name in _LOCKS:
        text = handwritten(root / name, _LARGEST_LOCK)
        for package, major in _of_pipenv(text) if name == "Pipfile.lock" else _LOCKED.findall(text):
            key = normalized(package)
            locked[key] = max(locked.get(key, 0), int(major))
    return locked


def _of_pipenv(text: str) -> Iterator[tuple[str, str]]:
    """The packages of a `Pipfile.lock`; none where it is none."""
    try:
        sections = json.loads(text)
    except ValueError:
        return
    for section in sections.values() if isinstance(sections, dict) else ():
        for name, package in section.items() if isinstance(section, dict) else ():
            version = package.get("version") if isinstance(package, dict) else None
            major = _EXACT.match(version) if isinstance(version, str) else None
            if major is not None:
                yield name, major[1]


def normalized(name: str) -> str:
    """The name of a distribution as all its spellings have it in common."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _highest(bound: re.Match[str]) -> int:
    """`< 20` and `< 20.0` allow 19, all else its own major version."""
    is_below = bound["how"] == "<" and not bound["rest"].strip(".0")
    return int(bound["major"]) - is_below
