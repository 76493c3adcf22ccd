"""What `promises.start` answers, and that the row is there before anything else."""

import asyncio
import contextvars
import math
import re
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from troth.errors import MisuseError
from troth.runtime import (
    Capability,
    Inline,
    PromiseRefused,
    Pushed,
    Runtime,
    Saga,
    Stored,
    Workflow,
    bind,
    current,
    step,
)
from troth.runtime.channels import stateless
from troth.runtime.engine import RunFailedError, Step, Together, Wait
from troth.runtime.promises.errors import (
    ForeignPromiseError,
    NotSettledError,
    UnknownDeliveryError,
    UnknownPromiseError,
)
from troth.runtime.store import SqliteStore, StoreError, commit_point
from troth.runtime.store.promise_records import DeliveryState, NewPromise, PromiseState
from troth.testing import failpoints

from .conftest import QUICK, AsyncSwitch, Switch, give, until, value_of


def hold():
    """A decision that waits for a word."""
    return (yield Wait("go"))


def fail():
    """A decision that fails."""
    yield Step("fail", boom)


def boom():
    raise ValueError("no such order")


def shapeless():
    """A decision whose result JSON cannot hold."""
    yield Step("give", value_of, 1)
    return {1, 2}


@pytest.mark.parametrize(
    ("capability", "detach", "kind"),
    [
        pytest.param(Capability.PUSH, "may", Pushed, id="push, may"),
        pytest.param(Capability.PUSH, "must", Pushed, id="push, must"),
        pytest.param(Capability.PUSH, "never", Inline, id="push, never"),
        pytest.param(Capability.STORE, "may", Stored, id="store, may"),
        pytest.param(Capability.STORE, "must", Stored, id="store, must"),
        pytest.param(Capability.STORE, "never", Inline, id="store, never"),
        pytest.param(Capability.NONE, "may", Inline, id="none, may"),
        pytest.param(Capability.NONE, "never", Inline, id="none, never"),
        pytest.param(Capability.NONE, "must", PromiseRefused, id="none, must"),
    ],
)
@pytest.mark.parametrize("color", ["sync", "async"])
def test_exactly_one_outcome(runtime, capability, detach, kind, color):
    """Pushed, stored, inline or refused; both colors agree."""
    channel = Switch()
    runtime.open_channel(channel)
    with bind("s", channel, capability):
        if kind is PromiseRefused:
            with pytest.raises(PromiseRefused, match="was not started: nothing can be delivered"):
                begin(runtime, color, give, 7, detach=detach)
            assert runtime.outbox.counts().promised == 0
            return
        outcome = begin(runtime, color, give, 7, detach=detach)
    assert type(outcome) is kind
    if kind is Inline:
        assert outcome.result == 7
        assert runtime.outbox.counts().promised == 0
    else:
        assert outcome.promise.wait(60).result == 7


def begin(runtime, color, *args, **kwargs):
    if color == "sync":
        return runtime.promises.start(*args, **kwargs)
    return asyncio.run(runtime.promises.astart(*args, **kwargs))


def test_a_stored_outcome_says_how_to_ask(runtime):
    """The note names the promise and the way to poll for it."""
    with bind("s", Switch("elsewhere")):
        outcome = runtime.promises.start(give, 1)
    assert isinstance(outcome, Stored)
    assert "'elsewhere' is not open in this runtime" in outcome.note
    assert outcome.promise.id in outcome.note
    assert "poll" in outcome.note


@pytest.mark.parametrize(
    ("declared", "narrowed", "says"),
    [
        pytest.param(Capability.STORE, None, "the channel 'switch' cannot push now, and only stores", id="the channel"),
        pytest.param(Capability.NONE, None, "the channel 'switch' can neither push nor store", id="neither"),
        pytest.param(Capability.PUSH, Capability.STORE, "is bound with `Capability.STORE`, although", id="the binding"),
        pytest.param(Capability.PUSH, Capability.NONE, "the turn has opted out", id="opted out"),
    ],
)
def test_why_nothing_is_sent_is_said(runtime, declared, narrowed, says):
    """The note of what is stored, and the refusal of what is not, name what is in the way."""
    channel = Switch(capability=declared)
    runtime.open_channel(channel)
    with bind("ann", channel, narrowed):
        if Capability.NONE in (declared, narrowed):
            with pytest.raises(PromiseRefused, match=re.escape(says)):
                runtime.promises.start(give, 1, detach="must")
        else:
            assert says in runtime.promises.start(give, 1).note
    with stateless(), pytest.raises(PromiseRefused, match="the turn has opted out"):
        runtime.promises.start(give, 1, detach="must")


@pytest.mark.parametrize("word", ["none", "store"])
def test_a_worker_of_somebody_else_says_so(runtime, monkeypatch, word):
    """F28: TROTH_DELIVERY speaks for what is bound to nothing."""
    monkeypatch.setenv("TROTH_DELIVERY", word)
    assert isinstance(runtime.promises.start(give, 1), Inline if word == "none" else Stored)
    monkeypatch.setenv("TROTH_DELIVERY", "perhaps")
    with pytest.raises(MisuseError, match="can be `none` or `store`"):
        runtime.promises.start(give, 1)


@pytest.mark.parametrize("color", ["sync", "async"])
def test_a_thread_that_lost_its_context_is_refused(path, color):
    """F16: with `must_bind`, what is bound to nothing is no turn of anybody; a thread that carries the context is."""
    with Runtime(path, in_process=False, must_bind=True) as runtime:
        outcomes = []

        def work():
            for start in (lambda: begin(runtime, color, give, 1), lambda: runtime.jobs.start(["true"])):
                try:
                    outcomes.append(start())
                except PromiseRefused as refused:
                    outcomes.append(refused)

        with bind("s"):
            lost = threading.Thread(target=work, name="lost")
            lost.start()
            lost.join()
            carried = threading.Thread(target=contextvars.copy_context().run, args=(work,))
            carried.start()
            carried.join()
        assert [type(outcome) for outcome in outcomes] == [PromiseRefused, PromiseRefused, Stored, Stored]
        assert "the thread" in str(outcomes[0])
        assert "copy_context" in str(outcomes[0])
        assert runtime.outbox.counts().promised == 2
        for outcome in outcomes[2:]:
            outcome.promise.wait(60)


def test_without_a_default_channel_results_are_stored(path):
    """Nobody runs who could be told: kept for whoever asks."""
    with Runtime(path, in_process=False) as runtime:
        assert isinstance(runtime.promises.start(give, 1), Stored)


WORKS = {
    "a decision": (give, (5,), {}, 5),
    "a function as an agent": (str.upper, (), {"prompt": "x"}, "X"),
}


def saga():
    trip = Saga("trip")
    trip.step("book", do=value_of, undo=value_of, arguments={"value": 5})
    return trip


WORKS["a saga"] = (saga(), (), {}, {"book": 5})
WORKS["a workflow"] = (Workflow("orders", step("one", function=value_of, inputs={"value": 3})), (), {}, None)


@pytest.mark.parametrize("what", ["a decision", "a saga", "a function as an agent", "a workflow"])
def test_every_kind_of_work(runtime, what):
    """A workflow, a saga, a decision, an agent with a prompt."""
    work, args, kwargs, expected = WORKS[what]
    promise = runtime.promises.start(work, *args, **kwargs).promise
    record = promise.wait(60)
    assert record.state is PromiseState.DONE, record
    if expected is not None:
        assert record.result == expected
    delivery = runtime.inbox.take(10)
    assert (delivery.promise, delivery.kind, delivery.data["result"]) == (promise.id, "done", record.result)


@pytest.mark.parametrize(
    ("work", "state", "type_"),
    [
        pytest.param(fail, PromiseState.FAILED, "ValueError", id="fails"),
        pytest.param(shapeless, PromiseState.FAILED, "NotJsonError", id="a result that is not JSON"),
    ],
)
def test_a_failure_is_delivered_as_that(runtime, work, state, type_):
    """F20: a value that cannot be kept is a typed failure, never a loss."""
    record = runtime.promises.start(work).promise.wait(60)
    assert (record.state, record.error["type"]) == (state, type_)
    assert runtime.inbox.take(10).data["error"]["type"] == type_


class Mute(Exception):
    """An error that cannot say what it is."""

    def __str__(self):
        raise ZeroDivisionError


ODD_ERRORS = [
    SystemExit(3),
    KeyboardInterrupt(),
    GeneratorExit(),
    asyncio.CancelledError("mine"),
    BaseException("of no kind"),
    Mute(),
    ValueError("half a letter: \ud800"),
]


def raising(error, where):
    """A decision that ends with this error: by itself, in a step, or in a branch."""

    def in_step():
        raise error

    async def in_async_step():
        raise error

    def alone():
        raise error
        yield

    def decision():
        yield Step("give", value_of, 1)
        if where == "a branch":
            yield Together(alone(), alone())
        if where == "a step":
            yield Step("raise", in_step)
        if where == "an async step":
            yield Step("raise", in_async_step)
        if where == "an async step with a limit":
            yield Step("raise", in_async_step, timeout=60.0)
        raise error

    return alone if where == "the first line" else decision


@pytest.mark.parametrize(
    "where", ["the decision", "the first line", "a step", "an async step", "an async step with a limit", "a branch"]
)
@pytest.mark.parametrize("error", ODD_ERRORS, ids=lambda error: type(error).__name__)
def test_whatever_work_raises_is_its_end(runtime, error, where):
    """Nobody awaits it, so there is nobody else whom `SystemExit` could be meant for; its text can be sent as it is."""
    record = runtime.promises.start(raising(error, where)).promise.wait(60)
    assert (record.state, record.error["type"]) == (PromiseState.FAILED, type(error).__name__)
    delivery = runtime.inbox.take(10)
    assert type(error).__name__ in delivery.text
    assert delivery.text.encode()


def test_a_result_in_half_a_letter_is_told_in_text_that_can_be_sent(runtime):
    """Every channel has to encode what it sends; `data` has the value as it is."""
    runtime.promises.start(give, "half: \ud800").promise.wait(60)
    delivery = runtime.inbox.take(10)
    assert (delivery.text, delivery.data["result"]) == ("half: \\ud800", "half: \ud800")


def test_a_cancelled_promise_is_delivered_as_that(runtime):
    """Cancelling is an end like the others."""
    promise = runtime.promises.start(hold).promise
    assert promise.cancel()
    assert promise.wait(60).state is PromiseState.CANCELLED
    assert "was cancelled" in runtime.inbox.take(10).text
    assert not promise.cancel()


def test_both_colors_answer_the_same(runtime):
    """`wait` and `await_end`, `get` and `aget` return equal records."""
    promise = runtime.promises.start(give, [1]).promise
    waited = promise.wait(60)
    assert asyncio.run(promise.await_end(10)) == waited == promise.get() == asyncio.run(promise.aget())
    with pytest.raises(UnknownPromiseError, match="never was"):
        runtime.promises.get("p-nobody")
    other = runtime.promises.start(hold).promise
    with pytest.raises(NotSettledError):
        other.wait(0.05)
    with pytest.raises(NotSettledError):
        asyncio.run(other.await_end(0.05))
    other.cancel()
    other.wait(60)


VERBS = {
    "get": lambda promises, promise, **who: promises.get(promise, **who),
    "wait": lambda promises, promise, **who: promises.wait(promise, 60, **who),
    "cancel": lambda promises, promise, **who: promises.cancel(promise, **who),
    "aget": lambda promises, promise, **who: asyncio.run(promises.aget(promise, **who)),
    "await_end": lambda promises, promise, **who: asyncio.run(promises.await_end(promise, 60, **who)),
    "acancel": lambda promises, promise, **who: asyncio.run(promises.acancel(promise, **who)),
}


@pytest.mark.parametrize("verb", VERBS)
def test_another_session_is_refused(runtime, verb):
    """For every verb, in a turn of another session or by name; whoever is in no turn sees everything."""
    chat = Switch()
    with bind("mine", chat):
        promise = runtime.promises.start(give, 1).promise
    promise.wait(60)
    with bind("theirs", chat):
        with pytest.raises(ForeignPromiseError, match="another session than 'theirs'"):
            VERBS[verb](runtime.promises, promise.id)
        VERBS[verb](runtime.promises, promise.id, session="mine")
    for who in ({"session": "theirs"}, {"session": "main"}):
        with pytest.raises(ForeignPromiseError):
            VERBS[verb](runtime.promises, promise.id, **who)
    VERBS[verb](runtime.promises, promise.id)
    with bind("mine", chat):
        VERBS[verb](runtime.promises, promise.id)
        with bind(None):
            VERBS[verb](runtime.promises, promise.id)


@pytest.mark.parametrize(
    "verb",
    [
        pytest.param(lambda outbox, delivery: outbox.find(delivery), id="find"),
        pytest.param(lambda outbox, delivery: asyncio.run(outbox.afind(delivery)), id="afind"),
        pytest.param(lambda outbox, delivery: outbox.read(delivery), id="read"),
        pytest.param(lambda outbox, delivery: asyncio.run(outbox.aread(delivery)), id="aread"),
        pytest.param(lambda outbox, delivery: outbox.replay(delivery), id="replay"),
        pytest.param(lambda outbox, delivery: asyncio.run(outbox.areplay(delivery)), id="areplay"),
    ],
)
def test_a_turn_sees_and_replays_the_deliveries_of_its_session_alone(runtime, verb):
    """As with promises: whoever is in no turn sees everything, and an unknown delivery is unknown to everybody."""
    chat = Switch()
    with bind("mine", chat):
        promise = runtime.promises.start(give, 1).promise
        promise.wait(60)
        delivery = f"{promise.id}-done-1"
    runtime.outbox.ack(delivery)
    with bind("theirs", chat):
        everything = list(DeliveryState)
        assert runtime.outbox.list(states=everything) == asyncio.run(runtime.outbox.alist(states=everything)) == []
        assert [record.id for record in runtime.outbox.list(states=everything, session="mine")] == [delivery]
        with pytest.raises(ForeignPromiseError, match="another session than 'theirs'"):
            verb(runtime.outbox, delivery)
        with pytest.raises(UnknownDeliveryError):
            verb(runtime.outbox, "p-nobody-done-1")
        with bind(None):
            assert runtime.outbox.find(delivery).state is DeliveryState.DELIVERED
    with bind("mine", chat):
        assert [record.id for record in runtime.outbox.list(states=everything)] == [delivery]
        verb(runtime.outbox, delivery)


def test_another_sessions_turn_stops_nothing_and_lists_nothing(runtime):
    """By the handle as by the id; an unknown promise is unknown to everybody."""
    chat = Switch()
    with bind("mine", chat):
        promise = runtime.promises.start(hold).promise
    with bind("theirs", chat):
        assert runtime.promises.list() == asyncio.run(runtime.promises.alist()) == []
        for ask in (promise.get, promise.wait, promise.cancel):
            with pytest.raises(ForeignPromiseError):
                ask()
        with pytest.raises(UnknownPromiseError):
            runtime.promises.get("p-nobody")
    assert promise.get().state is PromiseState.OPEN
    with bind("mine", chat):
        assert [record.id for record in runtime.promises.list()] == [promise.id]
        assert promise.cancel()
    assert [record.id for record in runtime.promises.list()] == [promise.id]
    assert promise.wait(60).state is PromiseState.CANCELLED


def test_a_conversation_cannot_ask_for_what_another_has_begun(runtime):
    """Its turn is its session's, bound or not."""
    of_the_program = runtime.promises.start(give, 1).promise
    of_the_program.wait(60)
    refused = []

    class Agent:
        def step(self, conversation):
            for verb in VERBS.values():
                with pytest.raises(ForeignPromiseError) as caught:
                    verb(runtime.promises, of_the_program.id)
                refused.append(str(caught.value))

    conversation = runtime.conversations.open(Agent(), "talk-1")
    conversation.send("hello")
    conversation.run()
    assert len(refused) == len(VERBS)
    assert all("'talk-1'" in message for message in refused)


def test_another_process_can_ask_at_once(runtime, path):
    """The handle is gettable the moment it is returned, by anybody."""
    promise = runtime.promises.start(hold).promise
    program = f"""
    from troth.runtime import Runtime
    with Runtime({str(path)!r}, in_process=False, recover=False) as runtime:
        print(runtime.promises.get({promise.id!r}).state)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "open"
    promise.cancel()
    promise.wait(60)


def test_a_store_that_refuses_the_end_is_told_through_the_promise(path):
    """F20: the error reaches whoever waits, and the end is not lost."""
    with Runtime(path, recover=False, delivery=QUICK) as runtime:  # nobody else takes the run up meanwhile
        with failpoints.armed("run.finish.written", full_disk):
            promise = runtime.promises.start(give, 1).promise
            with pytest.raises(StoreError, match="disk is full"):
                promise.wait(60)
        assert promise.get().state is PromiseState.OPEN
        assert runtime.outbox.counts().stored == 1


def full_disk(name):
    raise StoreError("the disk is full")


def test_a_start_that_fails_is_an_error(path):
    """Never "started": what could not be written down was not promised, either."""
    with Runtime(path, recover=False, delivery=QUICK) as runtime:
        with failpoints.armed("run.start.written"), pytest.raises(failpoints.InjectedFaultError):
            runtime.promises.start(give, 1, promise_id="p-1")
        with pytest.raises(UnknownPromiseError):
            runtime.promises.get("p-1")


@pytest.mark.parametrize(
    ("args", "options", "says"),
    [
        ((), {}, "missing 1 required"),
        ((1, 2), {}, "2 were given"),
        ((1,), {"promise_id": 5}, "`promise_id` is 5"),
        ((1,), {"promise_id": ""}, "`promise_id` is ''"),
        ((1,), {"retention": float("inf")}, "without an end is None"),
        ((1,), {"retention": float("nan")}, "above 0"),
    ],
    ids=["too few", "too many", "an id that is no text", "an empty id", "no end", "no number"],
)
@pytest.mark.parametrize("color", ["sync", "async"])
def test_what_could_never_end_is_not_promised(runtime, args, options, says, color):
    """A decision that does not take its arguments is refused before anything is written down."""
    with pytest.raises(MisuseError, match=says):
        if color == "sync":
            runtime.promises.start(give, *args, **options)
        else:
            asyncio.run(runtime.promises.astart(give, *args, **options))
    assert runtime.outbox.counts().promised == 0


def test_inline_work_that_fails_raises(runtime):
    """There is nobody else to tell."""
    with stateless(), pytest.raises(RunFailedError, match="no such order"):
        runtime.promises.start(fail)


def test_a_promise_id_is_used_once(runtime):
    """A second start under the same id starts nothing."""
    runtime.promises.start(give, 1, promise_id="p-1")
    with pytest.raises(MisuseError, match="already"):
        runtime.promises.start(give, 2, promise_id="p-1")


def test_a_conversation_is_its_own_session(runtime):
    """A promise made inside an unbound conversation belongs to the session of the conversation's id."""
    seen = []

    class Agent:
        def step(self, conversation):
            seen.append(current().session)
            seen.append(runtime.promises.start(give, 1).promise)

    conversation = runtime.conversations.open(Agent(), "talk-1")
    conversation.send("hello")
    conversation.run()
    assert seen[0] == "talk-1"
    assert seen[1].wait(60).session == "talk-1"
    assert runtime.inbox.take(10, session="talk-1").promise == seen[1].id


def test_the_tools_of_an_agent(path):
    """Delegate, look, wait, stop, each in the caller's own session."""
    with Runtime(path, agents={"shouter": str.upper}, delivery=QUICK) as runtime:
        tools = {tool.name: tool for tool in runtime.promises.tools()}
        assert sorted(tools) == ["delegate", "look_at_promise", "stop_promise", "wait_for_promise"]
        answer = asyncio.run(tools["delegate"]("shouter", "hi"))
        assert answer["delivery"] == "pushed"
        assert asyncio.run(tools["wait_for_promise"](answer["promise"], 10))["result"] == "HI"
        with bind("other", Switch()):
            stored = asyncio.run(tools["delegate"]("shouter", "hi"))
            assert "wait_for_promise" in stored["note"]
            with pytest.raises(ForeignPromiseError):
                asyncio.run(tools["look_at_promise"](answer["promise"]))
        with stateless():
            assert asyncio.run(tools["delegate"]("shouter", "hi"))["result"] == "HI"


def test_retention_counts_from_the_end_and_expiry_is_told(path):
    """F15, F21: after it, asking says since when; nothing is called unknown, and the incident is listed."""
    with Runtime(path, in_process=False, delivery=QUICK) as runtime:
        promise = runtime.promises.start(give, 1, retention=0.05).promise
        record = until(lambda: (found := promise.get()).state is PromiseState.EXPIRED and found)
        assert record.result is None
        assert record.expired_at >= record.settled_at + 0.05
        assert runtime.outbox.counts().expired == 1
        assert [incident.kind for incident in runtime.outbox.incidents()] == ["expired"]
        delivery = f"{promise.id}-done-1"
        assert runtime.outbox.find(delivery).state is DeliveryState.EXPIRED
        with pytest.raises(MisuseError, match="has expired since"):
            runtime.outbox.replay(delivery)


def test_a_shorter_retention_than_any_before_is_noticed(path):
    """By a sweep that has looked and found that nothing expires for a week, although another process asks for it."""
    point = commit_point("test.retention", "a promise of work that is no run")

    def work(tx):
        now = time.time()
        tx.promises.add(NewPromise("gone", "s", "test", "subject", "title", None, None, 0.05, now))
        tx.promises.settle("test", "subject", PromiseState.DONE, now, result="1")

    with Runtime(path, in_process=False) as runtime:
        kept = runtime.promises.start(give, 1).promise
        kept.wait(30)
        until(lambda: runtime.outbox._expired_to > 0, 30)
        with SqliteStore(path) as other:
            other.commit(point, work)
        until(lambda: runtime.promises.get("gone").state is PromiseState.EXPIRED, 30)
        assert kept.get().state is PromiseState.DONE
        assert [incident.kind for incident in runtime.outbox.incidents()] == ["expired"]


def test_an_open_promise_does_not_expire(path):
    """The time begins with the end of the work."""
    with Runtime(path, in_process=False, delivery=QUICK) as runtime:
        promise = runtime.promises.start(hold, retention=0.01).promise
        threading.Event().wait(1.2)
        assert promise.get().state is PromiseState.OPEN


@pytest.mark.parametrize("kind", [Switch, AsyncSwitch])
def test_delivery_does_not_wait_for_the_turn(runtime, kind):
    """F25: a result arrives while the turn that began the work still runs."""
    channel = kind()
    runtime.open_channel(channel)
    with bind("s", channel):
        promise = runtime.promises.start(give, 1).promise
        until(lambda: channel.ids == [f"{promise.id}-done-1"])


@pytest.mark.parametrize(
    ("args", "given", "says"),
    [
        pytest.param((give, 1), {"prompt": "x"}, "which does not take arguments", id="arguments of an agent"),
        pytest.param((give,), {"prompt": "x", "inputs": {}}, "which does not take `inputs`", id="inputs of an agent"),
        pytest.param((give,), {"prompt": 5}, "`prompt` is 5", id="a prompt that is no text"),
        pytest.param((give, 1), {"inputs": {"a": 1}}, "which does not take `inputs`", id="inputs of a decision"),
        pytest.param(("a.yaml", 1), {}, "which does not take arguments", id="arguments of a workflow"),
    ],
)
def test_what_the_work_would_never_look_at_is_refused(runtime, args, given, says):
    """An argument that nobody reads is a mistake of the caller's, and nothing is started."""
    with pytest.raises(MisuseError, match=says):
        runtime.promises.start(*args, **given)
    assert runtime.outbox.counts().promised == 0


@pytest.mark.parametrize("timeout", ["3", float("nan"), True], ids=repr)
def test_a_timeout_is_a_number(runtime, timeout):
    """Also where nothing has to be waited for."""
    promise = runtime.promises.start(give, 1).promise
    for ask in (promise.wait, runtime.inbox.take, lambda limit: asyncio.run(promise.await_end(limit))):
        with pytest.raises(MisuseError, match="`timeout` is"):
            ask(timeout)
    assert promise.wait(math.inf).result == 1


@pytest.mark.parametrize("limit", [-1, "x", 1.5, None], ids=repr)
def test_a_limit_is_a_whole_number(runtime, limit):
    """A database would take -1 for everything, and a text for damage."""
    for ask in (runtime.promises.list, runtime.outbox.list, runtime.outbox.incidents, runtime.jobs.list):
        with pytest.raises(MisuseError, match="`limit` is"):
            ask(limit=limit)
        assert list(ask(limit=10**30)) == list(ask(limit=0)) == []


@pytest.mark.parametrize("delivery", [f"p-done-{10**25}", "p-done-" + "9" * 5000, "p-done-²", "p-done--1", 5, None])
def test_an_id_that_no_delivery_can_have_is_unknown(runtime, delivery):
    """Whatever its number is: somebody may have typed it."""
    for ask in (runtime.outbox.find, runtime.outbox.ack, runtime.outbox.replay):
        with pytest.raises(UnknownDeliveryError):
            ask(delivery)


def test_an_id_with_half_of_a_letter_stops_no_heart(runtime):
    """It is refused before anything is written, and leaves nothing that would have to be given back for ever."""
    runtime.engine.run(give, 1)
    for begin in (
        lambda: runtime.promises.start(give, 1, promise_id="a\ud83d"),
        lambda: runtime.engine.start(give, 1, run_id="b\ud83d"),
        lambda: runtime.engine.resume("c\ud83d"),
    ):
        with pytest.raises(MisuseError, match="half of a character"):
            begin()
    runtime.engine._ownership.beat()
    assert runtime.promises.start(give, 1).promise.wait(60).result == 1
