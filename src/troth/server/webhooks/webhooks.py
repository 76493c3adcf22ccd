"""Keep the receivers of webhooks: register, rotate, disable, replay, delete; and open a channel for each.

    server = Server(runtime, webhooks=Webhooks([Receiver("https://example.com/hook", secret="whsec_…")]))

Receivers that are registered over HTTP are kept in the store, with their secrets: whoever can read the store can sign.
All server processes on one store know them, and each sends through its own channel; the outbox sees to it that a
delivery is sent by one of them.
"""

import asyncio
import hashlib
import logging
import ssl
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from troth.bridge import call
from troth.errors import MisuseError
from troth.runtime import Runtime
from troth.runtime.arguments import check_seconds
from troth.runtime.channels import Delivery
from troth.runtime.promises import RetryPolicy
from troth.runtime.store import Event, Notifier, StoreError, Transaction, commit_point
from troth.runtime.store.promise_records import DeliveryRecord, DeliveryState
from troth.runtime.store.sqlite.transaction import stream_topic
from troth.server.telemetry.trace_context import recall
from troth.server.webhooks.addresses import Allowed
from troth.server.webhooks.channel import OVER_THREE_DAYS, Sending, WebhookChannel
from troth.server.webhooks.endpoint import STREAM, Endpoint, Secret, fold
from troth.server.webhooks.errors import TakenError, UnknownWebhookError, WebhookRefusedError
from troth.server.webhooks.name_resolution import InsideError, Resolve, UnknownHostError, check_host, resolve
from troth.server.webhooks.signature import check_secret, new_secret
from troth.server.webhooks.urls import check_url

__all__ = ["ANYBODY", "Receiver", "Webhooks"]

log = logging.getLogger("troth.webhooks")

CHANGE = commit_point("webhook.change", "a receiver of webhooks, or a change of it")
REPLAY = commit_point("webhook.replay", "that deliveries which wait for their next attempt are due now")

ANYBODY = ""
"""The owner of receivers that are told whoever began the work."""
_OLD_SECRET = 86400.0  # seconds for which the secret before the newest still signs
_LOOK = 2.0  # seconds after which the stream is looked at without news

_Details = Callable[[Transaction, float], Mapping[str, Any] | None]
"""What a change says, or None where it has been made already."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """A receiver that the program names. Without `sessions` it is told of everything that is begun over HTTP."""

    url: str
    secret: str
    old_secret: str | None = None
    sessions: Sequence[str] = ()
    owner: str = ANYBODY
    id: str | None = None

    def __repr__(self) -> str:
        return f"Receiver({self.url!r})"


class Webhooks:
    """The receivers of one server. `allow` names hosts and networks inside that may be called all the same.

    `second_route` is a channel through which is told that a receiver was disabled, or that a delivery was given up.
    """

    def __init__(
        self,
        receivers: Iterable[Receiver] = (),
        *,
        allow: Iterable[str] = (),
        timeout: float = 20.0,
        policy: RetryPolicy = OVER_THREE_DAYS,
        second_route: str | None = None,
        look_up: Resolve = resolve,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        check_seconds("timeout", timeout, may_be_none=False)
        if timeout >= policy.send_timeout:
            raise MisuseError(
                f"`timeout` is {timeout:g} s, and the outbox gives up a `send` after {policy.send_timeout:g} s.\n"
                "Give a shorter one, or a policy with a longer `send_timeout`."
            )
        self._allowed = Allowed.of(allow)
        self._timeout, self._policy, self._look_up, self._tls = timeout, policy, look_up, tls
        self._second_route = second_route
        self._known: dict[str, Endpoint] = {}
        for receiver in receivers:
            endpoint = self._configured(receiver)
            if endpoint.id in self._known:
                raise MisuseError(f"Two receivers have the id {endpoint.id!r}. Give each its own `id`.")
            self._known[endpoint.id] = endpoint
        self._runtime: Runtime | None = None
        self._channels: dict[str, WebhookChannel] = {}
        self._turns: dict[str, tuple[str, ...]] = {}
        self._cursor = 0
        self._task: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()
        self._folding = threading.Lock()  # the outbox has a loop of its own, on another thread

    def _configured(self, receiver: Receiver) -> Endpoint:
        check_url(receiver.url, self._allowed)
        secrets = [Secret(check_secret(receiver.secret))]
        if receiver.old_secret is not None:
            secrets.append(Secret(check_secret(receiver.old_secret)))
        identity = receiver.id or hashlib.sha256(receiver.url.encode()).hexdigest()[:16]
        return Endpoint(
            identity, receiver.url, tuple(secrets), receiver.owner, tuple(receiver.sessions), is_configured=True
        )

    # Opening

    async def open(self, runtime: Runtime) -> None:
        """Deliver to the receivers of the runtime's store, and notice those that other processes register."""
        if self._runtime is not None:
            raise MisuseError("These webhooks are already open. Nothing was done; give each server its own.")
        self._runtime = runtime
        await self._take_notice()
        self._task = asyncio.create_task(self._follow(runtime), name="troth-webhooks")

    async def close(self) -> None:
        """Deliver no more from here. What is pending stays so. The runtime is not touched otherwise."""
        if self._runtime is None or self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        async with self._changing:
            for endpoint_id in list(self._channels):
                await self._close_channel(endpoint_id)
        self._runtime = self._task = None

    async def _follow(self, runtime: Runtime) -> None:
        """Take notice of what other processes register and change."""
        bell = Notifier()
        with runtime.store.listening(bell, stream_topic(STREAM)):
            while True:
                rung = bell.count
                try:
                    await self._take_notice()
                except StoreError as error:
                    log.warning("The receivers of webhooks could not be read: %s", error)
                await bell.await_ring(rung, _LOOK)

    async def _take_notice(self) -> None:
        """Read what the stream has more, and open and close channels to match it."""
        runtime = self._opened()
        async with self._changing:
            while page := await call(lambda: runtime.store.events(STREAM, after=self._cursor)):
                with self._folding:
                    for event in page:
                        fold(self._known, event)
                    self._cursor = page[-1].seq
            for gone in self._channels.keys() - self._known.keys():
                await self._close_channel(gone)
            for endpoint in list(self._known.values()):
                if endpoint.id not in self._channels:
                    await self._open_channel(runtime, endpoint)

    async def _open_channel(self, runtime: Runtime, endpoint: Endpoint) -> None:
        if self._tls is None:
            self._tls = await asyncio.to_thread(_trusted)
        sending = Sending(
            self._allowed,
            self._timeout,
            self._policy,
            self._look_up,
            self._tls,
            clock=runtime.store.clock,
            trace_of=lambda promise_id: recall(runtime.store, promise_id),
        )
        channel = WebhookChannel(endpoint.id, endpoint.channel, self._known.get, self._gone, sending)
        await call(lambda: runtime.open_channel(channel, second_route=self._second_route, policy=self._policy))
        self._channels[endpoint.id] = channel
        self._turns[endpoint.id] = endpoint.sessions
        for session in endpoint.sessions:  # for as long as the channel is open: what is stored for them is sent
            channel.begin_turn(session)

    async def _close_channel(self, endpoint_id: str) -> None:
        assert self._runtime is not None
        channel = self._channels.pop(endpoint_id)
        for session in self._turns.pop(endpoint_id):
            channel.end_turn(session)
        await call(self._runtime.close_channel, channel)

    def _opened(self) -> Runtime:
        if self._runtime is None:
            raise MisuseError("These webhooks are not open. Nothing was done; the server opens them when it starts.")
        return self._runtime

    # Looking

    def list(self, owner: str | None = None) -> list[Endpoint]:
        """The receivers, of one owner if it is named, the oldest first."""
        endpoints = [endpoint for endpoint in self._known.values() if owner in (None, endpoint.owner)]
        return sorted(endpoints, key=lambda endpoint: (endpoint.created_at, endpoint.id))

    def get(self, endpoint_id: str, owner: str | None = None) -> Endpoint:
        """One receiver; `owner` refuses somebody else's."""
        endpoint = self._known.get(endpoint_id)
        if endpoint is None or owner not in (None, endpoint.owner):
            raise UnknownWebhookError(f"There is no webhook {endpoint_id!r}. Nothing was done.")
        return endpoint

    def channel_for(self, owner: str, session: str) -> WebhookChannel | None:
        """The channel of the receiver that is told of this session: one that names it, else one of its owner."""
        fitting = [
            endpoint
            for endpoint in self._known.values()
            if endpoint.is_enabled
            and endpoint.owner in (owner, ANYBODY)
            and (not endpoint.sessions or session in endpoint.sessions)
        ]
        if not fitting:
            return None
        best = max(fitting, key=lambda row: (bool(row.sessions), row.owner == owner, row.created_at, row.id))
        return self._channels.get(best.id)

    async def failures(
        self, endpoint_id: str, owner: str | None = None, *, limit: int = 100
    ) -> Sequence[DeliveryRecord]:
        """Deliveries to a receiver that were given up, or that wait for another attempt; the oldest first."""
        runtime = self._opened()
        endpoint = self.get(endpoint_id, owner)
        states = (DeliveryState.DEAD, DeliveryState.DUE, DeliveryState.STORED)
        records = await runtime.outbox.alist(states=states, channel=endpoint.channel, limit=limit)
        return [record for record in records if record.problem is not None]

    # Changing

    async def register(
        self,
        url: str,
        *,
        owner: str = ANYBODY,
        secret: str | None = None,
        sessions: Sequence[str] = (),
        description: str = "",
        endpoint_id: str | None = None,
    ) -> Endpoint:
        """Add a receiver. Its name is looked up now, and again at every attempt; it must lead outside both times."""
        runtime = self._opened()
        address = check_url(url, self._allowed)
        try:
            await check_host(address.host, address.port, self._allowed, self._look_up)
        except (InsideError, UnknownHostError) as refused:
            raise WebhookRefusedError(
                f"The address {url!r} cannot be used: {refused}.\nNothing was registered.\n"
                "Give an address that can be reached from the internet; `Webhooks(allow=[…])` names exceptions."
            ) from None
        endpoint_id = endpoint_id or f"wh_{uuid.uuid4().hex}"
        payload = {
            "id": endpoint_id,
            "url": url,
            "secret": new_secret() if secret is None else check_secret(secret),
            "owner": owner,
            "sessions": list(dict.fromkeys(sessions)),
            "description": description,
        }
        await runtime.store.acommit(CHANGE, lambda tx: self._add(tx, payload, runtime.store.clock()))
        await self._take_notice()
        return self.get(endpoint_id)

    def _add(self, tx: Transaction, payload: dict[str, Any], now: float) -> None:
        """Write it down, unless another one is told of the same already: each delivery goes to one receiver."""
        endpoints = {endpoint.id: endpoint for endpoint in self._known.values() if endpoint.is_configured}
        for event in tx.events(STREAM):
            fold(endpoints, event)
        for neighbour in endpoints.values():
            if neighbour.owner != payload["owner"]:
                continue
            shared = set(neighbour.sessions) & set(payload["sessions"])
            if shared or (not neighbour.sessions and not payload["sessions"]):
                of = f"the session {min(shared)!r}" if shared else "everything that this owner begins"
                raise TakenError(
                    f"The webhook {neighbour.id!r} already receives deliveries of {of}, and a delivery goes to one "
                    "receiver.\n"
                    "Nothing was registered. Delete that one, or name other `sessions`."
                )
        tx.append_event(STREAM, "registered", payload, now)

    async def rotate(
        self,
        endpoint_id: str,
        owner: str | None = None,
        *,
        secret: str | None = None,
        keep: float = _OLD_SECRET,
        rotation_id: str | None = None,
    ) -> Endpoint:
        """Give a receiver a new secret. For `keep` seconds both sign, so that no delivery is refused meanwhile.

        Asked for again with the same `rotation_id`, nothing is changed: one more new secret would be the end of the
        one that the receiver knows.
        """
        check_seconds("keep", keep, may_be_none=False)
        endpoint = self._changeable(endpoint_id, owner)
        fresh = new_secret() if secret is None else check_secret(secret)

        def details(tx: Transaction, now: float) -> Mapping[str, Any] | None:
            if rotation_id is None:
                return {"secret": fresh, "old_until": now + keep}
            if any(event.payload.get("rotation") == rotation_id for event in tx.events(STREAM)):
                return None
            return {"secret": fresh, "old_until": now + keep, "rotation": rotation_id}

        await self._change("rotated", endpoint, details)
        return self.get(endpoint_id)

    async def disable(self, endpoint_id: str, owner: str | None = None, *, why: str = "by request") -> Endpoint:
        """Send a receiver nothing more. Its deliveries are stored."""
        endpoint = self.get(endpoint_id, owner)
        if endpoint.is_enabled:
            await self._change("disabled", endpoint, lambda *_: {"why": why})
        return self.get(endpoint_id)

    async def enable(self, endpoint_id: str, owner: str | None = None) -> Endpoint:
        """Send to a receiver again, beginning with what was stored for it."""
        endpoint = self.get(endpoint_id, owner)
        if not endpoint.is_enabled:
            await self._change("enabled", endpoint, lambda *_: {})
        return self.get(endpoint_id)

    async def delete(self, endpoint_id: str, owner: str | None = None) -> None:
        """Delete a receiver. Its deliveries stay stored, and can be read."""
        await self._change("deleted", self._changeable(endpoint_id, owner), lambda *_: {})

    async def replay(self, endpoint_id: str, delivery_id: str, owner: str | None = None) -> None:
        """Send a delivery to a receiver once more, under the same id.

        One that still waits for its next attempt is tried at once, and so is all else that waits for this receiver. One
        that is being sent at this moment is left alone, so a client that lost the answer can repeat the request.
        """
        runtime = self._opened()
        endpoint = self.get(endpoint_id, owner)
        record = await call(runtime.store.promises.delivery, delivery_id)
        if record is None or record.channel != endpoint.channel:
            raise UnknownWebhookError(
                f"There is no delivery {delivery_id!r} to the webhook {endpoint_id!r}. Nothing was replayed."
            )
        if record.state is DeliveryState.DUE:
            now = runtime.store.clock()
            await runtime.store.acommit(REPLAY, lambda tx: tx.promises.hurry(endpoint.channel, now))
        elif record.state is not DeliveryState.LEASED:
            await runtime.outbox.areplay(delivery_id, channel=endpoint.channel)

    def _changeable(self, endpoint_id: str, owner: str | None) -> Endpoint:
        endpoint = self.get(endpoint_id, owner)
        if endpoint.is_configured:
            raise MisuseError(
                f"The webhook {endpoint_id!r} is named by the program that serves. Nothing was done; change it there."
            )
        return endpoint

    async def _change(self, kind: str, endpoint: Endpoint, details: _Details) -> None:
        runtime = self._opened()

        def work(tx: Transaction) -> None:
            now = runtime.store.clock()
            change = details(tx, now)
            if change is not None:
                tx.append_event(STREAM, kind, {"id": endpoint.id, **change}, now)

        await runtime.store.acommit(CHANGE, work)
        await self._take_notice()

    async def _gone(self, endpoint_id: str, delivery: Delivery, why: str) -> None:
        """For a channel, on the outbox's loop: the receiver wants nothing more. Disabled once, and told."""
        runtime = self._opened()

        def work(tx: Transaction) -> Event | None:
            now = runtime.store.clock()
            endpoints = {endpoint.id: endpoint for endpoint in self._known.values() if endpoint.is_configured}
            for event in tx.events(STREAM):
                fold(endpoints, event)
            endpoint = endpoints.get(endpoint_id)
            if endpoint is None or not endpoint.is_enabled:
                return None
            payload = {"id": endpoint_id, "why": why}
            number = tx.append_event(STREAM, "disabled", payload, now)
            tx.promises.note("webhook disabled", {"webhook": endpoint_id, "url": endpoint.url, "why": why}, now)
            if self._second_route is not None:
                text = f"The webhook {endpoint.url} was disabled: {why}. Its deliveries are stored."
                tx.promises.add_delivery(delivery.promise, "summary", now, text=text, channel=self._second_route)
            return Event(0, STREAM, number, "disabled", payload, now)

        disabled = await runtime.store.acommit(CHANGE, work)
        if disabled is not None:
            log.warning("The webhook %r was disabled: %s", endpoint_id, why)
            with self._folding:  # at once: nothing more is sent from here, before anybody reads the stream
                if disabled.seq > self._cursor:  # else it was read, and what came after it: it may be enabled again
                    fold(self._known, disabled)


def _trusted() -> ssl.SSLContext:
    """The authorities of the system and of certifi: a container often has none of its own. Takes some milliseconds."""
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context
