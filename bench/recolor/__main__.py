"""One surface made sync by three means: `python -m bench.recolor [--before DIR --after DIR --target T --names …]`.

`troth recolor`, unasync and a codemod that goes by names change copies of the same tree; each result is compared with
the tree as it should be. Without arguments that is a project written here, with namesakes of another class, awaits
over several lines and calls that are run; with `--before` and `--after` it is a real one before and after a human
change (only the Python files that the human or the tool touched are compared).
"""

import argparse
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

NAMES = ("save", "load")

STORE = """\
class Store:
    {a}def save(self, item):
        return item

    {a}def load(self):
        return 1


class Client:
    async def save(self, item):
        await other()

    async def other(self):
        return 1
"""

USER = """\
import asyncio

from store import Client, Store


async def use_{n}(store: Store, client: Client):
    {w}store.save(
        {n},
    )
    await client.save({n})
    value = {w}store.load()
    return value


def start_{n}():
    return {r}(Store().load())
"""


def written(root: Path, files: int, *, plain: bool) -> Path:
    """The project, before or after."""
    root.mkdir(parents=True)
    (root / "pyproject.toml").write_text("")
    (root / "store.py").write_text(STORE.format(a="" if plain else "async "))
    for n in range(files):
        text = USER.format(n=n, w="" if plain else "await ", r="asyncio.run")
        if plain:
            text = text.replace("asyncio.run(Store().load())", "Store().load()")
        (root / f"user_{n}.py").write_text(text)
    return root


def by_troth(root: Path, target: str, names: tuple[str, ...]) -> None:
    del names
    subprocess.run(
        [sys.executable, "-m", "troth", "recolor", target, "--to", "sync"],
        cwd=root,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def by_unasync(root: Path, target: str, names: tuple[str, ...]) -> None:
    del target, names
    script = (
        "import sys, unasync, pathlib\n"
        "files = [str(p) for p in pathlib.Path(sys.argv[1]).rglob('*.py')]\n"
        "unasync.unasync_files(files, rules=[unasync.Rule(fromdir=sys.argv[1], todir=sys.argv[1])])\n"
    )
    subprocess.run([sys.executable, "-c", script, f"{root}/"], check=True)


def by_name(root: Path, target: str, names: tuple[str, ...]) -> None:
    """What one writes in ten minutes: names decide."""
    del target
    words = "|".join(names)
    for file in root.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        new = re.sub(rf"\basync (?=def (?:{words})\b)", "", text)
        new = re.sub(rf"\bawait (?=[\w.()]*\.(?:{words})\()", "", new)
        if new != text:
            file.write_text(new, encoding="utf-8")


def compare(result: Path, before: Path, after: Path) -> tuple[int, int, int]:
    """Lines changed rightly, changed wrongly, and missed, over the Python files that somebody touched."""
    right = wrong = missed = 0
    for file in sorted(before.rglob("*.py")):
        name = file.relative_to(before)
        old, got = (_lines(root / name) for root in (before, result))
        want = _lines(after / name) if (after / name).exists() else old
        if len(old) == len(got) == len(want):
            for a, b, c in zip(old, got, want, strict=True):
                right += a != c and b == c
                wrong += b not in (a, c) or (a == c and b != a)
                missed += a != c and b == a
        elif got not in (want, old):  # left alone where a human changed more than the color: not on trial here
            wrong += len(set(got) ^ set(want))
    return right, wrong, missed


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="replace").split("\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--after", type=Path)
    parser.add_argument("--target", default="store:Store")
    parser.add_argument("--names", default=",".join(NAMES))
    parser.add_argument("--files", type=int, default=60)
    args = parser.parse_args()
    means: dict[str, Callable[[Path, str, tuple[str, ...]], None]] = {
        "troth recolor": by_troth,
        "names": by_name,
        "unasync": by_unasync,
    }
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        before = args.before or written(base / "before", args.files, plain=False)
        after = args.after or written(base / "after", args.files, plain=True)
        print(f"{'by':<14} {'right':>6} {'wrong':>6} {'missed':>6} {'CPU s':>7}")
        for name, change in means.items():
            copy = base / name.replace(" ", "_")
            shutil.copytree(before, copy, ignore=shutil.ignore_patterns(".git", ".troth_cache"), symlinks=True)
            start = (
                resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
                + resource.getrusage(resource.RUSAGE_SELF).ru_utime
            )
            try:
                change(copy, args.target, tuple(args.names.split(",")))
            except subprocess.CalledProcessError as problem:
                print(f"{name:<14} failed with exit code {problem.returncode}")
                continue
            end = (
                resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
                + resource.getrusage(resource.RUSAGE_SELF).ru_utime
            )
            right, wrong, missed = compare(copy, before, after)
            print(f"{name:<14} {right:>6} {wrong:>6} {missed:>6} {end - start:>7.1f}")


if __name__ == "__main__":
    main()
