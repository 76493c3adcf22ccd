"""From a log back to the code: the logs are written by Python itself."""

import subprocess
import sys

import pytest

from troth.analysis.findings import Finding, Reason, Span
from troth.analysis.log_lookup.locate import locate
from troth.analysis.log_lookup.mentions import LoggedCall, mentions
from troth.analysis.log_lookup.sites import calls_of, definitions_of
from troth.analysis.source.lines import Lines

PROGRAMS = {
    "dropped": "async def save(): ...\n\ndef main():\n    save()\nmain()\n",
    "method": "class Store:\n    async def save(self): ...\nStore().save()\n",
    "nested": "def main():\n    async def inner(): ...\n    inner()\nmain()\n",
    "pending": (
        "import asyncio, gc\nasync def worker():\n    await asyncio.Event().wait()\n"
        "async def main():\n    asyncio.get_running_loop().create_task(worker())\n    await asyncio.sleep(0)\n"
        "    gc.collect()\n    gc.collect()\nloop = asyncio.new_event_loop()\nloop.run_until_complete(main())\n"
        "loop.close()\n"
    ),
    "exception": (
        "import asyncio\nclass Job:\n    async def fail(self): raise ValueError('x')\n"
        "async def main():\n    task = asyncio.create_task(Job().fail())\n    await asyncio.sleep(0)\n"
        "    del task\nasyncio.run(main())\n"
    ),
}


def log_of(program: str, folder, *options: str) -> list[str]:
    (folder / "app.py").write_text(PROGRAMS[program])
    command = [sys.executable, *options, str(folder / "app.py")]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stderr.splitlines()


@pytest.mark.parametrize(
    ("program", "kind", "name"),
    [
        pytest.param("dropped", "never awaited", "save", id="a function"),
        pytest.param("method", "never awaited", "Store.save", id="a method"),
        pytest.param("nested", "never awaited", "main.<locals>.inner", id="a nested function"),
        pytest.param("pending", "destroyed pending", "worker", id="a task that is destroyed"),
        pytest.param("exception", "exception lost", "Job.fail", id="a task whose exception nobody sees"),
    ],
)
def test_what_python_logs_is_understood(program, kind, name, tmp_path):
    """Each complaint is one mention, with the coroutine it is about."""
    (found,) = mentions(log_of(program, tmp_path))
    assert (found.kind, found.name, found.times) == (kind, name, 1)


@pytest.mark.parametrize("log", ["tracemalloc", "asyncio debug"])
def test_the_place_of_birth_is_known_where_python_tells_it(log, tmp_path):
    """With tracemalloc or in asyncio's debug mode it tells where the coroutine was made: the last frame."""
    lines = log_of("dropped", tmp_path, "-X", "tracemalloc=5")
    if log == "asyncio debug":
        lines = [line.replace("Object allocated", "Coroutine created").replace("lineno", "line") for line in lines]
    (found,) = mentions([*lines, "something else"])
    assert (found.is_birth, found.line, found.file) == (True, 4, str(tmp_path / "app.py"))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            ['{"kind": "coroutine", "name": "Store.save", "file": "/srv/app/store.py", "line": 7, "thread": "x"}'],
            [LoggedCall("never awaited", "Store.save", "/srv/app/store.py", 7, is_birth=True)],
            id="an object of guard",
        ),
        pytest.param(
            ['{"kind": "task", "name": "work", "file": "", "line": 0}', '{"kind": "blocked", "name": "x", "line": 1}'],
            [LoggedCall("destroyed pending", "work")],
            id="an object of guard without a place, and one that is not about a loss",
        ),
        pytest.param(
            [
                "ERROR:troth.guard:coroutine 'save' was never awaited: made at /srv/a.py:3 (defined at /srv/b.py:9)",
                "ERROR:troth.guard:task 'Task-2' ('work') was dropped while pending: made at /srv/a.py:4",
                "ERROR:troth.guard:the exception of 'fail' was never read: made at /srv/a.py:5",
            ],
            [
                LoggedCall("never awaited", "save", "/srv/a.py", 3, is_birth=True),
                LoggedCall("destroyed pending", "work", "/srv/a.py", 4, is_birth=True),
                LoggedCall("exception lost", "fail", "/srv/a.py", 5, is_birth=True),
            ],
            id="sentences of guard",
        ),
        pytest.param(
            ["2026-01-01 WARNING py.warnings /srv/a.py:3: RuntimeWarning: coroutine 'a' was never awaited"],
            [LoggedCall("never awaited", "a", "/srv/a.py", 3)],
            id="through logging",
        ),
        pytest.param(
            ["a.py:3: RuntimeWarning: coroutine 'a' was never awaited", "  a()"] * 3,
            [LoggedCall("never awaited", "a", "a.py", 3, times=3)],
            id="the same three times",
        ),
        pytest.param(['{"coroutine": 1}', "{", "coroutine 'x' was awaited", ""], [], id="nothing of the kind"),
    ],
)
def test_other_lines(lines, expected):
    """Lines of guard and of logging; the rest of a log is passed over."""
    assert mentions(lines) == expected


FILES = {
    "store.py": "class Store:\n    async def save(self): ...\n\nclass Cache:\n    def save(self): ...\n",
    "app.py": (
        "async def main(store, tasks):\n    await store.save()\n    store.save()\n    x = store.save()\n"
        "    tasks.create_task(store.save())\n"
    ),
    "broken.py": "def save(:\n",
}


@pytest.fixture
def lines(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return Lines(tmp_path)


def test_sites_by_name(lines):
    """Definitions by qualified name, calls by how their value is used, the suspicious first."""
    found = definitions_of("Store.save", sorted(FILES), lines)
    assert [(one.path, one.line, one.symbol) for one in found] == [("store.py", 2, "Store.save")]
    assert len(definitions_of("save", sorted(FILES), lines)) == 2
    found = calls_of("Store.save", sorted(FILES), lines)
    assert [(one.line, one.use) for one in found] == [(3, "dropped"), (5, "task"), (4, "kept"), (2, "awaited")]


def test_a_finding_that_points_to_the_function_is_the_site(lines):
    """Analysis knows better than names; the calls of the name are not listed then."""
    wrong = Finding(
        "TR101", "r", Span("app.py", 9, 1, 9, 2), "m", "certain", (Reason("x", "store.py", 5),), subject="save"
    )
    right = Finding(
        "TR101", "r", Span("app.py", 3, 5, 3, 9), "m", "certain", (Reason("x", "store.py", 2),), subject="save"
    )
    found = locate(LoggedCall("never awaited", "Store.save"), [wrong, right], sorted(FILES), lines)
    assert (found.findings, found.calls) == ((right,), ())


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("never awaited", [3, 5, 4]), ("destroyed pending", [5]), ("exception lost", [5])],
)
def test_without_a_finding_the_likely_calls_are_named(kind, expected, lines):
    """Those that are not awaited; for a task, those that make one."""
    found = locate(LoggedCall(kind, "Store.save"), [], sorted(FILES), lines)
    assert [one.line for one in found.calls] == expected


def test_a_place_from_another_machine_is_found_by_its_end(lines):
    """The log of a server has other folders above."""
    mention = LoggedCall("never awaited", "Store.save", "/srv/release-7/app.py", 3, is_birth=True)
    assert locate(mention, [], sorted(FILES), lines).born.path == "app.py"
