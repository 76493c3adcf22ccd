"""Know on which line of its file each step of a workflow is written, also when only its record is left.

A step that fails on a timeout, a budget or a person's no has no line of the user's code; the line that says so stands
in the workflow. What is kept is a map from the place of each step to file, line and the text of that line.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from troth.runtime.workflows.document.nodes import SourceMark
from troth.runtime.workflows.kinds import blocks_of, kind_of
from troth.runtime.workflows.record.report import ErrorReport, RunReport, StepReport
from troth.runtime.workflows.spec import StepSpec, WorkflowSpec

__all__ = ["WrittenLines", "lines_of", "lines_stream", "with_written_lines"]

WrittenLines = Mapping[str, Sequence[object]]
"""File, line and text by the place of a step, without rounds and items."""
_LONGEST = 200  # letters of a line
_ROUND = re.compile(r"\[\d+\]")


def lines_stream(name: str) -> str:
    """The stream that has the lines of the workflow that is kept under this name, the last ones counting."""
    return f"lines:{name}"


def lines_of(spec: WorkflowSpec) -> dict[str, list[object]]:
    """The line of every step that is written in a file that can be read."""
    texts: dict[str, list[str]] = {}
    lines: dict[str, list[object]] = {}
    for place, mark in _marks(spec.steps, ""):
        if mark.file not in texts:
            texts[mark.file] = _read(mark.file)
        text = texts[mark.file]
        if mark.line <= len(text):
            lines[place] = [str(Path(mark.file).absolute()), mark.line, text[mark.line - 1].strip()[:_LONGEST]]
    return lines


def _read(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except (OSError, ValueError):
        return []  # it was built out of no file: of a text, or at a prompt


def _marks(steps: Sequence[StepSpec], prefix: str) -> Iterator[tuple[str, SourceMark]]:
    for step in steps:
        place = f"{prefix}{step.id}"
        yield place, step.mark
        inner = kind_of(step).inner(step.body)
        if inner is not None:
            yield from _marks(inner.steps, f"{place}.")
            continue
        for block in blocks_of(step):
            yield from _marks(block.steps, f"{place}." if step.kind in ("each", "loop") else prefix)


def with_written_lines(run: RunReport, lines: WrittenLines) -> RunReport:
    """The report with the line of the workflow wherever an error has no line of the user's code."""

    def with_line(step: StepReport) -> StepReport:
        if step.error is None or step.error.place:
            return step
        return replace(step, error=_placed(step.error, step.undoes or step.place, lines))

    error = run.error
    if error is not None and not error.place and run.stopped_at:
        error = _placed(error, run.stopped_at, lines)
    return replace(
        run,
        steps=tuple(map(with_line, run.steps)),
        failures=tuple(map(with_line, run.failures)),
        not_undone=tuple(map(with_line, run.not_undone)),
        waiting_for=tuple(map(with_line, run.waiting_for)),
        error=error,
    )


def _placed(error: ErrorReport, place: str, lines: WrittenLines) -> ErrorReport:
    match lines.get(_ROUND.sub("", place)):
        case [str() as file, int() as line, str() as text]:
            return replace(error, place=f"{file}:{line}", line=text)
    return error
