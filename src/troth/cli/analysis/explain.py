"""Carry out `troth explain`."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.pipe import say
from troth.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from troth.analysis.log_lookup.locate import Located
    from troth.analysis.log_lookup.sites import LoggedSite
    from troth.analysis.report.rulebook import Rulebook, RulePage

__all__ = ["COMMAND"]

_WHAT_HAPPENED = {
    "never awaited": "was called and never awaited",
    "destroyed pending": "ran in a task that was destroyed before it had finished",
    "exception lost": "ran in a task that failed, and its exception was never retrieved",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `troth explain`."""
    parser.add_argument(
        "rule",
        nargs="?",
        metavar="RULE",
        help="a code such as TR101, or a name; a family such as TR1 or migrate is listed, and without it all are",
    )
    parser.add_argument(
        "--output-format", choices=("text", "json"), default="text", metavar="FORMAT", help="text (the default) or json"
    )
    parser.add_argument("--log", metavar="FILE", help="find the calls behind the warnings in a log; `-` is stdin")


def run(args: argparse.Namespace) -> int:
    """Tell about one rule, list all of them, or trace a log."""
    if args.log is not None:
        if args.rule is not None:
            raise MisuseError("A rule and `--log` cannot be combined.\nNothing was done.\nUse one of them at a time.")
        return _trace(args.log, as_json=args.output_format == "json")
    from troth.analysis.old_codes import OldCode, current, hint
    from troth.analysis.report.rulebook import rule_pages

    pages = rule_pages()
    family = list(pages) if args.rule is None else _family(pages, args.rule)
    if family:
        say([_as_json(pages, family)] if args.output_format == "json" else _list(pages, family))
        return Exit.CLEAN
    rule = current(args.rule.upper())
    if rule != args.rule.upper():
        sys.stderr.write(hint([OldCode(args.rule.upper(), "`troth explain`")]))
    code = next((code for code, name in pages.names.items() if rule in (code, name.upper())), None)
    page = None if code is None else pages[code]
    if page is None:
        from troth.analysis.selection import nearest_rule

        advice = nearest_rule(args.rule, pages.names)
        raise MisuseError(f"There is no rule {args.rule!r}.\nNothing was explained.\n{advice}")
    say(
        [_as_json(pages, [page.code])]
        if args.output_format == "json"
        else _tell(page, is_off=page.code in pages.on_request)
    )
    return Exit.CLEAN


def _as_json(pages: "Rulebook", codes: "Iterable[str]") -> str:
    from troth.analysis.report.explain_json import render_rules

    return render_rules(pages, codes)


def _family(pages: "Rulebook", word: str) -> list[str]:
    """The codes of the rules of a family, that is named as `--select` names it or as the list does; else none."""
    from troth.analysis.old_codes import current
    from troth.analysis.selection import meant

    name = word.lower().replace("-", " ")
    prefix = current(word.upper()) if meant(word.lower()) == word.lower() else meant(word.lower())
    return [code for code, page in pages.items() if page.family == name or (code != prefix and code.startswith(prefix))]


def _list(pages: "Rulebook", codes: "Iterable[str]") -> "Iterator[str]":
    listed = [pages[code] for code in codes]
    width = max(len(page.name) for page in listed)
    family = None
    for page in listed:
        if page.family != family:
            family = page.family
            yield f"{family}:"
        off = "  (off by default)" if page.code in pages.on_request else ""
        yield f"  {page.code}  {page.name:<{width}}  {page.title}{off}"
    yield f"\n`troth explain {listed[0].code if len(listed) < len(pages) else 'TR101'}` explains one of them."


def _tell(page: "RulePage", *, is_off: bool) -> "Iterator[str]":
    from troth.analysis.report.wrapping import wrapped
    from troth.cli.terminal import width_of

    width = width_of(sys.stdout)
    yield f"{page.code} {page.name}  ({page.family})"
    yield f"{page.title}."
    if is_off:
        yield from wrapped(f"Off by default: `--extend-select {page.name}` switches it on.", width)
    for heading, text in page.parts:
        yield ""
        for line in (f"{heading}: {text}" if heading else text).splitlines():
            yield from wrapped(line, width)
    for heading, is_bad in (("Reported", True), ("Left alone", False)):
        for example in [candidate for candidate in page.examples if candidate.is_bad is is_bad][:2]:
            yield ""
            yield from wrapped(f"{heading}: {example.title}", width)
            yield from (f"    {line}".rstrip() for line in example.code.rstrip().splitlines())
            if example.fixed:
                yield "  after `troth fix`:"
                yield from (f"    {line}".rstrip() for line in example.fixed.rstrip().splitlines())
    yield ""
    yield from wrapped(f"Silence one place with `# troth: allow {page.name}`. More: {page.url}", width)


def _trace(name: str, *, as_json: bool) -> int:
    from troth.analysis.check import CheckRequest, prepare
    from troth.analysis.log_lookup.locate import locate
    from troth.analysis.log_lookup.mentions import mentions
    from troth.analysis.pipeline import analyse
    from troth.analysis.report.content import plural
    from troth.analysis.report.place import shown_from
    from troth.analysis.source.lines import Lines
    from troth.cli.switches import switch

    text = _read(name)
    mentioned = mentions(text.splitlines())
    if not mentioned and not as_json:
        say([f"{name} mentions no lost call ({plural(len(text.splitlines()), 'line')} read)"])
        return Exit.CLEAN
    cwd = Path.cwd()
    prepared = prepare(CheckRequest(cwd=cwd, cache=not switch("TROTH_NO_CACHE")))
    project, root = prepared.scope.project, prepared.root.path
    if not project.files:
        raise MisuseError(
            f"There is no Python file in `{root}`, so no call can be found.\n"
            "Only the log was read.\nRun this in the project that wrote the log."
        )
    result = analyse(project, python=prepared.python(), cache=prepared.cache())
    lines = Lines(root)
    shown = shown_from(cwd, root)
    located = [locate(mention, result.findings, project.files, lines) for mention in mentioned]
    if as_json:
        from troth.analysis.report.explain_json import render_lost_calls

        say([render_lost_calls(located, root)])
    else:
        say(
            line
            for lost_call in located
            for line in _site(lost_call, shown, lambda site: lines.at(site.path, site.line).strip())
        )
    if result.crashes:
        from troth.analysis.crash import grouped
        from troth.cli.crash import incomplete

        return incomplete(grouped(result.crashes), prepared)
    lost = [lost_call for lost_call in located if not (lost_call.born or lost_call.findings or lost_call.calls)]
    return Exit.FOUND if lost else Exit.CLEAN


def _site(lost_call: "Located", shown: "Callable[[str], str]", text: "Callable[[LoggedSite], str]") -> "Iterator[str]":
    """What is known about one lost call; `text` gives the line of code at a place."""
    mention = lost_call.mention
    times = f" ({mention.times:,} times)" if mention.times > 1 else ""
    yield f"`{mention.name}` {_WHAT_HAPPENED[mention.kind]}{times}"
    for site in lost_call.definitions[:3]:
        yield f"  defined  {shown(site.path)}:{site.line}"
    if lost_call.born is not None:
        yield f"  made at  {shown(lost_call.born.path)}:{lost_call.born.line}  {text(lost_call.born)}"
    for finding in lost_call.findings:
        span = finding.span
        place = f"{shown(span.path)}:{span.line}:{span.column}"
        yield f"  lost at  {place}  {finding.code} {finding.rule}: {finding.message}"
    for site in lost_call.calls[:20] if lost_call.born is None else ():
        where = f" in {site.symbol}" if site.symbol else ""
        yield f"  called   {shown(site.path)}:{site.line}{where} ({site.use})  {text(site)}"
    if len(lost_call.calls) > 20 and lost_call.born is None:
        yield f"  … and {len(lost_call.calls) - 20:,} more places that call something with this name"
    if not (lost_call.born or lost_call.findings or lost_call.calls):
        yield (
            "  not found: nothing in this project calls something with that name; it may come from a package that the "
            "project uses"
        )
    yield ""


def _read(name: str) -> str:
    if name == "-":
        return sys.stdin.buffer.read().decode("utf-8", errors="replace")
    try:
        return Path(name).read_text(encoding="utf-8", errors="replace")
    except OSError as problem:
        raise MisuseError(
            f"The log `{name}` cannot be read: {problem.strerror or problem}.\n"
            "Nothing was done.\nName a file, or `-` for a log on stdin."
        ) from problem


COMMAND = Command(
    summary="explain a rule, or find the calls behind a log",
    description=(
        "Explains what a rule finds, why it matters and how to repair it, or finds the calls behind lines of a log\n"
        "that say “coroutine … was never awaited”, “Task was destroyed but it is pending” or the like."
    ),
    examples=(
        Example("troth explain", "list the rules"),
        Example("troth explain unused-allow", "explain one rule, by name or by code"),
        Example("troth explain TR101 --output-format json", "the same as JSON; without a rule, all rules"),
        Example("troth explain --log app.log", "find the lost calls that a log complains about"),
    ),
    add_arguments=add_arguments,
    run=run,
)
