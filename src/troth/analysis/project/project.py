"""What a project is: a root, its files and the folders that imports start from."""

from pathlib import Path
from typing import NamedTuple

__all__ = ["Project"]


class Project(NamedTuple):
    """The whole program around what is reported.

    `files` are all `.py`, `.pyi` and `.ipynb` files of the program, relative to `root`, with forward slashes on every
    system, sorted. `source_roots` are the folders that absolute imports start from, relative to `root` (`""` is the
    root itself), most specific first where they nest.
    """

    root: Path
    files: tuple[str, ...]
    source_roots: tuple[str, ...] = ("",)
