"""Find which project lies around the paths that a user names, and which of its files they mean.

The paths say what is reported; the program is the whole project, so that three files of it get the same answer as all.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from troth.analysis.project.import_roots import source_roots
from troth.analysis.project.listing import SUFFIXES, Listing, is_foreign, is_hidden, list_files
from troth.analysis.project.project import Project
from troth.errors import MisuseError

__all__ = ["ProjectScope", "Root", "discover", "existing_paths", "project_root"]

_MARKS = ("pyproject.toml", "setup.py", "setup.cfg")


class ProjectScope(NamedTuple):
    """A project and the part of it that is reported; `marked` are its folders with a packaging or settings file.

    `unread` are folders of that part that could not be looked into, each with the reason.
    """

    project: Project
    reported: frozenset[str]
    marked: tuple[str, ...]
    unread: tuple[tuple[str, str], ...] = ()

    @property
    def told(self) -> frozenset[str]:
        """All paths that may have findings: the files that are reported, and the folders nobody could look into."""
        return self.reported | {folder for folder, _ in self.unread}


class Root(NamedTuple):
    """The folder that paths are relative to, and whether all that lies in it is the program."""

    path: Path
    is_whole: bool = True


def project_root(paths: Sequence[Path], cwd: Path) -> Root:
    """The folder of the project that holds all `paths`, which are absolute; none means `cwd`.

    It is the repository they lie in, so that a package of a monorepo is seen together with its neighbours; without
    one, the nearest folder with a packaging file, or the outermost one inside `cwd`; else `cwd`. A repository that
    ignores the place, and one that is somebody's whole home, is not its project. Where there is no project, or a
    package in an environment is meant, the paths are all there is (`is_whole` is False): nobody wants a whole disk read
    because of two loose files.
    """
    start = Path(os.path.commonpath([_folder(path) for path in paths])) if paths else cwd
    chain = [start, *start.parents]
    marked = [folder for folder in chain if _is_marked(folder)]
    repository = next((folder for folder in chain if (folder / ".git").exists()), None)
    if repository is not None and not _is_too_wide(repository):
        inner = _relative(start, repository)
        if not is_foreign(inner) and not is_hidden(repository, inner):
            return Root(repository)
        marked = [folder for folder in marked if folder != repository and repository in folder.parents]
    within = [folder for folder in marked if folder == cwd or cwd in folder.parents]
    if within and (cwd == start or cwd in start.parents):
        return Root(within[-1])
    if marked:
        return Root(marked[0])
    if cwd == start or cwd in start.parents:
        return Root(cwd, is_whole=not (_is_too_wide(cwd) or is_foreign(_relative(start, cwd))))
    return Root(start, is_whole=False)


def _is_marked(folder: Path) -> bool:
    """Whether a packaging file lies there; a `setup.py` inside a package is one of its modules."""
    marks = [name for name in _MARKS if (folder / name).is_file()]
    return bool(marks) and (marks != ["setup.py"] or not (folder / "__init__.py").is_file())


def discover(
    paths: Sequence[str],
    cwd: Path,
    *,
    excluded: Callable[[str, bool], bool] | None = None,
    force_exclude: bool = False,
    root: Root | None = None,
    extra_roots: Sequence[str] = (),
) -> ProjectScope:
    """Find the project around `paths` (around `cwd`, without any) and the files they mean.

    A path that is not there is refused. A file or folder that is named is taken although it is ignored or excluded,
    unless `force_exclude`.
    """
    named_paths = existing_paths(paths, cwd)
    root = project_root(named_paths, cwd) if root is None else root
    base = root.path
    whole = list_files(base, excluded=excluded) if root.is_whole or base in named_paths else Listing((), ())
    files, marked, reported = set(whole.files), set(whole.marked), set[str]()
    unread: set[tuple[str, str]] = set()
    for path in named_paths:
        inner = _relative(path, base)
        if path.is_dir():
            below = f"{inner}/" if inner else ""
            below_path = {file for file in whole.files if file.startswith(below)}
            unread.update(folder for folder in whole.unread if folder[0].startswith(below))
            if not below_path and inner and not force_exclude:  # hidden from the project, but asked for
                listing = list_files(base, inner, excluded=excluded)
                below_path = set(listing.files)
                marked.update(listing.marked)
                unread.update(listing.unread)
            reported |= below_path
        elif inner in files:
            reported.add(inner)
        elif not force_exclude or not (root.is_whole or (excluded is not None and excluded(inner, False))):
            _refuse_what_is_no_source(path)
            reported.add(inner)
    files |= reported
    ordered = tuple(sorted(files))
    roots = source_roots(base, ordered, sorted(marked))
    roots = (*(extra for extra in extra_roots if extra not in roots), *roots)
    return ProjectScope(
        Project(base, ordered, roots), frozenset(reported), tuple(sorted(marked)), tuple(sorted(unread))
    )


def existing_paths(paths: Sequence[str], cwd: Path) -> list[Path]:
    """The paths as the user wrote them, made absolute; one that is not there, or is no file, is refused."""
    return [_existing(path, cwd) for path in paths]


def _existing(path: str, cwd: Path) -> Path:
    whole = cwd / path
    try:
        whole = whole.resolve(strict=True)  # one file has one name, whatever links lead to it
        if whole.is_dir():
            os.scandir(whole).close()
    except OSError as problem:
        raise MisuseError(
            f"`{path}` cannot be checked: {problem.strerror or problem}.\n"
            "Nothing was checked, so that a misspelt path never passes for a clean one.\n"
            "Name files or folders that exist; without any, the working folder is checked."
        ) from problem
    if not whole.is_dir() and not whole.is_file():
        raise MisuseError(
            f"`{path}` is neither a file nor a folder.\n"
            "Nothing was checked, so that nothing unread passes for clean.\n"
            "Source on standard input is checked with `troth check - --stdin-filename NAME.py`."
        )
    return whole


def _refuse_what_is_no_source(path: Path) -> None:
    if path.name.endswith(SUFFIXES):
        return
    if not path.suffix:
        try:
            with path.open("rb") as file:
                first = file.readline(200)
        except OSError:
            first = b""
        if first.startswith(b"#!") and b"python" in first:
            return
    raise MisuseError(
        f"`{path.name}` is not Python source.\n"
        "Nothing was checked, so that nothing unread passes for clean.\n"
        f"Troth reads {', '.join(SUFFIXES)} and scripts that start with `#!` and name python."
    )


def _relative(path: Path, root: Path) -> str:
    inner = os.path.relpath(path, root).replace(os.sep, "/")
    return "" if inner == "." else inner


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _is_too_wide(folder: Path) -> bool:
    return folder in (Path.home(), Path(folder.anchor))
