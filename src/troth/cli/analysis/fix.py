"""Carry out `troth fix`."""

import argparse
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from troth.cli.analysis.options import VARIABLES, add_project_options, add_rule_options, request_of
from troth.cli.analysis.stdin import source_on_stdin
from troth.cli.command import Command, Example
from troth.cli.diff import say_diff
from troth.cli.exit import Exit
from troth.cli.pipe import say, say_bytes
from troth.cli.switches import stop_at_bugs
from troth.errors import MisuseError

if TYPE_CHECKING:
    from troth.analysis.check import Prepared
    from troth.analysis.crash import Crash
    from troth.analysis.findings import Finding
    from troth.analysis.fix.settle import Settled
    from troth.analysis.report.content import CheckReport

__all__ = ["COMMAND"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `troth fix`."""
    add = parser.add_argument
    add("paths", nargs="*", metavar="PATH", help="what is repaired: files and folders; `-` is source on stdin")
    add("--stdin-filename", metavar="FILE", help="the file that the source on stdin stands for")
    add("--diff", action="store_true", help="show what would change, and change nothing; exit 1 if something would")
    add("--all", action="store_true", help="apply the fixes that are only likely to be right, too")
    add(
        "--guesses",
        action="store_true",
        help="also apply fixes that are based only on a name or on other calls; implies --all",
    )
    add(
        "--recolor",
        action="store_true",
        help="make sync functions that lose a call async, with their callers, and await the call",
    )
    add(
        "--run-with",
        choices=("bridge.run", "asyncio.run"),
        help="with --recolor: the function that runs the coroutine where code cannot be async",
    )
    add("-q", "--quiet", action="store_true", help="print only remaining findings and errors")
    add("--exit-zero", action="store_true", help="exit with 0 even if findings remain or a diff is shown")
    add("--allow-dirty", action="store_true", help="also repair files with uncommitted edits")
    add("--undo", action="store_true", help="undo the last change of fix, recolor or check, and stop")
    add_rule_options(parser.add_argument_group("what is repaired").add_argument)
    add_project_options(parser.add_argument_group("how the project is read").add_argument)


def run(args: argparse.Namespace) -> int:
    """Repair, show what was done and what is left, and say by the exit code whether something is."""
    from troth.analysis.check import check, prepare
    from troth.analysis.crash import kinds
    from troth.analysis.edits.write import begin, recover
    from troth.analysis.fix.settle import settle_in_stages
    from troth.analysis.old_codes import OldCode, hint

    stop_at_bugs()
    cwd = Path.cwd()
    if args.undo:
        return _undo(args, cwd)
    source = source_on_stdin("fix", args.paths, args.stdin_filename)
    if args.recolor and source is not None:
        raise MisuseError(
            "`--recolor` also changes the callers of a function, and source on stdin has none.\nNothing was repaired.\n"
            "Leave `--recolor` out, or name files and folders."
        )
    if args.run_with and not args.recolor:
        raise MisuseError("`--run-with` requires `--recolor`.\nNothing was repaired.\nLeave one of them out.")
    request = request_of(args, cwd, () if source is not None else tuple(args.paths))
    prepared = prepare(request._replace(stdin=source, stdin_name=args.stdin_filename or "stdin.py"))
    if not prepared.scope.told:
        raise MisuseError(
            f"No Python file was found in {', '.join(f'`{path}`' for path in args.paths) or f'`{cwd}`'}.\n"
            "Nothing was repaired.\nName a folder with `.py`, `.pyi` or `.ipynb` files."
        )
    root = prepared.root.path
    if put_back := recover(root):
        sys.stderr.write(f"An earlier change was interrupted; these files were restored: {', '.join(put_back)}\n")
    from troth.cli.crash import incomplete
    from troth.cli.terminal import Progress

    with Progress("checking", total=None, quiet=args.quiet) as shown:
        crashes: list[tuple[Crash, ...]] = []  # of each round
        old_codes: list[OldCode] = []

        def look(overlay: Mapping[str, bytes]) -> Sequence["Finding"]:
            shown.at(len(crashes) + 1, f"round {len(crashes) + 1}")
            report = check(prepared._replace(overlay={**prepared.overlay, **overlay}))
            crashes.append(report.crashes)
            old_codes.extend(report.old_codes)
            return report.places

        levels = ("sure", "likely", "guess")[: 3 if args.guesses else 2 if args.all else 1]
        stages = [
            partial(_is_wanted, levels=levels[: number + 1], only=prepared.overlay) for number in range(len(levels))
        ]
        settled = settle_in_stages(root, look, stages, prepared.overlay)
        if args.recolor:
            settled = _with_recolored(settled, prepared, args.run_with, crashes)
    if not args.quiet:
        sys.stderr.write(hint(old_codes))
    if settled.changes and not kinds(crashes[-1]) <= kinds(crashes[0]):
        sys.stderr.write("Nothing was repaired, because the files could not be checked after the repair.\n")
        return incomplete(crashes[-1], prepared)
    if args.diff:
        code = _show(settled, quiet=args.quiet)
        if crashes[-1]:
            return incomplete(crashes[-1], prepared)
        return Exit.CLEAN if args.exit_zero and code is Exit.FOUND else code
    if source is not None:
        code = _to_stdout(settled, source, prepared, quiet=args.quiet)
        if crashes[-1]:
            return incomplete(crashes[-1], prepared)
        return Exit.CLEAN if args.exit_zero and code is Exit.FOUND else code
    if settled.changes:
        _refuse_dirty(root, settled, args)
        begin(root, settled.changes).keep()
    code = _tell(settled, prepared, levels=levels, quiet=args.quiet)
    return Exit.CLEAN if args.exit_zero and code is Exit.FOUND else code


def _with_recolored(
    settled: "Settled", prepared: "Prepared", runner: str | None, crashes: "list[tuple[Crash, ...]]"
) -> "Settled":
    """What is repaired by changes of color on top; the whole project is looked at, wherever the callers are."""
    from dataclasses import replace

    from troth.analysis.check import check, prepare
    from troth.analysis.edits.write import Change
    from troth.analysis.fix.recolor_lost import recolor_lost

    base = {change.path: change.after for change in settled.changes}
    report = check(prepared._replace(overlay=base))
    if report.program is None or not report.findings:
        return settled
    whole = prepare(prepared.request._replace(paths=(str(prepared.root.path),)))

    def look(texts: Mapping[str, bytes]) -> Sequence["Finding"]:
        outcome = check(whole._replace(overlay={**whole.overlay, **texts}))
        crashes.append(outcome.crashes)
        return outcome.places

    recolored = recolor_lost(prepared.scope.project, report.program, report.places, look, base, runner)
    before = {change.path: change.before for change in (*recolored.changes, *settled.changes)}
    after = base | {change.path: change.after for change in recolored.changes}
    changes = tuple(Change(path, before[path], text) for path, text in sorted(after.items()))
    return replace(settled, applied=(*settled.applied, *recolored.awaited), changes=changes)


def _is_wanted(finding: "Finding", *, levels: Collection[str], only: Mapping[str, bytes]) -> bool:
    """Whether its fix is applied; source on stdin is repaired alone, so `only` it may be touched."""
    if finding.fix is None or (only and any(edit.path not in only for edit in finding.fix.edits)):
        return False
    return finding.fix.safety in levels


def _undo(args: argparse.Namespace, cwd: Path) -> int:
    from troth.analysis.edits.write import reversal, undo
    from troth.analysis.project.discover import existing_paths, project_root
    from troth.analysis.report.content import plural
    from troth.analysis.report.place import shown_from

    if "-" in args.paths or args.stdin_filename:
        raise MisuseError(
            "`--undo` undoes changes of files, and source on stdin is not a file.\n"
            "Nothing was done.\nName no path, or the folder of a project."
        )
    named = existing_paths(args.paths, cwd)
    root = project_root(named, cwd).path
    back = reversal(root)
    place = shown_from(cwd, root)
    others = [change.path for change in back if not any((root / change.path).is_relative_to(path) for path in named)]
    if named and others:
        raise MisuseError(
            f"The last change also reached {', '.join(map(place, others))}.\n"
            "Nothing was done, because a change is only undone as a whole.\n"
            "Omit the paths to undo all of it; `--undo --diff` shows it."
        )
    if args.diff:
        say_diff(back)
        return Exit.CLEAN if args.exit_zero else Exit.FOUND
    paths = undo(root)
    if not args.quiet:
        files = plural(len(paths), "file")
        say([*map(place, paths), f"Undid the last change, in {files}; `troth fix --undo` again redoes it"])
    return Exit.CLEAN


def _to_stdout(settled: "Settled", source: bytes, prepared: "Prepared", *, quiet: bool) -> int:
    """Print the repaired source, as an editor or a filter wants it; what is left is told on stderr."""
    from troth.analysis.check import check
    from troth.analysis.report.text import render

    after = next((change.after for change in settled.changes), source)
    overlay = dict.fromkeys(prepared.overlay, after)
    remaining = check(prepared._replace(overlay=overlay))
    sys.stderr.write("".join(f"{line}\n" for line in render(remaining, quiet=quiet)))
    say_bytes(after)
    return Exit.FOUND if remaining.findings else Exit.CLEAN


def _refuse_dirty(root: Path, settled: "Settled", args: argparse.Namespace) -> None:
    from troth.analysis.fix.worktree import uncommitted

    dirty = [] if args.allow_dirty else uncommitted(root, [change.path for change in settled.changes])
    if dirty:
        names = ", ".join(dirty[:3]) + (f" and {len(dirty) - 3} more" if len(dirty) > 3 else "")
        raise MisuseError(
            f"Files that would be repaired have uncommitted edits: {names}.\n"
            "Nothing was repaired, because your edits and the repair could not be separated afterwards.\n"
            "Commit or stash them, or use `--allow-dirty`; `--diff` shows the repair without making it."
        )


def _show(settled: "Settled", *, quiet: bool) -> int:
    say_diff(settled.changes)
    if not settled.changes and not quiet:
        sys.stderr.write("Nothing to repair: no finding has a fix that can be applied.\n")
    return Exit.FOUND if settled.changes else Exit.CLEAN


def _tell(settled: "Settled", prepared: "Prepared", *, levels: Collection[str], quiet: bool) -> int:
    from troth.analysis.report.content import plural
    from troth.analysis.report.place import shown_from
    from troth.analysis.report.text import render
    from troth.analysis.report.wrapping import wrapped
    from troth.cli.terminal import Style, width_of

    place = shown_from(prepared.request.cwd, prepared.root.path)
    style, width = Style(sys.stdout), width_of(sys.stdout)
    lines = [
        f"{place(finding.span.path)}:{finding.span.line}:{finding.span.column}  {style('fixed', 'green')}  "
        f"{finding.code} {finding.rule}: {finding.fix.title if finding.fix else ''}"
        for finding in settled.applied
    ]
    for finding, problem in settled.refused:
        sys.stderr.write(f"{finding.code} at {finding.span.path}:{finding.span.line} was not changed: {problem}\n")
    from troth.analysis.check import check

    remaining = check(prepared)  # the files as they now are
    if quiet:
        say(render(remaining, paint=style, quiet=True, width=width))
        return _left_over(remaining)
    if lines:
        files = plural(len(settled.changes), "file")
        lines += ["", f"Repaired {plural(len(settled.applied), 'problem')} in {files}", ""]
    lines += _aftermath(settled, remaining, place)
    lines += render(remaining, paint=style, width=width)
    further = _proposed(remaining, prepared, place)
    for level, flag in (("likely", "--all"), ("guess", "--guesses")):
        more = sum(finding.fix is not None and finding.fix.safety == level for finding in remaining.places)
        if more and level not in levels:
            further.append(
                f"{more:,} of these can be repaired with `troth fix {flag}`; look at `troth fix {flag} --diff` first"
            )
    say([*lines, *(line for text in further for line in wrapped(text, width, rest="  "))])
    return _left_over(remaining)


def _left_over(remaining: "CheckReport") -> int:
    """What the files as they now are come to."""
    if remaining.crashes:
        from troth.cli.crash import keep_traces

        sys.stderr.write(keep_traces(remaining.crashes))
        return Exit.INCOMPLETE
    return Exit.FOUND if remaining.findings else Exit.CLEAN


def _aftermath(settled: "Settled", remaining: "CheckReport", place: Callable[[str], str]) -> list[str]:
    """What nobody could see before the repair: the call runs now, and its result is not what was expected."""
    if not settled.applied or remaining.program is None:
        return []
    from troth.analysis.fix.after_await import mistaken

    new = settled.aftermath
    rows = [
        f"  {place(finding.span.path)}:{finding.span.line}  {finding.code} {finding.rule}: {finding.message}"
        for finding in new
    ]
    rows += [
        f"  {place(mistake.path)}:{mistake.line}  {mistake.words()}"
        for mistake in mistaken(remaining.program, settled.applied)
    ]
    return ["The repair revealed these findings; review them:", *rows, ""] if rows else []


def _proposed(remaining: "CheckReport", prepared: "Prepared", place: Callable[[str], str]) -> list[str]:
    """The changes of color that would repair what no fix can: where the caller is a plain `def`."""
    if remaining.program is None or not remaining.findings:
        return []
    from troth.analysis.fix.recolor_lost import ways
    from troth.analysis.report.content import plural

    changes, open_questions = [], []
    for way in ways(prepared.scope.project, remaining.program, remaining.places, prepared.overlay):
        proposal = way.proposal
        path, line = proposal.function.place
        lost = plural(proposal.lost, "call")
        where = f"{place(path)}:{line}  `{proposal.function.qualname}` is a plain `def` and loses {lost}"
        command = way.command
        if not way.obstacle:
            changes.append(f"{where}: {f'`{command}`' if command else '`troth fix --recolor`'} {proposal.words()}")
        elif way.is_slot:
            open_questions.append(
                f"{where}: Python itself calls it, so it cannot be async; run the call with `bridge.run(…)` "
                f"(`troth fix --recolor --run-with bridge.run`), or {way.other_way}"
            )
        else:
            open_questions.append(f"{where}: {way.obstacle}" + (f" (`{command} --plan` shows all)" if command else ""))
    lines = ["", "What a change of color would repair:", *changes] if changes else []
    lines += ["`troth fix --recolor` makes these changes"] if changes else []
    return lines + (["", "Decide these first:", *open_questions] if open_questions else [])


COMMAND = Command(
    summary="repair what check finds",
    description=(
        "Applies the fixes of `troth check`: exact text edits, repeated until nothing is left to fix, and checked "
        "again\n"
        "before a file is touched. All files are written, or none. By default only the sure fixes are applied."
    ),
    examples=(
        Example("troth fix --diff", "show what would change, and change nothing"),
        Example("troth fix", "repair the project around the working folder, where the fix is sure"),
        Example("troth fix --all src/agents", "apply the likely fixes too, in one folder"),
        Example("troth fix --select TR101", "only un-awaited coroutines"),
        Example(
            "troth fix --recolor --diff", "make functions that lose a call async, with their callers; preview only"
        ),
        Example("troth fix --undo", "undo the last repair"),
        Example("troth fix - --stdin-filename app.py < app.py", "print the repaired source, for an editor"),
    ),
    add_arguments=add_arguments,
    run=run,
    variables=VARIABLES,
)
