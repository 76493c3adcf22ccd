"""Tell what an analysis found: in order, with what cannot be read, and no more certain than it is."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.findings import Finding, Span
from troth.analysis.findings.downgrade import without_crowds

if TYPE_CHECKING:
    from troth.analysis.crash import Crash
    from troth.analysis.semantics import Program
    from troth.analysis.source.problem import Problem

__all__ = ["Analysis", "told", "unreadable_folder"]


class Analysis(NamedTuple):
    """What became known about a project.

    `unreadable` files could not be decoded or parsed (each of them is a finding too); `newer_syntax` files use syntax
    that the running interpreter does not know, and nothing that depends on them is called certain. `program` answers
    further questions (`troth fix`, `troth recolor`); after a warm run it has looked only at what changed, and there is
    none where nothing had and nobody asked for it. `crashes` are the exceptions of our own that were contained.
    """

    findings: tuple[Finding, ...]
    checked: int
    unreadable: tuple[str, ...] = ()
    newer_syntax: tuple[str, ...] = ()
    looked_at: tuple[str, ...] = ()
    program: "Program | None" = None
    crashes: "tuple[Crash, ...]" = ()


def told(
    findings: Iterable[Finding],
    problems: "Mapping[str, Problem]",
    checked: int,
    looked_at: tuple[str, ...] = (),
    program: "Program | None" = None,
    crashes: "tuple[Crash, ...]" = (),
) -> Analysis:
    """The analysis of a project with these findings, and files that cannot be read for these reasons."""
    # A template that only becomes Python when it is filled in is nobody's mistake.
    problems = {path: p for path, p in problems.items() if p.newer_syntax or not p.is_template}
    broken = {path: p for path, p in problems.items() if not p.newer_syntax and p.crash is None}
    every = without_crowds([*findings, *(_unreadable(path, p) for path, p in broken.items())])
    every.sort(key=lambda f: (f.span.path, f.span.cell or 0, f.span.line, f.span.column, f.code))
    return Analysis(
        tuple(every),
        checked,
        tuple(path for path, p in problems.items() if not p.newer_syntax),
        tuple(path for path, p in problems.items() if p.newer_syntax),
        looked_at,
        program,
        crashes,
    )


def _unreadable(path: str, problem: "Problem") -> Finding:
    span = Span(path, problem.line, problem.column, problem.line, problem.column)
    message = f"this file cannot be read, so nothing in it is checked: {problem.text}"
    return Finding("TR001", "unreadable-file", span, message, "certain", subject=problem.text)


def unreadable_folder(path: str, reason: str) -> Finding:
    """The finding that a folder is."""
    message = f"this folder cannot be read, so nothing in it is checked: {reason}"
    return Finding("TR001", "unreadable-file", Span(path, 1, 1, 1, 1), message, "certain", subject=reason)
