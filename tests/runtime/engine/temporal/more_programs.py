"""Decisions for the tests of the engine on Temporal; a module that other processes import, too."""

import asyncio
import os
import signal
from pathlib import Path

from troth.runtime.engine import (
    Append,
    Join,
    RunCancelledError,
    Sleep,
    Start,
    Step,
    StepFailedError,
    Together,
    Wait,
    current_step,
)
from troth.testing.engine_programs import do, note


def child(path, name):
    yield Step("child", note, path, name)
    if name == "bad":
        yield Step("bad", fail)
    return name


def fail():
    raise LookupError("on purpose")


def parent(path, names):
    ids = []
    for name in names:
        ids += [(yield Start(child, path, name))]
    answers = []
    for run_id in ids:
        try:
            answers.append((yield Join(run_id)))
        except StepFailedError as failed:
            answers.append([failed.outcome, failed.type])
    return answers


def slow_child(path):
    yield Wait("go")
    return "went"


def waits_for_child(path, child_id):
    yield Start(slow_child, path, run_id=child_id)
    return (yield Join(child_id))


def letters(count):
    return "x" * count


def handed_on(text):
    return text


def passes_on(path, count, times):
    """A large value goes from step to step."""
    text = yield Step("letters", letters, count)
    for number in range(times):
        text = yield Step(f"hand on {number}", handed_on, text)
        yield Step("note", note, path, str(number))
    return len(text)


def complain(count):
    raise ValueError("x" * count)


def step_complains(path, count):
    yield Step("complain", complain, count)


def run_complains(path, count):
    yield Step("note", note, path, "begun")
    complain(count)


def note_large(count):
    current_step().append("large", "entry", "x" * count)


def step_appends(path, count):
    yield Step("append", note_large, count)


def run_appends(path, count):
    yield Append("large", "entry", "x" * count)


def long_loop(path, count):
    """Many steps: none of them is a function that can be imported."""
    total = 0
    for number in range(count):
        total += yield Step(f"step {number}", lambda: one(path))
    yield Append(f"stream:{path}", "total", total)
    return total


def one(path):
    do(path, "one")
    return 1


CHANGED = {"name": "before"}


def changes(path):
    """Asks for something else when it is replayed after a change of the code."""
    yield Step(CHANGED["name"], note, path, "first")
    return (yield Step("needs", needs, path))


def needs(path):
    do(path, "needs")
    if not Path(f"{path}.file").exists():
        raise FileNotFoundError(path)
    return "found"


def large(path, count):
    text = yield Step("large", make_text, count)
    return len(text)


def make_text(count):
    return "x" * count


def several_waits(path):
    """Two branches that wait for signals of one name, and one that sleeps."""
    return (yield Together(Wait("word"), Wait("word"), Sleep(0.2)))


def lambda_elsewhere(path):
    """A step that no other process can import, which kills the first worker that comes to it."""
    yield Step("one", note, path, "one")
    word = "closed over"
    return (yield Step("two", lambda: dies_once(path, word)))


def dies_once(path, word):
    do(path, "two")
    marker = Path(f"{path}.died")
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return word


def not_twice(path):
    """A step that must not be repeated after a crash."""
    try:
        yield Step("once", dies_once, path, "", after_crash="fail")
    except StepFailedError as failed:
        return [failed.outcome, failed.is_outcome_unknown]
    return "no crash"


def steps_slowly(path, count):
    for number in range(count):
        yield Step(f"slow {number}", slowly, path)
    return count


async def slowly(path):
    do(path, "slow")
    await asyncio.sleep(0.3)
    current_step().append(f"stream:{path}", "slow", current_step().attempt)


def undoes(path):
    yield Step("begin", note, path, "begin")
    try:
        yield Together(Wait("never"), Sleep(3600), Step("hang", hang, path))
    except RunCancelledError:
        yield Step("undo", note, path, "undo")
        raise


async def hang(path):
    do(path, "hang")
    await asyncio.Event().wait()


DECISIONS = [
    child,
    parent,
    slow_child,
    waits_for_child,
    long_loop,
    changes,
    large,
    several_waits,
    lambda_elsewhere,
    not_twice,
    steps_slowly,
    undoes,
    passes_on,
    step_complains,
    run_complains,
    step_appends,
    run_appends,
]
