"""What every channel has to do, as checks that raise AssertionError.

    for check in checks():
        check.run(ground)

A `ChannelGround` says how to make the channel under test, and what its receiver has seen. A check opens a runtime of
its own on a temporary store, and leaves nothing running.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from troth.runtime.assemble import Runtime
from troth.runtime.channels import Capability, Channel, Delivery, Receipt, bind
from troth.runtime.channels.channel import capability_of, color_of_send
from troth.runtime.engine import Step
from troth.runtime.promises import Pushed, Stored

__all__ = ["ChannelCheck", "ChannelGround", "checks"]

_PATIENCE = 30.0  # seconds in which a delivery has to arrive


class ChannelGround(Protocol):
    """Where a channel under test lives."""

    def channel(self) -> Channel:
        """A new channel that can reach its receiver. Called again, it reaches the same receiver."""

    def received(self) -> Sequence[str]:
        """The ids of the deliveries that the receiver has seen so far, in order, with repetitions."""

    def acknowledge(self, runtime: Runtime) -> None:
        """Let the receiver acknowledge what it has accepted; nothing to do for a channel that answers `done`."""


@dataclass(frozen=True, slots=True)
class ChannelCheck:
    """One thing a channel has to do."""

    body: Callable[[ChannelGround, Path], None]

    @property
    def name(self) -> str:
        """What it is called."""
        return self.body.__name__

    def run(self, ground: ChannelGround) -> None:
        """Raise if the channel does not do it."""
        with tempfile.TemporaryDirectory() as folder:
            self.body(ground, Path(folder) / "troth.db")


def checks() -> list[ChannelCheck]:
    """Every check."""
    return [
        ChannelCheck(body)
        for body in (declares_itself, answers_with_a_receipt, delivers, comes_back, is_told_once, gives_back)
    ]


def _same(value: object) -> object:
    return value


def _give(value: object) -> Any:
    return (yield Step("give", _same, value))


def _until(condition: Callable[[], object], failure: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"after {_PATIENCE:g} s: {failure}"
        time.sleep(0.01)


def _promise(runtime: Runtime, channel: Channel, value: object) -> str:
    with bind("conformance", channel):
        outcome = runtime.promises.start(_give, value)
    can_push = capability_of(channel) is Capability.PUSH
    assert isinstance(outcome, Pushed if can_push else Stored), f"{outcome} does not fit what the channel declares"
    assert isinstance(outcome, Pushed | Stored)
    outcome.promise.wait(_PATIENCE)
    return f"{outcome.promise.id}-done-1"


def declares_itself(ground: ChannelGround, path: Path) -> None:  # noqa: ARG001  every check is given a store
    """It has a name, a capability, and a `send` of a color."""
    channel = ground.channel()
    assert isinstance(channel.name, str)
    assert channel.name, "a channel without a name is not found again after a restart"
    assert isinstance(capability_of(channel), Capability)
    assert color_of_send(channel).name in ("SYNC", "ASYNC")


def answers_with_a_receipt(ground: ChannelGround, path: Path) -> None:  # noqa: ARG001
    """What `send` returns is a receipt, and nothing else."""
    from troth import bridge

    channel = ground.channel()
    if capability_of(channel) is not Capability.PUSH:
        return
    delivery = Delivery("conformance-done-1", "conformance", "conformance", "done", "hello", {"n": 1}, 1, 1, 0.0)

    async def send() -> object:
        return await bridge.call(channel.send, delivery)

    answer = bridge.run(send)
    assert isinstance(answer, Receipt), f"`send` answered {answer!r}, which counts as no delivery"
    assert answer.outcome in ("done", "accepted"), f"`send` refused a plain delivery: {answer.why}"


def delivers(ground: ChannelGround, path: Path) -> None:
    """What is promised through it reaches the receiver, and counts as delivered only then."""
    with Runtime(path, in_process=False) as runtime:
        channel = ground.channel()
        runtime.open_channel(channel)
        delivery = _promise(runtime, channel, "hello")
        if capability_of(channel) is Capability.PUSH:
            _until(lambda: delivery in ground.received(), "the receiver has seen nothing")
            ground.acknowledge(runtime)
            _until(lambda: runtime.outbox.counts().delivered == 1, "the delivery is not counted")
        assert runtime.outbox.counts().is_balanced


def comes_back(ground: ChannelGround, path: Path) -> None:
    """Closed and opened again, it delivers what was promised meanwhile."""
    with Runtime(path, in_process=False) as runtime:
        channel = ground.channel()
        runtime.open_channel(channel)
        if capability_of(channel) is not Capability.PUSH:
            return
        runtime.close_channel(channel)
        with bind("conformance", channel):
            outcome = runtime.promises.start(_give, "later")
            assert isinstance(outcome, Stored), "a channel that is not open can push nothing"
            outcome.promise.wait(_PATIENCE)
        again = ground.channel()
        runtime.open_channel(again)
        delivery = f"{outcome.promise.id}-done-1"
        with bind("conformance", again):
            _until(lambda: delivery in ground.received(), "what was stored was not delivered")
        ground.acknowledge(runtime)
        _until(lambda: runtime.outbox.counts().delivered == 1, "the delivery is not counted")


def is_told_once(ground: ChannelGround, path: Path) -> None:
    """With nothing going wrong, a receiver sees each id once."""
    with Runtime(path, in_process=False) as runtime:
        channel = ground.channel()
        runtime.open_channel(channel)
        deliveries = [_promise(runtime, channel, number) for number in range(20)]
        if capability_of(channel) is not Capability.PUSH:
            return
        _until(lambda: set(deliveries) <= set(ground.received()), "not everything arrived")
        ground.acknowledge(runtime)
        received = [delivery for delivery in ground.received() if delivery in deliveries]
        assert sorted(received) == sorted(deliveries), "the receiver was told something twice"


def gives_back(ground: ChannelGround, path: Path) -> None:
    """What it accepted and nobody acknowledged goes back on `reset`, of that session alone, and arrives again."""
    with Runtime(path, in_process=False) as runtime:
        channel = ground.channel()
        runtime.open_channel(channel)
        if capability_of(channel) is not Capability.PUSH:
            return
        delivery = _promise(runtime, channel, "again")
        _until(lambda: delivery in ground.received(), "the receiver has seen nothing")
        given_back = _give_back(channel)  # the receiver may be told a moment before the outbox hears that it is
        if not given_back:

            def is_over() -> bool:
                nonlocal given_back
                given_back = _give_back(channel)
                return given_back > 0 or runtime.outbox.counts().delivered == 1

            _until(is_over, "it was neither delivered, nor given back by `reset`")
        if not given_back:
            return  # it answers `done`: there is nothing to give back
        assert given_back == 1, f"one delivery was accepted, and `reset` gave back {given_back}"
        _until(lambda: ground.received().count(delivery) > 1, "what was given back did not arrive again")
        ground.acknowledge(runtime)
        _until(lambda: runtime.outbox.counts().delivered == 1, "the delivery is not counted")
        assert runtime.outbox.counts().is_balanced


def _give_back(channel: Channel) -> int:
    assert channel.reset("another session") == 0, "`reset` gave back what belongs to a session it was not asked for"
    return channel.reset("conformance")
