"""Say what a run that is not over does just now, and for what it waits, with times in the zone of whoever reads."""

import time
from collections.abc import Iterator

from troth.runtime.workflows.record.report import RunReport, RunWord, StepReport, StepWord
from troth.runtime.workflows.render.markup import Html, join, tag
from troth.runtime.workflows.render.words import MARKS
from troth.server.pages.frame.parts import moment, panel, times

__all__ = ["activity", "until"]

_SHOWN = 5  # steps of a run that are told; the rows have all of them


def activity(run: RunReport) -> Html:
    """A box with a line for each step that is at work or waits; empty where the run is over, or only asks a person."""
    if run.is_over or run.state is RunWord.INTERRUPTED:
        return Html("")
    lines = [line for step in run.steps if not step.is_block and (line := _line(step))]
    more = len(lines) - _SHOWN
    shown = [tag("p", line) for line in lines[:_SHOWN]]
    if more > 0:
        shown.append(tag("p", f"and {times(more, 'more step')}", class_="soft"))
    if run.is_unattended and run.due_at is not None:
        shown.append(tag("p", *_due(run)))
    return panel(shown, kind=f"activity {run.state}") if shown else Html("")


def _line(step: StepReport) -> Html | None:
    mark, name = tag("span", MARKS[step.state], class_=step.state), tag("b", step.place)
    match step.state:
        case StepWord.RUNNING:
            return join(mark, " at work on ", name, ", started " if step.started_at else None, moment(step.started_at))
        case StepWord.RESTING:
            return join(
                mark, " ", name, f" failed {times(len(step.attempts))}; it is tried again ", moment(step.wake_at)
            )
        case StepWord.WAITING if not step.question:
            has_come = step.wake_at is not None and step.wake_at <= time.time()
            when = "" if step.wake_at is None else "; its time came " if has_come else "; it goes on "
            return join(mark, " ", name, " waits", when, moment(step.wake_at))
    return None


def _due(run: RunReport) -> Iterator[object]:
    """When a run that no process carries out can go on."""
    if run.overdue():
        yield from ("Overdue: it could have gone on ", moment(run.due_at), ", but no process carries it out.")
    else:
        yield from ("It can go on ", moment(run.due_at), ", if a process carries it out then.")


def until(step: StepReport) -> Html:
    """Until when a question can be answered, or that it is; empty where it has no timeout and no answer."""
    if step.answered_at is not None:
        return join("It was answered ", moment(step.answered_at), ".")
    if step.deadline is None:
        return Html("")
    verb = "ended" if step.is_too_late() else "ends"
    return join(f"The time to answer {verb} ", moment(step.deadline), "; no answer counts as a refusal.")
