"""Keep a large value as JSON piece by piece, so that a thread that does it lets others run in between.

Python's encoder holds the interpreter from the first byte to the last: fifty megabytes would stall every loop of the
process for as long as they take, in whichever thread.
"""

from itertools import chain
from json.encoder import encode_basestring_ascii
from typing import Any, NamedTuple

from troth.runtime.store.json_codec import keep

__all__ = ["ANY_SIZE", "LARGE", "KeptValue", "is_large", "keep_in_parts", "keep_well"]

_NODES = 2000  # values that are looked at before something counts as large
LARGE = 100_000
"""Letters from which on a text is large."""
ANY_SIZE = LARGE + 1
"""How many letters something has of which nobody knows yet."""
_SLICE = 1_000_000  # letters of one text that are encoded at a time


class KeptValue(NamedTuple):
    """A value that was kept already: its JSON text, and what reading it gives."""

    text: str
    value: Any


def is_large(value: object) -> bool:
    """Whether writing `value` down may take noticeable time. The look itself is short."""
    if isinstance(value, str):
        return len(value) > LARGE
    if not isinstance(value, dict | list | tuple):
        return False
    waiting: list[object] = [value]
    nodes = letters = 0
    while waiting:
        item = waiting.pop()
        nodes += 1
        if isinstance(item, str):
            letters += len(item)
        elif isinstance(item, dict | list | tuple):
            if len(item) > _NODES:
                return True
            waiting.extend(chain.from_iterable(item.items()) if isinstance(item, dict) else item)
        if nodes > _NODES or letters > LARGE:
            return True
    return False


def keep_well(value: object, what: str) -> KeptValue:
    """`keep` in whichever way is right for the size of `value`."""
    return keep_in_parts(value, what) if is_large(value) else KeptValue(*keep(value, what))


def keep_in_parts(value: object, what: str) -> KeptValue:
    """`keep`, with a pause between any two parts. Raises `NotJsonError` as that does."""
    try:
        return _keep(value, what)
    except RecursionError:
        return KeptValue(*keep(value, what))  # which says so in words


def _keep(value: object, what: str) -> KeptValue:
    if type(value) is str and len(value) > _SLICE:
        slices = (value[at : at + _SLICE] for at in range(0, len(value), _SLICE))
        return KeptValue(f'"{"".join(encode_basestring_ascii(one)[1:-1] for one in slices)}"', value)
    if not is_large(value):
        return KeptValue(*keep(value, what))
    if type(value) is dict and all(type(key) is str for key in value):
        parts = {key: _keep(item, f"{what}[{key!r}]") for key, item in value.items()}
        text = ",".join(f"{encode_basestring_ascii(key)}:{part.text}" for key, part in parts.items())
        return KeptValue(f"{{{text}}}", {key: part.value for key, part in parts.items()})
    if type(value) is list or type(value) is tuple:
        items = [_keep(item, f"{what}[{index}]") for index, item in enumerate(value)]
        return KeptValue(f"[{','.join(part.text for part in items)}]", [part.value for part in items])
    return KeptValue(*keep(value, what))
