"""The lines of text that speak of awaiting a function and that no analysis could read as Python."""

import re
from collections.abc import Collection

from troth.analysis.recolor.plan import Color, Listed
from troth.analysis.recolor.project.workspace import RecolorWorkspace

__all__ = ["left_in_text"]


def left_in_text(workspace: RecolorWorkspace, names: Collection[str], to: Color) -> tuple[Listed, ...]:
    """The lines of pages, docstrings and comments that may need a change by hand."""
    words = "|".join(map(re.escape, sorted(names)))
    pattern = re.compile(rf"\bawait\s[^#\n]*?\b(?:{words})\s*\(" if to == "sync" else rf"\.(?:{words})\s*\(")
    places: list[Listed] = []
    judged: dict[str, set[int]] = {}
    for name, view in workspace.views.items():
        if not pattern.search(view.text):
            continue
        tree = workspace.tree(name)
        lines = (
            {}
            if tree is None
            else {
                line
                for node in tree.calls.values()
                for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
            }
        )
        judged.setdefault(view.path, set()).update(lines)
    texts = dict(workspace.pages)
    texts.update({view.path: view.text for view in workspace.views.values() if view.kind == "code"})
    for path, text in sorted(texts.items()):
        if not pattern.search(text):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            if number not in judged.get(path, ()) and pattern.search(line):
                if to == "async" and "await " in line:
                    continue
                places.append(Listed(path, number, line.strip(), "text that cannot be read as Python"))
    return tuple(places)
