"""A job: the command, how it ended, and what it prints, as it prints it."""

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


async def show(view: View) -> HtmlPage:
    """The page."""
    job = await find_job(view.context, view.caller, view.id)
    after = view.number("after") if view.word("after") else max(0, job.output_bytes - _SHOWN)
    piece = await view.context.runtime.jobs.aread(job.id, after, limit=_SHOWN)
    command = job.command if isinstance(job.command, str) else shlex.join(job.command)
    path = address("jobs", job.id)
    is_going_on = job.state in (JobState.STARTING, JobState.RUNNING)
    links = [
        tag("a", f"{piece.start:,} bytes before", href=view.link("jobs", job.id, after=max(0, piece.start - _SHOWN)))
        if piece.start
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
            panel(tag("b", f"✗ {_ending(job)}"), kind="failed"),
            data_copy_error=True,
        )
        if job.state is JobState.FAILED
        else None,
        _about(job),
        view.button(path, "Stop", scope=Scope.ACT, fields={"do": "stop"}, kind="danger") if is_going_on else None,
        tag("h2", "Output"),
        tag("nav", links, class_="pager", aria_label="More of the output") if any(links) else None,
        tag("pre", piece.text or "nothing yet", class_="output", tabindex="0", data_follow=is_going_on, id="output"),
    )
    return HtmlPage(f"{job.state}: {cut(command, 60)}", body, "promises", address(on="job", id=job.id)[1:])


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
