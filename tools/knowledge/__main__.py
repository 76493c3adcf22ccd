"""The commands: `build [PACKAGE…]` writes tables, `coverage [PACKAGE…]` measures those that lie there."""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tools.knowledge.build import Report, build_library, build_stdlib, measure_library, renew_words
from tools.knowledge.catalogue import CATALOGUE, Entry, entry_for
from tools.knowledge.environment import Environment, installed, running
from tools.knowledge.lock import pinned, write_lock
from tools.knowledge.meaning import build_semantics

TABLES = Path(__file__).parents[2] / "src" / "troth" / "analysis" / "knowledge" / "tables"
_ENOUGH = 95  # percent of the public coroutine functions


def main() -> int:
    """Parse the command line and do it."""
    parser = argparse.ArgumentParser(prog="python -m tools.knowledge", description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    build = commands.add_parser("build", help="write the tables of packages (all, where none is named)")
    build.add_argument("packages", nargs="*", help="top-level packages, or `stdlib`, or `semantics`")
    build.add_argument("--into", type=Path, default=TABLES, help="the folder to write to")
    build.add_argument("--quick", action="store_true", help="do not measure what reading alone would have found")
    build.add_argument(
        "--upgrade", action="store_true", help="read the newest versions instead of those in tables.lock"
    )
    coverage = commands.add_parser("coverage", help="measure the tables that lie there against the real packages")
    coverage.add_argument("packages", nargs="*", help="top-level packages (all that have a table, where none is named)")
    coverage.add_argument("--table", type=Path, help="also write the figures to this file, as Markdown")
    for command in (build, coverage):
        command.add_argument("--here", action="store_true", help="read what is installed here; install nothing")
        command.add_argument("--why", action="store_true", help="also list what is missing, wrong, or not imported")
    options = parser.parse_args()
    return _build(options) if options.command == "build" else _coverage(options)


def _build(options: argparse.Namespace) -> int:
    names = options.packages or ["stdlib", *(entry.top for entry in CATALOGUE), "semantics"]
    if _are_unknown(name for name in names if name not in {"stdlib", "semantics"}):
        return 2
    options.into.mkdir(parents=True, exist_ok=True)
    failed = 0
    _head()
    for name in names:
        if name in {"stdlib", "semantics"}:
            into = options.into
            for line in build_stdlib(into) if name == "stdlib" else build_semantics(into.parent / "semantics.json"):
                print(line, flush=True)
            continue

        def work(entry: Entry, environment: Environment) -> Report:
            return build_library(entry, environment, options.into, measure_reading=not options.quick)

        failed += _one(name, work, options) is None
    if options.into == TABLES:
        for line in renew_words(TABLES):
            print(line, flush=True)
        write_lock(TABLES)
    return 1 if failed else 0


def _coverage(options: argparse.Namespace) -> int:
    tabled = [entry.top for entry in CATALOGUE if (TABLES / f"{entry.top}.json").exists() and not entry.source_only]
    names = options.packages or tabled
    if _are_unknown(names):
        return 2
    _head()
    reports = []
    for name in names:
        report = _one(name, lambda entry, environment: measure_library(entry, environment, TABLES), options)
        if report is not None and report.public:
            reports.append(report)
    full = [report for report in reports if report.tabled * 100 >= report.public * _ENOUGH]
    print(f"{len(full)} of {len(reports)} packages: at least {_ENOUGH} % of the public coroutine functions are known")
    if options.table is not None:
        options.table.write_text(_markdown(reports, len(full)), encoding="utf-8")
    return 0 if len(full) == len(reports) else 1


def _one(name: str, work: Callable[[Entry, Environment], Report], options: argparse.Namespace) -> Report | None:
    """The report on one package, printed; None where it could not be installed or read."""
    began = time.monotonic()
    entry = entry_for(name)
    assert entry is not None
    try:
        if options.here:
            report = work(entry, running())
        else:
            newest = options.command == "coverage" or options.upgrade
            with installed(entry, entry.install if newest else pinned(name, entry.install)) as environment:
                report = work(entry, environment)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"{name:24}  failed: {error}", file=sys.stderr, flush=True)
        return None
    print(f"{report}{time.monotonic() - began:9.1f}", flush=True)
    if options.why:
        for word, lines in (("missing", report.missing), ("wrong", report.wrong), ("not imported", report.failed)):
            for line in lines:
                print(f"    {word}: {line}")
    return report


def _are_unknown(names: Iterable[str]) -> bool:
    unknown = [name for name in names if entry_for(name) is None]
    if unknown:
        print(f"Not in the catalogue: {', '.join(unknown)}. A library is added in tools/knowledge/catalogue.py.")
    return bool(unknown)


def _head() -> None:
    print(f"{'package':24}{'version':>14}{'public':>8}{'read':>8}{'table':>8}{'wrong':>7}{'bytes':>9}{'seconds':>9}")


def _markdown(reports: list[Report], full: int) -> str:
    rows = [
        f"| {report.top} | {report.version} | {report.public:,} | {report.tabled:,} "
        f"| {100 * report.tabled / report.public:.1f} % |"
        for report in sorted(reports, key=lambda report: report.top)
    ]
    return (
        "# How much of each library the tables know\n\n"
        "Written by `python -m tools.knowledge coverage --table bench/check/coverage.md`: each package is installed\n"
        "anew, imported, and asked for its public coroutine functions and methods; known are those that the bundled\n"
        f"table calls async. {full} of {len(reports)} packages are known to at least {_ENOUGH} %.\n\n"
        "| package | version | public coroutine functions | known | share |\n|---|---|--:|--:|--:|\n"
        + "\n".join(rows)
        + "\n"
    )


if __name__ == "__main__":
    sys.exit(main())
