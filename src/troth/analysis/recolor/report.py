"""Tell a plan to people and to machines."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from troth.analysis.recolor.decisions import place_of
from troth.analysis.recolor.plan import Listed, Plan
from troth.analysis.recolor.project.sites import Site
from troth.analysis.recolor.surface import Surface
from troth.analysis.semantics.resolve.test_files import is_test
from troth.analysis.semantics.symbols import Function

__all__ = ["as_json", "surface_as_json", "surface_lines", "text_lines", "upgrade_note"]

_SHOWN = 20


def text_lines(plan: Plan, *, everything: bool = False) -> Iterator[str]:
    """The plan, the most important first. `everything` leaves no list short."""
    most = 1_000_000 if everything else _SHOWN
    yield f"{plan.target} to {plan.to}"
    yield f"{_count(len(plan.definitions), 'definition')}"
    for one in plan.definitions:
        yield f"  {_place(one)}  {one.qualname}"
    if plan.followers:
        yield f"{_count(len(plan.followers), 'caller')} to follow"
        yield from _short([f"  {_place(one)}  {one.qualname}" for one in plan.followers], most)
    yield f"{_count(len(plan.sites), 'call')} in {_count(len({site.path for site in plan.sites}), 'file')}"
    by_file: dict[str, Counter[str]] = {}
    for site in plan.sites:
        by_file.setdefault(site.path, Counter())[_use(site)] += 1
    for path, uses in sorted(by_file.items()):
        yield f"  {path}  {', '.join(f'{count} {use}' for use, count in uses.most_common())}"
    if plan.taught:
        yield f"{_count(len(plan.taught), 'dispatcher')} taught to take both colors"
        yield from _short(_listed(plan.taught), most)
    if plan.unable:
        yield f"{_count(len(plan.unable), 'function')} that cannot become {plan.to}; pick the others with `--methods`"
        for unable in plan.unable:
            yield f"  {unable.function.place[0]}:{unable.line}  {unable.function.qualname} {unable.why}"
    if plan.problems:
        yield f"{_count(len(plan.problems), 'place')} that somebody has to decide"
        for problem in plan.problems:
            yield f"  {problem.path}:{problem.line}  `{problem.text}`: {problem.why}"
            if problem.settled_by:
                yield f"    decided by  {_answers(problem.settled_by)}"
    yield from _unknown(plan)
    if plan.stays:
        yield f"{_count(len(plan.stays), 'function')} left as before"
        yield from _short(_listed(plan.stays), most)
    if plan.wrong_colors:
        yield f"{_count(len(plan.wrong_colors), 'callable')} of the wrong color handed over along the way"
        yield from _listed(plan.wrong_colors)
    others = (*plan.texts, *plan.notes, *(_as_listed(one) for one in _in_text(plan)))
    if others:
        yield f"{_count(len(others), 'place')} in text or mocks to look at; nothing is changed there"
        yield from _short(_listed(others), most)
    if plan.untested is not None:
        yield f"{_count(len(plan.untested), 'call')} that no test runs"
        yield from _short([f"  {one.path}:{one.line}  {one.text}" for one in plan.untested], most)
    yield "Upgrade note for callers outside this repository"
    yield from (f"  {line}" for line in upgrade_note(plan))


def _answers(lines: tuple[str, ...]) -> str:
    """The lines that would settle a place, with its name said once."""
    place = lines[0].rpartition(":")[0]
    return f"{place}: {' | '.join(one.rpartition(': ')[2] for one in lines)}"


def _unknown(plan: Plan) -> Iterator[str]:
    in_code = [one for one in plan.unknown if one.tree.view.kind in {"code", "notebook"}]
    if in_code:
        calls = _count(len(in_code), "call")
        yield f"{calls} of a namesake on something unknown; `--leave-unknown` leaves them as they are"
        for one in in_code:
            yield f"  {one.path}:{one.line}  {one.text}, {one.use.words}"
            yield f"    decided by  {place_of(one.caller, one.path)}: recolor | leave"


def _in_text(plan: Plan) -> list[Site]:
    return [one for one in plan.unknown if one.tree.view.kind in {"markdown", "docstring"}]


def _as_listed(site: Site) -> Listed:
    return Listed(site.path, site.line, site.text, "nobody can tell what the receiver is in that snippet")


def upgrade_note(plan: Plan) -> list[str]:
    """What to tell those who call the target from elsewhere."""
    if not plan.definitions:
        return ["Nothing changes."]
    outside = [one for one in plan.definitions if not is_test(one.module.path)] or plan.definitions
    names = sorted({one.qualname for one in outside})
    shown = ", ".join(f"`{one}`" for one in names)
    are = "is now" if len(names) == 1 else "are now"
    owner, _, name = names[0].rpartition(".")
    call = f"x.{name}(…)" if owner else f"{name}(…)"
    if plan.to == "sync":
        return [
            f"{shown} {are} plain: write `{call}` instead of `await {call}`.",
            "`asyncio.run`, `create_task` and `gather` around such a call go too.",
            "An `await` that is left raises TypeError, but only after the call has done its work.",
        ]
    return [
        f"{shown} {are} async: write `await {call}`, or `asyncio.run({call})` in plain code.",
        "A call that is not awaited does nothing at all; `troth check` finds those.",
    ]


def surface_lines(found: Surface) -> Iterator[str]:
    """The colors of a surface, which side is consistent and what each direction would cost."""
    yield f"{found.to_sync.target}"
    for function, color, why in found.methods:
        yield f"  {_place(function)}  {color:<5}  {function.qualname}{f'  ({why})' if why else ''}"
    colors = Counter(color for _, color, _ in found.methods)
    yield f"{colors['async']} async, {colors['sync']} sync; all of it can be {found.consistent}"
    for plan in (found.to_sync, found.to_async):
        files = len({site.path for site in plan.sites})
        calls = f"{_count(len(plan.sites), 'call')} in {_count(files, 'file')}"
        cost = f"{_count(len(plan.definitions), 'definition')}, {calls}"
        stop = len(plan.unable) + len(plan.problems)
        yield f"  to {plan.to}: {cost}" + (f"; {_count(stop, 'place')} to decide first" if stop else "")


def as_json(plan: Plan) -> dict[str, Any]:
    """The plan for machines."""
    return {
        "target": plan.target,
        "to": plan.to,
        "definitions": [_function(one) for one in plan.definitions],
        "followers": [_function(one) for one in plan.followers],
        "calls": [_site(one) for one in plan.sites],
        "unknown": [_site(one) for one in plan.unknown],
        "unable": [{**_function(one.function), "why": one.why, "at": one.line} for one in plan.unable],
        "problems": [
            {
                "path": one.path,
                "line": one.line,
                "text": one.text,
                "why": one.why,
                "settled_by": list(one.settled_by),
            }
            for one in plan.problems
        ],
        "stays": [_item(one) for one in plan.stays],
        "taught": [_item(one) for one in plan.taught],
        "wrong_colors": [_item(one) for one in plan.wrong_colors],
        "texts": [_item(one) for one in (*plan.texts, *plan.notes)],
        "untested": None if plan.untested is None else [_site(one) for one in plan.untested],
        "edits": len(plan.edits),
        "upgrade_note": upgrade_note(plan),
    }


def surface_as_json(found: Surface) -> dict[str, Any]:
    """The surface for machines."""
    return {
        "target": found.to_sync.target,
        "methods": [{**_function(one), "color": color, "why": why} for one, color, why in found.methods],
        "consistent": found.consistent,
        "to_sync": as_json(found.to_sync),
        "to_async": as_json(found.to_async),
    }


def _function(function: Function) -> dict[str, Any]:
    return {"path": function.place[0], "line": function.place[1], "name": function.qualname}


def _site(site: Site) -> dict[str, Any]:
    caller = "" if site.caller is None else site.caller.qualname
    return {
        "path": site.path,
        "line": site.line,
        "text": site.text,
        "use": site.use.kind,
        "by": site.use.by,
        "in": site.tree.view.kind,
        "caller": caller,
    }


def _item(one: Listed) -> dict[str, Any]:
    return {"path": one.path, "line": one.line, "text": one.text, "why": one.why}


def _listed(rows: Iterable[Listed]) -> list[str]:
    return [f"  {one.path}:{one.line}  {one.text}: {one.why}" for one in rows]


def _short(rows: list[str], most: int) -> Iterator[str]:
    yield from rows[:most]
    if len(rows) > most:
        yield f"  … and {len(rows) - most} more; `--all` shows them, `--output-format json` too"


def _use(site: Site) -> str:
    kind = site.tree.view.kind
    return site.use.words + ("" if kind == "code" else f" in a {kind}" if kind != "markdown" else " in a snippet")


def _place(function: Function) -> str:
    return f"{function.place[0]}:{function.place[1]}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
