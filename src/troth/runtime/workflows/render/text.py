"""Draw a run in a terminal: its steps as a tree with their states in words, and a timeline below."""

from collections.abc import Callable, Iterator, Sequence

from troth.runtime.workflows.record.report import RunReport, RunWord, StepReport, StepWord
from troth.runtime.workflows.render.folding import folded
from troth.runtime.workflows.render.printable import printable
from troth.runtime.workflows.render.summary import attempts_of, code_changes, until
from troth.runtime.workflows.render.talk import talk_lines
from troth.runtime.workflows.render.words import MARKS, RUN_MARKS, at, due, short_place, span, used, value

__all__ = ["Paint", "draw", "table"]

Paint = Callable[..., str]
_STATE_COLORS = {
    "done": "green",
    "completed": "green",
    "failed": "red",
    "rollback incomplete": "red",
    "damaged": "red",
    "interrupted": "yellow",
    "waiting": "yellow",
    "resting": "yellow",
    "rolled back": "cyan",
    "undone": "cyan",
    "running": "blue",
    "cancelled": "yellow",
    "let go": "yellow",
    "passed over": "yellow",
}
_LETTERS = {"work": "█", "wait": "░", "gone": "·"}
_IDLE = (StepWord.NOT_REACHED, StepWord.NOT_TAKEN)


def _plain(text: str, *_: str) -> str:
    return text


def draw(run: RunReport, *, width: int = 80, paint: Paint = _plain, options: str = "") -> str:
    """The whole picture of a run, at most `width` letters wide; states and names are never cut."""
    return "\n".join(line.rstrip() for line in _draw(printable(folded(run)), width, paint, options))


def _draw(run: RunReport, width: int, paint: Paint, options: str) -> Iterator[str]:
    took = f"  {span(run.ended_at - run.created_at)}" if run.ended_at is not None else ""
    state = paint(f"{RUN_MARKS[run.state]} {run.state}", _STATE_COLORS.get(run.state, "bold"))
    yield f"{paint(run.workflow, 'bold')}  {run.id}  {state}{took}"
    yield f"started {at(run.created_at)}" + (f", forked from {run.forked_from}" if run.forked_from else "")
    if run.session:
        yield f"in the session {run.session}, by {run.agent}"
    if run.tokens or run.cost:
        yield f"used    {used(run.tokens, run.cost)}"
    if run.inputs:
        yield f"inputs  {value(dict(run.inputs), width - 8)}"
    if run.output is not None:
        yield f"output  {value(run.output, width - 8)}"
    yield from _news(run, width, paint)
    yield ""
    yield from _tree(run.steps, width, paint)
    for step in run.steps:
        if step.talk:
            yield ""
            yield paint(f"{step.place}: messages and tool calls of its agent", "bold")
            yield from (f"  {line}" for line in talk_lines(step.talk, width - 2))
    timed = [step for step in run.steps if step.spans() and not step.is_block]
    if timed:
        yield ""
        yield from _timeline(timed, width)
    commands = run.commands(options)
    if commands:
        yield ""
        for command, says in commands:
            yield f"{paint(command, 'bold')}"
            yield f"    {says}"


def _news(run: RunReport, width: int, paint: Paint) -> Iterator[str]:
    """What a reader has to know first: the failed step, the user's line, its message."""
    for step in (*run.failures, *run.not_undone):
        yield ""
        tries = f" after {len(step.attempts)} attempts" if len(step.attempts) > 1 else ""
        yield paint(f"{MARKS[StepWord.FAILED]} {step.place} failed{tries}", "red", "bold")
        if step.error is not None:
            if step.error.place:
                yield value(f"  {short_place(step.error.place)}  {step.error.line}".rstrip(), width)
            yield from (f"  {line}" for line in _folded(str(step.error), width - 2))
        if len(step.attempts) > 1:
            yield from (f"  {line}" for attempt in attempts_of(step) for line in _folded(attempt, width - 2, "    "))
    if run.last_seen is not None:
        yield ""
        yield f"{RUN_MARKS[RunWord.INTERRUPTED]} interrupted: its process was last seen at {at(run.last_seen)}"
    if due(run):
        yield ""
        yield from _folded(due(run), width)
    for step in run.waiting_for:
        if step.question:
            yield ""
            yield f"{MARKS[StepWord.WAITING]} {step.place} asks: {step.question}"
            if until(step):
                yield f"  {until(step)}"
            yield from (f"  {name}: {value(shown, width - len(name) - 4)}" for name, shown in step.shown.items())


def _folded(text: str, width: int, indent: str = "") -> Iterator[str]:
    import textwrap

    for line in text.splitlines():
        yield from textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [""]


def _tree(steps: Sequence[StepReport], width: int, paint: Paint) -> Iterator[str]:
    names = [f"{'  ' * step.depth}{_mark(step)} {step.place}" for step in steps]
    indent = min(max(map(len, names), default=0), 34)
    states = [_state(step) for step in steps]
    middle = max(map(len, states), default=0)
    for step, name, state in zip(steps, names, states, strict=True):
        color = _STATE_COLORS.get(step.state, "dim")
        room = width - indent - middle - 4
        yield f"{name:<{indent}}  {paint(f'{state:<{middle}}', color)}  {_about(step, max(room, 12))}"


def _mark(step: StepReport) -> str:
    return MARKS[step.state]


def _state(step: StepReport) -> str:
    return step.state


def _about(step: StepReport, room: int) -> str:
    parts = []
    if step.state not in _IDLE and step.ended_at is not None:
        waits = step.kind in ("sleep", "approval")
        waited = f" + {span(step.waited)} waiting" if step.waited and not waits else ""
        gone = f" + {span(step.unattended)} without a process" if step.unattended else ""
        parts.append(span(step.took if waits else step.worked) + waited + gone)
    if step.tries > 1 or len(step.attempts) > 1:
        parts.append(f"{max(step.tries, len(step.attempts))} tries")
    if step.code_changed:
        parts.append(code_changes(step))
    if step.tokens or step.cost:
        parts.append(used(step.tokens, step.cost))
    if step.done_by:
        parts.append(f"done by {step.done_by}")
    words = ", ".join(parts)
    detail = f"{step.kind} {step.detail}".strip() if step.kind != "undo" else ""
    text = f"{words:<8} {detail}" if words else detail
    return text if len(text) <= room else text[: room - 1] + "…"


def _timeline(steps: Sequence[StepReport], width: int) -> Iterator[str]:
    """A bar per step: work is solid, waiting is light, and where no process was at work there is a gap."""
    every = [span_ for step in steps for span_ in step.spans()]
    start, end = min(stretch[0] for stretch in every), max(stretch[1] for stretch in every)
    whole = max(end - start, 1e-6)
    indent = min(max(len("timeline"), *(len(step.place) for step in steps)), 28)
    room = width - indent - 3
    scale = f"0{span(whole):>{room - 1}}"
    yield f"{'timeline':<{indent}}  {scale}"
    for step in steps:
        bar = [" "] * room
        for began, ended, activity in step.spans():
            first = int((began - start) / whole * (room - 1))
            last = max(first, int((ended - start) / whole * (room - 1)))
            bar[first : last + 1] = _LETTERS[activity] * (last - first + 1)
        if step.state is StepWord.FAILED:
            end_at = max(index for index, letter in enumerate(bar) if letter != " ")
            bar[end_at] = MARKS[StepWord.FAILED]
        name = step.place if len(step.place) <= indent else "…" + step.place[-indent + 1 :]
        yield f"{name:<{indent}}  {''.join(bar)}"
    has_gap = any(activity == "gone" for _, _, activity in every)
    yield f"{'':<{indent}}  █ working  ░ waiting" + ("  · no process" if has_gap else "")


def table(runs: Sequence[RunReport], *, width: int = 80, paint: Paint = _plain) -> str:
    """One line per run, the state in words and never cut."""
    if not runs:
        return "no runs yet"
    runs = printable(list(runs))
    rows = [(run.id, f"{RUN_MARKS[run.state]} {run.state}", at(run.created_at), _note_with_place(run)) for run in runs]
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    lines = []
    for run, (name, state, started, note) in zip(runs, rows, strict=True):
        shown = paint(f"{state:<{second}}", _STATE_COLORS.get(run.state, "bold"))
        room = width - first - second - len(started) - 6
        cut = note if len(note) <= room else note[: max(room - 1, 0)] + "…"
        lines.append(f"{name:<{first}}  {shown}  {started}  {cut}".rstrip())
    return "\n".join(lines)


def _note_with_place(run: RunReport) -> str:
    place = f"in the session {run.session}, by {run.agent}" if run.session else ""
    return ", ".join(filter(None, (_note(run), place)))


def _note(run: RunReport) -> str:
    if run.state is RunWord.DAMAGED:
        return str(run.error).splitlines()[0]
    if run.failures:
        return f"at {run.failures[0].place}: {run.failures[0].error}"
    if run.waiting_for:
        late = run.overdue()
        return f"at {run.waiting_for[0].place}" + (f", overdue by {span(late)}" if late else "")
    return span(run.ended_at - run.created_at) if run.ended_at is not None else ""
