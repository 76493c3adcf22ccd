"""Find out what an offer comes to once the user has picked it: the edits, and which of them are to be confirmed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import accumulate
from typing import Any

from troth.analysis.edits.same_lines import same_lines
from troth.analysis.findings import Edit, Span
from troth.analysis.fix.settle import settle
from troth.analysis.recolor.project.tree import Tree
from troth.analysis.recolor.project.view import whole_file
from troth.analysis.recolor.rewrite.rewrite_async import import_added
from troth.analysis.source.tree import tree_of
from troth.errors import MisuseError
from troth.lsp.features.actions import Outcome, is_sure_in
from troth.lsp.features.recolor_jobs import make_async, recolor
from troth.lsp.protocol.workspace_edit import Group
from troth.lsp.sessions.checker import FolderChecker
from troth.lsp.sessions.places import Places

__all__ = ["carry_out"]


def carry_out(job: Mapping[str, Any], checker: FolderChecker, places: Places) -> Outcome:
    """Do the job without touching a file."""
    try:
        return _JOBS[job["do"]](job, checker, places)
    except MisuseError as problem:
        return Outcome(problem=str(problem))


def _fix_all(job: Mapping[str, Any], checker: FolderChecker, places: Places) -> Outcome:
    look, path = places.look, job["path"]
    if path in look.broken:
        return Outcome(problem="The file cannot be parsed as it is.")
    settled = settle(look.root, lambda texts: checker.try_out(look, texts), partial(is_sure_in, path), look.overlay)
    edits = [edit for change in settled.changes for edit in _differing(change.path, places, change.after)]
    count = len(settled.applied)
    return Outcome(places.in_groups({None: edits}), f"Repair {count} problem{'' if count == 1 else 's'}.")


def _differing(path: str, places: Places, after: bytes) -> list[Edit]:
    """The edits that make the text of a file the new one, by lines, so that nothing else is touched."""
    from troth.analysis.source.lines import decode
    from troth.lsp.protocol.positions import split

    old, new = split(places.text(path)), split(decode(after))
    starts = list(accumulate(map(len, old), initial=0))
    edits = []
    old_end, new_end = 0, 0
    for old_line, new_line, count in same_lines(old, new):
        if (old_end, new_end) != (old_line, new_line):
            edits.append(Edit(path, starts[old_end], starts[old_line], "".join(new[new_end:new_line])))
        old_end, new_end = old_line + count, new_line + count
    return edits


def _bridge(job: Mapping[str, Any], _checker: FolderChecker, places: Places) -> Outcome:
    """Wrap the lost call in `bridge.run`, and import it."""
    path, span = job["path"], Span(*job["span"])
    text = places.text(path)
    tree = tree_of(text)
    if tree is None:
        return Outcome(problem="The file cannot be parsed as it is.")
    whole = Tree(whole_file(path, text), tree)
    start, end = _offset(text, span.line, span.column), _offset(text, span.end_line, span.end_column)
    call = next((node for node in whole.calls.values() if (whole.start(node), whole.end(node)) == (start, end)), None)
    if call is None:
        return Outcome(problem="The call that makes the coroutine cannot be determined from the code around it.")
    edits = [Edit(path, start, start, "bridge.run("), Edit(path, end, end, ")")]
    run = Group("Run the coroutine here", "The call will now run, and the thread waits for it.", is_to_confirm=True)
    added = import_added(whole, "from troth import bridge", "bridge")
    summary = f"`{text[start:end]}` will now run, and the thread waits for it."
    return Outcome(places.in_groups({run: edits, Group("Import `bridge`"): added}), summary)


def _offset(text: str, line: int, column: int) -> int:
    from troth.lsp.protocol.positions import split

    return sum(map(len, split(text)[: line - 1])) + column - 1


_JOBS = {"fix all": _fix_all, "bridge": _bridge, "make async": make_async, "recolor": recolor}
