"""Run `python -m tools.same record | compare | checkout`."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tools.same.difference import differences
from tools.same.programs import GOLDEN, record_programs
from tools.same.record import Row, read, write
from tools.same.trees import check_out, record_trees
from tools.same.troth import is_compiled

_SHOWN = 40  # differences


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is asked; the answer is the exit code."""
    options = _parser().parse_args(arguments)
    if options.command == "checkout":
        check_out(options.repositories.resolve(), options.trees.resolve())
        return 0
    if options.flavor is not None and is_compiled() != (options.flavor == "compiled"):
        print(f"Troth is not {options.flavor} here, so nothing was compared. Check PYTHONPATH.", file=sys.stderr)
        return 2
    golden = options.golden or (GOLDEN if options.trees is None else _beside(options.trees.resolve()))
    if options.command == "compare" and not golden.is_file():
        print(f"There is no record {str(golden)!r}. Write one with `record`, before the change.", file=sys.stderr)
        return 2
    started = time.monotonic()
    rows = list(record_programs() if options.trees is None else record_trees(options.trees.resolve()))
    summary = f"{_counted(rows)}, {'compiled' if is_compiled() else 'plain'}, {time.monotonic() - started:.0f} s"
    if options.command == "record":
        write(golden, rows)
        print(f"recorded in {golden}: {summary}")
        return 0
    different = differences(read(golden), rows)
    for text in different[:_SHOWN]:
        print(text)
    if different:
        print(f"{len(different)} differences, {min(len(different), _SHOWN)} of them shown ({summary})")
        return 1
    print(f"the same: {summary}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.same", description="compare findings with a golden record")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (("record", "write the record"), ("compare", "compare with the record; exit 1 if different")):
        command = commands.add_parser(name, help=about)
        command.add_argument("--trees", type=Path, help="a folder of real projects, instead of the repository's own")
        command.add_argument("--golden", type=Path, help="the record (default: in tests, or beside the trees)")
        command.add_argument("--flavor", choices=("plain", "compiled"), help="refuse to run with the other one")
    checkout = commands.add_parser("checkout", help="unpack the real projects from clones")
    checkout.add_argument("repositories", type=Path, help="a folder with a clone of each at OWNER+NAME/repo")
    checkout.add_argument("trees", type=Path, help="where to unpack them")
    return parser


def _beside(trees: Path) -> Path:
    return trees.with_name(f"golden-{trees.name}.jsonl")


def _counted(rows: Sequence[Row]) -> str:
    awaits = [row for row in rows if "await" in row]
    planted = f", {sum(bool(row['found by']) for row in awaits)} of {len(awaits)} removed awaits" if awaits else ""
    programs = len({str(row["in"]) for row in rows})
    return f"{sum('code' in row for row in rows)} findings in {programs} programs{planted}"


if __name__ == "__main__":
    sys.exit(main())
