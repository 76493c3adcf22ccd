"""Carry out `troth check`."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from troth.cli.analysis.options import VARIABLES, add_project_options, add_rule_options, request_of
from troth.cli.analysis.outputs import FORMATS, parse_outputs, write
from troth.cli.analysis.stdin import source_on_stdin
from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.pipe import say
from troth.cli.switches import stop_at_bugs
from troth.errors import MisuseError

if TYPE_CHECKING:
    from troth.analysis.report.content import CheckReport

__all__ = ["COMMAND"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `troth check`."""
    add = parser.add_argument
    add("paths", nargs="*", metavar="PATH", help="what is reported: files and folders; `-` is source on stdin")
    add("--stdin-filename", metavar="FILE", help="the file that the source on stdin stands for")
    report = parser.add_argument_group("what is reported")
    add = report.add_argument
    add_rule_options(add)
    add("--confidence", choices=("certain", "likely"), help="certain: only what is certain; likely: both (the default)")
    add(
        "--since",
        metavar="REV",
        help="report only what the changes since a commit introduced, also in callers that did not change",
    )
    add("--baseline", metavar="FILE", type=Path, help="leave out the findings that are listed in this file")
    add("--write-baseline", action="store_true", help="write the current findings to the baseline")
    add("--add-allow", action="store_true", help="silence each finding with a comment beside it")
    output = parser.add_argument_group("how it is reported")
    add = output.add_argument
    add("--output-format", choices=FORMATS, metavar="FORMAT", help=f"{', '.join(FORMATS)} (default: text)")
    add(
        "-o",
        "--output",
        action="append",
        metavar="FORMAT:FILE",
        help="write a format to a file; `-` is stdout; repeatable",
    )
    add("-q", "--quiet", action="store_true", help="print only findings and errors")
    add("--statistics", action="store_true", help="count the findings by rule")
    add("--exit-zero", action="store_true", help="exit with 0 even if there are findings")
    add("--show-files", action="store_true", help="list the files that would be checked, and stop")
    add("--show-settings", action="store_true", help="print the settings and where they come from, and stop")
    add("--watch", action="store_true", help="check again whenever a file changes, until Ctrl-C")
    project = parser.add_argument_group("how the project is read")
    add = project.add_argument
    add_project_options(add)


def run(args: argparse.Namespace) -> int:
    """Check, write the report, and say by the exit code whether there is something in it."""
    from troth.analysis.check import check, prepare
    from troth.analysis.old_codes import hint

    stop_at_bugs()
    cwd = Path.cwd()
    outputs = parse_outputs(args.output or (), args.output_format, cwd)
    if args.watch:
        from troth.cli.analysis.watching import refuse_what_has_no_next_time

        refuse_what_has_no_next_time(args)
    if args.add_allow:
        _refuse_beside_comments(args)
    source = _source_on_stdin(args)
    request = request_of(args, cwd, () if source is not None else tuple(args.paths))._replace(
        confidence=args.confidence,
        baseline=args.baseline,
        write_baseline=args.write_baseline,
        since=args.since,
        stdin=source,
        stdin_name=args.stdin_filename or "stdin.py",
    )
    if args.watch:
        from troth.cli.analysis.watching import watch

        return watch(request, outputs, statistics=args.statistics, quiet=args.quiet)
    prepared = prepare(request)
    if args.show_settings:
        from troth.analysis.check.shown_settings import settings_lines

        say(settings_lines(prepared))
        return Exit.CLEAN
    if not prepared.scope.told:
        return _nothing_to_check(args, forced=args.force_exclude or bool(prepared.settings.force_exclude))
    if args.show_files:
        from troth.analysis.report.place import shown_from

        say(map(shown_from(cwd, prepared.root.path), sorted(prepared.scope.reported)))
        return Exit.CLEAN
    from troth.analysis.gc_pause import uncollected
    from troth.cli.terminal import Progress

    total = len(prepared.scope.project.files)
    with uncollected(), Progress("reading", total=total, quiet=args.quiet) as shown:
        report = check(prepared, shown.reading, wants_program=any(output.format == "agent" for output in outputs))
    if report.old_codes and not args.quiet:
        sys.stderr.write(hint(report.old_codes))
    if args.write_baseline and report.crashes:
        sys.stderr.write("The baseline was not written, because the check is not complete.\n")
    elif args.write_baseline:
        write([output for output in outputs if output.file is not None or args.output_format], report)
        count = f"{len(report.findings):,} finding" + ("" if len(report.findings) == 1 else "s")
        next_time = f"`troth check --baseline {report.baseline}` reports only new findings"
        if prepared.baseline == prepare(request._replace(baseline=None)).baseline:
            next_time = "from now on, only new findings are reported"
        say([] if args.quiet else [f"Wrote {count} to {report.baseline}; {next_time}"])
        return Exit.CLEAN
    if args.add_allow:
        from troth.cli.analysis.add_allow import add_allow

        return add_allow(prepared, report, quiet=args.quiet)
    write(outputs, report, statistics=args.statistics, quiet=args.quiet)
    if not args.quiet and not any(
        output.format in ("text", "concise", "agent") and output.file is None for output in outputs
    ):
        _say_beside(report)
    if report.crashes:
        from troth.cli.crash import keep_traces

        sys.stderr.write(keep_traces(report.crashes))
        return Exit.INCOMPLETE
    if report.findings:
        return Exit.CLEAN if args.exit_zero else Exit.FOUND
    return Exit.CLEAN if report.checked else Exit.MISUSE


def _source_on_stdin(args: argparse.Namespace) -> bytes | None:
    source = source_on_stdin("check", args.paths, args.stdin_filename)
    if source is not None and (args.since or args.write_baseline or args.add_allow):
        raise MisuseError(
            "Source on stdin has no history, no entry in a baseline and no file for comments.\n"
            "Nothing was checked.\n"
            "Omit `--since`, `--write-baseline` and `--add-allow`, or check the file itself."
        )
    return source


def _refuse_beside_comments(args: argparse.Namespace) -> None:
    """Stop options that ask for the findings which comments are to silence."""
    beside = [("--write-baseline", args.write_baseline), ("-o", args.output), ("--statistics", args.statistics)]
    for option, is_used in beside:
        if is_used:
            raise MisuseError(
                f"`--add-allow` silences the findings that `{option}` is about.\nNothing was checked.\n"
                "Leave one of them out."
            )


def _nothing_to_check(args: argparse.Namespace, *, forced: bool) -> int:
    """Never call nothing clean. Only where the user wants excluded files left out is an empty list a good end."""
    if forced and args.paths:
        sys.stderr.write("Nothing was checked: every path that was named is excluded.\n")
        return Exit.CLEAN
    where = ", ".join(f"`{path}`" for path in args.paths) or "the working folder"
    raise MisuseError(
        f"No Python file was found in {where}.\n"
        "No file was checked, so this is not reported as clean.\n"
        "Name a folder with `.py`, `.pyi` or `.ipynb` files; files hidden by `.gitignore` or `exclude` can be "
        "named too."
    )


def _say_beside(report: "CheckReport") -> None:
    """What a machine's format has no place for is said on stderr."""
    from troth.analysis.report.text import crash_lines, newer_syntax, stale

    lines = [*stale(report), *([newer_syntax(report)] if report.newer_syntax else []), *crash_lines(report)]
    sys.stderr.write("".join(f"{line}\n" for line in lines))


COMMAND = Command(
    summary="find calls that never happen",
    description=(
        "Reads a whole Python project and reports calls that silently never happen: coroutines that are dropped,\n"
        "kept and never awaited, or used as if they were their result. Nothing of the project is imported or run."
    ),
    examples=(
        Example("troth check", "report the working folder; the whole project around it is read"),
        Example("troth check src/app.py", "report one file; the whole project is read to understand it"),
        Example("troth check --since main", "only what a branch introduced, including broken callers elsewhere"),
        Example(
            "troth check --write-baseline",
            "record the findings of an existing project, so that only new ones are reported",
        ),
        Example("troth check --watch", "check again at every change, in a terminal beside the editor"),
        Example("troth check -o sarif:troth.sarif -o github:-", "several formats in one run"),
        Example("troth check - --stdin-filename app.py < app.py", "what an editor does with an unsaved file"),
    ),
    add_arguments=add_arguments,
    run=run,
    variables=VARIABLES,
)
