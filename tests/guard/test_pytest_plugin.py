"""What the pytest plugin promises: the guilty test fails, at its line, and nobody else does.

One file of tests is run in several ways (alone, under `-W error`, spread over processes …). Beside each test stands how
it has to end; the line that loses something is marked, and the failure has to name it.
"""

import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

SUITE = """
import asyncio, gc, unittest, warnings
from unittest.mock import AsyncMock
import pytest
from app import CYCLES, KEPT, Store, fail, fire_and_forget, work


def test_bare_call():  # failed
    work()  # lost


def test_in_the_code_under_test():  # failed
    Store().save_all([1, 2])


def test_under_a_broad_except():  # failed
    try:
        work()  # lost
    except BaseException:
        pass


def test_in_a_cycle():  # failed
    cycle = [work()]  # lost
    cycle.append(cycle)


def test_in_an_old_cycle():  # failed
    cycle = [work()]  # lost
    cycle.append(cycle)
    gc.collect()
    gc.collect()
    CYCLES.append(cycle)
    gc.collect()
    del cycle
    CYCLES.clear()


def test_innocent_after_cycles():  # passed
    gc.collect()


def test_in_a_global():  # failed
    KEPT.append(work())  # lost


def test_innocent_who_clears_the_global():  # passed
    KEPT.clear()
    gc.collect()


def test_a_mock():  # failed
    AsyncMock().save()  # lost


def test_three_on_a_line():  # failed
    for _ in range(3): work()  # lost


@pytest.mark.asyncio
async def test_asyncio_condition():  # failed
    assert work()  # lost


@pytest.mark.asyncio
async def test_asyncio_awaits():  # passed
    assert await work() == 1


@pytest.mark.asyncio
async def test_asyncio_in_a_cycle():  # failed
    cycle = [work()]  # lost
    cycle.append(cycle)


@pytest.mark.asyncio
async def test_unread_exception():  # failed
    task = asyncio.create_task(fail())  # lost
    await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_fire_and_forget_in_app():  # failed
    fire_and_forget()
    await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_read_exception():  # passed
    task = asyncio.create_task(fail())
    with pytest.raises(ValueError):
        await task


@pytest.mark.anyio
async def test_anyio_loses(anyio_backend):  # failed
    work()  # lost


@pytest.mark.anyio
async def test_anyio_awaits(anyio_backend):  # passed
    await work()


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.troth(allow=True)
def test_allow_all():  # passed
    work()


@pytest.mark.troth(allow="work")
def test_allow_by_name():  # passed
    work()


@pytest.mark.troth(allow=["Store.*"])
def test_allow_pattern():  # passed
    Store().save_all([1])


@pytest.mark.troth(allow="another")
def test_allow_another():  # failed
    work()  # lost


@pytest.mark.troth("work")
def test_wrong_marker():  # error
    pass


def test_expects_the_warning():  # passed
    with pytest.warns(RuntimeWarning, match="never awaited"):
        work()


def test_expects_another_warning():  # failed
    with pytest.warns(DeprecationWarning):
        work()  # lost
        warnings.warn("old", DeprecationWarning)


def test_records_warnings():  # passed
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        work()
    assert "never awaited" in str(seen[0].message)


def test_fails_anyway():  # failed
    work()  # lost
    assert False, "for another reason"


@pytest.fixture
def drained():
    kept = []
    yield kept
    for coroutine in kept:
        asyncio.run(coroutine)


def test_awaited_by_a_fixture(drained):  # passed
    drained.append(work())


@pytest.fixture
def forgotten():
    kept = []
    yield kept


def test_lost_by_a_fixture(forgotten):  # error
    forgotten.append(work())  # lost


@pytest.fixture
def losing_setup():
    work()  # lost


def test_lost_in_setup(losing_setup):  # error
    pass


@pytest.fixture
def plain():
    return 1


def test_global_with_plain_and_builtin_fixtures(plain, monkeypatch, tmp_path):  # failed
    KEPT.append(work())  # lost


class TestXunit:
    def setup_method(self):
        self.kept = []

    def teardown_method(self):
        for coroutine in self.kept:
            asyncio.run(coroutine)

    def test_awaited_in_teardown(self):  # passed
        self.kept.append(work())


class TestPlain(unittest.TestCase):
    def test_unittest_loses(self):  # failed
        work()  # lost

    def test_unittest_expects(self):  # passed
        with self.assertWarns(RuntimeWarning):
            work()

    @unittest.skip("not today")
    def test_skipped(self):  # skipped
        work()


class TestIsolated(unittest.IsolatedAsyncioTestCase):
    async def test_isolated_loses(self):  # failed
        work()  # lost

    async def test_isolated_awaits(self):  # passed
        assert await work() == 1

    async def asyncTearDown(self):
        await work()


def test_skips_itself():  # skipped
    pytest.skip("not today")


@pytest.mark.xfail(strict=True, reason="known")
def test_expected_to_lose():  # xfailed
    work()


@pytest.mark.parametrize("coroutine", [work()])
def test_parametrized_with_a_coroutine(coroutine):  # passed
    asyncio.run(coroutine)


def test_generator_made_and_not_needed():  # passed
    async def numbers():
        yield 1
    cycle = [numbers()]
    cycle.append(cycle)


def test_thread_loses():  # failed
    import threading
    def run():
        work()  # lost
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def test_thread_is_given_an_async_function():  # failed
    import threading
    async def run(): ...  # lost
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def test_last_is_innocent():  # passed
    gc.collect()
"""

APP = """
import asyncio

KEPT, CYCLES = [], []


async def work():
    return 1


async def fail():
    raise ValueError("unread")


def fire_and_forget():
    asyncio.get_running_loop().create_task(fail())  # lost in test_fire_and_forget_in_app


class Store:
    async def save(self, value): ...

    def save_all(self, values):
        for value in values:
            self.save(value)  # lost in test_in_the_code_under_test
"""

INI = "[pytest]\nasyncio_default_fixture_loop_scope = function\n"


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str
    is_hookless: bool = False

    @property
    def outcomes(self) -> dict[str, str]:
        lines = re.findall(r"^(PASSED|FAILED|ERROR|XFAIL|XPASS|SKIPPED) \S*?::(?:\w+::)?(\w+)", self.out, re.MULTILINE)
        worst = {}
        for outcome, name in lines:
            if worst.get(name, "PASSED") == "PASSED":
                worst[name] = outcome
        return worst

    def failure_of(self, name: str) -> str:
        pattern = rf"^_+ (?:ERROR at \w+ of )?(?:\w+\.)?{name}(?:\[\w+\])? _+$(.*?)(?=^_{{5,}} |^=====)"
        return "".join(re.findall(pattern, self.out, re.MULTILINE | re.DOTALL))


def expected(suite: str) -> dict[str, str]:
    words = {"passed": "PASSED", "failed": "FAILED", "error": "ERROR", "xfailed": "XFAIL", "skipped": "SKIPPED"}
    return {name: words[word] for name, word in re.findall(r"def (test_\w+)\(.*?\):  # (\w+)", suite)}


def places(suite: str, app: str) -> list[tuple[str, str]]:
    """Each losing test, and the place it must name."""
    found, test, fixtures = [], "", {"losing_setup": "test_lost_in_setup"}
    for number, line in enumerate(suite.splitlines(), 1):
        if name := re.match(r"\s*(?:async )?def (\w+)\(", line):
            test = name[1] if name[1].startswith("test_") else fixtures.get(name[1], test)
        if line.endswith("# lost"):
            found.append((test, f"test_suite.py:{number}"))
    for number, line in enumerate(app.splitlines(), 1):
        if name := re.search(r"# lost in (\w+)", line):
            found.append((name[1], f"app.py:{number}"))
    return found


def run(folder: Path, *flags: str, environment: dict[str, str] | None = None) -> Run:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "TROTH", "PYTHON"))}
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "-p", "no:randomly", *flags]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=100, check=False,
        env=inherited | {"COLUMNS": "200"} | (environment or {}),
    )  # fmt: skip
    return Run(done.returncode, done.stdout, done.stderr)


def project(folder: Path, suite: str, ini: str = INI) -> Path:
    (folder / "app.py").write_text(APP)
    (folder / "test_suite.py").write_text(textwrap.dedent(suite))
    (folder / "pytest.ini").write_text(ini)
    return folder


WAYS = {
    "alone": ("--troth",),
    "warnings as errors": ("--troth", "-W", "error"),
    "two processes": ("--troth", "-n", "2"),
    "without pytest's own nets": (
        "--troth",
        "-p",
        "no:unraisableexception",
        "-p",
        "no:threadexception",
        "-p",
        "no:logging",
    ),
    "without the private hook": ("--troth", "-p", "hookless"),
}


@pytest.fixture(scope="module", params=list(WAYS))
def ran(request, tmp_path_factory):
    folder = project(tmp_path_factory.mktemp("suite"), SUITE)
    (folder / "hookless.py").write_text("import warnings\ndel warnings._warn_unawaited_coroutine\n")
    ran = run(folder, *WAYS[request.param], environment={"PYTHONPATH": str(folder)})
    return replace(ran, is_hookless="hookless" in WAYS[request.param])


@pytest.mark.xdist_group("guard-plugin")
def test_each_test_ends_as_it_should(ran):
    """The guilty fail, the innocent pass, in every way of running them."""
    found = ran.outcomes
    found.setdefault(
        "test_skipped", "SKIPPED" if "SKIPPED" in ran.out else "missing"
    )  # skips are folded in the summary
    found.setdefault("test_skips_itself", "SKIPPED" if "SKIPPED" in ran.out else "missing")
    assert found == expected(SUITE), ran.out + ran.err
    assert ran.code == 1


@pytest.mark.xdist_group("guard-plugin")
def test_each_failure_names_the_line(ran):
    """The line that made the promise is in the failure of the test, and in the summary at the end."""
    summary = ran.out.rpartition("= troth: ")[2]
    for test, place in places(SUITE, APP):
        if ran.is_hookless and test == "test_expects_another_warning":
            continue  # `pytest.warns` fails it first: on the way round the loss is a warning like any other
        assert place in ran.failure_of(test), (test, place, ran.failure_of(test), ran.out)
        assert place in summary
    assert "test_suite.py::test_bare_call" in summary


@pytest.mark.xdist_group("guard-plugin")
def test_no_warnings_of_its_own(ran):
    """Neither about settings nor about losses that have already failed a test."""
    assert "never awaited" not in ran.err
    warned = re.search(r"= warnings summary =+(.*?)^=", ran.out, re.DOTALL | re.MULTILINE)
    # The message alone: the path before it may lie in a clone that is called `troth`.
    messages = re.findall(r":\d+: (\w+Warning: .*)$", warned[1], re.MULTILINE) if warned else []
    assert [message for message in messages if "troth" in message] == []


def test_off_unless_asked_for(tmp_path):
    """Without switch, ini or environment nothing is watched or imported: the test passes, as pytest has it."""
    suite = """
        import sys
        from app import work

        def test_loses():
            work()

        def test_nothing_is_there():
            assert "troth.guard.pytest_plugin" in sys.modules
            assert "troth.guard._hub" not in sys.modules
            assert sys.get_coroutine_origin_tracking_depth() == 0
        """
    ran = run(project(tmp_path, suite))
    assert ran.outcomes == {"test_loses": "PASSED", "test_nothing_is_there": "PASSED"}, ran.out
    assert ran.code == 0
    assert "= troth: " not in ran.out


@pytest.mark.parametrize(
    ("ini", "flags", "environment"),
    [
        pytest.param(INI + "troth = true\n", (), {}, id="ini"),
        pytest.param(INI, ("--troth",), {}, id="switch"),
        pytest.param(INI, (), {"TROTH_GUARD": "1"}, id="environment"),
        pytest.param(INI, ("--troth", "--strict-markers", "--strict-config"), {"TROTH_GUARD": "1"}, id="strict, both"),
    ],
)
def test_three_ways_to_switch_it_on(ini, flags, environment, tmp_path):
    """Each is enough, and together they tell once."""
    folder = project(tmp_path, "from app import work\ndef test_loses(): work()\n", ini)
    ran = run(folder, *flags, environment=environment)
    assert ran.outcomes == {"test_loses": "FAILED"}
    assert ran.code == 1
    assert "= troth: 1 lost in 1 test =" in ran.out


def test_a_marker_with_a_mistake_in_it(tmp_path):
    """One error that says so, and none of other plugins, which were not set up."""
    ran = run(project(tmp_path, "import pytest\n@pytest.mark.troth(alow=True)\ndef test_it(): pass\n"), "--troth")
    assert ran.outcomes == {"test_it": "ERROR"}
    assert "takes one argument, `allow=`" in ran.out
    assert "KeyError" not in ran.out
    assert "1 error" in ran.out


def test_a_project_called_like_what_runs_the_tests(tmp_path):
    """Its lines are its own: they are named, and so is the way to them."""
    suite = "from app import work\ndef lose(): work()\ndef test_it(): lose()\n"
    folder = tmp_path / "anyio"
    folder.mkdir()
    ran = run(project(folder, suite), "--troth")
    assert "lost 'work' at test_suite.py:2" in ran.out
    assert "by way of test_suite.py:3 in test_it" in ran.out


def test_a_module_that_loses_while_it_is_imported(tmp_path):
    """No test is guilty: the file fails to be collected, with the line."""
    ran = run(project(tmp_path, "from app import work\nwork()\ndef test_fine(): pass\n"), "--troth")
    assert ran.code == 2
    assert "test_suite.py:2" in ran.out


WIDE = """
    import asyncio, pytest
    from app import work

    @pytest.fixture(scope="module")
    def shared():
        return [work()]

    def test_first(shared): pass
    def test_second(shared): {second}
"""


@pytest.mark.parametrize(
    ("second", "code", "says"),
    [
        pytest.param("asyncio.run(shared[0])", 0, None, id="awaited by a later test"),
        pytest.param("shared.clear()", 1, "test_suite.py::test_first\n", id="dropped by a later test"),
        pytest.param("pass", 1, "test_suite.py::test_first\n", id="dropped at the end of the module"),
    ],
)
def test_a_promise_of_a_wider_fixture(second, code, says, tmp_path):
    """It may be kept by a later test; if it is not, the run fails and names the test in which it was made."""
    ran = run(project(tmp_path, WIDE.format(second=second)), "--troth")
    assert ran.outcomes == {"test_first": "PASSED", "test_second": "PASSED"}, ran.out
    assert ran.code == code, ran.out
    assert (says in ran.out) if says else ("= troth: " not in ran.out)
