"""What each public package exports. A change here is a change for users: it belongs in the changelog."""

import ast
import importlib
import pkgutil
from pathlib import Path

import pytest

import troth

FACES = {
    "troth": ["__version__"],
    "troth.bridge": [
        "BlockedLoopError",
        "BlockedLoopWarning",
        "DeadlockError",
        "InterpreterExitError",
        "LeftoverTaskWarning",
        "LoopGoneError",
        "NotRunnableError",
        "Portal",
        "PortalClosedError",
        "RunTimeoutError",
        "WrongThreadError",
        "aio",
        "aiterate",
        "call",
        "color_of",
        "enter",
        "explain",
        "iterate",
        "overrides",
        "run",
        "sync",
    ],
    "troth.color": ["Color"],
    "troth.errors": ["InternalError", "MisuseError", "RunError", "TrothError"],
    "troth.guard": ["Incident", "LostPromiseError", "Report", "install", "uninstall", "watch"],
    "troth.runtime": [
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
    ],
    "troth.runtime.agents": [
        "Agent",
        "Budget",
        "BudgetExceeded",
        "Message",
        "Model",
        "ModelError",
        "Reply",
        "Request",
        "ToolCall",
        "ToolCallingAgent",
        "Usage",
    ],
    "troth.runtime.conversations": [
        "AgentExitError",
        "AlreadyRunning",
        "Conversation",
        "ConversationClosed",
        "Conversations",
        "End",
        "Status",
        "StepLimitReached",
        "Stopping",
        "TooManyRuns",
    ],
    "troth.runtime.engine": [
        "Append",
        "Ask",
        "CannotResumeError",
        "CurrentStep",
        "Decision",
        "EmbeddedEngine",
        "Engine",
        "EngineClosedError",
        "Handle",
        "Join",
        "LostCoroutineError",
        "NondeterministicError",
        "NotADecisionError",
        "ResultTimeoutError",
        "Retry",
        "RunCancelledError",
        "RunFailedError",
        "RunMismatchError",
        "Sleep",
        "Start",
        "Step",
        "StepFailedError",
        "StepTimeoutError",
        "ThreadsExhaustedError",
        "Together",
        "UnknownColorError",
        "UnknownDecisionError",
        "UnknownRunError",
        "Wait",
        "WaitTimeoutError",
        "current_step",
    ],
    "troth.runtime.store": [
        "Attempt",
        "Bell",
        "CommitPoint",
        "Event",
        "Follower",
        "LeaseLostError",
        "NewerStoreError",
        "NotAStoreError",
        "NotJsonError",
        "Owner",
        "RunRecord",
        "RunState",
        "Signal",
        "SqliteStore",
        "StepRecord",
        "StepState",
        "Store",
        "StoreBusyError",
        "StoreError",
        "Transaction",
        "UnsupportedSqliteError",
        "commit_point",
    ],
    "troth.runtime.tools": ["Tool", "ToolArgumentsError", "ToolOutcome", "tool"],
}


@pytest.mark.parametrize("name", FACES)
def test_the_public_face_is_frozen(name):
    """`__all__` is exactly the list above, and every name in it exists."""
    module = importlib.import_module(name)
    assert sorted(module.__all__) == FACES[name]
    assert all(hasattr(module, export) for export in module.__all__)


def test_every_module_can_be_imported_and_says_what_it_knows():
    """Each module has a docstring, and imports by itself."""
    silent = []
    for found in pkgutil.walk_packages(troth.__path__, "troth."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        file = Path(module.__file__)
        if file.suffix != ".py":  # compiled, which keeps no docstring: its text stands beside it
            file = file.with_name(f"{file.name.partition('.')[0]}.py")
        if not ast.get_docstring(ast.parse(file.read_bytes())):
            silent.append(found.name)
    assert not silent
