"""Plays one row of the behaviour table in this fresh process, and says what was seen and what was left running.

python stage.py --list          every row, as JSON
python stage.py FILE NAME       play one row
"""

import asyncio
import gc
import importlib
import json
import sys
import threading
import time
from pathlib import Path

ROWS = {}


def row(fact, *, sees=None, tells=(), signals=0, code=0, flags=(), left=(), tasks=0, limit=20, needs=()):
    """Declare a row.

    sees     what the function returns, or the name of the exception that leaves it
    tells    parts of what has to stand on stderr; with none, stderr has to be empty
    signals  how many times the test presses Ctrl-C after the row said that it is ready
    code     the exit code of the process
    left     names of the threads that may still live when the row is over
    tasks    how many tasks do: none, except where a task that does not end is the point (None: not asked)
    """

    def declare(function):
        ROWS[function.__name__] = {
            "file": Path(function.__code__.co_filename).stem,
            "name": function.__name__,
            "fact": fact,
            "sees": sees,
            "tells": list(tells),
            "signals": signals,
            "code": code,
            "flags": list(flags),
            "left": list(left),
            "tasks": tasks,
            "limit": limit,
            "needs": list(needs),
            "play": function,
        }
        return function

    return declare


def ready():
    """Tell the test that now is the time for Ctrl-C."""
    print("READY", flush=True)


def raised(function, *args, **options):
    """Name the exception a call ends with."""
    try:
        return ["returned", function(*args, **options)]
    except BaseException as error:
        return type(error).__name__


def left_running():
    deadline = time.monotonic() + 1
    while True:  # a thread that was told to end needs a moment for it
        threads = sorted(each.name for each in threading.enumerate() if each is not threading.main_thread())
        if not threads or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    gc.collect()
    tasks = [repr(each) for each in gc.get_objects() if isinstance(each, asyncio.Task) and not each.done()]
    return {"threads": threads, "tasks": tasks}


def load(name):
    sys.path.insert(0, str(Path(__file__).parent))
    sys.modules.setdefault("stage", sys.modules[__name__])
    importlib.import_module(name)


def main():
    if sys.argv[1] == "--list":
        for file in sorted(Path(__file__).parent.glob("*.py")):
            if file.stem != "stage":
                load(file.stem)
        print(json.dumps([{key: value for key, value in row.items() if key != "play"} for row in ROWS.values()]))
        return
    load(sys.argv[1])
    chosen = ROWS[sys.argv[2]]
    try:
        seen = chosen["play"]()
    except SystemExit:
        print("SEEN", json.dumps("SystemExit"), "LEFT", json.dumps(left_running()), flush=True)
        raise
    except BaseException as error:
        seen = type(error).__name__
        if seen != chosen["sees"]:
            raise
        del error
    print("SEEN", json.dumps(seen), "LEFT", json.dumps(left_running()), flush=True)


if __name__ == "__main__":
    main()
