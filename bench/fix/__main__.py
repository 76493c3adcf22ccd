"""How right are the fixes? `python -m bench.fix [TREE ...] [--entries FILE --repos FOLDER --work FOLDER]`.

For each tree, awaits are taken out as `troth mutate` does, and `troth fix` is asked to repair what it finds: the share
that is restored byte for byte. With `--entries`, our fixes are held against those that projects made themselves: a file
of known bugs, and bare repositories laid out as `owner+name/repo`. Nothing is downloaded.
"""

import argparse
from pathlib import Path

from bench.fix.restored import restored
from bench.fix.upstream import compare, show

HERE = Path(__file__).resolve().parents[2]


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="*", type=Path, metavar="TREE")
    parser.add_argument("--count", type=int, default=60, help="how many awaits are taken out of each tree")
    parser.add_argument("--entries", type=Path)
    parser.add_argument("--repos", type=Path)
    parser.add_argument("--work", type=Path, default=HERE / "build" / "bench-fix")
    parser.add_argument("--details", action="store_true", help="show each bug that was not repaired in the same way")
    args = parser.parse_args()
    if args.entries is not None:
        show(compare(args.entries, args.repos, args.work), details=args.details)
    for tree in args.trees or ([] if args.entries else [HERE / "src" / "troth"]):
        print(restored(tree, args.count))


main()
