"""From due to delivered, stored, expired or dead: what becomes of a delivery, whatever the channel does."""

import asyncio
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace

import pytest

from troth.errors import MisuseError
from troth.runtime import Capability, Pushed, Receipt, Runtime, bind, current
from troth.runtime.channels import Deduplicator
from troth.runtime.engine import Wait
from troth.runtime.promises import RetryPolicy
from troth.runtime.store import SqliteStore, StoreError
from troth.runtime.store.promise_records import DeliveryState
from troth.testing import failpoints

from .conftest import QUICK, AsyncSwitch, Switch, give, until

PATIENT = RetryPolicy(limit=10, over=60.0, first=0.05, longest=0.2, send_timeout=30.0, probe=0.2)


@pytest.fixture
def patient(path):
    with Runtime(path, delivery=PATIENT) as runtime:
        yield runtime


def promised(runtime, channel, session="s", value=1, **kwargs):
    with bind(session, channel):
        promise = runtime.promises.start(give, value, **kwargs).promise
    promise.wait(60)
    return f"{promise.id}-done-1"


@pytest.mark.parametrize("kind", [Switch, AsyncSwitch])
@pytest.mark.parametrize("mode", ["down", "refusing", "silent", "hanging"])
def test_a_channel_that_does_not_deliver_leaves_a_dead_letter(path, kind, mode):
    """F7, F18, F23: a raise, a refusal, None and silence are no delivery; after the limit it is dead and can be replayed."""
    policy = replace(QUICK, send_timeout=2.0 if mode == "hanging" else QUICK.send_timeout)
    with Runtime(path, delivery=policy) as runtime:
        channel = kind(mode=mode)
        runtime.open_channel(channel)
        delivery = promised(runtime, channel)
        until(lambda: runtime.outbox.find(delivery).state is DeliveryState.DEAD)
        channel.freed.set()
        record = runtime.outbox.find(delivery)
        assert record.attempt == QUICK.limit
        assert record.problem
        assert {tried.id for tried in channel.tried} == {delivery}
        assert runtime.outbox.incidents()[-1].kind == "dead"
        channel.mode = "up"
        runtime.outbox.replay(delivery)
        until(lambda: runtime.outbox.find(delivery).state is DeliveryState.DELIVERED)
        assert channel.ids == [delivery]


def test_a_channel_that_is_closed_while_it_leases_is_owed_what_it_had_leased(path):
    """The lease is committed after the channel was told to end: it belongs to nobody, and is given back."""
    leasing, closing = threading.Event(), threading.Event()

    def hold(_):
        leasing.set()
        closing.wait(60)

    with Runtime(path, delivery=QUICK) as runtime:
        first = Switch("s")
        runtime.open_channel(first)
        with failpoints.armed("outbox.lease.before", hold):
            delivery = promised(runtime, first)
            assert leasing.wait(60)
            closer = threading.Thread(target=runtime.close_channel, args=(first,))
            closer.start()
            until(lambda: not runtime.outbox.serves(first))
            time.sleep(0.2)  # its task ends, and it waits for the commit that is under way
            closing.set()
            closer.join(60)
        assert first.ids == []
        again = Switch("s")
        runtime.open_channel(again)
        until(lambda: again.ids == [delivery])


class Stuck(Switch):
    """Its `send` returns when it is told to, and not before."""

    def send(self, delivery):
        self.tried.append(delivery)
        self.freed.wait(60)
        return Receipt.done("late")


def test_a_channel_whose_sends_never_return_takes_no_threads_from_the_others(path):
    """A handful of calls stay stuck; after that it is not called again, and the other channels are served as before."""
    policy = RetryPolicy(limit=50, over=600.0, first=0.01, longest=0.02, send_timeout=0.05, probe=0.02)
    with Runtime(path, delivery=policy) as runtime:
        stuck, good = Stuck("stuck"), Switch("good")
        runtime.open_channel(stuck)
        runtime.open_channel(good)
        ids = [promised(runtime, stuck, session=f"s{number}") for number in range(24)]
        until(lambda: "the maximum, are stuck" in (runtime.outbox.find(ids[0]).problem or ""))
        called = len(stuck.tried)
        fine = [promised(runtime, good, session="t") for _ in range(5)]
        until(lambda: good.ids == fine)
        assert len(stuck.tried) == called
        stuck.freed.set()
        until(lambda: runtime.outbox.counts().delivered == len(ids) + len(fine))


def test_a_channel_that_was_down_for_longer_than_can_be_counted_is_served_again(path):
    """After 1024 doublings a pause is no number any more; what is sent then, and what is interrupted, is not lost."""
    policy = RetryPolicy(limit=5000, over=600.0, first=0.0001, longest=0.0002, probe=0.0001)
    with Runtime(path, delivery=policy) as runtime:
        channel = Switch(mode="down")
        runtime.open_channel(channel)
        ids = [promised(runtime, channel, value=number) for number in range(2)]
        until(lambda: runtime.outbox.find(ids[0]).attempt > 1100)
        channel.mode = "up"
        until(lambda: sorted(channel.ids) == sorted(ids))


class Raises(AsyncSwitch):
    """Raises an error, the first time."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    async def send(self, delivery):
        self.tried.append(delivery)
        if len(self.tried) == 1:
            raise self.error
        return await AsyncSwitch.send(self, delivery)


@pytest.mark.parametrize(
    "error", [GeneratorExit, asyncio.CancelledError, KeyboardInterrupt, SystemExit, StopAsyncIteration, MemoryError]
)
def test_whatever_a_channel_raises_it_is_served_again(runtime, error):
    """It ends one attempt, and not the serving of the channel."""
    channel = Raises(error())
    runtime.open_channel(channel)
    delivery = promised(runtime, channel)
    until(lambda: runtime.outbox.find(delivery).state is DeliveryState.DELIVERED)
    assert channel.ids == [delivery]


def test_a_dead_letter_is_told_by_a_second_route(runtime):
    """Giving up is told where somebody listens."""
    broken, good = Switch("broken", "refusing"), Switch("good")
    runtime.open_channel(good)
    runtime.open_channel(broken, second_route="good")
    delivery = promised(runtime, broken)
    told = until(lambda: good.sent)[0]
    assert (told.kind, told.session) == ("summary", "s")
    assert f"troth outbox show {delivery}" in told.text


def test_a_dead_letter_that_reached_somebody_all_the_same(runtime):
    """Who has read it says so, and it is given up no more; the counts go with it."""
    channel = Switch(mode="refusing")
    runtime.open_channel(channel)
    with bind("ann", channel):
        delivery = f"{runtime.promises.start(give, 1).promise.id}-done-1"
        until(lambda: runtime.outbox.counts().dead == 1)
    assert runtime.outbox.ack(delivery, by="ann herself")
    assert not runtime.outbox.ack(delivery)
    assert runtime.outbox.find(delivery).receipt == "ann herself"
    assert runtime.outbox.counts() == (1, 1, 0, 0, 0)


def test_a_replay_through_a_channel_that_there_is_not(runtime):
    """What was sent to a mistyped name is stored, says so, and goes on through the right one."""
    channel = Switch(mode="up")
    runtime.open_channel(channel)
    delivery = promised(runtime, channel)
    until(lambda: runtime.outbox.find(delivery).state is DeliveryState.DELIVERED)
    runtime.outbox.replay(delivery, channel="typo")
    until(lambda: runtime.outbox.find(delivery).state is DeliveryState.STORED)
    with pytest.raises(MisuseError, match="is stored, so it is already pending(.|\n)*--channel NAME"):
        runtime.outbox.replay(delivery)
    runtime.outbox.replay(delivery, channel=channel.name)
    until(lambda: runtime.outbox.find(delivery).state is DeliveryState.DELIVERED)
    assert channel.ids == [delivery, delivery]
    assert runtime.outbox.counts().is_balanced


def test_two_channels_that_are_the_second_route_of_each_other(runtime):
    """What tells that something was given up goes through each of them once, not to and fro for ever."""
    channels = {name: Switch(name, "refusing") for name in "ab"}
    runtime.open_channel(channels["a"], second_route="b")
    runtime.open_channel(channels["b"], second_route="a")
    delivery = promised(runtime, channels["a"])
    until(lambda: runtime.outbox.counts().dead == 2)
    time.sleep(2 * QUICK.longest)
    counts = runtime.outbox.counts()
    assert (counts.promised, counts.dead) == (2, 2)
    notice = runtime.outbox.list(states=["dead"], channel="b")[0]
    assert notice.data == {"gave_up": delivery, "routes": ["a"], "why": "refused: not now"}


def test_a_list_misses_nothing_that_is_on_its_way(runtime):
    """What goes from one state to another while the list is read is in it."""
    channel = Switch()
    runtime.open_channel(channel)
    delivery = promised(runtime, channel)
    until(lambda: runtime.outbox.counts().delivered)
    is_over, sizes = threading.Event(), set()

    def look():
        while not is_over.is_set():
            sizes.add(len(runtime.outbox.list(states=list(DeliveryState))))

    looking = threading.Thread(target=look)
    looking.start()
    for _ in range(60):
        runtime.outbox.replay(delivery)
        until(lambda: runtime.outbox.counts().delivered)
    is_over.set()
    looking.join()
    assert sizes == {1}


def test_acceptance_is_no_delivery(runtime):
    """F8: what is only in somebody's memory is owed until it is acknowledged, and goes back when that is reset."""
    channel = Switch(mode="accepting")
    runtime.open_channel(channel)
    delivery = promised(runtime, channel)
    until(lambda: channel.sent)
    record = runtime.outbox.find(delivery)
    assert record.state is DeliveryState.LEASED
    assert record.leased_until - record.updated_at <= 30.0
    assert runtime.outbox.counts().delivered == 0
    until(lambda: channel.reset("s"))
    until(lambda: len(channel.sent) == 2)
    assert channel.ids == [delivery, delivery]
    assert runtime.outbox.ack(delivery)
    assert not runtime.outbox.ack(delivery)
    assert channel.reset("s") == 0
    assert runtime.outbox.counts().delivered == 1


def test_what_is_sent_again_while_it_is_taken_back_is_not_forgotten(runtime, monkeypatch):
    """The same delivery, leased anew before `reset` returns, stays in the inbox and is renewed."""
    runtime.promises.start(give, 1, promise_id="p-1").promise.wait(60)
    until(lambda: len(runtime.inbox) == 1)
    first = runtime.outbox.find("p-1-done-1").attempt
    held, forget = runtime.outbox._held, runtime.outbox._forget

    def late(*args):
        until(lambda: [lease.attempt for lease in held.of("in-process", accepted=True)] == [first + 1])
        forget(*args)

    monkeypatch.setattr(runtime.outbox, "_forget", late)
    assert current().channel.reset() == 1
    assert len(runtime.inbox) == 1
    assert held.ids() == ["p-1-done-1"]
    assert runtime.inbox.take(60).promise == "p-1"


def later():
    """A decision whose end is waited for."""
    return (yield Wait("go"))


@pytest.mark.parametrize("capability", [Capability.STORE, Capability.NONE])
def test_losing_push_is_storing_with_an_event(patient, capability):
    """Capability is asked again at every attempt; when it is back, what was stored is sent."""
    channel = Switch()
    patient.open_channel(channel)
    with bind("s", channel):
        assert isinstance(patient.promises.start(later, promise_id="p-1"), Pushed)
    channel.can = capability  # before there is anything to send
    patient.engine.signal("p-1", "go", 1)
    patient.promises.wait("p-1", 10)
    stored = until(lambda: (now := patient.outbox.find("p-1-done-1")).state is DeliveryState.STORED and now)
    assert (stored.attempt, channel.tried) == (0, [])
    [incident] = patient.outbox.incidents()
    assert (incident.kind, incident.details["channel"], incident.details["count"]) == ("downgraded", "switch", 1)
    channel.can = Capability.PUSH  # nobody says so
    until(lambda: patient.outbox.find("p-1-done-1").state is DeliveryState.DELIVERED)
    assert channel.ids == ["p-1-done-1"]
    assert len(patient.outbox.incidents()) == 1


def test_a_channel_that_recovers_without_a_word(patient):
    """F4, F26: failed sends are tried again as long as it takes, by a sweep that never ends."""
    channel = Switch(mode="down")
    patient.open_channel(channel)
    deliveries = [promised(patient, channel, value=number) for number in range(20)]
    until(lambda: len(channel.tried) > 5)
    channel.mode = "up"
    until(lambda: sorted(channel.ids) == sorted(deliveries))


def test_a_channel_that_comes_back_is_served(path):
    """F4, F5: closed, the results are stored; opened again, they are sent, to nobody else before."""
    with Runtime(path, delivery=PATIENT) as runtime:
        channel, other = Switch(), Switch("other")
        runtime.open_channel(channel)
        runtime.open_channel(other)
        with bind("s", channel):
            for number in (1, 2, 3):
                runtime.promises.start(later, promise_id=f"p-{number}")
        runtime.close_channel(channel)
        ids = [f"p-{number}-done-1" for number in (1, 2, 3)]
        for number in (1, 2, 3):  # they end while the channel is away
            runtime.engine.signal(f"p-{number}", "go", number)
            runtime.promises.wait(f"p-{number}", 10)
        until(lambda: {record.state for record in runtime.outbox.list()} == {DeliveryState.STORED})
        assert [incident.kind for incident in runtime.outbox.incidents()].count("downgraded") >= 1
        with bind("another session", other):
            sent = promised(runtime, other, "another session")
            until(lambda: other.ids == [sent])  # that channel works, and was offered nothing of the other session's
        assert {runtime.outbox.find(delivery).state for delivery in ids} == {DeliveryState.STORED}
        runtime.open_channel(channel)
        until(lambda: channel.ids == ids)  # the oldest first, each once, without anybody's turn
        until(lambda: runtime.outbox.counts().delivered == 4)
        assert other.ids == [sent]


def test_what_is_stored_is_offered_to_the_next_channel_of_the_session(runtime):
    """F19: oldest first, once for each id, and never to another session."""
    api, chat = Switch("api", capability=Capability.STORE), Switch("chat")
    runtime.open_channel(api)
    runtime.open_channel(chat)
    mine = []
    for number in range(5):
        with bind("mine", api):
            promise = runtime.promises.start(give, number).promise
            promise.wait(60)
            mine.append(f"{promise.id}-done-1")
    with bind("theirs", api):
        theirs = runtime.promises.start(give, 0).promise
        theirs.wait(60)
    for _ in range(3):
        with bind("mine", chat):
            until(lambda: len(chat.sent) >= 5)
    assert chat.ids == mine
    assert runtime.outbox.find(f"{theirs.id}-done-1").state is DeliveryState.STORED


@pytest.mark.parametrize("when", ["before it is opened", "before it can push"])
def test_a_turn_that_began_too_early_is_offered_what_is_stored(runtime, when):
    """The turn is still under way when its channel is opened, or comes back."""
    channel = Switch(capability=Capability.STORE if when == "before it can push" else Capability.PUSH)
    with bind("s", channel, Capability.STORE):
        stored = runtime.promises.start(give, 1).promise
    stored.wait(60)
    if when == "before it can push":
        runtime.open_channel(channel)
    with bind("s", channel):
        if when == "before it can push":
            channel.can = Capability.PUSH
        else:
            runtime.open_channel(channel)
        until(lambda: channel.ids == [f"{stored.id}-done-1"])


def test_a_turn_that_began_before_the_runtime_was_used(path):
    """The inbox of a program is bound to the session, although nothing was opened yet."""
    with Runtime(path, in_process=False) as runtime, bind("s"):
        stored = runtime.promises.start(give, 1).promise
        stored.wait(60)
    with Runtime(path) as runtime, bind("s"):
        assert runtime.inbox.take(60).promise == stored.id


@pytest.mark.parametrize("kind", [Switch, AsyncSwitch])
def test_a_channel_that_closes_the_runtime(path, kind, caplog):
    """In the middle of its own `send`: the delivery is still owed, and nothing goes on in this process."""
    runtime = Runtime(path, delivery=QUICK, in_process=False)

    class Closing(kind):
        async def send(self, delivery):
            runtime.close()
            return Switch.send(self, delivery)

    channel = Closing()
    runtime.open_channel(channel)
    with bind("s", channel):
        runtime.promises.start(give, 1)
    until(lambda: channel.sent)
    until(lambda: not any(thread.name.startswith("troth-outbox") for thread in threading.enumerate()))
    assert "tried again" not in caplog.text
    with Runtime(path, delivery=QUICK, in_process=False) as again:
        assert again.outbox.counts().stored == 1


@pytest.mark.parametrize("answer", [True, False, None], ids=["yes", "no", "nobody to ask"])
def test_something_old_is_asked_about(runtime, answer):
    """`max_age`: the receiver is asked before it is surprised."""
    api, chat = Switch("api", capability=Capability.STORE), Switch("chat")
    runtime.open_channel(api)
    asked = []

    def confirm(delivery):
        asked.append(delivery.id)
        return answer

    runtime.open_channel(chat, max_age=0.0, confirm=None if answer is None else confirm)
    with bind("s", api):
        promise = runtime.promises.start(give, 1).promise
        promise.wait(60)
    delivery = f"{promise.id}-done-1"
    with bind("s", chat):
        if answer:
            until(lambda: chat.ids == [delivery])
        else:
            until(lambda: [incident.kind for incident in runtime.outbox.incidents()] == ["declined"])
    if not answer:
        with bind("s", chat):
            assert runtime.outbox.find(delivery).state is DeliveryState.STORED
    assert asked == ([] if answer is None else [delivery])


def test_nothing_undelivered_goes_by_count(path):
    """F21: sixty stored results are sixty stored results."""
    with Runtime(path, in_process=False) as runtime:
        for number in range(60):
            runtime.promises.start(give, number)
        until(lambda: len(runtime.outbox.list(states=[DeliveryState.STORED])) == 60)
        assert runtime.outbox.counts().stored == 60


def test_two_deliverers_one_effect(path):
    """Two runtimes serve one channel, threads switching all the time: each delivery is sent once."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with Runtime(path, delivery=QUICK) as left, Runtime(path, delivery=QUICK) as right:
            one, two = Switch("shared"), Switch("shared")
            left.open_channel(one)
            right.open_channel(two)
            deliveries = [promised(left if number % 2 else right, one if number % 2 else two) for number in range(40)]
            until(lambda: left.outbox.counts().delivered == 40, 30)
            assert sorted(one.ids + two.ids) == sorted(deliveries)
    finally:
        sys.setswitchinterval(before)


def test_a_receipt_that_cannot_be_written_is_not_a_second_send(patient):
    """A full disk after the effect: what it came to is kept until the store takes it."""
    channel = Switch()
    patient.open_channel(channel)

    def full(name):
        raise StoreError("the disk is full")

    with failpoints.armed("outbox.receipt.written", full):
        delivery = promised(patient, channel)
        until(lambda: channel.sent)
    until(lambda: patient.outbox.find(delivery).state is DeliveryState.DELIVERED)
    assert channel.ids == [delivery]


def test_the_clock_may_jump(path):
    """An hour forward and back: what waits for another attempt does not wait for an hour."""
    import time

    shift = [0.0]
    with SqliteStore(path, clock=lambda: time.time() + shift[0]) as store, Runtime(store, delivery=PATIENT) as runtime:
        channel = Switch(mode="down")
        runtime.open_channel(channel)
        shift[0] = 3600.0
        delivery = promised(runtime, channel)
        until(lambda: len(channel.tried) > 1)
        shift[0] = 0.0
        channel.mode = "up"
        until(lambda: runtime.outbox.find(delivery).state is DeliveryState.DELIVERED)


def test_a_clock_that_is_set_forward_ends_no_lease_of_the_living(path):
    """What somebody holds in memory is not sent again because an hour went by in a moment."""
    shift = [0.0]
    with SqliteStore(path, clock=lambda: time.time() + shift[0]) as store, Runtime(store, delivery=PATIENT) as runtime:
        channel = Switch(mode="accepting")
        runtime.open_channel(channel)
        delivery = promised(runtime, channel)
        until(lambda: channel.sent)
        shift[0] = 3600.0
        until(lambda: runtime.outbox.find(delivery).leased_until > store.clock())  # it was renewed, and not ended
        time.sleep(1.0)  # as long as two sweeps
        assert channel.ids == [delivery]
        assert runtime.outbox.ack(delivery)


def test_what_was_stored_before_the_clock_was_set_back_is_offered_at_once(path):
    """Not when that moment has come again."""
    import time

    shift = [7200.0]
    with SqliteStore(path, clock=lambda: time.time() + shift[0]) as store, Runtime(store, delivery=PATIENT) as runtime:
        channel = Switch()
        with bind("s", channel, Capability.STORE):
            stored = runtime.promises.start(give, 1).promise
        stored.wait(30)
        shift[0] = 0.0
        runtime.open_channel(channel)
        with bind("s", channel):
            until(lambda: channel.ids == [f"{stored.id}-done-1"], 30)


class Raising(Switch):
    """Raises once, and then delivers."""

    def __init__(self, error, name="raising"):
        super().__init__(name)
        self.error = error

    def send(self, delivery):
        if not self.tried:
            self.tried.append(delivery)
            raise self.error
        return super().send(delivery)


class AsyncRaising(Raising):
    """The same, async."""

    async def send(self, delivery):
        await asyncio.sleep(0)
        return Raising.send(self, delivery)


@pytest.mark.parametrize("kind", [Raising, AsyncRaising])
@pytest.mark.parametrize(
    "error",
    [asyncio.CancelledError(), SystemExit(1), KeyboardInterrupt(), BaseExceptionGroup("", [KeyboardInterrupt()])],
    ids=lambda error: type(error).__name__,
)
def test_nothing_that_a_channel_raises_ends_the_delivering(patient, kind, error):
    """A cancellation that nobody asked for is an attempt that failed, and so is a wish to end the program."""
    channel = kind(error)
    patient.open_channel(channel)
    deliveries = [promised(patient, channel, value=number) for number in range(3)]
    until(lambda: sorted(channel.ids) == sorted(deliveries))
    until(lambda: patient.outbox.counts().delivered == 3)
    assert sorted(patient.outbox.find(delivery).attempt for delivery in deliveries) == [1, 1, 2]


class Unshowable(Exception):
    """An error, or an answer, of which nothing can be written."""

    def __str__(self):
        raise ValueError("no text")

    __repr__ = __str__


def raising(error):
    raise error


ODD_ANSWERS = {
    "an object without a text": Unshowable,
    "an error without a text": lambda: raising(Unshowable()),
    "an error in half a letter": lambda: raising(OSError("no file \udc80\0")),
    "a header for a number": lambda: Receipt.refused("busy", "0.1"),
    "never": lambda: Receipt.refused("busy", float("inf")),
    "no number": lambda: Receipt.refused("busy", float("nan")),
    "a reason in half a letter": lambda: Receipt.refused("busy \ud800\0", 0.0),
    "a word that is none": lambda: Receipt("perhaps"),
}


@pytest.mark.parametrize("odd", ODD_ANSWERS)
@pytest.mark.parametrize("kind", [Switch, AsyncSwitch])
def test_whatever_a_channel_answers_is_an_attempt_that_can_be_written_down(patient, kind, odd):
    """F23: it is tried again, and not leased forever by a process that does not send it."""

    class Odd(kind):
        def __init__(self):
            super().__init__()
            self.has_answered = False

        def send(self, delivery):
            if not self.has_answered:
                self.has_answered = True
                return ODD_ANSWERS[odd]()
            return super().send(delivery)

    channel = Odd()
    patient.open_channel(channel)
    delivery = promised(patient, channel)
    until(lambda: patient.outbox.find(delivery).state is DeliveryState.DELIVERED)
    assert (channel.ids, patient.outbox.find(delivery).attempt) == ([delivery], 2)


def test_a_reference_in_half_a_letter_is_a_receipt(patient):
    """The effect has happened: it is written down, and not sent again."""

    class Odd(Switch):
        def send(self, delivery):
            super().send(delivery)
            return Receipt.done("m-\udc80\0")

    channel = Odd()
    patient.open_channel(channel)
    delivery = promised(patient, channel)
    until(lambda: patient.outbox.find(delivery).state is DeliveryState.DELIVERED)
    assert channel.ids == [delivery]


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), ValueError()], ids=lambda e: type(e).__name__)
def test_nobody_who_is_asked_ends_the_delivering(patient, error):
    """`confirm` and `capability` raise what they like: what they were asked about stays owed, and others are served."""
    asked = []

    def confirm(delivery):
        asked.append(delivery.id)
        raise error

    class Moody(Switch):
        @property
        def capability(self):
            return raising(error) if self.can is None else self.can

    channel, other = Moody("moody"), Switch("other")
    patient.open_channel(channel, max_age=0.0, confirm=confirm)
    patient.open_channel(other)
    delivery = promised(patient, channel)
    until(lambda: [incident.kind for incident in patient.outbox.incidents()] == ["declined"])
    assert asked == [delivery]
    channel.can = None
    elsewhere = promised(patient, other, "another")
    until(lambda: other.ids == [elsewhere])
    assert patient.outbox.find(delivery).state is DeliveryState.STORED


def test_a_channel_that_cancels_its_own_task_keeps_nothing(patient, caplog):
    """What it was sending is owed again, and not renewed forever as if somebody still sent it."""

    class Cancelling(Switch):
        async def send(self, delivery):
            if not self.tried:
                self.tried.append(delivery)
                asyncio.current_task().cancel()
                await asyncio.sleep(10)
            return Switch.send(self, delivery)

    channel = Cancelling()
    patient.open_channel(channel)
    delivery = promised(patient, channel)
    until(lambda: channel.ids == [delivery])
    until(lambda: patient.outbox.counts().delivered == 1)
    assert "were interrupted" in caplog.text


def test_a_slow_receiver_holds_up_nobody_else(runtime):
    """Each channel has its own pace."""
    slow, quick = Switch("slow", "hanging"), Switch("quick")
    runtime.open_channel(slow)
    runtime.open_channel(quick)
    promised(runtime, slow, "a")
    until(lambda: slow.tried)
    promised(runtime, quick, "b")
    until(lambda: quick.sent)
    slow.freed.set()


class SlowFor(Switch):
    """One session's `send` waits, and no other's."""

    def __init__(self, name, slow):
        super().__init__(name)
        self.slow = slow

    def send(self, delivery):
        if delivery.session == self.slow:
            self.tried.append(delivery)
            self.freed.wait(60)
        return super().send(delivery)


class AsyncSlowFor(SlowFor):
    """The same, async."""

    async def send(self, delivery):
        if delivery.session == self.slow:
            self.tried.append(delivery)
            await asyncio.to_thread(self.freed.wait, 60)
        return Switch.send(self, delivery)


@pytest.mark.parametrize("kind", [SlowFor, AsyncSlowFor])
def test_a_slow_session_holds_up_no_other_on_its_channel(runtime, kind):
    """A room that takes long, or whose channel waits for somebody, keeps its order and nobody else's."""
    channel = kind("rooms", "slow")
    runtime.open_channel(channel)
    slow = [promised(runtime, channel, "slow", number) for number in range(3)]
    until(lambda: channel.tried)
    others = [promised(runtime, channel, f"s-{number % 5}", number) for number in range(10)]
    until(lambda: len(channel.sent) == 10)
    assert sorted(channel.ids) == sorted(others)
    channel.freed.set()
    until(lambda: len(channel.sent) == 13)
    assert channel.ids[10:] == slow
    until(lambda: runtime.outbox.counts().delivered == 13)


def test_somebody_who_is_asked_and_says_nothing_holds_up_nobody_else(path):
    """A question about something old is for one session."""
    shift, asked, answer = [0.0], threading.Event(), threading.Event()

    def confirm(_):
        asked.set()
        return answer.wait(60)

    with SqliteStore(path, clock=lambda: time.time() + shift[0]) as store, Runtime(store, delivery=QUICK) as runtime:
        with bind("old", None, Capability.STORE):
            runtime.promises.start(give, 1).promise.wait(60)
        shift[0] = 3600.0
        channel = Switch()
        runtime.open_channel(channel, max_age=60.0, confirm=confirm)
        with bind("old", channel):
            assert asked.wait(60)
        fresh = promised(runtime, channel, "new")
        until(lambda: channel.ids == [fresh])
        answer.set()
        until(lambda: len(channel.sent) == 2)


@pytest.mark.parametrize("kind", [SlowFor, AsyncSlowFor])
def test_what_was_done_when_a_channel_is_closed_is_not_sent_again(patient, kind):
    """Receipts of quick sends are written together, and with the end of the channel at the latest."""
    channel, third = kind("c", "nobody"), threading.Event()
    send = channel.send

    def until_the_third(delivery):
        if len(channel.sent) == 2:
            channel.slow = "s"
            third.set()
        return send(delivery)

    channel.send = until_the_third
    with bind("s", None, Capability.STORE):
        for number in range(4):
            patient.promises.start(give, number).promise.wait(60)
    patient.open_channel(channel)
    with bind("s", channel):
        assert third.wait(60)
    patient.close_channel(channel)
    assert patient.outbox.counts().delivered == 2
    channel.freed.set()
    again = Switch("c")
    patient.open_channel(again)
    until(lambda: patient.outbox.counts().delivered == 4)  # receipts are written a moment after the send
    assert len(again.sent) == 2
    assert not set(channel.ids[:2]) & set(again.ids)


def test_the_inbox_delivers_what_is_taken_out(runtime):
    """What lies in memory is owed; what was taken is delivered."""
    promises = [runtime.promises.start(give, number).promise for number in range(3)]
    until(lambda: len(runtime.inbox) == 3)
    assert runtime.outbox.counts().stored == 3
    taken = [runtime.inbox.take(60).promise for _ in promises]
    assert sorted(taken) == sorted(promise.id for promise in promises)
    assert runtime.outbox.counts().delivered == 3
    assert runtime.inbox.take(0.01) is None


def test_what_was_not_taken_out_arrives_after_a_restart(path):
    """A runtime that is closed holds nothing back."""
    with Runtime(path, delivery=QUICK) as runtime:
        promise = runtime.promises.start(give, 1).promise
        until(lambda: len(runtime.inbox))
    with Runtime(path, delivery=QUICK) as runtime:
        assert runtime.inbox.take(60).promise == promise.id


def test_a_name_is_open_once(runtime):
    """A second channel of the same name is refused, and so is closing what is not open."""
    runtime.open_channel(Switch())
    with pytest.raises(MisuseError, match="already open"):
        runtime.open_channel(Switch())
    with pytest.raises(MisuseError, match="No channel"):
        runtime.close_channel("nobody")


@pytest.mark.parametrize(
    ("channel", "options", "says"),
    [
        pytest.param(Switch, {}, "an object of it", id="a class"),
        pytest.param(object(), {}, "an object of it", id="no channel"),
        pytest.param(Switch(), {"max_age": "60"}, "`max_age` is '60'", id="an age in words"),
        pytest.param(Switch(), {"max_age": -1}, "`max_age` is -1", id="an age below 0"),
        pytest.param(Switch(), {"confirm": bool}, "older than `max_age`", id="a question that is never asked"),
        pytest.param(Switch(), {"max_age": 1, "confirm": "yes"}, "it is a function", id="a question to nobody"),
        pytest.param(Switch(), {"second_route": 5}, "the name of a channel", id="no route"),
        pytest.param(Switch(), {"second_route": "switch"}, "its own second route", id="the same route"),
    ],
)
def test_what_would_do_nothing_is_not_opened(runtime, channel, options, says):
    """A channel, and what is said of it, is looked at where it is opened; the runtime goes on and can be closed."""
    with pytest.raises(MisuseError, match=says):
        runtime.open_channel(channel, **options)
    runtime.open_channel(Switch())
    assert runtime.promises.start(give, 1).promise.wait(60).result == 1


def test_a_forked_child_promises_and_takes_nothing(path):
    """What it promised would be nobody's, and what it took out of its copy of the inbox would be missing in ours."""
    program = textwrap.dedent(
        f"""
        import os, sys, time
        from troth.errors import MisuseError
        from troth.runtime import Runtime
        runtime = Runtime({str(path)!r})
        job = runtime.jobs.start("echo ours").promise
        job.wait(60)
        while not len(runtime.inbox):
            time.sleep(0.01)
        child = os.fork()
        if child == 0:
            refused = 0
            for attempt in (
                lambda: runtime.inbox.take(0),
                lambda: runtime.outbox.ack(job.id + "-done-1"),
                lambda: runtime.promises.start("agent", prompt="x"),
                lambda: runtime.jobs.start("true"),
            ):
                try:
                    attempt()
                except MisuseError as error:
                    refused += "forked from" in str(error)
            os._exit(refused)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
        assert runtime.inbox.take(60).data["result"]["output"] == "ours\\n"
        runtime.close()
        """
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_the_helper_of_a_receiver():
    """Each id is new once, from any thread."""
    seen = Deduplicator(limit=100)
    fresh = []
    threads = [
        threading.Thread(target=lambda: fresh.extend(n for n in range(50) if seen.is_new(str(n)))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(fresh) == list(range(50))
    seen.forget("3")
    assert seen.is_new("3")


@pytest.mark.parametrize("kind", [Switch, AsyncSwitch])
@pytest.mark.parametrize("way", ["the channel", "the runtime"])
def test_a_send_under_way_is_waited_for_when_it_is_closed(path, kind, way):
    """Its receipt counts: what has arrived does not arrive again, and nothing more is sent."""
    begun = threading.Event()

    class Brief(kind):
        def wait_a_moment(self, delivery):
            begun.set()
            self.tried.append(delivery)
            return self.freed.wait(0.05)

        if kind is Switch:

            def send(self, delivery):
                self.wait_a_moment(delivery)
                return Switch.send(self, delivery)
        else:

            async def send(self, delivery):
                await asyncio.to_thread(self.wait_a_moment, delivery)
                return Switch.send(self, delivery)

    with Runtime(path, delivery=QUICK, in_process=False) as runtime:
        with bind("s", None, Capability.STORE):
            promises = [runtime.promises.start(give, number).promise for number in range(3)]
            ids = [f"{promise.wait(60).id}-done-1" for promise in promises]
        channel = Brief()
        runtime.open_channel(channel)
        with bind("s", channel):
            assert begun.wait(60)
        if way == "the channel":
            runtime.close_channel(channel)
    with SqliteStore(path) as store:
        assert store.promises.counts().delivered == len(channel.sent) == 1
    with Runtime(path, delivery=QUICK, in_process=False) as runtime:
        again = Switch()
        runtime.open_channel(again)
        with bind("s", again):
            until(lambda: len(again.sent) == 2)
        assert [*channel.ids, *again.ids] == ids
