"""Rewrite one call, and one definition, for a function that becomes async."""

import ast
import re
from keyword import iskeyword

from troth.analysis.findings import Edit
from troth.analysis.recolor.problem import Obstacle
from troth.analysis.recolor.project.entries import ASYNC_NAMES
from troth.analysis.recolor.project.sites import CallSite, Mention
from troth.analysis.recolor.project.tree import Definition, Tree

__all__ = [
    "as_list",
    "definition_made_async",
    "import_added",
    "mention_run",
    "onto_loop",
    "out_of_thread",
    "property_made_method",
    "site_awaited",
    "site_run",
]

# What takes a list as gladly as a generator, and reads it to its end: `any` and `all` stop in between.
_READERS = frozenset({"dict", "frozenset", "list", "max", "min", "set", "sorted", "sum", "tuple", "join"})
# What runs an async function, and calls it by itself.
_CALLING_RUNNERS = frozenset({"trio.run", "anyio.run"})
# Those that take the function and its arguments, and give what it gives.
_THREADS = frozenset({
    "asyncio.to_thread", "to_thread", "anyio.to_thread.run_sync", "to_thread.run_sync", "trio.to_thread.run_sync",
    "run_in_threadpool",
})  # fmt: skip


def site_awaited(site: CallSite) -> list[Edit] | Obstacle:
    """The edits that await the call in place."""
    tree, node = site.tree, site.node
    before: ast.AST | None = None
    inner: ast.AST = node
    outer = tree.parent(node)
    lists: list[Edit] = []
    while outer is not None and not isinstance(outer, ast.stmt | ast.Lambda):
        is_first = isinstance(inner, ast.comprehension) and before is inner.iter  # worked out before it is made
        if isinstance(outer, ast.GeneratorExp) and not (inner is outer.generators[0] and is_first):
            brackets = as_list(tree, outer)
            if brackets is None:
                why = "a generator expression with an `await` in it becomes asynchronous"
                return Obstacle(site.path, site.line, site.text, why)
            lists += brackets
        before, inner, outer = inner, outer, tree.parent(outer)
    awaited = _around(site, "await ", _call_of(site), needs_parentheses=True)
    return awaited if isinstance(awaited, Obstacle) else [*lists, *awaited]


def as_list(tree: Tree, generator: ast.GeneratorExp) -> list[Edit] | None:
    """`sum(f(x) for x in xs)` as `sum([f(x) for x in xs])`; None where it may be read bit by bit, or not to its end."""
    reader = tree.parent(generator)
    if not isinstance(reader, ast.Call) or reader.keywords or len(reader.args) != 1:
        return None
    name = reader.func.attr if isinstance(reader.func, ast.Attribute) else getattr(reader.func, "id", "")
    start, end = tree.start(generator), tree.end(generator)
    text = tree.text.value
    if name not in _READERS or (text[start], text[end - 1]) != ("(", ")"):
        return None
    edits = [tree.view.edit(start + 1, start + 1, "["), tree.view.edit(end - 1, end - 1, "]")]
    return [edit for edit in edits if edit is not None] if all(edits) else None


def site_run(site: CallSite, runner: str) -> list[Edit] | Obstacle:
    """The edits that run the call to its end at a boundary."""
    if runner in _CALLING_RUNNERS:
        return _given_to(site, runner)
    return _around(site, f"{runner}(", f"{_call_of(site)})", needs_parentheses=False)


def _given_to(site: CallSite, runner: str) -> list[Edit] | Obstacle:
    """`trio.run(f, 1)`: it takes the function and what is given to it by place, not the coroutine."""
    tree, node = site.tree, site.node
    if not isinstance(node, ast.Call):
        return _around(site, f"{runner}(", ")", needs_parentheses=False)
    if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
        return _around(site, f"{runner}(lambda: ", ")", needs_parentheses=False)
    edits = _around(site, f"{runner}(", "", needs_parentheses=False)
    text, end = tree.text.value, tree.end(node.func)
    bracket = text.find("(", end)
    comma = tree.view.edit(end, bracket + 1, ", " if node.args else "")
    if isinstance(edits, Obstacle) or comma is None or text[end:bracket].strip():
        return Obstacle(site.path, site.line, site.text, "the call cannot be found in the text around it")
    return [*edits, comma]


def _call_of(site: CallSite) -> str:
    """What calls a method that was a property."""
    return "" if isinstance(site.node, ast.Call) else "()"


def out_of_thread(mention: Mention) -> list[Edit] | None:
    """`await asyncio.to_thread(x.f, 1)` as `await x.f(1)`; None where the function is not handed to a thread so.

    `work = loop.run_in_executor(None, x.f, 1)`, which is awaited later, becomes `work = loop.create_task(x.f(1))`.
    """
    tree, taker = mention.tree, mention.taker
    if taker is None:
        return None
    call = taker.node
    is_awaited = isinstance(tree.parent(call), ast.Await)
    if not is_awaited and not isinstance(tree.around(call), ast.AsyncFunctionDef):
        return None
    is_thread = ast.unparse(call.func) in _THREADS and taker.slot == "0"
    is_executor = isinstance(call.func, ast.Attribute) and call.func.attr == "run_in_executor" and taker.slot == "1"
    place = int(taker.slot) if is_executor or (is_thread and is_awaited) else -1
    if place < 0 or call.args[place] is not mention.node:
        return None
    start, end = tree.start(mention.node), tree.end(mention.node)
    later_arguments = [*call.args[place + 1 :], *(keyword.value for keyword in call.keywords)]
    text = tree.text.value
    following = re.match(r"\s*,[ \t]*" if later_arguments else r"\s*,?", text[end:])
    if following is None:
        return None
    after = end + following.end()
    edits = [tree.view.edit(tree.start(call), start, ""), tree.view.edit(end, after, "(")]
    if not is_awaited and isinstance(call.func, ast.Attribute):
        begin = tree.end(call.func)
        edits[0] = tree.view.edit(begin - len("run_in_executor"), start, "create_task(")
        edits.append(tree.view.edit(tree.end(call), tree.end(call), ")"))
    return None if any(edit is None for edit in edits) else [edit for edit in edits if edit is not None]


def onto_loop(mention: Mention) -> list[Edit] | None:
    """`loop.call_soon_threadsafe(x.f, 1)` as `asyncio.run_coroutine_threadsafe(x.f(1), loop)`; None elsewhere.

    `from_thread.run_sync(x.f, 1)` of anyio and trio becomes `from_thread.run(x.f, 1)`.
    """
    tree, taker = mention.tree, mention.taker
    if taker is None or taker.slot != "0" or not isinstance(taker.node.func, ast.Attribute):
        return None
    call, callee = taker.node, taker.node.func
    if callee.attr == "run_sync" and ast.unparse(callee.value).rpartition(".")[2] == "from_thread":
        end = tree.end(callee)
        renamed = tree.view.edit(end - len("run_sync"), end, "run")
        return None if renamed is None else [renamed]
    is_asyncio = any(
        isinstance(statement, ast.Import)
        and any((alias.asname or alias.name) == "asyncio" for alias in statement.names)
        for statement in tree.module.body
    )
    if callee.attr != "call_soon_threadsafe" or call.keywords or not is_asyncio or call.args[0] is not mention.node:
        return None
    start, end = tree.start(call), tree.end(call)
    if "#" in tree.text.value[start:end]:
        return None
    arguments = ", ".join(tree.source(argument) for argument in call.args[1:])
    text = f"asyncio.run_coroutine_threadsafe({tree.source(call.args[0])}({arguments}), {tree.source(callee.value)})"
    edit = tree.view.edit(start, end, text)
    return None if edit is None else [edit]


def mention_run(mention: Mention, runner: str) -> list[Edit] | None:
    """`x.f` as `lambda *args, **kwargs: asyncio.run(x.f(*args, **kwargs))`, for whoever calls it and awaits nothing."""
    tree, node = mention.tree, mention.node
    parent = tree.parent(node)
    is_alone = isinstance(parent, ast.keyword | ast.Assign | ast.AnnAssign | ast.Return | ast.List | ast.Tuple)
    is_alone |= isinstance(parent, ast.Call) and node in parent.args
    is_alone |= isinstance(parent, ast.Dict) and node in parent.values
    is_generator = any(function.is_generator for function in mention.functions)
    if not is_alone or is_generator or runner in _CALLING_RUNNERS or not isinstance(node, ast.Name | ast.Attribute):
        return None
    start, end = tree.start(node), tree.end(node)
    edits = [
        tree.view.edit(start, start, f"lambda *args, **kwargs: {runner}("),
        tree.view.edit(end, end, "(*args, **kwargs))"),
    ]
    return None if any(edit is None for edit in edits) else [edit for edit in edits if edit is not None]


def _around(site: CallSite, before: str, after: str, *, needs_parentheses: bool) -> list[Edit] | Obstacle:
    tree, node = site.tree, site.node
    start, end = tree.start(node), tree.end(node)
    if not _is_there(tree, node, start, end):
        return Obstacle(
            site.path, site.line, site.text, "the call cannot be found in the text around it (an f-string?)"
        )
    parent = tree.parent(node)
    trails = (isinstance(parent, ast.Attribute | ast.Subscript) and parent.value is node) or (
        isinstance(parent, ast.Call) and parent.func is node
    )
    text = tree.text.value
    wrapped = text[start - 1 : start] == "(" and text[end : end + 1] == ")" and not _is_call_bracket(text, start - 1)
    if needs_parentheses and trails and not wrapped:
        before, after = f"({before}", f"{after})"
    edits = [tree.view.edit(start, start, before)]
    if after:
        edits.append(tree.view.edit(end, end, after))
    if any(edit is None for edit in edits):
        return Obstacle(site.path, site.line, site.text, "the place cannot be found in the file")
    return [edit for edit in edits if edit is not None]


def _is_call_bracket(text: str, at: int) -> bool:
    """Whether the bracket at `at` belongs to a call, not to an expression in parentheses (`return(x)`)."""
    word = re.search(r"\w+$", text[max(0, at - 40) : at])
    return text[at - 1 : at] in {")", "]"} if word is None else not iskeyword(word[0])


def _is_there(tree: Tree, node: ast.expr, start: int, end: int) -> bool:
    from troth.analysis.source.tree import tree_of

    parsed = tree_of(f"({tree.text.value[start:end]}\n)")
    body = parsed.body if parsed is not None else []
    return len(body) == 1 and isinstance(body[0], ast.Expr) and ast.unparse(body[0].value) == ast.unparse(node)


def property_made_method(tree: Tree, node: Definition) -> list[Edit]:
    """The edit that drops the line with `@property`."""
    edits = []
    for decorator in node.decorator_list:
        if ast.unparse(decorator).rpartition(".")[2] == "property":
            text = tree.text.value
            end = text.find("\n", tree.end(decorator))
            edits.append(tree.view.edit(tree.text.offset(decorator.lineno, 0), len(text) if end < 0 else end + 1, ""))
    return [edit for edit in edits if edit is not None]


def definition_made_async(tree: Tree, node: Definition) -> list[Edit]:
    """The edits that make a `def` an `async def`; what `with` calls gets the name that `async with` calls."""
    if isinstance(node, ast.AsyncFunctionDef):
        return []
    start = tree.start(node)
    edits = [tree.view.edit(start, start, "async ")]
    if node.name in ASYNC_NAMES:
        name = tree.text.value.index(node.name, start)
        edits.append(tree.view.edit(name, name + len(node.name), ASYNC_NAMES[node.name]))
    return [edit for edit in edits if edit is not None]


def import_added(tree: Tree, statement: str, name: str) -> list[Edit]:
    """The edit that imports `name` by `statement`, below what has to stand first; none where it is bound already."""
    body = tree.module.body
    after: ast.stmt | None = None
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom) and any(
            (alias.asname or alias.name) == name for alias in node.names
        ):
            return []
        if node is body[0] and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            after = node
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            after = node
    line = 1 if after is None else (after.end_lineno or after.lineno) + 1
    start = tree.text.offset(line, 0) if line > 1 or not tree.text.value.startswith("#!") else tree.text.offset(2, 0)
    gap = "" if after is None else "\n"
    edit = tree.view.edit(start, start, f"{gap}{statement}\n")
    return [] if edit is None else [edit]
