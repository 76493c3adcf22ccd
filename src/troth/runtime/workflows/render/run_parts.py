"""Show parts of a run as HTML: why it stopped, what it waits for, a row for each step. For the file and for the page.

What a reader needs first stands first: the step, the message, the user's own line, each attempt.
"""

from collections.abc import Iterable, Iterator

from troth.runtime.engine.errors import RunCancelledError
from troth.runtime.workflows.record.report import ErrorReport, RunReport, RunWord, StepReport, StepWord
from troth.runtime.workflows.render.markup import Html, cut, join, raw, shown_json, tag, text_box
from troth.runtime.workflows.render.summary import attempts_of, code_changes, until
from troth.runtime.workflows.render.talk import talk_table
from troth.runtime.workflows.render.words import MARKS, RUN_MARKS, at, short_place, span, used, value

__all__ = ["cause", "commands", "css", "question", "row", "state_word", "undone"]

_LONG = 2000  # letters of a message that are shown at once
_MANY = 12  # attempts that are shown with the cause
_DEEP = 12  # levels that are indented; deeper ones stand below each other


def css(state: str) -> str:
    """The class of a state."""
    return state.replace(" ", "-")


def state_word(run: RunReport) -> Html:
    """The state: a word, a mark and a color."""
    return tag("span", f"{RUN_MARKS[run.state]} {run.state}", class_=f"state {css(run.state)}")


def cause(run: RunReport, seen: Html | None = None) -> Html:
    """Why the run stopped: each failed step, and each undo that failed; empty where nothing went wrong.

    `seen` tells in another way when the process of an interrupted run was last seen.
    """
    panels = [_failure(step) for step in (*run.failures, *run.not_undone)]
    if run.state is RunWord.INTERRUPTED:
        panels.append(_interruption(run, seen))
    if not panels and run.state is RunWord.CANCELLED:
        panels.append(_cancellation(run))
    if not panels and run.error is not None and run.state is not RunWord.COMPLETED:
        heading = f"{RUN_MARKS[run.state]} the run is {run.state}"
        panels = [tag("div", tag("b", heading), _error(run.error), class_="panel failed")]
    return join(panels)


def _interruption(run: RunReport, seen: Html | None) -> Html:
    """What happened to a run whose process died: nobody could write that down."""
    where = _where(run, StepWord.INTERRUPTED)
    words = "The process that ran it has ended, and no other process has taken over. Completed steps are not repeated."
    again = "It is unknown whether the step was partly done: it is started again." if where else None
    heading = tag("b", f"{RUN_MARKS[RunWord.INTERRUPTED]} interrupted{where}")
    told = tag("p", " ".join(filter(None, (words, again))))
    moment = at(run.last_seen) if seen is None and run.last_seen is not None else seen
    when = tag("p", "Its process was last seen ", moment, ".") if run.last_seen is not None else None
    return tag("div", heading, told, when, class_="panel interrupted")


def _where(run: RunReport, state: StepWord) -> str:
    """The steps that stand in a state, as a heading names them: ` at ship`; empty where there are none."""
    places = [step.place for step in run.steps if step.state is state and not step.is_block]
    return f" at {', '.join(places[:3])}" if places else ""


def _cancellation(run: RunReport) -> Html:
    """That somebody wanted it to end: nothing is wrong with it. A reason is told where there is one."""
    heading = tag("b", f"{RUN_MARKS[RunWord.CANCELLED]} cancelled{_where(run, StepWord.CANCELLED)}")
    says_more = run.error is not None and run.error.type != RunCancelledError.__name__
    words = "It was cancelled before it was over."
    return tag(
        "div",
        heading,
        _error(run.error) if says_more and run.error is not None else tag("p", words),
        class_="panel cancelled",
    )


def _failure(step: StepReport) -> Html:
    tries = f" after {len(step.attempts)} attempts" if len(step.attempts) > 1 else ""
    return tag(
        "div",
        tag("b", f"{MARKS[StepWord.FAILED]} {step.place} failed{tries}"),
        None if step.error is None else _error(step.error),
        tag("table", _attempts(step), class_="attempts") if len(step.attempts) > 1 else None,
        tag("details", tag("summary", "inputs and traceback"), list(_evidence(step))) if _has_evidence(step) else None,
        class_="panel failed",
    )


def _attempts(step: StepReport) -> Iterator[Html]:
    """A row for each attempt: its own error, and the wait after it. One that says the same as the last, says so."""
    last = "" if step.error is None else str(step.error)
    for attempt in step.attempts[:_MANY]:
        took = f" after {span(attempt.ended_at - attempt.started_at)}" if attempt.started_at is not None else ""
        error = "" if attempt.error is None else str(attempt.error)
        words = "" if not error else ": the same error" if error == last else f": {cut(error.splitlines()[0], 500)}"
        waiting = "then no process for" if attempt.was_interrupted else "then waited"
        pause = tag("span", f", {waiting} {span(attempt.pause)}", class_="soft") if attempt.pause else None
        yield _attempt(f"attempt {attempt.number}", join(f"{attempt.outcome}{took}{words}", pause))
    if len(step.attempts) > _MANY:
        yield _attempt("", f"… and {len(step.attempts) - _MANY:,} more attempts; the row of the step has them")


def _attempt(number: str, what: object) -> Html:
    return tag("tr", tag("th", number, scope="row") if number else tag("td"), tag("td", what))


def _has_evidence(step: StepReport) -> bool:
    return bool(step.inputs) or (step.error is not None and bool(step.error.traceback))


def _evidence(step: StepReport) -> Iterator[Html]:
    """With what a step failed, and where: what one looks at after the message."""
    if step.inputs:
        yield join("in ", tag("pre", shown_json(step.inputs)))
    if step.error is not None and step.error.traceback:
        yield tag("pre", cut(step.error.traceback, 20_000))


def _error(error: ErrorReport) -> Html:
    place = f"{short_place(error.place)}  {error.line}".rstrip()
    return join(
        text_box(str(error), _LONG),
        text_box(place, 500, "soft line") if error.place else None,
    )


def question(step: StepReport, when: Html | None = None) -> Html:
    """What a step asks a person, until when, and what it shows with it. `when` tells the time in another way."""
    deadline = until(step) if when is None else when
    return join(
        tag("b", f"{step.place} asks:"),
        " ",
        cut(step.question, _LONG),
        tag("div", deadline, class_="soft") if deadline else None,
        text_box(shown_json(dict(step.shown)), 4000, "value") if step.shown else None,
    )


def undone(run: RunReport) -> Html:
    """What was undone, in its order."""
    if not run.undone:
        return Html("")
    return tag("p", f"{MARKS[StepWord.UNDONE]} undone, in this order: {', '.join(run.undone)}", class_="undone-steps")


def commands(lines: Iterable[tuple[str, str]]) -> Html:
    """The command lines to go on with, each with what it does."""
    return join(
        tag("div", tag("code", line, class_="command"), raw("<br>"), tag("span", says, class_="soft"))
        for line, says in lines
    )


def row(step: StepReport, *, extra: Iterable[object] = ()) -> Html:
    """The row of one step; what is known beyond its state is folded. `extra` comes with that."""
    depth = min(step.depth, _DEEP)
    kind = join(step.kind, " ", tag("span", value(step.detail, 80), class_="soft"))
    return tag(
        "tr",
        tag("td", _more(step, extra), class_=f"step depth-{depth}"),
        tag("td", f"{MARKS[step.state]} {step.state}", class_=css(step.state)),
        tag("td", kind, class_="kind"),
        tag("td", time_of(step)),
        class_="block" if step.is_block else None,
    )


def time_of(step: StepReport) -> str:
    """How long a step worked and waited."""
    if step.ended_at is None:
        return ""
    if step.kind in ("sleep", "approval"):
        return f"{span(step.took)} waiting"
    waited = f" + {span(step.waited)} waiting" if step.waited else ""
    return span(step.worked) + waited + (f" + {span(step.unattended)} without a process" if step.unattended else "")


def _more(step: StepReport, extra: Iterable[object]) -> Html:
    parts = [*_details(step), *(part for part in extra if part)]
    if not parts:
        return tag("span", step.place, class_="place")
    return tag("details", tag("summary", step.place), parts)


def _details(step: StepReport) -> Iterator[Html]:
    if step.done_by:
        yield tag("p", f"done by {step.done_by}, which this run was forked from", class_="soft")
    if step.tokens or step.cost:
        yield tag("p", f"used {used(step.tokens, step.cost)}", class_="soft")
    if step.inputs:
        yield join("in ", tag("pre", shown_json(step.inputs)))
    if step.output is not None:
        yield join("out ", tag("pre", shown_json(step.output)))
    if step.code_changed:
        yield tag("p", code_changes(step))
    if step.talk:
        yield join("messages and tool calls of its agent ", talk_table(step.talk))
    if step.attempts:
        yield tag("pre", cut("\n".join(attempts_of(step)), 20_000))
    if step.key and not step.is_block:
        yield tag("p", "key ", tag("code", step.key), class_="soft")
    if step.error is not None and step.error.traceback:
        yield tag("pre", cut(step.error.traceback, 20_000), class_="soft")
