"""`troth explain`: rules in their own words, and the calls behind a log."""

import json
from importlib import resources
from pathlib import Path

import jsonschema
import pytest


@pytest.mark.parametrize("wanted", ["TR101", "tr101", "unawaited-coroutine"])
def test_a_rule_is_told_in_its_own_words(wanted, project):
    """By code or by name: what it finds, why it matters, examples, how to silence it, where to read on."""
    done = project.troth("explain", wanted)
    assert done.code == 0
    assert done.out.startswith("TR101 unawaited-coroutine  (lost calls)\n")
    for part in (
        "What it finds:",
        "Why it matters:",
        "Reported:",
        "Left alone:",
        "after `troth fix`",
        "# troth: allow",
    ):
        assert part in done.out


def test_all_rules_are_listed(project):
    """With their families."""
    done = project.troth("explain")
    assert done.code == 0
    assert "lost calls:\n  TR101  unawaited-coroutine " in done.out
    assert "upkeep:" in done.out
    marked = [line.split()[0] for line in done.out.splitlines() if line.endswith("(off by default)")]
    assert marked == ["TR301", "TR305", "TR606", "TR901", "TR902", "TR903"]
    page = (Path(__file__).parents[3] / "docs/reference/check.md").read_text(encoding="utf-8")
    schema = resources.files("troth.analysis").joinpath("settings.schema.json").read_text()
    assert page.count("TR301, TR305, TR606 and ") == 2, "the page says which are off"
    assert "(TR301, TR305, TR606, and `migrate`" in schema


@pytest.mark.parametrize("family", ["TR9", "tr9", "T9", "migrate", "migration"])
def test_a_family_is_listed(family, project):
    """By the word that `--select` takes, or by its own."""
    done = project.troth("explain", family)
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines() if line.startswith("  ")] == ["TR901", "TR902", "TR903"]
    assert "`troth explain TR901` explains one of them." in done.out
    listed = json.loads(project.troth("explain", family, "--output-format", "json").out)
    assert [rule["code"] for rule in listed["rules"]] == ["TR901", "TR902", "TR903"]


def test_a_rule_says_that_it_is_off_by_default(project):
    """And how it is switched on."""
    told = "Off by default: `--extend-select needless-async` switches it on."
    assert told in project.troth("explain", "TR301").out
    assert "Off by default" not in project.troth("explain", "TR101").out


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        pytest.param("unawaited-corutine", "Did you mean 'unawaited-coroutine'?", id="near"),
        pytest.param("nosuch", "Run `troth explain` to list the rules.", id="nothing near"),
    ],
)
def test_a_rule_that_does_not_exist(wanted, says, project):
    """Exit 2, and a neighbour only if it is near."""
    done = project.troth("explain", wanted)
    assert (done.code, done.out) == (2, "")
    assert says in done.err


def test_the_call_behind_a_log(buggy):
    """The place is found by analysis, from the log that the program itself wrote."""
    buggy.write({"run.py": "import asyncio\nimport service\n\nasyncio.run(service.main())\n"})
    done = buggy.shell("python3 run.py 2> app.log; troth explain --log app.log")
    assert "`Store.save` was called and never awaited" in done.out
    assert "defined  store.py:2" in done.out
    assert "lost at  service.py:6:5  TR101" in done.out
    assert done.code == 0


def test_the_task_behind_a_log(project):
    """A task that was destroyed leads to the place that made it and did not keep it."""
    project.write(
        {
            "jobs.py": (
                "import asyncio\n\n\nclass Pool:\n    async def work(self):\n        await asyncio.Event().wait()\n\n"
                "    async def start(self):\n        asyncio.create_task(self.work())\n\n"
                "    async def other(self):\n        self.kept = asyncio.create_task(self.work())\n"
            ),
            "app.log": (
                "ERROR:asyncio:Task was destroyed but it is pending!\n"
                "task: <Task pending name='Task-2' coro=<Pool.work() running at /srv/jobs.py:6> wait_for=<Future pending>>\n"
            ),
        }
    )
    done = project.troth("explain", "--log", "app.log")
    assert "`Pool.work` ran in a task that was destroyed before it had finished" in done.out
    assert "lost at  jobs.py:9:9  TR112 dropped-task" in done.out
    assert "jobs.py:12" not in done.out


def test_a_log_on_stdin_that_names_a_stranger(buggy):
    """What is not in the project is said to be elsewhere."""
    done = buggy.shell(
        "echo \"x.py:1: RuntimeWarning: coroutine 'Other.thing' was never awaited\" | troth explain --log -"
    )
    assert (done.code, "not found" in done.out) == (1, True)


def test_a_log_without_lost_calls(buggy):
    """Is said to have been read."""
    buggy.write({"app.log": "started\nstopped\n"})
    assert buggy.troth("explain", "--log", "app.log").out == "app.log mentions no lost call (2 lines read)\n"


@pytest.mark.parametrize("arguments", [["--log", "missing.log"], ["TR101", "--log", "-"]])
def test_wrong_use(arguments, buggy):
    """Exit 2."""
    assert buggy.troth("explain", *arguments).code == 2


EXPLAIN = json.loads(
    resources.files("troth.analysis.report").joinpath("schemas/explain-v1.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("wanted", [[], ["TR301"], ["unused-allow"]])
def test_rules_as_json(wanted, project):
    """As the schema says: one rule, or all of them."""
    done = project.troth("explain", *wanted, "--output-format", "json")
    document = json.loads(done.out)
    jsonschema.validate(document, EXPLAIN)
    names = [one["name"] for one in document["rules"]]
    assert len(names) == 1 if wanted else names > ["coroutine-as-text"]
    if wanted == ["TR301"]:
        (rule,) = document["rules"]
        assert (rule["code"], rule["name"], rule["is_default"]) == ("TR301", "needless-async", False)
        assert "What it finds" in [part["heading"] for part in rule["parts"]]
        assert {example["is_bad"] for example in rule["examples"]} == {True, False}


@pytest.mark.parametrize(
    ("log", "count"),
    [
        pytest.param("RuntimeWarning: coroutine 'Store.save' was never awaited\n" * 3, 1, id="a lost call"),
        pytest.param("all is well\n", 0, id="none"),
    ],
)
def test_the_calls_behind_a_log_as_json(log, count, buggy):
    """With the findings in the shape that `check` gives them."""
    buggy.write({"app.log": log})
    done = buggy.troth("explain", "--log", "app.log", "--output-format", "json")
    document = json.loads(done.out)
    jsonschema.validate(document, EXPLAIN)
    assert (len(document["lost"]), document["root"]) == (count, str(buggy.root))
    for lost in document["lost"]:
        assert (lost["name"], lost["kind"], lost["times"]) == ("Store.save", "never awaited", 3)
        assert [(one["code"], one["line"]) for one in lost["lost_at"]] == [("TR101", 6)]
