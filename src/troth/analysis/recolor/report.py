"""Tell a plan to people and to machines."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from troth.analysis.project.test_files import is_test
from troth.analysis.recolor.decisions import place_of
from troth.analysis.recolor.plan import Listed, Plan
from troth.analysis.recolor.project.sites import CallSite
from troth.analysis.recolor.surface import Surface
from troth.analysis.semantics.symbols import Function

__all__ = ["as_json", "surface_as_json", "surface_lines", "text_lines", "upgrade_note"]

_SHOWN = 20


def text_lines(plan: Plan, *, everything: bool = False) -> Iterator[str]:
    """The plan, the most important first. `everything` leaves no list short."""
    most = 1_000_000 if everything else _SHOWN
    yield f"{plan.target} to {plan.to}"
    yield f"{_count(len(plan.definitions), 'definition')}"
    for definition in plan.definitions:
        yield f"  {_place(definition)}  {definition.qualname}"
    if plan.followers:
        yield f"{_count(len(plan.followers), 'caller')} to follow"
        yield from _short([f"  {_place(follower)}  {follower.qualname}" for follower in plan.followers], most)
    yield f"{_count(len(plan.sites), 'call')} in {_count(len({site.path for site in plan.sites}), 'file')}"
    by_file: dict[str, Counter[str]] = {}
    for site in plan.sites:
        by_file.setdefault(site.path, Counter())[_use(site)] += 1
    for path, uses in sorted(by_file.items()):
        yield f"  {path}  {', '.join(f'{count} {use}' for use, count in uses.most_common())}"
    if plan.taught:
        yield f"{_count(len(plan.taught), 'dispatcher')} changed to take both colors"
        yield from _short(_listed(plan.taught), most)
    if plan.unable:
        yield f"{_count(len(plan.unable), 'function')} that cannot become {plan.to}; pick the others with `--methods`"
        for unable in plan.unable:
            yield f"  {unable.function.place[0]}:{unable.line}  {unable.function.qualname} {unable.why}"
            if unable.settled_by:
                yield f"    decided by  {_answers(unable.settled_by)}"
    if plan.problems:
        yield f"{_count(len(plan.problems), 'place')} to decide"
        for problem in plan.problems:
            yield f"  {problem.path}:{problem.line}  `{problem.text}`: {problem.why}"
            if problem.settled_by:
                yield f"    decided by  {_answers(problem.settled_by)}"
    yield from _unknown(plan)
    if plan.marked:
        places = _count(len(plan.marked), "place")
        yield f"{places} that cannot be decided; a comment `# troth:` there says what to review"
        yield from _short(_listed(plan.marked), most)
    if plan.stays:
        yield f"{_count(len(plan.stays), 'function')} left as before"
        yield from _short(_listed(plan.stays), most)
    if plan.runs:
        yield f"{_count(len(plan.runs), 'place')} where sync code runs it"
        yield from _short(_listed(plan.runs), most)
    if plan.wrong_colors:
        yield f"{_count(len(plan.wrong_colors), 'callable')} of the wrong color handed over along the way"
        yield from _listed(plan.wrong_colors)
    looked_at = (*plan.texts, *plan.notes, *(_as_listed(site) for site in _in_text(plan)))
    if looked_at:
        yield f"{_count(len(looked_at), 'place')} in text or mocks to look at; nothing is changed there"
        yield from _short(_listed(looked_at), most)
    if plan.untested is not None:
        yield f"{_count(len(plan.untested), 'call')} that no test runs"
        yield from _short([f"  {site.path}:{site.line}  {site.text}" for site in plan.untested], most)
    yield "Upgrade note for callers outside this repository"
    yield from (f"  {line}" for line in upgrade_note(plan))


def _answers(lines: tuple[str, ...]) -> str:
    """The lines that would settle a place, with its name said once."""
    place = lines[0].rpartition(":")[0]
    return f"{place}: {' | '.join(line.rpartition(': ')[2] for line in lines)}"


def _unknown(plan: Plan) -> Iterator[str]:
    in_code = [site for site in plan.unknown if site.tree.view.kind in {"code", "notebook"}]
    if in_code:
        calls = _count(len(in_code), "call")
        yield f"{calls} of a namesake on something unknown; `--leave-unknown` leaves them as they are"
        for site in in_code:
            yield f"  {site.path}:{site.line}  {site.text}, {site.use.words}"
            yield f"    decided by  {_answers(_settled_by(site, in_code))}"


def _settled_by(site: CallSite, unknown: Sequence[CallSite]) -> tuple[str, ...]:
    """The lines that would settle a call: by its own line where the function has calls of several receivers."""
    beside = {
        other.text for other in unknown if (other.path, other.caller, other.name) == (site.path, site.caller, site.name)
    }
    place = place_of(site.caller, site.path) if len(beside) == 1 else f"{site.path}:{site.line}"
    return tuple(f"{place}: {answer}" for answer in ("recolor", "leave"))


def _in_text(plan: Plan) -> list[CallSite]:
    return [site for site in plan.unknown if site.tree.view.kind in {"markdown", "docstring"}]


def _as_listed(site: CallSite) -> Listed:
    return Listed(site.path, site.line, site.text, "the receiver is unknown in that snippet")


def upgrade_note(plan: Plan) -> list[str]:
    """What to tell those who call the target from elsewhere."""
    if not plan.definitions:
        return ["Nothing changes."]
    outside = [definition for definition in plan.definitions if not is_test(definition.module.path)] or plan.definitions
    names = sorted({function.qualname for function in outside})
    shown = ", ".join(f"`{name}`" for name in names)
    are = "is now" if len(names) == 1 else "are now"
    owner, _, name = names[0].rpartition(".")
    call = f"x.{name}(…)" if owner else f"{name}(…)"
    if plan.to == "sync":
        return [
            f"{shown} {are} sync: write `{call}` instead of `await {call}`.",
            "`asyncio.run`, `create_task` and `gather` around such a call go too.",
            "An `await` that is left raises TypeError, but only after the call has done its work.",
        ]
    return [
        f"{shown} {are} async: write `await {call}`, or `asyncio.run({call})` in sync code.",
        "A call that is not awaited does nothing at all; `troth check` finds those.",
    ]


def surface_lines(found: Surface) -> Iterator[str]:
    """The colors of a surface, which side is consistent and what each direction would cost."""
    yield f"{found.to_sync.target}"
    for function, color, why in found.methods:
        yield f"  {_place(function)}  {color:<5}  {function.qualname}{f'  ({why})' if why else ''}"
    colors = Counter(color for _, color, _ in found.methods)
    needs = "nothing in it has to be async" if found.consistent == "sync" else "something in it has to wait"
    yield f"{colors['async']} async, {colors['sync']} sync; {needs}"
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
        "definitions": [_function(definition) for definition in plan.definitions],
        "followers": [_function(follower) for follower in plan.followers],
        "calls": [_site(site) for site in plan.sites],
        "unknown": [{**_site(site), "settled_by": list(_settled_by(site, plan.unknown))} for site in plan.unknown],
        "unable": [
            {**_function(waits.function), "why": waits.why, "at": waits.line, "settled_by": list(waits.settled_by)}
            for waits in plan.unable
        ],
        "problems": [
            {
                "path": problem.path,
                "line": problem.line,
                "text": problem.text,
                "why": problem.why,
                "settled_by": list(problem.settled_by),
            }
            for problem in plan.problems
        ],
        "marked": [_item(place) for place in plan.marked],
        "stays": [_item(place) for place in plan.stays],
        "runs": [_item(place) for place in plan.runs],
        "taught": [_item(place) for place in plan.taught],
        "wrong_colors": [_item(place) for place in plan.wrong_colors],
        "texts": [_item(place) for place in (*plan.texts, *plan.notes)],
        "untested": None if plan.untested is None else [_site(site) for site in plan.untested],
        "edits": len(plan.edits),
        "upgrade_note": upgrade_note(plan),
    }


def surface_as_json(found: Surface) -> dict[str, Any]:
    """The surface for machines."""
    return {
        "target": found.to_sync.target,
        "methods": [{**_function(method), "color": color, "why": why} for method, color, why in found.methods],
        "consistent": found.consistent,
        "to_sync": as_json(found.to_sync),
        "to_async": as_json(found.to_async),
    }


def _function(function: Function) -> dict[str, Any]:
    return {"path": function.place[0], "line": function.place[1], "name": function.qualname}


def _site(site: CallSite) -> dict[str, Any]:
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
    return [f"  {place.path}:{place.line}  {place.text}: {place.why}" for place in rows]


def _short(rows: list[str], most: int) -> Iterator[str]:
    yield from rows[:most]
    if len(rows) > most:
        yield f"  … and {len(rows) - most} more; `--all` shows them, `--output-format json` too"


def _use(site: CallSite) -> str:
    kind = site.tree.view.kind
    return site.use.words + ("" if kind == "code" else f" in a {kind}" if kind != "markdown" else " in a snippet")


def _place(function: Function) -> str:
    return f"{function.place[0]}:{function.place[1]}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
