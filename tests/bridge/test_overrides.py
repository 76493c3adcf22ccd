"""Whether an object brings its own method or has its base's."""

import functools
import types
from unittest.mock import AsyncMock, MagicMock

import pytest

from troth import bridge
from troth.bridge import Override


def traced(function):
    @functools.wraps(function)
    async def wrapper(*args, **kwargs):
        return await function(*args, **kwargs)

    return wrapper


class Base:
    async def astep(self):
        return "base"

    @traced
    async def watched(self):
        return "base"


class Silent(Base):
    def step(self):
        return "mine"


class Native(Base):
    async def astep(self):
        return "mine"


class BelowNative(Native):
    pass


class Forwarding(Base):
    async def astep(self):
        return await super().astep()


class Mixin:
    async def astep(self):
        return "mixin"


class WithMixin(Mixin, Base):
    pass


class MixinLast(Base, Mixin):
    pass


class Alias(Base):
    astep = Base.astep


class WrappedCopy(Base):
    astep = traced(Base.astep)


class TwiceWrappedCopy(Base):
    astep = traced(traced(Base.astep))


class SameDecorator(Base):
    @traced
    async def watched(self):
        return "mine"


class BorrowedDocstring(Base):
    @functools.wraps(Base.astep)
    async def astep(self):
        return "mine"


class PartialCopy(Base):
    astep = functools.partialmethod(Base.astep)


class Rebuilt(Base):
    astep = types.FunctionType(Base.astep.__code__, Base.astep.__globals__, "astep")


class Stated(Base):
    @property
    def astep(self):
        raise AssertionError("a property must not be run")


class Slotted:
    __slots__ = ("astep",)


class Duck:
    async def astep(self):
        return "duck"


class Proxy:
    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)


class WholeProxy(Base):
    def __init__(self, inner):
        object.__setattr__(self, "_inner", inner)

    def __getattribute__(self, name):
        return getattr(object.__getattribute__(self, "_inner"), name)


class BrokenProxy:
    def __getattr__(self, name):
        raise RuntimeError("the target is gone")


def with_own_attribute(agent, value):
    agent.astep = value
    return agent


async def free_function():
    return "instance"


def slotted(value):
    agent = Slotted()
    agent.astep = value
    return agent


base = Base()


@pytest.mark.parametrize(
    ("obj", "verdict"),
    [
        pytest.param(Silent(), Override.INHERITED, id="subclass without one"),
        pytest.param(Silent, Override.INHERITED, id="class without one"),
        pytest.param(Base(), Override.INHERITED, id="the base itself"),
        pytest.param(Native(), Override.OWN, id="subclass with one"),
        pytest.param(Native, Override.OWN, id="class with one"),
        pytest.param(BelowNative(), Override.OWN, id="subclass of a subclass with one"),
        pytest.param(Forwarding(), Override.OWN, id="one that forwards: skipping it would lose the user's code"),
        pytest.param(WithMixin(), Override.OWN, id="mixin before the base"),
        pytest.param(MixinLast(), Override.INHERITED, id="mixin hidden behind the base"),
        pytest.param(Alias(), Override.INHERITED, id="alias of the base's"),
        pytest.param(WrappedCopy(), Override.INHERITED, id="wrapped copy"),
        pytest.param(TwiceWrappedCopy(), Override.INHERITED, id="copy wrapped twice"),
        pytest.param(PartialCopy(), Override.INHERITED, id="partial copy"),
        pytest.param(Rebuilt(), Override.INHERITED, id="copy rebuilt from the base's code"),
        pytest.param(BorrowedDocstring(), Override.OWN, id="one that only borrows the base's name and docstring"),
        pytest.param(with_own_attribute(Silent(), free_function), Override.OWN, id="instance attribute"),
        pytest.param(with_own_attribute(Silent(), AsyncMock()), Override.OWN, id="instance attribute that is a mock"),
        pytest.param(
            with_own_attribute(Silent(), base.astep), Override.INHERITED, id="instance attribute: base's bound"
        ),
        pytest.param(
            with_own_attribute(Silent(), functools.partial(Base.astep, base)),
            Override.INHERITED,
            id="… base's in a partial",
        ),
        pytest.param(with_own_attribute(Silent(), Native().astep), Override.OWN, id="… another agent's bound"),
        pytest.param(
            with_own_attribute(Native(), traced(base.astep)), Override.INHERITED, id="… wrapped copy of the base's"
        ),
        pytest.param(Stated(), Override.UNKNOWN, id="property"),
        pytest.param(slotted(free_function), Override.OWN, id="slot"),
        pytest.param(Slotted(), Override.UNKNOWN, id="empty slot"),
        pytest.param(Duck(), Override.OWN, id="no subclass, but has one"),
        pytest.param(object(), Override.UNKNOWN, id="has none"),
        pytest.param(Proxy(Silent()), Override.INHERITED, id="proxy of one without"),
        pytest.param(Proxy(Native()), Override.OWN, id="proxy of one with"),
        pytest.param(Proxy(Proxy(Native())), Override.OWN, id="proxy of a proxy"),
        pytest.param(Proxy(object()), Override.UNKNOWN, id="proxy of nothing suitable"),
        pytest.param(WholeProxy(Native()), Override.OWN, id="proxy that intercepts every lookup"),
        pytest.param(WholeProxy(Silent()), Override.INHERITED, id="… of one without"),
        pytest.param(BrokenProxy(), Override.UNKNOWN, id="proxy that raises"),
        pytest.param(MagicMock(), Override.UNKNOWN, id="mock"),
        pytest.param(MagicMock(spec=Native), Override.UNKNOWN, id="mock with a spec"),
        pytest.param(Proxy(MagicMock()), Override.UNKNOWN, id="proxy of a mock"),
    ],
)
def test_whose_method_a_call_reaches(obj, verdict):
    """OWN means code the base did not write; a copy of the base's code is the base's, however it is wrapped."""
    assert bridge.overrides(obj, "astep", Base) is verdict


def test_one_decorator_used_on_both_is_no_copy():
    """Two wrappers made by one decorator share their code, and are told apart by what they wrap."""
    assert bridge.overrides(SameDecorator(), "watched", Base) is Override.OWN
    assert bridge.overrides(Silent(), "watched", Base) is Override.INHERITED


def test_a_method_the_base_never_had():
    """What the base has not cannot be inherited from it."""
    assert bridge.overrides(Silent(), "step", Base) is Override.OWN
    assert bridge.overrides(Silent(), "nowhere", Base) is Override.UNKNOWN
