"""Tell what surely is no object of the project: literals, and what the standard library has made."""

import ast

from troth.analysis.recolor.project.resolve import looked_up
from troth.analysis.recolor.project.tree import Definition, Tree, is_bound_around, own_nodes
from troth.analysis.recolor.project.workspace import RecolorWorkspace
from troth.analysis.semantics.infer.call_graph import names_of
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import members_of

__all__ = ["is_made_elsewhere"]

_LITERALS = (
    ast.Constant, ast.JoinedStr, ast.List, ast.Dict, ast.Set, ast.Tuple, ast.ListComp, ast.DictComp, ast.SetComp,
    ast.Compare,
)  # fmt: skip
# Modules whose functions and classes make things of their own, and never give back what they were given.
_MAKING = frozenset({
    "argparse", "base64", "binascii", "bz2", "calendar", "codecs", "configparser", "csv", "datetime", "decimal",
    "difflib", "email", "fractions", "glob", "gzip", "hashlib", "hmac", "html", "http", "io", "ipaddress", "json",
    "locale", "logging", "lzma", "math", "mimetypes", "os", "pathlib", "platform", "random", "re", "secrets",
    "select", "selectors", "shlex", "shutil", "signal", "socket", "sqlite3", "ssl", "statistics", "string",
    "struct", "subprocess", "sys", "tarfile", "tempfile", "textwrap", "threading", "time", "traceback",
    "unicodedata", "urllib", "uuid", "xml", "zipfile", "zlib", "zoneinfo",
})  # fmt: skip
_BUILTINS = frozenset({
    "open", "str", "bytes", "bytearray", "int", "float", "bool", "dict", "list", "set", "frozenset", "tuple", "vars",
    "repr", "format", "input", "range", "hex", "sorted", "memoryview", "complex", "ascii", "bin", "oct", "chr",
})  # fmt: skip
_OF_EVERYTHING = frozenset({"__dict__", "__name__", "__doc__", "__module__", "__qualname__"})
_EMPTY = frozenset({"builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol"})  # bases that keep nothing
_GIVING_BACK = frozenset(
    {"get", "pop", "setdefault", "popitem", "popleft", "__getitem__", "__enter__", "enter_context"}
)
# What objects of the standard library hold is theirs in these fields; others may hold what somebody put there.
_OWN_FIELDS = frozenset({
    "stdout", "stderr", "stdin", "returncode", "path", "netloc", "query", "scheme", "fragment", "hostname",
    "name", "stem", "suffix", "suffixes", "parent", "parents", "parts", "year", "month", "day", "hour", "minute",
    "second", "microsecond", "string", "pattern", "hex",
})  # fmt: skip
_DEEPEST = 4  # variables that stand for one another


def is_made_elsewhere(
    workspace: RecolorWorkspace, tree: Tree, node: ast.expr, caller: Function | None, depth: int = 0
) -> bool:
    """Whether an expression surely gives no object of the project: a literal, or what the standard library has made.

    A library may give back what it was given; those that are known to make things of their own are listed.
    """
    if isinstance(node, _LITERALS) or (isinstance(node, ast.Attribute) and node.attr in _OF_EVERYTHING):
        return True
    if isinstance(node, ast.Call):
        return _is_call_elsewhere(workspace, tree, node, caller, depth)
    if depth > _DEEPEST:
        return False
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call):  # `urlsplit(x).path`
        return node.attr in _OWN_FIELDS and is_made_elsewhere(workspace, tree, node.value, caller, depth + 1)
    if isinstance(node, ast.Name) and not is_bound_around(tree, node):
        return _is_global_made_elsewhere(workspace, tree, node.id, depth)
    if caller is None or (where := workspace.definition(caller)) is None:
        return False
    if isinstance(node, ast.Name):
        if node.id in caller.params:
            return False  # callers may give anything, whatever is put in its place later
        assigned = [_bound_to(tree, part) for part in own_nodes(where[1]) if _stores(part, node.id)]
        return bool(assigned) and all(
            value is not None and is_made_elsewhere(workspace, tree, value, caller, depth + 1) for value in assigned
        )
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return _is_field_made_elsewhere(workspace, node.attr, caller, depth)
    return False


def _is_call_elsewhere(
    workspace: RecolorWorkspace, tree: Tree, node: ast.Call, caller: Function | None, depth: int
) -> bool:
    """Whether a call gives what the standard library has made."""
    value = looked_up(workspace, tree, node.func, caller)
    if value is not None:
        return all(_is_making(list(names_of(member))) for member in members_of(value))
    if isinstance(node.func, ast.Name):
        return node.func.id in _BUILTINS and not is_bound_around(tree, node.func)
    if not isinstance(node.func, ast.Attribute):
        return False
    if _is_of_module(tree, node.func):
        return True
    # A method of what was made elsewhere.
    return node.func.attr not in _GIVING_BACK and is_made_elsewhere(workspace, tree, node.func.value, caller, depth)


def _is_of_module(tree: Tree, node: ast.Attribute) -> bool:
    """Whether a dotted name begins with a module that makes things of its own, as an import at the top says."""
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or is_bound_around(tree, root):
        return False
    for statement in tree.module.body:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        for alias in statement.names:
            if (alias.asname or alias.name.partition(".")[0]) == root.id:
                if isinstance(statement, ast.Import):
                    return alias.name.partition(".")[0] in _MAKING
                return not statement.level and (statement.module or "").partition(".")[0] in _MAKING
    return False


def _is_global_made_elsewhere(workspace: RecolorWorkspace, tree: Tree, name: str, depth: int) -> bool:
    """Whether a variable of the module is set at its top only, to what was made elsewhere."""
    nodes = list(ast.walk(tree.module))
    if any(isinstance(node, ast.Global) and name in node.names for node in nodes):
        return False
    stored = [node for node in nodes if _stores(node, name) and tree.around(node) is tree.module]
    values = [_bound_to(tree, node) for node in stored]
    return bool(values) and all(
        value is not None and is_made_elsewhere(workspace, tree, value, None, depth + 1) for value in values
    )


def _is_field_made_elsewhere(workspace: RecolorWorkspace, name: str, method: Function, depth: int) -> bool:
    """Whether everything that the methods of the class and its bases put into the field was made elsewhere."""
    assigned: list[tuple[Tree, ast.expr | None, Function | None]] = []
    for cls in workspace.program.classes.order(method.owner) if method.owner is not None else ():
        tree = workspace.tree(cls.module.path) if isinstance(cls, Class) else None
        if tree is None:
            if isinstance(cls, LibraryClass) and cls.qualified in _EMPTY:
                continue
            return False  # a base that is not known may put anything there
        assert isinstance(cls, Class)
        for node in ast.walk(tree.module):
            if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store):
                around = tree.around(node)
                inside = workspace.function(tree, around) if isinstance(around, Definition) else None
                if inside is not None and inside.owner is cls:
                    assigned.append((tree, _bound_to(tree, node), inside))
    real = [
        assignment
        for assignment in assigned
        if not (isinstance(assignment[1], ast.Constant) and assignment[1].value is None)
    ]
    return bool(real) and all(
        value is not None and is_made_elsewhere(workspace, tree, value, inside, depth + 1)
        for tree, value, inside in real
    )


def _stores(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)


def _bound_to(tree: Tree, target: ast.AST) -> ast.expr | None:
    """What a variable or field is set to: by an assignment, or by `with … as`."""
    parent = tree.parent(target)
    if isinstance(parent, ast.Assign) and target in parent.targets:
        return parent.value
    if isinstance(parent, ast.AnnAssign):
        return parent.value
    return parent.context_expr if isinstance(parent, ast.withitem) else None


def _is_making(names: list[str]) -> bool:
    return bool(names) and all(
        name.partition(".")[0] in _MAKING or name.removeprefix("builtins.") in _BUILTINS for name in names
    )
