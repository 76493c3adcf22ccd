"""The name by which a part of the facts goes: a variable, an attribute, a decorator, a function, a class."""

from collections import defaultdict
from collections.abc import Iterable

from troth.analysis.facts.model import FileFacts, Node

__all__ = ["class_keys", "decorator_name", "dotted", "function_keys", "last_name"]


def last_name(node: Node) -> str:
    """The last name of a name or an attribute; empty for anything else."""
    return str(node[1]) if node[0] == "name" else str(node[2]) if node[0] == "attr" else ""


def dotted(node: Node) -> str:
    """`self.store.db` as text; empty for anything but names and attributes of names."""
    if node[0] == "name":
        return str(node[1])
    base = dotted(node[1]) if node[0] == "attr" else ""
    return f"{base}.{node[2]}" if base else ""


def decorator_name(node: Node) -> str:
    """The last name of a decorator, or of another callee, called or not."""
    return last_name(node[1] if node[0] == "call" else node)


def function_keys(file: FileFacts) -> list[str]:
    """A name for each function that stays the same when others come and go."""
    return _numbered(f.qualname for f in file.functions)


def class_keys(file: FileFacts) -> list[str]:
    """A name for each class that stays the same when others come and go."""
    return _numbered(c.qualname for c in file.classes)


def _numbered(names: Iterable[str]) -> list[str]:
    counts: dict[str, int] = defaultdict(int)
    keys: list[str] = []
    for name in names:
        counts[name] += 1
        keys.append(f"{name}#{counts[name]}")
    return keys
