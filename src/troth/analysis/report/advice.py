"""What to say about repair where a finding brings no fix of its own."""

import re

from troth.analysis.findings import Finding
from troth.analysis.report.content import CheckReport
from troth.analysis.source.definitions import Definition, definitions_in

__all__ = ["advice"]

_NONE_OFFERED = re.compile(r"none is offered; (?P<rest>.+)", re.DOTALL)
_PROPERTY = frozenset({"property", "cached_property", "setter", "deleter"})


def advice(finding: Finding, report: CheckReport) -> str:
    """One sentence: the finding's, the rule's, else what the place of the finding allows; never a way to hide it."""
    if finding.repair:
        return finding.repair
    page = report.rules.get(finding.code)
    if page is not None:
        own = page.part("How to repair")
        stated = _NONE_OFFERED.match(page.part("How sure the fix is"))
        if own or stated:
            return " ".join((own or (stated["rest"] if stated else "")).split()).rstrip(".")
    if finding.span.cell is not None:
        return "await the call; cells may do that at their top level"
    if not finding.symbol:
        return "there is no loop at module level: move the call into an `async def` that `asyncio.run` starts"
    around = _around(finding, report)
    if around is None or around.is_async or around.is_class:
        return "await the call"
    name = finding.symbol.rpartition(".")[2]
    if name.startswith("__") and name.endswith("__"):
        return (
            f"Python itself calls `{name}`, so it cannot be async: run the call with `troth.bridge.run`, "
            "or move it to an async function that makes or uses the object"
        )
    if _PROPERTY.intersection(around.decorators):
        return (
            f"`{name}` is a property, which cannot be awaited: run the call with `troth.bridge.run`, "
            "or make it a method with `troth recolor --to async --properties`"
        )
    return (
        f"`{name}` is a plain `def`, where nothing can be awaited: `troth recolor` makes it and its callers async, "
        "`troth.bridge.run` calls across"
    )


def _around(finding: Finding, report: CheckReport) -> Definition | None:
    """The function around the finding, as far as its file tells."""
    data = report.lines.data(finding.span.path)
    definitions = definitions_in(data) if data is not None else None
    return (definitions or {}).get(finding.symbol.replace(".<locals>", ""))
