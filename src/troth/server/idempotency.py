"""Do what a request asks for once, however often it is repeated.

A request with an `Idempotency-Key` is written down before anything is done. All ids that its work needs are made from
what was written down, so that a repetition after a crash goes on with the same run instead of beginning another one.
Its answer is kept: the same request is answered in the same way, another body under the same key is refused with 422,
and a repetition while the first one is at work with 409.

OpenAI's client repeats a request without such a key, and only counts (`x-stainless-retry-count`). A repetition is
joined with the request that it repeats: same owner, same route, same body. It waits for that one's answer. Its first
attempt may never have come here, while somebody asked the same an hour ago: a request that is older than the attempts
can be is not the one that is repeated. The client says how long it waits for an answer (`x-stainless-read-timeout`).
"""

import asyncio
import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Header, Request
from starlette.responses import Response

from troth.bridge import call
from troth.runtime.store import Transaction, commit_point
from troth.runtime.store.rows.server import RequestRow, ServerRows
from troth.server.access.scopes import Caller, caller_of
from troth.server.context import ServerContext, context_of
from troth.server.direct_route import resolved_by
from troth.server.errors import ApiError, as_api_error

__all__ = ["Once", "OnceDep", "Seed"]

REQUEST_CLAIM = commit_point(
    "server.request.claim", "that a request is being processed, before anything is done for it"
)
REQUEST_ANSWER = commit_point("server.request.answer", "the answer to a request, before the client gets it")
REQUEST_FREE = commit_point("server.request.free", "that a request is no longer being processed")

_JOIN = 0.1  # seconds between two looks at the request that a repetition has joined
_LONGEST_KEY = 255
_READ_TIMEOUT = 600.0  # seconds for which OpenAI's client waits for an answer where it does not say so
_PAUSE = 120.0  # seconds between two of its attempts: it believes a `Retry-After` up to this, and else waits 8 at most


@dataclass(frozen=True, slots=True)
class Seed:
    """What the ids of a request's work are made of. The same for all its repetitions."""

    base: str
    is_repeated: bool = False
    """Whether an earlier attempt at this very request may have done something already."""
    since: float = 0.0
    """When the request first came, where it is repeated."""

    def id(self, kind: str) -> str:
        """An id for something that the request begins: `run_…`, `conv_…`."""
        return f"{kind}_{hashlib.sha256(f'{self.base}/{kind}'.encode()).hexdigest()[:24]}"


class _Claim(NamedTuple):
    """What there is of a request, and whether it is for us to do it."""

    row: RequestRow
    is_ours: bool
    is_repeated: bool = False


Work = Callable[[Seed], Awaitable[Response]]


class Once:
    """For a creating route: `return await once(work)`. Done again with its seed, `work` has to be harmless."""

    def __init__(
        self,
        context: ServerContext,
        caller: Caller,
        key: str | None,
        fingerprint: str,
        retry: int | None,
        patience: float = _READ_TIMEOUT,
    ) -> None:
        self._context = context
        self._store = context.store
        self._owner = caller.owner
        self._fingerprint = fingerprint
        self._retry = retry
        self._oldest = 0.0 if retry is None else (patience + _PAUSE) * retry
        """How long ago, in seconds, the first attempt can have come that this one repeats."""
        self._is_joined = key is None and retry is not None
        self._key = f"body:{fingerprint}" if self._is_joined else None if key is None else f"key:{key}"

    async def __call__(self, work: Work) -> Response:
        """The answer of `work`, done now or before."""
        if self._context.is_draining:
            raise ApiError(503, "closing", "The server is shutting down and starts no new work.")
        if self._key is None:
            return await work(Seed(secrets.token_hex(16)))
        while True:
            claim = await self._store.acommit(REQUEST_CLAIM, self._claim)
            row = claim.row
            if claim.is_ours:
                return await self._work(work, claim)
            if row.fingerprint != self._fingerprint:
                raise ApiError(
                    422,
                    "idempotency_key_reused",
                    "This `Idempotency-Key` was already used with another route or body.",
                    param="Idempotency-Key",
                    advice="Use a new key for a new request.",
                )
            if row.answer is not None:
                return await self._again(row, work)
            if not self._is_joined:
                raise ApiError(
                    409,
                    "request_in_progress",
                    "The first request with this `Idempotency-Key` is still being processed.",
                    param="Idempotency-Key",
                    advice="Send it again after a moment.",
                    headers={"Retry-After": "1"},
                )
            await self._joined(row)

    async def _joined(self, row: RequestRow) -> None:
        """Wait until the request that this one repeats is answered, or nobody works at it any more."""

        def is_at_work(rows: ServerRows) -> bool:
            now = rows.request(row.owner, row.key)
            is_same = now is not None and now.base == row.base and now.answer is None and now.holder is not None
            return is_same and rows.is_alive(row.holder or "", self._store.clock())

        while await call(self._store.read_server, is_at_work):  # noqa: ASYNC110  it may be in another process
            await asyncio.sleep(_JOIN)

    def _claim(self, tx: Transaction) -> "_Claim":
        assert self._key is not None
        now = self._store.clock()
        row = tx.server.request(self._owner, self._key)
        is_first_of_client = self._is_joined and (
            not self._retry or row is None or now - row.created_at >= self._oldest
        )
        if row is not None and not is_first_of_client:
            is_free = row.holder is None or not tx.server.is_alive(row.holder, now)
            if row.answer is not None or row.fingerprint != self._fingerprint or not is_free:
                return _Claim(row, is_ours=False)
            row = row._replace(holder=self._context.owner.id)
            tx.server.put_request(row)
            return _Claim(row, is_ours=True, is_repeated=True)
        base = secrets.token_hex(16)
        row = RequestRow(self._owner, self._key, self._fingerprint, base, self._context.owner.id, None, now, None)
        tx.server.put_request(row)
        return _Claim(row, is_ours=True)

    async def _work(self, work: Work, claim: "_Claim") -> Response:
        row = claim.row
        try:
            response = await work(Seed(row.base, claim.is_repeated, row.created_at))
        except BaseException as problem:
            await asyncio.shield(asyncio.ensure_future(self._free(row, problem)))
            raise
        answer = json.dumps(_kept(response))
        now = self._store.clock()
        await self._store.acommit(
            REQUEST_ANSWER, lambda tx: tx.server.answer_request(row.owner, row.key, row.base, answer, now)
        )
        return response

    async def _free(self, row: RequestRow, problem: BaseException) -> None:
        """A refused request leaves nothing behind; one that failed may have done something, and keeps its seed."""
        is_refused = isinstance(problem, Exception) and as_api_error(problem, "").status < 500

        def work(tx: Transaction) -> None:
            if is_refused:
                tx.server.forget_request(row.owner, row.key, row.base)
            else:
                tx.server.answer_request(row.owner, row.key, row.base, None, 0.0)

        await self._store.acommit(REQUEST_FREE, work)

    async def _again(self, row: RequestRow, work: Work) -> Response:
        recorded: dict[str, Any] = json.loads(row.answer or "{}")
        if recorded["body"] is None:  # a stream: read it anew, from its start
            response = await work(Seed(row.base, is_repeated=True, since=row.created_at))
            response.headers["Idempotent-Replayed"] = "true"
            return response
        headers = {**recorded["headers"], "Idempotent-Replayed": "true"}
        return Response(recorded["body"].encode(), recorded["status"], headers)


def _kept(response: Response) -> dict[str, Any]:
    """What is kept of an answer. Of a stream only that there was one: it can be read again from what it follows."""
    names = ("content-type", "location", "retry-after", "preference-applied")
    headers = {name: response.headers[name] for name in names if name in response.headers}
    is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
    body = None if is_stream else bytes(response.body).decode()
    return {"status": response.status_code, "headers": headers, "body": body}


async def _once(request: Request) -> Once:
    headers = request.headers
    key = headers.get("idempotency-key")
    if key is not None and len(key) > _LONGEST_KEY:
        message = f"The `Idempotency-Key` has more than {_LONGEST_KEY} characters."
        raise ApiError(400, "invalid_field", message, param="idempotency-key")
    return await once_of(request, key, headers.get("x-stainless-retry-count"), headers.get("x-stainless-read-timeout"))


@resolved_by(_once)
async def once_of(
    request: Request,
    idempotency_key: Annotated[
        str | None, Header(description="makes a repetition of this request harmless", max_length=_LONGEST_KEY)
    ] = None,
    x_stainless_retry_count: Annotated[str | None, Header(include_in_schema=False)] = None,
    x_stainless_read_timeout: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Once:
    """What a creating route does its work through."""
    if len(request.headers.getlist("idempotency-key")) > 1:
        message = "The request has more than one `Idempotency-Key`, so it is not clear which one it is."
        raise ApiError(400, "invalid_idempotency_key", message, param="Idempotency-Key", advice="Send one of them.")
    if idempotency_key is not None and not idempotency_key.strip():
        raise ApiError(400, "invalid_idempotency_key", "The `Idempotency-Key` is empty.", param="Idempotency-Key")
    count = x_stainless_retry_count or ""
    retry = int(count) if count.isascii() and count.isdigit() and len(count) < 9 else None
    fingerprint = ""  # nobody asks for it where nothing can be repeated
    if idempotency_key is not None or retry is not None:
        scope = request.scope
        words = f"{request.method} {scope['path']}?{scope['query_string'].decode('latin-1')}\n".encode()
        fingerprint = hashlib.sha256(words + await request.body()).hexdigest()
    patience = _seconds(x_stainless_read_timeout)
    return Once(context_of(request), caller_of(request), idempotency_key, fingerprint, retry, patience)


def _seconds(word: str | None) -> float:
    """How long a client says it waits for an answer: 10 minutes where it says nothing that can be believed."""
    try:
        seconds = float(word or _READ_TIMEOUT)
    except ValueError:
        return _READ_TIMEOUT
    return seconds if 0 < seconds <= 86_400 else _READ_TIMEOUT


OnceDep = Annotated[Once, Depends(once_of)]
