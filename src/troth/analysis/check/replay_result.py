"""What an earlier run found in a project of which nothing has changed since: nothing has to be worked out.

This is the way of most runs, in an editor, before a commit and in CI, so that it imports neither program nor rules.
"""

from collections.abc import Collection
from pathlib import Path

from troth.analysis.facts import store
from troth.analysis.incremental.context import surroundings
from troth.analysis.project.project import Project
from troth.analysis.result import Analysis, told
from troth.analysis.rules.catalog import catalog
from troth.analysis.source.problem import Problem

__all__ = ["leaves_no_start", "unchanged"]


def unchanged(project: Project, *, python: Path | None, cache: Path, on_request: Collection[str]) -> Analysis | None:
    """What is kept in `cache`, if it still is all there is to say; None if something has to be looked at."""
    saved = _left(project, python, cache, on_request)
    if saved is None or len(saved.facts) != len(project.files):
        return None
    root, stamps = project.root, saved.stamps
    if any(stamps.get(path) != store.stamp(f"{root}/{path}") for path in project.files):
        return None
    problems = {path: problem for path, problem in saved.facts.items() if isinstance(problem, Problem)}
    if any(problem.newer_syntax or problem.is_unopened for problem in problems.values()):
        return None  # an interpreter that reads it may have been installed since, or somebody was given leave
    return told(
        saved.findings, {path: problems[path] for path in project.files if path in problems}, len(project.files)
    )


def leaves_no_start(project: Project, *, python: Path | None, cache: Path, on_request: Collection[str]) -> bool:
    """Whether everything has to be looked at: `cache` has no earlier run of use."""
    saved = _left(project, python, cache, on_request)
    if saved is None or saved.trace is None or saved.facts.keys() != set(project.files):
        return True
    root, stamps = project.root, saved.stamps
    changed = {path for path in project.files if stamps.get(path) != store.stamp(f"{root}/{path}")}
    return len(changed.union(saved.since)) >= store.TOO_MANY_CHANGED


def _left(project: Project, python: Path | None, cache: Path, on_request: Collection[str]) -> store.Kept | None:
    """What an earlier run left that asked the same questions."""
    rules = [rule.code for rule in catalog() if rule.is_default or rule.code in on_request]
    return store.load(cache, surroundings(project, python, rules).words)
