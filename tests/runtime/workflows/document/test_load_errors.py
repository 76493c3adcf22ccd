"""Everything that is wrong with a workflow is told at once, before anything runs, each with its place."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from troth.runtime.workflows.document.document import dump_workflow
from troth.runtime.workflows.document.problems import InvalidWorkflowError
from troth.runtime.workflows.link.linker import Registry
from troth.runtime.workflows.link.load import WorkflowNotFoundError, load_recorded, load_workflow, parse_workflow

REGISTRY = Registry(
    functions={"local": lambda order: order},
    tools={"search": lambda query: [query]},
    agents={"helper": lambda question: question},
)


def problems(path):
    with pytest.raises(InvalidWorkflowError) as refused:
        load_workflow(path, REGISTRY)
    return refused.value.problems


# Each row: the steps (they begin at line 6, indented by two), the place, what is said, what is advised.
STEPS = [
    pytest.param("- {id: a, function: shop:charge, input: {}}", "6:36", "unknown key `input`", "Did you mean `inputs`?", id="unknown key"),
    pytest.param("- {id: a, funtion: shop:charge}", "6:13", "unknown key `funtion`", "Did you mean `function`?", id="misspelt kind"),
    pytest.param("- {id: a}", "6:5", "has no action", "Kinds: agent", id="no kind"),
    pytest.param("- {id: a, sleep: 1s, approval: ok?}", "6:5", "is sleep and approval at the same time", "", id="two kinds"),
    pytest.param("- {sleep: 1s}", "6:5", "`id` is missing", "", id="no id"),
    pytest.param("- {id: my-step, sleep: 1s}", "6:10", "'my-step' is not a name", "`my_step` would do.", id="an id with a hyphen"),
    pytest.param("- {id: a, sleep: 1s}\n- {id: a, sleep: 1s}", "7:5", "the id 'a' is used twice; the first is on line 6", "", id="an id twice"),
    pytest.param("- just a text", "6:5", "a step is a map", "", id="a step that is a text"),
    # paths
    pytest.param("- {id: a, function: shop:ship, inputs: {order: input.order}}", "6:50", "there is no `input.order`", "Did you mean `inputs.order`?", id="input for inputs"),
    pytest.param("- {id: a, function: shop:ship, inputs: {order: inputs.ordre}}", "6:50", "has no input 'ordre'", "Did you mean `order`?", id="misspelt input"),
    pytest.param("- {id: a, function: shop:ship, inputs: {order: inputs.order.id}}", "6:50", "does not exist", "declared as string", id="below a string"),
    pytest.param("- {id: a, function: shop:ship, inputs: {order: some text}}", "6:50", "'some text' is not a path", "{value: …}", id="a text for a path"),
    pytest.param('- {id: a, function: shop:ship, inputs: {order: "hello"}}', "6:51", "there is no `hello`", "{value: …}", id="a word for a path, after its quote"),
    pytest.param('- {id: a, function: shop:ship, inputs: {order: {text: "x ${inputs.ordr}"}}}', "6:58", "has no input 'ordr'", "order", id="a path in a text"),
    pytest.param('- {id: a, function: shop:ship, inputs: {order: {text: "x ${in puts}"}}}', "6:60", "`${in puts}` does not hold a path", "", id="no path in a text"),
    pytest.param("- {id: a, function: shop:ship, inputs: {order: {vale: 1}}}", "6:50", "exactly one key", "value", id="a map that is no source"),
    pytest.param("- {id: a, function: shop:ship, inputs: {order: steps.b}}\n- {id: b, sleep: 1s}", "6:50", "'b' runs after this one", "Move it up", id="a later step"),
    pytest.param("- {id: a, function: shop:ship, inputs: {order: steps.a}}", "6:50", "a cycle: the step 'a' reads its own output", "", id="its own output"),
    pytest.param("- {id: a, sleep: 1s}\n- {id: b, function: shop:ship, inputs: {order: steps.aa}}", "7:50", "there is no step 'aa'", "Did you mean `a`?", id="misspelt step"),
    pytest.param("- {id: a, function: shop:ship, inputs: {order: steps}}", "6:50", "add a name", "", id="a root alone"),
    pytest.param("- {id: a, function: shop:ship, inputs: {order: run.ide}}", "6:50", "does not exist", "`id`", id="misspelt fact of the run"),
    pytest.param(
        "- {id: c, function: shop:charge, inputs: {order: inputs.order}, output: {fields: {payment: string, amount: number}}}\n"
        "- {id: d, function: shop:ship, inputs: {order: steps.c.paymnt}}",
        "7:50", "does not exist", "Did you mean `payment`?", id="not in the contract of an earlier step",
    ),
    pytest.param(
        "- id: b\n  branch:\n    - when: inputs.order == 'x'\n      steps: [{id: inner, sleep: 1s}]\n    - otherwise: []\n"
        "- {id: d, function: shop:ship, inputs: {order: steps.inner}}",
        "11:50", "'inner' is inside 'b', where it may not have run", "Read `steps.b`", id="a step on a way not taken",
    ),
    # functions, tools, agents, colors
    pytest.param("- {id: a, function: shop:chrge, inputs: {order: inputs.order}}", "6:23", "has no function 'chrge'", "Did you mean `charge`?", id="misspelt function"),
    pytest.param("- {id: a, function: shp:charge, inputs: {order: inputs.order}}", "6:23", "there is no module 'shp'", "Did you mean `shop`?", id="misspelt module"),
    pytest.param("- {id: a, function: locl, inputs: {order: inputs.order}}", "6:23", "there is no function 'locl'", "Did you mean `local`?", id="misspelt given function"),
    pytest.param("- {id: a, function: shop:PRICE}", "6:23", "a value of type int, not a function", "", id="not a function"),
    pytest.param("- {id: a, function: shop:numbers}", "6:23", "is a generator function", "Return a list", id="wrong color: a generator"),
    pytest.param("- {id: a, function: shop:stream}", "6:23", "is a generator function", "Return a list", id="wrong color: an async generator"),
    pytest.param("- {id: a, tool: serch, inputs: {query: inputs.order}}", "6:19", "there is no tool 'serch'", "Did you mean `search`?", id="missing tool"),
    pytest.param("- {id: a, agent: halper, inputs: {question: inputs.order}}", "6:20", "there is no agent 'halper'", "Did you mean `helper`?", id="missing agent"),
    pytest.param("- {id: a, function: shop:ship, inputs: {ordr: inputs.order}}", "6:23", "the argument 'ordr', which it does not take", "Did you mean `order`?", id="misspelt argument"),
    pytest.param("- {id: a, function: shop:ship}", "6:23", "does not give `shop:ship` the argument 'order'", "", id="missing argument"),
    pytest.param("- {id: a, function: shop:ship, inputs: {order: inputs.order}, undo: shop:nosuch}", "6:71", "has no function 'nosuch'", "", id="missing undo"),
    pytest.param("- {id: a, sleep: 1s, undo: shop:refund}", "6:30", "the undo of step 'a' needs 'order'", "inputs: {order: …}", id="undo of a step without that argument"),
    # values
    pytest.param("- {id: a, sleep: 5}", "6:20", "a duration like", "Write a unit: `5s` or `5ms`.", id="a time without a unit"),
    pytest.param("- {id: a, sleep: soon}", "6:20", "a duration like", "", id="a time that is none"),
    pytest.param("- {id: a, function: local, inputs: {order: inputs.order}, retry: 0}", "6:68", "from 1 to 1000, not 0", "", id="never tried"),
    pytest.param("- {id: a, function: local, inputs: {order: inputs.order}, retry: {atempts: 3}}", "6:69", "unknown key `atempts`", "Did you mean `attempts`?", id="unknown key in retry"),
    pytest.param("- {id: a, function: local, inputs: {order: inputs.order}, retry: {attempts: 3, on: ConectionError}}", "6:86", "is not a built-in exception", "Did you mean `ConnectionError`?", id="misspelt exception"),
    pytest.param("- {id: a, sleep: 1s, retry: 3}", "6:24", "`retry` is not valid for steps of the kind sleep", "", id="retry of a sleep"),
    pytest.param("- {id: a, timeout: 3s, parallel: [{id: x, sleep: 1s}]}", "6:13", "`timeout` is not valid", "Put it on the steps inside.", id="timeout of a block"),
    pytest.param("- {id: a, sleep: 1s, optional: yes}", "6:34", "true or false, not 'yes'", "", id="yes is a text in YAML 1.2"),
    pytest.param("- {id: a, sleep: 1s, default: 3}", "6:24", "`default` is used only if", "", id="a default nobody uses"),
    pytest.param("- {id: a, sleep: 1s, output: strin}", "6:32", "'strin' is not a type", "Did you mean `string`?", id="misspelt type"),
    # branches, loops, parallel blocks
    pytest.param("- id: b\n  branch:\n    - {when: inputs.order == 'x', steps: []}", "8:7", "has no `otherwise` for the case that no condition holds", "otherwise", id="a branch without otherwise"),
    pytest.param("- id: b\n  branch:\n    - otherwise: []\n    - {when: inputs.order == 'x', steps: []}", "9:9", "can never run: `otherwise` comes before it", "", id="unreachable: after otherwise"),
    pytest.param("- id: b\n  branch:\n    - {when: true, steps: []}\n    - otherwise: []", "9:9", "can never run: a branch that always runs", "", id="unreachable: after always"),
    pytest.param("- id: b\n  branch:\n    - {when: false, steps: []}\n    - otherwise: []", "8:16", "its condition is always false", "", id="unreachable: never"),
    pytest.param("- id: b\n  branch:\n    - {when: inputs.ordr == 'x', steps: []}\n    - otherwise: []", "8:16", "has no input 'ordr'", "order", id="misspelt input in a condition"),
    pytest.param("- id: b\n  branch:\n    - {when: inputs.order.__class__ == 'x', steps: []}\n    - otherwise: []", "8:16", "does not exist", "", id="no attributes of Python objects"),
    pytest.param("- id: b\n  branch:\n    - {when: open('x') == 1, steps: []}\n    - otherwise: []", "8:16", "a condition cannot call `open`", "`len`", id="no calls"),
    pytest.param("- id: b\n  branch:\n    - {when: inputs.order ==, steps: []}\n    - otherwise: []", "8:16", "is not a condition", "", id="no condition at all"),
    pytest.param("- {id: l, loop: [{id: x, sleep: 1s}]}", "6:5", "`at_most` is missing", "", id="a loop without a bound"),
    pytest.param("- {id: l, loop: [{id: x, sleep: 1s}], at_most: 3, until: steps.y == 1}", "6:60", "there is no step 'y'", "", id="a loop until nothing"),
    pytest.param("- {id: p, parallel: [{id: x, sleep: 1s, after: z}, {id: y, sleep: 1s}]}", "6:24", "'x' comes after 'z', which is not in 'p'", "", id="after nobody"),
    pytest.param("- {id: p, parallel: [{id: x, sleep: 1s, after: y}, {id: y, sleep: 1s, after: x}]}", "6:24", "a cycle: x → y → x", "", id="a cycle"),
    pytest.param("- {id: p, parallel: [{id: x, sleep: 1s}, {id: y, function: local, inputs: {order: steps.x}}]}", "6:85", "reads 'x', which runs at the same time", "Write `after: [x]` on 'y'.", id="a sibling's output"),
    pytest.param("- {id: x, sleep: 1s, after: y}\n- {id: y, sleep: 1s}", "6:5", "only in a parallel block", "", id="after outside of a parallel block"),
    pytest.param("- {id: e, each: [1], item: steps, steps: [{id: x, sleep: 1s}]}", "6:45", "`steps` is already a name here", "", id="an item that hides a root"),
    pytest.param("- {id: e, each: 5, steps: [{id: x, sleep: 1s}]}", "6:19", "this has to be a list, or a path to one, not 5", "", id="each of a number"),
    pytest.param("- {id: e, each: {value: abc}, steps: [{id: x, sleep: 1s}]}", "6:19", "this has to be a list", "", id="each of a text"),
    pytest.param("- {id: e, each: inputs.order, steps: [{id: x, sleep: 1s}]}", "6:19", "needs a list, but `inputs.order` is of type string", "", id="each of an input that is no list"),
    pytest.param("- {id: n, function: local, inputs: {order: inputs.order}, output: {type: object, fields: {k: number}}}\n- {id: e, each: steps.n.k, steps: [{id: x, sleep: 1s}]}", "7:19", "`steps.n.k` is of type number", "", id="each of an output that is no list"),
    pytest.param("- {id: a, function: local, inputs: {order: {text: 'Dear ${inputs.order'}}}", "6:59", "this `${` is not closed", "{value: …}", id="a text whose path is not closed"),
    pytest.param("- {id: l, loop: [], at_most: 3}", "6:19", "there are no steps here", "", id="an empty loop"),
    pytest.param("- {id: s, saga: []}", "6:19", "there are no steps here", "", id="an empty saga"),
    pytest.param("- {id: p, join: some, parallel: [{id: x, sleep: 1s}]}", "6:19", "one of all, any, settle or a number", "", id="a join that is none"),
    pytest.param("- {id: w, workflow: other.yaml}", "6:23", "cannot be read", "Did you mean", id="a missing workflow"),
    pytest.param("- {id: w, workflow: flow.yaml}", "6:23", "a cycle: this workflow contains itself (flow.yaml → flow.yaml)", "", id="a workflow in itself"),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "place", "what", "advice"), STEPS)
def test_a_problem_in_a_step(written, steps, place, what, advice):
    """It is told with file, line, column and the nearest right name."""
    (written("- {id: a, sleep: 1s}", name="othr.yaml"))
    path = written(steps)
    found = problems(path)
    about = [one for one in found if what in one.what]
    assert about, f"nothing said {what!r}, but:\n" + "\n".join(map(str, found))
    assert f"{about[0].mark.line}:{about[0].mark.column}" == place
    assert about[0].mark.file == str(path)
    assert advice in about[0].advice
    assert len(found) == 1, "something else was called wrong as well:\n" + "\n".join(map(str, found))


HEADS = [
    pytest.param("troth: 2\nname: x\nsteps: [{id: a, sleep: 1s}]", "1:8", "reads workflows of version 1, not 2", id="another version"),
    pytest.param("name: x\nsteps: [{id: a, sleep: 1s}]", "1:1", "`troth` is missing", id="no version"),
    pytest.param("troth: 1\nname: x\nsteps: []", "3:1", "needs at least one step", id="no steps"),
    pytest.param("troth: 1\nname: x\nstep: []", "3:1", "unknown key `step`", id="misspelt key"),
    pytest.param("troth: 1\nname: x\non_error: continu\nsteps: [{id: a, sleep: 1s}]", "3:11", "one of undo, stop, continue", id="misspelt policy"),
    pytest.param("troth: 1\nname: x\nbudget: {token: 3}\nsteps: [{id: a, sleep: 1s}]", "3:10", "unknown key `token`", id="a budget nobody keeps"),
    pytest.param("troth: 1\nname: x\ninputs: {a: strng}\nsteps: [{id: a, sleep: 1s}]", "3:13", "'strng' is not a type", id="misspelt type"),
    pytest.param("troth: 1\nname: x\ninputs: {a: {type: integer, default: x}}\nsteps: [{id: a, sleep: 1s}]", "3:38", "but the contract requires integer", id="a default of another type"),
    pytest.param("troth: 1\nname: x\ninputs: {a: {type: integer, pattern: x}}\nsteps: [{id: a, sleep: 1s}]", "3:29", "`pattern` is not valid for the type integer", id="a limit of another type"),
    pytest.param("troth: 1\nname: x\ninputs: {a: {default: 1, required: true}}\nsteps: [{id: a, sleep: 1s}]", "3:26", "a required value cannot have a default", id="required and default"),
    pytest.param("troth: 1\nname: x\nfolder: y\nsteps: [{id: a, sleep: 1s}]", "3:1", "only in a workflow that is written inside", id="a folder at the top"),
    pytest.param("- a\n- b", "1:1", "a workflow is a map", id="a list"),
    pytest.param("", "1:1", "the file is empty", id="nothing"),
    pytest.param("troth: 1\nname: [x\n", "3:1", "this is not YAML", id="not YAML"),
    pytest.param("troth: 1\nname: x\nname: y\nsteps: []", "3:1", "the key `name` is used twice; the first is on line 2", id="a key twice"),
    pytest.param("troth: 1\nname: !!python/object:os.system x\nsteps: [{id: a, sleep: 1s}]", "2:7", "is not supported here", id="a tag"),
    pytest.param("troth: 1\nname: x\nsteps: [{id: a, sleep: 1s}]\noutput: {x: steps.b}", "4:13", "there is no step 'b'", id="an output of nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "place", "what"), HEADS)
def test_a_problem_outside_of_the_steps(written, text, place, what):
    """The head of the document is read as strictly as its steps."""
    found = problems(written(text, head=False))
    about = [one for one in found if what in one.what]
    assert about, "\n".join(map(str, found))
    assert f"{about[0].mark.line}:{about[0].mark.column}" == place


@pytest.mark.parametrize(
    ("raw", "place", "what"),
    [
        pytest.param(b"troth: 1\nname: \xe9", "2:7", "not UTF-8: the byte 0xe9", id="Latin-1"),
        pytest.param("troth: 1".encode("utf-16"), "1:1", "not UTF-8: the byte 0xff", id="UTF-16"),
        pytest.param(b"troth: 1\r\nname: x\r\nstps: []\r\n", "3:1", "unknown key `stps`", id="line ends of Windows"),
        pytest.param(b"\xef\xbb\xbftroth: 1\nnme: x\n", "2:1", "unknown key `nme`", id="a byte order mark"),
        pytest.param(b"#" * 10_000_001, "1:1", "the file has 10,000,001 bytes", id="too large"),
    ],
)
def test_bytes_that_are_no_workflow(tmp_path, raw, place, what):
    """They have a line and a column too."""
    path = tmp_path / "flow.yaml"
    path.write_bytes(raw)
    about = [one for one in problems(path) if what in one.what]
    assert about
    assert f"{about[0].mark.line}:{about[0].mark.column}" == place


def test_all_problems_are_told_at_once(written):
    """One reading, one list, in the order of the lines; the message ends with what it means."""
    path = written(
        """
        - {id: a, function: shop:chrge, inputs: {order: input.order}}
        - {id: b, slep: 1s}
        - {id: c, tool: nosuch}
        """
    )
    with pytest.raises(InvalidWorkflowError) as refused:
        load_workflow(path, REGISTRY)
    assert [one.mark.line for one in refused.value.problems] == [6, 6, 7, 8]
    text = str(refused.value)
    assert text.endswith("The workflow has 4 problems and was not started, so nothing has to be undone.")
    assert all(line.startswith((str(path), "    ", "The workflow")) for line in text.splitlines())


def test_a_step_that_cannot_be_read_is_told_once(written):
    """Paths to a step with a problem of its own are not called wrong as well."""
    found = problems(written("- {id: a, slep: 1s}\n- {id: b, function: shop:ship, inputs: {order: steps.a}}"))
    assert len(found) == 1


def test_a_missing_file_is_told_with_its_neighbours(written):
    """A path is always a path: no text is ever taken for one, nor the other way round."""
    written("- {id: a, sleep: 1s}")
    with pytest.raises(WorkflowNotFoundError, match=r"Did you mean `.*flow\.yaml`\?"):
        load_workflow(written("").with_name("flw.yaml"))
    with pytest.raises(WorkflowNotFoundError, match="does not exist"):
        load_workflow("troth: 1")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        pytest.param(5, "5 of type `int` is not a workflow", id="a number"),
        pytest.param(None, "is not a workflow", id="nothing"),
        pytest.param(b"flow.yaml", "of type `bytes` is not a workflow", id="bytes"),
        pytest.param("troth: 1\nname: x\n", "is not the path of a file", id="a text"),
        pytest.param("flow\0.yaml", "is not the path of a file", id="a name no file can have"),
        pytest.param("x" * 5000, "too long for a file name", id="a name that is too long"),
    ],
)
def test_what_is_no_workflow_is_named(source, says):
    """With what to give instead."""
    with pytest.raises(WorkflowNotFoundError, match=re.escape(says)):
        load_workflow(source)


def test_a_text_is_read_by_its_own_function():
    """One line of YAML is YAML."""
    spec = parse_workflow("{troth: 1, name: x, steps: [{id: a, sleep: 1s}]}").spec
    assert spec.name == "x"


def test_a_problem_in_an_inner_workflow_has_its_own_file(written):
    """The place is in the file it was written in."""
    inner = written("- {id: x, slep: 1s}", name="inner.yaml")
    (found,) = problems(written("- {id: w, workflow: inner.yaml, inputs: {order: inputs.order}}"))
    assert found.mark.file == str(inner)


def test_a_workflow_in_another_folder_has_its_own_modules(shop, written):
    """Also when it goes on from the record: each calls what lies beside it, whatever the other has."""
    (shop / "sub").mkdir()
    (shop / "beside.py").write_text("def go(): return 'outer'\n")
    (shop / "sub/beside.py").write_text("def go(): return 'inner'\n")
    (shop / "sub/inner.yaml").write_text("troth: 1\nname: inner\nsteps: [{id: i, function: 'beside:go'}]\n")
    path = written("- {id: o, function: 'beside:go'}\n- {id: w, workflow: sub/inner.yaml}")
    linked = load_workflow(path)
    recorded = load_recorded(dump_workflow(linked.spec), REGISTRY, shop)
    for one in (linked, recorded):
        assert [callee.action.call() for callee in one.callees.values()] == ["outer", "inner"]
    assert recorded.spec == linked.spec


def test_a_module_beside_the_workflow_is_loaded_as_a_script_would_be(shop, written):
    """Its neighbours can be imported, also later, when a function is called; what ends at once is told."""
    (shop / "neighbour.py").write_text("WORD = 'near'\n")
    (shop / "lazy.py").write_text("def go():\n    from neighbour import WORD\n    return WORD\n")
    (shop / "ends.py").write_text("import sys\nsys.exit(7)\n")
    (callee,) = load_workflow(written("- {id: a, function: 'lazy:go'}")).callees.values()
    assert callee.action.call() == "near"
    (found,) = problems(written("- {id: a, function: 'ends:go'}"))
    assert "ends.py cannot be imported: SystemExit: 7" in found.what


def test_a_module_is_loaded_once_by_many_at_once(shop, written):
    """Whoever comes while it is being loaded waits for the whole of it."""
    (shop / "slow.py").write_text("import time\ntime.sleep(0.3)\ndef go(): return 1\n")
    path = written("- {id: a, function: 'slow:go'}")
    with ThreadPoolExecutor(16) as pool:
        found = [one.result(30) for one in [pool.submit(load_workflow, path) for _ in range(16)]]
    assert len({id(callee.action.call) for one in found for callee in one.callees.values()}) == 1


def test_workflows_that_contain_each_other(written):
    """The chain of files is in the message."""
    written("- {id: w, workflow: flow.yaml, inputs: {order: inputs.order}}", name="inner.yaml")
    (found,) = problems(written("- {id: w, workflow: inner.yaml, inputs: {order: inputs.order}}"))
    assert "flow.yaml → inner.yaml → flow.yaml" in found.what


@pytest.mark.parametrize(
    ("inputs", "what"),
    [
        pytest.param("{}", "no 'order', which it needs", id="missing"),
        pytest.param("{order: inputs.order, odrer: 1}", "has no input 'odrer'", id="unknown"),
    ],
)
def test_inputs_of_an_inner_workflow_are_checked(written, inputs, what):
    """A workflow inside is called as strictly as a function."""
    written("- {id: x, sleep: 1s}", name="inner.yaml")
    found = problems(written(f"- {{id: w, workflow: inner.yaml, inputs: {inputs}}}"))
    assert what in found[0].what
