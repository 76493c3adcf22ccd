"""Knows how to tell a person what was found: what is lost, why we know, how to repair it, where to read on."""

from collections.abc import Callable, Iterator

from troth.analysis.findings import Finding, Reason, Span
from troth.analysis.report.advice import advice
from troth.analysis.report.content import Report, plural
from troth.analysis.report.flood import flood

__all__ = ["Paint", "newer_syntax", "render", "stale", "verdict"]

Paint = Callable[..., str]
_TAB = 4
_MOST_REASONS = 6


def _plain(text: str, *_names: str) -> str:
    return text


def render(report: Report, *, paint: Paint = _plain, frames: bool = False) -> Iterator[str]:
    """Lines of text. On a terminal (`frames`) each place is shown with its code."""
    much = flood(report.findings)
    was_short = False
    for finding in report.findings:
        is_short = much is not None and much.is_short(finding)
        if was_short and not is_short:
            yield ""
        was_short = is_short
        if is_short:
            yield f"{_heading(finding, report, paint)}  {finding.message}"
        else:
            yield from _finding(finding, report, paint, frames=frames)
            yield ""
    if was_short:
        yield ""
    if much is not None:
        yield from much.closing()
    yield from closing(report, paint)


def closing(report: Report, paint: Paint = _plain) -> Iterator[str]:
    """What is said at the end: what is repaired, what could not be read, and what it comes to."""
    if report.repaired:
        yield from stale(report)
        yield ""
    if report.newer_syntax:
        yield newer_syntax(report)
    yield verdict(report, paint)


def stale(report: Report) -> Iterator[str]:
    """The entries of the baseline that are repaired, one by one, and how to be rid of them."""
    for one in report.repaired:
        where = f" in {one.symbol}" if one.symbol else ""
        yield f"{report.shown(one.path)}  {one.code} {one.subject}{where}: repaired, but still in the baseline"
    if report.repaired:
        count = len(report.repaired)
        entries = "1 entry is" if count == 1 else f"{count:,} entries are"
        yield f"{entries} stale in {report.baseline}: `troth check --write-baseline` takes stock anew"


def newer_syntax(report: Report) -> str:
    """The one line about files that this interpreter is too old for."""
    import sys

    count = len(report.newer_syntax)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    first = report.shown(report.newer_syntax[0])
    which = first if count == 1 else f"{first} and {plural(count - 1, 'other')}"
    return (
        f"{plural(count, 'file')} in syntax newer than Python {version} could not be read ({which}): nothing that "
        "depends on them is called certain; a newer Python on PATH would read them"
    )


def verdict(report: Report, paint: Paint = _plain) -> str:
    """The last line: how many, how many can be repaired by what, in how many files."""
    files = plural(report.checked, "file")
    asides = []
    if report.known:
        asides.append(f"{report.known:,} known to the baseline")
    if report.silenced:
        asides.append(f"{report.silenced:,} silenced by `# troth: allow`")
    if report.acknowledged:
        asides.append(f"{report.acknowledged:,} silenced by `# noqa` with a code that says the same")
    aside = f" ({', '.join(asides)})" if asides else ""
    new = f" since {report.since}" if report.since else ""
    if not report.findings and not report.checked:
        return paint("Nothing could be checked, and nothing is not the same as clean", "yellow", "bold")
    if not report.findings:
        said = f"Nothing new{new}" if new or report.known else "All clear"
        return f"{paint(said, 'green', 'bold')}: {files} checked{aside}"
    certain = sum(one.confidence == "certain" for one in report.findings)
    likely = len(report.findings) - certain
    split = f"{certain:,} certain, {likely:,} likely" if certain and likely else "certain" if certain else "likely"
    places = len({one.span.path for one in report.findings})
    found = f"Found {plural(len(report.findings), 'problem')}"
    line = f"{paint(found, 'red' if certain else 'yellow', 'bold')}{new} ({split}) in {places:,} of {files}{aside}"
    return f"{line}; {_next_step(report)}"


def _next_step(report: Report) -> str:
    """What to run next: the fixes that are sure, those that want a look, else the page of the first rule."""
    fixes = [one.fix.safety for one in report.findings if one.fix is not None]
    sure, likely = fixes.count("sure"), fixes.count("likely")
    if sure and likely:
        return f"`troth fix` repairs {sure:,}, `troth fix --all` {likely:,} more; `--diff` shows how"
    if fixes:
        return f"`troth fix{' --all' if likely else ''}` repairs {len(fixes):,}, `--diff` shows how"
    return f"`troth explain {report.findings[0].code}` tells more"


def _heading(finding: Finding, report: Report, paint: Paint) -> str:
    place = paint(_place(report, finding.span), "bold")
    name = paint(f"{finding.code} {finding.rule}", "red" if finding.confidence == "certain" else "yellow", "bold")
    return f"{place}  {name}{'' if finding.confidence == 'certain' else '  (likely)'}"


def _finding(finding: Finding, report: Report, paint: Paint, *, frames: bool) -> Iterator[str]:
    yield _heading(finding, report, paint)
    yield f"  {finding.message}"
    if frames:
        yield from _frame(finding.span, report, paint)
    chain = _told([_reason(one, report) for one in finding.reasons])
    for number, text in enumerate(chain):
        yield f"  {paint('because' if number == 0 else '    and', 'cyan')}  {text}"
    if frames and (second := _second_place(finding)) is not None:
        yield from _frame(second, report, paint)
    page = report.rules.get(finding.code)
    if finding.fix is not None:
        sure = "" if finding.fix.safety == "sure" else "; likely, so look at it first"
        yield f"  {paint('fix', 'green')}  {finding.fix.title}{sure}"
    else:
        yield f"  {paint('repair', 'green')}  {advice(finding, report)}"
    if page is not None:
        yield f"  {paint('see', 'dim')}  {paint(page.url, 'dim')}"


def _told(chain: list[str]) -> list[str]:
    """The reasons a person reads: where there are many, the first ones and the last, which may be of another kind."""
    if len(chain) <= _MOST_REASONS:
        return chain
    left = len(chain) - _MOST_REASONS + 1
    return [*chain[: _MOST_REASONS - 2], f"{left:,} more, which `--output-format json` lists", chain[-1]]


def _place(report: Report, span: Span) -> str:
    path = report.shown(span.path)
    cell = f"#{span.cell}" if span.cell is not None else ""
    return f"{path}{cell}:{span.line}:{span.column}"


def _reason(reason: Reason, report: Report) -> str:
    if reason.path is None:
        return reason.text
    line = f":{reason.line}" if reason.line is not None else ""
    return f"{reason.text} ({report.shown(reason.path)}{line})"


def _second_place(finding: Finding) -> Span | None:
    """The place that shows why: mostly the `async def` of what is called."""
    for reason in reversed(finding.reasons):
        if reason.path is not None and reason.line is not None and not reason.path.endswith(".ipynb"):
            if (reason.path, reason.line) == (finding.span.path, finding.span.line):
                continue
            return Span(reason.path, reason.line, 0, reason.line, 0)
    return None


def _frame(span: Span, report: Report, paint: Paint) -> Iterator[str]:
    source = report.lines.at(span.path, span.line, span.cell)
    if not source.strip():
        return
    text = source.expandtabs(_TAB).rstrip()
    number = str(span.line)
    blank = " " * len(number)
    if span.column == 0:  # a whole line
        yield f"    {paint(f'{report.shown(span.path)}:{number}', 'dim')}"
        yield f"    {paint(f'{number} |', 'blue')} {text}"
        return
    start = len(source[: span.column - 1].expandtabs(_TAB))
    end = len(source[: span.end_column - 1].expandtabs(_TAB)) if span.end_line == span.line else len(text)
    yield f"    {paint(f'{number} |', 'blue')} {text}"
    yield f"    {paint(f'{blank} |', 'blue')} {' ' * start}{paint('^' * max(1, end - start), 'red', 'bold')}"
