"""Knows how to carry out `troth check`."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.outputs import FORMATS, parse_outputs, write
from troth.cli.pipe import say
from troth.cli.switches import switch
from troth.errors import MisuseError

if TYPE_CHECKING:
    from troth.analysis.report.content import Report

__all__ = ["COMMAND", "words"]

_STDIN = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `troth check`."""
    add = parser.add_argument
    add("paths", nargs="*", metavar="PATH", help="what is reported: files and folders; `-` is source on stdin")
    add("--stdin-filename", metavar="FILE", help="the file that the source on stdin stands for")
    report = parser.add_argument_group("what is reported")
    add = report.add_argument
    add("--select", action="append", metavar="RULES", help="only these rules: codes (T101), families (T1) or names")
    add("--ignore", action="append", metavar="RULES", help="not these rules")
    add("--confidence", choices=("certain", "likely"), help="certain: only what is certain; likely: both (the default)")
    add("--since", metavar="REV", help="only what came with the changes since a commit, callers left behind included")
    add("--baseline", metavar="FILE", type=Path, help="leave out the findings that this file knows")
    add("--write-baseline", action="store_true", help="write the findings of today into the baseline")
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
    add("--statistics", action="store_true", help="count by rule")
    add("--show-files", action="store_true", help="list the files that would be checked, and stop")
    add("--watch", action="store_true", help="check again whenever a file changes, until Ctrl-C")
    project = parser.add_argument_group("how the project is read")
    add = project.add_argument
    add("--python", metavar="ENV", help="the environment whose packages are read (default: .venv, then the active one)")
    add("--jobs", type=_count, default=0, metavar="N", help="processes to use (default: as many as pay)")
    add("--no-cache", action="store_true", help="keep nothing between runs (also TROTH_NO_CACHE=1)")
    add("--cache-dir", metavar="DIR", type=Path, help="where facts are kept (default: .troth_cache in the project)")
    add("--force-exclude", action="store_true", help="leave out excluded files even if they are named")


def run(args: argparse.Namespace) -> int:
    """Check, write the report, and say by the exit code whether there is something in it."""
    from troth.analysis.checking import Request, check, prepare

    cwd = Path.cwd()
    outputs = parse_outputs(args.output or (), args.output_format, cwd)
    if args.watch:
        from troth.cli.watching import refuse_what_has_no_next_time

        refuse_what_has_no_next_time(args)
    source = _source_on_stdin(args)
    request = Request(
        cwd=cwd,
        paths=() if source is not None else tuple(args.paths),
        select=words(args.select) if args.select else None,
        ignore=words(args.ignore or []),
        confidence=args.confidence,
        baseline=args.baseline,
        write_baseline=args.write_baseline,
        since=args.since,
        python=args.python,
        jobs=args.jobs,
        cache=not (args.no_cache or switch("TROTH_NO_CACHE")),
        cache_dir=args.cache_dir,
        force_exclude=args.force_exclude,
        stdin=source,
        stdin_name=args.stdin_filename or "stdin.py",
    )
    if args.watch:
        from troth.cli.watching import watch

        return watch(request, outputs, statistics=args.statistics)
    prepared = prepare(request)
    if not prepared.scope.reported:
        return _nothing_to_check(args, forced=args.force_exclude or bool(prepared.settings.force_exclude))
    if args.show_files:
        from troth.analysis.report.place import shown_from

        say(map(shown_from(cwd, prepared.root.path), sorted(prepared.scope.reported)))
        return Exit.CLEAN
    from troth.analysis.collecting import uncollected
    from troth.cli.terminal import Progress

    with uncollected(), Progress("reading", total=len(prepared.scope.project.files)) as shown:
        report = check(prepared, lambda done, _total: shown.at(done) if done % 25 == 0 else None, wants_program=False)
    if args.write_baseline:
        write([one for one in outputs if one.file is not None or args.output_format], report)
        count = f"{len(report.findings):,} finding" + ("" if len(report.findings) == 1 else "s")
        say([f"Wrote {count} to {report.baseline}; from now on only new ones are reported"])
        return Exit.CLEAN
    write(outputs, report, statistics=args.statistics)
    if not any(one.format == "text" and one.file is None for one in outputs):
        _say_beside(report)
    if report.findings:
        return Exit.FOUND
    return Exit.CLEAN if report.checked else Exit.MISUSE


def _source_on_stdin(args: argparse.Namespace) -> bytes | None:
    """The source on stdin if it is asked for, by whatever name."""
    asked = [path for path in args.paths if path in _STDIN]
    if not asked:
        if args.stdin_filename is not None:
            raise MisuseError(
                "`--stdin-filename` says what the source on stdin is, but stdin is not asked for.\n"
                f"Nothing was checked.\nWrite `troth check - --stdin-filename {args.stdin_filename}`."
            )
        return None
    if len(args.paths) > 1:
        raise MisuseError(
            f"`{asked[0]}` stands for one file on stdin, and other paths are named beside it.\n"
            "Nothing was checked.\nCheck them in a run of their own."
        )
    if args.since or args.write_baseline:
        raise MisuseError(
            "Source on stdin has no past and no place in a baseline.\n"
            "Nothing was checked.\nLeave out `--since` and `--write-baseline`, or check the file itself."
        )
    if sys.stdin is None or sys.stdin.isatty():
        raise MisuseError(
            f"`{asked[0]}` reads source from stdin, and stdin is a terminal.\n"
            "Nothing was checked.\nSend a file to it: `troth check - --stdin-filename app.py < app.py`."
        )
    return sys.stdin.buffer.read()


def _nothing_to_check(args: argparse.Namespace, *, forced: bool) -> int:
    """Never call nothing clean. Only where the user wants excluded files left out is an empty list a good end."""
    if forced and args.paths:
        sys.stderr.write("Nothing was checked: all that was named is excluded.\n")
        return Exit.CLEAN
    where = ", ".join(f"`{path}`" for path in args.paths) or "the working folder"
    raise MisuseError(
        f"There is no Python file in {where}.\n"
        "Nothing was checked, and nothing is not the same as clean.\n"
        "Name a folder with `.py`, `.pyi` or `.ipynb` files; one that `.gitignore` or `exclude` hides can be named too."
    )


def _say_beside(report: "Report") -> None:
    """What a machine's format has no place for is said on stderr."""
    from troth.analysis.report.text import newer_syntax, stale

    lines = [*stale(report), *([newer_syntax(report)] if report.newer_syntax else [])]
    sys.stderr.write("".join(f"{line}\n" for line in lines))


def words(given: list[str]) -> tuple[str, ...]:
    """What was given with commas, by repeating the option, or both."""
    return tuple(word.strip() for one in given for word in one.split(",") if word.strip())


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes")
    return int(text)


COMMAND = Command(
    summary="find calls that never happen",
    description=(
        "Reads a whole Python project and reports calls that silently never happen: coroutines that are dropped,\n"
        "kept and never awaited, or used as if they were their result. Nothing of the project is imported or run."
    ),
    examples=(
        Example("troth check", "report the working folder; the whole project around it is read"),
        Example("troth check src/app.py", "report one file; the whole project is read to understand it"),
        Example("troth check --since main", "only what a branch has brought, broken callers elsewhere included"),
        Example("troth check --write-baseline", "take stock of an old project, so that only new findings are reported"),
        Example("troth check --watch", "check again at every change, in a terminal beside the editor"),
        Example("troth check -o sarif:troth.sarif -o github:-", "several formats in one run"),
        Example("troth check - --stdin-filename app.py < app.py", "what an editor does with an unsaved file"),
    ),
    add_arguments=add_arguments,
    run=run,
)
