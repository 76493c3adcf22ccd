"""Every place where workflows commit, beside those of the engine."""

from troth.runtime.store import commit_point

__all__ = ["WORKFLOW_KEEP", "WORKFLOW_RESUME"]

WORKFLOW_KEEP = commit_point("workflow.keep", "the document of a workflow, before its first run")
WORKFLOW_RESUME = commit_point("workflow.resume", "that a run goes on, without the answers it stopped at")
