"""Find out what an offer comes to once the user has picked it: the edits, and which of them are to be confirmed."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from troth.analysis.findings import Edit, Span
from troth.analysis.fix.settle import settle
from troth.analysis.recolor.check_plan import new_findings, rewritten
from troth.analysis.recolor.plan import Plan
from troth.analysis.recolor.project.sites import CallSite
from troth.analysis.recolor.project.tree import Tree
from troth.analysis.recolor.project.view import whole_file
from troth.analysis.recolor.recolor import Wish, plan_recolor
from troth.analysis.recolor.rewrite.rewrite_async import import_added, site_awaited
from troth.analysis.source.tree import tree_of
from troth.errors import MisuseError
from troth.lsp.features.actions import Outcome, is_sure_in
from troth.lsp.protocol.workspace_edit import Group, GroupedEdit
from troth.lsp.sessions.checker import FolderChecker
from troth.lsp.sessions.places import Places

__all__ = ["carry_out"]

_MOST = 5  # problems that are named in a message


def carry_out(job: Mapping[str, Any], checker: FolderChecker, places: Places) -> Outcome:
    """Do the job without touching a file."""
    try:
        return _JOBS[job["do"]](job, checker, places)
    except MisuseError as problem:
        return Outcome(problem=str(problem))


def _fix_all(job: Mapping[str, Any], checker: FolderChecker, places: Places) -> Outcome:
    look, path = places.look, job["path"]

    settled = settle(look.root, lambda texts: checker.try_out(look, texts), partial(is_sure_in, path), look.overlay)
    edits = [edit for change in settled.changes for edit in _differing(change.path, places, change.after)]
    count = len(settled.applied)
    return Outcome(_pieces(places, {None: edits}), f"Repair {count} problem{'' if count == 1 else 's'}.")


def _differing(path: str, places: Places, after: bytes) -> list[Edit]:
    """The edits that make the text of a file the new one, by lines, so that nothing else is touched."""
    from difflib import SequenceMatcher

    from troth.analysis.source.lines import decode
    from troth.lsp.protocol.positions import split

    before = places.text(path)
    old, new = split(before), split(decode(after))
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [
        Edit(path, starts[first], starts[last], "".join(new[start:end]))
        for tag, first, last, start, end in matcher.get_opcodes()
        if tag != "equal"
    ]


def _bridge(job: Mapping[str, Any], _checker: FolderChecker, places: Places) -> Outcome:
    """Wrap the lost call in `bridge.run`, and import it."""
    path, span = job["path"], Span(*job["span"])
    text = places.text(path)
    tree = tree_of(text)
    if tree is None:
        return Outcome(problem="The file cannot be parsed as it is.")
    whole = Tree(whole_file(path, text), tree)
    start, end = _offset(text, span.line, span.column), _offset(text, span.end_line, span.end_column)
    call = next((node for node in whole.calls.values() if (whole.start(node), whole.end(node)) == (start, end)), None)
    if call is None:
        return Outcome(problem="The call that makes the coroutine cannot be determined from the code around it.")
    edits = [Edit(path, start, start, "bridge.run("), Edit(path, end, end, ")")]
    run = Group("Run the coroutine here", "The call will now run, and the thread waits for it.", is_to_confirm=True)
    added = import_added(whole, "from troth import bridge", "bridge")
    summary = f"`{text[start:end]}` will now run, and the thread waits for it."
    return Outcome(_pieces(places, {run: edits, Group("Import `bridge`"): added}), summary)


def _offset(text: str, line: int, column: int) -> int:
    from troth.lsp.protocol.positions import split

    return sum(map(len, split(text)[: line - 1])) + column - 1


def _make_async(job: Mapping[str, Any], checker: FolderChecker, places: Places) -> Outcome:
    """Recolor the function, and await what it lost."""
    look, path, symbol = places.look, job["path"], job["symbol"]
    plan = _plan(places, f"{path}:{symbol}", "async")
    if problem := _unclear(plan):
        return Outcome(problem=problem)
    changes = rewritten(look.root, plan.edits, look.overlay)
    after = checker.try_out(look, {change.path: change.after for change in changes})
    lost = [
        finding
        for finding in after
        if finding.fix is not None and (finding.span.path, finding.symbol) == (path, symbol)
    ]
    awaits = [
        moved
        for finding in lost
        if finding.code.startswith(("TR1", "TR2")) and finding.fix is not None
        for edit in finding.fix.edits
        if (moved := _moved_back(edit, plan.edits)) is not None
    ]
    group = Group("Await what was lost", "These calls will now run.", is_to_confirm=True)
    pieces = _pieces(places, {group: awaits}) + _of_plan(places, plan)
    return Outcome(pieces, f"{_summary(plan)} The calls that were lost in it are awaited, and will now run.")


def _recolor(job: Mapping[str, Any], checker: FolderChecker, places: Places) -> Outcome:
    look = places.look
    plan = _plan(places, job["target"], job["to"])
    if problem := _unclear(plan):
        return Outcome(problem=problem)
    changes = rewritten(look.root, plan.edits, look.overlay)
    fresh = new_findings(changes, lambda texts: checker.try_out(look, texts))
    if fresh:
        shown = "\n".join(
            f"{finding.span.path}:{finding.span.line} {finding.code} {finding.message}" for finding in fresh[:_MOST]
        )
        return Outcome(problem=f"After the change, Troth would report new findings:\n{shown}")
    return Outcome(_of_plan(places, plan), _summary(plan))


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


def _of_plan(places: Places, plan: Plan) -> tuple[GroupedEdit, ...]:
    certain = Group(f"Make `{plan.target.partition(':')[2]}` {plan.to}", "Definitions and calls that are certain.")
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
    return _pieces(
        places,
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


def _pieces(places: Places, groups: Mapping[Group | None, Sequence[Edit]]) -> tuple[GroupedEdit, ...]:
    return tuple(
        GroupedEdit(uri, edit, group) for group, edits in groups.items() for uri, edit in places.edits(list(edits))
    )


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


_JOBS = {"fix all": _fix_all, "bridge": _bridge, "make async": _make_async, "recolor": _recolor}
