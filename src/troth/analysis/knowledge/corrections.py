"""What the tables of libraries cannot say: corrections and habits, one hand-written file for each library.

`corrections/<library>.toml`, read when a project that uses the library first asks. A file may have these tables:

- `[edition]`: the tables know this distribution (`name`) from that major version on (`since`); in older ones, and in
  the distributions `others`, the functions `sync` are plain.
- `[type_arguments]`: an attribute of a generic class whose type stands in the brackets, and in which place there.
- `[parameters]`: what a parameter without a type stands for in an `async def` of a file that imports the library.
- `[pairs]`: a class that gives two objects when it is called.
- `[results]`: a method that the tables leave out, and the class of the objects it gives.
- `[types]`: a name that stands for a type, which the tables leave out, and the annotation that it stands for.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Correction", "Edition", "corrected", "correction"]

_FOLDER = Path(__file__).with_name("corrections")


class Edition(NamedTuple):
    """The distribution that the tables know from that version on, and what others have as sync functions.

    Nothing of the tables holds for the others where `sync` has a star. Whoever calls one of `calls`, or enters an
    object of one of the classes `enters`, has an older one.
    """

    name: str
    since: int
    others: tuple[str, ...]
    sync: frozenset[str]
    calls: frozenset[str] = frozenset()
    enters: frozenset[str] = frozenset()


class Correction(NamedTuple):
    """What stands in one file."""

    edition: Edition | None = None
    type_arguments: Mapping[str, int] = {}
    parameters: Mapping[str, str] = {}
    pairs: Mapping[str, tuple[str, ...]] = {}
    results: Mapping[str, str] = {}
    types: Mapping[str, str] = {}


_NOTHING = Correction()


@cache
def corrected() -> frozenset[str]:
    """The libraries that have a file."""
    return frozenset(path.name.removesuffix(".toml") for path in _FOLDER.iterdir() if path.name.endswith(".toml"))


def correction(qualified: str) -> Correction:
    """What is to be corrected of the library that a dotted name belongs to."""
    top = qualified.partition(".")[0]
    return _read(top) if top in corrected() else _NOTHING


@cache
def _read(top: str) -> Correction:
    data: dict[str, Any] = tomllib.loads((_FOLDER / f"{top}.toml").read_text(encoding="utf-8"))
    edition = data.get("edition")
    return Correction(
        None
        if edition is None
        else Edition(
            edition["name"],
            edition["since"],
            tuple(edition["others"]),
            frozenset(edition["sync"]),
            frozenset(edition.get("calls", ())),
            frozenset(edition.get("enters", ())),
        ),
        data.get("type_arguments", {}),
        data.get("parameters", {}),
        {name: tuple(pair) for name, pair in data.get("pairs", {}).items()},
        data.get("results", {}),
        data.get("types", {}),
    )
