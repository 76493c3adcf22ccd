"""Show what differs between two runs."""

from troth.runtime.workflows.record.diff import Difference, diff
from troth.runtime.workflows.record.report import RunReport
from troth.runtime.workflows.render.markup import Html, cut, join, shown_json, tag
from troth.server.pages.frame.view import View

__all__ = ["difference_table"]


def difference_table(view: View, run: RunReport, other: RunReport) -> Html:
    """A row for each place where they differ; times are not compared."""
    differences = diff(other, run)
    first = tag("a", other.id, href=view.link("runs", other.id))
    second = tag("a", run.id, href=view.link("runs", run.id))
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
            tag("table", tag("tr", tag("th", "where"), tag("th", first), tag("th", second)), rows, class_="diff"),
            class_="scroll",
        )
        if differences
        else tag("p", first, " and ", second, " do not differ, but for their times."),
    )


def _side(difference: Difference, *, first: bool) -> Html:
    is_there = difference.is_in_one if first else difference.is_in_other
    if not is_there:
        return tag("span", "nothing", class_="soft")
    return tag("pre", shown_json(difference.one if first else difference.other, 1000))
