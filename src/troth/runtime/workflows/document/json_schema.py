"""The JSON Schema of a workflow, which editors check and complete with.

It is made from the same tables that the loader reads by. `schema/workflow-v1.json` in this package is what it says,
written down for editors; a test holds both together, and
`python -m troth.runtime.workflows.document.json_schema` writes it again.
"""

import json
from importlib import resources

from troth.runtime.workflows.document.document import WORKFLOW_FIELDS
from troth.runtime.workflows.document.fields import fields_schema
from troth.runtime.workflows.document.policy_types import shared_schemas
from troth.runtime.workflows.document.steps import step_schema
from troth.runtime.workflows.spec import SCHEMA_VERSION

__all__ = ["FILE", "published", "workflow_schema"]

FILE = f"workflow-v{SCHEMA_VERSION}.json"


def workflow_schema() -> dict[str, object]:
    """The schema, made anew."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Troth workflow, version {SCHEMA_VERSION}",
        **fields_schema(WORKFLOW_FIELDS),
        "$defs": {"step": step_schema(), **shared_schemas()},
    }


def published() -> str:
    """The text of the schema that came with the package."""
    return (resources.files(__package__) / "schema" / FILE).read_text(encoding="utf-8")


if __name__ == "__main__":
    from pathlib import Path

    target = Path(__file__).parent / "schema" / FILE
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(workflow_schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
