"""Start-up of the command line, beside a bare interpreter: `python -m bench.start`."""

import statistics
import subprocess
import sys
import time

ROWS = {
    "python -c pass": ["-c", "pass"],
    "python -c 'import argparse'": ["-c", "import argparse"],
    "troth --version": ["-m", "troth", "--version"],
    "troth --help": ["-m", "troth", "--help"],
    "import troth": ["-c", "import troth"],
}


def seconds(args: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *args], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    rounds = 15
    taken: dict[str, list[float]] = {name: [] for name in ROWS}
    for _ in range(rounds):  # in turn, so that a busy moment of the machine touches every row
        for name, args in ROWS.items():
            taken[name].append(seconds(args))
    floor = statistics.median(taken["python -c pass"])
    print(f"{'':<30}{'median ms':>10}{'best ms':>10}{'× bare':>9}")
    for name, times in taken.items():
        middle = statistics.median(times)
        print(f"{name:<30}{middle * 1000:>10.1f}{min(times) * 1000:>10.1f}{middle / floor:>9.2f}")


if __name__ == "__main__":
    main()
