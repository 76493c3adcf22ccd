"""The cost of crossing colors, beside peers and floors: `python -m bench.bridge`.

Each peer runs in a process of its own, because some of them change asyncio for everybody; each process measures the
floors too, in turn with the peer, and the ratios are to those.
"""

import json
import subprocess
import sys

from bench.bridge import leak
from bench.bridge.peers import PEERS

BARS = [
    ("bridge.run", "outside", "reused", 1.3),
    ("bridge.run", "inside", "reused", 1.7),
    ("bridge.Portal", "outside", "hand_off", 3.5),
]


def measured(name: str) -> dict[str, float | None]:
    command = [sys.executable, "-m", "bench.bridge.measure", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        return {"failed": None}
    found: dict[str, float | None] = json.loads(done.stdout.splitlines()[-1])
    return found


def cell(value: float | None, form: str = "{:.1f}") -> str:
    return "-" if value is None else form.format(value)


def over(found: dict[str, float | None], part: str, floor: str) -> float | None:
    value, below = found[part], found[floor]
    return None if value is None or below is None else value / below


def main() -> None:
    print(f"µs a call, Python {sys.version.split()[0]}; × to the floors of the same process, measured in turn with it")
    print("floors: `run_until_complete` on a reused loop, a hand-off between two threads through two locks\n")
    head = ["outside", "× reused", "inside", "× reused", "× hand-off", "calls/s", "8 threads"]
    print(f"{'':<24}" + "".join(f"{word:>12}" for word in head))
    results = {}
    for name in PEERS:
        found = measured(name)
        if "missing" in found or "failed" in found:
            print(f"{name:<24}  not measured: {found.get('missing') or 'it failed'}")
            continue
        results[name] = found
        row = [
            cell(found["outside"]),
            cell(over(found, "outside", "reused"), "{:.2f}"),
            cell(found["inside"]),
            cell(over(found, "inside", "reused"), "{:.2f}"),
            cell(over(found, "outside", "hand_off"), "{:.2f}"),
            cell(found["rate_1"], "{:,.0f}"),
            cell(found["rate_8"], "{:,.0f}"),
        ]
        print(f"{name:<24}" + "".join(f"{value:>12}" for value in row), flush=True)
    floors = results["bridge.run"]
    for floor, title in (("reused", "floor: reused loop"), ("hand_off", "floor: hand-off")):
        print(f"{title:<24}{cell(floors[floor]):>12}")
    print()
    for name, part, floor, bar in BARS:
        ratio = over(results[name], part, floor) or 0.0
        print(f"{name} {part}: {ratio:.2f} × {floor}, the bar is {bar}: {'reached' if ratio <= bar else 'MISSED'}")
    leak.main()


if __name__ == "__main__":
    main()
