"""Show what each member of a session did, with the outcomes, and what it was refused; out of the audit."""

from collections import Counter

from troth.runtime.assemble import store_options
from troth.runtime.sessions.activity import LAST_ENTRIES, Activity
from troth.runtime.sessions.session import Session
from troth.runtime.workflows.render.markup import Html, cut, join, tag
from troth.server.pages.frame.parts import moment
from troth.server.pages.frame.view import View

__all__ = ["activity_lists", "below", "refusals"]

_SHOWN = 50  # of each member; all of them are in `--json`
_MARKS = {"done": "✓", "completed": "✓", "failed": "✗", "refused": "✗", "started": "▶"}


def activity_lists(view: View, session: Session, did: dict[str, list[Activity]]) -> Html:
    """A list for each member, the newest last; folded, so that many members stay readable."""
    if not session.members:
        return Html("")
    return join(
        tag("h2", "What each did", id="did"),
        (_member(view, session, member.agent, did.get(member.agent, [])) for member in session.members),
        tag("p", f"This is from the last {LAST_ENTRIES:,} audit entries of the session.", class_="soft"),
    )


def _command(view: View, session: Session) -> str:
    """What shows all of them."""
    return f"troth session show {session.id} --json{store_options(view.context.store)}"


def _member(view: View, session: Session, agent: str, activities: list[Activity]) -> Html:
    name = tag("b", cut(agent, 80))
    if not activities:
        return tag("p", name, ": nothing", class_="did")  # in the entries that were looked at
    counts = Counter(activity.outcome for activity in activities)
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    earlier = len(activities) - _SHOWN
    return tag(
        "details",
        tag("summary", name, f": {told}"),
        tag(
            "p",
            f"{earlier} earlier ones are in `{_command(view, session)}`.",
            class_="soft",
        )
        if earlier > 0
        else None,
        tag("ul", (_line(view, session, activity) for activity in activities[-_SHOWN:]), class_="events"),
        class_="did",
        id=f"did-{agent}",
        open=len(session.members) <= 5,
    )


def _line(view: View, session: Session, activity: Activity, agent: str = "") -> Html:
    entry = f"{view.link('sessions', session.id, after=activity.number - 1)}#entry-{activity.number}"
    mark = _MARKS.get(activity.outcome, "·")
    css = {"✗": "failed", "✓": "done"}.get(mark)
    return tag(
        "li",
        tag("span", mark, class_=css),
        tag(
            "span",
            tag("b", cut(agent, 80), " ") if agent else None,
            None if activity.why.startswith(f"{activity.what} ") else tag("span", activity.outcome, " ", class_=css),
            f"{_words(session.id, activity)} ",
            tag("a", f"entry {activity.number}", href=entry),
        ),
        moment(activity.at),
    )


def below(session_id: str, path: str) -> str:
    """The path of a text as its own session sees it: that each begins with the session goes without saying."""
    return path.removeprefix(f"/sessions/{session_id}/")


def _words(session_id: str, activity: Activity) -> str:
    """What was done or refused, and why; neither what a reason begins with is told twice, nor that an undo is one."""
    is_told = activity.kind == "refused" or activity.what.startswith(f"{activity.kind} ")
    kind = "" if is_told else f"{activity.kind} "
    if activity.why.startswith(activity.what):
        return f"{kind}{cut(activity.why or activity.what, 400)}"
    return f"{kind}{cut(below(session_id, activity.what), 200)}{': ' if activity.why else ''}{cut(activity.why, 400)}"


def refusals(view: View, session: Session, did: dict[str, list[Activity]]) -> Html:
    """What was refused to whom, the last refusal first."""
    refused = sorted(
        (
            (activity, agent)
            for agent, activities in did.items()
            for activity in activities
            if activity.kind == "refused"
        ),
        key=lambda pair: -pair[0].number,
    )
    if not refused:
        return Html("")
    lines = (_line(view, session, activity, agent) for activity, agent in refused[:_SHOWN])
    more = len(refused) - _SHOWN
    return join(
        tag("h2", "Refused"),
        tag("ul", lines, class_="events refused"),
        tag(
            "p",
            f"{more} earlier ones are in `{_command(view, session)}`.",
            class_="soft",
        )
        if more > 0
        else None,
    )
