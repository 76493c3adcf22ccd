"""How states, times and values are shown in few letters, the same in every picture."""

import json
import os
import time

from troth.runtime.workflows.record.report import RunReport, RunWord, StepWord

__all__ = ["MARKS", "RUN_MARKS", "at", "due", "short_place", "span", "used", "value"]

MARKS = {
    StepWord.DONE: "✓",
    StepWord.RUNNING: "▶",
    StepWord.WAITING: "◷",
    StepWord.RESTING: "↻",
    StepWord.INTERRUPTED: "‖",
    StepWord.FAILED: "✗",
    StepWord.PASSED_OVER: "~",
    StepWord.LET_GO: "≈",
    StepWord.CANCELLED: "⊘",
    StepWord.UNDONE: "↶",
    StepWord.NOT_TAKEN: "·",
    StepWord.NOT_REACHED: "·",
}
RUN_MARKS = {
    RunWord.COMPLETED: "✓",
    RunWord.RUNNING: "▶",
    RunWord.WAITING: "◷",
    RunWord.INTERRUPTED: "‖",
    RunWord.FAILED: "✗",
    RunWord.CANCELLED: "⊘",
    RunWord.ROLLED_BACK: "↶",
    RunWord.ROLLBACK_INCOMPLETE: "!",
    RunWord.DAMAGED: "?",
}


def span(seconds: float) -> str:
    """A stretch of time in three or four letters."""
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} d"


def at(moment: float) -> str:
    """A moment, in the time of the one who reads."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))


def due(run: RunReport) -> str:
    """When a run that nobody carries out can go on, and for how long it could have; empty where somebody does."""
    if not run.is_unattended or run.due_at is None:
        return ""
    late = run.overdue()
    if late:
        return f"overdue: it can continue since {at(run.due_at)}, {span(late)} ago, but no process is running it"
    return f"continues at {at(run.due_at)}, {span(run.due_at - time.time())} from now, if a process is running then"


def used(tokens: int, cost: float) -> str:
    """What agents used; empty where they used nothing."""
    return f"{tokens:,} tokens" + (f", cost {cost:g}" if cost else "") if tokens or cost else ""


def value(thing: object, width: int = 60) -> str:
    """A value on one line, cut where it is too long."""
    text = json.dumps(thing, ensure_ascii=False) if not isinstance(thing, str) else thing
    text = text.replace("\n", " ")
    return text if len(text) <= width else text[: width - 1] + "…"


def short_place(place: str) -> str:
    """`file:line` as seen from here where that is shorter."""
    if not place:
        return ""
    try:
        relative = os.path.relpath(place)
    except ValueError:  # another drive
        return place
    return relative if len(relative) < len(place) else place
