"""Whether an object brings its own version of a method, or has its base's.

`type(obj).method is not Base.method` is the usual test. It says "own" for a wrapped copy of the base's method, misses
a method set on the instance, and knows nothing of a proxy, whose class has no such method at all.
"""

import inspect
import sys
from enum import Enum
from functools import partial, partialmethod
from types import FunctionType, MemberDescriptorType, MethodType

__all__ = ["Override", "overrides"]

_LONGEST_CHAIN = 50
_ABSENT = object()


class Override(Enum):
    """Whose method a call reaches.

    OWN        code that the base did not write, even where that code forwards to the base's
    INHERITED  the base's own, or a wrapped copy of it
    UNKNOWN    cannot be told without running something
    """

    OWN = "own"
    INHERITED = "inherited"
    UNKNOWN = "unknown"


def overrides(obj: object, name: str, base: type) -> Override:
    """Say whether calling `obj.<name>` reaches code of its own or the method of `base`.

    `obj` is an instance or a class. Attributes set on the instance, the whole MRO, wrapped copies (`functools.wraps`,
    partials) and proxies that hand out another object's bound method are seen through. A property, a mock, or an
    object that has no such attribute is UNKNOWN. Only a proxy's attribute lookup is ever run.
    """
    try:
        return _judge(obj, name, base, 0)
    except Exception:  # noqa: BLE001 - a lookup that raises (a proxy whose target is gone) tells us nothing
        return Override.UNKNOWN


def _judge(obj: object, name: str, base: type, depth: int) -> Override:
    if depth > _LONGEST_CHAIN or _is_mock(obj):
        return Override.UNKNOWN
    theirs = _on_class(base, name)
    if isinstance(obj, type) and type(obj) is not obj:
        return _compare(_on_class(obj, name), theirs, name)
    cls = type(obj)
    if _intercepts_lookup(cls):
        return _through_proxy(obj, name, base, depth)
    on_class = _on_class(cls, name)
    if isinstance(on_class, MemberDescriptorType):  # a slot: reading it runs nothing
        return _through_bound(getattr(obj, name), obj, name, base, depth)
    if not _is_data_descriptor(on_class):
        on_instance = _on_instance(obj, name)
        if on_instance is not _ABSENT:
            return _through_bound(on_instance, obj, name, base, depth)
    if on_class is not _ABSENT:
        return _compare(on_class, theirs, name)
    return _through_proxy(obj, name, base, depth)


def _through_proxy(obj: object, name: str, base: type, depth: int) -> Override:
    member = getattr(obj, name, _ABSENT)
    if member is _ABSENT or _is_mock(member):
        return Override.UNKNOWN
    return _through_bound(member, obj, name, base, depth)


def _through_bound(member: object, obj: object, name: str, base: type, depth: int) -> Override:
    """Judge what a lookup on the object gave: most often a method bound to it, or to somebody else."""
    if isinstance(member, MethodType):
        owner = member.__self__
        if owner is not obj and not isinstance(owner, type) and member.__func__ is _on_class(type(owner), name):
            return _judge(owner, name, base, depth + 1)
        return _compare(member.__func__, _on_class(base, name), name)
    return _compare(member, _on_class(base, name), name)


def _compare(ours: object, theirs: object, name: str) -> Override:
    if ours is _ABSENT or isinstance(ours, property):
        return Override.UNKNOWN
    if ours is theirs:
        return Override.INHERITED
    if theirs is _ABSENT:
        return Override.OWN if _is_method_like(ours) else Override.UNKNOWN
    of_base = list(_layers(theirs))
    outermost = True
    for layer in _layers(ours):
        if any(_is_same_function(layer, base_layer) for base_layer in of_base):
            return Override.INHERITED
        if outermost and isinstance(layer, FunctionType) and not _can_reach_what_it_wraps(layer, name):
            return Override.OWN  # `@wraps(Base.method)` for the sake of its docstring
        outermost = False
    return Override.OWN if _is_method_like(ours) else Override.UNKNOWN


def _layers(method: object) -> list[object]:
    """The method, and what it wraps, outermost first."""
    layers: list[object] = []
    while method is not None and len(layers) < _LONGEST_CHAIN and all(method is not layer for layer in layers):
        if isinstance(method, staticmethod | classmethod | MethodType):
            method = method.__func__
        elif isinstance(method, partial | partialmethod):
            method = method.func
        else:
            layers.append(method)
            method = inspect.getattr_static(method, "__wrapped__", None)
    return layers


def _is_same_function(first: object, second: object) -> bool:
    if first is second:
        return True
    if (
        not (isinstance(first, FunctionType) and isinstance(second, FunctionType))
        or first.__code__ is not second.__code__
    ):
        return False
    # One decorator used twice gives two wrappers of one code; what they close over tells them apart.
    return _closed_over(first) == _closed_over(second)


def _closed_over(function: FunctionType) -> list[int]:
    return [id(value) for value in _cell_values(function)]


def _cell_values(function: FunctionType) -> list[object]:
    values: list[object] = []
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # a name that was never bound
            values.append(_ABSENT)
    return values


def _can_reach_what_it_wraps(wrapper: FunctionType, name: str) -> bool:
    """Tell a wrapper that calls on from one that only borrowed a name: the former holds the function or names it."""
    wrapped = inspect.getattr_static(wrapper, "__wrapped__", None)
    if wrapped is None:
        return True
    held = [*_cell_values(wrapper), *(wrapper.__defaults__ or ()), *(wrapper.__kwdefaults__ or {}).values()]
    if any(value is wrapped or callable(value) for value in held):
        return True
    names = wrapper.__code__.co_names
    return name in names or any(wrapper.__globals__.get(word) is wrapped for word in names)


def _on_class(cls: type, name: str) -> object:
    for base in cls.__mro__:
        if name in vars(base):
            return vars(base)[name]
    return _ABSENT


def _on_instance(obj: object, name: str) -> object:
    try:
        return vars(obj).get(name, _ABSENT)
    except TypeError:  # slots only, and a slot is a data descriptor of the class
        return _ABSENT


def _is_data_descriptor(attribute: object) -> bool:
    return hasattr(type(attribute), "__set__")


def _intercepts_lookup(cls: type) -> bool:
    return _on_class(cls, "__getattribute__") is not vars(object)["__getattribute__"]


def _is_method_like(attribute: object) -> bool:
    return callable(attribute) or isinstance(attribute, staticmethod | classmethod | partialmethod)


def _is_mock(obj: object) -> bool:
    mocks = sys.modules.get("unittest.mock")
    return mocks is not None and issubclass(type(obj), mocks.NonCallableMock)
