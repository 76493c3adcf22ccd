"""Find which folders of a project absolute imports start from."""

from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["source_roots"]

# What a project may say about its own layout; the file is only parsed if one of these is in it.
_LAYOUT_WORDS = (
    b"where",
    b"package-dir",
    b"package_dir",
    b"from = ",
    b"pythonpath",
    b"sources",
    b"packages = [",
    b"python-source",
)


def source_roots(root: Path, files: Sequence[str], marked: Iterable[str]) -> tuple[str, ...]:
    """Find them from the files alone, and from what each `pyproject.toml` says about its layout.

    Three kinds, each of which real projects need: the folder of a project (`marked`) and its `src`, from which
    namespace packages are named; the folder above a topmost `__init__.py`; the folder of a script, whose neighbours it
    imports by their bare names. The deepest stand first, so that a file gets its shortest true name.
    """
    folders = {file.rpartition("/")[0] for file in files}
    packages = {file.rpartition("/")[0] for file in files if file.endswith(("/__init__.py", "/__init__.pyi"))}
    known = {above for folder in folders for above in _with_those_above(folder)}
    stated = {"", *(one for project in marked for one in _of_project(root, project, known))}
    found = set(stated)
    for folder in folders:
        chain = _with_those_above(folder)
        package = next((one for one in reversed(chain) if one in packages), None)
        base = folder if package is None else package.rpartition("/")[0]
        if not _is_below_src(base, stated):
            found.add(base)
    return tuple(sorted(found, key=lambda one: (-one.count("/") - bool(one), one)))


def _of_project(root: Path, project: str, known: set[str]) -> set[str]:
    base = f"{project}/" if project else ""
    named = ["src", *_named_by(root / project / "pyproject.toml")]
    folders = (_tidy(base + name) for name in named)
    return {project, *(folder for folder in folders if folder in known)}


def _tidy(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def _is_below_src(base: str, stated: set[str]) -> bool:
    """Whether `base` lies below a `src` that a project has: all that is there is named from that `src`.

    `src/acme/billing/__init__.py` is `acme.billing`, though `acme` has no `__init__.py`: a namespace package. The
    folder of the project itself says too little to be sure of that: `tests/unit` and `tools` lie there too, so that a
    base below it is a root beside it.
    """
    return any(one in stated and one.rpartition("/")[2] == "src" for one in _with_those_above(base)[1:])


def _named_by(pyproject: Path) -> list[str]:
    """Folders that the packaging or the tests of a project name as places where imports start."""
    try:
        data = pyproject.read_bytes()
    except OSError:
        return []
    if not any(word in data for word in _LAYOUT_WORDS):
        return []
    import tomllib

    try:
        tool = tomllib.loads(data.decode()).get("tool", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return []  # the settings reader complains about a broken file, with its place
    named: list[object] = []
    setuptools = _table(tool, "setuptools")
    named += _list(_table(setuptools, "packages", "find").get("where"))
    named.append(_table(setuptools, "package-dir").get(""))
    named += [_get(one, "from") for one in _list(_table(tool, "poetry").get("packages"))]
    named += _list(_table(tool, "pytest", "ini_options").get("pythonpath"))
    named += _list(_table(tool, "hatch", "build").get("sources"))
    named += [_parent(one) for one in _list(_table(tool, "hatch", "build", "targets", "wheel").get("packages"))]
    named.append(_table(tool, "pdm", "build").get("package-dir"))
    named.append(_table(tool, "maturin").get("python-source"))
    return [one for one in named if isinstance(one, str) and one not in ("", ".")]


def _parent(named: object) -> str | None:
    return named.rpartition("/")[0] if isinstance(named, str) else None


def _table(value: object, *keys: str) -> dict[str, object]:
    for key in keys:
        value = _get(value, key)
    return value if isinstance(value, dict) else {}


def _get(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def _list(value: object) -> list[object]:
    if isinstance(value, list):
        return value
    return [value] if isinstance(value, str) else []


def _with_those_above(folder: str) -> list[str]:
    found = [folder]
    while folder:
        folder = folder.rpartition("/")[0]
        found.append(folder)
    return found
