"""Knows how `# troth: allow <rule>` silences a finding, and which of these comments silence nothing.

Only Troth's own comment counts here. What others say to other tools is looked at in `acknowledged.py`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.selection import nearest_rule
from troth.analysis.source.allow import Allow
from troth.analysis.source.lines import Lines, decode

__all__ = ["UNUSED_ALLOW", "silence", "unused"]

UNUSED_ALLOW = ("T002", "unused-allow")


def silence(
    findings: Iterable[Finding], allows: Sequence[Allow]
) -> tuple[list[Finding], list[Finding], set[tuple[Allow, str]]]:
    """Part findings into those that stand and those that are silenced; and say which comment did it by which name."""
    by_path: dict[str, list[Allow]] = {}
    for allow in allows:
        by_path.setdefault(allow.span.path, []).append(allow)
    kept: list[Finding] = []
    silenced: list[Finding] = []
    used: set[tuple[Allow, str]] = set()
    for finding in findings:
        speaking = [
            allow for allow in by_path.get(finding.span.path, ()) if allow.names_rule(finding) and allow.covers(finding)
        ]
        (silenced if speaking else kept).append(finding)
        used.update((allow, name) for allow in speaking for name in (finding.code, finding.rule) if name in allow.names)
    return kept, silenced, used


def unused(
    allows: Iterable[Allow],
    used: Collection[tuple[Allow, str]],
    rules: Mapping[str, str],
    lines: Lines,
    *,
    is_on: Callable[[str, str], bool] = lambda _code, _name: True,
) -> list[Finding]:
    """A finding for each comment that silences nothing, or names no rule there is.

    Nothing is said of rules that are switched off: they might have spoken.
    """
    names = {name: code for code, name in rules.items()} | {code: code for code in rules}
    found = []
    for allow in allows:
        if allow.codes:
            continue  # for another tool, which knows best whether it is needed
        idle = [name for name in allow.names if (allow, name) not in used]
        idle = [name for name in idle if name not in names or is_on(names[name], rules[names[name]])]
        if idle or not allow.names:
            found.append(_idle_finding(allow, idle, rules, names, lines))
    return found


def _idle_finding(
    allow: Allow, idle: Sequence[str], rules: Mapping[str, str], names: Collection[str], lines: Lines
) -> Finding:
    strangers = [name for name in idle if name not in names]
    if not allow.names:
        message = "`# troth: allow` names no rule, so it silences nothing"
        reason = "a comment silences the rules it names: `# troth: allow unawaited-coroutine`"
    elif strangers:
        message = f"`# troth: allow {strangers[0]}` silences nothing: there is no such rule"
        reason = nearest_rule(strangers[0], rules)
    else:
        message = f"`# troth: allow {', '.join(idle)}` silences nothing: nothing of the kind is found here"
        reason = "left standing, it would hide the next one"
    keep = [name for name in allow.names if name not in idle]
    return Finding(
        code=UNUSED_ALLOW[0],
        rule=UNUSED_ALLOW[1],
        span=allow.span,
        message=message,
        confidence="certain",
        reasons=(Reason(reason, allow.span.path, allow.span.line),),
        fix=_removal(allow, keep, lines),
        symbol="",
        subject=", ".join(idle),
    )


def _removal(allow: Allow, keep: Sequence[str], lines: Lines) -> Fix | None:
    if allow.start is None or allow.end is None:
        return None
    data = lines.data(allow.span.path)
    comment = decode(data)[allow.start : allow.end] if data is not None else ""
    text = ""
    if keep:
        head, _, rest = comment.partition(", ".join(allow.names))
        text = f"{head}{', '.join(keep)}{rest}" if head != comment else ""
    title = "take the comment away" if not text else "take the idle names away"
    return Fix(title, "sure", (Edit(allow.span.path, allow.start, allow.end, text),))
