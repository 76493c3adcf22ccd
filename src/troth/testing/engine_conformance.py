"""What every engine has to do, as checks that raise AssertionError.

    for check in checks("step", "crash", "cancel"):
        check.run(ground)

An `EngineGround` says how to open the engine under test, here and in another process. The embedded engine passes every
part; one that stands on somebody else's machinery says which parts it claims.
"""

import asyncio
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

from troth.bridge import BlockedLoopWarning
from troth.runtime.engine import Engine, RunCancelledError, RunFailedError
from troth.runtime.store import RunState
from troth.testing import engine_programs as programs
from troth.testing.engine_programs import effects
from troth.testing.interruption import HOWS, interrupted

__all__ = ["EngineCheck", "EngineGround", "Part", "checks"]

Part = Literal["step", "crash", "cancel", "wait", "record", "context"]


class EngineGround(Protocol):
    """Where an engine under test lives: each `open` is the same store, in this process."""

    def open(self) -> AbstractContextManager[Engine]:
        """The engine, with every decision of `engine_programs` registered."""

    def program(self) -> str:
        """Python that defines `open_engine()`, meaning the same in another process."""


@dataclass(frozen=True, slots=True)
class EngineCheck:
    """One thing an engine has to do."""

    part: Part
    body: Callable[[EngineGround, str], None]

    @property
    def name(self) -> str:
        """What it is called."""
        return self.body.__name__

    def run(self, ground: EngineGround) -> None:
        """Raise if the engine does not do it. Leaves nothing running."""
        with tempfile.TemporaryDirectory() as folder:
            self.body(ground, str(Path(folder) / "effects"))


_PATIENCE = 120.0  # seconds for what has to come about, on a machine that has much else to do
_checks: list[EngineCheck] = []


def checks(*parts: Part) -> list[EngineCheck]:
    """The checks of these parts; all of them if none is named."""
    return [check for check in _checks if not parts or check.part in parts]


def _check(part: Part) -> Callable[[Callable[[EngineGround, str], None]], Callable[[EngineGround, str], None]]:
    def add(body: Callable[[EngineGround, str], None]) -> Callable[[EngineGround, str], None]:
        _checks.append(EngineCheck(part, body))
        return body

    return add


def _both(engine: Engine, decision: Any, *args: object) -> Iterator[Callable[[], Any]]:
    yield lambda: engine.run(decision, *args)
    yield lambda: asyncio.run(engine.arun(decision, *args))


def _names(path: str) -> list[str]:
    return [name for name, _ in effects(path)]


def _fails(call: Callable[[], Any]) -> RunFailedError:
    try:
        value = call()
    except RunFailedError as error:
        return error
    raise AssertionError(f"It returned {value!r} and should have failed.")


def _eventually(is_so: Callable[[], object], expectation: str, seconds: float = _PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"It did not come about that {expectation}."
        time.sleep(0.02)


def _has_done(path: str, expected: list[str]) -> bool:
    return _names(path) == expected


def _shape(engine: Engine, run_id: str) -> Sequence[tuple[Any, ...]]:
    return [(step.kind, step.name, step.state, step.args, step.result) for step in engine.steps(run_id)]


# Steps


@_check("step")
def steps_of_both_colors_run_once_each_in_order(ground: EngineGround, path: str) -> None:
    """From sync and from async code, with the same record."""
    with ground.open() as engine:
        assert engine.run(programs.order, path, run_id=f"a{path}") == ["one", "two", "three"]
        assert asyncio.run(engine.arun(programs.order, path, run_id=f"b{path}")) == ["one", "two", "three"]
        assert asyncio.run(engine.arun(programs.order, path, run_id=f"c{path}")) == ["one", "two", "three"]
        assert _names(path) == ["one", "two", "three"] * 3
        assert len(set(effects(path))) == 9, "every step of every run has a key of its own"
        assert _shape(engine, f"a{path}") == _shape(engine, f"b{path}")


@_check("step")
def the_same_id_is_the_same_run(ground: EngineGround, path: str) -> None:
    """Who comes later gets the result; nothing is done twice."""
    with ground.open() as engine:
        for _ in range(2):
            assert engine.run(programs.order, path, run_id=path) == ["one", "two", "three"]
        assert engine.start(programs.order, path, run_id=path).result(_PATIENCE) == ["one", "two", "three"]
    with ground.open() as engine:
        assert engine.run(programs.order, path, run_id=path) == ["one", "two", "three"]
        assert _names(path) == ["one", "two", "three"]


@_check("step")
def answers_are_json(ground: EngineGround, path: str) -> None:
    """A decision sees on its first run what a replay would show it."""
    assert path
    with ground.open() as engine:
        for call in _both(engine, programs.as_json):
            assert call() == [1, {"more": [2, 3]}]


@_check("step")
def a_failed_attempt_is_retried_and_recorded(ground: EngineGround, path: str) -> None:
    """Under the same key, each attempt with its own error."""
    with ground.open() as engine:
        assert engine.run(programs.flaky, path, 2, 3, run_id=path) == 3
        assert [name for name, _ in effects(path)] == ["flaky"] * 3
        assert len({key for _, key in effects(path)}) == 1
        (step,) = engine.steps(path)
        assert [(a.number, a.outcome, a.error and a.error["message"]) for a in step.attempts] == [
            (1, "failed", "attempt 1"),
            (2, "failed", "attempt 2"),
        ]


@_check("step")
def attempts_are_counted(ground: EngineGround, path: str) -> None:
    """As many as allowed, and then the run fails with the last error and the user's line."""
    with ground.open() as engine:
        error = _fails(lambda: engine.run(programs.flaky, path, 99, 3, run_id=path))
        assert _names(path) == ["flaky"] * 3
        assert error.error["message"] == "attempt 3"
        assert error.error["step"] == "flaky"
        assert "raise ValueError" in error.error["line"]
        run = engine.find(path)
        assert run is not None
        assert run.state is RunState.FAILED


@_check("step")
def only_what_is_listed_is_retried(ground: EngineGround, path: str) -> None:
    """`retry.on` says what is worth another attempt."""
    with ground.open() as engine:
        _fails(lambda: engine.run(programs.picky, path))
        assert _names(path) == ["flaky"]


@_check("step")
def a_failure_is_thrown_into_the_decision(ground: EngineGround, path: str) -> None:
    """Which may go another way; the same on a replay."""
    with ground.open() as engine:
        for call in _both(engine, programs.caught, path):
            assert call() == ["flaky", "ValueError", "attempt 1"]
        assert _names(path) == ["flaky", "instead"] * 2


@_check("step")
def a_timeout_returns_to_the_caller(ground: EngineGround, path: str) -> None:
    """Of a sync step and of an async one, from sync and from async code; the outcome is not success."""
    with ground.open() as engine:
        for decision in (programs.slow_sync, programs.slow_async):
            for call in _both(engine, decision, path, 10.0, 0.1):
                began = time.monotonic()
                error = _fails(call)
                assert time.monotonic() - began < 9.9, "the caller waited for the step all the same"
                assert error.error["outcome"] == "timeout", error.error


@_check("step")
def a_returned_coroutine_is_awaited(ground: EngineGround, path: str) -> None:
    """In every slot."""
    with ground.open() as engine:
        for call in _both(engine, programs.returns_coroutine, path):
            assert call() == "awaited"
        assert _names(path) == ["awaited", "awaited"]


@_check("step")
def a_lost_coroutine_is_not_success(ground: EngineGround, path: str) -> None:
    """And not tried again: the mistake is in the code."""
    with ground.open() as engine:
        for number, call in enumerate(_both(engine, programs.loses_coroutine, path), start=1):
            error = _fails(call)
            assert "never awaited" in error.error["message"], error.error
            assert "anote" in error.error["message"], error.error
            assert _names(path) == ["forgetful"] * number


@_check("step")
def a_result_that_is_not_json_is_not_success(ground: EngineGround, path: str) -> None:
    """It says which part of it."""
    with ground.open() as engine:
        error = _fails(lambda: engine.run(programs.not_json, path))
        assert "['things'][1]" in error.error["message"]
        assert _names(path) == ["odd"]


# Crashes


def _die(ground: EngineGround, path: str, at: str) -> None:
    script = f"""
        {textwrap.indent(ground.program(), " " * 8).strip()}
        from troth.testing import engine_programs as programs
        with open_engine() as engine:
            engine.run(programs.dies, {path!r}, {at!r}, run_id={path!r})
    """
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], check=False, capture_output=True, text=True, timeout=_PATIENCE
    )
    assert process.returncode == -9, process.stderr


@_check("crash")
def killed_within_a_step_it_goes_on_by_itself(ground: EngineGround, path: str) -> None:
    """What is recorded is not repeated; the step in flight is, under the same key."""
    _die(ground, path, "step")
    assert _names(path) == ["one", "two"]
    with ground.open() as engine:
        _eventually(lambda: (run := engine.find(path)) and run.state is RunState.COMPLETED, "the run completed")
        assert engine.run(programs.dies, path, "step", run_id=path) == ["one", "two", "three"]
    assert _names(path) == ["one", "two", "two", "three"]
    assert len(set(effects(path))) == 3, "the repeated step has the key it had before"


@_check("crash")
def killed_twice_it_still_finishes(ground: EngineGround, path: str) -> None:
    """Each kill costs at most the step in flight."""
    _die(ground, path, "next")
    assert _names(path) == ["one", "two", "three"]
    with ground.open() as engine:
        assert engine.run(programs.dies, path, "next", run_id=path) == ["one", "two", "three"]
    assert _names(path) == ["one", "two", "three", "three"]


# Cancellation


@_check("cancel")
def a_cancelled_run_cleans_up_and_is_cancelled(ground: EngineGround, path: str) -> None:
    """Whatever it waits for; what the decision then asks for is performed."""
    with ground.open() as engine:
        for color in ("async step", "sleep", "signal"):
            own = f"{path}-{color.replace(' ', '-')}"
            handle = engine.start(programs.waits_for_ever, own, color, run_id=own)
            expected = ["begin", "hang"] if color == "async step" else ["begin"]
            _eventually(partial(_has_done, own, expected), "it waits")
            if color != "async step":
                time.sleep(0.1)
            assert engine.cancel(own) is True
            error = _fails(partial(handle.result, _PATIENCE))
            assert isinstance(error, RunCancelledError)
            run = engine.find(own)
            assert run is not None
            assert run.state is RunState.CANCELLED
            assert _names(own)[-1] == "undo"
            assert _names(own).count("undo") == 1
            assert engine.cancel(own) is False, "there is nothing left to cancel"


# Waiting


@_check("wait")
def a_signal_reaches_the_run_before_or_after_it_waits(ground: EngineGround, path: str) -> None:
    """Sent once with the same key, it arrives once."""
    with ground.open() as engine:
        handle = engine.start(programs.approval, path, run_id=path)
        assert engine.signal(path, "answer", {"yes": True}, key="k") is True
        assert engine.signal(path, "answer", {"yes": False}, key="k") is False
        assert handle.result(_PATIENCE) == {"yes": True}
        late = engine.start(programs.approval, path, run_id=f"{path}-late")
        _eventually(lambda: (r := engine.find(late.id)) and r.state is RunState.WAITING, "the run waits")
        run = engine.find(late.id)
        assert run is not None
        assert run.waiting_for == "signal 'answer'"
        asyncio.run(engine.asignal(late.id, "answer", 7))
        assert late.result(_PATIENCE) == 7


@_check("wait")
def a_waiting_run_outlives_its_engine(ground: EngineGround, path: str) -> None:
    """It waits without anybody, and goes on when there is somebody again."""
    with ground.open() as engine:
        handle = engine.start(programs.approval, path, run_id=path)
        _eventually(lambda: (r := engine.find(handle.id)) and r.state is RunState.WAITING, "the run waits")
    with ground.open() as engine:
        run = engine.find(path)
        assert run is not None
        assert run.state is RunState.WAITING
        engine.signal(path, "answer", 1)
        assert engine.result(path, _PATIENCE) == 1
    assert _names(path) == ["ask", "done"]


@_check("wait")
def a_signal_after_the_timeout_is_for_the_next_wait(ground: EngineGround, path: str) -> None:
    """One in time is received; one that is too late stays for whoever waits for that name next."""
    with ground.open() as engine:
        in_time = engine.start(programs.patient, f"{path}-in-time", 60.0, run_id=f"{path}-in-time")
        engine.signal(in_time.id, "answer", 1)
        assert in_time.result(_PATIENCE) == 1
        late = engine.start(programs.patient, path, 0.05, run_id=path)
        _eventually(lambda: _has_done(path, ["ask", "nobody"]), "the time is up")
        engine.signal(late.id, "answer", 2)
        assert late.result(_PATIENCE) == ["too late", 2]


@_check("wait")
def a_sleep_is_a_moment_not_a_duration(ground: EngineGround, path: str) -> None:
    """The time that nobody was there counts."""
    with ground.open() as engine:
        handle = engine.start(programs.naps, path, 1.0, run_id=path)
        _eventually(lambda: (r := engine.find(handle.id)) and r.state is RunState.WAITING, "the run sleeps")
        asleep = time.monotonic()
    time.sleep(1.1)
    with ground.open() as engine:
        assert engine.result(path, _PATIENCE) == "after"
    assert time.monotonic() - asleep < _PATIENCE
    assert _names(path) == ["before", "after"]


@_check("wait")
def branches_run_at_once_with_one_record(ground: EngineGround, path: str) -> None:
    """From sync and from async code; every branch has its own steps."""
    with ground.open() as engine:
        expected = [f"async-{number}" for number in range(5)]
        assert engine.run(programs.fans_out, path, 5, run_id=f"a{path}") == expected
        assert asyncio.run(engine.arun(programs.fans_out, path, 5, run_id=f"b{path}")) == expected
        assert len(set(effects(path))) == len(effects(path)) == 20
        assert _shape(engine, f"a{path}") == _shape(engine, f"b{path}")


# Records


@_check("record")
def a_failed_run_is_resumed_where_it_stopped(ground: EngineGround, path: str) -> None:
    """From sync and from async code; what is done stays done, and the failure it dealt with stays dealt with."""
    with ground.open() as engine:
        for color in ("sync", "async"):
            own = f"{path}-{color}"
            error = _fails(partial(engine.run, programs.needs_a_file, own, run_id=own))
            assert error.error["step"] == "needs", error.error
            Path(f"{own}.file").touch()
            assert (engine.resume(own) if color == "sync" else asyncio.run(engine.aresume(own))) == "found"
            assert _names(own) == ["one", "instead", "needs", "needs"]


@_check("record")
def a_fork_has_the_answers_up_to_its_step(ground: EngineGround, path: str) -> None:
    """And is a run like any other: asked for by its id, with the same arguments, it is that one."""
    with ground.open() as engine:
        engine.run(programs.order, path, run_id=path)
        fork = engine.fork(path, "three", fork_id=f"{path}-fork")
        assert fork.result(_PATIENCE) == ["one", "two", "three"]
        assert engine.run(programs.order, path, run_id=fork.id) == ["one", "two", "three"]
        assert _names(path) == ["one", "two", "three", "three"]


@_check("record")
def runs_and_steps_are_listed(ground: EngineGround, path: str) -> None:
    """Newest first, by state and decision, the same from a task."""
    with ground.open() as engine:
        engine.run(programs.order, path, run_id=f"{path}-done", label="a label")
        _fails(lambda: engine.run(programs.flaky, path, 99, 1, run_id=f"{path}-failed"))
        assert [run.id for run in engine.list(limit=2)] == [f"{path}-failed", f"{path}-done"]
        assert [run.id for run in engine.list(states=[RunState.FAILED], limit=1)] == [f"{path}-failed"]
        assert [run.label for run in engine.list(decision="order", limit=1)] == ["a label"]
        assert [step.name for step in engine.steps(f"{path}-done")] == ["one", "two", "three"]
        assert asyncio.run(engine.alist(limit=2)) == engine.list(limit=2)
        assert asyncio.run(engine.asteps(f"{path}-done")) == engine.steps(f"{path}-done")
        assert asyncio.run(engine.afind(f"{path}-done")) == engine.find(f"{path}-done")


# Contexts


@_check("context")
def a_sync_call_inside_a_running_loop_works(ground: EngineGround, path: str) -> None:
    """It blocks that loop, as a sync call does, and a warning may say so; it does not fail, and does not hang."""

    async def main(engine: Engine) -> object:
        await asyncio.sleep(0)
        return engine.run(programs.order, path)

    with ground.open() as engine, warnings.catch_warnings():
        warnings.simplefilter("ignore", BlockedLoopWarning)  # comes after a second, and a server may take longer
        assert asyncio.run(main(engine)) == ["one", "two", "three"]


@_check("context")
def an_outer_cancellation_is_kept(ground: EngineGround, path: str) -> None:
    """As asyncio promises; the run is interrupted, and goes on when it is asked for again."""

    async def main(engine: Engine) -> None:
        task = asyncio.create_task(engine.arun(programs.waits_for_ever, path, "async step", run_id=path))
        await asyncio.to_thread(_eventually, partial(_has_done, path, ["begin", "hang"]), "the step is in flight")
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        try:
            async with asyncio.timeout(0.2):
                await engine.arun(programs.waits_for_ever, path, "async step", run_id=path)
        except TimeoutError:
            return
        raise AssertionError("the timeout was swallowed")

    with ground.open() as engine:
        asyncio.run(main(engine))
        assert _names(path)[:1] == ["begin"], "what was done before is not repeated"
        assert "undo" not in _names(path), "the decision was told of a cancellation that was not meant for it"


@_check("context")
def a_task_cancelled_anywhere_leaves_no_lease_behind(ground: EngineGround, path: str) -> None:
    """At every await of `arun` in turn: no task is left, and whoever asks for the run gets its result."""
    for how in HOWS:
        with ground.open() as engine:
            for at in range(1, 50):
                own = f"{path}-{how.replace(' ', '-')}-{at}"
                work = engine.arun(programs.order, own, run_id=own)
                was_cancelled = asyncio.run(_interrupt(interrupted(work, at, how)))
                assert engine.start(programs.order, own, run_id=own).result(_PATIENCE) == ["one", "two", "three"]
                assert sorted(set(_names(own))) == ["one", "three", "two"]
                assert len(_names(own)) <= 4, "more was repeated than the step in flight"
                if not was_cancelled:
                    break
            else:
                raise AssertionError("It never came to its end.")


async def _interrupt(work: Awaitable[object]) -> bool:
    task = asyncio.ensure_future(work)
    finished, _ = await asyncio.wait([task], timeout=_PATIENCE)
    assert finished, "a cancelled call did not return"
    assert asyncio.all_tasks() == {asyncio.current_task()}, "it left a task behind"
    return task.cancelled()


@_check("context")
def two_loops_one_after_the_other_work(ground: EngineGround, path: str) -> None:
    """And a sync call after both: nothing of the engine dies with a loop."""
    with ground.open() as engine:
        for number in range(2):
            assert asyncio.run(engine.arun(programs.order, path, run_id=f"{path}-{number}")) == ["one", "two", "three"]
        assert engine.run(programs.order, path) == ["one", "two", "three"]


@_check("context")
def a_sync_step_does_not_stall_the_loop(ground: EngineGround, path: str) -> None:
    """Other tasks go on while it works."""

    async def main(engine: Engine) -> int:
        task = asyncio.create_task(engine.arun(programs.slow_sync, path, 0.5, 20.0))
        turns = 0
        while not task.done():
            await asyncio.sleep(0.01)
            turns += 1
        await task
        return turns

    with ground.open() as engine:
        assert asyncio.run(main(engine)) > 5, "the loop stood still while a sync step worked"


@_check("context")
def a_second_process_attaches(ground: EngineGround, path: str) -> None:
    """It waits for the run that we carry out, and does nothing of it."""
    script = f"""
        {textwrap.indent(ground.program(), " " * 8).strip()}
        from troth.testing import engine_programs as programs
        with open_engine() as engine:
            print(engine.run(programs.approval, {path!r}, run_id={path!r}))
    """
    with ground.open() as engine:
        handle = engine.start(programs.approval, path, run_id=path)
        _eventually(lambda: (r := engine.find(path)) and r.state is RunState.WAITING, "the run waits")
        command = [sys.executable, "-c", textwrap.dedent(script)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            time.sleep(0.5)
            assert process.poll() is None
            engine.signal(path, "answer", 5)
            assert handle.result(_PATIENCE) == 5
            assert process.communicate(timeout=_PATIENCE)[0] == "5\n"
    assert _names(path) == ["ask", "done"]


@_check("context")
def many_runs_at_once_need_few_threads(ground: EngineGround, path: str) -> None:
    """Two hundred, with steps of both colors."""

    async def main(engine: Engine) -> tuple[list[Any], int]:
        tasks = [asyncio.create_task(engine.arun(programs.order, path)) for _ in range(200)]
        most = 0
        while not all(task.done() for task in tasks):
            most = max(most, threading.active_count())
            await asyncio.sleep(0.01)
        return await asyncio.gather(*tasks), most

    before = threading.active_count()
    with ground.open() as engine:
        results, most = asyncio.run(main(engine))
    assert results == [["one", "two", "three"]] * 200
    assert most - before < 60, f"{most} threads"
    assert len(set(effects(path))) == len(effects(path)) == 600
