"""Knows how to read the facts of one file from its syntax tree, in one pass."""

import ast
import marshal
import sys
from collections.abc import Callable
from copy import copy
from typing import Any

from troth.analysis.facts.expressions import FALSE, READ, TRUE, UNTOLD, ExpressionReader, at
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

__all__ = ["extract"]

_NOTHING: Node = ("const", "None")
_Name = ast.Name
_OF_ONE_VALUE = frozenset({ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return})
_MOST_BRANCHES = 100
_NO_BODY = marshal.dumps(())
_new: Any = tuple.__new__  # what a NamedTuple calls behind a function of its own


def extract(tree: ast.Module, *, top_level_await: bool = False) -> FileFacts:
    """The facts of a parsed file. `top_level_await` is how notebooks run their cells."""
    return _FileReader().file(tree, top_level_await=top_level_await)


def _is_long(node: Any) -> bool:
    """Whether so many `elif` follow an `if` that they are better not followed one inside another."""
    for _ in range(_MOST_BRANCHES):
        if len(node.orelse) != 1 or type(node.orelse[0]) is not ast.If:
            return False
        node = node.orelse[0]
    return True


def _skip(_reader: "_FileReader", _node: Any) -> None:
    return None


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
        self._functions: list[Any] = []  # None for those that are being read
        self._classes: list[Any] = []
        self._variables: list[tuple[str, Node | None, Node | None]] = []
        self._exports: tuple[str, ...] | None = None
        self._function = 0  # the one being read
        self._prefix = ""
        self._class: _Class | None = None  # the class whose body is being read, None inside its methods
        self._self: tuple[str, _Class] | None = None  # the name of `self` here, and whose attributes it has
        self._around: list[dict[str, str]] = []  # the origins of variables in the functions around
        self._wanted: set[str] = set()  # variables of which something is called, here or in a function inside

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
            tuple(self._functions),
            tuple(self._classes),
            tuple(self._variables),
            self._exports,
            tuple(sorted(self.mentions)),
        )

    def _block(self, nodes: list[Any]) -> tuple[Node, ...]:
        result: list[Node] = []
        for node in nodes:
            try:
                statement = _STATEMENTS[type(node)](self, node)
            except RecursionError:
                if type(node) not in _OF_ONE_VALUE or node.value is None:
                    raise
                statement = self._in_short(node)
            if statement is not None:
                result.append(statement)
        return tuple(result)

    def _in_short(self, node: Any) -> Node | None:
        """A statement whose value is nested too deeply to be followed: all that is known is which names stand in it."""
        self.row = 0
        inside = list(ast.walk(node.value))
        self.waits = self.waits or any(isinstance(one, ast.Await) for one in inside)
        self.generator = self.generator or any(isinstance(one, ast.Yield | ast.YieldFrom) for one in inside)
        names = sorted({one.id for one in inside if isinstance(one, ast.Name)})
        # Whatever a function inside takes from around it may be awaited there; and what it gives is not known.
        taken = ast.List([ast.Name(name, ast.Load()) for name in names], ast.Load())
        nothing = ast.arguments([], [], None, [], [], None, [])
        value = ast.Subscript(ast.Lambda(nothing, taken), ast.Constant(None), ast.Load())
        short = copy(node)
        short.value = ast.fix_missing_locations(ast.copy_location(value, node))
        return _STATEMENTS[type(node)](self, short)

    def _expression(self, node: Any) -> Node | None:
        value = node.value
        kind = type(value)
        if kind is ast.Constant:
            return None
        expression = READ[kind](self, value)
        if self._function == 0 and self._exports is not None and expression[0] == "call":
            callee = expression[1]
            if callee[0] == "attr" and callee[1] == ("name", "__all__"):  # `__all__.extend(…)`
                self._exports += ("*",)
        return ("expr", expression)

    def _assign(self, node: Any) -> Node:
        given, targets = node.value, node.targets
        value = READ[type(given)](self, given)
        if not self._function and (value is TRUE or value is FALSE) and type(targets[0]) is _Name:
            value = self._flavor(targets[0].id, given)
        if self._function and self._class is None and len(targets) == 1 and type(targets[0]) is _Name:  # most of them
            name = targets[0].id
            origin = self._origin(given)
            if self.origins.setdefault(name, origin) != origin:
                self.origins[name] = UNTOLD
            target = self.names[name]
            return ("assign", (target,), value)
        several = self._many(targets)
        for target in several:
            self._note_assignment(target, None, value)
            if target[0] == "name" and self._class is None:
                self.bind_to(target[1], given)
            else:
                self.bind(target)
        return ("assign", several, value)

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

    def _return(self, node: Any) -> Node:
        value = node.value
        place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        return ("return", None if value is None else READ[type(value)](self, value), place)

    def _if(self, node: ast.If) -> Node:
        if len(node.orelse) == 1 and type(node.orelse[0]) is ast.If and _is_long(node):
            return self._choice(node)
        test, body = self.expr(node.test), self._block(node.body)
        orelse = self._block(node.orelse) if node.orelse else ()
        if self._function and (lives := self.outcome(node.test)) is not None:
            # Both sides are read, for `if False: yield` makes a generator; only one of them ever runs.
            return ("if", test, body, ()) if lives else ("if", test, (), orelse)
        return ("if", test, body, orelse)

    def _choice(self, node: ast.If) -> Node:
        """A long row of `elif`, each of which stands inside the one before: read like a `match` with guards alone."""
        cases: list[Node] = []
        rest: list[Any] = [node]
        while len(rest) == 1 and type(rest[0]) is ast.If:
            cases.append((None, "", None, self.expr(rest[0].test), self._block(rest[0].body)))
            rest = rest[0].orelse
        if rest:
            cases.append((None, "", None, None, self._block(rest)))
        return ("match", _NOTHING, tuple(cases))

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
        told: set[str] = set()
        call = self.called(node, told)
        for callee in told:
            self.awaited.add(f"{how} {callee}")
        return call

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

    def _assert(self, node: Any) -> Node:
        test, message = node.test, node.msg
        return ("assert", READ[type(test)](self, test), _NOTHING if message is None else self.expr(message))

    def _delete(self, node: ast.Delete) -> Node:
        return ("del", tuple([self.expr(t) for t in node.targets]))

    def _import(self, node: Any) -> Node:
        names: list[tuple[str, str, str | None, int]] = []
        for alias in node.names:
            module, local = alias.name, alias.asname
            if local is None:
                local = module.partition(".")[0]
                names.append((local, local, None, 0))
                if local != module:  # the submodule becomes an attribute of the package
                    self._imports.append(ImportFacts(self._function, "", module, None, 0))
            else:
                names.append((local, module, None, 0))
        return self._imported(tuple(names))

    def _import_from(self, node: Any) -> Node:
        module = node.module or ""
        level = node.level
        return self._imported(tuple([(a.asname or a.name, module, a.name, level) for a in node.names]))

    def _imported(self, names: tuple[tuple[str, str, str | None, int], ...]) -> Node:
        imports, function, origins = self._imports, self._function, self.origins
        for one in names:
            origins[one[0]] = UNTOLD
            imports.append(_new(ImportFacts, (function, *one)))
            if self._class is not None:
                self._class.values[one[0]] = ("imported", *one[1:])
        return ("import", names)

    def _scope(self, node: Any) -> Node:
        for name in node.names:
            for origins in (self.origins, *self._around):
                origins[name] = UNTOLD
        return ("scope", " ".join(node.names))

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
            cases.append((matched, " ".join(filter(None, captures)), name, guard, self._block(case.body)))
        return ("match", self.expr(node.subject), tuple(cases))

    def _def(self, node: Any) -> Node:
        name = node.name
        functions = self._functions
        index = len(functions)
        functions.append(None)
        around = self.origins
        around[name] = UNTOLD
        decorators = self._many(node.decorator_list) if node.decorator_list else ()
        params = self.params(node.args)
        noted = node.returns
        returns = None if noted is None else READ[type(noted)](self, noted)
        parent, prefix, owner, own = self._function, self._prefix, self._class, self._self
        outside = (self.calls, self.awaited, self.keyed, self.taken, self.generator, self.waits)
        wanted_around, self._wanted = self._wanted, set()
        if owner is not None:
            owner.methods.setdefault(name, []).append(index)
            is_static = decorators and ("name", "staticmethod") in decorators
            self._self = (params[0][0], owner) if params and not is_static and params[0][3] in {"", "/"} else None
        elif own is not None and own[0] in [param[0] for param in params]:
            self._self = None
        qualname = prefix + name
        self._function, self._prefix, self._class = index, qualname + ".", None
        calls: set[str] = set()
        awaited: set[str] = set()
        keyed: set[str] = set()
        taken: set[str] = set()
        self.calls, self.awaited, self.keyed, self.taken, self.origins = calls, awaited, keyed, taken, {}
        self.generator = self.waits = False
        self._around.append(around)
        body = self._block(node.body)
        flags = ASYNC if type(node) is ast.AsyncFunctionDef else 0
        if self.generator:
            flags |= GENERATOR
        if self.waits:
            flags |= WAITS
        if not body or (body[0][0] == "raise" and _only_refuses(body)):
            flags |= ABSTRACT
        functions[index] = _new(
            FunctionFacts,
            (
                name,
                qualname,
                parent,
                -1 if owner is None else owner.index,
                flags,
                (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset),
                params,
                returns,
                decorators,
                tuple(sorted(calls) if len(calls) > 1 else calls),
                tuple(sorted(awaited) if len(awaited) > 1 else awaited),
                tuple(sorted(keyed) if len(keyed) > 1 else keyed),
                tuple(sorted(taken) if len(taken) > 1 else taken),
                self._told_origins(is_inside=parent > 0) if self.origins or parent else (),
                marshal.dumps(body) if body else _NO_BODY,
            ),
        )
        self.origins = self._around.pop()
        if parent:
            self._wanted |= wanted_around
        self.calls, self.awaited, self.keyed, self.taken, self.generator, self.waits = outside
        self._function, self._prefix, self._class, self._self = parent, prefix, owner, own
        return ("def", index)

    def _told_origins(self, *, is_inside: bool) -> tuple[tuple[str, str], ...]:
        """The variables of which a method is called, here or in a function inside, with where they come from."""
        wanted, calls, awaited = self._wanted, self.calls, self.awaited
        if is_inside:  # the functions around have to know, too
            for callee in (*calls, *awaited):
                wanted.add(callee.partition(".")[0])
        text = ""
        told: list[tuple[str, str]] = []
        for one in self.origins.items():
            name, origin = one
            if origin == UNTOLD:
                continue
            if not text and not is_inside:  # what `wanted` would say is looked for in one text
                text = "\n".join(("", *calls, *awaited, ""))
            if name in wanted or f"\n{name}." in text or f"\n{name}\n" in text:
                told.append(one)
        return tuple(told)

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


_STATEMENTS: dict[type, Callable[[_FileReader, Any], Node | None]] = {
    **dict.fromkeys(ast.stmt.__subclasses__(), _skip),  # kinds that are newer than this say nothing
    ast.Expr: _FileReader._expression,
    ast.Assign: _FileReader._assign,
    ast.AnnAssign: _FileReader._annotated,
    ast.AugAssign: _FileReader._augmented,
    ast.Return: _FileReader._return,
    ast.If: _FileReader._if,
    ast.While: _FileReader._while,
    ast.For: _FileReader._for,
    ast.AsyncFor: _FileReader._for,
    ast.With: _FileReader._with,
    ast.AsyncWith: _FileReader._with,
    ast.Try: _FileReader._try,
    ast.TryStar: _FileReader._try,
    ast.Raise: _FileReader._raise,
    ast.Assert: _FileReader._assert,
    ast.Delete: _FileReader._delete,
    ast.Break: lambda _reader, _node: ("break",),
    ast.Continue: lambda _reader, _node: ("continue",),
    ast.Import: _FileReader._import,
    ast.ImportFrom: _FileReader._import_from,
    ast.FunctionDef: _FileReader._def,
    ast.AsyncFunctionDef: _FileReader._def,
    ast.ClassDef: _FileReader._classdef,
    ast.Match: _FileReader._match,
    ast.Global: _FileReader._scope,
    ast.Nonlocal: _FileReader._scope,
}
if sys.version_info >= (3, 12):
    _STATEMENTS[ast.TypeAlias] = _FileReader._type_alias


def _header(node: Any) -> At:
    """Where the name of a definition stands, as near as a tree tells: its first line without the decorators."""
    return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


def _only_refuses(body: tuple[Node, ...]) -> bool:
    """Whether there is nothing but `raise NotImplementedError`; `pass` and docstrings are not among the statements."""
    for kind, *parts in body:
        raised = parts[0]
        if kind != "raise" or raised is None:
            return False
        if (raised[1] if raised[0] == "call" else raised) != ("name", "NotImplementedError"):
            return False
    return True


def _exported(value: Node) -> tuple[str, ...]:
    """The names in a list for `__all__`; `*` stands for those that are not written out."""
    if value[0] not in {"list", "tuple"}:
        return ("*",)
    names = tuple(i[2] for i in value[1] if i[0] == "const" and len(i) == 3)
    return names if len(names) == len(value[1]) else (*names, "*")
