"""Scoring a project's tests with real pytest runs."""

import json
import sqlite3
import sys
import time

import pytest

from troth.analysis.mutate.measure.by_tests import score_tests
from troth.analysis.mutate.measure.coverage import read_coverage
from troth.analysis.mutate.measure.reach import probed
from troth.analysis.mutate.operators import all_operators
from troth.analysis.mutate.plan import make_plan
from troth.errors import MisuseError, RunError

# Plugins of the surrounding environment would only cost time here.
PYTEST = (
    f"{sys.executable} -m pytest -q -p no:cacheprovider -p no:asyncio -p no:xdist -p no:hypothesispytest -p no:anyio"
)


def score(root, command=f"{PYTEST} tests", *, coverage=None, jobs=1, limit=None, operators=("drop-await",)):
    plan = make_plan([root / "src"], operators=operators, n=100, seed=7)
    notices = []
    results = score_tests(
        plan.mutants,
        command=command,
        project=plan.project,
        layout=plan.layout,
        jobs=jobs,
        limit=limit,
        coverage=coverage,
        notice=notices.append,
    )
    by_key = {mutant.key: mutant for mutant in plan.mutants}
    return {by_key[result.key].function: result for result in results}, notices


def verdicts(results):
    return {function: str(result.verdict) for function, result in sorted(results.items())}


EXPECTED = {
    "Shop.audit": "survived",  # the test runs it and looks at nothing
    "Shop.count": "caught",
    "Shop.never": "unreached",
    "Shop.order": "caught",
    "Shop.report": "caught",
    "Store.save": "survived",  # `asyncio.sleep(0)`
}


def test_a_mutant_is_caught_when_the_command_fails(project):
    """What passed fails now, with the name of the failing test; what no test reaches is not run at all."""
    results, notices = score(project, jobs=2)
    assert verdicts(results) == EXPECTED
    assert "test_count" in results["Shop.count"].said[0]
    assert notices == []


def test_a_hang_counts_apart(project):
    """A test that waits forever is ended, and is neither a catch nor a survivor."""
    (project / "src/shop/store.py").write_text(
        "import time\nasync def ready():\n    return False\nasync def wait():\n    while await ready():\n"
        "        time.sleep(0.01)\n"
    )
    begun = time.monotonic()
    run = "import asyncio; from shop.store import wait; asyncio.run(wait())"
    results, _ = score(project, f'{sys.executable} -c "{run}"', limit=8)
    assert verdicts(results) == {"wait": "hung"}
    assert time.monotonic() - begun < 60


def test_tests_that_fail_anyway_are_refused(project):
    """A command that fails on the untouched copy notices nothing."""
    (project / "tests/test_shop.py").write_text("def test_no():\n    assert False\n")
    with pytest.raises(RunError, match="untouched copy"):
        score(project)


def test_a_command_that_runs_something_else_is_told(project):
    """If no mutant is reached at all, the reader is told what the reason may be."""
    results, notices = score(project, f"{sys.executable} -c pass")
    assert set(verdicts(results).values()) == {"unreached"}
    assert "installed copy" in notices[0]


def coverage_database(path, rows):
    """A database as coverage.py lays it out, as far as it is read."""
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE file (id INTEGER PRIMARY KEY, path TEXT);"
            "CREATE TABLE context (id INTEGER PRIMARY KEY, context TEXT);"
            "CREATE TABLE line_bits (file_id INTEGER, context_id INTEGER, numbits BLOB);"
            "CREATE TABLE arc (file_id INTEGER, context_id INTEGER, fromno INTEGER, tono INTEGER);"
        )
        for number, (file, context, lines) in enumerate(rows, 1):
            bits = bytearray(max(lines, default=0) // 8 + 1)
            for line in lines:
                bits[line // 8] |= 1 << line % 8
            database.execute("INSERT INTO file VALUES (?, ?)", (number, file))
            database.execute("INSERT INTO context VALUES (?, ?)", (number, context))
            database.execute("INSERT INTO line_bits VALUES (?, ?, ?)", (number, number, bytes(bits)))
    database.close()
    return path


def coverage_report(path, rows):
    files = {}
    for file, context, lines in rows:
        entry = files.setdefault(file, {"executed_lines": [], "contexts": {}})
        for line in lines:
            entry["executed_lines"].append(line)
            entry["contexts"].setdefault(str(line), []).append(context)
    path.write_text(json.dumps({"files": files}))
    return path


def line_of(root, text):
    lines = (root / "src/shop/store.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize("write", [coverage_database, coverage_report], ids=["database", "JSON report"])
@pytest.mark.parametrize("name", ["src/shop/store.py", "{root}/src/shop/store.py"], ids=["relative", "absolute"])
def test_coverage_data_is_read(project, tmp_path, write, name):
    """Both forms say which lines ran and in which tests, whether their paths are absolute or not."""
    rows = [(name.format(root=project), "tests/test_shop.py::test_a|run", [3, 9, 16])]
    read = read_coverage(write(tmp_path / "data", rows), project)
    assert read.is_reached("src/shop/store.py", 9, 9) is True
    assert read.is_reached("src/shop/store.py", 10, 15) is False
    assert read.is_reached("src/shop/other.py", 9, 9) is None
    assert read.tests("src/shop/store.py", 9, 10) == ("tests/test_shop.py::test_a",)


def test_only_tests_that_reach_a_mutant_are_run(project, tmp_path):
    """The command gets the tests by name, and lines that never ran are not tried."""
    log = tmp_path / "log"
    spy = tmp_path / "spy.py"
    spy.write_text(
        "import sys, subprocess, shlex\n"
        f"open({str(log)!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
        f"sys.exit(subprocess.call(shlex.split({PYTEST!r}) + sys.argv[1:]))\n"
    )
    path = "src/shop/store.py"
    rows = [
        (path, "tests/test_shop.py::test_audit|run", [line_of(project, '"audit"')]),
        (path, "tests/test_shop.py::test_count|run", [line_of(project, "n = await")]),
        (path, "tests/test_shop.py::gone|run", [line_of(project, "return await self.store.save")]),
    ]
    coverage = read_coverage(coverage_report(tmp_path / "c.json", rows), project)
    results, _ = score(project, f"{sys.executable} {spy} {{tests}}", coverage=coverage)
    assert verdicts(results) == {
        "Shop.audit": "survived",
        "Shop.count": "caught",
        "Shop.never": "unreached",
        "Shop.order": "unreached",
        "Shop.report": "caught",  # the named test is gone, so the whole command decided
        "Store.save": "unreached",
    }
    asked = log.read_text().splitlines()
    assert asked[0] == ""
    assert asked.count("tests/test_shop.py::test_audit") == 1
    assert asked.count("tests/test_shop.py::gone") == 2  # once on the mutant and once untouched


@pytest.mark.parametrize("text", [pytest.param("not json", id="neither form"), pytest.param("[1]", id="another JSON")])
def test_other_files_are_refused_as_coverage_data(tmp_path, text):
    """With the reason and what to give instead."""
    (tmp_path / "data").write_text(text)
    with pytest.raises(MisuseError, match="coverage"):
        read_coverage(tmp_path / "data", tmp_path)


PROBED = [
    pytest.param("    await g()\n", id="a statement"),
    pytest.param("    a(); await g()\n", id="behind a semicolon"),
    pytest.param("    if x: await g()\n", id="on the line of its if"),
    pytest.param("    if x:\n        pass\n    elif await g():\n        pass\n", id="an elif"),
    pytest.param("    while await g():\n        pass\n", id="a loop"),
    pytest.param("    async with await g() as x:\n        pass\n", id="a with"),
    pytest.param("    for x in await g():\n        pass\n", id="a for"),
    pytest.param("    match await g():\n        case _:\n            pass\n", id="a match"),
    pytest.param("    @d\n    def h(x=(await g())):\n        pass\n", id="a default below a decorator"),
    pytest.param("    '''Doc.'''\n    return [\n        await g()]\n", id="over two lines"),
]


@pytest.mark.parametrize("body", PROBED)
def test_a_probe_can_stand_before_every_statement(project, tmp_path, body):
    """The file with its probe still parses, and the probe is in it."""
    (project / "src/shop/store.py").write_text(f"async def f(x):\n{body}")
    plan = make_plan([project / "src"], operators=["drop-await"], n=9, seed=7)
    assert len(plan.mutants) == 1
    (changed,) = probed(plan.mutants, plan.project, tmp_path)
    assert ".touch()" in changed.text


def test_every_operator_can_be_probed(project, tmp_path):
    """A probe for each operator's mutants, all in one file."""
    plan = make_plan([project / "src"], operators=list(all_operators()), n=99, seed=7)
    assert {source.path for source in probed(plan.mutants, plan.project, tmp_path)} == {"src/shop/store.py"}
