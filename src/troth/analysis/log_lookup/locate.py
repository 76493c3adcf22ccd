"""Find which places of a project a lost call in a log comes from, the surest first."""

from collections.abc import Sequence
from dataclasses import dataclass

from troth.analysis.findings import Finding
from troth.analysis.log_lookup.mentions import LoggedCall
from troth.analysis.log_lookup.sites import LoggedSite, calls_of, definitions_of
from troth.analysis.source.lines import Lines

__all__ = ["Located", "locate"]


@dataclass(frozen=True, slots=True)
class Located:
    """What is known about one mention.

    `born` is the place the log itself names; `findings` are lost calls of that function that analysis proves; `calls`
    are the places that call something of the name, given where there is no finding; `definitions` are the function.
    """

    mention: LoggedCall
    born: LoggedSite | None
    definitions: tuple[LoggedSite, ...]
    findings: tuple[Finding, ...]
    calls: tuple[LoggedSite, ...]


def locate(mention: LoggedCall, findings: Sequence[Finding], files: Sequence[str], lines: Lines) -> Located:
    """Look for the call behind `mention`; `findings` are those of the whole project."""
    definitions = definitions_of(mention.name, files, lines)
    places = {(site.path, site.line) for site in definitions}
    last = mention.name.rpartition(".")[2]
    pointing, naming = [], []
    for finding in findings:
        if any((reason.path, reason.line) in places for reason in finding.reasons):
            pointing.append(finding)
        elif finding.subject.partition("(")[0].rpartition(".")[2] == last:
            naming.append(finding)
    calls = calls_of(mention.name, files, lines)
    likely = [site for site in calls if site.use != "awaited"]
    lost = pointing or naming
    if mention.kind != "never awaited":  # it ran, in a task: the task is what was lost
        tasks = [site for site in calls if site.use == "task"]
        likely = tasks or likely
        lost = [finding for finding in findings if _holds(finding, tasks)]
    return Located(
        mention, _born(mention, files), tuple(definitions), tuple(lost), () if lost else tuple(likely or calls)
    )


def _holds(finding: Finding, tasks: Sequence[LoggedSite]) -> bool:
    """Whether a finding is about one of the places where such a task is made."""
    span = finding.span
    return any(site.path == span.path and span.line <= site.line <= span.end_line for site in tasks)


def _born(mention: LoggedCall, files: Sequence[str]) -> LoggedSite | None:
    """The place that the log names, if it is in the project; a log from elsewhere has other folders above."""
    if not mention.is_birth or mention.file is None or mention.line is None:
        return None
    file = mention.file.replace("\\", "/")
    matching = [path for path in files if file == path or file.endswith(f"/{path}")]
    if not matching:
        return None
    return LoggedSite(max(matching, key=len), mention.line, "")
