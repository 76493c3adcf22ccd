"""Give the record of a run to a machine: everything the pictures show, as JSON."""

from dataclasses import asdict
from typing import Any

from troth.runtime.workflows.record.report import RunReport

__all__ = ["as_json"]


def as_json(run: RunReport, options: str = "") -> dict[str, Any]:
    """`run` made of what JSON has. Steps are there once, in order; elsewhere they are named by place."""
    whole = asdict(run)
    whole["failures"] = [step.place for step in run.failures]
    whole["not_undone"] = [step.place for step in run.not_undone]
    whole["waiting_for"] = [step.place for step in run.waiting_for]
    whole["tokens"], whole["cost"] = run.tokens, run.cost
    whole["done"] = list(run.done)
    whole["commands"] = [{"command": command, "says": says} for command, says in run.commands(options)]
    for row, step in zip(whole["steps"], run.steps, strict=True):
        row["worked"], row["waited"] = round(step.worked, 6), round(step.waited, 6)
        row["code_changed"] = list(step.code_changed)
    return whole
