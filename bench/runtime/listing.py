"""What it costs to list runs by their state, among few and among many.

    python -m bench.runtime.listing            about ten seconds
    python -m bench.runtime.listing --quick    10,000 runs instead of 100,000

Every run has one step; one in fifty is rolled back, one in a hundred waits. `runs(state=…, limit=20)` is to cost the
same at 100 and at 100,000 runs. Each is the best of several rounds.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from troth.runtime import Runtime, Workflow, step
from troth.runtime.store import RunState, Transaction, commit_point
from troth.runtime.store.records import Place, StepState

POINT = commit_point("bench.listing", "runs for a list")
ROUNDS = 15


def add(x: int) -> int:
    return x + 1


def fill(runtime: Runtime, count: int) -> None:
    """Write `count` runs down, as an engine would have."""
    flow = runtime.load(Workflow("bench", step("a", function=add, inputs={"x": 1}, undo=lambda: None)))
    name = runtime.run(flow).id
    decision = runtime.store.run(name).decision

    def write(tx: Transaction, numbers: range) -> None:
        for number in numbers:
            run_id, now = f"bench-{number:06}", 1_000_000.0 + number
            tx.add_run(run_id, decision, f'["{run_id}", {{}}, ""]', now, label="bench")
            place = Place(run_id, "", 1)
            tx.begin_step(place, kind="step", name="a", key=f"{run_id}:1:a", args="[]", now=now)
            if number % 100 == 7:
                tx.set_run_state(run_id, RunState.WAITING, now, waiting_for="signal 'go'")
                continue
            tx.settle_step(place, StepState.DONE, now, kind="step", name="a", result="2")
            if number % 50 == 3:
                undo = Place(run_id, "", 2)
                tx.begin_step(undo, kind="step", name="undo a", key=f"{run_id}:2:undo a", args="[]", now=now)
                tx.settle_step(undo, StepState.DONE, now, kind="step", name="undo a", result="null")
                tx.finish_run(run_id, RunState.FAILED, now, error="{}", ending="rolled back")
            else:
                tx.finish_run(run_id, RunState.COMPLETED, now, result="2")

    for first in range(0, count, 1000):
        numbers = range(first, min(count, first + 1000))
        runtime.store.commit(POINT, lambda tx, numbers=numbers: write(tx, numbers))


def measured(runtime: Runtime, state: str | None) -> tuple[float, int]:
    """Milliseconds of CPU of the best round, and how many runs it gave."""
    best, found = float("inf"), 0
    for _ in range(ROUNDS):
        cpu = time.process_time()
        found = len(runtime.runs(state=state, limit=20))
        best = min(best, time.process_time() - cpu)
    return best * 1000, found


def main(argv: Sequence[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    many = 10_000 if parser.parse_args(argv).quick else 100_000
    counts = (100, many)
    results: dict[str | None, list[tuple[float, int]]] = {}
    for count in counts:
        with tempfile.TemporaryDirectory() as folder, Runtime(Path(folder, "runs.db"), recover=False) as runtime:
            fill(runtime, count)
            for state in (None, "completed", "rolled back", "waiting", "running", "failed"):
                results.setdefault(state, []).append(measured(runtime, state))
    print(f"{'runs(state=…, limit=20)':28}" + "".join(f"{f'{count:,} runs':>18}" for count in counts) + f"{'ratio':>9}")
    for state, (few, lots) in results.items():
        shown = [f"{cost:.2f} ms for {found:2}" for cost, found in (few, lots)]
        per_run = [cost / max(found, 1) for cost, found in (few, lots)]
        print(f"  {state or 'any':26}" + "".join(f"{text:>18}" for text in shown) + f"{per_run[1] / per_run[0]:9.2f}")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
