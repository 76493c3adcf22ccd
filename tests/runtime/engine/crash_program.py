"""Everything an engine commits, in one program that can be started again after every kill."""

import asyncio
import contextlib
import time
from pathlib import Path

from troth.errors import MisuseError
from troth.runtime.engine import (
    Append,
    EmbeddedEngine,
    Join,
    Retry,
    RunCancelledError,
    RunFailedError,
    Sleep,
    Start,
    Step,
    Together,
    Wait,
    current_step,
)
from troth.runtime.store import RunState


def note(path, name):
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{current_step().key}\n")
    current_step().append("audit", "did", name)
    return name


async def anote(path, name):
    await asyncio.sleep(0)
    return note(path, name)


def flaky(path):
    note(path, "flaky")
    if Path(path).read_text(encoding="utf-8").count(current_step().key) == 1:
        raise ValueError("the first time")
    return True


def needs(path, marker):
    if not Path(marker).exists():
        raise FileNotFoundError(marker)
    return note(path, "needs")


def child(path, name):
    return (yield Step("child", note, path, name))


def branch(path, number):
    first = yield Step("sync", note, path, f"sync-{number}")
    second = yield Step("async", anote, path, f"async-{number}")
    return [first, second]


def main(path):
    one = yield Step("one", note, path, "one")
    two = yield Step("flaky", flaky, path, retry=Retry(3, delay=0.001))
    both = yield Together(branch(path, 1), branch(path, 2))
    child_id = yield Start(child, path, "child")
    theirs = yield Join(child_id)
    yield Append("audit", "joined", theirs)
    yield Sleep(0.001)
    early = yield Wait("early")
    signal = yield Wait("go")
    last = yield Step("last", anote, path, "last")
    return [one, two, both, theirs, early, signal, last]


def cancellable(path):
    yield Step("begin", note, path, "begin")
    try:
        yield Wait("never")
    except RunCancelledError:
        yield Step("undo", note, path, "undo")
        raise


def resumable(path, marker):
    yield Step("before", note, path, "before")
    return (yield Step("needs", needs, path, marker))


def patient(path):
    yield Step("patient", note, path, "patient")
    yield Wait("enough")
    return "enough"


def send(engine, run_id, name, payload):
    """Send once; a run that is over has had it from an earlier life of this program."""
    with contextlib.suppress(MisuseError):
        engine.signal(run_id, name, payload, key=name)


def until_it_waits(engine, run_id, signal):
    """A signal that finds its run waiting is taken by a commit of its own, one that is early by the one that waits."""
    while not engine.find(run_id).state.is_over and all(step.name != signal for step in engine.steps(run_id)):
        time.sleep(0.001)


async def interrupted(engine, path, patience):
    """Begin a run and be cancelled, which gives its lease back; then let it end."""
    run = engine.find("patient")
    if run is None or not run.state.is_over:
        task = asyncio.create_task(engine.arun(patient, path, run_id="patient"))
        while (run := await engine.afind("patient")) is None or run.state is RunState.RUNNING:
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.wait([task])
        send(engine, "patient", "enough", None)
    return await engine.aresult("patient", patience)


def program(folder):
    return on(Path(folder, "troth.db"), folder)


def on(store, folder, patience=20):
    """The program, with its runs in `store`; `patience` is how long it waits for the end of one of them."""
    path, marker = str(Path(folder, "effects")), str(Path(folder, "marker"))
    decisions = [main, child, cancellable, resumable, patient]
    with EmbeddedEngine(store, decisions=decisions) as engine:
        results = {}
        handle = engine.start(main, path, run_id="main")
        send(engine, "main", "early", {"n": 0})
        until_it_waits(engine, "main", "go")
        send(engine, "main", "go", {"n": 1})
        results["main"] = handle.result(patience)
        results["patient"] = asyncio.run(interrupted(engine, path, patience))
        cancelled = engine.start(cancellable, path, run_id="cancellable")
        while not (state := engine.find("cancellable").state).is_over and state is not RunState.WAITING:
            time.sleep(0.001)
        engine.cancel("cancellable")
        try:
            cancelled.result(patience)
        except RunCancelledError:
            results["cancellable"] = "cancelled"
        try:
            results["resumable"] = engine.run(resumable, path, marker, run_id="resumable")
        except RunFailedError:
            Path(marker).touch()
            results["resumable"] = engine.resume("resumable")
        if engine.find("fork") is None:
            engine.fork("main", "last", fork_id="fork")
        results["fork"] = engine.result("fork", patience)
        engine.tell_callback_failed("fork", "a callback", ValueError("told"))
        engine._ownership._last_beat = 0.0
        engine._ownership.beat()
    return results
