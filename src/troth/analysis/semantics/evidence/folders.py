"""Tell whether files speak for one that is far from them.

The same words mean the same object in one program, and hardly in a repository that holds hundreds of them side by side:
each integration of a home server has its own `client`. There, only what stands in the same folder, above it or below
it says something about the words of a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.semantics.evidence.words import threshold

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping

    from troth.analysis.semantics.infer.inference import Inference

__all__ = ["folder_of", "is_far_from"]

_MANY = threshold("folders", "many")


def folder_of(path: str) -> str:
    """The folder of a file; empty for the root of the project."""
    return path.rpartition("/")[0]


def is_far_from(program: Inference, path: str, folders: Iterable[str]) -> bool:
    """Whether the project has many folders, and all of these belong to other branches of it than the file."""
    answers: MutableMapping[str, int] = program.answers_to("folders of the project")
    if "" not in answers:
        answers[""] = len({folder_of(own) for own in program.paths})
    if answers[""] < _MANY:
        return False
    here = f"{folder_of(path)}/"
    return not any(here.startswith(f"{folder}/") or f"{folder}/".startswith(here) or not folder for folder in folders)
