"""What the lists behind the pages cost in a large store, and what a page of them weighs on the wire.

    python -m bench.server.pages            100,000 runs, about a minute, and then open pages, three minutes
    python -m bench.server.pages --quick    10,000 runs

list     a page of the store's own list of runs beside its bare query: the same filter, columns, order and rows
page     the page `/runs` of a server, made and packed, and its bytes on the wire
counts   how many runs are in each state, beside counting the rows
changes  the stream of everything: what one look behind a cursor costs, and what a store pays for it with each run
open     what open pages cost: a run of 5,000 steps in Chromium, an idle page, 50 readers of *Now* (`open_pages.py`)

CPU of the best of several rounds, not wall time: the machine may be busy. Nothing here asserts.
"""

import argparse
import asyncio
import contextlib
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx
from bench.runtime.listing import fill
from bench.server import open_pages

from troth.runtime import Runtime
from troth.runtime.engine import EmbeddedEngine, Step
from troth.runtime.store import SqliteStore
from troth.server import Server

ROUNDS = 30
BARE = (
    "SELECT id, coalesce(ending, state), decision, label, created_at, updated_at, finished_at, waiting_for, wake_at, "
    "error, parent, forked_from, cancel_requested FROM runs {where} ORDER BY created_at DESC, id DESC LIMIT 51"
)
WORD = "coalesce(ending, state)"
FAMILY = "instr(decision, ':') > 0 AND substr(decision, 1, instr(decision, ':')) = 'workflow:'"
ROLLED_BACK = f"WHERE {FAMILY} AND {WORD} = 'rolled back'"
WAITING = f"WHERE label = 'bench' AND {WORD} = 'waiting'"


def best(work: Callable[[], object]) -> float:
    """Milliseconds of CPU of the best round."""
    least = float("inf")
    for _ in range(ROUNDS):
        cpu = time.process_time()
        work()
        least = min(least, time.process_time() - cpu)
    return least * 1000


def show(name: str, cost: float, more: str = "") -> None:
    print(f"  {name:<54} {cost:9.3f} ms  {more}".rstrip())


def lists(runtime: Runtime, connection: sqlite3.Connection) -> float:
    """The store's own lists, beside the bare query."""
    print("a page of 50 runs, CPU")

    def bare_of(where: str) -> float:
        return best(lambda: connection.execute(BARE.format(where=where)).fetchall())

    bare = bare_of("")
    show("the bare query", bare)
    every = runtime.lists.runs(limit=50)
    deep = every
    for _ in range(100):
        deep = runtime.lists.runs(cursor=deep.next, limit=50)
    asks: dict[str, tuple[str, Callable[[], object]]] = {  # with the bare query of the same filter, where it has one
        "runs": ("", lambda: runtime.lists.runs(limit=50)),
        "runs, the 101st page": ("", lambda: runtime.lists.runs(cursor=deep.next, limit=50)),
        "runs that were rolled back": (ROLLED_BACK, lambda: runtime.lists.runs(state="rolled back", limit=50)),
        "runs of a workflow that wait": (
            WAITING,
            lambda: runtime.lists.runs(workflow="bench", state="waiting", limit=50),
        ),
        "text that is in the newest": ("", lambda: runtime.lists.runs(text="bench-", limit=50)),
        "text that is nowhere (5,000 runs are looked at)": ("", lambda: runtime.lists.runs(text="nowhere", limit=50)),
        "search for a part of an id": ("", lambda: runtime.lists.search("bench-00", limit=50)),
    }
    for name, (where, ask) in asks.items():
        cost, own = best(ask), bare_of(where) if where else bare
        show(name, cost, f"{cost / own:5.1f} x bare" + (f", which takes {own:.3f} ms" if where else ""))
    return bare


def counts(runtime: Runtime, connection: sqlite3.Connection) -> None:
    """Counts that are kept, beside counting."""
    print("counts by state, CPU")
    counted = "SELECT coalesce(ending, state), count(*) FROM runs GROUP BY 1"
    show("counting the rows", best(lambda: connection.execute(counted).fetchall()))
    show("runtime.lists.counts", best(runtime.lists.counts), str(dict(runtime.lists.counts().runs)))


def changes(runtime: Runtime) -> None:
    """The stream of everything."""
    print("the stream of everything, CPU")
    last = runtime.lists.changes(limit=1).last
    show("a look that finds nothing", best(lambda: runtime.lists.changes(after=last)))
    show("a look that finds 100 changes", best(lambda: runtime.lists.changes(after=last - 100)))


def add(x: int) -> int:
    return x + 1


def one_step():
    return (yield Step("add", add, 1))


def writing(folder: Path) -> None:
    """What a run pays for counts and changes: with the triggers that write them, and without."""
    print("a run of one step, CPU")
    engines = {}
    for name in ("without", "with"):
        path = folder / f"{name}.db"
        SqliteStore(path).close()
        if name == "without":
            with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
                for (trigger,) in connection.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'trigger'"
                ).fetchall():
                    connection.execute(f"DROP TRIGGER {trigger}")
        engines[name] = EmbeddedEngine(path)
    costs = dict.fromkeys(engines, float("inf"))
    for _ in range(ROUNDS):  # turn by turn, so that a slow moment of the machine hits both
        for name, engine in engines.items():
            cpu = time.process_time()
            for _ in range(100):
                engine.run(one_step)
            costs[name] = min(costs[name], (time.process_time() - cpu) * 10)
    for name, engine in engines.items():
        engine.close()
        show(f"{name} counts and changes", costs[name], f"{costs[name] / costs['without']:5.2f} x")


async def served(runtime: Runtime, bare: float) -> None:
    """The page itself, over ASGI: no socket, no browser."""
    server = Server(runtime, keys=False)
    await server.context.start()
    transport = httpx.ASGITransport(app=server.app, client=("127.0.0.1", 1))
    headers = {"Accept-Encoding": "gzip", "Host": "127.0.0.1:8700"}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8700", headers=headers) as client:
        least, size, status = float("inf"), 0, 0
        for number in range(ROUNDS):
            cpu = time.process_time()
            async with client.stream("GET", f"/runs?round={number}") as answer:
                raw = [chunk async for chunk in answer.aiter_raw()]
            least = min(least, time.process_time() - cpu)
            size, status = sum(map(len, raw)), answer.status_code
    await server.context.stop()
    print("the page /runs, CPU")
    show(
        "made and packed, over ASGI",
        least * 1000,
        f"{least * 1000 / bare:5.1f} x bare, {size:,} bytes, status {status}",
    )


def main(argv: list[str]) -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args(argv).quick
    count = 10_000 if quick else 100_000
    with tempfile.TemporaryDirectory() as folder:
        with Runtime(Path(folder, "runs.db"), recover=False) as runtime:
            fill(runtime, count)
            print(f"{count:,} runs in the store")
            with contextlib.closing(sqlite3.connect(runtime.store.path)) as connection:
                bare = lists(runtime, connection)
                counts(runtime, connection)
            changes(runtime)
            asyncio.run(served(runtime, bare))
        writing(Path(folder))
    open_pages.measure(quick=quick)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
