"""Go back in a run: find which recorded answers are taken back, and write it down.

Taken back are the answers that a run ended on, to resume it, and those from a step on, to fork it. Whoever knows more
of a run than its decision's asks (a workflow knows its blocks and its undos) finds them itself; how they are written
down is said here.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from troth.errors import MisuseError
from troth.runtime.engine.errors import CannotResumeError, RunMismatchError
from troth.runtime.store import DamagedStoreError, RunRecord, RunState, StepRecord, StepState, Store, Transaction
from troth.runtime.store.json_codec import keep
from troth.runtime.store.records import Place

__all__ = ["CAN_RESUME", "at_one_moment", "to_ask_again", "trunk_of", "trunk_step", "write_fork", "write_reopening"]

CAN_RESUME = frozenset({RunState.FAILED, RunState.CANCELLED})

_FAILED = frozenset({StepState.FAILED, StepState.CANCELLED})
_EFFECTS = frozenset({"step", "start"})


def at_one_moment(store: Store, run_id: str) -> tuple[RunRecord, Sequence[StepRecord]] | None:
    """A run with its steps, which are needed only where it can be resumed; None where there is no such run.

    Somebody else may take the run up between the look at the one and the look at the others.
    """
    while True:
        run = store.run(run_id)
        if run is None or run.state not in CAN_RESUME:
            return None if run is None else (run, ())
        steps = store.steps(run_id)
        if store.run(run_id) == run:
            return run, steps


def write_reopening(
    tx: Transaction,
    run: RunRecord,
    again: Sequence[StepRecord],
    now: float,
    gives_back: Callable[[StepRecord], bool] = lambda _step: True,
) -> bool:
    """Make a run that failed or was cancelled one that can go on, without the answers of `again`.

    False if it is not at that end any more: somebody else has taken it up. `gives_back` says of which steps the signal
    that they had received can be received again.
    """
    if run.state not in CAN_RESUME or not tx.reopen_run(run.id, now, ended_at=run.finished_at):
        return False
    for step in again:
        tx.take_back_step(step, now, gives_back=gives_back(step))
    return True


def write_fork(tx: Transaction, run: RunRecord, fork_id: str, args: Sequence[object], before: int, now: float) -> None:
    """Write a new run down that has the history of `run` up to the trunk step `before`."""
    text, _ = keep(list(args), f"arguments of run {fork_id!r}")  # as a run that is begun has them: the two are compared
    if not tx.add_run(fork_id, run.decision, text, now, label=run.label, code=run.code, forked_from=run.id):
        raise RunMismatchError(f"The run {fork_id!r} exists already, so run {run.id!r} was not forked to it.")
    tx.copy_steps(run.id, fork_id, before)


def trunk_step(run_id: str, steps: Sequence[StepRecord], before: int | str) -> int:
    """The number of the trunk step that `before` names."""
    trunk = [step for step in steps if not step.place.branch]
    numbers = [step.place.seq for step in trunk if before in {step.name, step.place.seq}]
    if len(numbers) == 1:
        return numbers[0]
    listing = ", ".join(f"{step.place.seq} {step.name}" for step in trunk) or "none"
    why = "is not one of its steps" if not numbers else "is the name of several of its steps; give a number"
    raise MisuseError(f"Run {run_id!r} was not forked: {before!r} {why}. Its steps: {listing}.")


def to_ask_again(run: RunRecord, steps: Sequence[StepRecord]) -> list[StepRecord]:
    """The steps whose recorded answer ended the run: taken back, so that the decision asks anew.

    That is its last step if that one failed, with the ends of the branches it had, or the failure on whose account the
    decision raised, with the waiting and appending it did after that. A failure that it dealt with before stays.
    """
    ended_on = _ended_on(run, steps)
    if ended_on is None:
        return []  # the decision itself raised: it is asked again, and sent the answers it had
    later = [step for step in steps if trunk_of(step.place) > ended_on]
    repeated = [step for step in later if step.kind in _EFFECTS and step.state is StepState.DONE]
    if repeated:
        raise CannotResumeError(
            f"Run {run.id!r} cannot resume from step {ended_on}, where it stopped: after that, its decision did "
            f"{', '.join(repr(step.name) for step in repeated)}, which would be repeated.\n"
            f"It was not changed. `engine.fork({run.id!r}, {ended_on})` starts a new run from there."
        )
    ended_step = next(step for step in steps if not step.place.branch and step.place.seq == ended_on)
    return [ended_step, *_failed_ends(ended_step, steps), *later]


def _ended_on(run: RunRecord, steps: Sequence[StepRecord]) -> int | None:
    """The trunk step on which the run ended, if it ended on one."""
    trunk = [step for step in steps if not step.place.branch]
    if trunk and trunk[-1].state in _FAILED:
        return trunk[-1].place.seq
    error = run.error or {}
    origin = error.get("at") or error.get("origin")
    if origin is None:
        return None
    number = re.match(r"\d+", str(origin))
    if number is None:
        raise DamagedStoreError(f"run {run.id!r}", f"it ended at {origin!r}, which is no step of a run")
    return int(number[0])


def _failed_ends(together: StepRecord, steps: Sequence[StepRecord]) -> Iterator[StepRecord]:
    """The steps on which the branches of `together` ended, where they failed; the branches of those likewise."""
    prefix = f"{together.place}."
    last: dict[str, StepRecord] = {}
    for step in steps:
        if step.place.branch.startswith(prefix) and step.place.branch.count("/") == prefix.count("/") + 1:
            last[step.place.branch] = step
    for step in last.values():
        if step.state in _FAILED:
            yield step
            yield from _failed_ends(step, steps)


def trunk_of(place: Place) -> int:
    """The number of the trunk step that a place is, or lies in a branch of."""
    return int(place.branch.split(".")[0]) if place.branch else place.seq
