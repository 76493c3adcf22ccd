"""Read the facts of one file from its syntax tree, in one pass."""

import ast
import sys
from collections.abc import Callable
from copy import copy
from typing import Any

from troth.analysis.facts.builder import MOST_BRANCHES, NOTHING, UNTOLD
from troth.analysis.facts.from_ast.expressions import READ, ExpressionReader, at
from troth.analysis.facts.model import FileFacts, Node

__all__ = ["extract"]

_OF_ONE_VALUE = frozenset({ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return})


def extract(tree: ast.Module, *, top_level_await: bool = False) -> FileFacts:
    """The facts of a parsed file. `top_level_await` is how notebooks run their cells."""
    return _FileReader().file(tree, top_level_await=top_level_await)


def _is_long(node: Any) -> bool:
    """Whether so many `elif` follow an `if` that they are better not followed one inside another."""
    for _ in range(MOST_BRANCHES):
        if len(node.orelse) != 1 or type(node.orelse[0]) is not ast.If:
            return False
        node = node.orelse[0]
    return True


def _skip(_reader: "_FileReader", _node: Any) -> None:
    return None


class _FileReader(ExpressionReader):
    """Reads the statements of an `ast`."""

    def file(self, tree: ast.Module, *, top_level_await: bool) -> FileFacts:
        body = self._block(tree.body)
        last = tree.body[-1] if tree.body else None
        end = last.value if isinstance(last, ast.Expr) else last  # without the brackets around it
        return self.facts(body, 1 if end is None else end.end_lineno or 1, is_async=top_level_await)

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
        self.waits = self.waits or any(isinstance(inner, ast.Await) for inner in inside)
        self.generator = self.generator or any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in inside)
        names = sorted({inner.id for inner in inside if isinstance(inner, ast.Name)})
        # Whatever a function inside takes from around it may be awaited there; and what it gives is not known.
        names_list = ast.List([ast.Name(name, ast.Load()) for name in names], ast.Load())
        nothing = ast.arguments([], [], None, [], [], None, [])
        value = ast.Subscript(ast.Lambda(nothing, names_list), ast.Constant(None), ast.Load())
        short = copy(node)
        short.value = ast.fix_missing_locations(ast.copy_location(value, node))
        return _STATEMENTS[type(node)](self, short)

    def _expression(self, node: Any) -> Node | None:
        return self.expression(self.expr(node.value), at(node.value))

    def _assign(self, node: Any) -> Node:
        return self.assign(self._many(node.targets), self.expr(node.value))

    def _annotated(self, node: ast.AnnAssign) -> Node:
        target, annotation = self.expr(node.target), self.expr(node.annotation)
        return self.annotate(target, annotation, None if node.value is None else self.expr(node.value))

    def _type_alias(self, node: Any) -> Node:
        name: Node = ("name", node.name.id)
        value = self.expr(node.value)
        self.note_assignment(name, None, value)
        return ("assign", (name,), value)

    def _augmented(self, node: ast.AugAssign) -> Node:
        return self.augment(self.expr(node.target), self.expr(node.value))

    def _return(self, node: Any) -> Node:
        value = node.value
        place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        return ("return", None if value is None else READ[type(value)](self, value), place)

    def _if(self, node: ast.If) -> Node:
        if len(node.orelse) == 1 and type(node.orelse[0]) is ast.If and _is_long(node):
            return self._choice(node)
        test, body = self.expr(node.test), self._block(node.body)
        orelse = self._block(node.orelse) if node.orelse else ()
        lives = bool(node.test.value) if type(node.test) is ast.Constant else self.outcome(test)
        if self.function and lives is not None:
            # Both sides are read, for `if False: yield` makes a generator; only one of them ever runs.
            return ("if", test, body, ()) if lives else ("if", test, (), orelse)
        return ("if", test, body, orelse)

    def _choice(self, node: ast.If) -> Node:
        """A long row of `elif`, each of which stands inside the one before: read like a `match` with guards alone."""
        cases: list[Node] = []
        remaining: list[Any] = [node]
        while len(remaining) == 1 and type(remaining[0]) is ast.If:
            cases.append((None, "", None, self.expr(remaining[0].test), self._block(remaining[0].body)))
            remaining = remaining[0].orelse
        if remaining:
            cases.append((None, "", None, None, self._block(remaining)))
        return ("match", NOTHING, tuple(cases))

    def _while(self, node: ast.While) -> Node:
        return ("while", self.expr(node.test), self._block(node.body), self._block(node.orelse))

    def _for(self, node: Any) -> Node:
        target = self.expr(node.target)
        is_async = type(node) is ast.AsyncFor
        if is_async:
            iterated = self._consumed(node.iter, "for")
            self.waits = True
        else:
            iterated = self.expr(node.iter)
            self.take(iterated)
        self.iterate(target, iterated)
        return ("for", is_async, target, iterated, self._block(node.body), self._block(node.orelse), at(node))

    def _consumed(self, node: Any, how: str) -> Node:
        """What `async for` or `async with` takes: right for iterators and contexts, wrong for coroutines."""
        if type(node) is not ast.Call:
            value = self.expr(node)
            self.take_async(value, how)
            return value
        callees: set[str] = set()
        call = self.called(node, callees)
        for callee in callees:
            self.awaited.add(f"{how} {callee}")
        return call

    def _with(self, node: Any) -> Node:
        items: list[Node] = []
        is_async = type(node) is ast.AsyncWith
        if is_async:
            self.waits = True
        for item in node.items:
            if is_async:
                value = self._consumed(item.context_expr, "with")
            else:
                value = self.expr(item.context_expr)
                self.take(value)
            target = None if item.optional_vars is None else self.expr(item.optional_vars)
            if target is not None:
                self.enter(target, value, is_async=is_async)
            items.append((value, target))
        return ("with", is_async, tuple(items), self._block(node.body), at(node))

    def _try(self, node: Any) -> Node:
        for handler in node.handlers:
            if handler.name is not None:
                self.origins[handler.name] = UNTOLD
        body = self._block(node.body)
        handlers = tuple(
            [
                (None if h.type is None else self.expr(h.type), h.name, self._block(h.body), h.lineno)
                for h in node.handlers
            ]
        )
        return ("try", body, handlers, self._block(node.orelse), self._block(node.finalbody))

    def _raise(self, node: ast.Raise) -> Node:
        raised = None if node.exc is None else self.expr(node.exc)
        if node.cause is not None:
            self.expr(node.cause)
        return ("raise", raised)

    def _assert(self, node: Any) -> Node:
        test, message = node.test, node.msg
        return ("assert", READ[type(test)](self, test), NOTHING if message is None else self.expr(message))

    def _delete(self, node: ast.Delete) -> Node:
        targets = self._many(node.targets)
        is_one = len(targets) == 1 and targets[0][0] == "tuple"  # `del (a, b)` is the same as `del a, b`
        return ("del", targets[0][1] if is_one else targets)

    def _import(self, node: Any) -> Node:
        return self.import_modules([(alias.name, alias.asname) for alias in node.names])

    def _import_from(self, node: Any) -> Node:
        module, level = node.module or "", node.level
        return self.import_names(tuple([(a.asname or a.name, module, a.name, level) for a in node.names]))

    def _scope(self, node: Any) -> Node:
        return self.scope(node.names)

    def _match(self, node: ast.Match) -> Node:
        subject = self.expr(node.subject)
        cases: list[Node] = []
        for case in node.cases:
            captures: list[str] = []
            matched = self._pattern(case.pattern, captures)
            for captured in captures:
                self.origins[captured] = UNTOLD
            is_named = isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is not None
            guard = None if case.guard is None else self.expr(case.guard)
            name = captures[-1] if is_named else None
            cases.append((matched, " ".join(captures), name, guard, self._block(case.body)))
        return ("match", subject, tuple(cases))

    def _pattern(self, pattern: Any, captures: list[str]) -> Node | None:
        """The class that a pattern asks for, if it is one; the names it binds are added to `captures`."""
        matched: Node | None = None
        name: str | None = None
        inside: list[Any] = []
        if isinstance(pattern, ast.MatchAs):
            name = pattern.name
            matched = None if pattern.pattern is None else self._pattern(pattern.pattern, captures)
        elif isinstance(pattern, ast.MatchStar):
            name = pattern.name
        elif isinstance(pattern, ast.MatchClass):
            matched = self.expr(pattern.cls)
            inside = [*pattern.patterns, *pattern.kwd_patterns]
        elif isinstance(pattern, ast.MatchMapping):
            self._many(pattern.keys)
            inside, name = pattern.patterns, pattern.rest
        elif isinstance(pattern, ast.MatchSequence | ast.MatchOr):
            inside = pattern.patterns
        elif isinstance(pattern, ast.MatchValue):
            self.expr(pattern.value)
        for part in inside:
            self._pattern(part, captures)
        if name is not None:
            captures.append(name)
        return matched

    def _def(self, node: Any) -> Node:
        decorators = self._many(node.decorator_list) if node.decorator_list else ()
        params = self.params(node.args)
        noted = node.returns
        returns = None if noted is None else self.expr(noted)
        reading = self.begin_function(node.name, decorators, params)
        body = self._block(node.body)
        self.leave_function(reading, body, is_async=type(node) is ast.AsyncFunctionDef)
        return self.keep_function(
            reading, (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset), returns
        )

    def _classdef(self, node: ast.ClassDef) -> Node:
        bases = self._many(node.bases)
        decorators = self._many(node.decorator_list)
        for keyword in node.keywords:
            if keyword.arg is not None:
                self.expr(keyword.value)
        reading = self.begin_class(node.name)
        body = self._block(node.body)
        self.leave_class(reading)
        return self.keep_class(reading, at(node), bases, decorators, body)


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
