"""Find which functions are mentioned without being called: in tables, as callbacks, as arguments.

A function that is handed around must keep the color that whoever gets it expects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from troth.analysis.semantics.resolve.project_files import ProjectFiles

__all__ = ["mentioned"]


def mentioned(program: ProjectFiles, names: Collection[str]) -> set[str]:
    """Those of `names` that stand somewhere in the project as a value, not as the callee of a call."""
    return {name for name in names if program.index.files_mentioning({name})}
