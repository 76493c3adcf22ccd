"""Send deliveries to one receiver over HTTP. Only an answer of 2xx is a delivery."""

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from troth import __version__
from troth.runtime.channels import Binding, Capability, Channel, Delivery, Receipt, bind
from troth.runtime.promises import RetryPolicy
from troth.server.json_response import encoded
from troth.server.telemetry import tracing
from troth.server.telemetry.names import Attribute, SpanName
from troth.server.webhooks.addresses import Allowed
from troth.server.webhooks.endpoint import Endpoint
from troth.server.webhooks.name_resolution import InsideError, Resolve, UnknownHostError, resolve
from troth.server.webhooks.payload import body_of
from troth.server.webhooks.retry_after import seconds_until
from troth.server.webhooks.signature import headers_for

__all__ = ["OVER_THREE_DAYS", "Sending", "WebhookChannel"]

log = logging.getLogger("troth.webhooks")

OVER_THREE_DAYS = RetryPolicy(limit=10, over=3 * 86400.0, first=5.0, longest=6 * 3600.0, send_timeout=30.0)
"""After 5, 10, 20 seconds and so on, every six hours in the end, for three days: about 22 attempts."""


@dataclass(frozen=True, slots=True)
class Sending:
    """How all receivers of a server are reached. `timeout` is for a whole attempt, in seconds."""

    allowed: Allowed
    timeout: float = 20.0
    policy: RetryPolicy = OVER_THREE_DAYS
    look_up: Resolve = resolve
    tls: ssl.SSLContext | None = None
    clock: Callable[[], float] = time.time
    trace_of: Callable[[str], Mapping[str, str]] = lambda _: {}
    """To which trace a promise belongs."""


class WebhookChannel(Channel):
    """One receiver. What it is changes while deliveries go on, so it is asked for at every attempt."""

    name = "webhook"

    def __init__(
        self,
        endpoint_id: str,
        name: str,
        look: Callable[[str], Endpoint | None],
        gone: Callable[[str, Delivery, str], Awaitable[None]],
        sending: Sending,
    ) -> None:
        self.name = name
        self.endpoint_id = endpoint_id
        self._look = look
        self._gone = gone
        self._sending = sending

    @property
    def capability(self) -> Capability:
        """PUSH while the receiver wants anything. What comes after that is stored for whoever asks."""
        endpoint = self._look(self.endpoint_id)
        return Capability.PUSH if endpoint is not None and endpoint.is_enabled else Capability.STORE

    @contextmanager
    def session(self, session: str) -> Iterator[Binding]:
        """Bind what is begun in the block to `session`. What it promises is sent to the receiver."""
        with bind(session, self) as binding:
            yield binding

    async def send(self, delivery: Delivery) -> Receipt:
        """Post it once. Whatever goes wrong is a refusal, which is tried again by the schedule."""
        endpoint = self._look(self.endpoint_id)
        if endpoint is None or not endpoint.is_enabled:
            return Receipt.refused("the receiver is disabled")
        values = {Attribute.DELIVERY: delivery.id, Attribute.CHANNEL: self.name, Attribute.ATTEMPT: delivery.attempt}
        parent = self._sending.trace_of(delivery.promise) if tracing.is_used() else {}
        with tracing.span(SpanName.DELIVERY, values, parent=parent) as span:
            receipt = await self._attempt(endpoint, delivery)
            span.set({Attribute.RECEIPT: receipt.outcome})
            if receipt.outcome == "refused":
                span.fail(receipt.why or "")
            return receipt

    async def _attempt(self, endpoint: Endpoint, delivery: Delivery) -> Receipt:
        from troth.server.webhooks.guarded_connect import FAULTS  # late: httpcore takes long to import

        try:
            async with asyncio.timeout(self._sending.timeout):
                status, retry_after = await self._post(endpoint, delivery)
        except TimeoutError:
            return Receipt.refused(f"no answer within {self._sending.timeout:g} s")
        except (InsideError, UnknownHostError) as refused:
            return Receipt.refused(str(refused))
        except FAULTS as problem:
            return Receipt.refused(f"{type(problem).__name__}: {problem}".rstrip(": "))
        finally:
            await asyncio.sleep(0)  # a loop that is closed right now would leave the socket open
        return await self._judge(delivery, status, retry_after)

    async def _post(self, endpoint: Endpoint, delivery: Delivery) -> tuple[int, str | None]:
        """The status of the answer, and its `Retry-After`. Its body is not read: nobody needs it."""
        import httpcore

        from troth.server.webhooks.guarded_connect import GuardedBackend

        now = self._sending.clock()
        body = body_of(delivery, now)
        headers = {
            "content-type": "application/json",
            "user-agent": f"troth/{__version__}",
            "connection": "close",
            **headers_for(delivery.id, body, endpoint.secrets_at(now), now),
        }
        backend = GuardedBackend(self._sending.allowed, self._sending.look_up)
        async with (
            httpcore.AsyncConnectionPool(ssl_context=self._sending.tls, network_backend=backend) as pool,
            pool.stream("POST", endpoint.url, headers=list(headers.items()), content=encoded(body)) as answer,
        ):
            answer_headers = {name.lower(): value for name, value in answer.headers}
            return answer.status, answer_headers.get(b"retry-after", b"").decode("ascii", "replace") or None

    async def _judge(self, delivery: Delivery, status: int, retry_after: str | None) -> Receipt:
        if 200 <= status < 300:
            return Receipt.done(f"HTTP {status}")
        if status == 410:
            why = f"it answered 410 to the delivery {delivery.id!r}: it refuses further deliveries"
            await self._gone(self.endpoint_id, delivery, why)
            return Receipt.refused("it answered 410, so it was disabled")
        if 300 <= status < 400:
            return Receipt.refused(
                f"it answered {status}; redirects are not followed. Register the address it leads to"
            )
        delay = seconds_until(retry_after, self._sending.clock())
        return Receipt.refused(f"it answered {status}", None if delay is None else self._not_before(delivery, delay))

    def _not_before(self, delivery: Delivery, delay: float) -> float:
        """What the receiver asks for, and never less than the schedule: `Retry-After: 0` is no way to be flooded."""
        return max(delay, self._sending.policy.usual_pause(delivery.attempt))
