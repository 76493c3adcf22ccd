"""What to say about repair where a finding brings no fix of its own."""

import re

from troth.analysis.findings import Finding
from troth.analysis.report.content import Report
from troth.analysis.source.definitions import definitions_in

__all__ = ["advice"]

_NONE_OFFERED = re.compile(r"none is offered; (?P<rest>.+)", re.DOTALL)


def advice(finding: Finding, report: Report) -> str:
    """One sentence: the rule's own, else what the place of the finding allows; never a way to hide it."""
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
    if _is_sync(finding, report):
        name = finding.symbol.rpartition(".")[2]
        return (
            f"`{name}` is a plain `def`, where nothing can be awaited: `troth recolor` makes it and its callers async, "
            "`troth.bridge.run` calls across"
        )
    return "await the call"


def _is_sync(finding: Finding, report: Report) -> bool:
    """Whether the function around the finding is a plain one, as far as its file tells."""
    data = report.lines.data(finding.span.path)
    definitions = definitions_in(data) if data is not None else None
    own = (definitions or {}).get(finding.symbol.replace(".<locals>", ""))
    return own is not None and not own.is_async and not own.is_class
