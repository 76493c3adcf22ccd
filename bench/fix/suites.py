"""As green as before? `python -m bench.fix.suites [--found] [--repos FOLDER] [--work FOLDER] [--only NAME ...]`.

Real projects are fixed with `troth fix --all`, and their own tests are run: on the project as it is, after the repair
of what `troth check` finds in it, with awaits taken out as `troth mutate` does, and after the repair of these.
`--repos` holds bare repositories laid out as `owner+name/repo`. With `--found`, nothing is taken out: projects in which
something is found as they are, fetched as source distributions, are repaired and tested.
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
_PYTEST = ("pytest", "pytest-asyncio", "pytest-timeout", "pytest-mock")


def _released(name: str, version: str, *needs: str, source: str = ".", tests: tuple[str, ...] = ()) -> Real:
    """A source distribution, whose tests run on its own sources with what the release itself needs."""
    return Real(
        f"{name}-{version}",
        "",
        f"{name}-{version}",
        (*_PYTEST, f"{name}=={version}", *needs),
        tests=("-p", "no:randomly", *tests),
        env={"PYTHONPATH": source},
    )


FOUND = (
    _released("async-cache", "2.0.3"),
    _released("eventkit", "1.0.3"),
    _released("mode-streaming", "0.7.1", "hypothesis", "freezegun", "pytest-aiofiles"),
    _released("pyrate-limiter", "4.5.1", "pytest-retry", "filelock", "aiohttp", "httpx", "requests", "redis"),
    _released(
        "python-socks",
        "3.2.1",
        "pytest-trio",
        "anyio",
        "curio",
        "flask",
        "trustme",
        "yarl",
        "aiohttp",
        "uvicorn",
        "starlette",
        "tiny_proxy",
        "httpx",
    ),
    _released("zigpy-znp", "1.1.1", "pytest-xdist"),
    _released("lona", "1.16.2", "pytest-aiohttp", "playwright"),
    _released("zigpy-zigate", "0.14.0"),
    _released("ptpython", "3.0.32", source="src"),
    _released(
        "llm-toolkit-schema",
        "1.1.1",
        "pytest-benchmark",
        "hypothesis",
        "jsonschema",
        tests=("-o", "addopts=", "-o", "asyncio_default_fixture_loop_scope=function"),
    ),
    _released("mcp-youtube-intelligence", "0.1.3", source="src"),
    _released("quickbooks-mcp", "0.1.1", "respx", "pytest-cov", source="src"),
    _released(
        "vloex-mcp-proxy",
        "0.5.2",
        "pytest-asyncio<0.24",
        "aiosqlite",
        "cryptography",
        "httpx",
        "pyjwt",
        "respx",
        "pyyaml",
    ),
)


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


def prove_found(real: Real, work: Path) -> None:
    """The repair of what is found in a project as it is, with its tests."""
    python = environment(work.parent / "environments", real)
    before = unpacked(work, real, work / "before")
    green = untouched(before, real, python, work.parent)
    repaired = _copy(before, work / "repaired")
    print(f"  {fixed(repaired, python)}")
    print(f"  {difference(green, outcomes(repaired, real, python))}", flush=True)


def _copy(tree: Path, to: Path) -> Path:
    shutil.copytree(tree, to, symlinks=True)
    return to


def main() -> None:
    """Prove it for the projects that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repos", type=Path)
    parser.add_argument("--found", action="store_true", help="repair projects as they are; needs no repositories")
    parser.add_argument("--work", type=Path, default=HERE / "build" / "bench-suites")
    parser.add_argument("--count", type=int, default=30, help="how many awaits are taken out")
    names = [real.name for real in (*SUITES, *FOUND)]
    parser.add_argument("--only", nargs="*", choices=names, default=names)
    args = parser.parse_args()
    if not args.found and args.repos is None:
        parser.error("--repos FOLDER is needed, or --found")
    for real in (real for real in (FOUND if args.found else SUITES) if real.name in args.only):
        print(real.name, flush=True)
        work = (args.work / real.name).resolve()
        shutil.rmtree(work, ignore_errors=True)
        if args.found:
            prove_found(real, work)
        else:
            prove(real, args.repos.resolve(), work, args.count)


if __name__ == "__main__":
    main()
