"""Decide whether those who are given a function can go on when it changes color, and how they are taught to."""

import ast

from troth.analysis.findings import Edit
from troth.analysis.recolor.plan import Color
from troth.analysis.recolor.problem import Obstacle
from troth.analysis.recolor.project.sites import CallSite, Mention
from troth.analysis.recolor.project.tree import Definition
from troth.analysis.recolor.reach.callbacks import CallbackTaker, asked
from troth.analysis.rules._fixes.maybe_await import both_colors
from troth.analysis.rules._syntax_position import standing
from troth.analysis.semantics import Program
from troth.analysis.semantics.evidence.awaited_parameters import AwaitedParameter
from troth.analysis.source.tree import tree_of

__all__ = ["is_called_plain", "lambda_taken", "mention_taken"]

_DROPS = "would drop a coroutine"
_AWAITS = "may await what it returns"


def mention_taken(program: Program, mention: Mention, to: Color) -> list[Edit] | Obstacle:
    """The edits that let whoever is given the function go on; none where they take it in its new color as well."""
    if mention.taker is None:
        expects = _AWAITS if to == "sync" else _DROPS
        to_whom = f"given to `{mention.to}`" if mention.to else "handed around as a value"
        why = f"the function itself is {to_whom}; its caller {expects}"
        text = ast.unparse(mention.node)
        return Obstacle(mention.path, mention.line, text, why, mention.functions, doubt=_doubt(mention, to))
    answer = _taken(program, mention.taker, to)
    if isinstance(answer, str):
        why = f"the function itself is given to `{mention.taker.text}`; {answer}"
        doubt = _doubt(mention, to) if asked(program, mention.taker)[0] == "unknown" else ""
        return Obstacle(mention.path, mention.line, ast.unparse(mention.node), why, mention.functions, doubt=doubt)
    return answer


def _doubt(mention: Mention, to: Color) -> str:
    has = "has to await what it returns" if to == "async" else "must not await what it returns"
    names = " or ".join(sorted({f"`{function.qualname}`" for function in mention.functions}))
    return f"{names} is {to} now; the code that receives it here {has}"


def is_called_plain(program: Program, mention: Mention) -> bool:
    """Whether a library is given the function that is known to call it as a sync one, such as a thread."""
    return mention.taker is not None and asked(program, mention.taker)[0] == "sync"


def lambda_taken(program: Program, site: CallSite, to: Color) -> list[Edit] | Obstacle:
    """The same for a lambda that gives what the call gives."""
    if site.taker is None:
        why = "a lambda makes its coroutine; the caller of the lambda may await it"
        if to == "async":
            why = "a lambda cannot await, and its callers are unknown"
        return Obstacle(site.path, site.line, site.text, why, site.functions)
    answer = _taken(program, site.taker, to)
    if isinstance(answer, str):
        why = f"it stands in a lambda that is given to `{site.taker.text}`; {answer}"
        return Obstacle(site.path, site.line, site.text, why, site.functions)
    return answer


def _taken(program: Program, taker: CallbackTaker, to: Color) -> list[Edit] | str:
    color, awaiting = asked(program, taker)
    if color in {to, "either"}:
        return []
    if color == "unknown":
        return f"its caller {_AWAITS if to == 'sync' else _DROPS}"
    if to == "async":
        return "it is called there and never awaited"
    if awaiting is None:
        return "what it returns is awaited there"
    position = standing(program, awaiting.path, awaiting.at)
    edits = both_colors(position) if position is not None and not awaiting.path.endswith(".ipynb") else None
    if edits is None:
        return f"what it returns is awaited at {awaiting.path}:{awaiting.at[0]}"
    return [*edits, *_annotation_widened(program, awaiting)]


def _annotation_widened(program: Program, awaiting: AwaitedParameter) -> list[Edit]:
    """`Callable[[], Awaitable[None]]` as `Callable[[], Awaitable[None] | None]`: it may give the result itself now."""
    text = program.text(awaiting.function.module.path)
    tree = tree_of(text.value)
    line, column = awaiting.function.facts.at[:2]
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, Definition) or (node.lineno, node.col_offset) != (line, column):
            continue
        params = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        annotation = next((parameter.annotation for parameter in params if parameter.arg == awaiting.name), None)
        for part in ast.walk(annotation) if annotation is not None else ():
            if isinstance(part, ast.Subscript) and ast.unparse(part.value).rpartition(".")[2] == "Awaitable":
                end = text.offset(part.end_lineno or 0, part.end_col_offset or 0)
                return [Edit(awaiting.function.module.path, end, end, f" | {ast.unparse(part.slice)}")]
    return []
