"""Agents at work: decisions that are executed durably, and the store that remembers them.

Everything here is a generator that decides and never waits; `troth.runtime.engine` performs what it asks for, and
`troth.runtime.store` keeps the answers. Importing this package imports neither: each name is fetched when it is used.

    from troth.runtime import Workflow, run_workflow, step
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from troth.runtime.assemble import RunNotCompletedError, Runtime, arun_workflow, run_workflow
    from troth.runtime.engine.current import current_step
    from troth.runtime.engine.retry import Retry
    from troth.runtime.sagas.outcome import SagaFailedError, SagaOutcome, SagaState
    from troth.runtime.sagas.saga import Saga, result
    from troth.runtime.workflows.builder import Workflow, step
    from troth.runtime.workflows.problems import InvalidWorkflowError
    from troth.runtime.workflows.report import RunReport
    from troth.runtime.workflows.run_events import RunEvent

__all__ = [
    "InvalidWorkflowError",
    "Retry",
    "RunEvent",
    "RunNotCompletedError",
    "RunReport",
    "Runtime",
    "Saga",
    "SagaFailedError",
    "SagaOutcome",
    "SagaState",
    "Workflow",
    "arun_workflow",
    "current_step",
    "result",
    "run_workflow",
    "step",
]

_HOMES = {
    "troth.runtime.assemble": ("RunNotCompletedError", "Runtime", "arun_workflow", "run_workflow"),
    "troth.runtime.engine.current": ("current_step",),
    "troth.runtime.engine.retry": ("Retry",),
    "troth.runtime.sagas.outcome": ("SagaFailedError", "SagaOutcome", "SagaState"),
    "troth.runtime.sagas.saga": ("Saga", "result"),
    "troth.runtime.workflows.builder": ("Workflow", "step"),
    "troth.runtime.workflows.problems": ("InvalidWorkflowError",),
    "troth.runtime.workflows.report": ("RunReport",),
    "troth.runtime.workflows.run_events": ("RunEvent",),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
