"""What a channel is: a declared capability, and a `send` that answers with a receipt."""

import inspect
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self

from troth.bridge import color_of
from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.channels.capability import Capability

__all__ = ["Channel", "Delivery", "Receipt"]

Kind = Literal["done", "watch", "summary"]
_LONGEST_WAIT = 366 * 86400.0  # seconds that a receiver may ask us to wait
_counting = threading.Lock()  # of all channels: one of their own would keep them from being copied


@dataclass(frozen=True, slots=True)
class Delivery:
    """One thing that a receiver is told.

    `id` is the same at every attempt, after every restart and on every channel: a receiver that remembers it is told
    each thing once. `attempt` counts from 1. `age` is in seconds since there was something to tell.
    """

    id: str
    session: str
    promise: str
    kind: Kind
    text: str
    data: Any
    count: int
    attempt: int
    age: float


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a channel says of one `send`. Made by `done`, `accepted` or `refused`."""

    outcome: Literal["done", "accepted", "refused"]
    reference: str | None = None
    why: str | None = None
    retry_after: float | None = None

    def __post_init__(self) -> None:
        """Refuse what nobody could act on; raised in `send`, it is what the attempt came to."""
        if self.outcome not in ("done", "accepted", "refused"):
            raise MisuseError(f"A receipt is `done`, `accepted` or `refused`, not {self.outcome!r}.")
        after: object = self.retry_after
        if after is not None and not (isinstance(after, int | float) and abs(after) <= _LONGEST_WAIT):
            raise MisuseError(
                f"`retry_after` is {after!r}, and not a number of seconds, so the time of the next attempt is "
                "unknown.\n"
                "Give a number of seconds, at most one year, or omit it; parse a header first."
            )

    @classmethod
    def done(cls, reference: str) -> "Receipt":
        """The effect happened; `reference` names it where it happened, a message id for one."""
        return cls("done", reference=str(reference))

    @classmethod
    def accepted(cls) -> "Receipt":
        """Somebody holds it in memory. It is delivered once `outbox.ack(delivery_id)` is called."""
        return cls("accepted")

    @classmethod
    def refused(cls, why: str, retry_after: float | None = None) -> "Receipt":
        """It was not delivered; tried again after `retry_after` seconds if that is given."""
        return cls("refused", why=str(why), retry_after=retry_after)


class ChannelOutbox(Protocol):
    """What a channel needs of an outbox that sends through it."""

    def bound(self, channel: "Channel", session: str) -> None:
        """A turn of `session` has begun on the channel."""

    def take_back(self, channel: "Channel", session: str | None) -> int:
        """What was accepted and not acknowledged is pending again."""


class Channel:
    """A way out. A subclass declares `name` and `capability`, and has a `send`, sync or async.

        class Pager(Channel):
            name = "pager"
            capability = Capability.PUSH

            async def send(self, delivery):
                return Receipt.done(await self.client.page(delivery.text, key=delivery.id))

    `capability` may be a property: it is looked at again before every attempt. `send` runs on a loop or in a thread
    of the outbox, by its color.
    """

    name: str
    is_local: ClassVar[bool] = False
    """Whether it reaches the program itself, and nobody beyond this process."""

    def __new__(cls, *_: object, **__: object) -> Self:
        """Refuse a channel that could promise what it does not keep."""
        _check_class(cls)
        channel = super().__new__(cls)
        object.__setattr__(channel, "_outboxes", weakref.WeakSet())  # a frozen dataclass can be a channel, too
        object.__setattr__(channel, "_turns", Counter())
        return channel

    _outboxes: "weakref.WeakSet[Any]"
    _turns: "Counter[str]"

    def send(self, delivery: Delivery) -> Any:
        """Tell the receiver, and answer with a `Receipt`."""
        raise NotImplementedError

    def reset(self, session: str | None = None) -> int:
        """Give back what was accepted and not acknowledged, of one session or of all. Answers how many."""
        return sum(outbox.take_back(self, session) for outbox in list(self._outboxes))

    def attach(self, outbox: ChannelOutbox) -> None:
        """For an outbox: from now on it sends through this channel."""
        self._outboxes.add(outbox)

    def detach(self, outbox: ChannelOutbox) -> None:
        """For an outbox: it sends through this channel no more."""
        self._outboxes.discard(outbox)

    def begin_turn(self, session: str) -> None:
        """Tell those who send through this channel that a turn of `session` has begun on it."""
        with _counting:
            self._turns[session] += 1
        for outbox in list(self._outboxes):
            outbox.bound(self, session)

    def end_turn(self, session: str) -> None:
        """A turn of `session` has ended on this channel."""
        with _counting:
            self._turns[session] -= 1
            if self._turns[session] <= 0:
                del self._turns[session]

    def turn_sessions(self) -> list[str]:
        """The sessions of which a turn is under way on this channel, also one that began before it was opened."""
        with _counting:
            return list(self._turns)


def capability_of(channel: Channel) -> Capability:
    """What the channel can do at this moment."""
    capability = channel.capability  # type: ignore[attr-defined]  # declared by every subclass, as `__new__` saw
    if not isinstance(capability, Capability):
        raise MisuseError(
            f"The capability of the channel {channel.name!r} is {capability!r}, not a `Capability`.\n"
            "Nothing was sent through it. Return `Capability.PUSH`, `STORE` or `NONE`."
        )
    return capability


def color_of_send(channel: Channel) -> Color:
    """The color of the channel's `send`."""
    return color_of(channel.send)


def _check_class(cls: type) -> None:
    name = cls.__qualname__
    declared = next((vars(base)["capability"] for base in cls.__mro__ if "capability" in vars(base)), None)
    if declared is None:
        raise MisuseError(
            f"The channel `{name}` does not declare its capability.\n"
            "It was not made: it is unclear whether a later result can be delivered through it.\n"
            "Write `capability = Capability.PUSH`, `STORE` or `NONE` in the class."
        )
    if not isinstance(declared, Capability) and not hasattr(type(declared), "__get__"):
        raise MisuseError(
            f"The channel `{name}` declares the capability {declared!r}, which is not a `Capability`.\nIt was not "
            "made.\n"
            "Write `capability = Capability.PUSH`, `STORE` or `NONE`, or a property that returns one of them."
        )
    send = next((vars(base)["send"] for base in cls.__mro__ if base is not Channel and "send" in vars(base)), None)
    if send is None:
        raise MisuseError(f"The channel `{name}` has no `send`.\nIt was not made.\nWrite `def send(self, delivery)`.")
    plain = send.__func__ if isinstance(send, staticmethod | classmethod) else send
    if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
        raise MisuseError(
            f"`{name}.send` is a generator function: calling it sends nothing.\nThe channel was not made.\n"
            "Write it without `yield`, and return a `Receipt`."
        )
    if color_of(plain) not in (Color.SYNC, Color.ASYNC):
        raise MisuseError(
            f"`{name}.send` is {send!r}, whose color cannot be determined.\n"
            "The channel was not made: its `send` might never run.\n"
            "Write it as `def send(self, delivery)` or `async def send(self, delivery)`."
        )
    if inspect.isfunction(plain) and not _takes_a_delivery(plain, is_static=isinstance(send, staticmethod)):
        raise MisuseError(
            f"`{name}.send{inspect.signature(plain)}` cannot be called with a delivery and nothing else.\n"
            "The channel was not made: every attempt to send would fail.\n"
            "Write it as `def send(self, delivery)`, with defaults for whatever else it takes."
        )


def _takes_a_delivery(send: Callable[..., object], *, is_static: bool) -> bool:
    try:
        inspect.signature(send).bind(*([None] if is_static else [None, None]))
    except TypeError:
        return False
    return True
