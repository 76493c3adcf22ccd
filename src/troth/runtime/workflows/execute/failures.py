"""How a workflow fails.

MisuseError
├── WrongInputsError       the run was given inputs that the workflow does not take; nothing was started
└── OutputContractError    a step returned something else than its contract says; trying again would not help
RunError
├── BudgetExceededError    the run has used up its time, steps, tokens or cost
├── AnswerContractError    an agent answered something else than its step's contract says; it may answer again
├── AgentNotFinishedError  the agent of a step was stopped before it had finished, or finished without an answer
└── WorkflowFailedError    a step failed for good; says which, why, and what was undone
    └── OverBudgetError    the run came to a limit of its budget; a larger one goes on
"""

from collections.abc import Mapping, Sequence

from troth.errors import MisuseError, RunError
from troth.runtime.sagas.rollback import Rollback, StepFailed
from troth.runtime.store import NotJsonError
from troth.runtime.store.json_codec import keep
from troth.runtime.workflows.document.contracts import ABSENT, Contract
from troth.runtime.workflows.document.problems import did_you_mean

__all__ = [
    "AgentNotFinishedError",
    "AnswerContractError",
    "BudgetExceededError",
    "OutputContractError",
    "OverBudgetError",
    "WorkflowFailedError",
    "WrongInputsError",
    "check_answer",
    "check_inputs",
    "check_output",
]


class WrongInputsError(MisuseError):
    """The run was given inputs that the workflow does not take. Nothing was started."""


class OutputContractError(MisuseError):
    """A step returned something else than its contract says. Its effect is there, so it is undone like any other."""


class AnswerContractError(RunError):
    """An agent answered something else than the contract of its step says.

    Where `retry` allows another attempt, the agent is told what was wrong and answers again, in the same conversation.
    """


class BudgetExceededError(RunError):
    """A limit of the budget is reached; nothing further was started. Trying again would not help: it is not retried."""

    def __init__(self, message: str, workflow: str = "", limit: str = "") -> None:
        super().__init__(message)
        self.workflow = workflow
        self.limit = limit

    @property
    def troth_details(self) -> Mapping[str, object]:
        """What is recorded beside the message."""
        return {"workflow": self.workflow, "limit": self.limit}


class AgentNotFinishedError(RunError):
    """The agent of a step was stopped before it had finished, or finished without an answer.

    What it said so far is in its conversation, and is not taken for its answer. Another attempt, or `resume`, calls it
    again, and it goes on with the same conversation.
    """


class WorkflowFailedError(RunError):
    """A step failed for good. `failures` has that step, or all that failed where the workflow went on."""

    def __init__(self, workflow: str, failures: Sequence[StepFailed], rollback: Rollback) -> None:
        self.workflow = workflow
        self.failures = tuple(failures)
        self.rollback = rollback
        lines = [f"Step {failure.step!r} of {workflow!r} failed with {failure}" for failure in failures]
        if rollback.undone:
            lines.append(f"Undone: {', '.join(rollback.undone)}.")
        lines += [
            f"NOT undone: {undo_failure.step}, because its undo failed with {undo_failure}"
            for undo_failure in rollback.failed
        ]
        super().__init__("\n".join(lines))


class OverBudgetError(WorkflowFailedError):
    """The run came to a limit of its budget. With a larger one it continues from there."""

    @property
    def troth_details(self) -> Mapping[str, object]:
        """What is recorded beside the message."""
        return {"limit": self.failures[0].details.get("limit"), "step": self.failures[0].step}


def check_inputs(name: str, contracts: Mapping[str, Contract], values: Mapping[str, object]) -> dict[str, object]:
    """`values` with the defaults filled in; every complaint at once where it does not fit."""
    if not isinstance(values, Mapping):
        raise WrongInputsError(
            f"The workflow {name!r} is given inputs by name, and not {values!r}. Nothing was started.\n"
            "Give a mapping, as in `{'order': 'A7'}`."
        )
    strange = [key for key in values if key not in contracts]
    complaints = [f"there is no input {key!r}. {did_you_mean(str(key), contracts, kind='input')}" for key in strange]
    whole: dict[str, object] = {}
    for key, contract in contracts.items():
        if key in values:
            complaints.extend(list(contract.complaints(values[key], f"inputs.{key}")) or _not_json(values[key], key))
            whole[key] = values[key]
        elif contract.default is not ABSENT:
            whole[key] = contract.default
        elif contract.required:
            says = f": {contract.description}" if contract.description else ""
            complaints.append(f"the input {key!r} ({contract.type}) is missing{says}")
        else:
            whole[key] = None
    if complaints:
        listed = "\n".join(f"  {complaint}" for complaint in complaints)
        raise WrongInputsError(f"The workflow {name!r} cannot take these inputs:\n{listed}\nNothing was started.")
    return whole


def _not_json(value: object, key: str) -> list[str]:
    try:
        keep(value, f"inputs.{key}")
    except NotJsonError as refused:
        return [f"`{refused.path}` is {refused.why}"]
    return []


def check_answer(step: str, contract: Contract | None, value: object) -> None:
    """Refuse an agent's answer that breaks the step's contract. Unlike a function, an agent may answer otherwise."""
    complaints = list(contract.complaints(value, f"steps.{step}")) if contract is not None else []
    if complaints:
        raise AnswerContractError(
            f"The answer of the agent in {step!r} violates its contract: {'; '.join(complaints)}."
        )


def check_output(step: str, contract: Contract | None, value: object) -> None:
    """Refuse an output that breaks the step's contract."""
    complaints = list(contract.complaints(value, f"steps.{step}")) if contract is not None else []
    if complaints:
        raise OutputContractError(f"The output of {step!r} violates its contract: {'; '.join(complaints)}.")
