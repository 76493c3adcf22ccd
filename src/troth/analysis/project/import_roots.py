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
    existing = {above for folder in folders for above in _with_those_above(folder)}
    stated = {"", *(folder for project in marked for folder in _of_project(root, project, existing))}
    roots = set(stated)
    for folder in folders:
        chain = _with_those_above(folder)
        package = next((above for above in reversed(chain) if above in packages), None)
        base = folder if package is None else package.rpartition("/")[0]
        if not _is_below_src(base, stated):
            roots.add(base)
    return tuple(sorted(roots, key=lambda folder: (-folder.count("/") - bool(folder), folder)))


def _of_project(root: Path, project: str, existing: set[str]) -> set[str]:
    base = f"{project}/" if project else ""
    names = ["src", *_named_by(root / project / "pyproject.toml")]
    folders = (_tidy(base + name) for name in names)
    return {project, *(folder for folder in folders if folder in existing)}


def _tidy(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def _is_below_src(base: str, stated: set[str]) -> bool:
    """Whether `base` lies below a `src` that a project has: all that is there is named from that `src`.

    `src/acme/billing/__init__.py` is `acme.billing`, though `acme` has no `__init__.py`: a namespace package. The
    folder of the project itself says too little to be sure of that: `tests/unit` and `tools` lie there too, so that a
    base below it is a root beside it.
    """
    return any(above in stated and above.rpartition("/")[2] == "src" for above in _with_those_above(base)[1:])


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
    names: list[object] = []
    setuptools = _table(tool, "setuptools")
    names += _list(_table(setuptools, "packages", "find").get("where"))
    names.append(_table(setuptools, "package-dir").get(""))
    names += [_get(package, "from") for package in _list(_table(tool, "poetry").get("packages"))]
    names += _list(_table(tool, "pytest", "ini_options").get("pythonpath"))
    names += _list(_table(tool, "hatch", "build").get("sources"))
    names += [_parent(package) for package in _list(_table(tool, "hatch", "build", "targets", "wheel").get("packages"))]
    names.append(_table(tool, "pdm", "build").get("package-dir"))
    names.append(_table(tool, "maturin").get("python-source"))
    return [name for name in names if isinstance(name, str) and name not in ("", ".")]


def _parent(package: object) -> str | None:
    return package.rpartition("/")[0] if isinstance(package, str) else None


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
    chain = [folder]
    while folder:
        folder = folder.rpartition("/")[0]
        chain.append(folder)
    return chain
