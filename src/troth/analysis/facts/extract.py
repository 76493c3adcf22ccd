"""Knows how to read the facts of one file from its syntax tree, in one pass."""

import ast
import marshal
import sys
from typing import TYPE_CHECKING, Any

from troth.analysis.facts.expressions import UNTOLD, ExpressionReader, at
from troth.analysis.facts.model import (
    ABSTRACT,
    ASYNC,
    GENERATOR,
    WAITS,
    At,
    ClassFacts,
    FileFacts,
    FunctionFacts,
    ImportFacts,
    Node,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["extract"]

_NOTHING: Node = ("const", "None")


def extract(tree: ast.Module, *, top_level_await: bool = False) -> FileFacts:
    """The facts of a parsed file. `top_level_await` is how notebooks run their cells."""
    return _FileReader().file(tree, top_level_await=top_level_await)


class _Class:
    """A class while its body is being read."""

    __slots__ = ("annotations", "index", "methods", "self_attributes", "values")

    def __init__(self, index: int) -> None:
        self.index = index
        self.methods: dict[str, list[int]] = {}
        self.annotations: dict[str, Node] = {}
        self.values: dict[str, Node] = {}
        self.self_attributes: list[tuple[str, int, Node | None, Node | None]] = []


class _FileReader(ExpressionReader):
    """Reads statements; knows at each moment in which function and class it is."""

    def __init__(self) -> None:
        super().__init__()
        self._imports: list[ImportFacts] = []
        self._functions: list[FunctionFacts | None] = []
        self._classes: list[ClassFacts | None] = []
        self._variables: list[tuple[str, Node | None, Node | None]] = []
        self._exports: tuple[str, ...] | None = None
        self._function = 0  # the one being read
        self._prefix = ""
        self._class: _Class | None = None  # the class whose body is being read, None inside its methods
        self._self: tuple[str, _Class] | None = None  # the name of `self` here, and whose attributes it has
        self._around: list[dict[str, str]] = []  # the origins of variables in the functions around
        self._wanted: set[str] = set()  # variables of which something is called, here or in a function inside
        self._statements: dict[type, Callable[[Any], Node | None]] = {
            ast.Expr: self._expression,
            ast.Assign: self._assign,
            ast.AnnAssign: self._annotated,
            ast.AugAssign: self._augmented,
            ast.Return: self._return,
            ast.If: self._if,
            ast.While: self._while,
            ast.For: self._for,
            ast.AsyncFor: self._for,
            ast.With: self._with,
            ast.AsyncWith: self._with,
            ast.Try: self._try,
            ast.TryStar: self._try,
            ast.Raise: self._raise,
            ast.Assert: self._assert,
            ast.Delete: self._delete,
            ast.Break: lambda _: ("break",),
            ast.Continue: lambda _: ("continue",),
            ast.Import: self._import,
            ast.ImportFrom: self._import_from,
            ast.FunctionDef: self._def,
            ast.AsyncFunctionDef: self._def,
            ast.ClassDef: self._classdef,
            ast.Match: self._match,
            ast.Global: self._scope,
            ast.Nonlocal: self._scope,
            ast.Pass: lambda _: None,
        }
        if sys.version_info >= (3, 12):
            self._statements[ast.TypeAlias] = self._type_alias

    def file(self, tree: ast.Module, *, top_level_await: bool) -> FileFacts:
        self._functions.append(None)
        body = self._block(tree.body)
        last = tree.body[-1].end_lineno if tree.body else 1
        self._functions[0] = FunctionFacts(
            "<module>",
            "",
            -1,
            -1,
            ASYNC if top_level_await else 0,
            (1, 0, last or 1, 0),
            (),
            None,
            (),
            tuple(sorted(self.calls)),
            tuple(sorted(self.awaited)),
            tuple(sorted(self.keyed)),
            tuple(sorted(self.taken)),
            (),
            marshal.dumps(body),
        )
        return FileFacts(
            tuple(self._imports),
            tuple(f for f in self._functions if f is not None),
            tuple(c for c in self._classes if c is not None),
            tuple(self._variables),
            self._exports,
            tuple(sorted(self.mentions)),
        )

    def _block(self, nodes: list[Any]) -> tuple[Node, ...]:
        result: list[Node] = []
        statements = self._statements
        for node in nodes:
            read = statements.get(type(node))
            if read is not None:
                statement = read(node)
                if statement is not None:
                    result.append(statement)
        return tuple(result)

    def _expression(self, node: ast.Expr) -> Node | None:
        value = node.value
        if type(value) is ast.Constant:
            return None
        expression = self.expr(value)
        if self._exports is not None and self._function == 0 and expression[0] == "call":
            callee = expression[1]
            if callee[0] == "attr" and callee[1] == ("name", "__all__"):  # `__all__.extend(…)`
                self._exports += ("*",)
        return ("expr", expression)

    def _assign(self, node: ast.Assign) -> Node:
        value = self.expr(node.value)
        if value == ("const", "bool") and not self._function and type(node.targets[0]) is ast.Name:
            value = self._flavor(node.targets[0].id, node.value)
        targets = tuple([self.expr(t) for t in node.targets])
        for target in targets:
            self._note_assignment(target, None, value)
            if target[0] == "name" and self._class is None:
                self.bind_to(target[1], node.value)
            else:
                self.bind(target)
        return ("assign", targets, value)

    def _flavor(self, name: str, value: Any) -> Node:
        """`_IS_SYNC = True`: a file that says which of two flavors it is, made of one text."""
        if "sync" not in name.lower() or name in self.flavors:
            self.flavors.pop(name, None)
            return ("const", "bool")
        self.flavors[name] = value.value
        return ("const", "bool", str(value.value))

    def _note_assignment(self, target: Node, annotation: Node | None, value: Node | None) -> None:
        kind = target[0]
        if kind == "name":
            if self._class is not None:
                if annotation is not None:
                    self._class.annotations[target[1]] = annotation
                if value is not None:
                    self._class.values[target[1]] = value
            elif self._function == 0:
                self._variables.append((target[1], annotation, value))
                if target[1] == "__all__" and value is not None and value[0] in {"list", "tuple"}:
                    self._exports = _exported(value)
        elif kind == "attr" and self._self is not None and target[1] == ("name", self._self[0]):
            self._self[1].self_attributes.append((target[2], self._function, annotation, value))
        elif kind == "tuple" and value is not None:
            items = value[1] if value[0] == "tuple" and len(value[1]) == len(target[1]) else None
            starred = any(item[0] == "star" for item in target[1])
            for index, item in enumerate(target[1]):
                which = ("const", "int") if starred else ("const", "int", index)
                part = items[index] if items is not None else ("index", value, which)
                if item[0] in {"name", "attr"}:
                    self._note_assignment(item, None, part)

    def _annotated(self, node: ast.AnnAssign) -> Node:
        target, annotation = self.expr(node.target), self.expr(node.annotation)
        value = None if node.value is None else self.expr(node.value)
        self.bind(target)
        self._note_assignment(target, annotation, value)
        return ("annassign", target, annotation, value)

    def _type_alias(self, node: Any) -> Node:
        name: Node = ("name", node.name.id)
        value = self.expr(node.value)
        self._note_assignment(name, None, value)
        return ("assign", (name,), value)

    def _augmented(self, node: ast.AugAssign) -> Node:
        target, value = self.expr(node.target), self.expr(node.value)
        self.bind(target)
        if self._exports is not None and self._function == 0 and target == ("name", "__all__"):
            self._exports += _exported(value)
        return ("augassign", target, value)

    def _return(self, node: ast.Return) -> Node:
        return ("return", None if node.value is None else self.expr(node.value), at(node))

    def _if(self, node: ast.If) -> Node:
        test, body, orelse = self.expr(node.test), self._block(node.body), self._block(node.orelse)
        if self._function and (lives := self.outcome(node.test)) is not None:
            # Both sides are read, for `if False: yield` makes a generator; only one of them ever runs.
            return ("if", test, body, ()) if lives else ("if", test, (), orelse)
        return ("if", test, body, orelse)

    def _while(self, node: ast.While) -> Node:
        return ("while", self.expr(node.test), self._block(node.body), self._block(node.orelse))

    def _for(self, node: Any) -> Node:
        target = self.expr(node.target)
        self.bind(target)
        if type(node) is ast.AsyncFor:
            iterated = self._consumed(node.iter, "for")
        else:
            iterated = self.expr(node.iter)
            self.take(node.iter)
        if self._function == 0 and self._class is None and target[0] == "name":
            self._variables.append((target[1], None, ("index", iterated, ("const", "int"))))
        is_async = type(node) is ast.AsyncFor
        if is_async:
            self.waits = True
        return ("for", is_async, target, iterated, self._block(node.body), self._block(node.orelse), at(node))

    def _consumed(self, node: Any, how: str) -> Node:
        """What `async for` or `async with` takes: right for iterators and contexts, wrong for coroutines."""
        if type(node) is not ast.Call:
            return self.expr(node)
        callee = self._callee(node.func)
        if callee:
            self.awaited.add(f"{how} {callee}")
        return self._call_itself(node)

    def _with(self, node: Any) -> Node:
        items = []
        if type(node) is ast.AsyncWith:
            self.waits = True
        for item in node.items:
            entered = item.context_expr
            if type(node) is ast.AsyncWith:
                value = self._consumed(entered, "with")
            else:
                value = self.expr(entered)
                self.take(entered)
            target = None if item.optional_vars is None else self.expr(item.optional_vars)
            if target is not None:
                is_async = type(node) is ast.AsyncWith
                if target[0] == "name" and self._class is None and type(entered) is ast.Call:
                    self.bind_to(target[1], entered, "async with" if is_async else "with")
                else:
                    self.bind(target)
                self._note_assignment(target, None, ("entered", is_async, value))
            items.append((value, target))
        return ("with", type(node) is ast.AsyncWith, tuple(items), self._block(node.body), at(node))

    def _try(self, node: Any) -> Node:
        for handler in node.handlers:
            if handler.name is not None:
                self.origins[handler.name] = UNTOLD
        handlers = tuple(
            [
                (None if h.type is None else self.expr(h.type), h.name, self._block(h.body), h.lineno)
                for h in node.handlers
            ]
        )
        return ("try", self._block(node.body), handlers, self._block(node.orelse), self._block(node.finalbody))

    def _raise(self, node: ast.Raise) -> Node:
        return ("raise", None if node.exc is None else self.expr(node.exc))

    def _assert(self, node: ast.Assert) -> Node:
        return ("assert", self.expr(node.test), _NOTHING if node.msg is None else self.expr(node.msg))

    def _delete(self, node: ast.Delete) -> Node:
        return ("del", tuple([self.expr(t) for t in node.targets]))

    def _import(self, node: ast.Import) -> Node:
        names: list[tuple[str, str, str | None, int]] = []
        for alias in node.names:
            if alias.asname is None:
                top = alias.name.partition(".")[0]
                names.append((top, top, None, 0))
                if top != alias.name:  # the submodule becomes an attribute of the package
                    self._imports.append(ImportFacts(self._function, "", alias.name, None, 0))
            else:
                names.append((alias.asname, alias.name, None, 0))
        return self._imported(names)

    def _import_from(self, node: ast.ImportFrom) -> Node:
        module = node.module or ""
        return self._imported([(a.asname or a.name, module, a.name, node.level) for a in node.names])

    def _imported(self, names: list[tuple[str, str, str | None, int]]) -> Node:
        for local, module, name, level in names:
            self.origins[local] = UNTOLD
            self._imports.append(ImportFacts(self._function, local, module, name, level))
            if self._class is not None:
                self._class.values[local] = ("imported", module, name, level)
        return ("import", tuple(names))

    def _scope(self, node: Any) -> Node:
        for name in node.names:
            for origins in (self.origins, *self._around):
                origins[name] = UNTOLD
        return ("scope", tuple(node.names))

    def _match(self, node: ast.Match) -> Node:
        cases = []
        for case in node.cases:
            captures = [
                n.name or getattr(n, "rest", None)
                for n in ast.walk(case.pattern)
                if isinstance(n, ast.MatchAs | ast.MatchStar)
            ]
            captures += [n.rest for n in ast.walk(case.pattern) if isinstance(n, ast.MatchMapping)]
            self.origins.update((name, UNTOLD) for name in captures if name)
            pattern = case.pattern
            name = None
            if isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
                name, pattern = pattern.name, pattern.pattern
            matched = self.expr(pattern.cls) if isinstance(pattern, ast.MatchClass) else None
            guard = None if case.guard is None else self.expr(case.guard)
            cases.append((tuple(c for c in captures if c), matched, name, guard, self._block(case.body)))
        return ("match", self.expr(node.subject), tuple(cases))

    def _def(self, node: Any) -> Node:
        index = len(self._functions)
        self._functions.append(None)
        self.origins[node.name] = UNTOLD
        decorators = tuple([self.expr(d) for d in node.decorator_list])
        params = self.params(node.args)
        returns = None if node.returns is None else self.expr(node.returns)
        saved = (self._function, self._prefix, self._class, self._self, self.calls, self.awaited, self.keyed)
        taken, self.taken = self.taken, set()
        generator, waits = self.generator, self.waits
        self._around.append(self.origins)
        wanted, self._wanted = self._wanted, set()
        parent, owner = self._function, self._class
        if owner is not None:
            owner.methods.setdefault(node.name, []).append(index)
            static = any(d == ("name", "staticmethod") for d in decorators)
            self._self = (params[0][0], owner) if params and not static and params[0][3] in {"", "/"} else None
        elif self._self is not None and any(p[0] == self._self[0] for p in params):
            self._self = None
        qualname = f"{self._prefix}{node.name}"
        self._function, self._prefix, self._class = index, f"{qualname}.", None
        self.calls, self.awaited, self.keyed, self.origins = set(), set(), set(), {}
        self.generator = self.waits = False
        body = self._block(node.body)
        flags = (ASYNC if type(node) is ast.AsyncFunctionDef else 0) | (GENERATOR if self.generator else 0)
        if self.waits:
            flags |= WAITS
        if _says_nothing(node.body):
            flags |= ABSTRACT
        self._functions[index] = FunctionFacts(
            node.name,
            qualname,
            parent,
            -1 if owner is None else owner.index,
            flags,
            _header(node),
            params,
            returns,
            decorators,
            tuple(sorted(self.calls)),
            tuple(sorted(self.awaited)),
            tuple(sorted(self.keyed)),
            tuple(sorted(self.taken)),
            self._told_origins(),
            marshal.dumps(body),
        )
        self.origins = self._around.pop()
        self._wanted |= wanted
        self._function, self._prefix, self._class, self._self, self.calls, self.awaited, self.keyed = saved
        self.taken = taken
        self.generator, self.waits = generator, waits
        return ("def", index)

    def _told_origins(self) -> tuple[tuple[str, str], ...]:
        """The variables of which a method is called, here or in a function inside, with where they come from."""
        told = [(name, origin) for name, origin in self.origins.items() if origin != UNTOLD]
        if not told and len(self._around) == 1:
            return ()
        wanted = self._wanted
        for callee in self.calls:
            wanted.add(callee.partition(".")[0])
        for callee in self.awaited:
            wanted.add(callee.partition(".")[0])
        return tuple([one for one in told if one[0] in wanted])

    def _classdef(self, node: ast.ClassDef) -> Node:
        index = len(self._classes)
        self.origins[node.name] = UNTOLD
        self._classes.append(None)
        bases = tuple([self.expr(b) for b in node.bases])
        decorators = tuple([self.expr(d) for d in node.decorator_list])
        for keyword in node.keywords:
            self.expr(keyword.value)
        reading = _Class(index)
        saved = (self._class, self._prefix, self._self)
        outer = self._class
        qualname = f"{self._prefix}{node.name}"
        self._class, self._prefix = reading, f"{qualname}."
        body = self._block(node.body)
        self._class, self._prefix, self._self = saved
        if outer is not None:
            outer.values[node.name] = ("classref", index)
        self._classes[index] = ClassFacts(
            node.name,
            qualname,
            self._function,
            -1 if outer is None else outer.index,
            _header(node),
            bases,
            decorators,
            tuple((name, tuple(which)) for name, which in reading.methods.items()),
            tuple(reading.annotations.items()),
            tuple(reading.values.items()),
            tuple(reading.self_attributes),
        )
        return ("class", index, body)


def _header(node: Any) -> At:
    """Where the name of a definition stands, as near as a tree tells: its first line without the decorators."""
    return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


def _says_nothing(body: list[Any]) -> bool:
    for node in body:
        if isinstance(node, ast.Pass):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(raised, ast.Name) and raised.id == "NotImplementedError":
                continue
        return False
    return True


def _exported(value: Node) -> tuple[str, ...]:
    """The names in a list for `__all__`; `*` stands for those that are not written out."""
    if value[0] not in {"list", "tuple"}:
        return ("*",)
    names = tuple(i[2] for i in value[1] if i[0] == "const" and len(i) == 3)
    return names if len(names) == len(value[1]) else (*names, "*")
