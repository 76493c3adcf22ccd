"""Agents at work: decisions that are executed durably, and the store that remembers them.

Everything here is a generator that decides and never waits; `troth.runtime.engine` performs what it asks for, and
`troth.runtime.store` keeps the answers. Importing this package imports neither: each name is fetched when it is used.

    from troth.runtime import Workflow, run_workflow, step
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from troth.runtime.assemble import RunNotCompletedError, Runtime, arun_workflow, run_workflow
    from troth.runtime.channels import Capability, Channel, Delivery, Receipt, bind, current
    from troth.runtime.conversations import Conversation, Conversations
    from troth.runtime.engine.current_step import current_step
    from troth.runtime.engine.retry import Retry
    from troth.runtime.promises import Inline, PromiseRefused, Pushed, Stored
    from troth.runtime.sagas.outcome import SagaFailedError, SagaOutcome, SagaState
    from troth.runtime.sagas.saga import Saga, result
    from troth.runtime.sessions import (
        Action,
        Anchor,
        AuditVerdict,
        Hypervisor,
        Kill,
        Member,
        Reversibility,
        Ring,
        Session,
        SessionConfig,
        SessionState,
    )
    from troth.runtime.workflows.document.problems import InvalidWorkflowError
    from troth.runtime.workflows.link.builder import Workflow, step
    from troth.runtime.workflows.record.report import RunReport
    from troth.runtime.workflows.record.run_events import RunEvent

__all__ = [
    "Action",
    "Anchor",
    "AuditVerdict",
    "Capability",
    "Channel",
    "Conversation",
    "Conversations",
    "Delivery",
    "Hypervisor",
    "Inline",
    "InvalidWorkflowError",
    "Kill",
    "Member",
    "PromiseRefused",
    "Pushed",
    "Receipt",
    "Retry",
    "Reversibility",
    "Ring",
    "RunEvent",
    "RunNotCompletedError",
    "RunReport",
    "Runtime",
    "Saga",
    "SagaFailedError",
    "SagaOutcome",
    "SagaState",
    "Session",
    "SessionConfig",
    "SessionState",
    "Stored",
    "Workflow",
    "arun_workflow",
    "bind",
    "current",
    "current_step",
    "result",
    "run_workflow",
    "step",
]

_HOMES = {
    "troth.runtime.assemble": ("RunNotCompletedError", "Runtime", "arun_workflow", "run_workflow"),
    "troth.runtime.channels": ("Capability", "Channel", "Delivery", "Receipt", "bind", "current"),
    "troth.runtime.conversations": ("Conversation", "Conversations"),
    "troth.runtime.promises": ("Inline", "PromiseRefused", "Pushed", "Stored"),
    "troth.runtime.engine.current_step": ("current_step",),
    "troth.runtime.engine.retry": ("Retry",),
    "troth.runtime.sagas.outcome": ("SagaFailedError", "SagaOutcome", "SagaState"),
    "troth.runtime.sagas.saga": ("Saga", "result"),
    "troth.runtime.sessions": (
        "Action",
        "Anchor",
        "AuditVerdict",
        "Hypervisor",
        "Kill",
        "Member",
        "Reversibility",
        "Ring",
        "Session",
        "SessionConfig",
        "SessionState",
    ),
    "troth.runtime.workflows.link.builder": ("Workflow", "step"),
    "troth.runtime.workflows.document.problems": ("InvalidWorkflowError",),
    "troth.runtime.workflows.record.report": ("RunReport",),
    "troth.runtime.workflows.record.run_events": ("RunEvent",),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
