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

__all__ = ["unchanged"]


def unchanged(project: Project, *, python: Path | None, cache: Path, on_request: Collection[str]) -> Analysis | None:
    """What is kept in `cache`, if it still is all there is to say; None if something has to be looked at."""
    rules = [rule.code for rule in catalog() if rule.is_default or rule.code in on_request]
    kept = store.load(cache, surroundings(project, python, rules).words)
    if kept is None or len(kept.facts) != len(project.files):
        return None
    root, stamps = project.root, kept.stamps
    if any(stamps.get(path) != store.stamp(f"{root}/{path}") for path in project.files):
        return None
    problems = {path: found for path, found in kept.facts.items() if isinstance(found, Problem)}
    if any(one.newer_syntax or one.is_unopened for one in problems.values()):
        return None  # an interpreter that reads it may have been installed since, or somebody was given leave
    return told(kept.findings, {path: problems[path] for path in project.files if path in problems}, len(project.files))
