"""As green as before? `python -m bench.fix.suites --repos FOLDER [--work FOLDER] [--only NAME ...]`.

Real projects are fixed with `troth fix --all`, and their own tests are run: on the project as it is, after the repair
of what `troth check` finds in it, with awaits taken out as `troth mutate` does, and after the repair of these.
`--repos` holds bare repositories laid out as `owner+name/repo`.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.fix.restored import planted
from bench.real import SUITES, Real, difference, environment, outcomes, unpacked, untouched

HERE = Path(__file__).resolve().parents[2]


def fixed(tree: Path, python: Path) -> str:
    """`troth fix --all` in a tree; its words about what was repaired."""
    done = subprocess.run(
        [sys.executable, "-m", "troth", "fix", "--all", "--python", str(python.parents[1]), "--no-cache"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(HERE / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in {0, 1}:
        raise SystemExit(done.stderr)
    said = [line for line in done.stdout.splitlines() if line.startswith("Repaired")]
    refused = [line for line in done.stderr.splitlines() if "was left alone" in line]
    return "; ".join(said or ["nothing to repair"]) + (f"; {len(refused)} left alone" if refused else "")


def prove(real: Real, repos: Path, work: Path, count: int) -> None:
    """Both repairs of one project, with its tests."""
    python = environment(work.parent / "environments", real)
    before = unpacked(repos, real, work / "before")
    green = untouched(before, real, python, work.parent)
    found = _copy(before, work / "found")
    print(f"  what is found in it: {fixed(found, python)}")
    print(f"    {difference(green, outcomes(found, real, python))}")
    broken = _copy(before, work / "planted")
    tried, places = planted(broken, count)
    files = len({path for path, _ in places})
    print(f"  {tried} awaits tried, {len(places)} of them found and taken out, in {files} files")
    red = outcomes(broken, real, python, "--maxfail", "20", "--timeout", "20")  # what lost a call may wait for ever
    worse = [name for name, how in red.items() if how in {"failure", "error"} and green.get(name) == "passed"]
    print(f"    at least {len(worse)} tests fail that passed")
    print(f"  then: {fixed(broken, python)}")
    print(f"    {difference(green, outcomes(broken, real, python))}")


def _copy(tree: Path, to: Path) -> Path:
    shutil.copytree(tree, to, symlinks=True)
    return to


def main() -> None:
    """Prove it for the projects that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repos", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=HERE / "build" / "bench-suites")
    parser.add_argument("--count", type=int, default=30, help="how many awaits are taken out")
    names = [one.name for one in SUITES]
    parser.add_argument("--only", nargs="*", choices=names, default=names)
    args = parser.parse_args()
    for real in (one for one in SUITES if one.name in args.only):
        print(real.name, flush=True)
        work = (args.work / real.name).resolve()
        shutil.rmtree(work, ignore_errors=True)
        prove(real, args.repos.resolve(), work, args.count)


if __name__ == "__main__":
    main()
