"""Show the answers of `troth check --watch`: a fresh screen for each, or a line of JSON."""

import json
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from troth.cli.analysis.outputs import OutputFile, write
from troth.cli.exit import Exit
from troth.cli.pipe import say
from troth.errors import MisuseError

if TYPE_CHECKING:
    import argparse

    from troth.analysis.check import CheckRequest
    from troth.analysis.check.watch import WatchAnswer

__all__ = ["refuse_what_has_no_next_time", "watch"]

_CLEAR = "\x1b[H\x1b[2J\x1b[3J"
_NAMED = 3  # changed files that are named; a checkout changes hundreds


def refuse_what_has_no_next_time(args: "argparse.Namespace") -> None:
    """Stop options that mean one run and no more."""
    odd = [("--write-baseline", args.write_baseline), ("--since", args.since), ("--show-files", args.show_files)]
    odd += [("--add-allow", args.add_allow), ("--show-settings", args.show_settings), ("--exit-zero", args.exit_zero)]
    odd.append(("-", "-" in args.paths or args.stdin_filename is not None))
    for option, is_used in odd:
        if is_used:
            raise MisuseError(
                f"`--watch` checks repeatedly, and `{option}` is for a single run.\n"
                f"Nothing was checked.\nLeave one of them out."
            )


def watch(request: "CheckRequest", outputs: Sequence[OutputFile], *, statistics: bool, quiet: bool = False) -> int:
    """Show answers until Ctrl-C; that is how it ends, so it is no failure."""
    from troth.analysis.check.watch import watch as answers
    from troth.analysis.old_codes import hint

    to_stdout = next(output.format for output in outputs if output.file is None)
    try:
        for number, answer in enumerate(answers(request)):
            if not _show(answer, outputs, to_stdout, statistics=statistics, quiet=quiet):
                break  # nobody is left to read
            if number == 0 and not quiet:
                sys.stderr.write(hint(answer.report.old_codes))
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            sys.stderr.write("\n")
    return Exit.CLEAN


def _show(
    answer: "WatchAnswer", outputs: Sequence[OutputFile], to_stdout: str, *, statistics: bool, quiet: bool
) -> bool:
    if to_stdout == "json":
        write([output for output in outputs if output.file is not None], answer.report)
        return say([_as_line(answer)])
    if sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        sys.stdout.write(_CLEAR)
    if answer.problem:
        return say([_head(answer), "", answer.problem])
    say([_head(answer), ""])
    write(outputs, answer.report, statistics=statistics, quiet=quiet)
    return say(["", "Watching for changes; Ctrl-C ends" if answer.settled else "Checking what depends on it"])


def _head(answer: "WatchAnswer") -> str:
    clock = time.strftime("%H:%M:%S")
    took = f"{answer.seconds:.2f} s"
    if not answer.changed:
        from troth.analysis.report.content import plural

        return f"{clock}  {plural(answer.report.checked, 'file')} checked in {took}"
    names = ", ".join(answer.changed[:_NAMED])
    more = len(answer.changed) - _NAMED
    return f"{clock}  {names}{f' and {more} more' if more > 0 else ''} changed; answered in {took}"


def _as_line(answer: "WatchAnswer") -> str:
    from troth.analysis.report.json import VERSION, as_object, crash_as_object

    return json.dumps(
        {
            "version": VERSION,
            "root": answer.report.root,
            "changed": list(answer.changed),
            "seconds": round(answer.seconds, 4),
            "settled": answer.settled,
            "checked": answer.report.checked,
            "problem": answer.problem or None,
            "findings": [as_object(finding) for finding in answer.report.findings],
            "errors": [crash_as_object(crash) for crash in answer.report.crashes],
        }
    )
