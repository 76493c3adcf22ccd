"""Change the color of a function with its callers, as edits of which some are to be confirmed."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from troth.analysis.edits.apply import compatible
from troth.analysis.findings import Edit, Finding
from troth.analysis.recolor.check_plan import not_in, rewritten, split_blocking
from troth.analysis.recolor.plan import Plan
from troth.analysis.recolor.project.sites import CallSite
from troth.analysis.recolor.recolor import Wish, plan_recolor
from troth.analysis.recolor.rewrite.rewrite_async import site_awaited
from troth.lsp.features.actions import Outcome
from troth.lsp.protocol.workspace_edit import Group, GroupedEdit
from troth.lsp.sessions.checker import FolderChecker, Look
from troth.lsp.sessions.places import Places

__all__ = ["make_async", "recolor"]

_MOST = 5  # problems that are named in a message


def make_async(job: Mapping[str, Any], checker: FolderChecker, places: Places) -> Outcome:
    """Recolor the function, and await what it lost."""
    return _recolored(f"{job['path']}:{job['symbol']}", "async", checker, places, picked=(job["path"], job["symbol"]))


def recolor(job: Mapping[str, Any], checker: FolderChecker, places: Places) -> Outcome:
    """Change the color of a function or of a class, with every call."""
    return _recolored(job["target"], job["to"], checker, places)


def _recolored(
    target: str, to: str, checker: FolderChecker, places: Places, picked: tuple[str, str] | None = None
) -> Outcome:
    """The edits of a recolor, with an `await` at what was lost in functions that become async.

    In the function that was `picked`, likely repairs are taken as well: its loss is what the user wants to repair.
    """
    look = places.look
    plan = _plan(places, target, to)
    if problem := _unclear(plan):
        return Outcome(problem=problem)
    after = _after(plan.edits, look, checker)
    lost = _lost(plan, after, picked) if to == "async" else []
    awaits = [
        moved
        for fix in compatible([finding.fix for finding in lost if finding.fix is not None])
        for edit in fix.edits
        if (moved := _moved_back(edit, plan.edits)) is not None
    ]
    if awaits:
        after = _after([*plan.edits, *awaits], look, checker)
    fresh, blocking = split_blocking(plan, not_in(look.report.findings, after))
    if fresh:
        shown = "\n".join(
            f"{finding.span.path}:{finding.span.line} {finding.code} {finding.message}" for finding in fresh[:_MOST]
        )
        return Outcome(problem=f"After the change, Troth would report new findings:\n{shown}")
    group = Group("Await what was lost", "These calls will now run.", is_to_confirm=True)
    pieces = places.in_groups({group: awaits}) + _of_plan(places, plan, _blocked(blocking))
    awaited = " What was lost there is awaited, and will now run." if awaits else ""
    return Outcome(pieces, f"{_summary(plan)}{awaited}{_blocked(blocking)}")


def _after(edits: Sequence[Edit], look: Look, checker: FolderChecker) -> tuple[Finding, ...]:
    """What would be found after these edits."""
    changes = rewritten(look.root, edits, look.overlay)
    return checker.try_out(look, {change.path: change.after for change in changes})


def _lost(plan: Plan, after: Sequence[Finding], picked: tuple[str, str] | None) -> list[Finding]:
    """The findings after a change of color whose repair is an `await` in a function that is async now."""
    recolored = {(function.module.path, function.qualname) for function in (*plan.definitions, *plan.followers)}
    return [
        finding
        for finding in after
        if finding.fix is not None
        and finding.code.startswith(("TR1", "TR2"))
        and (
            (finding.span.path, finding.symbol) == picked
            or (finding.fix.safety == "sure" and (finding.span.path, finding.symbol) in recolored)
        )
    ]


def _blocked(blocking: Sequence[Finding]) -> str:
    """What holds up the loop from now on, in a sentence."""
    if not blocking:
        return ""
    count, first = len(blocking), min(blocking, key=lambda finding: finding.span)
    place = f"`{first.subject}` in line {first.span.line} of {first.span.path}"
    return f" {count} blocking call{'' if count == 1 else 's'} in what is async now, such as {place}."


def _plan(places: Places, target: str, to: str) -> Plan:
    look = places.look
    project = look.prepared.scope.project
    color = "async" if to == "async" else "sync"
    wish = Wish((target,), cascade="all" if to == "async" else "none")
    plan = plan_recolor(project, wish, color, look.overlay)  # type: ignore[arg-type]  # one of the two
    tops = {site.tree.view.name for site in plan.sites if _is_at_import(site)}
    if to == "async" and tops:  # there, async ends: the module itself runs it
        wish = Wish((target,), cascade="all", boundary=tuple(sorted(tops)))
        plan = plan_recolor(project, wish, "async", look.overlay)
    return plan


def _is_at_import(site: CallSite) -> bool:
    return site.caller is None and site.tree.view.kind == "code" and site.tree.around(site.node) is site.tree.module


def _unclear(plan: Plan) -> str:
    """What somebody has to decide first."""
    open_questions = [
        *(f"{refusal.function.qualname} {refusal.why}" for refusal in plan.unable),
        *(f"{obstacle.path}:{obstacle.line} {obstacle.text}: {obstacle.why}" for obstacle in plan.problems),
    ]
    if not open_questions:
        return "" if plan.edits else "There is nothing to change."
    more = f"\nand {len(open_questions) - _MOST} more" if len(open_questions) > _MOST else ""
    shown = "\n".join(open_questions[:_MOST])
    return f"`troth recolor {plan.target} --to {plan.to} --plan` names what has to be decided first:\n{shown}{more}"


def _summary(plan: Plan) -> str:
    files = len({edit.path for edit in plan.edits})
    count = len(plan.definitions) + len(plan.followers)
    functions = "1 function becomes" if count == 1 else f"{count} functions become"
    return f"{functions} {plan.to}; {len(plan.edits)} edits in {files} file{'' if files == 1 else 's'}."


def _of_plan(places: Places, plan: Plan, more: str = "") -> tuple[GroupedEdit, ...]:
    name = plan.target.partition(":")[2]
    certain = Group(f"Make `{name}` {plan.to}", f"Definitions and calls that are certain.{more}")
    text = Group("Text that shows the call", "Docstrings, pages and strings; review each of them.", is_to_confirm=True)
    maybe = Group("Calls of a namesake", "It is unclear whether this is the same function.", is_to_confirm=True)
    in_text = {
        text_edit for path in {edit.path for edit in plan.edits} for text_edit in _in_strings(path, plan.edits, places)
    }
    namesakes: list[Edit] = []
    for site in plan.unknown if plan.to == "async" else ():
        if isinstance(site.tree.around(site.node), ast.AsyncFunctionDef) and site.tree.view.kind == "code":
            awaited = site_awaited(site)
            namesakes += awaited if isinstance(awaited, list) else []
    return places.in_groups(
        {
            certain: [edit for edit in plan.edits if edit not in in_text],
            text: [edit for edit in plan.edits if edit in in_text],
            maybe: namesakes,
        },
    )


def _in_strings(path: str, edits: Iterable[Edit], places: Places) -> set[Edit]:
    """The edits of a file that stand in a string, or in a page that is no code."""
    own = {edit for edit in edits if edit.path == path}
    if not path.endswith((".py", ".pyi", ".ipynb")):
        return own
    if path.endswith(".ipynb"):
        return set()
    text = places.text(path)
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    try:
        strings = [
            token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.STRING
        ]
    except (tokenize.TokenError, SyntaxError):
        return set()
    ranges = [
        (starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1]) for token in strings
    ]
    return {edit for edit in own if any(start < edit.start and edit.end < end for start, end in ranges)}


def _moved_back(edit: Edit, applied: Iterable[Edit]) -> Edit | None:
    """An edit of the text after `applied` as one of the text before; None where it touches what they put in."""
    by = 0
    for earlier in sorted(
        (earlier for earlier in applied if earlier.path == edit.path), key=lambda earlier: earlier.start
    ):
        begins = earlier.start + by
        ends = begins + len(earlier.text)
        if edit.end <= begins and edit.start < ends:
            break
        if edit.start < ends:
            return None
        by += len(earlier.text) - (earlier.end - earlier.start)
    return edit._replace(start=edit.start - by, end=edit.end - by)
