"""Knows the name by which a node of the facts goes: of a variable, an attribute, a decorator."""

from troth.analysis.facts.model import Node

__all__ = ["decorator_name", "last_name"]


def last_name(node: Node) -> str:
    """The last name of a name or an attribute; empty for anything else."""
    return str(node[1]) if node[0] == "name" else str(node[2]) if node[0] == "attr" else ""


def decorator_name(node: Node) -> str:
    """The last name of a decorator, or of another callee, called or not."""
    return last_name(node[1] if node[0] == "call" else node)
