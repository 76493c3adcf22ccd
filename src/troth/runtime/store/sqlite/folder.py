"""Make the folder that a store lies in, and hide what is in it from git."""

import contextlib
from pathlib import Path

from troth.runtime.store.errors import StoreError

__all__ = ["FOLDER", "hide_from_git", "make_folder_of"]

FOLDER = ".troth"
_IGNORE = """\
# Written by Troth. Runs are kept here, with their data; only the schema of workflows is worth sharing.
*
!workflow-*.json
"""


def make_folder_of(store: Path) -> None:
    """Make the folder in which `store` is to lie. One that is called `.troth` is hidden from git."""
    folder = store.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise StoreError(f"The folder {str(folder)!r} of the store cannot be made: {problem.strerror}.") from problem
    if folder.name == FOLDER and not store.exists():
        hide_from_git(folder)


def hide_from_git(folder: Path) -> None:
    """Write a `.gitignore` into `folder`, unless there is one, or none can be written."""
    with contextlib.suppress(OSError), (folder / ".gitignore").open("x", encoding="utf-8") as file:
        file.write(_IGNORE)
