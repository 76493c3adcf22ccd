"""Carry out `troth check --add-allow`."""

from typing import TYPE_CHECKING

from troth.cli.exit import Exit
from troth.cli.pipe import say

if TYPE_CHECKING:
    from troth.analysis.check import Prepared
    from troth.analysis.report.content import CheckReport

__all__ = ["add_allow"]


def add_allow(prepared: "Prepared", report: "CheckReport", *, quiet: bool) -> int:
    """Write the comments into the files, all or none. What no comment can silence is listed, and the exit code is 1."""
    from troth.analysis.edits.write import begin
    from troth.analysis.fix.silencing import silencing
    from troth.analysis.report.concise import render
    from troth.analysis.report.content import plural

    silenced = silencing(report.places, report.lines)
    if silenced.changes:
        begin(prepared.root.path, silenced.changes).keep()
    if not quiet:
        where = plural(len(silenced.changes), "file")
        say([f"Added {plural(silenced.comments, 'comment')} in {where}; `troth fix --undo` removes them"])
    if not silenced.left:
        return Exit.CLEAN
    if not quiet:
        say(["", "No comment can be added for:"])
    say(render(report._replace(findings=silenced.left), quiet=True))
    return Exit.FOUND
