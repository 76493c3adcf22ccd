"""Write the sync half of a function that comes in both colors by name: `load` from `aload`.

The half does what the async function does, without waiting: `await` goes, the sync halves of other pairs are called,
and what was handed to a thread (`await asyncio.to_thread(f, x)`, `await bridge.call(f, x)`) is called on the spot. The
docstring of the half stays.
"""

import ast
from collections.abc import Iterator, Sequence

from troth.analysis.findings import Edit
from troth.analysis.recolor.project.resolve import looked_up
from troth.analysis.recolor.project.tree import Definition, Tree
from troth.analysis.recolor.project.workspace import RecolorWorkspace
from troth.analysis.recolor.twin.plain_names import plain_attribute
from troth.analysis.recolor.twin.twin import Twin, Writing
from troth.analysis.semantics.infer.call_graph import names_of
from troth.analysis.semantics.symbols import Function, Module
from troth.analysis.semantics.values import FunctionValue, members_of

__all__ = ["half_of", "is_half", "pairs", "sync_name"]

# What runs a sync function beside a loop, and gives what it gives; whether keywords are those of the function.
_TO_THREAD = {
    "asyncio.to_thread": True,
    "starlette.concurrency.run_in_threadpool": True,
    "anyio.to_thread.run_sync": False,
}
_OF_BRIDGE = "troth.bridge"


def sync_name(name: str) -> str | None:
    """What the sync half of `name` is called: `load` for `aload`, `_load` for `_aload`; None for other words."""
    bare = name.lstrip("_")
    return f"{name[: len(name) - len(bare)]}{bare[1:]}" if bare.startswith("a") and len(bare) > 2 else None


def is_half(function: Function) -> bool:
    """Whether a function is the async half of a pair: beside it stands a sync one of the name without the `a`."""
    return function.is_async and _partner(function) is not None


def pairs(module: Module) -> Iterator[tuple[Function, Function]]:
    """The pairs of a module: each async half with its sync one."""
    for index in range(1, len(module.facts.functions)):
        function = module.function(index)
        partner = _partner(function) if function.is_async else None
        if partner is not None:
            yield function, partner


def half_of(workspace: RecolorWorkspace, function: Function) -> Twin:
    """The sync half of `function`, written over the one that is there, unless that differs by its layout alone."""
    partner = _partner(function)
    source, old = workspace.definition(function), None if partner is None else workspace.definition(partner)
    assert partner is not None
    assert source is not None
    assert old is not None
    tree, node = source
    writing = _Half(workspace, tree, function.owner, node)
    text = writing.half(old[1])
    edits: tuple[Edit, ...] = ()
    if not _is_same(text, old[1]):
        start, end = _extent(tree, old[1])
        edits = (Edit(function.module.path, start, end, text), *writing.imports())
    return Twin(function.name, partner.name, edits, tuple(sorted(writing.problems)))


def _partner(function: Function) -> Function | None:
    """The function of the sync name in the same class or, outside of classes, at the top of the same module."""
    name = sync_name(function.name)
    if name is None or (function.owner is None and function.parent is not None):
        return None
    if function.owner is not None:
        indexes = function.owner.methods.get(name, ())
        partner = function.module.function(indexes[-1]) if indexes else None
    else:
        partner = _at_top(function.module, name)
    return None if partner is None or partner.is_async else partner


def _at_top(module: Module, name: str) -> Function | None:
    for index in range(1, len(module.facts.functions)):
        function = module.function(index)
        if function.name == name and function.parent is None and function.owner is None:
            return function
    return None


def _namesakes(workspace: RecolorWorkspace, name: str) -> Iterator[Function]:
    """The async functions and methods of that name, of whatever class."""
    for module in workspace.program.own_modules():
        for index, facts in enumerate(module.facts.functions):
            if index and facts.name == name and module.function(index).is_async:
                yield module.function(index)


def _is_defined(workspace: RecolorWorkspace, name: str) -> bool:
    """Whether the project has a function or method of that name."""
    return any(facts.name == name for module in workspace.program.own_modules() for facts in module.facts.functions[1:])


class _Half(Writing):
    """The text of a sync half while it is made."""

    def half(self, old: Definition) -> str:
        """The async function with all that is async in it made sync, and the docstring of `old`."""
        assert isinstance(self.node, Definition)
        start, end = _extent(self.tree, self.node)
        text = self.written([self.node], start, end)
        docstring, own = _docstring(old), _docstring(self.node)
        if docstring is None or own is None or self.tree.source(docstring) == self.tree.source(own):
            return text
        return text.replace(self.tree.source(own), self.tree.source(docstring), 1)

    def sync_name(self, node: Definition) -> str | None:
        """The half has a name of its own; what is defined inside keeps its name."""
        return sync_name(node.name) if node is self.node else plain_attribute(node.name)

    def has_sync_side(self, function: Function) -> bool:
        """Whether the function is half of a pair, too."""
        return is_half(function) or (function.owner is not self.cls and super().has_sync_side(function))

    def awaited(self, node: ast.Await) -> list[Edit]:
        """What is handed to a thread is called on the spot."""
        call = node.value
        if not isinstance(call, ast.Call) or not call.args:
            return super().awaited(node)
        names = self._names(call.func)
        runner = next((name for name in names if name in _TO_THREAD), None)
        is_bridge = runner is None and any(name.startswith(_OF_BRIDGE) and name.endswith(".call") for name in names)
        if runner is None and not is_bridge:
            return super().awaited(node)
        if is_bridge and (why := self._would_be_lost(call.args[0])) is not None:
            self.refuse(call.args[0], why)
        return self._called_here(node, call, call.keywords if runner and _TO_THREAD[runner] else [])

    def renamed(self, node: ast.Name | ast.Attribute) -> list[Edit]:
        """The sync half of a pair, where its async one is named."""
        last = node.attr if isinstance(node, ast.Attribute) else node.id
        name = sync_name(last)
        if name is not None and self._is_of_pair(node, last):
            end = self.tree.end(node)
            return [Edit(self.tree.view.path, end - len(last), end, name)]
        return super().renamed(node)

    def _is_of_pair(self, node: ast.expr, last: str) -> bool:
        value = looked_up(self.workspace, self.tree, node, self.inside(node))
        functions = [
            member.function
            for member in (members_of(value) if value is not None else ())
            if isinstance(member, FunctionValue) and isinstance(member.function, Function)
        ]
        if functions:
            return all(is_half(function) or function.parent is not None for function in functions) and any(
                map(is_half, functions)
            )
        if value is not None:
            return False
        namesakes = list(_namesakes(self.workspace, last))
        return bool(namesakes) and all(map(is_half, namesakes))

    def _names(self, func: ast.expr) -> set[str]:
        """The full names that a callee may have, of a library or of the project."""
        value = looked_up(self.workspace, self.tree, func, self.inside(func))
        names = {ast.unparse(func), *(names_of(value) if value is not None else ())}
        for member in members_of(value) if value is not None else ():
            if isinstance(member, FunctionValue) and isinstance(member.function, Function):
                names.add(f"{member.function.module.name}.{member.function.name}")
        return names

    def _would_be_lost(self, function: ast.expr) -> str | None:
        """Why a callable of either color cannot be called by sync code; None if it is sync, or half of a pair."""
        if isinstance(function, ast.Lambda):
            if not isinstance(function.body, ast.Call):
                return None
            function = function.body.func
        value = looked_up(self.workspace, self.tree, function, self.inside(function))
        if value is None:
            name = function.attr if isinstance(function, ast.Attribute) else ""
            is_sync = _is_defined(self.workspace, name) and not any(_namesakes(self.workspace, name))
            return None if is_sync else "it may be async: sync code would lose its coroutine"
        for member in members_of(value):
            callee = member.function if isinstance(member, FunctionValue) else None
            if isinstance(callee, Function) and callee.is_async and not self.has_sync_side(callee):
                path, line = callee.place
                return f"`{callee.qualname}` ({path}:{line}) is async and has no twin"
        return None

    def _called_here(self, node: ast.Await, call: ast.Call, keywords: Sequence[ast.keyword]) -> list[Edit]:
        tree, path = self.tree, self.tree.view.path
        function, *arguments = call.args
        start, end = tree.start(node), tree.end(node)
        rest = [*arguments, *(keyword.value for keyword in keywords)]
        if isinstance(function, ast.Lambda) and not rest:
            is_tight = isinstance(function.body, ast.Call | ast.Name | ast.Attribute | ast.Subscript | ast.Constant)
            opening, closing = ("", "") if is_tight else ("(", ")")
            return [
                Edit(path, start, tree.start(function.body), opening),
                Edit(path, tree.end(function.body), end, closing),
            ]
        if not rest:
            return [Edit(path, start, tree.start(function), ""), Edit(path, tree.end(function), end, "()")]
        first = min(
            [tree.start(argument) for argument in arguments]
            + [tree.text.offset(keyword.lineno, keyword.col_offset) for keyword in keywords]
        )
        last = max(tree.end(argument) for argument in rest)
        return [
            Edit(path, start, tree.start(function), ""),
            Edit(path, tree.end(function), first, "("),
            Edit(path, last, end, ")"),
        ]


def _docstring(node: ast.AST) -> ast.stmt | None:
    body = getattr(node, "body", None)
    first = body[0] if body else None
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return first if is_text else None


def _extent(tree: Tree, node: Definition) -> tuple[int, int]:
    """From the first decorator to the end of the body."""
    start = tree.start(node)
    if node.decorator_list:
        start = tree.text.value.rindex("@", 0, tree.start(node.decorator_list[0]))
    return start, tree.end(node)


def _is_same(text: str, old: Definition) -> bool:
    """Whether a half says the same, however it is laid out."""
    indent = " " * old.col_offset
    block = f"if True:\n{indent}{text}\n" if indent else text
    try:
        made = ast.parse(block).body[0]
    except SyntaxError:
        return False
    new = made.body[0] if isinstance(made, ast.If) else made
    return _without_docstring(new) == _without_docstring(old)


def _without_docstring(node: ast.stmt) -> str:
    docstring = _docstring(node)
    body = [ast.dump(part) for part in getattr(node, "body", ()) if part is not docstring]
    head = [ast.dump(part) for part in (node.args, *node.decorator_list)] if isinstance(node, Definition) else []
    returns = ast.dump(node.returns) if isinstance(node, Definition) and node.returns is not None else ""
    return "\n".join((*head, returns, *body))
