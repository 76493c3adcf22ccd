"""What color a callable has, told before it is called.

The question is what a call gives back: an awaitable (ASYNC) or the finished work (SYNC). The answer is read off the
callable itself and `__wrapped__` is not followed: what a wrapper wraps says nothing about what the wrapper does. Only
the wrappers of `functools` that give exactly what the function gives are seen through: caches, partials, dispatchers.
A plain `def` that returns a coroutine is therefore SYNC here; whoever calls user code looks at the result as well.
"""

import inspect
import sys
from asyncio import coroutines
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial, partialmethod, singledispatch, singledispatchmethod
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import cast

from troth.color import Color

__all__ = ["Verdict", "classify", "color_of"]

_ASYNCIO_MARK = getattr(
    coroutines, "_is_coroutine", None
)  # how libraries older than `markcoroutinefunction` say "async"
_CACHED = type(lru_cache(print))
_DISPATCHING = cast("FunctionType", singledispatch(print)).__code__
_BOUND_DISPATCH = singledispatchmethod(print).__get__(None, object)  # a function, since 3.14 an object
_UNBOUND_PARTIAL = cast("FunctionType", partialmethod(print).__get__(None, object)).__code__
_DEEPEST_PARTIAL = 100  # a partial can be made to hold itself


@dataclass(frozen=True, slots=True)
class Verdict:
    """A color, the reason for it, and where the color is UNKNOWN what to do about that."""

    color: Color
    because: str
    advice: str = ""


def color_of(target: object) -> Color:
    """Say what has to be done with a call of `target`: nothing more (SYNC), or await it (ASYNC).

    `async def`, partials, caches and bound methods of one, objects whose class has an async `__call__`, classes whose
    instances can be awaited and `AsyncMock` are ASYNC. Other functions, classes and builtins are SYNC. A mock with a
    `spec` has its spec's color, one with a side effect, a return value or `wraps=` the color of that. What is not
    callable, cannot be read, or could be either (a bare `MagicMock`, an async generator function) is UNKNOWN;
    `bridge.explain(target)` says why, and what to do.

    Nothing is called, no attribute of `target` that runs code is read, and no exception is raised.
    """
    return classify(target).color


def classify(target: object) -> Verdict:
    """Give the color of `target` with its reason."""
    try:
        return _classify(target, 0)
    except Exception as unreadable:  # noqa: BLE001 - a callable whose attributes raise cannot be read, and that is the answer
        return Verdict(
            Color.UNKNOWN,
            f"reading it raised {type(unreadable).__name__}",
            "wrap it in a `def` or an `async def`, which makes its color clear",
        )


def _classify(target: object, depth: int) -> Verdict:
    if depth > _DEEPEST_PARTIAL:
        return Verdict(Color.UNKNOWN, "it wraps itself", "pass the function that it should call")
    mocks = sys.modules.get("unittest.mock")
    if mocks is not None and issubclass(type(target), mocks.NonCallableMock):
        # First: a mock with a spec says it is an instance of whatever its spec is.
        return _classify_mock(target, mocks, depth)
    inside = _inside(target)
    if inside is not None:
        return _classify(inside, depth + 1)
    if not callable(target):
        return _not_callable(target)
    if isinstance(target, _CACHED):
        inner = _classify(target.__wrapped__, depth + 1)
        return Verdict(inner.color, f"it is a cache of a function, and {inner.because}", inner.advice)
    if isinstance(target, FunctionType):
        return _classify_dispatching(target, depth) or _classify_function(target)
    if isinstance(target, type):
        return _classify_class(target)
    if not isinstance(target, partial) and (inspect.iscoroutinefunction(target) or _is_marked(target)):
        return Verdict(Color.ASYNC, "it is marked as a coroutine function")
    return _classify_call_method(type(target), depth)


def _inside(target: object) -> object:
    """Give what `target` hands every call on to; None where it does something itself."""
    if isinstance(target, partialmethod):
        return target.func
    if isinstance(target, partial):
        return target.func if _found_on(type(target), "__call__") is vars(partial)["__call__"] else None
    if isinstance(target, singledispatchmethod):
        return target.dispatcher
    if isinstance(target, staticmethod | classmethod | MethodType):
        return target.__func__
    return _inside_of_method(target)


def _inside_of_method(target: object) -> object:
    """Give what a method of `functools` calls, as the class gives that method; None for anything else."""
    if isinstance(target, FunctionType):
        state = vars(target)
        if target.__code__ is _UNBOUND_PARTIAL:
            return state.get("__partialmethod__") or state.get("_partialmethod")
        if target.__code__ is getattr(_BOUND_DISPATCH, "__code__", None):
            return getattr(state.get("register"), "__self__", None)
        return None
    if type(target) is type(_BOUND_DISPATCH):
        return vars(target).get("_unbound")
    return None


def _classify_dispatching(function: FunctionType, depth: int) -> Verdict | None:
    """`functools.singledispatch` calls one of the functions that are registered; None for any other function."""
    registry = vars(function).get("registry")
    if function.__code__ is not _DISPATCHING or not isinstance(registry, MappingProxyType):
        return None
    colors = {_classify(function, depth + 1).color for function in registry.values()}
    if len(colors) == 1:
        color = colors.pop()
        return Verdict(color, f"it is a `singledispatch` of functions that are all {color.value}")
    return Verdict(
        Color.UNKNOWN,
        "it is a `singledispatch` whose functions have different colors",
        "wrap it in an `async def` that awaits the result if it is an awaitable",
    )


def _classify_function(function: FunctionType) -> Verdict:
    if inspect.iscoroutinefunction(function):
        return Verdict(Color.ASYNC, "it is an `async def`")
    code: CodeType = function.__code__
    if code.co_flags & inspect.CO_ITERABLE_COROUTINE:
        return Verdict(Color.ASYNC, "it is a generator made awaitable by `types.coroutine`")
    if code.co_flags & inspect.CO_ASYNC_GENERATOR:
        return Verdict(
            Color.UNKNOWN,
            "it is an async generator function: a call runs nothing and cannot be awaited",
            "iterate it: `async for` in async code, `bridge.iterate(...)` in sync code",
        )
    if _is_marked(function):
        return Verdict(Color.ASYNC, "it is marked as a coroutine function")
    return Verdict(Color.SYNC, "it is a plain `def`" if function.__name__ != "<lambda>" else "it is a lambda")


def _classify_class(cls: type) -> Verdict:
    make = _found_on(type(cls), "__call__")
    if isinstance(make, FunctionType) and inspect.iscoroutinefunction(make):
        return Verdict(Color.ASYNC, "its metaclass has an async `__call__`")
    if _found_on(cls, "__await__") is not None:
        return Verdict(Color.ASYNC, "it is a class whose instances can be awaited")
    new = _found_on(cls, "__new__")
    if isinstance(new, staticmethod) and inspect.iscoroutinefunction(new.__func__):
        return Verdict(Color.ASYNC, "it is a class with an async `__new__`")
    return Verdict(Color.SYNC, "it is a class")


def _classify_call_method(cls: type, depth: int) -> Verdict:
    method = _found_on(cls, "__call__")
    if method is None or type(method).__name__ in {"wrapper_descriptor", "method_descriptor"}:
        return Verdict(Color.SYNC, "it is a builtin, or a wrapper written in C")
    inner = _classify(method, depth + 1)
    return Verdict(inner.color, f"its class `{cls.__qualname__}` has a `__call__`, and {inner.because}", inner.advice)


def _classify_mock(mock: object, mocks: ModuleType, depth: int) -> Verdict:
    """A mock answers to every name, so it is asked only for what its own machinery keeps."""
    if isinstance(mock, mocks.AsyncMockMixin):
        return Verdict(Color.ASYNC, "it is an `AsyncMock`, or a mock of something async")
    state = vars(mock)
    spec = state.get("_spec_class")
    if spec is not None:
        return _classify_mock_of(spec, state.get("_mock_return_value"), mocks, depth)
    parent, name = state.get("_mock_new_parent"), state.get("_mock_new_name")
    parent_spec = vars(parent).get("_spec_class") if isinstance(parent, mocks.NonCallableMock) else None
    if isinstance(parent_spec, type) and isinstance(name, str):
        member = _found_on(parent_spec, name)
        if callable(member) or isinstance(member, staticmethod | classmethod | partialmethod):
            verdict = _classify(member, depth + 1)
            return Verdict(
                verdict.color, f"it is a mock of `{parent_spec.__qualname__}.{name}`: {verdict.because}", verdict.advice
            )
    effect = state.get("_mock_side_effect")
    if callable(effect) and not isinstance(effect, type):
        verdict = _classify(effect, depth + 1)
        return Verdict(verdict.color, f"it is a mock with a side effect: {verdict.because}", verdict.advice)
    returned = state.get("_mock_return_value", mocks.DEFAULT)
    if effect is None and returned is not mocks.DEFAULT and not issubclass(type(returned), mocks.NonCallableMock):
        color = Color.ASYNC if _is_awaitable(returned) else Color.SYNC
        return Verdict(color, f"it is a mock that returns a value of type `{type(returned).__name__}`")
    if effect is None and returned is mocks.DEFAULT and (wrapped := state.get("_mock_wraps")) is not None:
        verdict = _classify(wrapped, depth + 1)
        return Verdict(verdict.color, f"it is a mock that wraps another callable: {verdict.because}", verdict.advice)
    return Verdict(
        Color.UNKNOWN,
        "it is a mock without a `spec`, so its color is ambiguous",
        "give it the color of the real function: `Mock(spec=function)`, `create_autospec(function)` or `AsyncMock()`",
    )


def _classify_mock_of(spec: object, made: object, mocks: ModuleType, depth: int) -> Verdict:
    """A mock has the color of its spec: of a function, of what an object answers to a call, or of a class."""
    if not isinstance(spec, type) or spec is FunctionType:
        return Verdict(Color.SYNC, "it is a mock of a plain `def`")
    if isinstance(made, mocks.NonCallableMock) and vars(made).get("_spec_class") is spec:
        return Verdict(Color.SYNC, f"it is a mock of the class `{spec.__qualname__}`")
    verdict = _classify_call_method(spec, depth + 1)
    return Verdict(verdict.color, f"it is a mock of `{spec.__qualname__}`: {verdict.because}", verdict.advice)


def _not_callable(target: object) -> Verdict:
    if inspect.iscoroutine(target):
        name = target.__qualname__
        advice = f"pass the function itself (`{name}`), not a call of it (`{name}()`)"
        return Verdict(Color.UNKNOWN, "it is a coroutine: the call was already made", advice)
    return Verdict(Color.UNKNOWN, f"a value of type `{type(target).__name__}` is not callable", "pass a function")


def _found_on(cls: type, name: str) -> Callable[..., object] | None:
    """Look `name` up on the class as the interpreter does for special methods, running no descriptor."""
    for base in type.mro(cls) if cls is type else cls.__mro__:
        if name in vars(base):
            member: Callable[..., object] | None = vars(base)[name]
            return member
    return None


def _is_awaitable(value: object) -> bool:
    return inspect.iscoroutine(value) or _found_on(type(value), "__await__") is not None


def _is_marked(target: object) -> bool:
    if _ASYNCIO_MARK is None:
        return False
    try:
        return vars(target).get("_is_coroutine") is _ASYNCIO_MARK or (
            _found_on(type(target), "_is_coroutine") is _ASYNCIO_MARK
        )
    except TypeError:  # no `__dict__`
        return False
