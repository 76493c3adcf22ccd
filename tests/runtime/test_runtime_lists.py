"""`runtime.lists`: every list in both colors, for runs of workflows alone, and with states that there are."""

import asyncio
import inspect

import pytest

from troth.errors import MisuseError
from troth.runtime import Runtime, Workflow, step
from troth.runtime.engine import Step
from troth.runtime.lists import Lists

VERBS = sorted(name for name, _ in inspect.getmembers(Lists, inspect.isfunction) if not name.startswith(("_", "a")))


def fail():
    raise ValueError("no stamps left")


def other():
    return (yield Step("int", int))


@pytest.fixture
def runtime(tmp_path):
    with Runtime(tmp_path / "troth.db", in_process=False) as runtime:
        runtime.run(Workflow("pack", step("a", function=int)), run_id="pack-1")
        runtime.run(Workflow("ship", step("a", function=fail)), run_id="ship-1", check=False)
        runtime.engine.run(other, run_id="no workflow")
        yield runtime


def test_every_verb_has_both_colors():
    """With the same arguments and one meaning."""
    assert (
        sorted(["runs", "conversations", "sessions", "promises", "jobs", "deliveries", "search", "counts", "changes"])
        == VERBS
    )
    for name in VERBS:
        sync, pair = getattr(Lists, name), getattr(Lists, f"a{name}")
        assert not inspect.iscoroutinefunction(sync)
        assert inspect.iscoroutinefunction(pair)
        assert inspect.signature(sync) == inspect.signature(pair)


@pytest.mark.parametrize("name", VERBS)
def test_both_colors_tell_the_same(runtime, name):
    """Of one store at one moment."""
    words = ("ship",) if name == "search" else ()
    assert asyncio.run(getattr(runtime.lists, f"a{name}")(*words)) == getattr(runtime.lists, name)(*words)


def test_runs_are_those_of_workflows(runtime):
    """In lists and in counts; each can be had with the report of its steps."""
    assert [run.id for run in runtime.lists.runs()] == ["ship-1", "pack-1"]
    assert dict(runtime.lists.counts().runs) == {"completed": 1, "failed": 1}
    (failed,) = runtime.lists.runs(state="failed")
    assert (failed.label, failed.error_type is not None, "no stamps left" in failed.error) == ("ship", True, True)
    (report,) = runtime.run_page(state="failed")
    assert [one.place for one in report.failures] == ["a"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda lists: lists.runs(state="fialed"),
        lambda lists: lists.runs(state=["failed", "fialed"]),
        lambda lists: lists.conversations(state="talking"),
        lambda lists: lists.sessions(state="gone"),
        lambda lists: lists.deliveries(state="lost"),
        lambda lists: lists.promises(state="kept"),
    ],
    ids=["run", "one of two", "conversation", "session", "delivery", "promise"],
)
def test_a_state_that_there_is_not(runtime, ask):
    """Refused, with those that there are."""
    with pytest.raises(MisuseError, match="There is no state"):
        ask(runtime.lists)
