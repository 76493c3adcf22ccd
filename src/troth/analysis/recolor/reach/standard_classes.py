"""Read from the standard library's own source which methods its classes have."""

import ast
import sys
import sysconfig
from functools import cache
from pathlib import Path

__all__ = ["is_plain_in_standard_library"]

_DEEPEST = 8  # bases of bases


def is_plain_in_standard_library(qualified: str, name: str) -> bool:
    """Whether a class of the standard library (`logging.Formatter`) has a sync method of that name."""
    module, _, cls = qualified.rpartition(".")
    if module.partition(".")[0] not in sys.stdlib_module_names:
        return False
    return isinstance(_method(module, cls, name), ast.FunctionDef)


def _method(module: str, cls: str, name: str, depth: int = 0) -> ast.stmt | None:
    """The definition in the class, or in those of its bases that stand in the same file."""
    definition = _classes(module).get(cls)
    if definition is None or depth > _DEEPEST:
        return None
    for statement in definition.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name == name:
            return statement
    bases = (base.id for base in definition.bases if isinstance(base, ast.Name))
    return next((method for base in bases if (method := _method(module, base, name, depth + 1))), None)


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    """The classes at the top of a module of the standard library; none where it has no source."""
    path = Path(sysconfig.get_paths()["stdlib"], *module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        try:
            tree = ast.parse(file.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        return {statement.name: statement for statement in tree.body if isinstance(statement, ast.ClassDef)}
    return {}
