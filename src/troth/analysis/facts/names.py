"""The name by which a part of the facts goes: a variable, an attribute, a decorator, a function, a class."""

from collections import defaultdict
from collections.abc import Iterable

from troth.analysis.facts.fields import ATTR_BASE, ATTR_NAME, CALL_ARGS, CALL_FUNC, INDEX_BASE, KIND, NAME_ID, VALUE
from troth.analysis.facts.model import FileFacts, Node

__all__ = ["callee_text", "class_keys", "decorator_name", "dotted", "function_keys", "last_name", "other_name_of"]


def last_name(node: Node) -> str:
    """The last name of a name or an attribute; empty for anything else."""
    return str(node[NAME_ID]) if node[KIND] == "name" else str(node[ATTR_NAME]) if node[KIND] == "attr" else ""


def dotted(node: Node) -> str:
    """`self.store.db` as text; empty for anything but names and attributes of names."""
    if node[KIND] == "name":
        return str(node[NAME_ID])
    base = dotted(node[ATTR_BASE]) if node[KIND] == "attr" else ""
    return f"{base}.{node[2]}" if base else ""


def decorator_name(node: Node) -> str:
    """The last name of a decorator, or of another callee, called or not."""
    return last_name(node[CALL_FUNC] if node[KIND] == "call" else node)


def other_name_of(value: Node) -> str:
    """The method that the body of a class gives a second name: `on = switch`, `on = partialmethod(switch, True)`."""
    if value[KIND] == "call" and last_name(value[CALL_FUNC]) == "partialmethod" and value[CALL_ARGS]:
        value = value[CALL_ARGS][0]
    return str(value[NAME_ID]) if value[KIND] == "name" else ""


def callee_text(node: Node) -> str:
    """The callee as a reader would name it."""
    kind = node[0]
    if kind == "name":
        return str(node[NAME_ID])
    if kind == "attr":
        return f"{callee_text(node[ATTR_BASE])}.{node[ATTR_NAME]}"
    if kind == "call":
        return f"{callee_text(node[CALL_FUNC])}()"
    if kind == "await":
        return f"(await {callee_text(node[VALUE])})"
    if kind == "index":
        return f"{callee_text(node[INDEX_BASE])}[…]"
    return "…"


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
