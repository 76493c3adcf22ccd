"""Find files that this Python cannot read and that say the name of what changes: nobody sees what they call."""

import re
import sys
from collections.abc import Iterable

from troth.analysis.recolor.decisions import TOP, Decisions
from troth.analysis.recolor.problem import Obstacle
from troth.analysis.recolor.project.workspace import RecolorWorkspace
from troth.analysis.semantics.symbols import Function

__all__ = ["in_unread_files"]


def in_unread_files(workspace: RecolorWorkspace, functions: Iterable[Function], decisions: Decisions) -> list[Obstacle]:
    """One problem for each such file, at the first place that says a name."""
    names = sorted({function.name for function in functions})
    if not workspace.unread or not names:
        return []
    called = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b\s*[(,)\]]")
    version = ".".join(map(str, sys.version_info[:2]))
    problems = []
    for path, text in sorted(workspace.unread.items()):
        match = called.search(text)
        if match is None or decisions.of(path, TOP) is not None:
            continue
        line = text.count("\n", 0, match.start()) + 1
        why = f"Python {version} cannot read the file, so its calls are unknown; use a newer Python, or repair the file"
        problems.append(Obstacle(path, line, match[1], why, settled_by=(f"{path}:{TOP}: leave",)))
    return problems
