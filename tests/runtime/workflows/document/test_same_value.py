"""YAML, the Python builder, the published schema and the record speak of the same workflow."""

import json
import sys
from datetime import timedelta

import jsonschema
import pytest

from troth.runtime.workflows.document.digest import digest_of
from troth.runtime.workflows.document.document import dump_workflow
from troth.runtime.workflows.document.json_schema import FILE, published, workflow_schema
from troth.runtime.workflows.document.nodes import plain
from troth.runtime.workflows.document.problems import InvalidWorkflowError
from troth.runtime.workflows.document.yaml_reader import read_yaml
from troth.runtime.workflows.kinds import kinds
from troth.runtime.workflows.link.builder import Workflow, step
from troth.runtime.workflows.link.linker import Registry
from troth.runtime.workflows.link.load import load_workflow, read_spec, spec_of_document

EVERY_KIND = """
troth: 1
name: everything
description: one step of each kind
inputs:
  order: {type: string, description: its number}
  people: {type: list, items: string, default: [ann]}
  limit: {type: number, min: 1, max: 9, default: 3}
  extra: {type: object, fields: {note: {type: string, required: false, pattern: ^a}}, required: false}
on_error: stop
budget: {time: 1m30s, steps: 100}
steps:
  - id: charge
    description: takes the money
    function: shop:charge
    inputs: {order: inputs.order, amount: 3}
    output: {fields: {payment: string, amount: number}}
    retry: {attempts: 4, delay: 250ms, backoff: fixed, jitter: 0.5, on: [ConnectionError, httpx.ConnectError]}
    timeout: 10s
    undo: {function: shop:refund, inputs: {order: inputs.order, result: result}, retry: 5, timeout: 2s}
  - {id: look, tool: search, inputs: {query: {text: "order ${inputs.order} of ${run.id}"}}, optional: true, default: []}
  - {id: ask, agent: helper, inputs: {question: {value: {any: [thing]}}}}
  - id: route
    branch:
      - when: steps.charge.amount > 2 and len(inputs.people) == 1
        steps:
          - {id: small, sleep: 1s}
      - otherwise: []
  - id: both
    parallel:
      - {id: left, function: shop:ship, inputs: {order: inputs.order}}
      - {id: right, function: shop:ship, inputs: {order: steps.left.parcel}, after: left}
    join: any
    at_once: 2
  - id: mails
    each: inputs.people
    item: person
    join: 1
    at_once: 3
    steps:
      - {id: mail, function: shop:ship, inputs: {order: person}}
  - id: poll
    loop:
      - {id: check, function: shop:classify, inputs: {text: inputs.order}}
    at_most: 5
    until: steps.check.kind == "bug" or round >= 2
    pause: 10ms
    on_limit: continue
  - id: inner
    workflow: {troth: 1, name: small, inputs: {a: any}, steps: [{id: nap, sleep: 5ms}]}
    inputs: {a: [inputs.order, 1, null]}
  - {id: ok, approval: "Ship it?", show: {order: inputs.order}, timeout: 1d, on_deny: continue}
  - id: together
    saga:
      - {id: reserve, function: shop:ship, inputs: {order: inputs.order}, undo: shop:refund}
output: {payment: steps.charge.payment, parcel: steps.both.left}
"""
REGISTRY = Registry(tools={"search": lambda query: []}, agents={"helper": lambda question: "yes"})


@pytest.fixture
def everything(written):
    return written(EVERY_KIND, head=False)


def test_the_example_has_every_kind(everything):
    """So that what is shown of it is shown of all."""
    spec = load_workflow(everything, REGISTRY).spec
    assert {one.kind for one in spec.all_steps()} == set(kinds()), "add a step of the new kind to EVERY_KIND"


def test_a_spec_written_down_is_read_back_equal(everything):
    """The record of a run holds the document; the workflow it gives is the same value, with the same digest."""
    spec = read_spec(everything)
    document = dump_workflow(spec)
    assert json.loads(json.dumps(document)) == document
    again = spec_of_document(document)
    assert again == spec
    assert digest_of(again) == digest_of(spec)


def test_the_digest_sees_meaning_and_not_spelling(everything):
    """Comments and order of keys do not count, a changed number does."""
    text = everything.read_text(encoding="utf-8")
    before = digest_of(read_spec(everything))
    everything.write_text(
        f"# a comment\n{text}".replace("join: 1\n    at_once: 3", "at_once: 3\n    join: 1"), encoding="utf-8"
    )
    assert digest_of(read_spec(everything)) == before
    everything.write_text(text.replace("attempts: 4", "attempts: 5"), encoding="utf-8")
    assert digest_of(read_spec(everything)) != before


def test_the_builder_makes_the_same_value_as_yaml(shop, written, monkeypatch):
    """The keys are the same; a function stands where YAML has its name."""
    monkeypatch.syspath_prepend(str(shop))
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    import shop as module

    path = written(
        """
        troth: 1
        name: order
        inputs: {order: string}
        steps:
          - {id: charge, function: shop:charge, inputs: {order: inputs.order}, undo: shop:refund, timeout: 1m30s}
          - id: route
            branch:
              - {when: steps.charge.amount > 5, steps: [{id: nap, sleep: 200ms}]}
              - otherwise: []
        """,
        head=False,
    )
    built = Workflow(
        "order",
        step(
            "charge",
            function=module.charge,
            inputs={"order": "inputs.order"},
            undo=module.refund,
            timeout=timedelta(seconds=90),
        ),
        step(
            "route",
            branch=[
                {"when": "steps.charge.amount>5", "steps": [step("nap", sleep="200ms")]},
                {"otherwise": []},
            ],
        ),
        inputs={"order": "string"},
    )
    assert built.spec == read_spec(path)
    monkeypatch.delitem(sys.modules, "shop", raising=False)


def test_the_builder_points_to_the_line_in_python():
    """A problem in a workflow built in Python has the file and line of the step."""
    with pytest.raises(InvalidWorkflowError) as refused:
        Workflow("order", step("nap", slep="1s"))
    (problem,) = refused.value.problems
    assert problem.mark.file == __file__
    assert "Did you mean `sleep`?" in problem.advice


def test_two_lambdas_are_two_functions():
    """They share a qualified name; the workflow tells them apart."""
    built = Workflow("order", step("a", function=lambda: 1), step("b", function=lambda: 2))
    assert [load_workflow(built).callee(one.body.function).action.call() for one in built.spec.steps] == [1, 2]


def test_the_published_schema_is_the_one_the_loader_reads_by():
    """`python -m troth.runtime.workflows.document.json_schema` writes it again."""
    assert FILE == "workflow-v1.json"
    is_same = json.loads(published()) == json.loads(json.dumps(workflow_schema()))
    assert is_same, "run `python -m troth.runtime.workflows.document.json_schema`, and read the diff"
    jsonschema.Draft202012Validator.check_schema(workflow_schema())


def test_the_schema_accepts_what_the_loader_accepts(everything):
    """The document of every kind, as it is kept and as it was written."""
    jsonschema.validate(dump_workflow(read_spec(everything)), workflow_schema())
    jsonschema.validate(plain(read_yaml(everything.read_text(encoding="utf-8"), "f")), workflow_schema())


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([{"id": "a", "slep": "1s"}], id="unknown key"),
        pytest.param([{"id": "a", "sleep": 5}], id="no unit"),
        pytest.param([{"id": "a", "sleep": "1s", "approval": "x"}], id="two kinds"),
        pytest.param([{"sleep": "1s"}], id="no id"),
        pytest.param([{"id": "a-b", "sleep": "1s"}], id="bad id"),
        pytest.param([{"id": "a", "sleep": "1s", "retry": 3}], id="a key of another kind"),
        pytest.param([{"id": "a", "function": "m:f", "retry": {"atempts": 3}}], id="unknown key in retry"),
        pytest.param([{"id": "a", "branch": [{"when": "true", "steps": []}]}], id="no otherwise"),
        pytest.param([{"id": "a", "loop": []}], id="no bound"),
        pytest.param([{"id": "a", "function": "m:f", "inputs": {"x": {"vale": 1}}}], id="no source"),
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(steps):
    """The editor underlines what `troth validate` would tell."""
    document = {"troth": 1, "name": "x", "steps": steps}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, workflow_schema())
    with pytest.raises(InvalidWorkflowError):
        Workflow("x", *[step(one.pop("id", "a b"), **one) for one in steps])


def test_two_workflows_may_each_have_a_module_of_the_same_name(tmp_path):
    """Each finds the module beside it, and what a neighbour of that module is called does not leak."""
    specs = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "mysteps.py").write_text("import helper\ndef f(): return helper.N\n", encoding="utf-8")
        (folder / "helper.py").write_text(f"N = {number}\n", encoding="utf-8")
        (folder / "w.yaml").write_text("troth: 1\nname: w\nsteps: [{id: a, function: 'mysteps:f'}]\n", encoding="utf-8")
        linked = load_workflow(folder / "w.yaml")
        specs.append(linked.callee(linked.spec.steps[0].body.function).action.call)
    assert specs[0]() == 1
    for name in ("mysteps", "helper"):
        sys.modules.pop(name, None)
