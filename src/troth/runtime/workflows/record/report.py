"""The record of a run as plain values: what happened to each step, when, and why. Everything shown of a run is here."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from html import escape
from itertools import pairwise
from shlex import quote

from troth.runtime.conversations.transcript import TranscriptEntry
from troth.runtime.engine.code_digest import has_changed

__all__ = ["AttemptReport", "ErrorReport", "RunReport", "RunWord", "StepReport", "StepWord"]


class RunWord(StrEnum):
    """Where a run stands, in the word that is shown for it."""

    RUNNING = "running"
    WAITING = "waiting"
    INTERRUPTED = "interrupted"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ROLLED_BACK = "rolled back"
    ROLLBACK_INCOMPLETE = "rollback incomplete"
    DAMAGED = "damaged"


class StepWord(StrEnum):
    """Where a step stands, in the word that is shown for it."""

    DONE = "done"
    RUNNING = "running"
    WAITING = "waiting"
    RESTING = "resting"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    PASSED_OVER = "passed over"
    LET_GO = "let go"
    CANCELLED = "cancelled"
    UNDONE = "undone"
    NOT_TAKEN = "not taken"
    NOT_REACHED = "not reached"


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """What went wrong: the exception, and the user's own line.

    Where none of the user's code failed, as with a timeout or a person's no: the line of the step in its workflow.
    """

    type: str
    message: str
    place: str = ""
    line: str = ""
    traceback: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"


@dataclass(frozen=True, slots=True)
class AttemptReport:
    """One attempt that did not succeed, with its own error, and how long was waited after it."""

    number: int
    outcome: str
    error: ErrorReport | None
    started_at: float | None
    ended_at: float
    next_at: float | None = None
    code: str | None = None
    """The digest of the code that was called, where it is known."""

    @property
    def was_interrupted(self) -> bool:
        """Whether its process died, or let go of the run; `ended_at` is then its last sign of life."""
        return self.outcome == "interrupted"

    @property
    def pause(self) -> float:
        """Seconds until the next attempt; 0 where there was none."""
        return 0.0 if self.next_at is None else max(0.0, self.next_at - self.ended_at)


@dataclass(frozen=True, slots=True)
class StepReport:
    """One step: one row, however often it was tried. `place` is its name in the run, with rounds and items."""

    place: str
    kind: str
    state: StepWord
    depth: int = 0
    detail: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    attempts: tuple[AttemptReport, ...] = ()
    tries: int = 0
    error: ErrorReport | None = None
    inputs: object = None
    output: object = None
    wake_at: float | None = None
    is_undo: bool = False
    undoes: str = ""
    """Of an undo: the place of the step that it takes back."""
    is_block: bool = False
    way: str = ""
    """In a branch: the label of the way it is on."""
    question: str = ""
    shown: Mapping[str, object] = field(default_factory=dict)
    deadline: float | None = None
    """Until when its question can be answered; None where it has no timeout."""
    answered_at: float | None = None
    """When its question was answered, where nobody has taken notice of that yet."""
    timed_out: bool = False
    """Whether nobody answered its question until then, which is a no."""
    tokens: int = 0
    """What its agent used, in and out together, failed attempts included."""
    cost: float = 0.0
    talk: tuple[TranscriptEntry, ...] = ()
    """What its agent was told, said and had done; only where `Runtime.show` was asked for it."""
    done_by: str = ""
    """In a fork: the run that did it, where that is another one."""
    code: str | None = None
    """The digest of the code that its last attempt called, where it is known."""
    key: str = ""
    """What its effect is known by wherever it is repeated, as `current_step().key` told it; empty before it began."""

    @property
    def code_changed(self) -> tuple[int, ...]:
        """The attempts, counted from 1, that called other code than the one before them."""
        codes = [*(attempt.code for attempt in self.attempts), self.code]
        return tuple(number for number, pair in enumerate(pairwise(codes), start=2) if has_changed(*pair))

    def is_too_late(self, now: float | None = None) -> bool:
        """Whether the time to answer its question is up."""
        return self.deadline is not None and (time.time() if now is None else now) >= self.deadline

    @property
    def waited(self) -> float:
        """Seconds of waiting: between attempts, for a moment, for a person."""
        if self.kind in ("sleep", "approval"):
            return self.took
        return sum(attempt.pause for attempt in self.attempts if not attempt.was_interrupted)

    @property
    def unattended(self) -> float:
        """Seconds in which no process was at work on it: the one that was had died, or had let go of the run."""
        return sum(attempt.pause for attempt in self.attempts if attempt.was_interrupted)

    @property
    def took(self) -> float:
        """Seconds from its beginning to its end, waiting included."""
        if self.started_at is None or self.ended_at is None:
            return 0.0
        return max(0.0, self.ended_at - self.started_at)

    @property
    def worked(self) -> float:
        """Seconds of work."""
        return max(0.0, self.took - self.waited - self.unattended)

    def spans(self) -> list[tuple[float, float, str]]:
        """Stretches of time as (from, to, "work", "wait" or "gone"), in order; "gone" is time without a process."""
        if self.started_at is None or self.ended_at is None:
            return []
        if self.kind in ("sleep", "approval"):
            return [(self.started_at, self.ended_at, "wait")]
        spans: list[tuple[float, float, str]] = []
        at = self.started_at
        for attempt in self.attempts:
            spans.append((at, attempt.ended_at, "work"))
            at = attempt.ended_at
            if attempt.next_at is not None:
                until = min(max(attempt.next_at, at), self.ended_at)
                spans.append((at, until, "gone" if attempt.was_interrupted else "wait"))
                at = until
        if at < self.ended_at or not spans:
            spans.append((at, self.ended_at, "work"))
        return spans


_ADVICE = {RunWord.DAMAGED: (("troth store check", "read everything in the store, and list what is damaged"),)}
_EXAMPLES = {"time": "…s", "steps": "…", "tokens": "…", "cost": "…"}


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run of a workflow, as it is recorded."""

    id: str
    workflow: str
    state: RunWord
    inputs: Mapping[str, object]
    output: object
    steps: tuple[StepReport, ...]
    created_at: float
    ended_at: float | None
    source: str | None = None
    failures: tuple[StepReport, ...] = ()
    undone: tuple[str, ...] = ()
    rolled_back: tuple[str, ...] = ()
    """Those of `undone` after whose undoing nothing went on: where there are any, the run is over for good."""
    not_undone: tuple[StepReport, ...] = ()
    waiting_for: tuple[StepReport, ...] = ()
    error: ErrorReport | None = None
    forked_from: str | None = None
    cancel_requested: bool = False
    is_unattended: bool = False
    """Whether it waits and no process carries it out, so that somebody has to go on with it when it is due."""
    over_budget: str | None = None
    """The limit of its budget at which it stopped, as in `tokens`."""
    stopped_at: str | None = None
    """The step that it stopped at for want of budget."""
    last_seen: float | None = None
    """Of an interrupted run: the last sign of life of the process that ran it, where that is known."""
    session: str | None = None
    """The governed session that it is run in, which alone goes on with it; None where it is in none."""
    agent: str | None = None
    """The member of that session who runs it."""

    @property
    def tokens(self) -> int:
        """What its agents used, in and out together."""
        return sum(step.tokens for step in self.steps)

    @property
    def cost(self) -> float:
        """What its agents cost."""
        return sum(step.cost for step in self.steps)

    @property
    def succeeded(self) -> bool:
        """Whether it is over and all is well."""
        return self.state is RunWord.COMPLETED

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to it by itself."""
        return self.state not in (RunWord.RUNNING, RunWord.WAITING, RunWord.INTERRUPTED)

    @property
    def due_at(self) -> float | None:
        """When it can go on; None where it needs an answer for that, or nothing."""
        resting = (StepWord.WAITING, StepWord.RESTING)
        moments = [
            step.wake_at if step.answered_at is None else step.answered_at
            for step in self.steps
            if step.state in resting
        ]
        return min((moment for moment in moments if moment is not None), default=None)

    def overdue(self, now: float | None = None) -> float:
        """For how many seconds it could have gone on, if only somebody had carried it out; 0 where it could not."""
        due_at = self.due_at
        if not self.is_unattended or due_at is None:
            return 0.0
        return max(0.0, (time.time() if now is None else now) - due_at)

    @property
    def can_be_undone(self) -> bool:
        """Whether it stopped at a failure with what it did left in place, to be resumed or given up."""
        return self.state is RunWord.FAILED and not self.rolled_back

    @property
    def done(self) -> tuple[str, ...]:
        """The steps that were done, those undone later included."""
        words = (StepWord.DONE, StepWord.UNDONE)
        return tuple(step.place for step in self.steps if step.state in words and not step.is_undo)

    def step(self, place: str) -> StepReport:
        """The step at `place`; `KeyError` if there is none."""
        for step in self.steps:
            if step.place == place:
                return step
        raise KeyError(place)

    def commands(self, options: str = "") -> tuple[tuple[str, str], ...]:
        """What can be done with the run now: command lines of `troth`, each with what it does.

        `options` stand at the end of each: ` --store FILE` where the run is not in the usual one, ` --app …`.
        """
        lines = self._commands(quote(self.id))
        if self.session is not None:  # each of its steps is judged there, so nobody else goes on with it
            lines = tuple((command, says) for command, says in lines if command.startswith("troth runs approve "))
        return tuple((command + options, says) for command, says in lines)

    def _repr_html_(self) -> str:
        """What a notebook shows: the page of the run, in a frame, so that neither style changes the other."""
        from troth.runtime.workflows.render.html import page

        return (
            f'<iframe title="{escape(self.workflow)}" sandbox srcdoc="{escape(page(self))}"'
            ' style="width:100%;height:36rem;border:0"></iframe>'
        )

    @property
    def _why_due(self) -> str:
        if any(step.answered_at is not None for step in self.waiting_for):
            return "its question is answered"
        if any(step.kind == "approval" and step.is_too_late() for step in self.waiting_for):
            return "no answer came in time, which counts as a refusal"
        return "its wait is over"

    def _commands(self, run: str) -> tuple[tuple[str, str], ...]:
        again = (f"troth runs fork {run}", "run it again with the same inputs, as a new run")
        match self.state:
            case RunWord.WAITING if self.overdue():
                return (
                    (f"troth runs resume {run}", f"continue; {self._why_due}"),
                    ("troth worker", "continue this run, and all other runs that no process is running"),
                )
            case RunWord.WAITING if self.waiting_for and self.waiting_for[0].kind == "approval":
                answerable = [
                    step.place for step in self.waiting_for if step.kind == "approval" and not step.is_too_late()
                ]
                if not answerable:
                    return ((f"troth runs resume {run}", f"continue; {self._why_due}"),)
                place = answerable[0]
                approve = f"troth runs approve {run}" + (f" --step {quote(place)}" if len(self.waiting_for) > 1 else "")
                return ((approve, "approve and continue"), (f"{approve} --deny", "say no"))
            case RunWord.WAITING if self.is_unattended:
                return (("troth worker", "continue it when it is due, and all other runs that no process is running"),)
            case RunWord.FAILED if self.rolled_back:
                return (again,)
            case RunWord.FAILED if self.over_budget is not None:
                more = f"troth runs resume {run} --budget {self.over_budget}={_EXAMPLES[self.over_budget]}"
                return ((more, "resume with a larger budget; completed steps are not repeated"),)
            case RunWord.FAILED:
                return (
                    (f"troth runs resume {run}", "resume at the step that failed; completed steps are not repeated"),
                )
            case RunWord.INTERRUPTED:
                return ((f"troth runs resume {run}", "resume where it was interrupted"),)
            case RunWord.ROLLBACK_INCOMPLETE:
                names = ", ".join(undo.place for undo in self.not_undone)
                return ((f"troth runs resume {run}", f"try again to {names}; completed undos are not repeated"),)
            case RunWord.ROLLED_BACK | RunWord.CANCELLED:
                return (again,)
        return _ADVICE.get(self.state, ())
