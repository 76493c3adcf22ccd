"""Workflows with agents and tools from the command line: by `module:name`, and with a runtime that `--app` names."""

import json
import sys

import pytest

from troth.cli import app
from troth.runtime import Runtime, Workflow, step
from troth.runtime.agents import Agent
from troth.runtime.workflows.link.load import load_workflow

SHOP = '''
from pathlib import Path
from troth.runtime import Runtime
from troth.runtime.agents import Agent
from troth.runtime.tools import tool

class Buyer(Agent):
    def step(self, conversation):
        conversation.say("yes")

@tool
def weigh(order: str) -> float:
    """The weight of an order."""
    return 3.5

buyer = Buyer()
UNDONE = Path(__file__).with_name("undone")

def charge(order):
    return f"pay-{order}"

def refund(order):
    UNDONE.write_text(order)

def runtime():
    return Runtime("app.db", agents={"buyer": buyer}, tools={"weigh": weigh})

async def aruntime():
    return runtime()
'''
STEPS = """
steps:
  - {id: charge, function: "shop:charge", inputs: {order: inputs.order}, undo: "shop:refund"}
  - {id: weigh, tool: TOOL, inputs: {order: inputs.order}}
  - {id: ask, agent: AGENT, inputs: {prompt: inputs.order}}
  - {id: ok, approval: "Send it?"}
"""
HEAD = "troth: 1\nname: order\ninputs: {order: string}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    for name, prefix in (("named.yaml", "shop:"), ("bare.yaml", "")):
        steps = STEPS.replace("TOOL", f'"{prefix}weigh"').replace("AGENT", f'"{prefix}buyer"')
        (tmp_path / name).write_text(HEAD + steps, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TROTH_STORE", raising=False)
    yield tmp_path
    sys.modules.pop("shop", None)


@pytest.fixture
def troth(folder, capsys):
    def run(*argv):
        code = app.run(argv)
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("file", "more"),
    [
        pytest.param("named.yaml", (), id="module:name"),
        pytest.param("bare.yaml", ("--app", "shop:runtime"), id="a runtime"),
        pytest.param("bare.yaml", ("--app", "shop.py:aruntime"), id="an async function of a file"),
    ],
)
def test_a_run_with_an_agent_is_validated_run_approved_and_cancelled(troth, folder, file, more):
    """Every verb works, and what it offers next works as it stands."""
    assert troth("validate", file, *more)[0] == 0
    code, out, _ = troth("run", file, "-i", "order=A7", "--id", "r1", *more)
    assert (code, f"troth runs approve r1{''.join(f' {word}' for word in more)}" in out) == (0, True)
    assert troth("runs", "approve", "r1", *more)[0] == 0
    run = json.loads(troth("runs", "show", "r1", "--json", *more)[1])
    assert (run["state"], run["steps"][1]["output"], run["steps"][2]["output"]) == ("completed", 3.5, "yes")
    troth("run", file, "-i", "order=A8", "--id", "r2", *more)
    assert troth("runs", "cancel", "r2", *more)[0] == 0
    assert (folder / "undone").read_text() == "A8"


@pytest.mark.parametrize("verb", ["approve", "resume", "cancel"])
def test_what_is_missing_is_told_before_anything_is_done(troth, folder, verb):
    """It is not said that nothing has to be undone, and the run is as it was: with the runtime it goes on."""
    more = ("--app", "shop:runtime")
    troth("run", "bare.yaml", "-i", "order=A7", "--id", "r1", *more)
    before = troth("runs", "show", "r1", "--json", "--store", "app.db")[1]
    code, _, err = troth("runs", verb, "r1", "--store", "app.db")
    assert (code, "there is no agent 'buyer' in this runtime" in err) == (2, True)
    assert "nothing has to be undone" not in err
    assert "was not changed" in err
    assert "--app module:runtime" in err
    assert troth("runs", "show", "r1", "--json", "--store", "app.db")[1] == before
    assert troth("runs", verb, "r1", *more)[0] == 0


def test_an_answer_alone_needs_no_agent(troth, folder):
    """`--no-resume` leaves the rest to whoever goes on; so does `cancel --no-wait`."""
    more = ("--app", "shop:runtime")
    troth("run", "bare.yaml", "-i", "order=A7", "--id", "r1", *more)
    assert troth("runs", "approve", "r1", "--no-resume", "--store", "app.db")[0] == 0
    assert json.loads(troth("runs", "resume", "r1", "--json", *more)[1])["state"] == "completed"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        pytest.param(("--app", "shop"), "Write `module:name`", id="no name"),
        pytest.param(("--app", "nosuch:runtime"), "there is no module 'nosuch'", id="no module"),
        pytest.param(("--app", "shop:runtim"), "Did you mean `runtime`?", id="misspelt"),
        pytest.param(("--app", "shop:buyer"), "leads to a value of type `Buyer`", id="no runtime"),
        pytest.param(("--app", "shop:UNDONE"), "Name a `Runtime`", id="no function"),
        pytest.param(("--app", "shop:runtime", "--store", "x.db"), "Leave `--store` out", id="two stores"),
    ],
)
def test_an_app_that_is_none_is_refused(troth, folder, more, says):
    """With a sentence, before anything is done."""
    code, _, err = troth("run", "bare.yaml", "-i", "order=A7", *more)
    assert (code, says in err) == (2, True), err


def test_a_bare_name_is_told_where_to_put_it(troth, folder):
    """Who validates without the runtime hears of `module:name`, of `Runtime(…)` and of `--app`."""
    code, out, _ = troth("validate", "bare.yaml")
    assert code == 2
    assert "there is no agent 'buyer' in this runtime" in out
    assert "`module:buyer`" in out
    assert "`Runtime(agents={'buyer': …})`" in out
    assert "--app module:runtime" in out


def test_a_class_is_no_agent(troth, folder):
    """It is told what to write instead."""
    (folder / "w.yaml").write_text(
        'troth: 1\nname: w\nsteps: [{id: a, agent: "shop:Buyer", inputs: {prompt: {value: x}}}]\n', encoding="utf-8"
    )
    out = troth("validate", "w.yaml")[1]
    assert "`Buyer` is a class, not an agent" in out
    assert "Make one: `Buyer(…)`" in out


class Echo(Agent):
    """Says what it was told."""

    def step(self, conversation):
        conversation.say(f"heard {conversation.messages()[-1].text}")


ECHO = Echo()


def test_agents_in_the_builder(tmp_path):
    """An agent stands where YAML has its name: of this module by its name, any other beside it, one inside another."""
    prompt = {"prompt": {"value": "hello"}}
    inner = Workflow("inner", step("i", agent=Echo(), inputs=prompt))
    flow = Workflow(
        "w",
        step("a", agent=ECHO, inputs=prompt),
        step("b", agent=Echo(), inputs=prompt),
        step("c", agent=lambda prompt: prompt.upper(), inputs=prompt),
        step("d", workflow=inner),
    )
    assert [one.body.agent.name for one in flow.spec.steps[:2]] == [f"{__name__}:ECHO", f"{__name__}:Echo"]
    with Runtime(tmp_path / "runs.db") as runtime:
        run = runtime.run(flow)
    outputs = [run.step(place).output for place in ("a", "b", "c", "d.i")]
    assert outputs == ["heard hello", "heard hello", "HELLO", "heard hello"]


def test_tools_in_the_builder(folder):
    """The same for tools, and as an undo."""
    sys.modules.pop("shop", None)
    sys.path.insert(0, str(folder))
    try:
        import shop  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(folder))
    flow = Workflow(
        "w",
        step("a", tool=shop.weigh, inputs={"order": {"value": "A7"}}, undo={"tool": shop.weigh}),
        step("b", tool=lambda: 3),
    )
    assert flow.spec.steps[0].body.tool.name == "shop:weigh"
    assert load_workflow(flow).callees
    with Runtime(folder / "runs.db") as runtime:
        assert runtime.run(flow).output == 3
