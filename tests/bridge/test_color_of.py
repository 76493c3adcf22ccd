"""What color a callable has."""

import asyncio
import functools
import inspect
import sys
import types
from unittest.mock import AsyncMock, MagicMock, Mock, NonCallableMock, create_autospec

import pytest

from troth import bridge
from troth.color import Color


async def fetch(path="/"):
    return path


def load(path="/"):
    return path


async def stream():
    yield 1


@types.coroutine
def legacy():
    yield


class AsyncCallable:
    async def __call__(self):
        return 1


class SyncCallable:
    def __call__(self):
        return 1


class Client:
    async def get(self):
        return 1

    def close(self):
        return None

    @staticmethod
    async def connect():
        return 1

    @classmethod
    async def make(cls):
        return 1

    @staticmethod
    def port():
        return 1

    later = functools.partialmethod(get)

    @functools.singledispatchmethod
    async def store(self, value):
        return value

    @store.register
    async def _(self, value: int):
        return value

    @functools.singledispatchmethod
    def either(self, value):
        return value

    @either.register
    async def _(self, value: int):
        return value


class Promise:
    def __await__(self):
        yield


@functools.singledispatch
async def mixed(value):
    return value


@mixed.register
def _(value: int):
    return value


class OwnPartial(functools.partial):
    def __call__(self):
        return 1


class AsyncNew:
    async def __new__(cls):
        return 1


class AsyncMeta(type):
    async def __call__(cls):
        return 1


class MadeByAsyncMeta(metaclass=AsyncMeta):
    pass


class Explosive:
    def __call__(self):
        return 1

    def __getattribute__(self, name):
        raise RuntimeError("do not look")


class SlottedCallable:
    __slots__ = ()

    async def __call__(self):
        return 1


@functools.wraps(fetch)
def sync_wrapper_of_async(*args):
    return None


@functools.wraps(load)
async def async_wrapper_of_sync(*args):
    return None


def marked():
    return fetch()


if sys.version_info >= (3, 12):
    inspect.markcoroutinefunction(marked)
else:
    marked._is_coroutine = asyncio.coroutines._is_coroutine

self_holding = functools.partial(load)
self_holding.__setstate__((self_holding, (), {}, {}))


@pytest.mark.parametrize(
    ("target", "color"),
    [
        pytest.param(fetch, Color.ASYNC, id="async def"),
        pytest.param(load, Color.SYNC, id="def"),
        pytest.param(lambda: 1, Color.SYNC, id="lambda"),
        pytest.param(lambda: fetch("x"), Color.SYNC, id="lambda returning a coroutine"),
        pytest.param(functools.partial(fetch, "/"), Color.ASYNC, id="partial of an async def"),
        pytest.param(functools.partial(functools.partial(fetch), "/"), Color.ASYNC, id="partial of a partial"),
        pytest.param(functools.partial(load, "/"), Color.SYNC, id="partial of a def"),
        pytest.param(functools.partial(AsyncCallable()), Color.ASYNC, id="partial of an object with an async __call__"),
        pytest.param(functools.partial(Client().get), Color.ASYNC, id="partial of a bound async method"),
        pytest.param(self_holding, Color.UNKNOWN, id="partial of itself"),
        pytest.param(Client().get, Color.ASYNC, id="bound async method"),
        pytest.param(Client.get, Color.ASYNC, id="unbound async method"),
        pytest.param(Client().close, Color.SYNC, id="bound method"),
        pytest.param(Client.connect, Color.ASYNC, id="async static method"),
        pytest.param(vars(Client)["connect"], Color.ASYNC, id="async static method, as the class keeps it"),
        pytest.param(Client.make, Color.ASYNC, id="async class method"),
        pytest.param(Client.port, Color.SYNC, id="static method"),
        pytest.param(Client().later, Color.ASYNC, id="partial method of an async method"),
        pytest.param(Client.later, Color.ASYNC, id="partial method of an async method, by the class"),
        pytest.param(Client().store, Color.ASYNC, id="singledispatchmethod of async methods"),
        pytest.param(Client.store, Color.ASYNC, id="singledispatchmethod of async methods, by the class"),
        pytest.param(vars(Client)["store"], Color.ASYNC, id="singledispatchmethod, as the class keeps it"),
        pytest.param(Client().either, Color.UNKNOWN, id="singledispatchmethod of several colors"),
        pytest.param(functools.partial(Client().store, 1), Color.ASYNC, id="partial of a singledispatchmethod"),
        pytest.param(OwnPartial(fetch), Color.SYNC, id="partial with a `__call__` of its own"),
        pytest.param(AsyncNew, Color.ASYNC, id="class with an async `__new__`"),
        pytest.param(types.MethodType(AsyncCallable(), object()), Color.ASYNC, id="method of an async callable object"),
        pytest.param(AsyncCallable(), Color.ASYNC, id="object with an async __call__"),
        pytest.param(SlottedCallable(), Color.ASYNC, id="slotted object with an async __call__"),
        pytest.param(SyncCallable(), Color.SYNC, id="object with a __call__"),
        pytest.param(SyncCallable, Color.SYNC, id="class"),
        pytest.param(AsyncCallable, Color.SYNC, id="class of objects with an async __call__"),
        pytest.param(Promise, Color.ASYNC, id="class of awaitables"),
        pytest.param(asyncio.Future, Color.ASYNC, id="asyncio.Future"),
        pytest.param(MadeByAsyncMeta, Color.ASYNC, id="class whose metaclass has an async __call__"),
        pytest.param(type, Color.SYNC, id="type"),
        pytest.param(print, Color.SYNC, id="builtin"),
        pytest.param([].append, Color.SYNC, id="bound builtin"),
        pytest.param(str.upper, Color.SYNC, id="method descriptor"),
        pytest.param(
            functools.lru_cache(fetch),  # troth: allow cached-coroutine
            Color.ASYNC,
            id="lru_cache of an async def, which gives the coroutine",
        ),
        pytest.param(functools.cache(load), Color.SYNC, id="cache of a def"),
        pytest.param(
            functools.partial(functools.cache(functools.partial(AsyncCallable()))), Color.ASYNC, id="partial of a cache"
        ),
        pytest.param(functools.partial(functools.partial(AsyncCallable())), Color.ASYNC, id="partial of a partial"),
        pytest.param(functools.singledispatch(fetch), Color.ASYNC, id="singledispatch of an async def"),
        pytest.param(mixed, Color.UNKNOWN, id="singledispatch of several colors"),
        pytest.param(Mock(wraps=fetch), Color.ASYNC, id="Mock that wraps an async def"),
        pytest.param(Mock(wraps=load), Color.SYNC, id="Mock that wraps a def"),
        pytest.param(Mock(return_value=1), Color.SYNC, id="Mock that returns a number"),
        pytest.param(Mock(return_value=Promise()), Color.ASYNC, id="Mock that returns an awaitable"),
        pytest.param(Mock(return_value=1, wraps=fetch), Color.SYNC, id="Mock that wraps, and returns something else"),
        pytest.param(Mock(side_effect=AsyncCallable()), Color.ASYNC, id="Mock with an async object for a side effect"),
        pytest.param(sync_wrapper_of_async, Color.SYNC, id="sync wrapper of an async def"),
        pytest.param(async_wrapper_of_sync, Color.ASYNC, id="async wrapper of a def"),
        pytest.param(legacy, Color.ASYNC, id="types.coroutine"),
        pytest.param(marked, Color.ASYNC, id="def marked as a coroutine function"),
        pytest.param(stream, Color.UNKNOWN, id="async generator function"),
        pytest.param(AsyncMock(), Color.ASYNC, id="AsyncMock"),
        pytest.param(MagicMock(), Color.UNKNOWN, id="bare MagicMock"),
        pytest.param(Mock(), Color.UNKNOWN, id="bare Mock"),
        pytest.param(Mock().method, Color.UNKNOWN, id="attribute of a bare Mock"),
        pytest.param(MagicMock(spec=fetch), Color.ASYNC, id="MagicMock of an async def"),
        pytest.param(MagicMock(spec=load), Color.SYNC, id="MagicMock of a def"),
        pytest.param(create_autospec(fetch), Color.ASYNC, id="autospec of an async def"),
        pytest.param(create_autospec(load), Color.SYNC, id="autospec of a def"),
        pytest.param(create_autospec(AsyncCallable), Color.SYNC, id="autospec of a class of async callables"),
        pytest.param(create_autospec(AsyncCallable)(), Color.ASYNC, id="what an autospec of that class makes"),
        pytest.param(create_autospec(Client).get, Color.ASYNC, id="async method of an autospec"),
        pytest.param(create_autospec(Client).close, Color.SYNC, id="method of an autospec"),
        pytest.param(MagicMock(spec=Client).get, Color.ASYNC, id="async method of a MagicMock of a class"),
        pytest.param(MagicMock(spec=Client).close, Color.SYNC, id="method of a MagicMock of a class"),
        pytest.param(MagicMock(spec=Client()).close, Color.SYNC, id="method of a MagicMock of an instance"),
        pytest.param(MagicMock(spec=AsyncCallable()), Color.ASYNC, id="MagicMock of an async callable object"),
        pytest.param(MagicMock(spec=SyncCallable()), Color.SYNC, id="MagicMock of a callable object"),
        pytest.param(MagicMock(spec=Client().close), Color.SYNC, id="MagicMock of a bound method"),
        pytest.param(MagicMock(spec=Client().get), Color.ASYNC, id="MagicMock of a bound async method"),
        pytest.param(Mock(side_effect=fetch), Color.ASYNC, id="Mock with an async side effect"),
        pytest.param(Mock(side_effect=ValueError), Color.UNKNOWN, id="Mock that raises"),
        pytest.param(functools.partial(MagicMock()), Color.UNKNOWN, id="partial of a bare MagicMock"),
        pytest.param(NonCallableMock(), Color.UNKNOWN, id="mock that cannot be called"),
        pytest.param(None, Color.UNKNOWN, id="None"),
        pytest.param(42, Color.UNKNOWN, id="number"),
        pytest.param(Explosive(), Color.UNKNOWN, id="object whose attributes raise"),
    ],
)
def test_color_of_a_callable(target, color):
    """What calling it gives back decides the color, however it is wrapped."""
    assert bridge.color_of(target) is color


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(bridge.color_of, id="color_of"),
        pytest.param(bridge.call, id="call"),
    ],
)
def test_the_bridge_classifies_itself(target):
    """Our own functions are what they say."""
    assert bridge.color_of(target) is (Color.ASYNC if target is bridge.call else Color.SYNC)


def test_a_coroutine_object_is_no_callable():
    """The usual slip, passing `fetch()` for `fetch`, is UNKNOWN and not SYNC."""
    made = fetch()
    assert bridge.color_of(made) is Color.UNKNOWN
    made.close()
