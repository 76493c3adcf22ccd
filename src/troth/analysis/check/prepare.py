"""Turn a request into all that is known before a file is read: settings, rules, project, files."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from troth.analysis.check.configuration import Configuration, configuration_of
from troth.analysis.check.request import CheckRequest
from troth.analysis.project.discover import ProjectScope, Root, discover, existing_paths, project_root
from troth.analysis.project.environment import find_environment, named_environment
from troth.analysis.project.listing import is_source
from troth.analysis.project.project import Project
from troth.analysis.report.rulebook import Rulebook, rule_pages
from troth.analysis.selection import check_names
from troth.analysis.settings import Patterns, Settings
from troth.errors import MisuseError

__all__ = ["Prepared", "check_selection", "prepare"]

DEFAULT_BASELINE = "troth-baseline.json"


class Prepared(NamedTuple):
    """What will be checked, and how. `overlay` holds source that does not come from the disk."""

    request: CheckRequest
    settings: Settings
    root: Root
    scope: ProjectScope
    overlay: Mapping[str, bytes]
    excludes: tuple[Patterns, ...]
    rules: Rulebook
    configuration: Configuration = Configuration()

    @property
    def names(self) -> Mapping[str, str]:
        """The name of each rule, by code."""
        return self.rules.names

    @property
    def baseline(self) -> Path | None:
        """The baseline to read or to write."""
        if self.request.baseline is not None:
            return self.request.cwd / self.request.baseline
        if self.settings.baseline is not None:
            return self.settings.baseline
        usual = self.root.path / DEFAULT_BASELINE
        is_read = usual.is_file() and not self.request.isolated
        return usual if self.request.write_baseline or is_read else None

    def python(self) -> Path | None:
        """The interpreter whose packages are read; one that is named but not there is refused."""
        if self.request.python:
            return named_environment(self.request.python, self.request.cwd, f"`--python {self.request.python}`")
        if python := self.settings.python:
            return named_environment(
                python, self.request.cwd, f"{self.settings.place_of(python)}: `python = {python!r}`"
            )
        inner = [self.root.path / folder for folder in self.scope.marked if folder]
        return find_environment([self.root.path, self.request.cwd, *inner])

    def cache(self) -> Path | None:
        """The folder for facts, made so that version control never sees it; None where nothing is kept."""
        folder_name = self.request.cache_dir or self.settings.cache_dir
        if not self.request.cache or (folder_name is None and not self.root.is_whole):
            return None
        folder = self.request.cwd / folder_name if folder_name is not None else self.root.path / ".troth_cache"
        if not self.request.cwd.is_dir():
            return None  # deleted meanwhile, under an editor or `--watch`: it is not made again for the sake of a cache
        try:
            folder.mkdir(parents=folder_name is not None, exist_ok=True)
            if not (folder / ".gitignore").exists():
                (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        except OSError:
            return None  # a tree that cannot be written is checked all the same, only not faster next time
        return folder

    def would_check(self, path: str) -> bool:
        """Whether a file that is not there would be checked if it were."""
        return is_source(path, _excluder(self.root.path, self.excludes))


def prepare(request: CheckRequest) -> Prepared:
    """Find settings, project and files, and refuse what makes no sense before anything is read."""
    cwd = request.cwd
    if request.stdin is None:
        paths = existing_paths(request.paths, cwd) or [cwd]
    else:
        paths = [Path(os.path.normpath(cwd / request.stdin_name))]
    start = Path(os.path.commonpath([path if path.is_dir() else path.parent for path in paths]))
    configuration = configuration_of(request)
    settings = configuration.of(start)
    rules = rule_pages(with_examples=False)
    check_selection(request, settings, rules.names)
    root = project_root(paths, cwd)
    outer = [exclude for exclude in (configuration.of(root.path).exclude,) if exclude is not None]
    if request.extend_exclude:
        outer.append(Patterns(cwd, request.extend_exclude))
    force = request.force_exclude or bool(settings.force_exclude)
    scope = discover(
        [str(path) for path in paths] if request.stdin is None else (),
        cwd,
        excluded=_excluder(root.path, outer),
        force_exclude=force,
        root=root,
        extra_roots=[_inner(source_root, root.path) for source_root in settings.source_roots or ()],
    )
    marked = [] if configuration.first.exclude else [root.path / folder for folder in scope.marked if folder]
    inner = [
        patterns for folder in marked if (patterns := _excluded_in(folder, configuration, root.path, scope.reported))
    ]
    if inner:
        plainly = {_inner(path, root.path) for path in paths if not path.is_dir() and not force}
        scope = _without(scope, root.path, inner, keep=plainly)
    overlay = {}
    if request.stdin is not None:
        name = _inner(paths[0], root.path)
        overlay[name] = request.stdin
        files = tuple(sorted({*scope.project.files, name}))
        scope = scope._replace(project=scope.project._replace(files=files), reported=frozenset({name}), unread=())
    return Prepared(request, settings, root, scope, overlay, (*outer, *inner), rules, configuration)


def _excluded_in(folder: Path, configuration: Configuration, root: Path, reported: Collection[str]) -> Patterns | None:
    """What the settings in `folder` exclude. A mistake in them stops only a check in which files there are reported."""
    try:
        settings = configuration.within(folder)
    except MisuseError:
        if any((root / path).is_relative_to(folder) for path in reported):
            raise
        return None
    return None if settings is None else settings.exclude


def check_selection(request: CheckRequest, settings: Settings, names: Mapping[str, str]) -> None:
    """Refuse names that no rule has, wherever they are written."""
    check_names(request.select or (), names, "`--select`")
    check_names(request.extend_select, names, "`--extend-select`")
    check_names(request.ignore, names, "`--ignore`")
    check_names(settings.select or (), names, "`select`", settings.place_of)
    check_names(settings.extend_select or (), names, "`extend-select`", settings.place_of)
    check_names(settings.ignore or (), names, "`ignore`", settings.place_of)
    for _, ignored in settings.per_file_ignores or ():
        check_names(ignored, names, "`per-file-ignores`", settings.place_of)


def _without(scope: ProjectScope, root: Path, excludes: Sequence[Patterns], keep: set[str]) -> ProjectScope:
    """The scope without what packages inside the project exclude for themselves."""
    gone = {path for path in scope.project.files if any(exclude.match(root / path) for exclude in excludes)} - keep
    files = tuple(path for path in scope.project.files if path not in gone)
    project = Project(root, files, scope.project.source_roots)
    unread = tuple(
        problem for problem in scope.unread if not any(it.says(root / problem[0], folder=True) for it in excludes)
    )
    return scope._replace(project=project, reported=scope.reported - gone, unread=unread)


def _excluder(root: Path, excludes: Sequence[Patterns]) -> Callable[[str, bool], bool] | None:
    if not excludes:
        return None
    return lambda path, folder: any(exclude.says(root / path, folder=folder) for exclude in excludes)


def _inner(path: Path, root: Path) -> str:
    inner = os.path.relpath(path, root).replace(os.sep, "/")
    return "" if inner == "." else inner
