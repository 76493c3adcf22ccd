"""Decide about a call whose receiver nobody can tell: whether it can mean one of given functions, or must mean it."""

import ast
import re
from collections.abc import Collection, Iterable, Sequence

from troth.analysis.facts.names import decorator_name, last_name
from troth.analysis.recolor.project.workspace import RecolorWorkspace
from troth.analysis.semantics import Program
from troth.analysis.semantics.evidence.common_method_names import GENERIC
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import (
    Builtin,
    ClassObject,
    External,
    Instance,
    Nothing,
    Table,
    TupleOf,
    Value,
    members_of,
)

__all__ = ["fitting", "has_name_alone", "is_never_ours", "may_be_derived", "may_follow"]

_KEEPS_PARAMETERS = frozenset({"staticmethod", "classmethod", "abstractmethod", "override", "final", "overload"})
_SHORTEST = 8  # characters of a name that hardly another library has by chance; with an underscore two fewer


def fitting(
    node: ast.Call, functions: Iterable[Function], imported: Collection[str], *, is_scoped: bool
) -> list[Function]:
    """Those of `functions` that the call can mean by how it is written.

    `imported` are the names that the file imports, `is_scoped` says that a bare name is bound to something else. A bare
    name is no method, a function inside another is nobody's attribute, and a call with arguments that the function does
    not take would fail.
    """
    is_bare = isinstance(node.func, ast.Name)
    return [
        function
        for function in functions
        if (function.owner is None if is_bare else function.parent is None)
        and not (is_bare and is_scoped)
        and _takes(function, node)
        and (is_bare or function.owner is not None or _root(node.func) in imported)
    ]


def _root(callee: ast.expr) -> str:
    """The name that `x` begins with in `x.f`: a function of a module is reached through an import."""
    while isinstance(callee, ast.Attribute):
        callee = callee.value
    return callee.id if isinstance(callee, ast.Name) else ""


def _takes(function: Function, node: ast.Call) -> bool:
    if any(decorator_name(decorator) not in _KEEPS_PARAMETERS for decorator in function.facts.decorators):
        return True  # the decorator may have made something else of it
    if any(isinstance(argument, ast.Starred) for argument in node.args) or any(
        keyword.arg is None for keyword in node.keywords
    ):
        return True
    params = list(function.facts.params)
    is_method = function.owner is not None and not function.decorated_with("staticmethod")
    if is_method and params and params[0][3] in {"", "/"}:
        base = node.func.value if isinstance(node.func, ast.Attribute) else None
        word = base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
        if word[:1].isupper() and not function.decorated_with("classmethod"):
            return True  # `Store.save(store)`: the object may be given by hand
        params = params[1:]
    kinds = {parameter[3] for parameter in params}
    keywords = {keyword.arg for keyword in node.keywords}
    by_place = [parameter for parameter in params if parameter[3] in {"", "/"}]
    if len(node.args) > len(by_place) and "*" not in kinds:
        return False
    if "**" not in kinds and not keywords <= {parameter[0] for parameter in params if parameter[3] in {"", "="}}:
        return False
    unfilled = [*by_place[len(node.args) :], *(parameter for parameter in params if parameter[3] == "=")]
    return all(parameter[2] is not None or parameter[0] in keywords for parameter in unfilled)


def is_never_ours(program: Program, base: Value | None, functions: Iterable[Function]) -> bool:
    """Whether a receiver is known, by an annotation or what it was made by, and cannot have one of `functions`.

    What is annotated with a class of a library may be an object of a class of the project that derives from it.
    """
    members = [member for member in members_of(base) if not isinstance(member, Nothing)]
    derived = _library_bases(program, functions)
    return bool(members) and all(_is_foreign(program, member, derived) for member in members)


def may_follow(program: Program, cls: Class, functions: Iterable[Function]) -> bool:
    """Whether `super()` in a class may mean one of `functions`: its owner stands behind the class in some order."""
    owners = {function.owner for function in functions}
    for derived in (cls, *program.classes.children(cls)):
        order = program.classes.order(derived)
        if cls in order and owners.intersection(order[order.index(cls) + 1 :]):
            return True
    return False


def may_be_derived(program: Program, base: Value | None, functions: Iterable[Function]) -> bool:
    """Whether a receiver is of a class of a library from which the owner of one of `functions` derives."""
    derived = _library_bases(program, functions) - {"object"}
    classes = [member for member in members_of(base) if isinstance(member, External | Builtin | Instance)]
    return any(
        not (isinstance(member, Instance) and isinstance(member.cls, Class))
        and not _is_foreign(program, member, derived)
        for member in classes
    )


def _library_bases(program: Program, functions: Iterable[Function]) -> set[str]:
    """The last names of all classes of libraries that the owners of `functions` derive from."""
    base_names: set[str] = set()
    for owner in {function.owner for function in functions if function.owner is not None}:
        for cls in program.classes.order(owner):
            if isinstance(cls, LibraryClass):
                base_names.add(cls.name)
            elif isinstance(cls, Class):
                bases = (base[1] if base[0] == "index" else base for base in cls.facts.bases)
                base_names.update(last_name(base) or "?" for base in bases)
    return base_names


def _is_foreign(program: Program, base: Value | None, derived: Collection[str]) -> bool:
    if isinstance(base, External):
        return re.sub(r"\(.*\)$", "", base.path).rpartition(".")[2] not in derived
    if isinstance(base, Builtin):
        return base.name not in derived
    if isinstance(base, Table | TupleOf):
        return True
    if isinstance(base, ClassObject):
        return isinstance(base.cls, LibraryClass) and base.cls.name not in derived
    if not isinstance(base, Instance) or base.guess:
        return False
    if isinstance(base.cls, LibraryClass):
        return base.cls.name not in derived
    order = program.classes.order(base.cls)
    return bool(order) and all(
        base is not None and not (isinstance(base, Class) and {"__getattr__", "__getattribute__"} & base.methods.keys())
        for base in order
    )


def has_name_alone(workspace: RecolorWorkspace, name: str, functions: Collection[Function]) -> bool:
    """Whether nothing else in the project is called `name`, and hardly anything elsewhere is.

    Then a call of that name means one of `functions`, whatever its receiver is. Variables, fields and arguments of
    that name count as well: they may hold any function.
    """
    if name in GENERIC or name.startswith("__") or len(name) < _SHORTEST - 2 * ("_" in name.strip("_")):
        return False
    bound = re.compile(rf"\b{re.escape(name)}\b\s*(?::(?!=)[^\n]*)?(?<![=!<>])=(?!=)|\bas\s+{re.escape(name)}\b")
    defined = re.compile(rf"\bdef\s+{re.escape(name)}\b")
    written = 0
    for view in workspace.views.values():
        if view.kind in {"code", "notebook"} and name in view.text:
            if bound.search(view.text):
                return False
            written += len(defined.findall(view.text))
    return written == len(_at_places(functions, name))


def _at_places(functions: Collection[Function], name: str) -> Sequence[tuple[str, int]]:
    return sorted({function.place for function in functions if function.name == name})
