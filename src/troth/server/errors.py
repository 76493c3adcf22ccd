"""Answer what goes wrong: one shape for all routes, which OpenAI's clients read, too.

    {"error": {"message": …, "type": …, "param": …, "code": …, "advice": …, "request_id": …}}

`message` says what happened, `param` which field is meant, `advice` what to do; `code` is for programs and does not
change. Our own faults are 500 with an id that the log has.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from troth.errors import InternalError, MisuseError, RunError, TrothError
from troth.runtime.conversations.errors import AlreadyRunning, ConversationClosed, TooManyRuns
from troth.runtime.engine.errors import EngineClosedError, UnknownRunError
from troth.runtime.jobs.errors import ForeignJobError, JobStartError, UnknownJobError
from troth.runtime.promises.errors import (
    ForeignPromiseError,
    NotSettledError,
    PromiseRefused,
    UnknownDeliveryError,
    UnknownPromiseError,
)
from troth.runtime.sessions.errors import (
    CannotJoinError,
    NotAMemberError,
    RefusedError,
    SessionNotEndedError,
    SessionStateError,
    UnknownActionError,
    UnknownSessionError,
)
from troth.runtime.store import ReadOnlyStoreError, StoreBusyError, StoreError
from troth.runtime.workflows.execute.failures import WrongInputsError
from troth.server.webhooks.errors import TakenError, UnknownWebhookError, WebhookRefusedError

__all__ = [
    "ApiError",
    "ErrorBody",
    "ErrorDetails",
    "as_api_error",
    "as_field_error",
    "body_of",
    "not_found",
    "unreadable",
]

log = logging.getLogger("troth.server")

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    410: "gone_error",
    429: "rate_limit_error",
}


class ErrorDetails(BaseModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None = None
    code: str
    advice: str | None = None
    request_id: str | None = None


class ErrorBody(BaseModel):
    """The body of every answer that is not a success."""

    error: ErrorDetails


class ApiError(TrothError):
    """Raised by a route: the status, a code for programs, and words for people."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        advice: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.advice = advice
        self.headers = dict(headers or {})
        if status in (429, 503):
            self.headers.setdefault("Retry-After", "1")

    @property
    def type(self) -> str:
        """The word for this family of errors."""
        return _TYPES.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")


def body_of(error: ApiError, request_id: str | None = None) -> dict[str, Any]:
    """The body that tells of `error`."""
    details = {
        "message": error.message,
        "type": error.type,
        "param": error.param,
        "code": error.code,
        "advice": error.advice,
        "request_id": request_id,
    }
    return {"error": details}


def not_found(what: str, name: str, advice: str | None = None) -> ApiError:
    """There is none, or it belongs to another owner: both are told alike."""
    return ApiError(404, f"{what}_not_found", f"There is no {what} {name!r} here.", advice=advice)


def as_field_error(errors: Sequence[Mapping[str, Any]]) -> ApiError:
    """What is told of a request that is not as it is declared: `errors` are pydantic's words for it, places and all.

    A field that may be several things has an error for each. Told is the one that leads furthest in: what was sent is
    most like that; where none does, all of them are.
    """
    wrong = errors[0]
    same = [error for error in errors if error["loc"][:2] == wrong["loc"][:2]]
    deepest = max(len(_place(error)) for error in same)
    same = [error for error in same if len(_place(error)) == deepest]
    wrong = same[0]
    where, *path = _place(wrong)
    field = ".".join(path)
    if wrong["type"] == "json_invalid":
        message = f"The body is not JSON: {wrong['ctx']['error']}."
        return ApiError(400, "invalid_json", message, param="body", advice="Send one JSON object, in UTF-8.")
    if wrong["type"] == "extra_forbidden":
        return ApiError(
            400,
            "unknown_field",
            f"The field `{field}` is not supported, so nothing was done.",
            param=field,
            advice="Omit it. Fields that the server does not support are refused, not ignored.",
        )
    if wrong["type"] in ("model_attributes_type", "model_type"):
        subject = f"The field `{field}`" if field else f"The {where}"
        return ApiError(400, "invalid_field", f"{subject} is not a JSON object.", param=field or where)
    subject = f"The field `{field}`" if where == "body" and field else f"`{field or where}`"
    said = dict.fromkeys(
        f"{error['msg'][0].lower()}{error['msg'][1:]}" for error in same if _place(error) == _place(wrong)
    )
    return ApiError(400, "invalid_field", f"{subject} is wrong: {', or '.join(said)}.", param=field or where)


def _place(wrong: Mapping[str, Any]) -> list[str]:
    """Where it is, without the names of the types that the field may have."""
    place = [str(part) for part in wrong["loc"]]
    return [part for part in place if part not in _BRANCHES]


_BRANCHES = {"str", "list[dict[str,any]]", "NamedConversation"}
"""How pydantic calls the types of fields that may be several things."""


def unreadable(cause: BaseException) -> ApiError:
    """What is told of a body that no JSON can be read from, although it may look like it."""
    if isinstance(cause, UnicodeDecodeError):
        why = f"byte {cause.start} is not UTF-8"
    elif isinstance(cause, RecursionError):
        why = "lists and objects in it are nested too deeply"
    else:
        why = "a number in it has too many digits" if "digits" in str(cause) else "it is damaged"
    message = f"The body cannot be read as JSON: {why}."
    return ApiError(400, "invalid_json", message, param="body", advice="Send one JSON object, in UTF-8.")


_KNOWN: tuple[tuple[type[Exception], int, str], ...] = (
    (UnknownWebhookError, 404, "webhook_not_found"),
    (TakenError, 409, "webhook_exists"),
    (WebhookRefusedError, 400, "webhook_refused"),
    (UnknownSessionError, 404, "session_not_found"),
    (NotAMemberError, 404, "member_not_found"),
    (UnknownActionError, 501, "action_not_registered"),
    (RefusedError, 403, "refused_by_session"),
    (SessionStateError, 409, "wrong_session_state"),
    (CannotJoinError, 409, "cannot_join"),
    (SessionNotEndedError, 409, "session_not_ended"),
    (UnknownRunError, 404, "run_not_found"),
    (UnknownPromiseError, 404, "promise_not_found"),
    (ForeignPromiseError, 404, "promise_not_found"),
    (UnknownDeliveryError, 404, "delivery_not_found"),
    (UnknownJobError, 404, "job_not_found"),
    (ForeignJobError, 404, "job_not_found"),
    (JobStartError, 400, "job_not_started"),
    (AlreadyRunning, 409, "already_running"),
    (TooManyRuns, 503, "too_many_runs"),
    (NotSettledError, 409, "not_settled"),
    (PromiseRefused, 409, "promise_refused"),
    (ReadOnlyStoreError, 503, "store_read_only"),
    (StoreBusyError, 503, "store_busy"),
    (EngineClosedError, 503, "closing"),
    (ConversationClosed, 503, "closing"),
    (StoreError, 500, "store_failed"),
    (InternalError, 500, "internal_error"),
    (MisuseError, 400, "invalid_request"),
    (RunError, 500, "run_failed"),
)


def _parted(text: str) -> tuple[str, str]:
    """What happened, with the list that may follow it in indented lines, and what to do."""
    first, *rest = text.split("\n")
    count = next((number for number, line in enumerate(rest) if not line.startswith("  ")), len(rest))
    return " ".join([first, *(line.strip() for line in rest[:count])]), "\n".join(rest[count:])


def as_api_error(problem: BaseException, request_id: str | None = None) -> ApiError:
    """What is told of an exception. A fault of ours is written to the log, and told by its id alone."""
    if isinstance(problem, ApiError):
        return problem
    for kind, status, code in _KNOWN:
        if isinstance(problem, kind) and (status < 500 or status == 501):
            message, advice = _parted(str(problem))
            param = "inputs" if isinstance(problem, WrongInputsError) else None
            return ApiError(status, code, message, param=param, advice=advice or None)
        if isinstance(problem, kind) and status == 503:
            return ApiError(503, code, "The server cannot do this at the moment.", advice="Try again after a moment.")
    log.error("Request %s failed.", request_id, exc_info=problem)
    code = next((code for kind, _, code in _KNOWN if isinstance(problem, kind)), "internal_error")
    return ApiError(
        500,
        code,
        f"The server failed at this request. Its log has the details under the id {request_id!r}.",
        advice="Try again; if it fails again, give the id to the operator of the server.",
    )
