"""Fail the test that loses a coroutine or a task. `pytest --troth`, or `troth = true` in the ini file.

A loss is heard of where the object dies, which may be a later and innocent test. So each test is asked, at the end of
its call and of its teardown, what it has made and not kept: what is dead is made to speak up then and there, what is
still held somewhere fails the test as well, once nothing that belongs to the test can await it any more.
"""

import fnmatch
import gc
import inspect
import os
import sys
import warnings
import weakref
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from troth.guard.incident import Incident

__all__: list[str] = []

_MARKER = (
    "troth(allow=...): allow this test to lose coroutines and tasks. `allow=True` allows any; a name, a pattern, "
    "or a list of them allows coroutines of that name, such as allow='save' or allow='Store.*'."
)
_DEPTH = 8  # in tests the way to the line matters more than a microsecond: mocks and decorators make coroutines too
_MACHINERY = ("_pytest", "pluggy", "pytest_asyncio", "anyio")
_HARMLESS = ("_pytest.", "pytest_asyncio.", "anyio.", "xdist.", "pytest_timeout")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--troth` and the ini setting."""
    parser.getgroup("troth").addoption(
        "--troth", action="store_true", default=False, help="fail tests that lose coroutines or tasks"
    )
    parser.addini("troth", "fail tests that lose coroutines or tasks (default: false)", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; where asked for, begin to watch."""
    config.addinivalue_line("markers", _MARKER)
    if config.getoption("--troth") or config.getini("troth") or _environment_asks():
        config.pluginmanager.register(_Guard(config), "troth-guard")
        config.pluginmanager.register(_Markers(), "troth-markers")


def _environment_asks() -> bool:
    if not os.environ.get("TROTH_GUARD"):
        return False
    from troth.errors import MisuseError
    from troth.guard._environment import is_asked_for

    try:
        return is_asked_for()
    except MisuseError as problem:
        raise pytest.UsageError(str(problem)) from None


class _Guard:
    """Watches one pytest process."""

    depth = _DEPTH
    blocked = None
    generators = False

    def __init__(self, config: pytest.Config) -> None:
        from troth.guard._hub import HUB
        from troth.guard._new_awaitables import NewAwaitables
        from troth.guard._watch import uninstall

        uninstall()  # TROTH_GUARD=1 may have begun before us: in a test run the tests are to fail, not the exit code
        self._config = config
        self._hub = HUB
        self._births = NewAwaitables()
        self._born_in: dict[int, tuple[object, str, bool]] = {}
        self._heard: list[Incident] = []
        self._losses: list[tuple[str, str]] = []
        self._item: pytest.Item | None = None
        self._last = ""
        self._has_failed = False
        self._needs_failure = False
        self._recorder: object = None
        self._from_setup: list[weakref.ref[Any]] = []
        HUB.join(self)
        self._births.open()

    def pytest_unconfigure(self) -> None:
        self._births.close()
        self._hub.leave(self)

    # What the hub tells us.

    def notice(self, incident: "Incident") -> bool:
        if not incident.is_loss or self._is_expected(incident):
            return False
        if (birth := self._born_in.pop(id(incident.stack), None)) and birth[1] != self._nodeid:
            self._add_late(birth[1], incident, has_failed=birth[2])
        else:
            self._heard.append(incident)
        return True

    def _is_expected(self, incident: "Incident") -> bool:
        """Whether the test itself is recording warnings, and so is on the look-out for this one.

        `pytest.warns` says what it expects; a bare `catch_warnings(record=True)` (`assertWarns` is one) expects all.
        """
        recording = _recording()
        if incident.kind != "coroutine" or self._item is None or not isinstance(recording, list):
            return False
        if recording is self._recorder:
            return False
        checkers = [holder for holder in gc.get_referrers(recording) if isinstance(holder, pytest.WarningsRecorder)]
        expected = getattr(checkers[0], "expected_warning", None) if checkers else None
        return expected is None or any(issubclass(RuntimeWarning, category) for category in expected)

    @property
    def _nodeid(self) -> str:
        return self._item.nodeid if self._item is not None else self._last

    # Collection: a module that loses something while it is imported.

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        self._hub.refresh()
        report = yield
        if self._heard and report.outcome == "passed":
            report.outcome = "failed"
            report.longrepr = self._text(self._take_heard(()), "importing this file")
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        self._births.settle()
        self._births.forget()  # what was made while collecting, such as coroutines among the parameters of tests
        return (yield)

    # One test.

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._item, self._last, self._has_failed = item, item.nodeid, False
        result = yield
        # What was said after the end of the teardown has no report left to go into.
        for incident in self._take_heard(_allowed(item)):
            self._needs_failure = self._needs_failure or not self._has_failed
            self._losses.append((item.nodeid, str(incident)))
        self._item = None
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        self._recorder = _recording()
        self._hub.refresh()
        result = yield
        self._judge(item, held=())
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        self._recorder = _recording()
        self._hub.refresh()
        self._note_setup()
        result = yield
        held = self._settle()
        self._judge(item, held if not _may_still_be_awaited(item) else ())
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        self._recorder = _recording()
        self._hub.refresh()
        result = yield
        held = self._settle()
        for thing in held:
            self._remember(thing)
        self._judge(item, held if not self._has_failed else ())
        self._from_setup = []
        self._births.forget()
        return result

    def _note_setup(self) -> None:
        """Keep apart what was made in the setup: a fixture of a wider scope may await it in a later test."""
        new = self._births.settle()
        for thing in new:
            self._remember(thing)
        self._from_setup = [weakref.ref(thing) for thing in new]

    def _settle(self) -> list[Any]:
        """What the call has made and somebody still holds."""
        earlier = {id(thing) for reference in self._from_setup if (thing := reference()) is not None}
        return [thing for thing in self._births.settle() if id(thing) not in earlier]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed:
            self._has_failed = True
            if lost := self._take_heard(_allowed(item)):  # it failed for another reason, but say this too
                self._losses.extend((item.nodeid, str(incident)) for incident in lost)
                report.sections.append(("troth", self._text(lost, "this test")))
        return report

    def _judge(self, item: pytest.Item, held: Iterable[Any]) -> None:
        lost = self._take_heard(allowed := _allowed(item))
        for thing in held:
            self._born_in.pop(id(_origin(thing)), None)
            self._hub.mark_reported(thing)
            incident = _held_incident(thing)
            if not _is_allowed(incident, allowed):
                lost.append(incident)
        self._losses.extend((item.nodeid, str(incident)) for incident in lost)
        if lost and not self._has_failed:  # a test that has failed already is not made to fail twice
            pytest.fail(self._text(lost, "this test"), pytrace=False)

    def _take_heard(self, allowed: Sequence[str]) -> "list[Incident]":
        heard, self._heard = self._heard, []
        return [incident for incident in heard if not _is_allowed(incident, allowed)]

    def _remember(self, thing: Any) -> None:
        """Keep in mind in which test `thing` was made: should it be lost later on, that test is to blame."""
        if (origin := _origin(thing)) is not None and self._item is not None:
            self._born_in[id(origin)] = (origin, self._item.nodeid, self._has_failed)

    def _add_late(self, nodeid: str, incident: "Incident", *, has_failed: bool) -> None:
        self._losses.append((nodeid, f"{incident} (noticed after the test had ended)"))
        self._needs_failure = self._needs_failure or not has_failed

    def _text(self, lost: "Sequence[Incident]", who: str) -> str:
        more = "" if len(lost) == 1 else f" (and {len(lost) - 1} more)"
        lines = [f"troth: lost '{lost[0].name}' at {self._short(_where(lost[0]))}{more} in {who}"]
        for incident in lost:
            lines.append(f"  {self._short(_where(incident))}: {self._short(str(incident))}")
            if (source := _source_line(incident)) is not None:
                lines.append(f"      {source}")
            lines += [f"      by way of {self._short(frame[0])}:{frame[1]} in {frame[2]}" for frame in _way(incident)]
        name = lost[0].name.rpartition(".")[2]
        lines.append("Await it, pass it to a task that you keep, or `close()` it if it is not needed.")
        lines.append(f"If the test loses it on purpose, mark the test: `@pytest.mark.troth(allow={name!r})`.")
        return "\n".join(lines)

    def _short(self, text: str) -> str:
        return text.replace(f"{self._config.rootpath}/", "").replace(f"{Path.cwd()}/", "")

    # The end.

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        gc.collect()
        for thing in self._births.settle():
            if (birth := self._born_in.pop(id(_origin(thing)), None)) is not None:
                self._add_late(birth[1], _held_incident(thing), has_failed=birth[2])
        for incident in self._take_heard(()):
            self._losses.append((self._last or "(no test)", f"{incident} (noticed after the last test)"))
            self._needs_failure = True
        output: dict[str, Any] | None = getattr(self._config, "workeroutput", None)
        if output is not None:  # a worker of pytest-xdist: the summary is the controller's to print
            output["troth"] = {"losses": self._losses, "needs_failure": self._needs_failure}
        elif self._needs_failure and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        worker_report = getattr(node, "workeroutput", {}).get("troth")
        if worker_report:
            self._losses.extend((nodeid, text) for nodeid, text in worker_report["losses"])
            self._needs_failure = self._needs_failure or worker_report["needs_failure"]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._losses:
            return
        tests = len({nodeid for nodeid, _ in self._losses})
        terminalreporter.section(f"troth: {len(self._losses)} lost in {tests} test{'s' * (tests > 1)}")
        for nodeid, text in self._losses:
            terminalreporter.write_line(f"{nodeid}\n    {self._short(text)}")


def _recording() -> object:
    """The list into which warnings are being recorded at this moment; pytest itself records them around each test."""
    return getattr(getattr(warnings, "_showwarnmsg_impl", None), "__self__", None)


def _allowed(item: pytest.Item) -> tuple[str, ...]:
    """The patterns of all `troth` markers on this test; a marker that makes no sense allows nothing."""
    return tuple(pattern for marker in item.iter_markers("troth") for pattern in _patterns(marker) or ())


def _patterns(marker: pytest.Mark) -> tuple[str, ...] | None:
    if marker.args or set(marker.kwargs) != {"allow"}:
        return None
    allow = marker.kwargs["allow"]
    if isinstance(allow, bool):
        return ("*",) if allow else ()
    names = (allow,) if isinstance(allow, str) else tuple(allow) if isinstance(allow, list | tuple | set) else (None,)
    return names if all(isinstance(name, str) for name in names) else None


class _Markers:
    """Refuses markers that make no sense.

    Not in the wrapper around the setup: other plugins would tear down what they have had no chance to set up.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if any(_patterns(marker) is None for marker in item.iter_markers("troth")):
            pytest.fail(
                "The marker `troth` takes one argument, `allow=`: True, the name of a coroutine, a pattern, or a "
                "list of these.\n"
                "The test was not run.\nWrite for instance `@pytest.mark.troth(allow='save')`.",
                pytrace=False,
            )


def _is_allowed(incident: "Incident", patterns: Sequence[str]) -> bool:
    """Whether a pattern matches the qualified name, or its end from a dot on: `save` and `Store.save` both do."""
    short_name = incident.name.replace(".<locals>", "")
    return any(
        fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name, f"*.{pattern}")
        for pattern in patterns
        for name in (incident.name, short_name)
    )


def _may_still_be_awaited(item: pytest.Item) -> bool:
    """Whether something of this test still has to be torn down that could await what the test has left behind."""
    info = getattr(item, "_fixtureinfo", None)
    if info is None:
        return True
    for definitions in info.name2fixturedefs.values():
        for definition in definitions:
            function = definition.func
            if definition.scope != "function":
                continue
            if str(getattr(function, "__module__", "")).startswith(_HARMLESS) and "xunit" not in definition.argname:
                continue
            is_plain = inspect.isfunction(inspect.unwrap(function)) and not hasattr(function, "__wrapped__")
            if not is_plain or inspect.isgeneratorfunction(function) or "request" in definition.argnames:
                return True
    return False


def _held_incident(thing: Any) -> "Incident":
    from troth.guard._describe import coroutine_incident, exception_incident

    if hasattr(thing, "cr_frame"):
        return coroutine_incident(thing, "it was still referenced when the test ended")
    return exception_incident(thing, thing._exception)


def _origin(thing: Any) -> object:
    inner = thing.get_coro() if hasattr(thing, "get_coro") else thing
    return getattr(inner, "cr_origin", None)


def _where(incident: "Incident") -> str:
    """The line to look at; where Python or pytest called the `async def` (a test, in a thread), that is the `def`."""
    return "{}:{}".format(*_line(incident))


def _line(incident: "Incident") -> tuple[str, int]:
    from troth.guard._place import is_stdlib

    is_foreign = incident.file.startswith(_machinery()) or is_stdlib(incident.file)
    if incident.file and not (is_foreign and incident.defined_file):
        return incident.file, incident.line
    return incident.defined_file, incident.defined_line


def _machinery() -> tuple[str, ...]:
    """The folders of what runs the tests; by the packages that are loaded, as a project may have a folder `anyio`."""
    files = [getattr(sys.modules.get(name), "__file__", None) for name in _MACHINERY]
    return tuple(f"{Path(file).parent}{os.sep}" for file in files if file)


def _source_line(incident: "Incident") -> str | None:
    import linecache

    return linecache.getline(*_line(incident)).strip() or None


def _way(incident: "Incident") -> list[tuple[str, int, str]]:
    """The callers up to the test, leaving out Python itself, pytest and its plugins."""
    from troth.guard._place import is_stdlib

    at = next((i for i, frame in enumerate(incident.stack) if frame[:2] == (incident.file, incident.line)), 0)
    way: list[tuple[str, int, str]] = []
    machinery = _machinery()
    for frame in incident.stack[at + 1 :]:
        if frame[0].startswith(machinery):
            break
        if not is_stdlib(frame[0]):
            way.append(frame)
    return way
