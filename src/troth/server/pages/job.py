"""A job: the command, how it ended, and what it prints, as it prints it."""

from troth.runtime.jobs.records import JobRecord, JobState
from troth.runtime.workflows.render.markup import Html, cut, join, tag
from troth.server.access.scopes import Scope, check_scope
from troth.server.errors import ApiError
from troth.server.pages.frame.layout import Page
from troth.server.pages.frame.parts import address, badge, fact, facts, moment
from troth.server.pages.frame.view import View
from troth.server.routes.jobs import find_job

__all__ = ["act", "show"]

_SHOWN = 60_000  # bytes of output: its end, or from where the address says


async def show(view: View) -> Page:
    """The page."""
    job = await find_job(view.context, view.caller, view.id)
    after = view.number("after") if view.word("after") else max(0, job.output_bytes - _SHOWN)
    piece = await view.context.runtime.jobs.aread(job.id, after, limit=_SHOWN)
    command = job.command if isinstance(job.command, str) else " ".join(job.command)
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
        _about(job),
        view.button(path, "Stop it", scope=Scope.ACT, fields={"do": "stop"}, kind="danger") if is_going_on else None,
        tag("h2", "Output"),
        tag("nav", links, class_="pager", aria_label="More of the output") if any(links) else None,
        tag("pre", piece.text or "nothing yet", class_="output", tabindex="0", data_follow=is_going_on, id="output"),
    )
    return Page(f"{job.state}: {cut(command, 60)}", body, "promises", address(on="job", id=job.id)[1:])


def _about(job: JobRecord) -> Html:
    return facts(
        fact("it", cut(job.text, 1000)),
        fact("started", moment(job.created_at)),
        fact("ended", moment(job.ended_at)) if job.ended_at else None,
        fact("exit code", job.exit_code) if job.exit_code is not None else None,
        fact("in", tag("code", job.cwd)),
        fact("printed", f"{job.output_bytes:,} bytes"),
    )


async def act(view: View, form: dict[str, str]) -> str:
    """Stop it."""
    check_scope(view.caller, Scope.ACT)
    job = await find_job(view.context, view.caller, view.id)
    if form.get("do") != "stop":
        raise ApiError(400, "invalid_request", "This button is not known here, so nothing was done.")
    await view.context.runtime.jobs.astop(job.id)
    return address("jobs", job.id)
