"""What an installed package really offers: run by the interpreter that has it, prints what it saw as JSON.

    python introspect.py OUT TOP_LEVEL [--only PREFIX]… [--without PREFIX]…

Stands alone (standard library only), because it runs in the environment of the package under study.
"""

import argparse
import asyncio
import functools
import importlib
import inspect
import json
import pkgutil
import sys
import types
import warnings
from pathlib import Path

_SKIPPED = {"tests", "test", "conftest", "examples", "_vendor", "vendor", "vendored", "__main__"}


def color(thing: object) -> str:
    """What calling it gives.

    a: a coroutine; g: an async generator; m: an async context manager; u: it wraps an async function; s: plain.
    """
    if isinstance(thing, staticmethod | classmethod):
        return color(thing.__func__)
    if isinstance(thing, property):
        return color(thing.fget) if thing.fget else ""
    if isinstance(thing, functools.cached_property):
        return color(thing.func)
    if isinstance(thing, functools.partial):
        return color(thing.func)
    if not (inspect.isroutine(thing) or type(thing).__name__ == "cython_function_or_method"):
        return ""
    if inspect.isasyncgenfunction(thing):
        return "g"
    if inspect.iscoroutinefunction(thing) or asyncio.iscoroutinefunction(thing):  # the latter sees marked callables
        return "a"
    try:
        inner = inspect.unwrap(thing)  # type: ignore[arg-type]
    except ValueError:  # a cycle of `__wrapped__`
        return "s"
    if inner is not thing:
        if inspect.isasyncgenfunction(inner):
            code = getattr(thing, "__code__", None)
            return "m" if code is not None and code.co_filename.endswith("contextlib.py") else "u"
        if inspect.iscoroutinefunction(inner):
            return "u"
    return "s"


def place(thing: object) -> tuple[object, object]:
    """The module and the name an object says it was defined under."""
    try:
        isinstance(thing, type)
        return getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    except Exception:  # noqa: BLE001 — proxies answer any attribute by importing or configuring something that is not there
        return None, None


def wanted(name: str, only: list[str], without: list[str]) -> bool:
    """Whether a module is part of what is studied."""
    if _SKIPPED & set(name.split(".")[1:]):
        return False
    if any(f"{name}.".startswith(f"{prefix}.") for prefix in without):
        return False
    return not only or any(
        f"{name}.".startswith(f"{prefix}.") or f"{prefix}.".startswith(f"{name}.") for prefix in only
    )


def import_all(top: str, only: list[str], without: list[str]) -> tuple[dict[str, types.ModuleType], dict[str, str]]:
    """Every module that can be imported, and why the others cannot."""
    modules: dict[str, types.ModuleType] = {}
    failed: dict[str, str] = {}
    waiting = [top]
    while waiting:
        name = waiting.pop()
        try:
            module = importlib.import_module(name)
        except BaseException as error:  # a package may even call sys.exit on import; the rest is still worth seeing
            if isinstance(error, KeyboardInterrupt):
                raise
            failed[name] = f"{type(error).__name__}: {error}"[:200]
            continue
        modules[name] = module
        for info in pkgutil.iter_modules(getattr(module, "__path__", [])):
            full = f"{name}.{info.name}"
            if full not in modules and full not in failed and wanted(full, only, without):
                waiting.append(full)
    return modules, failed


def is_public(dotted: str) -> bool:
    """Whether no part of a module's name is private."""
    return not any(part.startswith("_") for part in dotted.split(".")[1:])


class _Survey:
    """What modules define and export, taken down one module after the other."""

    def __init__(self, inside: tuple[str, ...]) -> None:
        self.colors: dict[str, str] = {}
        self.aliases: dict[str, str] = {}
        self.public: dict[str, str] = {}
        self._inside = inside
        self._visited: set[type] = set()

    def take_module(self, module_name: str, module: types.ModuleType) -> None:
        """Note the color of all that a module names, and under which name others may use it."""
        exported = getattr(module, "__all__", None)
        listed = {name for name in exported if isinstance(name, str)} if isinstance(exported, list | tuple) else set()
        names = {name for name in vars(module) if name.isidentifier() and not name.startswith("__")}
        for name in sorted(names | listed):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    thing = getattr(module, name)
            except BaseException:  # noqa: BLE001, S112 — a lazy attribute may import what is not installed
                continue
            home, qualified = place(thing)
            if not self._is_ours(home) or not isinstance(qualified, str) or "<locals>" in qualified:
                continue
            full = f"{home}.{qualified}"
            if isinstance(thing, type):
                self._take_class(thing)
            elif letter := color(thing):
                self.colors[full] = letter
            else:
                continue
            if is_public(module_name) and (not name.startswith("_") or name in listed):
                self._take_public(thing, full, f"{module_name}.{name}")

    def _is_ours(self, module: object) -> bool:
        return isinstance(module, str) and module.partition(".")[0] in self._inside

    def _take_class(self, cls: type) -> None:
        if cls in self._visited:
            return
        self._visited.add(cls)
        for name, thing in list(vars(cls).items()):
            if isinstance(thing, type):
                if getattr(thing, "__qualname__", "").startswith(f"{cls.__qualname__}."):
                    self._take_class(thing)
            elif letter := color(thing):
                self.colors[f"{cls.__module__}.{cls.__qualname__}.{name}"] = letter

    def _take_public(self, thing: object, full: str, alias: str) -> None:
        self.aliases[alias] = full
        if not isinstance(thing, type):
            if color(thing) == "a":
                self._show(full, alias)
            return
        for base in reversed(thing.__mro__):
            for method, value in vars(base).items() if self._is_ours(base.__module__) else ():
                if method.startswith("_"):
                    continue
                if color(value) == "a":
                    self._show(f"{full}.{method}", f"{alias}.{method}")
                else:
                    self.public.pop(f"{full}.{method}", None)  # overridden by a sync one nearer to the class

    def _show(self, key: str, shown: str) -> None:
        """Of several public names the shortest is kept."""
        if key not in self.public or len(shown) < len(self.public[key]):
            self.public[key] = shown


def look(modules: dict[str, types.ModuleType], top: str) -> dict[str, object]:
    """What the modules define and export."""
    survey = _Survey(tuple({name.partition(".")[0] for name in modules} | {top}))
    for module_name, module in sorted(modules.items()):
        survey.take_module(module_name, module)
    return {"colors": survey.colors, "aliases": survey.aliases, "public": sorted(survey.public.values())}


def main() -> None:
    """Look at one package and write down what was seen."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("top")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--prepare", default="", help="code to run before the package is imported")
    options = parser.parse_args()
    sys.argv = sys.argv[:1]  # packages that read the command line on import shall see none
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(5000)
    exec(options.prepare, {})  # noqa: S102 — from the catalogue, never from outside
    modules, failed = import_all(options.top, options.only, options.without)
    report = look(modules, options.top)
    report |= {"imported": len(modules), "failed": failed}
    Path(options.out).write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main()
