"""The values a workflow consists of. YAML and the Python builder make the same ones; nothing here runs.

Places are carried along for messages and do not count when two workflows are compared.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from troth.runtime.engine.retry import ONCE, Retry
from troth.runtime.workflows.document.contracts import Contract
from troth.runtime.workflows.document.expressions import Expression
from troth.runtime.workflows.document.nodes import SourceMark
from troth.runtime.workflows.document.sources import Source

__all__ = [
    "JOINS",
    "LIMITS",
    "SCHEMA_VERSION",
    "Block",
    "CallTarget",
    "Join",
    "OnError",
    "Retry",
    "RunBudget",
    "StepSpec",
    "TargetKind",
    "Undo",
    "WorkflowSpec",
]

SCHEMA_VERSION = 1

Join = Literal["all", "any", "settle"] | int
"""How many branches have to succeed: all, one, none, or a number. `any` and a number go on as soon as they have."""
JOINS = ("all", "any", "settle")
OnError = Literal["undo", "stop", "continue"]
TargetKind = Literal["function", "tool", "agent"]


@dataclass(frozen=True, slots=True)
class CallTarget:
    """What an action calls: a function, a tool or an agent, by the name it has in the document."""

    kind: TargetKind
    name: str
    mark: SourceMark = field(compare=False)
    where: str = field(default="", compare=False)
    """The folder in which its module is looked for first, from that of the workflow that is run."""


@dataclass(frozen=True, slots=True)
class Undo:
    """How the effect of a step is taken back. Without `inputs` it is given what the step was given."""

    target: CallTarget
    inputs: Mapping[str, Source] | None = None
    retry: Retry = field(default=Retry(attempts=3, on=("Exception",)))
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class StepSpec:
    """One step. `body` is the value of its kind (see `kinds/`); the rest is common to all."""

    id: str
    kind: str
    body: object
    mark: SourceMark = field(compare=False)
    retry: Retry = ONCE
    timeout: float | None = None
    optional: bool = False
    default: object = None
    output: Contract | None = None
    undo: Undo | None = None
    after: tuple[str, ...] = ()
    description: str = ""
    is_whole: bool = field(default=True, compare=False)
    """False where a part of it could not be read: what else is wrong with it may be a consequence."""


@dataclass(frozen=True, slots=True)
class Block:
    """Steps inside a step. `names` are further roots of paths in there.

    In a block that is not `ordered`, a step sees only the siblings it comes `after`.
    """

    label: str
    steps: tuple[StepSpec, ...]
    names: tuple[str, ...] = ()
    ordered: bool = True
    then: tuple[Expression, ...] = ()
    """Conditions asked at the end of the block, which see its steps."""


LIMITS = ("time", "steps", "tokens", "cost")


@dataclass(frozen=True, slots=True)
class RunBudget:
    """What a run may use. None means without limit. A run that comes to a limit stops there, unless it says `undo`."""

    time: float | None = None
    steps: int | None = None
    tokens: int | None = None
    cost: float | None = None
    on_exceeded: Literal["stop", "undo"] = "stop"

    @property
    def limits(self) -> dict[str, float | int]:
        """The limits that there are, by name."""
        return {name: getattr(self, name) for name in LIMITS if getattr(self, name) is not None}


@dataclass(frozen=True, slots=True)
class WorkflowSpec:
    """A whole workflow, checked as far as a document can be."""

    name: str
    steps: tuple[StepSpec, ...]
    mark: SourceMark = field(compare=False)
    description: str = ""
    inputs: Mapping[str, Contract] = field(default_factory=dict)
    on_error: OnError = "undo"
    budget: RunBudget = field(default=RunBudget())
    output: Mapping[str, Source] | None = None
    folder: str = ""
    """For one inside another: where its modules and workflows are, from the folder of the other."""

    def all_steps(self) -> Iterator[StepSpec]:
        """Every step, those inside of others included, in the order they are written."""
        from troth.runtime.workflows.kinds import blocks_of

        waiting = list(reversed(self.steps))
        while waiting:
            step = waiting.pop()
            yield step
            inner = [child for block in blocks_of(step) for child in block.steps]
            waiting.extend(reversed(inner))
