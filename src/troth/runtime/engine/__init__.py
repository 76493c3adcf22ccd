"""Decisions executed durably: generators that decide and never wait, and an engine that performs what they ask for.

    from troth.runtime.engine import EmbeddedEngine, Retry, Step

    def order(id):
        receipt = yield Step("charge", charge, id, retry=Retry(3), timeout=10)
        yield Step("ship", ship, id)
        return receipt

    with EmbeddedEngine("troth.db", decisions=[order]) as engine:
        engine.run(order, "o-1", id="order-o-1")

Killed anywhere and started again, it goes on where it was; what is recorded is not repeated.
"""

from troth.runtime.engine.commands import Append, Command, Decision, Join, Sleep, Start, Step, Together, Wait
from troth.runtime.engine.current_step import CurrentStep, current_step
from troth.runtime.engine.embedded.engine import EmbeddedEngine
from troth.runtime.engine.errors import (
    CannotResumeError,
    EngineClosedError,
    LostCoroutineError,
    NondeterministicError,
    NotADecisionError,
    NotAwaitedError,
    ResultTimeoutError,
    RunCancelledError,
    RunFailedError,
    RunMismatchError,
    StepFailedError,
    StepTimeoutError,
    ThreadsExhaustedError,
    TooLateError,
    UnknownColorError,
    UnknownDecisionError,
    UnknownRunError,
    WaitTimeoutError,
)
from troth.runtime.engine.port import Engine, Handle
from troth.runtime.engine.retry import Retry

__all__ = [
    "Append",
    "CannotResumeError",
    "Command",
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
    "NotAwaitedError",
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
    "TooLateError",
    "UnknownColorError",
    "UnknownDecisionError",
    "UnknownRunError",
    "Wait",
    "WaitTimeoutError",
    "current_step",
]
