"""Bind a turn to a session and a channel: a stack in the context, restored exactly.

Tasks inherit a binding, and so does every thread that Troth starts. A binding may narrow what its channel declares and
never widen it. It ends with its `with` block: work that goes on after it still knows its session and channel, and what
these can do is asked of the channel itself, at every attempt.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

from troth.errors import MisuseError
from troth.runtime.channels.capability import Capability
from troth.runtime.channels.channel import Channel, capability_of

__all__ = [
    "MAIN_SESSION",
    "VARIABLE",
    "Binding",
    "bind",
    "current",
    "in_conversation",
    "in_step_of",
    "resolve",
    "stateless",
    "turn_session",
]

VARIABLE = "TROTH_DELIVERY"
MAIN_SESSION = "main"
"""The session of a program that names none."""

_OPTED_OUT = "the turn has opted out: it is `stateless()`, or bound with `Capability.NONE`"
_WORDS = {
    Capability.PUSH: "can push",
    Capability.STORE: "cannot push now, and only stores",
    Capability.NONE: "can neither push nor store",
}
_defaults: list[Channel] = []  # the default channels that run in this process, the newest last


@dataclass(frozen=True, slots=True)
class _Bound:
    """One entry of the stack."""

    session: str | None
    channel: Channel | None
    capability: Capability | None


_bound: ContextVar[_Bound | None] = ContextVar("troth_channel_binding", default=None)
_step_session: ContextVar[str | None] = ContextVar("troth_step_session", default=None)


class Binding(NamedTuple):
    """What a turn is bound to. `channel` is None where nothing can be sent anywhere."""

    session: str
    channel: Channel | None
    capability: Capability
    because: str


@contextmanager
def bind(
    session: str | None, channel: Channel | None = None, capability: Capability | None = None
) -> Iterator[Binding]:
    """Bind what happens in the block to a session and a channel; the default channel if none is named.

    `capability` narrows what the channel declares. `bind(None)` inherits nothing: the block is as if nothing was bound.
    """
    _check(session, channel, capability)
    inner = None if session is None else _Bound(session, channel, capability)
    token = _bound.set(inner)
    outer_step = _step_session.set(None) if session is None else None
    try:
        binding = current()
        # A channel that is named, and cannot push just now, is told as well: it may come back before the turn is over.
        is_wide = capability in (None, Capability.PUSH)
        with _turn(binding, session, may_push=binding.capability is Capability.PUSH if channel is None else is_wide):
            yield binding
    finally:
        if outer_step is not None:
            _step_session.reset(outer_step)
        _bound.reset(token)


@contextmanager
def _turn(binding: Binding, session: str | None, *, may_push: bool) -> Iterator[None]:
    """Let the channel know of the turn, if anything may be pushed in it."""
    channel = binding.channel
    if channel is None or session is None or not may_push:
        yield
        return
    channel.begin_turn(session)
    try:
        yield
    finally:
        channel.end_turn(session)


def _check(session: object, channel: object, capability: object) -> None:
    if session is not None and (not isinstance(session, str) or not session):
        raise MisuseError(f"The name of a session is a string, not {session!r}. Nothing was bound.")
    if session is not None and not session.isascii() and any("\ud800" <= letter <= "\udfff" for letter in session):
        raise MisuseError(
            f"The session {session[:100]!r} contains half of a character (a lone surrogate), which no store keeps.\n"
            "Nothing was bound. Use whole characters."
        )
    if session is None and (channel is not None or capability is not None):
        raise MisuseError("`bind(None)` binds nothing, so it accepts no channel and no capability. Nothing was bound.")
    if channel is not None and not isinstance(channel, Channel):
        raise MisuseError(f"{channel!r} is not a `Channel`. Nothing was bound.")
    if capability is None:
        return
    if not isinstance(capability, Capability):
        raise MisuseError(f"{capability!r} is not a `Capability`. Nothing was bound.")
    declared = None if channel is None else capability_of(channel)
    if declared is not None and capability.value > declared.value:
        raise MisuseError(
            f"The channel {channel.name!r} declares {declared.name}, and a binding cannot extend that to "  # type: ignore[union-attr]
            f"{capability.name}.\nNothing was bound: a promise would be made that cannot be kept.\n"
            "Omit the capability, or give a lower one."
        )


@contextmanager
def stateless() -> Iterator[Binding]:
    """Opt out: nothing in the block can be told later. Session and channel stay known."""
    outer = _bound.get()
    session = _session(outer)
    token = _bound.set(_Bound(session, None if outer is None else outer.channel, Capability.NONE))
    try:
        yield current()
    finally:
        _bound.reset(token)


@contextmanager
def in_conversation(session: str) -> Iterator[None]:
    """A step of a conversation: what is bound to nothing else belongs to the conversation's session."""
    with in_step_of(session):
        binding = current()
        is_default = _bound.get() is None
        with _turn(binding, session if is_default else None, may_push=binding.capability is Capability.PUSH):
            yield


@contextmanager
def in_step_of(session: str) -> Iterator[None]:
    """A step of a member's act or run: what is bound to nothing else belongs to the member's session.

    A binding decides by itself: its session is the address to which its channel delivers.
    """
    token = _step_session.set(session)
    try:
        yield
    finally:
        _step_session.reset(token)


def turn_session() -> str | None:
    """The session whose turn this is; nothing for the program itself, outside of every turn."""
    bound = _bound.get()
    return _step_session.get() if bound is None else bound.session


def current() -> Binding:
    """What this turn is bound to, and what can be promised in it."""
    return resolve(_defaults[-1] if _defaults else None)


def resolve(default: Channel | None) -> Binding:
    """`current` where the default channel is `default`."""
    bound = _bound.get()
    session = _session(bound)
    limit = None if bound is None else bound.capability
    if bound is not None and bound.channel is not None:
        declared, name = capability_of(bound.channel), f"the channel {bound.channel.name!r}"
        return Binding(session, bound.channel, declared.narrowed(limit), _because(name, declared, limit))
    of_process = _from_environment()
    if of_process is not None:
        return Binding(session, default, of_process.narrowed(limit), f"{VARIABLE} says so")
    if default is not None:
        declared = capability_of(default)
        return Binding(session, default, declared.narrowed(limit), _because("the default channel", declared, limit))
    because = "no channel is bound and no default channel runs" if limit is not Capability.NONE else _OPTED_OUT
    return Binding(session, None, Capability.STORE.narrowed(limit), because)


def _because(channel: str, declared: Capability, limit: Capability | None) -> str:
    """Why a turn can promise what it can: as its channel says, or less, because it is bound to less."""
    can = declared.narrowed(limit)
    if can is Capability.NONE and can is not declared:
        return _OPTED_OUT
    if can is not declared:
        return f"the turn is bound with `Capability.{can.name}`, although {channel} could push"
    return f"{channel} {_WORDS[can]}"


def _session(bound: _Bound | None) -> str:
    if bound is not None and bound.session is not None:
        return bound.session
    return _step_session.get() or MAIN_SESSION


def _from_environment() -> Capability | None:
    # A mapping that raises and catches to say no takes as long as a seventh of the commit of a promise.
    raw: object = getattr(os.environ, "_data", None)
    if isinstance(raw, dict) and os.environ.encodekey(VARIABLE) not in raw:
        return None
    word = os.environ.get(VARIABLE)
    if not word:
        return None
    try:
        return {"none": Capability.NONE, "store": Capability.STORE}[word.lower()]
    except KeyError:
        raise MisuseError(f"{VARIABLE} is {word!r}; it can be `none` or `store`. Nothing was promised.") from None


def default_started(channel: Channel) -> None:
    """A default channel runs from now on."""
    _defaults.append(channel)


def default_stopped(channel: Channel) -> None:
    """A default channel runs no more."""
    if channel in _defaults:
        _defaults.remove(channel)
