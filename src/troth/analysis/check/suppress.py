"""Silence findings by the comments beside them, and find the comments that silence nothing.

Only Troth's own comment counts here. What others say to other tools is looked at in `noqa.py`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.old_codes import current
from troth.analysis.selection import nearest_rule
from troth.analysis.source.allow import Allow

__all__ = ["UNUSED_ALLOW", "silence", "unused"]

UNUSED_ALLOW = ("TR002", "unused-allow")


def silence(
    findings: Iterable[Finding], allows: Sequence[Allow]
) -> tuple[list[Finding], list[Finding], set[tuple[Allow, str]]]:
    """Part findings into those that stand and those that are silenced; and say which comment did it by which name."""
    by_path: dict[str, list[Allow]] = {}
    for allow in allows:
        by_path.setdefault(allow.span.path, []).append(allow)
    standing: list[Finding] = []
    silenced: list[Finding] = []
    used: set[tuple[Allow, str]] = set()
    for finding in findings:
        speaking = [
            allow for allow in by_path.get(finding.span.path, ()) if allow.names_rule(finding) and allow.covers(finding)
        ]
        (silenced if speaking else standing).append(finding)
        meant = (finding.code, finding.rule)
        used.update((allow, name) for allow in speaking for name in allow.names if current(name) in meant)
    return standing, silenced, used


def unused(
    allows: Iterable[Allow],
    used: Collection[tuple[Allow, str]],
    rules: Mapping[str, str],
    *,
    is_on: Callable[[str, str], bool] = lambda _code, _name: True,
) -> list[Finding]:
    """A finding for each comment that silences nothing, or names no rule there is.

    Nothing is said of rules that are switched off: they might have spoken.
    """
    names = {name: code for code, name in rules.items()} | {code: code for code in rules}
    findings = []
    for allow in allows:
        if allow.codes:
            continue  # for another tool, which knows best whether it is needed
        idle = [name for name in allow.names if (allow, name) not in used]
        codes = {name: names.get(current(name)) for name in idle}
        idle = [name for name, code in codes.items() if code is None or is_on(code, rules[code])]
        if idle or not allow.names:
            findings.append(_idle_finding(allow, idle, rules, names))
    return findings


def _idle_finding(allow: Allow, idle: Sequence[str], rules: Mapping[str, str], names: Collection[str]) -> Finding:
    strangers = [name for name in idle if current(name) not in names]
    if not allow.names:
        message = f"`{allow.written()}` names no rule, so it silences nothing"
        reason = f"a comment silences the rules it names: `# troth: {allow.word} unawaited-coroutine`"
    elif strangers:
        message = f"`{allow.written(strangers[:1])}` silences nothing: there is no such rule"
        advice = nearest_rule(strangers[0], rules)
        reason = f"no rule is called {strangers[0]!r}: {advice[:1].lower()}{advice[1:].rstrip('.')}"
    else:
        where = "in this file" if allow.is_for_file else "here"
        message = f"`{allow.written(idle)}` silences nothing: no such finding exists {where}"
        reason = "if it stays, it hides the next such finding"
    keep = [name for name in allow.names if name not in idle]
    return Finding(
        code=UNUSED_ALLOW[0],
        rule=UNUSED_ALLOW[1],
        span=allow.span,
        message=message,
        confidence="certain",
        reasons=(Reason(reason, allow.span.path, allow.span.line),),
        fix=_removal(allow, keep),
        symbol="",
        subject=", ".join(idle),
    )


def _removal(allow: Allow, keep: Sequence[str]) -> Fix | None:
    if allow.start is None or allow.end is None:
        return None
    if keep and allow.names_start is not None and allow.names_end is not None:
        edit = Edit(allow.span.path, allow.names_start, allow.names_end, ", ".join(keep))
        return Fix("remove the unused names", "sure", (edit,))
    return Fix("remove the comment", "sure", (Edit(allow.span.path, allow.start, allow.end, ""),))
