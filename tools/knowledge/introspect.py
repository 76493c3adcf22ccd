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


def look(modules: dict[str, types.ModuleType], top: str) -> dict[str, object]:
    """What the modules define and export."""
    colors: dict[str, str] = {}
    aliases: dict[str, str] = {}
    public: dict[str, str] = {}
    visited: set[type] = set()
    inside = tuple({name.partition(".")[0] for name in modules} | {top})

    def is_ours(module: object) -> bool:
        return isinstance(module, str) and module.partition(".")[0] in inside

    def see_class(cls: type) -> None:
        if cls in visited:
            return
        visited.add(cls)
        for name, thing in list(vars(cls).items()):
            if isinstance(thing, type):
                if getattr(thing, "__qualname__", "").startswith(f"{cls.__qualname__}."):
                    see_class(thing)
                continue
            letter = color(thing)
            if letter:
                colors[f"{cls.__module__}.{cls.__qualname__}.{name}"] = letter

    for module_name, module in sorted(modules.items()):
        exported = getattr(module, "__all__", None)
        names = {name for name in vars(module) if name.isidentifier() and not name.startswith("__")}
        if isinstance(exported, list | tuple):
            names |= {name for name in exported if isinstance(name, str)}
        for name in sorted(names):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    thing = getattr(module, name)
            except BaseException:  # noqa: BLE001, S112 — a lazy attribute may import what is not installed
                continue
            home, qualified = place(thing)
            if not is_ours(home) or not isinstance(qualified, str) or "<locals>" in qualified:
                continue
            if isinstance(thing, type):
                see_class(thing)
            elif letter := color(thing):
                colors[f"{home}.{qualified}"] = letter
            else:
                continue
            listed = isinstance(exported, list | tuple) and name in exported
            if not is_public(module_name) or (name.startswith("_") and not listed):
                continue
            aliases[f"{module_name}.{name}"] = f"{home}.{qualified}"
            if isinstance(thing, type):
                for base in reversed(thing.__mro__):
                    if not is_ours(base.__module__):
                        continue
                    for method, value in vars(base).items():
                        key = f"{home}.{qualified}.{method}"
                        if method.startswith("_"):
                            continue
                        if color(value) == "a":
                            shown = f"{module_name}.{name}.{method}"
                            if key not in public or len(shown) < len(public[key]):
                                public[key] = shown
                        elif key in public:
                            del public[key]  # overridden by a plain one nearer to the class
            elif color(thing) == "a":
                key, shown = f"{home}.{qualified}", f"{module_name}.{name}"
                if key not in public or len(shown) < len(public[key]):
                    public[key] = shown
    return {"colors": colors, "aliases": aliases, "public": sorted(public.values())}


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
