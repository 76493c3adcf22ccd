"""Edits a real tree at random and holds every warm answer against one that knows nothing of earlier runs.

    python bench/check/editing.py FOLDER [--rounds N] [--seed N]

A proof rather than a measurement: it stops with an error at the first answer that differs. Each answer comes from a
process of its own. Printed are the edits, how many files were looked at again, and its CPU time beside that of the cold
run.
"""

import argparse
import ast
import os
import pickle
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project
from troth.analysis.rules import all_rules

CHANGES: dict[str, tuple[str, str]] = {
    "an await less": (r"\bawait ", ""),
    "async": (r"(?m)^( *)def ", r"\1async def "),
    "no longer async": (r"\basync def ", "def "),
    "renamed": (r"\bdef (\w+)\(", r"def \1_x("),
    "returns nothing": (r"(?m)^( +)return .+$", r"\1return None"),
    "a parameter more": (r"\bdef (\w+)\(self", r"def \1(self, more=None"),
    "an import renamed": (r"(?m)^from (\S+) import (\w+)$", r"from \1 import \2 as \2_y"),
    "an attribute emptied": (r"self\.(\w+) = .+", r"self.\1 = None"),
    "a base less": (r"class (\w+)\((\w+)\)", r"class \1"),
    "a decorator less": (r"(?m)^ *@.*\n", ""),
    "a line less": (r"(?m)^ +\w.*\n", ""),
    "lines moved": (r"\A", "# one\n# two\n"),
    "a function more": (r"\Z", "\n\nasync def extra(self):\n    return self.send(1)\n"),
    "a class more": (r"\Z", "\n\nclass Extra:\n    async def close(self):\n        return 1\n"),
    "an annotation less": (r"\) -> [^:\n]+:", "):"),
    "a variable emptied": (r"(?m)^(\w+) = .+$", r"\1 = None"),
    "broken": (r"\Z", "\n\ndef broken(:\n"),
}


def changed(text: str, chance: random.Random) -> tuple[str, str]:
    for what in chance.sample(sorted(CHANGES), len(CHANGES)):
        pattern, into = CHANGES[what]
        found = list(re.finditer(pattern, text))
        if not found:
            continue
        one = chance.choice(found)
        new = text[: one.start()] + one.expand(into) + text[one.end() :]
        try:
            ast.parse(new)
        except (SyntaxError, ValueError):
            if what != "broken":
                continue
        return what, new
    return "nothing", text


def project(root: Path) -> Project:
    files = sorted(p.relative_to(root).as_posix() for p in root.rglob("*.py"))
    homes = {p.parent for p in root.rglob("__init__.py")}
    roots = {""} | {p.parent.relative_to(root).as_posix().strip(".") for p in homes if p.parent not in homes}
    return Project(root, tuple(files), tuple(sorted(roots)))


Answer = tuple[list[str], float, int]


def answer(root: Path, cache: Path | None) -> Answer:
    begun = time.process_time()
    found = analyse(project(root), jobs=1, cache=cache)
    return [repr(one) for one in found.findings], time.process_time() - begun, len(found.looked_at)


def elsewhere(work: Callable[[], Answer]) -> Answer:
    """The answer of a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(work(), pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    result: Answer = pickle.loads(data)  # sent by our own child
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    all_rules()
    with tempfile.TemporaryDirectory() as work:
        root, cache = Path(work) / "tree", Path(work) / "cache"
        shutil.copytree(options.folder, root, ignore=lambda d, names: [n for n in names if not _is_wanted(Path(d) / n)])
        elsewhere(lambda: answer(root, cache))
        for number in range(options.rounds):
            done: list[str] = []
            for _ in range(chance.choice([1, 1, 1, 2, 4])):
                file = chance.choice(sorted(root.rglob("*.py")))
                what, text = changed(file.read_text(encoding="utf-8", errors="replace"), chance)
                file.write_text(text, encoding="utf-8")
                done.append(f"{file.relative_to(root)}: {what}")
            if chance.random() < 0.03:
                file = chance.choice(sorted(root.rglob("*.py")))
                file.unlink()
                done.append(f"{file.relative_to(root)}: gone")
            warm, cold = elsewhere(lambda: answer(root, cache)), elsewhere(lambda: answer(root, None))
            print(f"{number:4} {warm[1]:6.2f} s {cold[1]:6.2f} s {warm[2]:5} files  {'; '.join(done)}", flush=True)
            if warm[0] != cold[0]:
                for one in sorted(set(warm[0]) ^ set(cold[0])):
                    print("warm only:" if one in warm[0] else "cold only:", one)
                sys.exit("the warm answer is not the cold one")


def _is_wanted(path: Path) -> bool:
    return not path.name.startswith(".") and (path.suffix == ".py" or path.is_dir())


if __name__ == "__main__":
    main()
