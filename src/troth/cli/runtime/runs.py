"""Look at runs and go on with them: list, show, resume, replay, fork, diff, cancel, approve."""

import argparse
import getpass
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.html_output import add_html, write_page
from troth.cli.paging import add_page, check_page, following, moment_of
from troth.cli.pipe import kept_for_json, say, say_json, warn
from troth.cli.runtime.live import watched
from troth.cli.runtime.run import going_on, show_outcome
from troth.cli.stores import add_app, add_run, add_store, existing, find_run, looked_into, options_of
from troth.cli.terminal import Style, output_width
from troth.cli.verbs import add_verbs
from troth.errors import MisuseError

if TYPE_CHECKING:
    from troth.runtime.assemble import Runtime
    from troth.runtime.workflows.record.diff import Difference
    from troth.runtime.workflows.record.report import RunReport

__all__ = ["COMMAND"]

Verb = Callable[["Runtime", argparse.Namespace], int]
_LOOKS = ("list", "show", "replay", "diff")  # verbs that write nothing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs of `troth runs`, each with its own arguments."""
    add_verbs(parser, _VERBS, add_store, add_app)


def run(args: argparse.Namespace) -> int:
    """Do what the verb says, on a store that is there already."""
    with (looked_into if args.verb in _LOOKS else existing)(args) as runtime:
        return _VERBS[args.verb][2](runtime, args)


# ---- list, show


def _declare_list(parser: argparse.ArgumentParser) -> None:
    add_page(parser, "runs, the newest first")
    parser.add_argument("--state", metavar="STATE", help="only runs in this state, as in `failed` or `rolled back`")
    parser.add_argument("--workflow", metavar="NAME", help="only runs of this workflow")
    parser.add_argument("--session", metavar="ID", help="only runs that were started in this governed session")
    parser.add_argument(
        "--since", metavar="WHEN", help="only runs started since: a date, a time, or an age such as `2h`"
    )
    parser.add_argument("--until", metavar="WHEN", help="only runs started before")
    parser.add_argument("--text", metavar="TEXT", help="only runs with this text in their id, name or error")


def _list(runtime: "Runtime", args: argparse.Namespace) -> int:
    from troth.runtime.workflows.record.report import RunWord
    from troth.runtime.workflows.record.report_json import as_json
    from troth.runtime.workflows.render.text import table

    check_page(args)
    page = runtime.run_page(
        state=args.state,
        workflow=args.workflow,
        session=args.session,
        since=moment_of("since", args.since),
        until=moment_of("until", args.until),
        text=args.text,
        cursor=args.before,
        limit=args.limit,
    )
    reports, more = page.items, following(args, "troth runs list", page.next)
    if args.json:
        say_json([as_json(report, options_of(args)) for report in reports])
    elif reports or page.next is None:
        say([table(reports, width=output_width(), paint=Style(sys.stdout))])
        if not reports and args.state is None and runtime.lists.conversations(limit=1).items:
            say([f"There are conversations: `troth conversations list{options_of(args)}` shows them."])
    damaged = [report for report in reports if report.state is RunWord.DAMAGED]
    for report in damaged:
        warn(f"{report.id}: {report.error.message if report.error else report.state}")
    if more is not None:
        warn(f"There are more: {more}")
    return Exit.FOUND if damaged else Exit.CLEAN


def _declare_show(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    form = parser.add_mutually_exclusive_group()
    add_html(form)
    form.add_argument("--mermaid", action="store_true", help="print the graph as a Mermaid flowchart")
    form.add_argument("--follow", action="store_true", help="print events as they happen, until the run is over")


def _show(runtime: "Runtime", args: argparse.Namespace) -> int:
    from troth.runtime.workflows.record.report import RunWord
    from troth.runtime.workflows.record.report_json import as_json
    from troth.runtime.workflows.render.html import page
    from troth.runtime.workflows.render.mermaid import mermaid
    from troth.runtime.workflows.render.printable import printable_text
    from troth.runtime.workflows.render.text import draw

    run_id = find_run(runtime, args.run)
    if args.follow:
        for event in runtime.events(run_id):
            if not (say_json(event.as_json(), indent=None) if args.json else say([printable_text(str(event))])):
                break
        return Exit.CLEAN
    report = runtime.show(run_id, talks=not args.mermaid)
    if args.json:
        say_json(as_json(report, options_of(args)))
    elif args.mermaid:
        say([mermaid(report)])
    elif args.html:
        is_readable = report.state is not RunWord.DAMAGED
        events, last, _ = runtime.event_pages(run_id).read(0) if is_readable else ([], 0, True)
        write_page(args.html, page(report, options_of(args), events, later=last - len(events)))
    else:
        say([draw(report, width=output_width(), paint=Style(sys.stdout), options=options_of(args))])
    return Exit.CLEAN


# ---- going on


def _declare_resume(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    changed = parser.add_mutually_exclusive_group()
    changed.add_argument(
        "--accept-changes", action="store_true", help="continue even though the workflow or its code has changed"
    )
    changed.add_argument(
        "--as-recorded", action="store_true", help="continue with the recorded version of the workflow"
    )
    parser.add_argument(
        "--budget",
        action="append",
        default=[],
        metavar="LIMIT=VALUE",
        help="a larger budget, as in `tokens=5000`, `time=2h`, `steps=none`; may be given several times",
    )
    parser.add_argument("--wait", action="store_true", help="wait until questions for people are answered elsewhere")


def _resume(runtime: "Runtime", args: argparse.Namespace) -> int:
    run_id = find_run(runtime, args.run)
    steps = sum(1 for step in runtime.show(run_id).steps if not step.is_undo)
    with watched(runtime, run_id, steps), going_on(args, run_id), kept_for_json(args.json):
        report = _resumed(runtime, run_id, args)
    return show_outcome(report, args)


def _resumed(runtime: "Runtime", run_id: str, args: argparse.Namespace) -> "RunReport":
    return runtime.resume(
        run_id,
        accept_changes=args.accept_changes,
        as_recorded=args.as_recorded,
        budget=dict(map(_limit, args.budget)),
        check=False,
        wait=args.wait,
    )


def _limit(pair: str) -> tuple[str, object]:
    """A limit of a budget from the command line; `none` takes it away."""
    name, equals, text = pair.partition("=")
    if not equals:
        raise MisuseError(f"`--budget {pair}` has no value; write `--budget {pair}=VALUE`. Nothing was done.")
    if text == "none":
        return name, None
    try:
        return name, json.loads(text)
    except json.JSONDecodeError:
        return name, text


def _replay(runtime: "Runtime", args: argparse.Namespace) -> int:
    with kept_for_json(args.json):
        replay = runtime.replay(find_run(runtime, args.run))
    if args.json:
        whole = {"steps": replay.steps, "ending": replay.ending, "output": replay.output, "differs": replay.differs}
        say_json(whole)
    else:
        say([replay.differs or f"workflow and record agree: {replay.steps} recorded answers, {replay.ending}"])
    return Exit.FOUND if replay.differs else Exit.CLEAN


def _declare_fork(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument(
        "--from", dest="step", metavar="STEP", help="the first step to run again (default: all of them)"
    )
    parser.add_argument("--wait", action="store_true", help="wait until questions for people are answered elsewhere")


def _fork(runtime: "Runtime", args: argparse.Namespace) -> int:
    with kept_for_json(args.json):
        report = runtime.fork(find_run(runtime, args.run), args.step, check=False, wait=args.wait)
    return show_outcome(report, args)


# ---- comparing


def _declare_diff(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument(
        "other",
        nargs="?",
        metavar="OTHER",
        help="the run to compare with; without it, the states of the run at two points are compared",
    )
    parser.add_argument("--from", dest="since", metavar="STEP", help="from the end of this step (default: the start)")
    parser.add_argument("--to", dest="until", metavar="STEP", help="to the end of this step (default: now)")


def _diff(runtime: "Runtime", args: argparse.Namespace) -> int:
    from troth.runtime.workflows.record.diff import diff, diff_between

    report = runtime.show(find_run(runtime, args.run))
    if args.other is None:
        differences = diff_between(report, args.since, args.until)
        head = (f"{report.id} after {args.since or 'nothing'}", f"{report.id} after {args.until or 'all so far'}")
        return _told_diff(differences, *head, "no difference", args)
    if args.since or args.until:
        raise MisuseError(
            "`--from` and `--to` name two moments of one run, so they cannot be combined with a second run.\n"
            "Nothing was done."
        )
    second = runtime.show(find_run(runtime, args.other))
    return _told_diff(diff(report, second), report.id, second.id, "no difference except the times", args)


def _told_diff(
    differences: "Sequence[Difference]", first_title: str, second_title: str, none: str, args: argparse.Namespace
) -> int:
    from troth.runtime.workflows.render.words import value

    if args.json:
        say_json([each.as_json() for each in differences])
        return Exit.FOUND if differences else Exit.CLEAN
    paint = Style(sys.stdout)
    say([f"- {first_title}\n+ {second_title}" if differences else none])
    for each in differences:
        say([f"  {each.path}"])
        if each.is_in_one:
            say([paint(f"    - {value(each.one, output_width() - 6)}", "red")])
        if each.is_in_other:
            say([paint(f"    + {value(each.other, output_width() - 6)}", "green")])
    return Exit.FOUND if differences else Exit.CLEAN


# ---- ending, answering


def _declare_cancel(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument(
        "--no-wait", action="store_true", help="request it and return; the process that runs it undoes it"
    )


def _cancel(runtime: "Runtime", args: argparse.Namespace) -> int:
    from troth.runtime.workflows.record.report import RunWord

    run_id = find_run(runtime, args.run)
    before = runtime.show(run_id)
    is_left = before.can_be_undone or before.state in (RunWord.CANCELLED, RunWord.ROLLBACK_INCOMPLETE)
    if before.is_over and not is_left:
        raise MisuseError(f"The run {run_id!r} is {before.state}; there is nothing left to cancel. Nothing was done.")
    with kept_for_json(args.json):
        report = runtime.cancel(run_id, wait=not args.no_wait)
    show_outcome(report, args)
    return Exit.CLEAN if report.state in (RunWord.CANCELLED, RunWord.ROLLED_BACK) or args.no_wait else Exit.FOUND


def _declare_approve(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--step", metavar="STEP", help="which question, if there are several")
    parser.add_argument("--deny", action="store_true", help="say no")
    parser.add_argument("--by", metavar="NAME", default=None, help="who answers (default: you)")
    parser.add_argument("--note", metavar="TEXT", help="a note for the record")
    parser.add_argument(
        "--no-resume", action="store_true", help="record the answer only; another process continues the run"
    )


def _approve(runtime: "Runtime", args: argparse.Namespace) -> int:
    run_id = find_run(runtime, args.run)
    if not args.no_resume:
        with kept_for_json(args.json):
            runtime.prepare(run_id)  # an answer is not taken by somebody who then cannot continue
    runtime.approve(run_id, args.step, deny=args.deny, by=args.by or _me(), note=args.note)
    if args.no_resume:
        return show_outcome(runtime.show(run_id), args)
    with kept_for_json(args.json):
        report = runtime.attach(run_id, check=False, wait=False)
    return show_outcome(report, args)


def _me() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container whose user has no name
        return "somebody"


_VERBS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], Verb]] = {
    "list": ("list the newest runs", _declare_list, _list),
    "show": ("show the outcome of each step, with a timeline", _declare_show, _show),
    "resume": ("resume a run where it stopped", _declare_resume, _resume),
    "replay": ("replay a run's decisions from its record; no step runs", add_run, _replay),
    "fork": ("start a new run with the results of another up to a step", _declare_fork, _fork),
    "diff": ("show what differs between two runs, or between two steps of one", _declare_diff, _diff),
    "cancel": ("end a run and undo what it did", _declare_cancel, _cancel),
    "approve": ("answer the question that a run waits for, and resume it", _declare_approve, _approve),
}

COMMAND = Command(
    summary="inspect and resume runs",
    description="Shows the runs in a store and resumes them.",
    examples=(
        Example("troth runs list", "the newest runs, with their states"),
        Example("troth runs list --workflow order --state failed --since 2h", "failed in the last two hours"),
        Example("troth runs show last", "the newest run: steps, attempts, timeline"),
        Example("troth runs show last --html run.html", "the same as a self-contained page"),
        Example("troth runs resume last", "resume at the step that failed"),
        Example("troth runs approve last --note 'fine with me'", "answer its question and resume it"),
        Example("troth runs resume last --budget tokens=5000", "resume with a larger budget"),
        Example("troth runs diff last --from charge --to ship", "what the second of two steps added to a run's state"),
        Example("troth runs show last --follow", "its events, as they happen"),
        Example("troth runs fork last --from ship", "start a new run from a step"),
    ),
    add_arguments=add_arguments,
    run=run,
)
