"""Take the arguments of `troth mutate`, run it, and print what it found out."""

import argparse
import sys
import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from troth.analysis.mutate.checkers import PRESETS, Checker, command_checker, preset
from troth.analysis.mutate.measure.by_checker import score_checker
from troth.analysis.mutate.measure.by_tests import score_tests
from troth.analysis.mutate.measure.coverage import Coverage, read_coverage
from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.operators import all_operators
from troth.analysis.mutate.plan import MutationPlan, make_plan
from troth.analysis.mutate.record import identity_of, read_record, write_record
from troth.analysis.mutate.report import render, render_list
from troth.analysis.mutate.result import Result
from troth.analysis.mutate.score import tally
from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.pipe import say
from troth.cli.terminal import Progress
from troth.errors import MisuseError

__all__ = ["COMMAND"]

_CHECKER_LIMIT = 600.0
_BETWEEN_WRITES = 2.0  # seconds; a record of a hundred mutants takes some hundredths to write


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `troth mutate`."""
    add = parser.add_argument
    add(
        "paths",
        nargs="*",
        type=Path,
        default=[Path()],
        metavar="PATH",
        help="files or directories that may be changed in the copy (default: the working directory)",
    )
    add = parser.add_argument_group("what to plant").add_argument
    add(
        "--operator",
        action="append",
        metavar="NAME",
        help=f"{', '.join(all_operators())}, or all; may be repeated (default: drop-await)",
    )
    add("--n", type=int, default=120, help="maximum number of mutants, at most one in each function (default: 120)")
    add(
        "--seed",
        type=int,
        default=7,
        help="random seed; the same seed and the same code give the same mutants (default: 7)",
    )
    add(
        "--root",
        type=Path,
        metavar="DIR",
        help="the project to copy (default: the nearest parent folder with a pyproject.toml, setup.py or .git)",
    )
    add("--include-tests", action="store_true", help="plant in test files too")
    add = parser.add_argument_group("detect with (choose one)").add_mutually_exclusive_group().add_argument
    add(
        "--checker",
        metavar="CMD",
        help="a command that prints `path:line: …` or JSON; {root} is the copy, {files} its files",
    )
    add("--tool", choices=tuple(PRESETS), help="a known checker, with the settings that detect most")
    add(
        "--tests",
        metavar="CMD",
        help="a test command that passes; {tests} is replaced by the tests that coverage data names",
    )
    add("--list", action="store_true", help="only show what would be planted")
    add = parser.add_argument_group("how").add_argument
    add(
        "--pattern",
        default="",
        metavar="REGEX",
        help="how --checker prints: groups path and line, perhaps code and message",
    )
    add("--kind", default="", metavar="REGEX", help="which findings of --checker count (default: every new one)")
    add(
        "--batch-size",
        type=int,
        default=15,
        metavar="N",
        help="mutants per run of a checker, in different functions (default: 15)",
    )
    add("--jobs", type=int, default=1, metavar="N", help="test runs at a time, each in a copy of its own (default: 1)")
    add(
        "--coverage",
        type=Path,
        metavar="FILE",
        help="coverage data for --tests: .coverage or a JSON report (default: .coverage, if newer than the code)",
    )
    add(
        "--limit",
        type=float,
        metavar="SECONDS",
        help="time limit of one run (default: checker 600; tests 3 times the untouched run and 5)",
    )
    add("--json", type=Path, metavar="FILE", help="write the run to FILE, while it runs and at its end")
    add("--resume", action="store_true", help="resume the interrupted run in the file of --json")
    add("--fail-under", type=float, metavar="P", help="exit 1 if less than P percent is caught")


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
        say([render_list(plan).removesuffix("\n")])
        return Exit.CLEAN
    judge = _judge(args, plan)
    identity = identity_of(plan, judge.by, judge.label, args.kind)
    results = read_record(args.json, identity) if args.resume and args.json.exists() else {}
    unscored = [mutant for mutant in plan.mutants if mutant.key not in results]
    interrupted = bool(unscored) and _collect(args, plan, identity, judge.score(unscored), results)
    say([render(plan, results, by=judge.by, label=judge.label).removesuffix("\n")])
    if interrupted:
        sys.stderr.write("Interrupted.\n")
        return Exit.INTERRUPTED
    return _verdict(args, results)


@dataclass(frozen=True, slots=True)
class _Checkers:
    """A checker is asked."""

    args: argparse.Namespace
    plan: MutationPlan
    checker: Checker
    by: str = "checker"

    @property
    def label(self) -> str:
        return self.checker.label

    def score(self, mutants: list[Mutant]) -> Generator[Result]:
        yield from score_checker(
            mutants,
            checker=self.checker,
            operators=self.plan.operators,
            project=self.plan.project,
            layout=self.plan.layout,
            batch_size=self.args.batch_size,
            limit=self.args.limit or _CHECKER_LIMIT,
        )


@dataclass(frozen=True, slots=True)
class _Tests:
    """The project's own tests are asked."""

    args: argparse.Namespace
    plan: MutationPlan
    coverage: Coverage | None
    by: str = "tests"

    @property
    def label(self) -> str:
        return str(self.args.tests)

    def score(self, mutants: list[Mutant]) -> Generator[Result]:
        yield from score_tests(
            mutants,
            command=self.args.tests,
            project=self.plan.project,
            layout=self.plan.layout,
            jobs=self.args.jobs,
            limit=self.args.limit,
            coverage=self.coverage,
            notice=_notice,
        )


def _judge(args: argparse.Namespace, plan: MutationPlan) -> _Checkers | _Tests:
    if args.tests:
        return _Tests(args, plan, _coverage(args, plan))
    if args.tool:
        return _Checkers(args, plan, preset(args.tool))
    return _Checkers(args, plan, command_checker(args.checker, pattern=args.pattern, kind=args.kind))


def _coverage(args: argparse.Namespace, plan: MutationPlan) -> Coverage | None:
    """The coverage data that was named, or what lies in the project if it is newer than every file it speaks of."""
    root = plan.layout.root
    if args.coverage:
        return read_coverage(args.coverage, root)
    data_file = root / ".coverage"
    if not data_file.is_file():
        return None
    newest = max(((root / path).stat().st_mtime for path in plan.layout.chosen), default=0.0)
    if data_file.stat().st_mtime <= newest:
        _notice(
            "The .coverage file is older than the code, so it is not used; pass `--coverage .coverage` to use it "
            "anyway."
        )
        return None
    _notice("Using the project's .coverage file to find which tests reach which mutants.")
    return read_coverage(data_file, root)


def _notice(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _collect(
    args: argparse.Namespace,
    plan: MutationPlan,
    identity: dict[str, object],
    coming: Generator[Result],
    results: dict[str, Result],
) -> bool:
    """Gather results into `results`, keeping the file of `--json` up to date; says whether Ctrl-C came between."""
    written_at = time.monotonic()
    try:
        with closing(coming), Progress("mutants", total=len(plan.mutants)) as progress:
            progress.at(len(results), "running on the untouched copy")
            for result in coming:
                results[result.key] = result
                progress.at(len(results))
                if args.json and time.monotonic() - written_at > _BETWEEN_WRITES:
                    write_record(args.json, plan, identity, results)
                    written_at = time.monotonic()
    except KeyboardInterrupt:
        return True
    finally:
        if args.json and results:
            write_record(args.json, plan, identity, results)
    return False


def _verdict(args: argparse.Namespace, results: dict[str, Result]) -> int:
    if args.fail_under is None:
        return Exit.CLEAN
    whole = tally(results.values())
    if whole.n == 0:
        _notice("Nothing was measured, so --fail-under is not reached.")
        return Exit.FOUND
    if whole.percent < args.fail_under:
        _notice(f"Caught {whole.percent:.1f} %, which is under {args.fail_under:g} %.")
        return Exit.FOUND
    return Exit.CLEAN


def _refuse(args: argparse.Namespace) -> None:
    """Refuse what cannot work before anything is read."""
    if not (args.checker or args.tool or args.tests or args.list):
        raise MisuseError(
            "No checker or test command was given.\nNothing was done.\n"
            "Give `--checker 'CMD'`, `--tool NAME` or `--tests 'CMD'`; or `--list` to see what would be planted."
        )
    if args.resume and not args.json:
        raise MisuseError("`--resume` needs the file of the run.\nNothing was done.\nGive it with `--json FILE`.")
    if args.json and not args.json.resolve().parent.is_dir():
        raise MisuseError(f"There is no directory for {str(args.json)!r}.\nNothing was done.\nMake it first.")
    for option, needed in (("pattern", "--checker"), ("kind", "--checker"), ("coverage", "--tests")):
        if getattr(args, option) and not getattr(args, needed[2:]):
            raise MisuseError(f"`--{option}` has an effect only with `{needed}`.\nNothing was done.\nOmit it.")
    for name, least in (("n", 1), ("batch_size", 1), ("jobs", 1), ("limit", 0.1)):
        value = getattr(args, name)
        if value is not None and value < least:
            option = name.replace("_", "-")
            raise MisuseError(f"--{option} is {value}.\nNothing was done.\nGive a number of at least {least}.")
    if args.fail_under is not None and not 0 <= args.fail_under <= 100:
        raise MisuseError(f"--fail-under is {args.fail_under:g}.\nNothing was done.\nGive percent, from 0 to 100.")


COMMAND = Command(
    summary="plant sync/async mismatches, and measure what detects them",
    description=(
        "Plants sync/async mismatches in a copy of a project, and measures how many of them a checker or the\n"
        "project's own tests detect. The project itself is never touched. Mutants that survive are listed with "
        "what would have detected them."
    ),
    examples=(
        Example("troth mutate src --list --n 5", "show five places where an await could be dropped"),
        Example("troth mutate src --tests 'python -m pytest -q' --n 30", "would my tests notice a missing await?"),
        Example("troth mutate src --tool mypy --json run.json", "score a known checker, and keep the run"),
        Example("troth mutate src --checker 'make lint' --operator all", "score a command of yours, as you run it"),
    ),
    add_arguments=add_arguments,
    run=run,
)
