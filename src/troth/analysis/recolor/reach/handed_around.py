"""Find which functions are given to somebody by name: by what the names stand for, not by the words."""

from collections.abc import Callable, Collection

from troth.analysis.recolor.decisions import Decisions
from troth.analysis.recolor.plan import Color
from troth.analysis.recolor.problem import Obstacle
from troth.analysis.recolor.project.sites import find_sites
from troth.analysis.recolor.project.workspace import RecolorWorkspace
from troth.analysis.recolor.reach.callback_takers import mention_taken
from troth.analysis.recolor.rewrite.rewrite_async import onto_loop, out_of_thread
from troth.analysis.semantics.symbols import Function

__all__ = ["handed_around"]


def handed_around(
    workspace: RecolorWorkspace,
    functions: Collection[Function],
    to: Color,
    within: Callable[[str], bool],
    decisions: Decisions,
) -> dict[Function, str]:
    """Those of `functions` that are given to somebody by name who asks for the color they have, and where.

    A method of that name of something unknown may be one of them.
    """
    reasons: dict[Function, str] = {}
    for mention in find_sites(workspace, functions).mentions:
        if not within(mention.path) or decisions.about(mention.caller, mention.path, mention.line) is not None:
            continue
        at = f"{mention.path}:{mention.line}"
        if not mention.is_known:
            namesakes = (
                function for function in functions if function.name == mention.name and function.owner is not None
            )
            for namesake in namesakes:
                reasons.setdefault(namesake, f"it may be what `{mention.to}` is given by name at {at}")
        elif to == "sync" or not (out_of_thread(mention) or onto_loop(mention)):
            answer = mention_taken(workspace.program, mention, to)
            if isinstance(answer, Obstacle):
                for function in mention.functions:
                    reasons.setdefault(function, f"{answer.why} ({at})")
    return reasons
