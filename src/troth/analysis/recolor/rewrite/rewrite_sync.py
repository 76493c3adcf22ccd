"""Rewrite one call, and one definition, for a function that becomes plain."""

import ast
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from troth.analysis.findings import Edit
from troth.analysis.recolor.problem import Obstacle
from troth.analysis.recolor.project.sites import CallSite
from troth.analysis.recolor.project.tree import Definition, Tree, own_nodes
from troth.analysis.recolor.rewrite.plain_generators import site_unlooped
from troth.analysis.recolor.rewrite.stored_coroutines import held_by, kept_made_plain
from troth.analysis.semantics.symbols import Function
from troth.analysis.source.tree import tree_of

__all__ = ["PassThrough", "Rewritten", "awaits_dropped", "definition_made_plain", "site_made_plain"]


class PassThrough(NamedTuple):
    """A sync function that returns the coroutine: it gives what the call gives, so its own calls change as well."""

    function: Function


# The edits, and the waiting that is gone with them; or the function whose calls change; or why nothing can be done.
Rewritten = tuple[list[Edit], list[ast.AST]] | PassThrough | Obstacle

_ASYNC = re.compile(r"async([ \t]|\\\r?\n)+")


def site_made_plain(site: CallSite, ours: Collection[ast.Call]) -> Rewritten:
    """The edits at a call whose function becomes plain. `ours` are all calls that do, this one among them."""
    tree, node, use = site.tree, site.call, site.use
    outer = use.outer
    if all(function.is_async and function.is_generator for function in site.functions):
        unlooped = site_unlooped(site, ours)
        return _problem(site, unlooped) if isinstance(unlooped, str) else unlooped
    if use.kind == "awaited" and isinstance(outer, ast.Await):
        return awaits_dropped(tree, [outer], site)
    if use.kind == "run" and isinstance(outer, ast.Call):
        return _unwrapped(site, outer)
    if use.kind == "timed" and isinstance(outer, ast.Call):
        waiting = tree.parent(outer)
        if isinstance(waiting, ast.Await) and outer.args[:1] == [node]:
            return _unwrapped(site, outer, waiting)
        return _problem(site, f"`{use.by}` needs something to wait for, and its value is not awaited here")
    if use.kind == "gathered" and isinstance(outer, ast.Call):
        return _ungathered(site, outer, ours)
    if use.kind == "other thread" and isinstance(outer, ast.Call):
        return _on_its_thread(site, outer)
    if use.kind == "spawned" and isinstance(outer, ast.Call):
        return _unspawned(site, outer, ours)
    if use.kind in {"kept", "value"} or (use.kind == "passed" and use.by.endswith(".append")):
        held = held_by(tree, node)
        if held is not None:
            return kept_made_plain(site, held, ours, is_task=False)
        if use.kind == "kept":
            return _stored(site)
    if use.kind == "passed":
        return _problem(site, f"its coroutine is given to `{use.by}`, which may await it")
    if use.kind == "returned":
        return _passed_on(site, ours)
    if use.kind == "lambda":
        return _problem(site, "a lambda makes its coroutine; the caller of the lambda may await it")
    if (
        use.kind == "chosen"
        and isinstance(outer, ast.Await)
        and all(choice in ours for choice in _choices(outer.value))
    ):
        return awaits_dropped(tree, [outer], site)
    if use.kind in {"chosen", "entered"}:
        return _problem(site, f"it is {use.words}; what else is there may still have to be awaited")
    return [], []


def _passed_on(site: CallSite, ours: Collection[ast.Call]) -> Rewritten:
    """A sync function whose every `return` gives the coroutine of such a call."""
    around = site.tree.around(site.node)
    if isinstance(around, ast.AsyncFunctionDef):
        return _problem(site, f"its coroutine is returned by `async def {around.name}`, so it is awaited twice")
    if not isinstance(around, ast.FunctionDef) or site.caller is None:
        return _problem(site, "its coroutine is returned by the code around it, and awaited elsewhere")
    nodes = list(own_nodes(around))
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes):
        return _problem(site, f"its coroutine is given by the generator `{around.name}`, and is awaited elsewhere")
    if around.decorator_list and not _is_static(around):
        return _problem(site, f"its coroutine is returned by `{around.name}`, whose decorator may ask for it")
    returned = [node.value for node in nodes if isinstance(node, ast.Return) and node.value is not None]
    foreign = [value for value in returned if not all(part in ours for part in _choices(value))]
    if foreign:
        why = (
            f"its coroutine is returned by `{around.name}`, whose callers await it, and which returns other things too"
        )
        return _problem(site, f"{why} (line {foreign[0].lineno})")
    return PassThrough(site.caller)


def _is_static(node: ast.FunctionDef) -> bool:
    return all(ast.unparse(decorator) in {"staticmethod", "classmethod"} for decorator in node.decorator_list)


def _choices(node: ast.expr) -> list[ast.expr]:
    """What an expression may give: each side of a choice."""
    if isinstance(node, ast.IfExp):
        return [*_choices(node.body), *_choices(node.orelse)]
    if isinstance(node, ast.BoolOp):
        return [choice for value in node.values for choice in _choices(value)]
    return [node]


def _unspawned(site: CallSite, outer: ast.Call, ours: Collection[ast.Call]) -> Rewritten:
    """A task of the call: it is done on the spot instead, and whoever waits for the task has its result already."""
    tree = site.tree
    waiting = tree.parent(outer)
    if outer.args[:1] != [site.node] or len(outer.args) != 1:
        return _problem(
            site, f"`{site.use.by}` needs a coroutine; call it in place, or start something else that waits"
        )
    if isinstance(waiting, ast.Await):
        return _unwrapped(site, outer, waiting)
    if isinstance(waiting, ast.Expr):
        return _unwrapped(site, outer)
    held = held_by(tree, outer)
    if held is None:
        return _problem(site, f"the task that `{site.use.by}` makes of it is kept, and may be awaited or cancelled")
    stored = kept_made_plain(site, held, ours, is_task=True)
    unwrapped = _unwrapped(site, outer)
    if isinstance(stored, Obstacle) or not isinstance(unwrapped, tuple) or isinstance(unwrapped, PassThrough):
        return stored if isinstance(stored, Obstacle) else unwrapped
    return [*unwrapped[0], *stored[0]], stored[1]


def _on_its_thread(site: CallSite, outer: ast.Call) -> Rewritten:
    """`asyncio.run_coroutine_threadsafe(x.f(e), loop)` as `loop.call_soon_threadsafe(x.f, e)`, on the loop's thread.

    That gives no result, so somebody has to decide where one is waited for.
    """
    tree, node = site.tree, site.call
    loops = [*outer.args[1:], *(keyword.value for keyword in outer.keywords if keyword.arg == "loop")]
    is_written_so = ast.unparse(outer.func).rpartition(".")[2] == "run_coroutine_threadsafe"
    if not is_written_so or outer.args[:1] != [node] or len(loops) != 1 or len(outer.args) + len(outer.keywords) != 2:
        return _problem(
            site, f"`{site.use.by}` runs it on the thread of another loop; called in place, it would run here"
        )
    if not isinstance(tree.parent(outer), ast.Expr):
        return _problem(site, f"`{site.use.by}` runs it on the thread of another loop, and its result is awaited")
    if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
        return _problem(site, "`call_soon_threadsafe` takes no keywords; give it a `functools.partial` of the function")
    text = tree.text.value
    start, end = tree.start(outer), tree.end(outer)
    if "#" in text[start:end]:
        return _problem(site, f"a comment stands inside `{site.use.by}(…)`")
    loop = tree.source(loops[0])
    if not isinstance(loops[0], ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        loop = f"({loop})"
    arguments = ", ".join(tree.source(part) for part in (node.func, *node.args))
    return _all([tree.view.edit(start, end, f"{loop}.call_soon_threadsafe({arguments})")], [], site)


def _stored(site: CallSite) -> Rewritten:
    """A coroutine that goes elsewhere than into one variable."""
    statement = site.use.outer
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    around = site.tree.around(site.node)
    if isinstance(around, ast.AsyncFunctionDef) or any(
        not isinstance(target, ast.Name | ast.Tuple | ast.Attribute) for target in targets
    ):
        return _problem(site, "its coroutine is stored, and may be awaited later")
    return [], []


def awaits_dropped(tree: Tree, awaits: Sequence[ast.Await], site: CallSite) -> Rewritten:
    """The edits that take away each `await`, and the parentheses that only it needed."""
    edits: list[Edit | None] = []
    for waiting in awaits:
        start, inner = tree.start(waiting), tree.start(waiting.value)
        text = tree.text.value
        between = text[start:inner]
        # A place inside an f-string is not always told rightly before Python 3.12: look before cutting.
        if not re.fullmatch(r"await(?:\s|\\\r?\n|\()*", between):
            edits_in_string = _in_string(tree, waiting)
            if edits_in_string is None:
                return _problem(site, "the `await` cannot be found in the text around it, or a comment follows it")
            edits.append(tree.view.edit(*edits_in_string, ""))
            continue
        opened = between.count("(")
        cut = start + len(between) if not opened else text.index("(", start)
        end = tree.end(waiting)
        if not opened and _is_only_for_await(tree, waiting):
            edits.append(tree.view.edit(start - 1, cut, ""))
            edits.append(tree.view.edit(end, end + 1, ""))
        else:
            edits.append(tree.view.edit(start, cut, ""))
    return _all(edits, list(awaits), site)


def _is_only_for_await(tree: Tree, node: ast.Await) -> bool:
    """Whether the parentheses around `(await x.f()).y` are there for the await alone and can go with it."""
    text, start, end = tree.text.value, tree.start(node), tree.end(node)
    parent = tree.parent(node)
    trails = (isinstance(parent, ast.Attribute | ast.Subscript) and parent.value is node) or (
        isinstance(parent, ast.Call) and parent.func is node
    )
    if not trails or start == 0 or text[start - 1] != "(" or text[end : end + 1] != ")":
        return False
    return (
        not (start > 1 and (text[start - 2].isalnum() or text[start - 2] in "_)]\"'")) and tree.view.kind != "notebook"
    )


def _in_string(tree: Tree, node: ast.Await) -> tuple[int, int] | None:
    outer: ast.AST | None = node
    while outer is not None and not isinstance(outer, ast.JoinedStr):
        outer = tree.parent(outer)
    if outer is None:
        return None
    start, end = tree.start(outer), tree.end(outer)
    callee = ast.unparse(node.value.func) if isinstance(node.value, ast.Call) else ast.unparse(node.value)
    matches = list(re.finditer(rf"\bawait\s+(?={re.escape(callee)}\s*\()", tree.text.value[start:end]))
    return (start + matches[0].start(), start + matches[0].end()) if len(matches) == 1 else None


def _unwrapped(site: CallSite, outer: ast.Call, waiting: ast.Await | None = None) -> Rewritten:
    """`asyncio.run(x.f())`, `await wait_for(x.f(), 5)` become `x.f()`."""
    tree, node = site.tree, site.call
    if outer.args[:1] != [node]:
        return _problem(site, f"it is not the first argument of `{site.use.by}`")
    whole = outer if waiting is None else waiting
    start, end = tree.start(whole), tree.end(whole)
    inner, inner_end = tree.start(node), tree.end(node)
    text = tree.text.value
    if "#" in text[start:inner] or "#" in text[inner_end:end]:
        return _problem(site, f"a comment stands inside `{site.use.by}(…)`")
    stays_whole = tree_of(text[inner:inner_end]) is not None
    opening, closing = ("", "") if stays_whole else ("(", ")")
    edits = [tree.view.edit(start, inner, opening), tree.view.edit(inner_end, end, closing)]
    return _all(edits, [] if waiting is None else [waiting], site)


def _ungathered(site: CallSite, outer: ast.Call, ours: Collection[ast.Call]) -> Rewritten:
    """`await gather(a(), b())` becomes `[a(), b()]`, one after the other, if all of it becomes plain."""
    tree = site.tree
    waiting = tree.parent(outer)
    if not isinstance(waiting, ast.Await) or outer.keywords:
        return _problem(site, f"`{site.use.by}` is not awaited on the spot, or has options")
    text = tree.text.value
    opening = text.index("(", tree.end(outer.func))
    if len(outer.args) == 1 and isinstance(outer.args[0], ast.Starred):
        inside = outer.args[0].value
        if isinstance(inside, ast.ListComp | ast.GeneratorExp):
            if inside.elt not in ours or any(generator.is_async for generator in inside.generators):
                return _problem(site, f"`{site.use.by}` also takes what still has to be awaited")
            start, end = tree.start(inside), tree.end(inside)
            edits = [
                tree.view.edit(tree.start(waiting), start + 1, "["),
                tree.view.edit(end - 1, tree.end(waiting), "]"),
            ]
            return _all(edits, [waiting], site)
        items = inside.elts if isinstance(inside, ast.List | ast.Tuple) else []
        if items and all(item in ours for item in items) and text[tree.start(inside)] in "[(":
            edits = [
                tree.view.edit(tree.start(waiting), tree.start(inside) + 1, "["),
                tree.view.edit(tree.end(inside) - 1, tree.end(waiting), "]"),
            ]
            return _all(edits, [waiting], site)
        return _problem(site, f"what `{site.use.by}` takes is put together elsewhere")
    if not all(argument in ours for argument in outer.args):
        return _problem(site, f"`{site.use.by}` also takes what still has to be awaited")
    end = tree.end(waiting)
    edits = [tree.view.edit(tree.start(waiting), opening + 1, "["), tree.view.edit(end - 1, end, "]")]
    return _all(edits, [waiting], site)


def definition_made_plain(tree: Tree, node: Definition) -> list[Edit]:
    """The edits that make `async def` a `def`; an abstract `-> Awaitable[T]` becomes `-> T`."""
    edits: list[Edit | None] = []
    if isinstance(node, ast.AsyncFunctionDef):
        start = tree.start(node)
        match = _ASYNC.match(tree.text.value, start)
        if match is not None:
            edits.append(tree.view.edit(start, match.end(), ""))
    elif isinstance(node.returns, ast.Subscript) and ast.unparse(node.returns.value).rpartition(".")[2] in {
        "Awaitable",
        "Coroutine",
    }:
        inside = node.returns.slice
        result = inside.elts[-1] if isinstance(inside, ast.Tuple) else inside
        edits.append(tree.view.edit(tree.start(node.returns), tree.end(node.returns), tree.source(result)))
    return [edit for edit in edits if edit is not None]


def _problem(site: CallSite, why: str) -> Obstacle:
    return Obstacle(site.path, site.line, site.text, why, site.functions)


def _all(edits: Sequence[Edit | None], gone: list[ast.AST], site: CallSite) -> Rewritten:
    if any(edit is None for edit in edits):
        return _problem(site, "the change would span lines that do not follow each other in the file")
    return [edit for edit in edits if edit is not None], gone
