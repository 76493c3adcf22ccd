"""Deliveries reach a real receiver, signed; whatever else it answers is told and tried again."""

import asyncio
import json
import threading
from contextlib import asynccontextmanager

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
from tests.server.webhooks.receiver import OTHER_SECRET, PATIENT, QUICK, SECRET, auntil, body_json, give

from troth.runtime import Runtime, bind
from troth.runtime.promises import Pushed, Stored
from troth.runtime.store.promise_records import DeliveryState
from troth.server.webhooks import (
    OVER_THREE_DAYS,
    Receiver,
    TakenError,
    UnknownWebhookError,
    WebhookRefusedError,
    Webhooks,
)
from troth.server.webhooks.payload import LARGEST

LOCAL = ["127.0.0.0/8"]


@asynccontextmanager
async def opened(runtime, *receivers, **options):
    hooks = Webhooks(receivers, **{"allow": LOCAL, "policy": PATIENT, "timeout": 2.0, **options})
    await hooks.open(runtime)
    try:
        yield hooks
    finally:
        await hooks.close()


async def promise(runtime, hooks, value, owner="ann", session="s1", **options):
    """Begin work whose result goes to the receiver of this owner and session."""
    channel = hooks.channel_for(owner, session)
    with bind(session, channel) if channel is not None else bind(session):
        return await runtime.promises.astart(give, value, **options)


def test_a_delivery_is_signed_as_standard_webhooks_says(runtime, receiver):
    """The receiver verifies it with its own library, and finds the delivery's id, the attempt's time and the result."""

    async def main():
        async with opened(runtime) as hooks:
            endpoint = await hooks.register(receiver.url, owner="ann", secret=SECRET)
            outcome = await promise(runtime, hooks, {"answer": 42})
            assert isinstance(outcome, Pushed)
            assert outcome.channel == endpoint.channel
            await auntil(lambda: runtime.outbox.counts().delivered == 1)
        return outcome

    outcome = asyncio.run(main())
    said = receiver.verified()
    headers = receiver.seen[0][0]
    assert headers["webhook-id"] == said["id"] == f"{outcome.promise.id}-done-1"
    assert said["type"] == "promise.done"
    assert said["data"]["result"] == {"answer": 42}
    assert said["data"]["id"] == outcome.promise.id
    assert not said["data"]["is_cut"]
    assert "." not in headers["webhook-id"]
    with pytest.raises(WebhookVerificationError):
        receiver.verified(secret=OTHER_SECRET)


def test_two_secrets_sign_while_one_is_rotated(runtime, receiver):
    """A receiver with the old secret and one with the new both accept; later only the new one counts."""

    async def main():
        async with opened(runtime) as hooks:
            endpoint = await hooks.register(receiver.url, owner="ann", secret=SECRET)
            rotated = await hooks.rotate(endpoint.id, "ann", secret=OTHER_SECRET)
            assert len(rotated.secrets_at(runtime.store.clock())) == 2
            await promise(runtime, hooks, 1)
            await auntil(lambda: runtime.outbox.counts().delivered == 1)
            await hooks.rotate(endpoint.id, "ann", secret=SECRET, keep=0.0)
            await promise(runtime, hooks, 2)
            await auntil(lambda: runtime.outbox.counts().delivered == 2)

    asyncio.run(main())
    assert receiver.verified(0, SECRET)
    assert receiver.verified(0, OTHER_SECRET)
    assert receiver.verified(1, SECRET)
    with pytest.raises(WebhookVerificationError):
        receiver.verified(1, OTHER_SECRET)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param((500, {}), "it answered 500", id="500"),
        pytest.param((429, {"Retry-After": "0"}), "it answered 429", id="429"),
        pytest.param((302, {"Location": "/elsewhere"}), "redirects are not followed", id="redirect"),
        pytest.param((204, {}), None, id="any 2xx counts"),
        pytest.param("half", "RemoteProtocolError", id="half an answer"),
        pytest.param("hang", "no answer within", id="no answer"),
    ],
)
def test_only_2xx_is_a_delivery(runtime, receiver, answer, said):
    """Anything else is refused with its reason, and the same delivery comes again with its own timestamp."""
    receiver.answers = [answer]

    async def main():
        async with opened(runtime, timeout=0.5) as hooks:
            await hooks.register(receiver.url, owner="ann", secret=SECRET)
            outcome = await promise(runtime, hooks, "x")
            await auntil(lambda: receiver.seen)
            receiver.freed.set()
            await auntil(lambda: runtime.outbox.counts().delivered == 1)
            return outcome

    asyncio.run(main())
    ids = receiver.ids()
    assert len(ids) == (1 if said is None else 2)
    assert len(set(ids)) == 1
    assert {path for _, _, path in receiver.seen} == {"/hook"}, "a redirect was followed"
    for number in range(len(ids)):
        assert receiver.verified(number)


def test_the_reason_is_kept_and_listed_as_a_failure(runtime, receiver):
    """Given up after all attempts, a delivery is in the list of failures, and can be replayed under its id."""
    receiver.answers = [(500, {}), (503, {})]

    async def main():
        async with opened(runtime, policy=QUICK) as hooks:
            endpoint = await hooks.register(receiver.url, owner="ann", secret=SECRET)
            await promise(runtime, hooks, "x")
            await auntil(lambda: runtime.outbox.counts().dead == 1)
            (failure,) = await hooks.failures(endpoint.id, "ann")
            assert failure.state is DeliveryState.DEAD
            assert failure.attempt == 2
            assert "503" in failure.problem
            with pytest.raises(UnknownWebhookError):
                await hooks.failures(endpoint.id, "bob")
            with pytest.raises(UnknownWebhookError):
                await hooks.replay(endpoint.id, "nothing-done-1", "ann")
            await hooks.replay(endpoint.id, failure.id, "ann")
            await auntil(lambda: runtime.outbox.counts().delivered == 1)
            assert await hooks.failures(endpoint.id, "ann") == []

    asyncio.run(main())
    assert len(set(receiver.ids())) == 1
    assert len(receiver.seen) == 3


def test_a_waiting_delivery_is_replayed_at_once(runtime, receiver):
    """Nobody waits for hours for the next attempt at a receiver that was repaired."""
    receiver.answers = [(503, {"Retry-After": "3600"})]

    async def main():
        async with opened(runtime) as hooks:
            endpoint = await hooks.register(receiver.url, owner="ann", secret=SECRET)
            await promise(runtime, hooks, "x")
            failures = []
            while not failures:
                failures = await hooks.failures(endpoint.id)
                await asyncio.sleep(0.01)
            assert failures[0].due_at - runtime.store.clock() > 3000, "what the receiver asked for is not honoured"
            await hooks.replay(endpoint.id, failures[0].id)
            await auntil(lambda: runtime.outbox.counts().delivered == 1)

    asyncio.run(main())
    assert len(receiver.seen) == 2


def test_a_delivery_that_is_being_sent_is_not_sent_beside_itself(runtime, receiver):
    """Asked again after a lost answer, a replay has nothing left to do."""
    receiver.answers = ["hang"]

    async def main():
        async with opened(runtime, policy=QUICK) as hooks:
            endpoint = await hooks.register(receiver.url, owner="ann", secret=SECRET)
            await promise(runtime, hooks, "x")
            await auntil(lambda: receiver.seen)
            (delivery,) = runtime.outbox.list()
            assert delivery.state is DeliveryState.LEASED
            await hooks.replay(endpoint.id, delivery.id, "ann")
            assert runtime.outbox.find(delivery.id) == delivery
            receiver.freed.set()
            await auntil(lambda: runtime.outbox.counts().delivered == 1)

    asyncio.run(main())
    assert len(receiver.seen) == 2


def test_410_disables_the_receiver_and_is_told(runtime, receiver, tmp_path):
    """Nothing more is sent, what is owed is stored, an incident says so; enabled again, it gets what waited."""
    receiver.answers = [(410, {})]

    async def main():
        async with opened(runtime) as hooks:
            endpoint = await hooks.register(receiver.url, owner="ann", secret=SECRET)
            await promise(runtime, hooks, "first")
            await auntil(lambda: not hooks.get(endpoint.id).is_enabled)
            assert "410" in hooks.get(endpoint.id).disabled_because
            assert hooks.channel_for("ann", "s1") is None
            later = await promise(runtime, hooks, "second")
            assert isinstance(later, Stored)
            await later.promise.await_end(60)
            await auntil(lambda: all(one.state is DeliveryState.STORED for one in runtime.outbox.list()))
            kinds = [incident.kind for incident in runtime.outbox.incidents()]
            assert "webhook disabled" in kinds
            assert len(receiver.seen) == 1
            await hooks.enable(endpoint.id, "ann")
            await auntil(lambda: runtime.outbox.counts().delivered == 1)

    asyncio.run(main())
    assert len(set(receiver.ids())) == 1


def test_a_receiver_that_is_enabled_while_its_410_is_taken_notice_of_stays_enabled(runtime, receiver):
    """The outbox's thread may be held up behind its commit for as long as it takes somebody to enable it again."""

    async def main():
        async with opened(runtime) as hooks:
            await (await promise(runtime, hooks, "x")).promise.await_end(60)
            (record,) = runtime.outbox.list()
            delivery = await runtime.outbox.aread(record.id)
            endpoint = await hooks.register(receiver.url, owner="ann", secret=SECRET)
            enabled = threading.Event()

            async def gone():
                task = asyncio.create_task(hooks._gone(endpoint.id, delivery, "it answered 410"))
                await asyncio.sleep(0)  # it has asked for its commit, which is made before what is called next
                asyncio.get_running_loop().call_soon(enabled.wait, 60)
                await task

            noticing = asyncio.create_task(asyncio.to_thread(asyncio.run, gone()))
            await auntil(lambda: not hooks.get(endpoint.id).is_enabled)
            await hooks.enable(endpoint.id, "ann")
            enabled.set()
            await noticing
            assert hooks.get(endpoint.id).is_enabled

    asyncio.run(main())


def test_that_a_receiver_was_disabled_is_told_through_the_second_route(runtime, receiver):
    """The owner hears of it in another way."""
    from troth.runtime import Capability, Channel, Receipt

    class Pager(Channel):
        name = "pager"
        capability = Capability.PUSH

        def __init__(self):
            self.texts = []

        def send(self, delivery):
            self.texts.append(delivery.text)
            return Receipt.done("paged")

    receiver.answers = [(410, {})]
    pager = Pager()
    runtime.open_channel(pager)

    async def main():
        async with opened(runtime, second_route="pager") as hooks:
            await hooks.register(receiver.url, owner="ann", secret=SECRET)
            await promise(runtime, hooks, "x")
            await auntil(lambda: pager.texts)

    asyncio.run(main())
    assert "disabled" in pager.texts[0]


def test_a_disabled_receiver_stays_disabled_after_a_restart(tmp_path, receiver):
    """What is known of receivers is in the store, and a second process on it knows the same."""

    async def first(runtime):
        async with opened(runtime) as hooks:
            endpoint = await hooks.register(receiver.url, owner="ann", secret=SECRET, sessions=["s1", "s2"])
            await hooks.disable(endpoint.id, "ann", why="enough")
            return endpoint.id

    async def second(runtime, other, endpoint_id):
        async with opened(runtime) as hooks, opened(other) as elsewhere:
            assert hooks.get(endpoint_id).disabled_because == "enough"
            assert hooks.get(endpoint_id).sessions == ("s1", "s2")
            await elsewhere.enable(endpoint_id)
            await auntil(lambda: hooks.get(endpoint_id).is_enabled)
            await elsewhere.delete(endpoint_id)
            await auntil(lambda: not hooks.list())

    with Runtime(tmp_path / "troth.db", in_process=False) as runtime:
        endpoint_id = asyncio.run(first(runtime))
    path = tmp_path / "troth.db"
    with Runtime(path, in_process=False) as runtime, Runtime(path, in_process=False) as other:
        asyncio.run(second(runtime, other, endpoint_id))


def test_what_was_owed_when_the_server_ended_is_sent_at_the_next_start(tmp_path, receiver):
    """The delivery waits in the store, under its id."""
    receiver.answers = [(503, {"Retry-After": "3600"})]

    async def first(runtime):
        async with opened(runtime) as hooks:
            endpoint = await hooks.register(receiver.url, owner="ann", secret=SECRET)
            await promise(runtime, hooks, "x")
            await auntil(lambda: receiver.seen)
            while not await hooks.failures(endpoint.id):
                await asyncio.sleep(0.01)

    async def second(runtime):
        async with opened(runtime):
            await auntil(lambda: runtime.outbox.counts().delivered == 1)

    for phase in (first, second):
        with Runtime(tmp_path / "troth.db", in_process=False) as runtime:
            asyncio.run(phase(runtime))
    assert len(receiver.seen) == 2
    assert len(set(receiver.ids())) == 1


def test_a_name_that_leads_inside_at_the_second_look_is_not_called(runtime, receiver):
    """It is checked where the connection is made, so a name that changes in between gains nothing."""
    answers = [["93.184.216.34"]]

    async def rebinding(host, port):
        assert host == "rebind.example"
        return answers.pop(0) if answers else ["127.0.0.1"]

    async def main():
        async with opened(runtime, allow=[], look_up=rebinding) as hooks:
            url = f"https://rebind.example:{receiver.port}/hook"
            endpoint = await hooks.register(url, owner="ann", secret=SECRET)
            await promise(runtime, hooks, "x")
            failures = []
            while not failures:
                failures = await hooks.failures(endpoint.id)
                await asyncio.sleep(0.01)
            assert "this machine" in failures[0].problem

    asyncio.run(main())
    assert receiver.seen == []


def test_the_connection_is_made_to_the_address_that_was_checked(runtime, tls_receiver):
    """Under the name of the URL: TLS shakes hands for it, and `Host` says it, though nobody else could look it up."""
    looks = []

    async def look_up(host, port):
        looks.append(host)
        return ["127.0.0.1"]

    async def main():
        async with opened(runtime, look_up=look_up, tls=tls_receiver.trusting) as hooks:
            await hooks.register(f"https://hooks.example:{tls_receiver.port}/hook?a=1", owner="ann", secret=SECRET)
            looks.clear()
            await promise(runtime, hooks, "x")
            await auntil(lambda: runtime.outbox.counts().delivered == 1)

    asyncio.run(main())
    assert looks == ["hooks.example"], "it was looked up more than once"
    assert tls_receiver.names == ["hooks.example"]
    headers, _, path = tls_receiver.seen[0]
    assert headers["Host"] == f"hooks.example:{tls_receiver.port}"
    assert path == "/hook?a=1"


def test_a_certificate_nobody_trusts_is_no_receiver(runtime, tls_receiver):
    """Nothing is sent to somebody who cannot prove the name."""

    async def look_up(host, port):
        return ["127.0.0.1"]

    async def main():
        async with opened(runtime, look_up=look_up) as hooks:
            url = f"https://hooks.example:{tls_receiver.port}/hook"
            endpoint = await hooks.register(url, owner="ann", secret=SECRET)
            await promise(runtime, hooks, "x")
            failures = []
            while not failures:
                failures = await hooks.failures(endpoint.id)
                await asyncio.sleep(0.01)
            assert "certificate" in failures[0].problem.lower()

    asyncio.run(main())
    assert tls_receiver.seen == []


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/",
        "https://127.0.0.1:9/",
        "https://localhost/",
        "https://[::1]/",
        "https://169.254.169.254/latest/meta-data",
        "http://example.com/",
        "ftp://example.com/",
        "https://user:password@example.com/",
        "https://example.com/#part",
        "//example.com",
        "https://",
        "nothing",
        "https://exa mple.com/",
        "https://exämple.com/",
        "https://example.com:99999/",
        "https://example.com\\@127.0.0.1/",
        "https://example.com/\r\nX: 1",
        "https://example.com/" + "x" * 3000,
        7,
    ],
)
def test_an_address_that_cannot_be_used_is_refused_at_once(runtime, url):
    """Before anything is written, and with the reason."""

    async def outside(host, port):
        from troth.server.webhooks.name_resolution import resolve

        return ["93.184.216.34"] if host == "example.com" else await resolve(host, port)

    async def main():
        async with opened(runtime, allow=[], look_up=outside) as hooks:
            with pytest.raises(WebhookRefusedError):
                await hooks.register(url, owner="ann")
            assert hooks.list() == []

    asyncio.run(main())


@pytest.mark.parametrize("secret", ["short", "whsec_c2hvcnQ=", "whsec_!!!", "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0", 7])
def test_a_weak_secret_is_refused(secret):
    """And never told again in the message."""
    from troth.errors import MisuseError

    with pytest.raises(MisuseError) as refused:
        Webhooks([Receiver("https://example.com/", secret=secret)])
    assert str(secret) not in str(refused.value)


def test_each_thing_is_told_to_one_receiver(runtime, receiver):
    """A second receiver for the same is refused; one for a session goes before one for everything."""

    async def main():
        async with opened(runtime) as hooks:
            wide = await hooks.register(receiver.url, owner="ann")
            with pytest.raises(TakenError):
                await hooks.register(receiver.url + "/2", owner="ann")
            narrow = await hooks.register(receiver.url + "/3", owner="ann", sessions=["s1"])
            with pytest.raises(TakenError):
                await hooks.register(receiver.url + "/4", owner="ann", sessions=["s0", "s1"])
            other = await hooks.register(receiver.url, owner="bob")
            assert hooks.channel_for("ann", "s1").endpoint_id == narrow.id
            assert hooks.channel_for("ann", "s2").endpoint_id == wide.id
            assert hooks.channel_for("bob", "s1").endpoint_id == other.id
            assert hooks.channel_for("eve", "s1") is None
            assert [one.id for one in hooks.list("ann")] == [wide.id, narrow.id]

    asyncio.run(main())


def test_a_receiver_of_a_session_gets_what_was_stored_for_it(runtime, receiver):
    """Work that was begun before anybody wanted to be told is told after all."""

    async def main():
        async with opened(runtime) as hooks:
            early = await promise(runtime, hooks, "early")
            assert isinstance(early, Stored)
            await early.promise.await_end(60)
            await hooks.register(receiver.url, owner="ann", secret=SECRET, sessions=["s1"])
            await auntil(lambda: runtime.outbox.counts().delivered == 1)

    asyncio.run(main())
    assert receiver.verified()["data"]["result"] == "early"


def test_receivers_that_the_program_names(runtime, receiver):
    """They are told whoever began the work, sign with both secrets, and cannot be deleted over HTTP."""
    from troth.errors import MisuseError

    async def main():
        named = Receiver(receiver.url, secret=SECRET, old_secret=OTHER_SECRET)
        async with opened(runtime, named) as hooks:
            (endpoint,) = hooks.list()
            with pytest.raises(MisuseError):
                await hooks.delete(endpoint.id)
            await promise(runtime, hooks, "x", owner="anybody")
            await auntil(lambda: runtime.outbox.counts().delivered == 1)

    asyncio.run(main())
    assert receiver.verified(0, SECRET)
    assert receiver.verified(0, OTHER_SECRET)


def test_a_large_result_is_not_sent_along(runtime, receiver):
    """The body stays small, says so, and names the promise that has all of it."""

    async def main():
        async with opened(runtime) as hooks:
            await hooks.register(receiver.url, owner="ann", secret=SECRET)
            outcome = await promise(runtime, hooks, "x" * (LARGEST + 1))
            await auntil(lambda: runtime.outbox.counts().delivered == 1)
            return outcome.promise.id

    promise_id = asyncio.run(main())
    said = receiver.verified()
    assert said["data"]["is_cut"]
    assert said["data"]["id"] == promise_id
    assert len(receiver.seen[0][1]) < 20_000


def test_an_id_that_a_program_chose_can_be_sent(runtime, receiver):
    """What a header cannot carry is quoted there; the body has the id as it is."""

    async def main():
        async with opened(runtime) as hooks:
            await hooks.register(receiver.url, owner="ann", secret=SECRET)
            await promise(runtime, hooks, "x", promise_id="order 7.1\r\nX-Evil: ü")
            await auntil(lambda: runtime.outbox.counts().delivered == 1)

    asyncio.run(main())
    headers = receiver.seen[0][0]
    assert "X-Evil" not in headers
    assert "." not in headers["webhook-id"]
    assert receiver.verified()["data"]["id"] == "order 7.1\r\nX-Evil: ü"


def test_openai_unwraps_it(runtime, receiver):
    """A promise of the route `responses` is told as OpenAI tells it; its client verifies and reads it."""
    openai = pytest.importorskip("openai")

    async def main():
        async with opened(runtime) as hooks:
            await hooks.register(receiver.url, owner="ann", secret=SECRET)
            await promise(runtime, hooks, {"status": "completed"}, promise_id="resp_1")
            await promise(runtime, hooks, {"status": "incomplete"}, promise_id="resp_2")
            await auntil(lambda: runtime.outbox.counts().delivered == 2)

    asyncio.run(main())
    client = openai.OpenAI(api_key="unused", webhook_secret=SECRET)
    kinds = {}
    for headers, body, _ in receiver.seen:
        event = client.webhooks.unwrap(body, headers)
        kinds[event.data.id] = event.type
    assert kinds == {"resp_1": "response.completed", "resp_2": "response.incomplete"}
    assert "result" not in json.dumps(body_json(receiver))


def test_the_schedule_goes_over_three_days():
    """A receiver that is down for a weekend loses nothing, and is not flooded when it comes back."""
    import random

    chance, spent, attempts = random.Random(7), 0.0, 1
    while not OVER_THREE_DAYS.is_used_up(attempts, 0.0, spent):
        spent += OVER_THREE_DAYS.pause(attempts, chance)
        attempts += 1
    assert spent >= 3 * 86400
    assert 15 <= attempts <= 30


def test_the_channel_does_what_every_channel_has_to(tmp_path, receiver):
    """The public conformance suite, with a real receiver."""
    from troth.server.webhooks.addresses import Allowed
    from troth.server.webhooks.channel import Sending, WebhookChannel
    from troth.server.webhooks.endpoint import Endpoint, Secret, channel_name
    from troth.testing.channel_conformance import checks

    endpoint = Endpoint("e", receiver.url, (Secret(SECRET),), "ann")

    async def gone(*_):
        raise AssertionError

    class Ground:
        def channel(self):
            return WebhookChannel(endpoint.id, channel_name("e"), lambda _: endpoint, gone, Sending(Allowed.of(LOCAL)))

        def received(self):
            return receiver.ids()

        def acknowledge(self, runtime):
            """2xx is the acknowledgement."""

    for check in checks():
        check.run(Ground())


def test_nothing_of_a_secret_is_printed():
    """Neither by the values that hold it, nor in what a receiver is listed as."""
    from troth.server.webhooks.endpoint import Endpoint, Secret

    assert SECRET not in repr(Endpoint("e", "https://example.com", (Secret(SECRET),), "ann"))
    assert SECRET not in repr(Receiver("https://example.com", secret=SECRET))
    assert Webhook(SECRET)
