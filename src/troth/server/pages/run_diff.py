"""Show what differs between two runs."""

from troth.runtime.workflows.record.diff import Difference, diff
from troth.runtime.workflows.record.report import RunReport
from troth.runtime.workflows.render.markup import Html, cut, join, shown_json, tag
from troth.server.pages.frame.parts import badge, moment
from troth.server.pages.frame.view import View

__all__ = ["difference_table"]


def difference_table(view: View, run: RunReport, other: RunReport) -> Html:
    """A row for each place where they differ; times are not compared."""
    differences = diff(other, run)
    first, second = _name(view, other), _name(view, run)
    rows = (
        tag(
            "tr",
            tag("td", tag("code", cut(difference.path, 200))),
            tag("td", _side(difference, first=True)),
            tag("td", _side(difference, first=False)),
        )
        for difference in differences[:500]
    )
    return join(
        tag("h1", "What differs"),
        tag(
            "div",
            tag(
                "table",
                tag("thead", tag("tr", (tag("th", name, scope="col") for name in ("where", first, second)))),
                tag("tbody", rows),
                class_="diff",
            ),
            class_="scroll",
        )
        if differences
        else tag("p", first, " and ", second, " do not differ, but for their times."),
    )


def _name(view: View, run: RunReport) -> Html:
    """One of the two, with how it stands."""
    return join(badge(run.state), " ", tag("a", run.id, href=view.link("runs", run.id)), " ", moment(run.created_at))


def _side(difference: Difference, *, first: bool) -> Html:
    is_there = difference.is_in_one if first else difference.is_in_other
    if not is_there:
        return tag("span", "nothing", class_="soft")
    return tag("pre", shown_json(difference.one if first else difference.other, 1000))
