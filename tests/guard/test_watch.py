"""What `watch` and `install` promise within one process."""

import asyncio
import gc
import json
import logging
import sys
import threading
import warnings
from functools import partial

import pytest

from troth import guard
from troth.errors import MisuseError, RunError, TrothError
from troth.guard.incident import Incident

pytestmark = pytest.mark.troth(allow=True)  # losing coroutines is the point of these tests


async def work() -> int:
    return 1


def here() -> int:
    """The line of the caller."""
    return sys._getframe(1).f_lineno


def lose() -> int:
    work(), (line := here())
    return line


def quiet(incident: Incident) -> None:
    """A sink, so that Python does not repeat in a warning what we have on purpose lost."""


@pytest.fixture
def touched():
    """Everything the guard may touch in the process, compared before and after the test."""

    def state() -> dict[str, object]:
        return {
            "hook": warnings._warn_unawaited_coroutine,
            "filters": list(warnings.filters),
            "unraisable": sys.unraisablehook,
            "bootstrap": threading.Thread._bootstrap,
            "profile": (threading.getprofile(), sys.getprofile()),
            "depth": sys.get_coroutine_origin_tracking_depth(),
            "loop": asyncio.BaseEventLoop.call_exception_handler,
            "gc": list(gc.callbacks),
            "threads": {thread.name for thread in threading.enumerate()},
        }

    before = state()
    yield
    assert state() == before


def test_public_names():
    """The face is small, and changes only on purpose."""
    assert guard.__all__ == ["Incident", "LostPromiseError", "Report", "install", "uninstall", "watch"]
    assert all(hasattr(guard, name) for name in guard.__all__)
    assert sorted(dir(guard)) == sorted(guard.__all__)
    with pytest.raises(AttributeError, match="wotch"):
        guard.wotch


def test_watch_tells_file_and_line(touched):
    """A loss has a kind, a name, a place, a thread and a time."""
    with guard.watch(sink=quiet) as report:
        line = lose()
    [loss] = report.losses
    assert (loss.kind, loss.name, loss.file, loss.line) == ("coroutine", "work", __file__, line)
    assert loss.thread == threading.current_thread().name
    assert loss.defined_line == work.__code__.co_firstlineno
    assert report.blocks == ()


def test_what_the_block_still_holds_is_not_lost(touched):
    """Only what died unkept is lost."""
    with guard.watch(sink=quiet) as report:
        kept = work()
    kept.close()
    assert report.incidents == ()
    assert str(report) == "nothing lost, nothing blocked"


def test_old_garbage_is_not_blamed_on_the_block(touched):
    """A cycle that was dead before the block began is none of its business."""
    gc.disable()
    try:
        with guard.watch(sink=quiet) as outer:
            cycle: list = [work()]
            cycle.append(cycle)
            del cycle
            with guard.watch(sink=quiet) as inner:
                pass
    finally:
        gc.enable()
    assert (len(outer.losses), len(inner.losses)) == (1, 0)


def test_a_watch_within_a_watch_tells_both(touched):
    """Each sees what happens in its own time."""
    with guard.watch(sink=quiet) as outer:
        first = lose()
        with guard.watch(sink=quiet, depth=3) as inner:
            second = lose()
        third = lose()
    assert [loss.line for loss in outer.losses] == [first, second, third]
    assert [loss.line for loss in inner.losses] == [second]
    assert len(inner.losses[0].stack) == 3


def test_mode_raise_raises_at_the_end_of_the_block(touched):
    """The error names every line, and is Troth's own."""
    with (
        pytest.raises(guard.LostPromiseError, match="2 promises were lost") as caught,
        guard.watch(mode="raise", sink=quiet),
    ):
        lines = [lose(), lose()]
    assert [loss.line for loss in caught.value.losses] == lines
    assert all(f"{__file__}:{line}" in str(caught.value) for line in lines)
    assert issubclass(guard.LostPromiseError, RunError)
    assert issubclass(guard.LostPromiseError, TrothError)


def test_mode_raise_does_not_hide_another_error(touched):
    """The error on its way goes on, with a note of what was lost."""
    with pytest.raises(ZeroDivisionError) as caught, guard.watch(mode="raise", sink=quiet):
        assert lose() / 0
    assert "A promise was lost" in caught.value.__notes__[0]


def test_without_a_sink_python_still_warns(touched):
    """A report nobody reads must not silence Python."""
    with pytest.warns(RuntimeWarning, match="never awaited"), guard.watch() as report:
        lose()
    assert len(report.losses) == 1


@pytest.mark.parametrize("filters", ["error", "ignore", "always"])
def test_warning_filters_do_not_matter(filters, touched):
    """The loss is told whatever the program does with warnings."""
    with guard.watch(sink=quiet) as report, warnings.catch_warnings():
        warnings.simplefilter(filters)
        line = lose()
    assert [loss.line for loss in report.losses] == [line]


def test_the_way_round_leaves_nothing_behind(touched, monkeypatch):
    """Without the private hook, filter and unraisable hook are put in place, heard through, and taken out again."""
    monkeypatch.delattr(warnings, "_warn_unawaited_coroutine")
    before = list(warnings.filters)
    with guard.watch(sink=quiet) as report:
        assert len(warnings.filters) == len(before) + 1
        line = lose()
    assert [loss.line for loss in report.losses] == [line]
    assert list(warnings.filters) == before


def test_the_way_round_hands_on_what_is_not_its_own(touched, monkeypatch):
    """Other errors in finalizers reach the hook that was there before."""
    seen = []
    monkeypatch.delattr(warnings, "_warn_unawaited_coroutine")
    monkeypatch.setattr(sys, "unraisablehook", seen.append)

    class Bad:
        def __del__(self):
            raise ValueError("not ours")

    with guard.watch(sink=quiet) as report:
        Bad()
    assert [str(entry.exc_value) for entry in seen] == ["not ours"]
    assert report.losses == ()
    seen.clear()


def test_somebody_elses_hook_on_top_is_respected(touched, monkeypatch):
    """Who took the hook after us keeps it when we leave, and may still call us without harm."""
    original = warnings._warn_unawaited_coroutine
    theirs = []
    with guard.watch(sink=quiet) as report:
        ours = warnings._warn_unawaited_coroutine

        def on_top(coroutine):
            theirs.append(coroutine.__qualname__)
            ours(coroutine)

        warnings._warn_unawaited_coroutine = on_top
        lose()
    assert len(report.losses) == 1
    assert warnings._warn_unawaited_coroutine is on_top
    with pytest.warns(RuntimeWarning, match="never awaited"):
        lose()
    assert theirs == ["work", "work"]
    warnings._warn_unawaited_coroutine = original


def test_the_users_own_tracking_depth_is_kept(touched):
    """More than we need is left alone, and what was there comes back."""
    sys.set_coroutine_origin_tracking_depth(5)
    try:
        with guard.watch(sink=quiet) as report:
            assert sys.get_coroutine_origin_tracking_depth() == 5
            lose()
        assert sys.get_coroutine_origin_tracking_depth() == 5
    finally:
        sys.set_coroutine_origin_tracking_depth(0)
    assert len(report.losses[0].stack) == 5


def test_a_depth_set_meanwhile_is_not_undone():
    """Who changes the depth after us owns it."""
    with guard.watch():
        sys.set_coroutine_origin_tracking_depth(7)
    try:
        assert sys.get_coroutine_origin_tracking_depth() == 7
    finally:
        sys.set_coroutine_origin_tracking_depth(0)


def test_debug_mode_of_asyncio_within_a_watch(touched):
    """asyncio raises the depth for its own time and puts ours back."""
    with guard.watch(sink=quiet) as report:

        async def main():
            return lose()

        line = asyncio.run(main(), debug=True)
        after = lose()
    assert [loss.line for loss in report.losses] == [line, after]


def test_every_thread_started_within_the_watch(touched):
    """Each thread tells the line, and its name."""
    with guard.watch(sink=quiet) as report:
        threads = [threading.Thread(target=lose, name=f"worker {n}") for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(loss.thread for loss in report.losses) == ["worker 0", "worker 1", "worker 2"]
    assert {loss.file for loss in report.losses} == {__file__}


def test_threads_where_python_has_no_bootstrap(touched, monkeypatch):
    """Should `Thread._bootstrap` go, `threading.setprofile` serves, and an earlier profiler keeps its place."""
    from troth.guard._origin import Tracking

    events = []
    monkeypatch.setattr(threading, "_profile_hook", lambda *event: events.append(event[1]))
    tracking = Tracking()
    with monkeypatch.context() as gone:
        original = threading.Thread._bootstrap
        gone.delattr(threading.Thread, "_bootstrap")
        tracking.set(1)
        threading.Thread._bootstrap = original  # only the look-up at the start was on trial
        depths = []
        thread = threading.Thread(target=lambda: depths.append(sys.get_coroutine_origin_tracking_depth()))
        thread.start()
        thread.join()
        tracking.set(0)
    assert depths == [1]
    assert "call" in events or "c_call" in events


def run(loop):
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(until_stopped())


async def until_stopped():
    try:
        await asyncio.get_running_loop().create_future()
    except asyncio.CancelledError:
        return


def stop(loop):
    for task in asyncio.all_tasks(loop):
        task.cancel()


@pytest.mark.parametrize("way", ["run_forever", "Runner"])
@pytest.mark.parametrize("maker", ["asyncio", "uvloop"])
def test_a_thread_that_runs_already(maker, way, touched):
    """From 3.12 on any thread is reached; before, one that runs a loop."""
    loop = (asyncio if maker == "asyncio" else pytest.importorskip("uvloop")).new_event_loop()
    thread = threading.Thread(target=loop.run_forever if way == "run_forever" else lambda: run(loop))
    thread.start()
    asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(5)

    async def lose_there():
        return lose()

    async def depth():
        return sys.get_coroutine_origin_tracking_depth()

    try:
        with guard.watch(sink=quiet) as report:
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0.01), loop).result(5)
            line = asyncio.run_coroutine_threadsafe(lose_there(), loop).result(5)
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0.01), loop).result(5)
        left = asyncio.run_coroutine_threadsafe(depth(), loop).result(5)
    finally:
        loop.call_soon_threadsafe(loop.stop if way == "run_forever" else partial(stop, loop))
        thread.join()
        loop.close()
    assert [(loss.file, loss.line) for loss in report.losses] == [(__file__, line)]
    assert left == 0


@pytest.mark.parametrize("maker", ["asyncio", "uvloop"])
def test_dropped_tasks_and_unread_exceptions(maker, touched):
    """Both are told with the line that made the task, on asyncio's loop and on uvloop's."""
    factory = asyncio.new_event_loop if maker == "asyncio" else pytest.importorskip("uvloop").new_event_loop

    async def fail():
        raise ValueError("unread")

    async def main():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: handled.append(context["message"]))
        task = loop.create_task(fail())
        line = here() - 1
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        del task
        gc.collect()
        return line

    handled: list[str] = []
    with guard.watch(sink=quiet) as report, asyncio.Runner(loop_factory=factory) as runner:
        line = runner.run(main())
    [loss] = report.losses
    assert (loss.kind, loss.line, loss.file) == ("exception", line, __file__)
    assert "unread" in loss.detail
    assert handled == ["Task exception was never retrieved"]


def test_install_logs_by_default(caplog, touched):
    """The logger `troth.guard` gets one error per loss, with the incident attached, and Python does not repeat it."""
    with caplog.at_level(logging.INFO, "troth.guard"):
        report = guard.install(blocked=None)
        try:
            line = lose()
        finally:
            guard.uninstall()
    [record] = [record for record in caplog.records if record.name == "troth.guard"]
    assert record.levelno == logging.ERROR
    assert f"{__file__}:{line}" in record.getMessage()
    assert record.incident is report.losses[0]
    guard.uninstall()  # a second time does nothing


def test_install_again_replaces_the_first(touched):
    """There is one guard over a process."""
    first = guard.install(blocked=None, sink=quiet)
    second = guard.install(blocked=None, sink=quiet)
    lose()
    guard.uninstall()
    assert (len(first.losses), len(second.losses)) == (0, 1)


def test_the_log_is_json_lines(tmp_path, touched):
    """One object per incident, added to what is there."""
    log = tmp_path / "guard.jsonl"
    lines = []
    for _ in range(2):
        with guard.watch(log=log):
            lines.append(lose())
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert [entry["line"] for entry in entries] == lines
    assert set(entries[0]) == {
        "kind", "name", "file", "line", "thread", "when", "defined_file", "defined_line", "stack",
    }  # fmt: skip
    assert entries[0]["stack"] == [{"file": __file__, "line": lines[0], "function": "lose"}]


def test_a_sink_that_fails_does_not_lose_the_loss(capsys, touched):
    """The failure is shown, the report has the loss, and the other sinks get it."""

    def broken(incident):
        raise OSError("disk full")

    with pytest.warns(RuntimeWarning, match="never awaited"), guard.watch(sink=broken) as report:
        line = lose()
    assert [loss.line for loss in report.losses] == [line]
    assert "disk full" in (shown := capsys.readouterr().err)
    assert f":{line}" in shown


def test_a_sink_that_loses_a_coroutine_itself(touched):
    """It is not called for its own loss, which Python reports instead: no endless round."""

    def careless(incident):
        work()

    with pytest.warns(RuntimeWarning, match="never awaited"), guard.watch(sink=careless) as report:
        lose()
    assert len(report.losses) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"mode": "explode"}, "There is no mode 'explode'", id="mode"),
        pytest.param({"depth": 0}, "A depth of 0", id="depth"),
        pytest.param({"blocked": 0}, "cannot be blocked for 0 seconds", id="threshold"),
        pytest.param({"blocked": float("nan")}, "cannot be blocked for nan seconds", id="a threshold of NaN"),
        pytest.param({"sink": 5}, "it is not a sync function", id="a sink that cannot be called"),
        pytest.param({"sink": work}, "it is not a sync function", id="an async sink, which would be lost itself"),
        pytest.param({"sink": partial(work)}, "it is not a sync function", id="a partial of one"),
        pytest.param({"log": "/no/such/folder/log"}, "cannot be opened", id="log"),
    ],
)
@pytest.mark.parametrize(
    "entrance", [guard.install, lambda **given: guard.watch(**given).__enter__()], ids=["install", "watch"]
)
def test_nonsense_is_refused(entrance, arguments, message, touched):
    """A wrong argument is an error before anything is watched."""
    with pytest.raises(MisuseError, match=message):
        entrance(**arguments)


def test_opentelemetry_gets_an_event(touched):
    """A loss within a span is left on it, in programs that use OpenTelemetry."""
    trace = pytest.importorskip("opentelemetry.trace")

    class Span(trace.NonRecordingSpan):
        def __init__(self):
            super().__init__(trace.INVALID_SPAN_CONTEXT)
            self.events = []

        def is_recording(self):
            return True

        def add_event(self, name, attributes=None, timestamp=None):
            self.events.append((name, attributes))

    span = Span()
    with guard.watch(sink=quiet), trace.use_span(span):
        line = lose()
    [(name, attributes)] = span.events
    assert name == "troth.guard.coroutine"
    assert attributes["code.line.number"] == line
