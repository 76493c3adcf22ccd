"""The reference of the YAML has every kind and every key, in the words the loader itself uses."""

from pathlib import Path

import pytest

from troth.runtime.workflows.document.contracts import TYPES
from troth.runtime.workflows.document.document import BUDGET_FIELDS, WORKFLOW_FIELDS, read_workflow_file
from troth.runtime.workflows.document.expressions import FUNCTIONS
from troth.runtime.workflows.document.policy_types import RETRY_FIELDS, UNDO_FIELDS
from troth.runtime.workflows.document.problems import Problems
from troth.runtime.workflows.document.steps import common_fields
from troth.runtime.workflows.kinds import kinds

PAGE = (Path(__file__).resolve().parents[4] / "docs/reference/workflow-yaml.md").read_text(encoding="utf-8")
TABLES = {
    "workflow": WORKFLOW_FIELDS,
    "budget": BUDGET_FIELDS,
    "retry": RETRY_FIELDS,
    "undo": UNDO_FIELDS,
    "every step": common_fields(kinds()["function"]),
    **{f"kind {name}": kind.fields for name, kind in kinds().items()},
}


@pytest.mark.parametrize("name", TABLES)
def test_every_key_is_told(name):
    """As a row of a table, with its meaning."""
    for field in TABLES[name]:
        row = f"| `{field.name}`{' (required)' if field.required else ''} | {field.says} |"
        assert row in PAGE, f"docs/reference/workflow-yaml.md lacks this row: {row}"


def test_every_kind_type_and_function_is_told():
    """Kinds by heading, types and functions by name."""
    for kind in kinds().values():
        section = f"### `{kind.name}`\n\nA step that {kind.says}.\n"
        assert section in PAGE, f"docs/reference/workflow-yaml.md lacks a section that begins:\n{section}"
    assert all(f"`{name}`" in PAGE for name in (*TYPES, *FUNCTIONS))


def _examples():
    blocks = PAGE.split("```yaml\n")[1:]
    return [
        pytest.param(block.split("```")[0], id=block.split("id: ")[1].split("\n")[0].split(",")[0]) for block in blocks
    ]


@pytest.mark.parametrize("block", _examples())
def test_the_examples_are_read(block):
    """Every key in them is known; what they name elsewhere is of course not here."""
    text = "troth: 1\nname: x\nsteps:\n" + "".join(f"  {line}\n" for line in block.splitlines())
    problems = Problems()
    read_workflow_file(text, "x.yaml", problems, ())
    allowed = ("has no input", "there is no step", "cannot be read")
    strange = [str(one) for one in problems.found if not any(word in one.what for word in allowed)]
    assert not strange
