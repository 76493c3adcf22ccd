"""An argument that cannot be right gets a sentence, before anything is done; never a bare `TypeError`."""

import asyncio

import pytest

from troth.errors import MisuseError
from troth.runtime import Conversations, Retry, Runtime, Saga, Workflow, arun_workflow, run_workflow, step
from troth.runtime.engine import EmbeddedEngine, Step
from troth.runtime.store import SqliteStore
from troth.runtime.tools import tool

SECONDS = "Give a number of seconds"


def work():
    return 1


CASES = {
    "a store that is None": (lambda path: Runtime(None), "Give the path of a file"),
    "a store that is a number": (lambda path: SqliteStore(3), "Give the path of a file"),
    "an engine on nothing": (lambda path: EmbeddedEngine(None), "Give the path of a file"),
    "conversations on nothing": (lambda path: Conversations(None), "Give the path of a file"),
    "functions in a list": (lambda path: Runtime(path, functions=[work]), "Give a mapping of names"),
    "tools in a list": (lambda path: Runtime(path, tools=[work]), "Give a mapping of names"),
    "agents in a list": (lambda path: Runtime(path, agents=[work]), "Give a mapping of names"),
    "names that are none": (lambda path: Runtime(path, functions={3: work}), "a string as its name"),
    "threads as a text": (lambda path: Runtime(path, threads="4"), "Give a whole number"),
    "no threads": (lambda path: Runtime(path, threads=0), "Give a whole number, 1 or more"),
    "grace as a text": (lambda path: Runtime(path, grace="1s"), SECONDS),
    "no number": (lambda path: Runtime(path, grace=float("nan")), SECONDS),
    "busy_timeout": (lambda path: SqliteStore(path, busy_timeout="3s"), SECONDS),
    "timeout of a saga's step": (lambda path: Saga("s").step("a", do=work, undo=None, timeout="3s"), SECONDS),
    "retry of a saga's step": (lambda path: Saga("s").step("a", do=work, undo=None, retry="3"), "Give a whole number"),
    "timeout of a step": (lambda path: Step("a", work, timeout="3s"), SECONDS),
    "timeout of a tool": (lambda path: tool(timeout="3s")(work), SECONDS),
    "delay of a retry": (lambda path: Retry(delay="3s"), SECONDS),
    "attempts of a retry": (lambda path: Retry(attempts="3"), "Give a whole number"),
    "timeout in a workflow": (lambda path: Workflow("w", step("a", function=work, timeout=3)), "as in"),
    "run_workflow": (lambda path: run_workflow(Workflow("w", step("a", function=work)), functions=[]), "mapping"),
    "arun_workflow": (
        lambda path: asyncio.run(arun_workflow(Workflow("w", step("a", function=work)), functions=[])),
        "mapping",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_given_wrongly(tmp_path, monkeypatch, case):
    """It says what to give, and nothing was made."""
    monkeypatch.chdir(tmp_path)
    call, says = CASES[case]
    with pytest.raises(MisuseError) as refused:
        call(tmp_path / "runs.db")
    if case != "timeout in a workflow":
        assert says in str(refused.value)
    assert list(tmp_path.iterdir()) == []


WITH_A_RUN = {
    "events": (lambda runtime: next(runtime.events("r", timeout="3s")), SECONDS),
    "result": (lambda runtime: runtime.engine.result("r", timeout="3s"), SECONDS),
    "runs": (lambda runtime: runtime.runs(limit="x"), "Give a whole number"),
    "no state": (lambda runtime: runtime.runs(state="fialed"), "Did you mean `failed`?"),
    "inputs": (lambda runtime: runtime.run(Workflow("w", step("a", function=work)), 3), "Give a mapping"),
    "a workflow that is none": (lambda runtime: runtime.run(3), "is not a workflow"),
}


@pytest.mark.parametrize("case", WITH_A_RUN)
def test_what_is_asked_wrongly(tmp_path, case):
    """The same for the verbs of a runtime, which works on afterwards."""
    call, says = WITH_A_RUN[case]
    with Runtime(tmp_path / "runs.db") as runtime:
        runtime.run(Workflow("w", step("a", function=work)), run_id="r")
        with pytest.raises(MisuseError, match=says.replace("?", r"\?")):
            call(runtime)
        assert runtime.show("r").succeeded
