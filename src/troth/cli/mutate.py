"""Knows how to take the arguments of `troth mutate`, run it, and print what it found out."""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from troth.analysis.mutate.by_checker import score_checker
from troth.analysis.mutate.checkers import PRESETS, Checker, command_checker, preset
from troth.analysis.mutate.operators import all_operators
from troth.analysis.mutate.plan import Plan, make_plan
from troth.analysis.mutate.record import identity_of, read_record, write_record
from troth.analysis.mutate.report import render, render_list
from troth.analysis.mutate.result import Result
from troth.analysis.mutate.score import tally
from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.terminal import Progress
from troth.errors import MisuseError

__all__ = ["COMMAND"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `troth mutate`."""
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        default=[Path()],
        metavar="PATH",
        help="what may be changed in the copy: files or directories (default: the working directory)",
    )
    what = parser.add_argument_group("what to plant")
    what.add_argument(
        "--operator",
        action="append",
        metavar="NAME",
        help="a way of planting, or `all`; may be repeated (default: drop-await)",
    )
    what.add_argument("--n", type=int, default=120, help="how many mutants at most (default: 120)")
    what.add_argument("--seed", type=int, default=7, help="same seed, same tree: same mutants (default: 7)")
    what.add_argument(
        "--root", type=Path, help="the project to copy (default: the nearest pyproject.toml, setup.py or .git upwards)"
    )
    what.add_argument("--include-tests", action="store_true", help="plant in test files too")
    who = parser.add_argument_group("who shall notice (one of)").add_mutually_exclusive_group()
    who.add_argument(
        "--checker",
        metavar="CMD",
        help="a command that prints `path:line: message` or JSON; {root} is the copy, {files} its files",
    )
    who.add_argument("--tool", choices=tuple(PRESETS), help="a known checker with its strongest settings")
    who.add_argument("--list", action="store_true", help="only show what would be planted")
    how = parser.add_argument_group("how")
    how.add_argument(
        "--pattern",
        default="",
        metavar="REGEX",
        help="how --checker prints: groups path and line, perhaps code and message",
    )
    how.add_argument(
        "--kind", default="", metavar="REGEX", help="which findings of --checker count (default: every new one)"
    )
    how.add_argument(
        "--batch-size",
        type=int,
        default=60,
        metavar="N",
        help="mutants per run of a checker, in different functions (default: 60)",
    )
    how.add_argument(
        "--limit", type=float, metavar="SECONDS", help="time limit of one run (default: 600 for a checker)"
    )
    how.add_argument("--json", type=Path, metavar="FILE", help="keep the run in FILE, while it goes on and at its end")
    how.add_argument("--resume", action="store_true", help="go on with the interrupted run in the file of --json")
    how.add_argument("--fail-under", type=float, metavar="P", help="exit 1 if less than P percent is caught")


def run(args: argparse.Namespace) -> int:
    """Plant, measure, report; Ctrl-C keeps and prints what was measured."""
    _refuse(args)
    names = args.operator or ["drop-await"]
    plan = make_plan(
        args.paths,
        operators=list(all_operators()) if "all" in names else names,
        n=args.n,
        seed=args.seed,
        root=args.root,
        with_tests=args.include_tests,
    )
    if args.list:
        sys.stdout.write(render_list(plan))
        return Exit.CLEAN
    checker = preset(args.tool) if args.tool else command_checker(args.checker, pattern=args.pattern, kind=args.kind)
    return _measure(args, plan, checker)


def _measure(args: argparse.Namespace, plan: Plan, checker: Checker) -> int:
    identity = identity_of(plan, "checker", checker.label, checker.kind)
    results = read_record(args.json, identity) if args.resume and args.json.exists() else {}
    left = [mutant for mutant in plan.mutants if mutant.key not in results]
    coming = score_checker(
        left,
        checker=checker,
        operators=plan.operators,
        project=plan.project,
        layout=plan.layout,
        batch_size=args.batch_size,
        limit=args.limit or 600.0,
    )
    interrupted = _collect(args, plan, identity, coming if left else iter(()), results)
    sys.stdout.write(render(plan, results, by="checker", label=checker.label))
    if interrupted:
        sys.stderr.write("Interrupted.\n")
        return Exit.INTERRUPTED
    return _verdict(args, results)


def _collect(
    args: argparse.Namespace,
    plan: Plan,
    identity: dict[str, object],
    coming: Iterator[Result],
    results: dict[str, Result],
) -> bool:
    """Gather results into `results`, keeping the file of `--json` up to date; says whether Ctrl-C came between."""
    kept = time.monotonic()
    try:
        with Progress("mutants", total=len(plan.mutants)) as progress:
            progress.at(len(results), "looking at the untouched copy")
            for result in coming:
                results[result.key] = result
                progress.at(len(results))
                if args.json and time.monotonic() - kept > 1:
                    write_record(args.json, plan, identity, results)
                    kept = time.monotonic()
    except KeyboardInterrupt:
        return True
    finally:
        if args.json:
            write_record(args.json, plan, identity, results)
    return False


def _verdict(args: argparse.Namespace, results: dict[str, Result]) -> int:
    if args.fail_under is None:
        return Exit.CLEAN
    whole = tally(results.values())
    if whole.n == 0:
        sys.stderr.write("Nothing was measured, so nothing is above --fail-under.\n")
        return Exit.FOUND
    if whole.percent < args.fail_under:
        sys.stderr.write(f"Caught {whole.percent:.1f} %, which is under {args.fail_under:g} %.\n")
        return Exit.FOUND
    return Exit.CLEAN


def _refuse(args: argparse.Namespace) -> None:
    if not (args.checker or args.tool or args.list):
        raise MisuseError(
            "Nobody was named who shall notice the mutants.\nNothing was done.\n"
            "Give `--checker 'CMD'` or `--tool NAME`; or `--list` to see what would be planted."
        )
    if args.resume and not args.json:
        raise MisuseError("`--resume` needs the file of the run.\nNothing was done.\nGive it with `--json FILE`.")
    for name, least in (("n", 1), ("batch_size", 1), ("limit", 0)):
        value = getattr(args, name)
        if value is not None and value < least:
            option = name.replace("_", "-")
            raise MisuseError(f"--{option} is {value}.\nNothing was done.\nGive a number of at least {least}.")


COMMAND = Command(
    summary="plant sync/async mismatches in a copy and see who notices",
    description=(
        "Plants sync/async mismatches in a copy of a project, and scores a checker or the project's own tests on\n"
        "them. "
        "The project itself is never touched. Survivors are listed with what would have caught them."
    ),
    examples=(
        Example("troth mutate src --list --n 5", "show five places where an await could be dropped"),
        Example("troth mutate src --checker 'mypy {root}/src'", "score a checker of yours, as you run it"),
    ),
    add_arguments=add_arguments,
    run=run,
)
