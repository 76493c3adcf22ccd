"""Find which workflows are the same: a digest of the document, whatever its spacing, order of keys or comments."""

import hashlib
import json

from troth.runtime.workflows.document.document import dump_workflow
from troth.runtime.workflows.spec import WorkflowSpec

__all__ = ["digest_of"]


def digest_of(spec: WorkflowSpec) -> str:
    """Twelve letters that change with the meaning of the workflow."""
    text = json.dumps(dump_workflow(spec), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
