"""How long `troth check --watch` takes to answer an edit: `python bench/check/watching.py TREE [--edits 12]`.

A copy of the tree is watched by a real process. In turn a call is planted in, and taken away from, each of several
files; the time from the end of the write to the answer that tells of it, and to the settled one, is printed beside the
time that only `ast.parse`-ing the tree takes on the same machine in the same minute.
"""

import argparse
import ast
import json
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLANTED = "\nasync def planted_by_the_bench(): ...\nasync def loses_it():\n    planted_by_the_bench()\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--edits", type=int, default=12)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "tree"
        shutil.copytree(options.tree, root, ignore=shutil.ignore_patterns(".troth_cache"))
        measure(root, options.edits)


def measure(root: Path, edits: int) -> None:
    texts = {path: path.read_bytes() for path in sorted(root.rglob("*.py"))}
    begun = time.process_time()
    usable = [path for path, text in texts.items() if parses(text)]
    floor = time.process_time() - begun
    lines = sum(text.count(b"\n") for text in texts.values())
    print(f"{lines:,} lines in {len(texts):,} files; ast.parse {floor:.2f} s CPU")
    command = [sys.executable, "-m", "troth", "check", "--watch", "--no-cache", "--output-format", "json"]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        first = json.loads(process.stdout.readline())
        print(f"first answer {first['seconds']:.2f} s")
        chosen = random.Random(7).sample([one for one in usable if len(texts[one]) > 2000], edits)
        told, settled, own = [], [], []
        for path in chosen:
            for text in (texts[path] + PLANTED.encode(), texts[path]):
                time.sleep(0.3)
                path.write_bytes(text)
                begun = time.perf_counter()
                answer = json.loads(process.stdout.readline())
                told.append(time.perf_counter() - begun)
                own.append(answer["seconds"])
                while not answer["settled"]:
                    answer = json.loads(process.stdout.readline())
                settled.append(time.perf_counter() - begun)
        show("edit to answer", told)
        show("  of it, the work itself", own)
        show("edit to settled answer", settled)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def parses(text: bytes) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def show(what: str, seconds: list[float]) -> None:
    middle, worst = statistics.median(seconds), max(seconds)
    print(f"{what:<26} median {middle * 1000:6.0f} ms   worst {worst * 1000:6.0f} ms   of {len(seconds)}")


if __name__ == "__main__":
    main()
