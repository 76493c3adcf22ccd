"""Knows the commands: `build [PACKAGE…]` writes tables, `coverage [PACKAGE…]` measures those that lie there."""

import argparse
import sys
import time
from pathlib import Path

from tools.knowledge.build import build_library, build_stdlib
from tools.knowledge.catalogue import CATALOGUE, entry_for
from tools.knowledge.environment import installed, running
from tools.knowledge.meaning import build_semantics

TABLES = Path(__file__).parents[2] / "src" / "troth" / "analysis" / "knowledge" / "tables"


def main() -> int:
    """Parse the command line and do it."""
    parser = argparse.ArgumentParser(prog="python -m tools.knowledge", description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    build = commands.add_parser("build", help="write the tables of packages (all, where none is named)")
    build.add_argument("packages", nargs="*", help="top-level packages, or `stdlib`, or `semantics`")
    build.add_argument("--into", type=Path, default=TABLES, help="the folder to write to")
    build.add_argument("--here", action="store_true", help="read what is installed beside this tool; install nothing")
    build.add_argument("--why", action="store_true", help="also list what is missing, wrong, or could not be imported")
    build.add_argument("--quick", action="store_true", help="do not measure what reading alone would have found")
    options = parser.parse_args()
    wanted = options.packages or ["stdlib", *(entry.top for entry in CATALOGUE), "semantics"]
    unknown = [name for name in wanted if name not in {"stdlib", "semantics"} and entry_for(name) is None]
    if unknown:
        print(f"Not in the catalogue: {', '.join(unknown)}. A library is added in tools/knowledge/catalogue.py.")
        return 2
    options.into.mkdir(parents=True, exist_ok=True)
    failed = 0
    print(f"{'package':24}{'version':>14}{'public':>8}{'read':>8}{'table':>8}{'wrong':>7}{'bytes':>9}{'seconds':>9}")
    for name in wanted:
        began = time.monotonic()
        if name in {"stdlib", "semantics"}:
            into = options.into
            for line in build_stdlib(into) if name == "stdlib" else build_semantics(into.parent / "semantics.json"):
                print(line, flush=True)
            continue
        entry = entry_for(name)
        assert entry is not None
        try:
            if options.here:
                report = build_library(entry, running(), options.into, measure_reading=not options.quick)
            else:
                with installed(entry) as environment:
                    report = build_library(entry, environment, options.into, measure_reading=not options.quick)
        except OSError as error:
            print(f"{name:24}  failed: {error}", file=sys.stderr)
            failed += 1
            continue
        print(f"{report}{time.monotonic() - began:9.1f}", flush=True)
        if options.why:
            for word, lines in (("missing", report.missing), ("wrong", report.wrong), ("not imported", report.failed)):
                for line in lines:
                    print(f"    {word}: {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
