"""What beside its own files decides what is found in a project: rules, installed packages, pinned versions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from troth.analysis.facts import store
from troth.analysis.incremental.own_code import own_code
from troth.analysis.project.environment import packages_of
from troth.analysis.project.project import Project
from troth.analysis.project.pytest_mode import self_running
from troth.analysis.project.python_versions import oldest_python
from troth.analysis.project.version_pins import newest_allowed, oldest_allowed

__all__ = ["Surroundings", "surroundings"]


class Surroundings(NamedTuple):
    """The folders of installed packages, the newest versions that are allowed, and all of it in words."""

    packages: tuple[str, ...]
    allowed: Mapping[str, int]
    oldest_allowed: Mapping[str, int]
    self_running: tuple[str, ...]  # folders whose async tests need no mark
    oldest_python: int  # minor version of Python 3
    words: str
    """Findings that are kept are good only for the same words."""


def surroundings(project: Project, python: Path | None, rules: Sequence[str]) -> Surroundings:
    """What surrounds `project` where it is checked with the rules of these codes."""
    packages = packages_of(project.root, python)
    allowed, at_least = newest_allowed(project.root), oldest_allowed(project.root)
    stamps = [(folder, store.stamp(folder)) for folder in packages]  # a folder changes with what is installed
    self_run = self_running(project.root, project.source_roots)
    oldest = oldest_python(project.root)
    versions = f"{sorted(allowed.items())} {sorted(at_least.items())} {oldest}"
    words = f"{project.root} {project.source_roots} {stamps} {list(rules)} {versions} {self_run} {own_code()}"
    return Surroundings(packages, allowed, at_least, self_run, oldest, words)
