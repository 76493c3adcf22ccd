"""Say on a page that something cannot be shown or done: what, why, and what to do."""

from starlette.requests import Request
from starlette.responses import Response

from troth.runtime.workflows.render.markup import Html, join, tag
from troth.server.access.sign_ins import visitor_of
from troth.server.errors import ApiError
from troth.server.pages.frame.layout import HtmlPage, answer, root_of
from troth.server.pages.frame.parts import address

__all__ = ["failure_page"]

_HEADINGS = {
    403: "This was refused",
    404: "Not found",
    409: "Not possible now",
    410: "It is gone",
    429: "Too many requests",
    503: "Temporarily unavailable",
}
_LONGEST = 100  # letters of an id


def _search(request: Request) -> Html | None:
    """The way to search for what was not found; none where whoever asks has not signed in."""
    thing = str(request.path_params.get("id", ""))
    if not thing or len(thing) > _LONGEST or not visitor_of(request).is_signed_in:
        return None
    href = f"{root_of(request)}{address('search', text=thing)}"
    return join(", or ", tag("a", f"search for {thing!r}", href=href), ".")


def failure_page(request: Request, error: ApiError) -> Response:
    """The page that tells of an error."""
    heading = _HEADINGS.get(error.status, "That did not work" if error.status < 500 else "The server failed at this")
    body = tag(
        "section",
        tag("h1", heading),
        tag("p", error.message, class_="message"),
        tag("p", error.advice) if error.advice else None,
        tag(
            "p",
            tag("a", "See what happens now", href=root_of(request)),
            _search(request) if error.status == 404 else None,
        ),
        class_="panel failed",
        role="alert",
    )
    return answer(request, HtmlPage(heading, body, status=error.status, headers=dict(error.headers)))
