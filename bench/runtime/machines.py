"""What runs cost where several machines share a store: one table of ratios, each beside its bar.

    python -m bench.runtime.machines [--only PART …] [--steps 1000] [--no-fsync] [--peers .venv-peers/bin/python]

The floor is one fenced statement for each step: an INSERT that proves a lease, committed by itself over one connection.
Beside it stand the engine on a file and on PostgreSQL, one run after the other and fifty at once; DBOS on the same
server, where `--peers` names an interpreter that has it; and on Temporal a workflow of the same activities that is
written by hand. CPU is that of the client, and of the server's processes beside it; all are measured in turn, and
the best round counts. Ratios hold on a busy machine, seconds do not. The server keeps each commit on the disk, as a
real one does; without that (`--no-fsync`) a bare statement costs a quarter of the CPU, and so more stands beside it.
"""

import argparse
import asyncio
import gc
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psycopg
from bench.runtime.agents import ADD, TURNS, script

from troth.runtime.agents.tool_calling import ToolCallingAgent
from troth.runtime.conversations import Conversations
from troth.runtime.engine import EmbeddedEngine, Step, Wait
from troth.runtime.store.postgres.address import parse
from troth.testing.postgres_server import PostgresServer
from troth.testing.temporal_server import TemporalServer

FENCED = (
    "INSERT INTO bare (run, seq, name, data) SELECT %s, %s, %s, %s FROM bare_leases WHERE run = %s AND token = %s "
    "RETURNING seq"
)
WORKER = """
import sys, time
from troth.runtime.engine import EmbeddedEngine, Step
from troth.runtime.store import identity
identity._machine = lambda: "another machine"
def wait():
    print("in the step", flush=True)
    time.sleep(600)
def stuck():
    yield Step("wait", wait)
EmbeddedEngine(sys.argv[1]).run(stuck, run_id=sys.argv[2])
"""
FLEET = """
import asyncio, sys, time
from bench.runtime.machines import count
from troth.runtime.engine import EmbeddedEngine
async def main():
    async with EmbeddedEngine(sys.argv[1]) as engine:
        await engine.arun(count, 5)
        print("ready", flush=True)
        sys.stdin.readline()
        before = time.process_time()
        await asyncio.gather(*(engine.arun(count, int(sys.argv[2])) for _ in range(10)))
        print(time.process_time() - before, flush=True)
        sys.stdin.readline()
asyncio.run(main())
"""
DBOS = """
import os, sys, time, warnings
warnings.simplefilter("ignore")
from dbos import DBOS
DBOS(config={"name": "bench", "system_database_url": sys.argv[1], "log_level": "ERROR", "run_admin_server": False})
@DBOS.step()
def add(number):
    return number + 1
@DBOS.workflow()
def count(steps):
    number = 0
    for _ in range(steps):
        number = add(number)
    return number
DBOS.launch()
count(5)
print("ready", flush=True)
sys.stdin.readline()
before = time.process_time()
assert count(int(sys.argv[2])) == int(sys.argv[2])
print(time.process_time() - before, flush=True)
sys.stdin.readline()
os._exit(0)
"""
_TICKS = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """Seconds of the client's CPU, of the server's, and by the clock."""

    client: float
    server: float
    wall: float


def add(number: int) -> int:
    return number + 1


def count(steps: int):
    number = 0
    for _ in range(steps):
        number = yield Step("add", add, number)
    return number


def waiting():
    return (yield Wait("go"))


def cpu_below(pid: int) -> float:
    """Seconds of CPU of a process and of those it has started and that are over, or are there; Linux only."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    own = sum(int(field) for field in fields[11:15]) / _TICKS
    children = [int(word) for path in Path(f"/proc/{pid}/task").glob("*/children") for word in path.read_text().split()]
    return own + sum(cpu_below(child) for child in children)


def measured(server: PostgresServer, work: Callable[[], object]) -> Cost:
    gc.collect()
    there, cpu, wall = cpu_below(server.pid), time.process_time(), time.perf_counter()
    work()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Cost(cpu, cpu_below(server.pid) - there, wall)


def bare(server: PostgresServer, steps: int) -> Cost:
    """One fenced statement for each step."""
    with psycopg.connect(parse(server.address()).conninfo, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS bare, bare_leases")
        connection.execute("CREATE TABLE bare (run text, seq bigint, name text, data text, PRIMARY KEY (run, seq))")
        connection.execute("CREATE TABLE bare_leases (run text PRIMARY KEY, token text)")
        connection.execute("INSERT INTO bare_leases VALUES ('r', 't')")

        def work() -> None:
            for number in range(steps):
                connection.execute(FENCED, ("r", number, "add", str(number), "r", "t")).fetchone()

        return measured(server, work)


def one_by_one(server: PostgresServer, store: str, steps: int) -> Cost:
    with EmbeddedEngine(store) as engine:
        engine.run(count, 10)
        return measured(server, lambda: engine.run(count, steps))


def at_once(server: PostgresServer, store: str, steps: int, runs: int = 50) -> Cost:
    async def main() -> Cost:
        async with EmbeddedEngine(store) as engine:
            await engine.arun(count, 10)
            gc.collect()
            there, cpu, wall = cpu_below(server.pid), time.process_time(), time.perf_counter()
            await asyncio.gather(*(engine.arun(count, steps // runs) for _ in range(runs)))
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            return Cost(cpu, cpu_below(server.pid) - there, wall)

    return asyncio.run(main())


def programs(server: PostgresServer, python: str, program: str, *arguments: str, number: int = 1) -> Cost:
    """Processes that begin at the same time; the client's CPU is that of all of them."""
    command = [python, "-c", textwrap.dedent(program), *arguments]
    fleet = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(number)
    ]

    def line(process: "subprocess.Popen[str]") -> str:
        assert process.stdout is not None
        return process.stdout.readline().strip()

    def go(process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()

    try:
        for process in fleet:
            while (words := line(process)) != "ready":
                assert process.poll() is None or words, "it ended before it began"
        there, wall = cpu_below(server.pid), time.perf_counter()
        for process in fleet:
            go(process)
        client = sum(float(line(process)) for process in fleet)
        return Cost(client, cpu_below(server.pid) - there, time.perf_counter() - wall)
    finally:
        for process in fleet:
            process.kill()
            process.wait()


def takeover(address: str, run_id: str) -> float:
    """Seconds from the death of a worker on another machine to the next effect."""
    done: list[float] = []

    def wait() -> None:
        done.append(time.monotonic())

    def stuck():
        yield Step("wait", wait)

    command = [sys.executable, "-c", WORKER, address, run_id]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with EmbeddedEngine(address) as engine:
            engine.register(stuck, "stuck")
            died = time.monotonic()
            os.kill(process.pid, signal.SIGKILL)
            engine.result(run_id, 60)
    return done[0] - died


def turns(address: str, many: int = 20) -> float:
    """Milliseconds of the client's CPU for each turn of an agent, nine tool calls and an answer to a talk."""
    best = float("inf")
    with Conversations(address) as home:
        for _ in range(5):
            gc.collect()
            cpu = time.process_time()
            for _ in range(many):
                conversation = home.open(ToolCallingAgent(script(), [ADD]))
                conversation.send("add")
                conversation.run()
            best = min(best, time.process_time() - cpu)
    return best / (many * TURNS) * 1e3


def long_run(address: str, steps: int) -> tuple[float, float]:
    """CPU of a step in the first and in the last tenth of one run, in µs."""
    marks: list[float] = []

    def mark(number: int) -> int:
        marks.append(time.process_time())
        return number

    def counting():
        for number in range(steps):
            yield Step("add", mark, number)

    with EmbeddedEngine(address) as engine:
        engine.run(counting)
    tenth = steps // 10
    return (marks[tenth] - marks[0]) / tenth * 1e6, (marks[-1] - marks[-tenth]) / tenth * 1e6


def idle(server: PostgresServer, runs: int, seconds: float = 10.0) -> tuple[float, float]:
    """Share of a core that an engine needs with so many runs that wait, and the server for it, in percent."""

    async def main() -> tuple[float, float]:
        async with EmbeddedEngine(server.address()) as engine:
            for begin in range(0, runs, 500):
                many = range(begin, min(begin + 500, runs))
                await asyncio.gather(*(engine.astart(waiting, run_id=f"w{number}") for number in many))
            while len(await engine.alist(states=["waiting"], limit=runs)) < runs:
                await asyncio.sleep(0.5)
            await asyncio.sleep(2.0)
            there, cpu = cpu_below(server.pid), time.process_time()
            await asyncio.sleep(seconds)
            cpu, there = time.process_time() - cpu, cpu_below(server.pid) - there
            return cpu / seconds * 100, there / seconds * 100

    return asyncio.run(main())


def on_temporal(database: PostgresServer, kills: int) -> list[tuple[str, str, str]]:
    """The rows of Temporal: CPU beside a hand-written workflow, and takeover."""
    if TemporalServer.missing() is not None:
        return [("Temporal", f"not measured: {TemporalServer.missing()}", "")]
    from bench.runtime import temporal

    with TemporalServer() as server:
        hand, ours = 9e9, 9e9
        for _ in range(3):
            hand = min(hand, sum(asyncio.run(temporal._bare(server, 100))))
            ours = min(ours, sum(temporal._ours(server, database, 100)))
        rows = [("Temporal, CPU of a step with its server's: × a workflow by hand", f"{ours / hand:.2f}", "≤ 1.3")]
        if kills:
            spans = sorted(temporal._takeover(server, database) for _ in range(kills))
            rows.append((f"Temporal, next effect after a kill, p95 of {kills}, s", f"{p95(spans):.1f}", "≤ 3"))
    return rows


def p95(spans: list[float]) -> float:
    return spans[math.ceil(len(spans) * 0.95) - 1]  # of less than twenty, the longest


def costs(server: PostgresServer, options: argparse.Namespace, folder: str) -> dict[str, Cost]:
    """Each way to make the same steps, measured in turn; the round with the least CPU of the client."""
    steps = options.steps
    ways: dict[str, Callable[[int], Cost]] = {
        "bare fenced statement": lambda _: bare(server, steps),
        "file, one run": lambda number: one_by_one(server, str(Path(folder) / f"a{number}.db"), steps),
        "file, 50 runs at once": lambda number: at_once(server, str(Path(folder) / f"b{number}.db"), steps),
        "PostgreSQL, one run": lambda _: one_by_one(server, server.address(), steps),
        "PostgreSQL, 50 runs at once": lambda _: at_once(server, server.address(), steps),
    }
    best: dict[str, Cost] = {}
    for number in range(options.rounds):
        for name, way in ways.items():
            cost = way(number)
            best[name] = min(best.get(name, cost), cost)
    if options.peers:
        with psycopg.connect(parse(server.address()).conninfo, autocommit=True) as connection:
            connection.execute("CREATE DATABASE dbos")
        address = f"postgresql://troth@/dbos?host={server.folder}"
        rounds = [programs(server, options.peers, DBOS, address, str(steps)) for _ in range(options.rounds)]
        best["DBOS on PostgreSQL, one run"] = min(rounds)
    return best


Row = tuple[str, str, str]


def of_steps(server: PostgresServer, options: argparse.Namespace) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        best = costs(server, options, folder)
    floor, steps = best["bare fenced statement"], options.steps
    heads = f"{'µs CPU a step: client':>22} {'server':>7} {'client × bare':>14} {'both × bare':>12} {'steps/s':>8}"
    print(f"{'':<28} {heads}")
    for name, cost in best.items():
        both = (cost.client + cost.server) / (floor.client + floor.server)
        client, there = cost.client / steps * 1e6, cost.server / steps * 1e6
        print(f"{name:<28} {client:>22.0f} {there:>7.0f} {cost.client / floor.client:>14.2f} {both:>12.2f}", end="")
        print(f" {steps / cost.wall:>8.0f}")
    rows = [
        (f"{name}: client's CPU of a step × bare", f"{best[name].client / floor.client:.2f}", "≤ 3")
        for name in ("PostgreSQL, one run", "PostgreSQL, 50 runs at once")
    ]
    if options.peers:
        ours, peer = best["PostgreSQL, one run"], best["DBOS on PostgreSQL, one run"]
        rows.append(("DBOS: client's CPU of a step × ours", f"{peer.client / ours.client:.1f}", "≥ 10"))
        both = (peer.client + peer.server) / (ours.client + ours.server)
        rows.append(("DBOS: CPU of a step with the server's × ours", f"{both:.1f}", ""))
    return rows


def of_workers(server: PostgresServer, _: argparse.Namespace) -> list[Row]:
    fleets = {number: fleet(server, number) for number in (1, 4, 16)}
    return [
        (f"{number} workers, 10 runs each: steps/s; client's µs", f"{rate:.0f}; {each:.0f}", "")
        for number, (rate, each) in fleets.items()
    ]


def of_turns(server: PostgresServer, _: argparse.Namespace) -> list[Row]:
    return [("an agent's turn: client's CPU, ms", f"{turns(server.address()):.2f}", "≤ 1")]


def of_takeovers(server: PostgresServer, options: argparse.Namespace) -> list[Row]:
    address, many = server.address(), options.takeovers
    spans = sorted(takeover(address, f"r{number}") for number in range(many))
    print(f"next effect after a kill, s: {' '.join(f'{span:.2f}' for span in spans)}")
    return [(f"next effect after a kill, p95 of {many}, s", f"{p95(spans):.1f}", "≤ 5")] if spans else []


def of_long_run(server: PostgresServer, options: argparse.Namespace) -> list[Row]:
    if not options.long:
        return []
    begin = time.perf_counter()
    first, last = long_run(server.address(), options.long)
    print(f"{options.long:,} steps: {first:.0f} µs a step in the first tenth, {last:.0f} in the last", end="; ")
    print(f"{options.long / (time.perf_counter() - begin):.0f} steps/s")
    return [(f"{options.long:,} steps: CPU of the last tenth × the first", f"{last / first:.2f}", "1")]


def of_waiting(server: PostgresServer, options: argparse.Namespace) -> list[Row]:
    if not options.waiting:
        return []
    here, there = idle(server, options.waiting)
    return [
        (f"{options.waiting:,} runs wait: a worker's core, %", f"{here:.2f}", "< 1"),
        (f"{options.waiting:,} runs wait: the server's core, %", f"{there:.2f}", ""),
    ]


PARTS: dict[str, Callable[[PostgresServer, argparse.Namespace], list[Row]]] = {
    "steps": of_steps,
    "workers": of_workers,
    "turns": of_turns,
    "takeovers": of_takeovers,
    "long": of_long_run,
    "waiting": of_waiting,
    "temporal": lambda server, options: on_temporal(server, options.takeovers),
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts of the table; all of them else")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--takeovers", type=int, default=5)
    parser.add_argument("--long", type=int, default=20_000, help="steps of one long run; 100000 is the whole measure")
    parser.add_argument("--waiting", type=int, default=10_000, help="runs that wait")
    parser.add_argument("--peers", help="an interpreter that has DBOS")
    parser.add_argument("--no-fsync", action="store_true", help="no commit waits for the disk, unlike a real server's")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    with PostgresServer(fsync="off" if options.no_fsync else "on") as server:
        for name, part in PARTS.items():
            if name in options.only:
                rows += part(server, options)
    print(f"\n{'':<68} {'measured':>12} {'to reach':>9}")
    for name, value, bar in rows:
        print(f"{name:<68} {value:>12} {bar:>9}")
    settings = {"fsync": not options.no_fsync, "steps": options.steps}
    print(f"\nLoad average: {os.getloadavg()[0]:.1f}; " + json.dumps(settings))


def fleet(server: PostgresServer, number: int, steps: int = 100) -> tuple[float, float]:
    """Steps a second of so many workers together, and µs of CPU of each step."""
    cost = programs(server, sys.executable, FLEET, server.address(), str(steps), number=number)
    many = number * 10 * steps
    return many / cost.wall, cost.client / many * 1e6


if __name__ == "__main__":
    main()
