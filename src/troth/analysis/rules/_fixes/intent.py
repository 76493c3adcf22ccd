"""Read from the words around a call whether it was meant to be awaited there."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from troth.analysis.rules._syntax_position import Standing

__all__ = ["is_about_blocking", "is_for_later", "is_meant_to_be_dropped"]

_COMMENT = re.compile(r"#[^\n]*")
_NOT_AWAITED = re.compile(
    r"(?i)\b(?:not|n't|never|without|no|skip|avoid)\b[^.;]{0,40}\bawait|\bfire[- ]and[- ]forget\b|\bin (?:the )?background\b"
)
_LATER = re.compile(r"(?i)(task|coro|future|awaitable|promise)")
# Not of a blockchain, of what is installed, or of what has changed.
_HELD_UP = r"block(?!chain|quote)|(?<!in)stall|freez|(?<!c)hang|starv"
_BLOCKS = re.compile(rf"(?i){_HELD_UP}")
_WATCHES = re.compile(rf"(?i){_HELD_UP}|slow|monitor|watchdog")  # what shows whether the loop is held up
_ELSEWHERE = re.compile(r"(?i)concurrent|thread|executor|block|\bpool")  # a decorator that runs it off the loop
_HALT = 600  # seconds
_PUTTING = frozenset({"append", "add", "insert", "appendleft", "put", "put_nowait"})


def is_meant_to_be_dropped(here: Standing) -> bool:
    """Whether a comment on the lines of the statement, or right above it, says that nobody is to wait for the call.

    An `if` that awaits the very same call on another branch, and does nothing else there, has chosen between the two.
    """
    if _is_awaited_beside(here):
        return True
    start, end = here.offsets(here.statement)
    text = here.text
    begin = text.rfind("\n", 0, start) + 1
    while begin > 0:
        above = text.rfind("\n", 0, begin - 1) + 1
        if not text[above : begin - 1].strip().startswith("#"):
            break
        begin = above
    stop = text.find("\n", end)
    lines = text[begin : len(text) if stop < 0 else stop]
    return any(_NOT_AWAITED.search(comment[0]) for comment in _COMMENT.finditer(lines))


def _is_awaited_beside(here: Standing) -> bool:
    """`if waits: await send()`, `else: send()`: each branch has that statement alone."""
    call = ast.dump(here.node)
    for node in here.around:
        if isinstance(node, ast.If):
            alone = _alone_on_branches(node)
            if any(statement is here.statement for statement in alone) and any(
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Await)
                and ast.dump(statement.value.value) == call
                for statement in alone
            ):
                return True
    return False


def _alone_on_branches(node: ast.If) -> list[ast.stmt]:
    """The statements that have a branch of the `if`, or of an `elif` of it, to themselves."""
    alone: list[ast.stmt] = []
    bodies = [node.body, node.orelse]
    while bodies:
        body = bodies.pop()
        if len(body) != 1:
            continue
        (statement,) = body
        if isinstance(statement, ast.If):
            bodies += [statement.body, statement.orelse]
        else:
            alone.append(statement)
    return alone


def is_for_later(here: Standing, callee: str) -> bool:
    """Whether a variable takes it that is named for what is awaited later, or is put into a container.

    `task = send()` says that the result is a task to be; `task = load_task()` says what kind of thing is loaded.
    """
    statement = here.statement
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    if not isinstance(target, ast.Name) or getattr(statement, "value", None) is not here.node:
        return False
    word = _LATER.search(target.id)
    if word is not None and word[1].lower() not in callee.lower():
        return True
    return here.function is not None and target.id in _put_for_later(here.function)


@lru_cache(maxsize=8)  # a function may have ten thousand findings
def _put_for_later(function: ast.AST) -> frozenset[str]:
    """The variables that a function puts into containers that are named for what is awaited later."""
    return frozenset(
        arg.id
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _PUTTING
        and isinstance(node.func.value, ast.Name)
        and _LATER.search(node.func.value.id) is not None
        for arg in node.args
        if isinstance(arg, ast.Name)
    )


def is_about_blocking(here: Standing) -> bool:
    """Whether a name, a docstring or a decorator around the call says that it is to hold up its thread, or one apart.

    `with LoopMonitor(slow=0.5):` around it says so, too: what is watched is shown what it looks for; and `async with
    threadpool():` may run its body in a thread. Where the other branch of an `if` waits without blocking, somebody has
    chosen between the two; and nobody serves others with a pause of ten minutes.
    """
    enclosing = [
        node for node in here.around if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    entered = [
        (isinstance(node, ast.AsyncWith), ast.unparse(item.context_expr))
        for node in here.around
        if isinstance(node, ast.With | ast.AsyncWith)
        for item in node.items
    ]
    decorators = [ast.unparse(decorator) for node in enclosing for decorator in node.decorator_list]
    says_so = (here.function is not None and ast.get_docstring(here.function)) or ""
    return (
        any(_BLOCKS.search(node.name) for node in enclosing)
        or _BLOCKS.search(says_so) is not None
        or any(map(_ELSEWHERE.search, decorators))
        or any(_WATCHES.search(manager) or (waits and _ELSEWHERE.search(manager)) for waits, manager in entered)
        or _is_chosen(here)
        or _is_halt(here)
    )


def _is_halt(here: Standing) -> bool:
    """Whether it is a pause of many minutes: in a loop that serves others, only somebody who looks on wants that."""
    arguments = here.node.args if isinstance(here.node, ast.Call) else []
    return any(
        isinstance(argument, ast.Constant) and isinstance(argument.value, int | float) and argument.value >= _HALT
        for argument in arguments
    )


def _is_chosen(here: Standing) -> bool:
    """Whether the call stands in one branch of an `if`, and `await asyncio.sleep(…)` in the other."""
    for node in here.around:
        if isinstance(node, ast.If):
            bodies = (node.body, node.orelse)
            inside = [any(here.node in ast.walk(statement) for statement in body) for body in bodies]
            others = bodies[1 - inside.index(True)] if any(inside) else []
            if any(_waits(part) for statement in others for part in ast.walk(statement)):
                return True
    return False


def _waits(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Await)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) in {"asyncio.sleep", "anyio.sleep", "trio.sleep", "sleep"}
    )
