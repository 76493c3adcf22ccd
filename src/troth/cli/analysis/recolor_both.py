"""Carry out `troth recolor --to both`: write the sync side of async code, or say whether it is up to date."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from troth.cli.diff import say_diff
from troth.cli.exit import Exit
from troth.cli.pipe import say
from troth.errors import MisuseError

if TYPE_CHECKING:
    from troth.analysis.check import Prepared
    from troth.analysis.edits.write import Change
    from troth.analysis.findings import Finding
    from troth.analysis.recolor.twin.twin import Twin

__all__ = ["run_both"]


def run_both(args: argparse.Namespace, prepared: "Prepared", targets: Sequence[str]) -> int:
    """Write the twins; with `--check`, `--plan` or `--diff` change nothing."""
    from troth.analysis.recolor.check_plan import new_findings, rewritten
    from troth.analysis.recolor.verify import carried_out
    from troth.cli.analysis.recolor import refuse_dirty

    root = prepared.root.path
    twins = _twins(prepared, targets)
    problems = [problem for twin in twins for problem in twin.problems]
    if problems:
        say(f"{one.path}:{one.line}  `{one.text}`: {one.why}" for one in problems)
        sys.stderr.write("Nothing was changed: sync code cannot do what is listed above.\n")
        return Exit.FOUND
    changes = rewritten(root, [edit for twin in twins for edit in twin.edits])
    named = ", ".join(f"{twin.name} of {twin.source}" for twin in twins)
    if args.check or args.diff:
        say_diff(changes)
        if args.check and changes:
            sys.stderr.write(f"Differs from its source: {named}. Run the command without `--check`.\n")
        return Exit.FOUND if args.check and changes else Exit.CLEAN
    if fresh := new_findings(changes, lambda overlay: _look(prepared, overlay)):
        shown = "\n".join(f"  {one.span.path}:{one.span.line}  {one.code} {one.message}" for one in fresh)
        raise MisuseError(
            f"With the twin, `troth check` would report new findings:\n{shown}\n"
            "Nothing was changed.\nRepair these places in the async class first."
        )
    if not args.plan and changes:
        refuse_dirty(root, [change.path for change in changes], allow=args.allow_dirty)
        carried_out(root, changes, args.verify, prepared.request.cwd)
    say(
        [
            f"{'Would write' if args.plan else 'Wrote'} {named}" if changes else f"Matches its source: {named}",
            *_rows(changes),
        ]
    )
    return Exit.CLEAN


def _rows(changes: "Sequence[Change]") -> list[str]:
    return [f"  {change.path}" for change in changes]


def _twins(prepared: "Prepared", targets: Sequence[str]) -> "list[Twin]":
    from troth.analysis.recolor.project.workspace import Subject, read_workspace
    from troth.analysis.recolor.target import find_target
    from troth.analysis.recolor.twin.half import half_of, is_half
    from troth.analysis.recolor.twin.twin import twin_of

    workspace = read_workspace(prepared.scope.project, lambda _program: Subject(frozenset(), {}))
    twins = []
    for text in targets:
        target = find_target(workspace.program, text)
        if target.cls is None and len(target.functions) == 1 and is_half(target.functions[0]):
            twins.append(half_of(workspace, target.functions[0]))
            continue
        if target.cls is None or not any(one.is_async for one in target.functions):
            raise MisuseError(
                f"{text} is neither an async class nor an async function `aload` with a sync `load` beside it.\n"
                "Nothing was changed.\n"
                "`--to both` writes the sync half of these. Name one, or make the class async first (`--to async`)."
            )
        twins.append(twin_of(workspace, target.cls))
    return twins


def _look(prepared: "Prepared", overlay: Mapping[str, bytes]) -> "Sequence[Finding]":
    from troth.analysis.check import CheckRequest, check, prepare

    root = str(prepared.root.path)
    whole = prepare(CheckRequest(cwd=prepared.request.cwd, paths=(root,), cache=prepared.request.cache))
    return check(whole._replace(overlay={**whole.overlay, **overlay})).places
