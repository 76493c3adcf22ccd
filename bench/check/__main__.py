"""What `troth check` sees and what it costs, on public trees: `python -m bench.check [TREE …] [--n 120]`.

For each tree (a source distribution, downloaded once by name): dropped awaits and needless async functions and methods,
planted by `troth mutate`, and how many of them are found on their line, by shape; then CPU, wall and memory beside only
`ast.parse`-ing the same files. What the peers see is measured in the same way by `python -m bench.mutate`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.mutate.trees import TREES

HERE = Path(__file__).resolve().parent


def planted(tree: Path, many: int, seed: int, operator: str) -> None:
    print(f" {operator}")
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.json"
        wish = ["--operator", operator, "--n", str(many), "--seed", str(seed), "--tool", "troth"]
        command = [sys.executable, "-m", "troth", "mutate", str(tree), *wish, "--json", str(record)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        mutants = json.loads(record.read_text(encoding="utf-8"))["mutants"]
    shapes: dict[str, list[str]] = {}
    for mutant in mutants:
        for shape in ("all", mutant["shape"]):
            shapes.setdefault(shape, []).append(mutant["verdict"])
    for shape, verdicts in shapes.items():
        here = sum(verdict == "caught" for verdict in verdicts)
        near = sum(verdict in ("caught", "elsewhere") for verdict in verdicts)
        of = len(verdicts)
        print(f"  {shape:<12}{here / of:>7.0%} on the line, {near / of:.0%} in the function, of {of}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", choices=[*TREES, []], help=", ".join(TREES))
    parser.add_argument("--n", type=int, default=120)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    for name in options.trees or TREES:
        tree = TREES[name].fetch()
        print(f"\n{name} {TREES[name].version}", flush=True)
        for operator in ("drop-await", "add-needless-async"):
            planted(tree, options.n, options.seed, operator)
        subprocess.run([sys.executable, HERE / "speed.py", tree], check=True)


if __name__ == "__main__":
    main()
