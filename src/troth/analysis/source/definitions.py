"""The functions and classes of one file by their qualified names, from its text alone."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ast

__all__ = ["Definition", "definitions_in"]


class Definition(NamedTuple):
    """A function or a class.

    `head` are the lines of its decorators and of its `def`, which is the last of them; `decorators` their last names.
    """

    name: str
    is_async: bool
    is_class: bool
    head: tuple[int, ...]
    decorators: tuple[str, ...] = ()


def definitions_in(data: bytes) -> dict[str, Definition] | None:
    """All of them by qualified name, of several of one name the last; None if the file does not parse."""
    import ast

    from troth.analysis.source.tree import tree_of

    tree = tree_of(data)
    if tree is None:
        return None
    definitions: dict[str, Definition] = {}
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, outer = stack.pop()
        for child in ast.iter_child_nodes(node):
            name = outer
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{outer}.{child.name}" if outer else child.name
                head = (*(decorator.lineno for decorator in child.decorator_list), child.lineno)
                is_async = isinstance(child, ast.AsyncFunctionDef)
                decorators = tuple(map(_last_name, child.decorator_list))
                definitions[name] = Definition(name, is_async, isinstance(child, ast.ClassDef), head, decorators)
            stack.append((child, name))
    return definitions


def _last_name(decorator: "ast.expr") -> str:
    """`setter` of `@size.setter`, `task` of `@app.task(retries=3)`."""
    import ast

    text, _, _ = ast.unparse(decorator).partition("(")
    _, _, last = text.rpartition(".")
    return last
