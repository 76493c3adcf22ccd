"""Knows how to find the Python function that a workflow names.

`module:name` is looked for beside the workflow's file first, as Python does for a script, then among what can be
imported. A bare name is one that the runtime was given.
"""

import contextlib
import hashlib
import importlib
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

from troth.runtime.workflows.problems import did_you_mean

__all__ = ["NotFound", "find_function", "find_value", "reference_of"]


class NotFound(Exception):  # noqa: N818 -- never leaves the loader: it becomes a problem at the place of the name
    """There is no such function; says why, and what was probably meant."""

    def __init__(self, what: str, advice: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice


def reference_of(function: object) -> str:
    """The name by which `function` can be found again, where it can."""
    module = getattr(function, "__module__", None) or type(function).__module__
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{module}:{name}"


def find_function(name: str, given: Mapping[str, Callable[..., object]], folder: Path) -> Callable[..., object]:
    """The function called `name`; raises `NotFound`."""
    if name in given:
        return given[name]
    module_name, colon, attribute = name.partition(":")
    if not colon:
        near = did_you_mean(name, given, kind="function that the runtime was given")
        raise NotFound(f"there is no function {name!r}", f"{near} One of a module is written `module:{name}`.")
    found = find_value(module_name, attribute, folder)
    if not callable(found):
        raise NotFound(f"`{name}` is a value of type {type(found).__name__}, not a function")
    return found


def find_value(module_name: str, attribute: str, folder: Path) -> object:
    """What a module calls `attribute`, which may have dots; raises `NotFound`."""
    module = _module(module_name, folder)
    found: object = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = [one for one, value in vars(module).items() if callable(value) and not one.startswith("_")]
            advice = did_you_mean(attribute, names, kind="function")
            raise NotFound(f"the module {module_name!r} has no function {attribute!r}", advice)
        found = getattr(found, part)
    return found


def _module(name: str, folder: Path) -> ModuleType:
    beside = _file_beside(name, folder)
    if beside is not None:
        return _load_beside(name, beside, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not (name == missing.name or name.startswith(f"{missing.name}.")):
            raise NotFound(f"the module {name!r} needs {missing.name!r}, which is not installed") from missing
        names = [path.stem for path in folder.glob("*.py")] if folder.is_dir() else []
        advice = did_you_mean(name, names, kind="module beside the workflow")
        raise NotFound(f"there is no module {name!r}, neither beside the workflow nor installed", advice) from missing
    except (Exception, SystemExit) as broken:
        raise NotFound(f"the module {name!r} cannot be imported: {type(broken).__name__}: {broken}") from broken


def _file_beside(name: str, folder: Path) -> Path | None:
    if not name or not all(part.isidentifier() for part in name.split(".")):
        raise NotFound(f"{name!r} is not the name of a module")
    stem = folder.joinpath(*name.split("."))
    return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()), None)


def _load_beside(name: str, path: Path, folder: Path) -> ModuleType:
    """The module at `path`. Two workflows may each have a `steps.py`: the second one gets a name of its own."""
    path = path.resolve()
    with _lock_of(path):  # whoever comes while it is being loaded must not get half a module
        return _load_once(name, path, folder)


def _load_once(name: str, path: Path, folder: Path) -> ModuleType:
    for known in (name, _own_name(name, path), "__main__"):
        module = sys.modules.get(known)
        file = getattr(module, "__file__", None)
        if module is not None and file is not None and Path(file).resolve() == path:
            return module
    as_name = name if name not in sys.modules else _own_name(name, path)
    spec = importlib.util.spec_from_file_location(as_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[as_name] = module
    try:
        with _importable(folder):
            spec.loader.exec_module(module)
    except BaseException as broken:
        del sys.modules[as_name]
        if isinstance(broken, (Exception, SystemExit)):
            raise NotFound(f"{path.name} cannot be imported: {type(broken).__name__}: {broken}") from broken
        raise
    return module


def _lock_of(path: Path) -> threading.RLock:
    with _LOCKS_LOCK:
        return _LOCKS.setdefault(path, threading.RLock())


_LOCKS: dict[Path, threading.RLock] = {}
_LOCKS_LOCK = threading.Lock()


def _own_name(name: str, path: Path) -> str:
    return f"{name}@{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """While a module beside a workflow is loaded, its neighbours are the first to be imported by it, as in a script.

    Later they are the last: a function that imports one when it is called finds it, and hides nothing from others.
    """
    place = str(folder.resolve())
    sys.path.insert(0, place)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(place)
        if place not in sys.path:
            sys.path.append(place)
