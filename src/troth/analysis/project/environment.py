"""Find which Python environment belongs to a project, so that its installed packages can be read."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from troth.errors import MisuseError

__all__ = ["find_environment", "named_environment", "packages_of"]

_INTERPRETERS = ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe")


def named_environment(name: str, base: Path, origin: str) -> Path:
    """The interpreter that the user named: a file, the folder of an environment, or a command such as `python3.12`.

    `origin` says where it was named, for messages.
    """
    path = base / Path(name).expanduser()
    if path.is_dir():
        interpreter = _interpreter_in(path)
        if interpreter is None:
            raise MisuseError(
                f"{origin} names a folder without an interpreter in it.\n"
                "Nothing was checked, since the wrong packages would give wrong answers.\n"
                "Name an environment (a folder with `bin/python`) or an interpreter."
            )
        return interpreter
    if path.is_file():
        return path
    import shutil  # late: hardly anybody names one

    command = shutil.which(name) if os.sep not in name else None
    if command is None:
        raise MisuseError(
            f"{origin}: there is no such interpreter, environment or command.\n"
            "Nothing was checked, since the wrong packages would give wrong answers.\n"
            "Name an environment such as `.venv`, an interpreter such as `/usr/bin/python3`, or leave it out."
        )
    return Path(command)


def find_environment(folders: Iterable[Path], environ: Mapping[str, str] | None = None) -> Path | None:
    """The environment in one of the project's folders, else the one that is switched on, else none.

    The project's own stands first: an environment that is switched on may well be the one that holds Troth itself.
    """
    env = os.environ if environ is None else environ
    for folder in folders:
        for name in (".venv", "venv"):
            if (folder / name / "pyvenv.cfg").is_file() and (interpreter := _interpreter_in(folder / name)) is not None:
                return interpreter
    active = env.get("VIRTUAL_ENV")
    if active and (interpreter := _interpreter_in(Path(active))) is not None:
        return interpreter
    conda = env.get("CONDA_PREFIX")
    if conda and env.get("CONDA_DEFAULT_ENV") != "base":  # base is conda's own, not a project's
        return _interpreter_in(Path(conda))
    return None


def packages_of(root: Path, python: Path | None) -> tuple[str, ...]:
    """The `site-packages` folders of an interpreter; without one, of the `.venv` or `venv` of the project."""
    homes = [python.parent.parent] if python is not None else [root / ".venv", root / "venv"]
    folders: list[str] = []
    for home in homes:
        for pattern in ("lib/python3*/site-packages", "Lib/site-packages"):
            folders += [str(folder) for folder in sorted(home.glob(pattern)) if folder.is_dir()]
    return tuple(folders)


def _interpreter_in(folder: Path) -> Path | None:
    for name in _INTERPRETERS:
        if (folder / name).exists():
            return folder / name
    return None
