"""The checkers known by name, with the strongest settings that have been measured, one file each in this package."""

from troth.analysis.mutate.checkers.checker import Checker
from troth.analysis.mutate.checkers.mypy import mypy
from troth.analysis.mutate.checkers.pyrefly import pyrefly
from troth.analysis.mutate.checkers.pyright import pyright
from troth.analysis.mutate.checkers.ruff import ruff
from troth.analysis.mutate.checkers.troth import troth
from troth.analysis.mutate.checkers.ty import ty
from troth.errors import MisuseError

__all__ = ["PRESETS", "preset"]

PRESETS = {"ruff": ruff, "mypy": mypy, "pyright": pyright, "ty": ty, "pyrefly": pyrefly, "troth": troth}


def preset(name: str) -> Checker:
    """The checker of that name; raises `MisuseError` where there is none or it is not installed."""
    if name not in PRESETS:
        raise MisuseError(f"There is no tool {name!r}.\nNothing was done.\nThere are: {', '.join(PRESETS)}.")
    return PRESETS[name]()
