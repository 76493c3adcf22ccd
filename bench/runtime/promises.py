"""What a promise costs: beside a run, through a channel, with many delivered rows, and with nobody listening.

python -m bench.runtime.promises [--quick]
"""

import argparse
import resource
import sqlite3
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from troth.runtime import Capability, Channel, Receipt, Runtime, bind
from troth.runtime.engine import Step
from troth.runtime.jobs.job_files import JobFiles
from troth.runtime.store import SqliteStore, commit_point

POINT = commit_point("bench.promises", "one row")


def nothing():
    return None


def short():
    yield Step("nothing", nothing)


class Sink(Channel):
    """Takes everything, counts it."""

    name = "sink"
    capability = Capability.PUSH

    def __init__(self) -> None:
        self.count = 0
        self.done = threading.Event()
        self.wanted = 0

    async def send(self, _: object) -> Receipt:
        """Count it."""
        self.count += 1
        if self.count >= self.wanted:
            self.done.set()
        return Receipt.done("x")


def runs(folder: Path, rounds: int) -> tuple[float, float, float]:
    """CPU of a bare one-row commit, of a run and of a promised run: a few at once, by turns; the lower quartiles.

    A round in which another program takes the caches, or in which the store folds its log into the file, says nothing
    of the difference between the two kinds of run, and there are many such rounds on a machine that is in use.
    """
    cpu: dict[str, list[float]] = {"bare": [], "run": [], "promise": []}
    with Runtime(folder / "runs.db", in_process=False) as runtime:
        runtime.register(short)
        assert runtime.outbox.counts().promised == 0  # which opens the outbox, in both cases
        for turn in range(rounds):
            kinds = ("run", "promise") if turn % 2 else ("promise", "run")  # whoever is first meets the colder caches
            for what, few in (("bare", 97), *((kind, 20) for kind in kinds)):
                begun = time.process_time()
                if what == "bare":
                    for number in range(few):
                        runtime.store.commit(POINT, lambda tx, number=number: tx.set_meta("k", number))
                else:
                    started = [
                        runtime.promises.start(short).promise.id
                        if what == "promise"
                        else runtime.engine.start(short).id
                        for _ in range(few)
                    ]
                    for run in started:
                        runtime.engine.result(run, 60)
                cpu[what].append((time.process_time() - begun) / few)
    bare, run, promise = (statistics.quantiles(cpu[what], n=4)[0] for what in ("bare", "run", "promise"))
    return bare, run, promise


class Spent(NamedTuple):
    """Seconds, by the clock or of CPU: a bare `Popen`, one in a session of its own, and `jobs.start`."""

    popen: float
    own_session: float
    start: float

    def tell(self, what: str) -> None:
        """Print the three beside one another."""
        print(f"subprocess.Popen, {what:<12} {self.popen * 1e6:8.1f} µs")
        print(f"  in its own session           {self.own_session * 1e6:8.1f} µs: {self.own_session / self.popen:.1f} ×")
        print(f"jobs.start, {what:<12}       {self.start * 1e6:8.1f} µs: {self.start / self.popen:.1f} ×")


def jobs(folder: Path, rounds: int) -> tuple[Spent, Spent, Spent]:
    """What it takes to start a command, by the clock and in CPU; by turns, so that all meet the same machine.

    Both ends of `jobs.start` have to be scheduled: on a machine that is in use, the median by the clock measures that
    above all, and the tenth part that was quickest says more of a quiet one. The answer is both of them, and the median
    of CPU. That is of all processes: the caller's thread, the supervisor until it has answered, and the command itself,
    which is the same program each time.
    """
    clock: list[list[float]] = [[], [], []]
    cpu: list[list[float]] = [[], [], []]
    with Runtime(folder / "jobs.db", in_process=False) as runtime, (folder / "output").open("wb") as output:
        runtime.jobs.wait(runtime.jobs.start(["true"]).promise.id, 60)
        supervisor = JobFiles(next((folder / "jobs.db.jobs").glob("j-*"))).process().supervisor
        own_session = {"start_new_session": True, "stdout": output, "stderr": output, "cwd": folder}
        for _ in range(rounds):
            command = 0.0
            for number, options in enumerate(({}, own_session)):
                time.sleep(0.005)  # as before the job: what the processor had at hand is gone for all of them
                begun, thread, children = time.perf_counter(), time.thread_time(), _of_children()
                process = subprocess.Popen(["true"], **options)
                clock[number].append(time.perf_counter() - begun)
                process.wait()
                command = _of_children() - children
                cpu[number].append(time.thread_time() - thread + command)
            time.sleep(0.005)  # for the supervisor to have done what it does in its own time
            before = _of_process(supervisor)
            begun, thread = time.perf_counter(), time.thread_time()
            job = runtime.jobs.start(["true"]).promise.id
            clock[2].append(time.perf_counter() - begun)
            cpu[2].append(time.thread_time() - thread + _of_process(supervisor) - before + command)
            runtime.jobs.wait(job, 60)
    quickest = (statistics.quantiles(times, n=10)[0] for times in clock)
    return Spent(*map(statistics.median, clock)), Spent(*quickest), Spent(*map(statistics.median, cpu))


def _of_children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _of_process(pid: int) -> float:
    """CPU of a process so far, in seconds; `/proc/PID/stat` would count in hundredths of one."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def fill(path: Path, rows: int) -> None:
    """Delivered rows, written as they would stand in the file after a long time."""
    SqliteStore(path).close()
    now = time.time()
    with sqlite3.connect(path) as connection:
        connection.executemany(
            "INSERT INTO promises (id, session, work, title, created_at) VALUES (?, 's', 'run', 'old', ?)",
            ((f"old-{n}", now) for n in range(rows)),
        )
        connection.executemany(
            "INSERT INTO deliveries (state, session, promise, kind, seq, created_at, updated_at, outcome, channel, "
            "finished_at) VALUES ('delivered', 's', ?, 'done', 1, ?, ?, 'done', 'sink', ?)",
            ((n + 1, now, now, now) for n in range(rows)),
        )
    connection.close()


def store_many(runtime: Runtime, count: int) -> None:
    """Settled promises that are stored, without the runs that would take the time."""
    from troth.runtime.store.promise_records import NewPromise, PromiseState

    def work(tx):
        now = time.time()
        for number in range(count):
            tx.promises.add(NewPromise(f"p-{number}", "bench", "bench", f"{number}", "t", None, None, None, now))
            tx.promises.settle("bench", f"{number}", PromiseState.DONE, now, result="1")

    runtime.store.commit(POINT, work)


def deliveries(folder: Path, count: int, old: int) -> float:
    path = folder / f"deliveries-{old}.db"
    if old:
        fill(path, old)
    with Runtime(path, in_process=False) as runtime:
        store_many(runtime, count)
        sink = Sink()
        sink.wanted = count
        runtime.open_channel(sink)
        begun = time.perf_counter()
        with bind("bench", sink):
            sink.done.wait(120)
        return count / (time.perf_counter() - begun)


def idle(folder: Path, count: int, seconds: float) -> float:
    with Runtime(folder / "idle.db", in_process=False) as runtime:
        store_many(runtime, count)
        assert runtime.outbox.counts().stored == count  # which opens the outbox: its sweep runs from here on
        time.sleep(1)
        begun = time.process_time()
        time.sleep(seconds)
        return (time.process_time() - begun) / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rounds, count, old, seconds = (100, 2000, 10_000, 3.0) if quick else (400, 10_000, 100_000, 20.0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bare, plain, promised = runs(folder, rounds)
        by_clock, quickest, by_cpu = jobs(folder, 30 if quick else 300)
        print(f"a bare one-row commit          {bare * 1e6:8.1f} µs of CPU")
        print(f"a run                          {plain * 1e6:8.1f} µs")
        print(f"a promised run                 {promised * 1e6:8.1f} µs: {(promised - plain) / bare:.1f} commits more")
        by_clock.tell("by the clock")
        quickest.tell("quickest")
        by_cpu.tell("CPU")
        print(f"deliveries                     {deliveries(folder, count, 0):8.0f} per second")
        print(f"with {old:,} delivered rows    {deliveries(folder, count, old):8.0f} per second")
        print(f"10,000 stored, nobody listens  {idle(folder, 10_000, seconds) * 100:8.2f} % of a core")


if __name__ == "__main__":
    main()
