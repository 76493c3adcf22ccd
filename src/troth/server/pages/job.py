"""A job: the command, how it ended, and what it prints, as it prints it."""

import re
import shlex

from troth.runtime.jobs.outcome import title_of
from troth.runtime.jobs.records import JobRecord, JobState
from troth.runtime.workflows.render.markup import Html, cut, join, tag
from troth.server.access.scopes import Scope, check_scope
from troth.server.errors import ApiError
from troth.server.pages.frame.layout import HtmlPage
from troth.server.pages.frame.parts import address, badge, fact, facts, moment, panel
from troth.server.pages.frame.view import View
from troth.server.routes.jobs import find_job

__all__ = ["act", "show"]

_SHOWN = 60_000  # bytes of output: its end, or from where the address says
_LONGEST = 2000  # letters of a line that is left out where only its end would be shown
_FEW, _LAST = 12, 6  # lines that a screen has beside the rest; those at the end that are told with the failure
_COLORS = re.compile(r"\x1b\[[0-9;]*m")


async def show(view: View) -> HtmlPage:
    """The page."""
    job = await find_job(view.context, view.caller, view.id)
    after = view.number("after") if view.word("after") else max(0, job.output_bytes - _SHOWN)
    piece = await view.context.runtime.jobs.aread(job.id, after, limit=_SHOWN)
    start, text = _whole_lines(piece.start, piece.text)
    output = _plain(text)
    command = job.command if isinstance(job.command, str) else shlex.join(job.command)
    path = address("jobs", job.id)
    is_going_on = job.state in (JobState.STARTING, JobState.RUNNING)
    links = [
        tag("a", f"{start:,} bytes before", href=view.link("jobs", job.id, after=max(0, start - _SHOWN)))
        if start
        else None,
        tag("a", "to the end", href=view.link("jobs", job.id)) if piece.end < piece.size else None,
    ]
    body = join(
        tag(
            "div", tag("h1", "Job"), badge(job.state), tag("code", job.id, class_="id", data_copy="id"), class_="title"
        ),
        tag("pre", cut(command, 4000), class_="command"),
        tag(
            "div",
            panel(
                tag("b", f"✗ {_ending(job)}"),
                _last_words(output) if piece.end == piece.size else None,
                kind="failed",
            ),
            data_copy_error=True,
        )
        if job.state is JobState.FAILED
        else None,
        _about(job),
        view.button(path, "Stop", scope=Scope.ACT, fields={"do": "stop"}, kind="danger") if is_going_on else None,
        tag("h2", "Output"),
        tag("nav", links, class_="pager", aria_label="More of the output") if any(links) else None,
        tag(
            "pre",
            output or ("nothing yet" if is_going_on else "It printed nothing."),
            class_="output",
            tabindex="0",
            data_follow=is_going_on or job.state is JobState.FAILED,
            id="output",
        ),
    )
    return HtmlPage(f"{job.state}: {cut(command, 60)}", body, "promises", address(on="job", id=job.id)[1:])


def _plain(text: str) -> str:
    """What was printed, without the colors of a terminal; a line that was written over another one stands below it."""
    return _COLORS.sub("", text).replace("\r\n", "\n").replace("\r", "\n")


def _whole_lines(start: int, text: str) -> tuple[int, str]:
    """The output from the beginning of a line, and at which byte that is; a very long line begins in its middle."""
    first, newline, rest = text.partition("\n")
    if not start or not newline or not rest or len(first) > _LONGEST:
        return start, text
    return start + len(f"{first}\n".encode("utf-8", "replace")), rest


def _last_words(output: str) -> Html | None:
    """The last lines of a long output: most programs say at their end why they failed."""
    lines = output.rstrip().splitlines()
    if len(lines) <= _FEW:
        return None
    return join(
        tag("p", "It printed last:", class_="soft"),
        tag("pre", "\n".join(cut(line, 200) for line in lines[-_LAST:]), class_="tail"),
    )


def _ending(job: JobRecord) -> str:
    """How it stands or ended, without the command, which stands above."""
    return cut(job.text.removeprefix(f"{title_of(job.command)} "), 1000)


def _about(job: JobRecord) -> Html:
    return facts(
        fact("outcome", _ending(job)) if job.ended_at and job.state is not JobState.FAILED else None,
        fact("started", moment(job.created_at)),
        fact("ended", moment(job.ended_at)) if job.ended_at else None,
        fact("exit code", job.exit_code) if job.exit_code is not None else None,
        fact("folder", tag("code", job.cwd)),
        fact("printed", f"{job.output_bytes:,} bytes"),
    )


async def act(view: View, form: dict[str, str]) -> str:
    """Stop it."""
    check_scope(view.caller, Scope.ACT)
    job = await find_job(view.context, view.caller, view.id)
    if form.get("do") != "stop":
        raise ApiError(400, "invalid_request", "This button is not supported, so nothing was done.")
    await view.context.runtime.jobs.astop(job.id)
    return address("jobs", job.id)
