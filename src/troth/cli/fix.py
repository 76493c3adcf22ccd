"""Knows how to carry out `troth fix`."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from troth.cli.check import words
from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.pipe import say
from troth.cli.switches import switch
from troth.errors import MisuseError

if TYPE_CHECKING:
    from troth.analysis.checking import Prepared
    from troth.analysis.findings import Finding
    from troth.analysis.fix.settle import Settled
    from troth.analysis.report.content import Report

__all__ = ["COMMAND"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `troth fix`."""
    add = parser.add_argument
    add("paths", nargs="*", metavar="PATH", help="what is repaired: files and folders (default: the project)")
    add("--diff", action="store_true", help="show what would change, and change nothing; exit 1 if something would")
    add("--all", action="store_true", help="apply the fixes that are only likely to be right, too")
    add("--select", action="append", metavar="RULES", help="only these rules: codes (T101), families (T1) or names")
    add("--ignore", action="append", metavar="RULES", help="not these rules")
    add("--allow-dirty", action="store_true", help="work on a git tree that has changes which are not committed")
    add("--python", metavar="ENV", help="the environment whose packages are read (default: .venv, then the active one)")
    add("--force-exclude", action="store_true", help="leave out excluded files even if they are named")
    add("--no-cache", action="store_true", help="keep nothing between runs (also TROTH_NO_CACHE=1)")


def run(args: argparse.Namespace) -> int:
    """Repair, show what was done and what is left, and say by the exit code whether something is."""
    from troth.analysis.checking import Request, check, prepare
    from troth.analysis.edits.write import begin, recover
    from troth.analysis.fix.settle import settle

    cwd = Path.cwd()
    prepared = prepare(
        Request(
            cwd=cwd,
            paths=tuple(args.paths),
            select=words(args.select) if args.select else None,
            ignore=words(args.ignore or []),
            python=args.python,
            cache=not (args.no_cache or switch("TROTH_NO_CACHE")),
            force_exclude=args.force_exclude,
        )
    )
    if not prepared.scope.reported:
        raise MisuseError(
            f"There is no Python file in {', '.join(f'`{path}`' for path in args.paths) or f'`{cwd}`'}.\n"
            "Nothing was repaired.\nName a folder with `.py`, `.pyi` or `.ipynb` files."
        )
    root = prepared.root.path
    if put_back := recover(root):
        sys.stderr.write(f"An earlier change was cut short; put back as they were: {', '.join(put_back)}\n")
    from troth.cli.terminal import Progress

    with Progress("checking", total=None) as shown:
        rounds = 0

        def look(overlay: Mapping[str, bytes]) -> Sequence["Finding"]:
            nonlocal rounds
            rounds += 1
            shown.at(rounds, f"round {rounds}")
            return check(prepared._replace(overlay={**prepared.overlay, **overlay})).findings

        settled = settle(root, look, lambda finding: _wanted(finding, everything=args.all))
    if args.diff:
        return _show(settled)
    if settled.changes:
        _refuse_dirty(root, args)
        begin(root, settled.changes).keep()
    return _tell(settled, prepared, everything=args.all)


def _wanted(finding: "Finding", *, everything: bool) -> bool:
    return finding.fix is not None and (everything or finding.fix.safety == "sure")


def _refuse_dirty(root: Path, args: argparse.Namespace) -> None:
    from troth.analysis.fix.worktree import uncommitted

    dirty = [] if args.allow_dirty else uncommitted(root)
    if dirty:
        named = ", ".join(dirty[:3]) + (f" and {len(dirty) - 3} more" if len(dirty) > 3 else "")
        raise MisuseError(
            f"The git tree has changes that are not committed: {named}.\n"
            "Nothing was repaired, because your changes and the repair could not be told apart afterwards.\n"
            "Commit or stash them, or say `--allow-dirty`; `--diff` shows the repair without making it."
        )


def _show(settled: "Settled") -> int:
    from troth.analysis.fix.diff import diff

    say(line.removesuffix(b"\n") for change in settled.changes for line in diff(change))
    if not settled.changes:
        sys.stderr.write("Nothing to repair: no finding has a fix that may be applied.\n")
    return Exit.FOUND if settled.changes else Exit.CLEAN


def _tell(settled: "Settled", prepared: "Prepared", *, everything: bool) -> int:
    from troth.analysis.report.content import plural
    from troth.analysis.report.place import shown_from
    from troth.analysis.report.text import render
    from troth.cli.terminal import Style

    place = shown_from(prepared.request.cwd, prepared.root.path)
    style = Style(sys.stdout)
    lines = [
        f"{place(one.span.path)}:{one.span.line}:{one.span.column}  {style('fixed', 'green')}  {one.code} {one.rule}: "
        f"{one.fix.title if one.fix else ''}"
        for one in settled.applied
    ]
    for finding, problem in settled.refused:
        sys.stderr.write(f"{finding.code} at {finding.span.path}:{finding.span.line} was left alone: {problem}\n")
    from troth.analysis.checking import check

    left = check(prepared)  # the files as they now are
    if lines:
        files = plural(len(settled.changes), "file")
        lines += ["", f"Repaired {plural(len(settled.applied), 'problem')} in {files}", ""]
    lines += _aftermath(settled, left, place)
    lines += render(left, paint=style)
    lines += _proposed(left, place)
    likely = sum(one.fix is not None and one.fix.safety == "likely" for one in left.findings)
    if likely and not everything:
        lines.append(
            f"{likely:,} of these can be repaired with `troth fix --all`; look at `troth fix --all --diff` first"
        )
    say(lines)
    return Exit.FOUND if left.findings else Exit.CLEAN


def _aftermath(settled: "Settled", left: "Report", place: Callable[[str], str]) -> list[str]:
    """What nobody could see before the repair: the call runs now, and its result is not what was expected."""
    if not settled.applied or left.program is None:
        return []
    from troth.analysis.fix.aftermath import mistaken

    new = settled.aftermath
    rows = [f"  {place(one.span.path)}:{one.span.line}  {one.code} {one.rule}: {one.message}" for one in new]
    rows += [f"  {place(one.path)}:{one.line}  {one.words()}" for one in mistaken(left.program, settled.applied)]
    return ["The repair brought to light, to be looked at by you:", *rows, ""] if rows else []


def _proposed(left: "Report", place: Callable[[str], str]) -> list[str]:
    """The changes of color that would repair what no fix can: where the caller is a plain `def`."""
    if left.program is None or not left.findings:
        return []
    from troth.analysis.fix.proposal import proposals

    lines = []
    for one in proposals(left.program, left.findings):
        path, line = one.function.place
        where = f"{place(path)}:{line}  `{one.function.qualname}` is a plain `def` and loses {one.lost}"
        cascade = " --cascade all" if one.others else ""
        is_sayable = "<" not in one.target  # a function inside another one has no name that a command could take
        command = f"`troth recolor {one.target} --to async{cascade}`" if is_sayable else "a change of its color"
        lines.append(f"{where}: {command} {one.words()}")
    return ["", "What a change of color would repair:", *lines] if lines else []


COMMAND = Command(
    summary="repair what check finds",
    description=(
        "Applies the fixes of `troth check`: exact text edits, made until nothing is left to do and checked again\n"
        "before a file is touched. All files are written, or none. By default only the sure fixes are applied."
    ),
    examples=(
        Example("troth fix --diff", "see what would change; nothing does"),
        Example("troth fix", "repair the project around the working folder, where the fix is sure"),
        Example("troth fix --all src/agents", "apply the likely fixes too, in one folder"),
        Example("troth fix --select T101", "only un-awaited coroutines"),
    ),
    add_arguments=add_arguments,
    run=run,
)
