"""Find the Python that a workflow names: a function, a tool or an agent.

`module:name` is looked for beside the workflow's file first, as Python does for a script, then among what can be
imported. A bare name is one that the runtime was given.
"""

import contextlib
import hashlib
import importlib
import importlib.util
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from troth.runtime.workflows.document.problems import did_you_mean

__all__ = ["NotFound", "find_part", "find_value", "reference_of"]


class NotFound(Exception):  # noqa: N818 -- never leaves the loader: it becomes a problem at the place of the name
    """There is no such thing; says why, and what was probably meant."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.what = message
        self.advice = advice


def reference_of(value: object, scope: Mapping[str, object] | None = None) -> str:
    """The name by which `value` can be found again, where it can.

    An object, which has no name of its own, is called what a module calls it: the one whose globals are `scope`, or
    the one of its class.
    """
    module = getattr(value, "__module__", None) or type(value).__module__
    name = getattr(value, "__qualname__", None)
    if name is None:
        home = sys.modules.get(module)
        for globals_ in (scope or {}, vars(home) if home is not None else {}):
            names = [key for key, item in list(globals_.items()) if item is value]
            if names:
                return f"{globals_['__name__']}:{names[0]}"
        name = type(value).__qualname__
    return f"{module}:{name}"


def find_part(kind: str, name: str, registered: Mapping[str, Any], folder: Path) -> Any:
    """The function, tool or agent called `name`: one that was registered, or one of a module. Raises `NotFound`."""
    if name in registered:
        return registered[name]
    module_name, colon, attribute = name.partition(":")
    if not colon:
        near = f"{did_you_mean(name, registered, kind=kind)} " if registered else ""
        advice = (
            f"{near}Write `module:{name}`, or register it: `Runtime({kind}s={{{name!r}: …}})`, "
            "which the command line reads with `--app module:runtime`."
        )
        raise NotFound(f"there is no {kind} {name!r} in this runtime", advice)
    value = find_value(module_name, attribute, folder, kind)
    if kind != "agent" and not callable(value):
        raise NotFound(f"`{name}` is a value of type {type(value).__name__}, not a {kind}")
    return value


def find_value(module_name: str, attribute: str, folder: Path, kind: str = "function") -> object:
    """What a module calls `attribute`, which may have dots; raises `NotFound`."""
    module = _module(module_name, folder)
    target: object = module
    for part in attribute.split("."):
        if not hasattr(target, part):
            names = [name for name, value in vars(module).items() if _may_be(kind, value) and not name.startswith("_")]
            advice = did_you_mean(attribute, names, kind=kind)
            raise NotFound(f"the module {module_name!r} has no {kind} {attribute!r}", advice)
        target = getattr(target, part)
    return target


def _may_be(kind: str, value: object) -> bool:
    """Whether a value of a module is worth naming to somebody who looks for a thing of that kind."""
    return callable(value) if kind in ("function", "tool") else not isinstance(value, ModuleType)


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
    for candidate in (name, _own_name(name, path), "__main__"):
        module = sys.modules.get(candidate)
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
