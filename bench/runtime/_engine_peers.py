"""The peers of the engine's measurements: each a program of its own, run by an interpreter that has it installed.

DBOS is a singleton, replaces the process's sqlite3 where that is too old for it, and needs other versions of some
packages than the tools do; so peers may live in an environment of their own:

    python -m venv .venv-peers && .venv-peers/bin/pip install --group bench-engines
    python -m bench.runtime.engine --peers .venv-peers/bin/python
"""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

__all__ = ["PEERS", "measure"]

_MEASURE = """
    import gc, json, os, sys, time, warnings
    warnings.simplefilter("ignore")
    folder, steps, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    def report(version, work):
        best = [0.0, float("inf")]
        for _ in range(rounds):
            gc.collect()
            wall, cpu = time.perf_counter(), time.process_time()
            work()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            best = [max(best[0], steps / wall), min(best[1], cpu / steps * 1e6)]
        print("RESULT", json.dumps([version, *best]), flush=True)
        os._exit(0)
    from importlib.metadata import version
"""

_LANGGRAPH = """
    from typing import TypedDict
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph
    class State(TypedDict):
        value: int
    graph = StateGraph(State)
    graph.add_node("add", lambda state: {"value": state["value"] + 1})
    graph.add_edge(START, "add")
    graph.add_conditional_edges("add", lambda state: "add" if state["value"] < steps else END)
    done = [0]
    with SqliteSaver.from_conn_string(folder + "/langgraph.db") as saver:
        saver.conn.execute("PRAGMA journal_mode = WAL")
        saver.conn.execute("PRAGMA synchronous = NORMAL")
        app = graph.compile(checkpointer=saver)
        def work():
            done[0] += 1
            settings = {"configurable": {"thread_id": str(done[0])}, "recursion_limit": steps + 5}
            app.invoke({"value": 0}, settings, durability="sync")
        report(version("langgraph"), work)
"""

_DBOS = """
    try:
        import pysqlite3; sys.modules["sqlite3"] = pysqlite3
    except ImportError:
        pass
    import logging
    from dbos import DBOS
    logging.disable(logging.CRITICAL)
    DBOS(config={"name": "bench", "system_database_url": "sqlite:///" + folder + "/dbos.db"})
    @DBOS.step()
    def add(x): return x + 1
    @DBOS.workflow()
    def count(steps):
        value = 0
        for _ in range(steps): value = add(value)
        return value
    DBOS.launch()
    report(version("dbos"), lambda: count(steps))
"""

PEERS = {"langgraph, sqlite checkpoints, WAL": _LANGGRAPH, "dbos on sqlite, as shipped": _DBOS}


def measure(python: str, name: str, folder: Path, steps: int, rounds: int) -> tuple[str, float, float] | str:
    """Version, steps per second and CPU µs per step of one peer; or, in words, why not."""
    program = textwrap.dedent(_MEASURE) + textwrap.dedent(PEERS[name])
    command = [python, "-c", program, str(folder), str(steps), str(rounds)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"did not run: {error}"
    for line in done.stdout.splitlines():
        if line.startswith("RESULT"):
            version, rate, cpu = json.loads(line.removeprefix("RESULT"))
            return version, rate, cpu
    last = (done.stderr or done.stdout or "it said nothing").strip().splitlines()[-1]
    return "not installed" if "ModuleNotFoundError" in last else f"did not run: {last}"


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as somewhere:
        for peer in PEERS:
            print(peer, measure(sys.argv[1], peer, Path(somewhere), 100, 2))
