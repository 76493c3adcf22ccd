"""Scoring a checker on a real project with a real command."""

import sys
from pathlib import Path

import pytest

from troth.analysis.mutate.checkers import command_checker
from troth.analysis.mutate.measure.batch import batches
from troth.analysis.mutate.measure.by_checker import score_checker
from troth.analysis.mutate.operators import all_operators
from troth.analysis.mutate.plan import make_plan
from troth.analysis.mutate.result import MutantVerdict
from troth.errors import MisuseError, RunError


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")


def plan_of(root, *operators, n=100):
    return make_plan([root / "src"], operators=operators or ["drop-await"], n=n, seed=7)


def score(plan, command, *, batch_size=60, **options):
    results = score_checker(
        plan.mutants,
        checker=command_checker(command, **options),
        operators=plan.operators,
        project=plan.project,
        layout=plan.layout,
        batch_size=batch_size,
        limit=30,
    )
    by_key = {mutant.key: mutant for mutant in plan.mutants}
    found = {by_key[result.key].function: result for result in results}
    assert len(found) == len(plan.mutants), "the functions of a test project need different names"
    return found


def verdicts(results):
    return {function: str(result.verdict) for function, result in results.items()}


def test_new_findings_of_the_right_kind_on_the_line_count(project, checker):
    """The checker sees a lost bare call, condition and return, and not an assigned one."""
    assert verdicts(score(plan_of(project), checker, kind="X100")) == {
        "Store.save": "survived",  # `asyncio.sleep` is defined elsewhere
        "Shop.order": "caught",
        "Shop.count": "survived",
        "Shop.audit": "caught",
        "Shop.report": "caught",
        "Shop.never": "caught",
    }


def test_a_finding_of_another_kind_is_no_catch(project, checker):
    """`drop the async` is on the line of the def, so it is neither on the line nor, with a kind, in the function."""
    results = score(plan_of(project), checker, kind="X100")
    assert results["Store.save"].verdict is MutantVerdict.SURVIVED
    without = score(plan_of(project), checker)
    assert without["Store.save"].verdict is MutantVerdict.ELSEWHERE
    assert "X200" in without["Store.save"].said[0]


def test_old_findings_are_not_new(project, checker):
    """A line that the checker objects to anyway gives nothing away, unless it objects once more."""
    write(project / "src/shop/old.py", "async def g(): ...\nasync def f():\n    g(); await g()\n")
    assert score(plan_of(project), checker, kind="X100")["f"].verdict is MutantVerdict.CAUGHT
    write(project / "src/shop/old.py", "async def g(): ...\nasync def f():\n    await h()\n    g()\n")
    assert score(plan_of(project), checker, kind="X100")["f"].verdict is MutantVerdict.SURVIVED


@pytest.mark.parametrize("operators", [("drop-await",), ("drop-await", "swallow", "compound", "blocking-call")])
def test_batching_does_not_change_verdicts(project, checker, operators):
    """One by one, in threes or all at once: every mutant gets the same verdict and the same words."""
    for number in range(6):
        write(
            project / f"src/shop/more{number}.py",
            "import asyncio\nasync def g():\n    return {'a': 1}\n"
            + "".join(
                f"async def f{number}{n}():\n    x = 1\n    await g()\n    await asyncio.sleep(1)\n" for n in range(4)
            ),
        )
    plan = plan_of(project, *operators)
    assert len(plan.mutants) > 20
    alone, threes, together = (score(plan, checker, kind="X100", batch_size=size) for size in (1, 3, 100))
    assert verdicts(alone) == verdicts(threes) == verdicts(together)
    assert "caught" in verdicts(alone).values()


def test_no_two_mutants_of_a_batch_touch_one_function(project):
    """A needless async function and its callers are not changed by anybody else meanwhile."""
    write(
        project / "src/shop/calc.py",
        "def plain(x):\n    return x\nasync def one():\n    await g(plain(1))\nasync def two():\n    await g(plain(2))\n",
    )
    plan = plan_of(project, *all_operators())
    made = batches(plan.mutants, size=100)
    assert sum(map(len, made)) == len(plan.mutants)
    for batch in made:
        touched = [name for mutant in batch for name in mutant.touches]
        assert len(touched) == len(set(touched))
    assert len(made) > 1


def test_a_crash_is_pinned_on_the_mutant_that_causes_it(project, checker):
    """The checker dies on one mutant; the others of its batch are measured all the same."""
    write(project / "src/shop/bad.py", "async def crash():\n    await crash_me()\n")
    found = verdicts(score(plan_of(project), checker, kind="X100"))
    assert found["crash"] == "crashed"
    assert [verdict for verdict in found.values() if verdict == "crashed"] == ["crashed"]
    assert found["Shop.audit"] == "caught"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        pytest.param("no-such-checker {root}", "failed on the untouched copy", id="not there"),
        pytest.param(f"{sys.executable} -c 'import time; time.sleep(60)'", "reached the time limit", id="never ends"),
        pytest.param(f"{sys.executable} -c 'raise SystemError'", "failed on the untouched copy", id="a traceback"),
    ],
)
def test_a_checker_that_fails_anyway_is_refused(project, command, words):
    """Silence of a command that did not run must not be taken for a clean bill."""
    plan = plan_of(project)
    coming = score_checker(
        plan.mutants,
        checker=command_checker(command),
        operators=plan.operators,
        project=plan.project,
        layout=plan.layout,
        batch_size=60,
        limit=2,
    )
    with pytest.raises(RunError, match=words):
        list(coming)


def test_the_project_is_never_touched(project, checker):
    """Bytes, times and the list of files are what they were; the copy leads a life of its own."""

    def state():
        return {
            path.relative_to(project): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in sorted(project.rglob("*"))
            if path.is_file()
        }

    before = state()
    wreck = f"{sys.executable} -c \"import pathlib; [p.write_text('') for p in pathlib.Path('.').rglob('*.py')]\""
    score(plan_of(project, *all_operators()), f"{checker} && {wreck}")
    assert state() == before


def test_mutants_that_would_not_parse_are_set_apart(project, checker, monkeypatch):
    """They are listed as broken and the checker never sees them."""
    from dataclasses import replace

    plan = plan_of(project)
    first = plan.mutants[0]
    bad = replace(first, edits=(first.edits[0]._replace(text="await await "),))
    assert verdicts(score(replace(plan, mutants=(bad, *plan.mutants[1:])), checker))[first.function] == "broken"


@pytest.mark.parametrize(
    ("output", "options"),
    [
        pytest.param("src/shop/store.py:{line}: lost", {}, id="path and line"),
        pytest.param("./src/shop/store.py:{line}:5: E1 lost", {}, id="with a column, from here"),
        pytest.param("{root}/src/shop/store.py:{line}:5 - error: lost", {}, id="an absolute path"),
        pytest.param("  --> src/shop/store.py:{line}:5", {}, id="an arrow before it"),
        pytest.param(
            "lost in src/shop/store.py, line {line}",
            {"pattern": r"in (?P<path>\S+), line (?P<line>\d+)"},
            id="a pattern of one's own",
        ),
        pytest.param('[{{"path": "src/shop/store.py", "line": {line}, "code": "TR1", "message": "m"}}]', {}, id="JSON"),
        pytest.param(
            '[{{"filename": "{root}/src/shop/store.py", "location": {{"row": {line}}}, "code": "R", "message": "m"}}]',
            {},
            id="JSON as ruff prints it",
        ),
    ],
)
def test_what_a_command_prints_is_understood(project, tmp_path, output, options):
    """Relative and absolute paths, columns, JSON and patterns of one's own all lead to the line."""
    plan = plan_of(project)
    audit = next(mutant for mutant in plan.mutants if mutant.function == "Shop.audit")
    script = tmp_path / "says.py"
    script.write_text(
        "import pathlib, os\n"
        "text = pathlib.Path('src/shop/store.py').read_text()\n"
        "if '        self.store.save(\"audit\")' in text:\n"
        f"    print({output!r}.format(line={audit.line}, root=os.getcwd()))\n"
        "else:\n"
        f"    print({'[]' if output.startswith('[') else ''!r})\n"
    )
    assert score(plan, f"{sys.executable} {script}", **options)["Shop.audit"].verdict is MutantVerdict.CAUGHT


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"pattern": "("}, id="no regular expression"),
        pytest.param({"pattern": "(?P<path>.*)"}, id="no group for the line"),
        pytest.param({"kind": "["}, id="a kind that is none"),
    ],
)
def test_bad_patterns_are_refused(options):
    """Before anything is copied or run."""
    with pytest.raises(MisuseError):
        command_checker("true", **options)


def test_files_of_the_copy_are_given_by_name(project):
    """`{files}` stands for the chosen files, which exist where the command runs."""
    write(project / "src/shop/a b.py", "async def f():\n    await g()\n")
    count = (
        f'{sys.executable} -c "import sys, os; sys.exit(not all(map(os.path.isfile, sys.argv[1:])) * 126)" {{files}}'
    )
    assert set(verdicts(score(plan_of(project), count)).values()) == {"survived"}


def test_links_are_copied_and_not_followed_into_the_project(project, tmp_path, checker):
    """A link inside the project leads to the copy; one that leads out is a copy of the file; none is written through."""
    outside = tmp_path / "outside.py"
    write(outside, "async def out():\n    await g()\n")
    try:
        (project / "src/shop/link.py").symlink_to(outside)
        (project / "src/shop/inner.py").symlink_to("store.py")
        (project / "src/loop").symlink_to("..", target_is_directory=True)
    except OSError:
        pytest.skip("this system does not allow links")
    look = f"{sys.executable} -c \"import os; print(os.path.realpath('src/shop/inner.py') + ':1: seen')\""
    plan = plan_of(project)
    assert {mutant.path for mutant in plan.mutants} == {"src/shop/store.py"}
    score(plan, f"{checker}; {look}")
    assert outside.read_text() == "async def out():\n    await g()\n"


def test_tools_that_are_run_by_name_find_their_words(project, tmp_path, monkeypatch):
    """Ruff is installed with the development tools, so its preset is tried for good."""
    from troth.analysis.mutate.checkers import preset

    write(project / "src/shop/calc.py", "def plain(x):\n    return x\nasync def one():\n    await g(plain(1))\n")
    plan = plan_of(project, "add-needless-async", "blocking-call")
    results = {
        result.key: result
        for result in score_checker(
            plan.mutants,
            checker=preset("ruff"),
            operators=plan.operators,
            project=plan.project,
            layout=plan.layout,
            batch_size=60,
            limit=60,
        )
    }
    assert [str(results[mutant.key].verdict) for mutant in plan.mutants if mutant.function == "plain"] == ["caught"]
