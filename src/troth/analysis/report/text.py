"""Tell a person what was found: what is lost, why we know, how to repair it, where to read on."""

from collections.abc import Callable, Iterator, Sequence

from troth.analysis.crash import line_of
from troth.analysis.findings import Finding, Reason, Span
from troth.analysis.report.advice import advice
from troth.analysis.report.content import CheckReport, plural
from troth.analysis.report.grouping.families import by_family
from troth.analysis.report.grouping.flood import Flood, flood
from troth.analysis.report.grouping.in_tests import in_short, summed_up
from troth.analysis.report.printable import in_one_line, one_column_each, printable
from troth.analysis.report.wrapping import wrapped

__all__ = ["Paint", "closing", "crash_lines", "newer_syntax", "no_paint", "render", "shown_place", "stale", "verdict"]

Paint = Callable[..., str]
_TAB = 4
_MOST_REASONS = 6


def no_paint(text: str, *_names: str) -> str:
    """The text as it is."""
    return text


def render(
    report: CheckReport, *, paint: Paint = no_paint, frames: bool = False, quiet: bool = False, width: int | None = None
) -> Iterator[str]:
    """Lines of text. On a terminal (`frames`) each place is shown with its code, and lines end at its `width`.

    `quiet` leaves findings alone.
    """
    minor = in_short(report)
    lesser = set(minor)
    shown = [finding for finding in report.findings if finding not in lesser]
    much = flood(shown)
    families = list(by_family(shown))
    for family, findings in families:
        if len(families) > 1:
            yield paint(f"{_family_name(family)}: {plural(len(findings), 'problem')}", "bold")
            yield ""
        yield from _findings(findings, report, paint, much=much, frames=frames, width=width)
    if minor:
        yield from summed_up(minor)
        yield ""
    if quiet:
        yield from crash_lines(report, paint)
        return
    if much is not None:
        yield from much.closing()
    for line in closing(report, paint):
        yield from wrapped(line, width, rest="  ")


def _findings(
    findings: Sequence[Finding],
    report: CheckReport,
    paint: Paint,
    *,
    much: Flood | None,
    frames: bool,
    width: int | None,
) -> Iterator[str]:
    """Those of one family, each with an empty line after it; the rows of a flood have one after the last of them."""
    was_short = False
    for finding in findings:
        is_short = much is not None and much.is_short(finding)
        if was_short and not is_short:
            yield ""
        was_short = is_short
        if is_short:
            yield f"{_heading(finding, report, paint)}  {printable(finding.message)}"
        else:
            yield from _finding(finding, report, paint, frames=frames, width=width)
            yield ""
    if was_short:
        yield ""


def closing(report: CheckReport, paint: Paint = no_paint) -> Iterator[str]:
    """What is said at the end: what is repaired, what could not be read, and what it comes to."""
    if report.repaired:
        yield from stale(report)
        yield ""
    if report.newer_syntax:
        yield newer_syntax(report)
    yield from crash_lines(report, paint)
    yield verdict(report, paint)


def crash_lines(report: CheckReport, paint: Paint = no_paint) -> Iterator[str]:
    """A line for each kind of exception of our own."""
    for crash in report.crashes:
        yield paint(line_of(crash, report.shown), "red")


def stale(report: CheckReport) -> Iterator[str]:
    """The entries of the baseline that are repaired, one by one, and how to be rid of them."""
    for mark in report.repaired:
        where = f" in {mark.symbol}" if mark.symbol else ""
        path = in_one_line(report.shown(mark.path))
        yield f"{path}  {mark.code} {mark.subject}{where}: repaired, but still in the baseline"
    if report.repaired:
        count = len(report.repaired)
        entries = "1 entry is" if count == 1 else f"{count:,} entries are"
        yield f"{entries} stale in {report.baseline}: `troth check --write-baseline` rewrites it"


def newer_syntax(report: CheckReport) -> str:
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


def verdict(report: CheckReport, paint: Paint = no_paint) -> str:
    """The last line: how many, how many can be repaired by what, in how many files."""
    files = plural(report.checked, "file")
    asides = []
    if report.known:
        asides.append(f"{report.known:,} known to the baseline")
    if report.silenced:
        asides.append(f"{report.silenced:,} silenced by `# troth: allow`")
    if report.acknowledged:
        asides.append(f"{report.acknowledged:,} silenced by comments for other linters")
    aside = f" ({', '.join(asides)})" if asides else ""
    new = f" since {report.since}" if report.since else ""
    if not report.findings and not report.checked:
        return paint("No file could be checked, so this is not reported as clean", "yellow", "bold")
    if not report.findings and report.crashes:
        headline = paint("Nothing was found, but the check is not complete", "yellow", "bold")
        return f"{headline}: {plural(len(report.crashes), 'internal error')}, {files} checked{aside}"
    if not report.findings:
        headline = f"Nothing new{new}" if new or report.known else "All clear"
        return f"{paint(headline, 'green', 'bold')}: {files} checked{aside}"
    certain = sum(finding.confidence == "certain" for finding in report.findings)
    likely = len(report.findings) - certain
    split = f"{certain:,} certain, {likely:,} likely" if certain and likely else "certain" if certain else "likely"
    paths = {finding.span.path for finding in report.findings}
    folders = len(paths & report.folders)
    places = [plural(folders, "folder")] if folders else []
    if len(paths) > folders:
        places.append(f"{len(paths) - folders:,} of {files}")
    headline = f"Found {plural(len(report.findings), 'problem')}"
    if report.crashes:
        aside += f", and the check is not complete ({plural(len(report.crashes), 'internal error')})"
    line = f"{paint(headline, 'red' if certain else 'yellow', 'bold')}{new} ({split}) in {' and '.join(places)}{aside}"
    return f"{line}; {_next_step(report)}"


def _family_name(family: str) -> str:
    from troth.analysis.report.rulebook import FAMILIES  # late: it brings the catalog of rules with it

    name = FAMILIES.get(family, family)
    return f"{name[:1].upper()}{name[1:]}"


def _next_step(report: CheckReport) -> str:
    """What to run next: the fixes that are sure, those that want a look, else the page of the first rule."""
    fixes = [finding.fix.safety for finding in report.findings if finding.fix is not None]
    flags = {"": fixes.count("sure"), " --all": fixes.count("likely"), " --guesses": fixes.count("guess")}
    offered = [(flag, count) for flag, count in flags.items() if count]
    if len(offered) > 1:
        (first, count), *later = offered
        more = ", ".join(f"`troth fix{flag}` {number:,} more" for flag, number in later)
        return f"`troth fix{first}` repairs {count:,}, {more}; `--diff` shows how"
    if offered:
        return f"`troth fix{offered[0][0]}` repairs {offered[0][1]:,}, `--diff` shows how"
    return f"`troth explain {report.findings[0].code}` explains the rule"


def _heading(finding: Finding, report: CheckReport, paint: Paint) -> str:
    place = paint(shown_place(report, finding.span), "bold")
    name = paint(f"{finding.code} {finding.rule}", "red" if finding.confidence == "certain" else "yellow", "bold")
    return f"{place}  {name}{'' if finding.confidence == 'certain' else '  (likely)'}"


def _finding(finding: Finding, report: CheckReport, paint: Paint, *, frames: bool, width: int | None) -> Iterator[str]:
    def labelled(label: str, color: str, text: str) -> Iterator[str]:
        return wrapped(printable(text), width, first=f"  {paint(label, color)}  ", rest=" " * (len(label) + 4))

    yield _heading(finding, report, paint)
    yield from wrapped(printable(finding.message), width, first="  ", rest="  ")
    if frames:
        yield from _frame(finding.span, report, paint)
    chain = _shortened([_reason(reason, report) for reason in finding.reasons])
    for number, text in enumerate(chain):
        yield from labelled("because" if number == 0 else "    and", "cyan", text)
    if frames and (second := _second_place(finding)) is not None:
        yield from _frame(second, report, paint)
    page = report.rules.get(finding.code)
    if finding.fix is not None:
        sure = {"sure": "", "likely": " (review before applying)", "guess": " (a guess: review before applying)"}[
            finding.fix.safety
        ]
        yield from labelled("fix", "green", f"{finding.fix.title}{sure}")
    else:
        yield from labelled("repair", "green", advice(finding, report))
    if page is not None:
        yield f"  {paint('see', 'dim')}  {paint(page.url, 'dim')}"


def _shortened(chain: list[str]) -> list[str]:
    """The reasons a person reads: where there are many, the first ones and the last, which may be of another kind."""
    if len(chain) <= _MOST_REASONS:
        return chain
    omitted = len(chain) - _MOST_REASONS + 1
    return [*chain[: _MOST_REASONS - 2], f"{omitted:,} more, which `--output-format json` lists", chain[-1]]


def shown_place(report: CheckReport, span: Span) -> str:
    """Where it is, so that an editor or a terminal can open it: `path:line:column`, `path#cell:line:column`."""
    path = report.shown(span.path)
    cell = f"#{span.cell}" if span.cell is not None else ""
    return f"{in_one_line(path)}{cell}:{span.line}:{span.column}"


def _reason(reason: Reason, report: CheckReport) -> str:
    if reason.path is None:
        return reason.text
    line = f":{reason.line}" if reason.line is not None else ""
    return f"{reason.text} ({in_one_line(report.shown(reason.path))}{line})"


def _second_place(finding: Finding) -> Span | None:
    """The place that shows why: mostly the `async def` of what is called."""
    for reason in reversed(finding.reasons):
        if reason.path is not None and reason.line is not None and not reason.path.endswith(".ipynb"):
            if (reason.path, reason.line) == (finding.span.path, finding.span.line):
                continue
            return Span(reason.path, reason.line, 0, reason.line, 0)
    return None


def _frame(span: Span, report: CheckReport, paint: Paint) -> Iterator[str]:
    source = report.lines.at(span.path, span.line, span.cell)
    if not source.strip():
        return
    text = one_column_each(source.expandtabs(_TAB).rstrip())
    number = str(span.line)
    blank = " " * len(number)
    if span.column == 0:  # a whole line
        yield f"    {paint(f'{in_one_line(report.shown(span.path))}:{number}', 'dim')}"
        yield f"    {paint(f'{number} |', 'blue')} {text}"
        return
    start = len(source[: span.column - 1].expandtabs(_TAB))
    end = len(source[: span.end_column - 1].expandtabs(_TAB)) if span.end_line == span.line else len(text)
    yield f"    {paint(f'{number} |', 'blue')} {text}"
    yield f"    {paint(f'{blank} |', 'blue')} {' ' * start}{paint('^' * max(1, end - start), 'red', 'bold')}"
