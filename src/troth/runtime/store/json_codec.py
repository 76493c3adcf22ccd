"""Keep a value as JSON, and what it will look like when it is read back.

JSON and nothing else: a file that holds pickles runs the code of whoever can write it. What a step returned is given
to the decision as it will be read back after a crash (a tuple as a list), so that a first run and a replay see the
same values.
"""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from json.encoder import encode_basestring_ascii
from typing import Any

from troth.runtime.store.errors import DamagedStoreError, NotJsonError

__all__ = ["decode", "encode", "keep", "plain_list", "read"]

_PLAIN = frozenset({str, int, bool, type(None)})
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
decode = json.JSONDecoder().decode
_scan = json.JSONDecoder().raw_decode  # what `decode` does where no white space is around the text, as in ours
_SHORT = 10_000  # letters that are written down in no time
_MOST_BITS = 2000  # of a number that may always be written down: the limit on digits cannot be set below 640
_WORDS = {None: "null", True: "true", False: "false"}


def keep(value: object, what: str) -> tuple[str, Any]:
    """The JSON text of `value`, and the value that reading it gives. `what` names it in the error."""
    try:
        if type(value) in _PLAIN:
            return _plain(value), value
        text = "".join(_pieces(value, 0))
    except (TypeError, ValueError, RecursionError) as cause:
        raise _refusal(value, what, cause) from None
    back = _scan(text, 0)[0]
    if not _is_same(back, value):  # a tuple, which is fine, or a key that is not text, which would come back changed
        problem = _problem(value, what, ())
        if problem is not None:
            raise problem
    return text, back


def encode(value: object, what: str) -> str:
    """The JSON text alone, for what is only looked at. A key that is no text is written as one."""
    try:
        return "".join(_pieces(value, 0))
    except (TypeError, ValueError, RecursionError) as cause:
        raise _refusal(value, what, cause) from None


def _not_json(value: object) -> object:
    raise TypeError(type(value).__name__)


# The encoder itself makes one of these for every value that it is given, which costs more than to use it.
_make: Any = getattr(json.encoder, "c_make_encoder", None)
_pieces: Callable[[object, int], Iterable[str]] = (
    _make(None, _not_json, encode_basestring_ascii, None, ":", ",", False, False, False)
    if _make is not None
    else lambda value, _: (_encode(value),)
)


def _is_same(back: object, value: object) -> bool:
    try:
        return bool(back == value)
    except Exception:  # noqa: BLE001 -- a comparison of the user's own, which may do anything
        return False


def plain_list(values: tuple[object, ...]) -> str | None:
    """The JSON text of a list of words, numbers and strings, quickly; nothing if there is anything else among them."""
    texts = []
    for value in values:
        kind = type(value)
        if kind is str and len(value) <= _SHORT:  # type: ignore[arg-type]
            texts.append(encode_basestring_ascii(value))  # type: ignore[arg-type]  # it is a str, as `kind` says
        elif kind is int and value.bit_length() <= _MOST_BITS:  # type: ignore[attr-defined]  # it is an int
            texts.append(repr(value))
        elif kind is bool or value is None:
            texts.append(_WORDS[value])  # type: ignore[index]
        else:
            return None
    return f"[{','.join(texts)}]"


def _plain(value: Any) -> str:
    """The text of a word, a number or a string: most of what steps take and return, without the encoder's ceremony."""
    if type(value) is str:
        return encode_basestring_ascii(value)
    return repr(value) if type(value) is int else _WORDS[value]


def read(text: str | None, what: str) -> Any:
    """The value that `keep` made a text of. `what` names whose it is, in the error of one that is damaged."""
    if text is None:
        return None
    try:
        return decode(text)
    except (ValueError, TypeError, RecursionError) as cause:
        raise DamagedStoreError(what, f"it is not valid JSON ({cause})") from cause


def _refusal(value: object, what: str, cause: Exception) -> NotJsonError:
    try:
        problem = _problem(value, what, ())
    except RecursionError:
        problem = None
    if problem is None and isinstance(cause, RecursionError):
        return NotJsonError(what, what, "nested too deeply")
    return problem or NotJsonError(what, what, f"refused by the encoder: {cause}")


def _problem(value: object, path: str, above: tuple[int, ...]) -> NotJsonError | None:
    """The first part of `value` that is not JSON, or nothing."""
    subject = path.partition("[")[0]
    if isinstance(value, float) and value - value != 0:
        return NotJsonError(subject, path, f"`{value!r}`, and JSON has no such number")
    if isinstance(value, int) and value.bit_length() > _MOST_BITS and _is_too_long(value):
        return NotJsonError(subject, path, "a number with more digits than Python can write; use a string")
    if value is None or isinstance(value, str | int | float):
        return None
    if id(value) in above:
        return NotJsonError(subject, path, "a value that contains itself")
    above = (*above, id(value))
    if isinstance(value, dict):
        return _problem_of_mapping(value, path, above)
    if isinstance(value, list | tuple):
        problems = (_problem(item, f"{path}[{index}]", above) for index, item in enumerate(value))
        return next(filter(None, problems), None)
    return NotJsonError(subject, path, _describe(value))


def _is_too_long(number: int) -> bool:
    """Whether it has more digits than `sys.get_int_max_str_digits()` allows."""
    try:
        repr(number)
    except ValueError:
        return True
    return False


def _problem_of_mapping(value: Mapping[object, object], path: str, above: tuple[int, ...]) -> NotJsonError | None:
    for key, item in value.items():
        if not isinstance(key, str):
            why = f"under the key `{key!r}` ({type(key).__name__}); JSON keys are strings, so it would be changed"
            return NotJsonError(path.partition("[")[0], f"{path}[{key!r}]", why)
        problem = _problem(item, f"{path}[{key!r}]", above)
        if problem is not None:
            return problem
    return None


def _describe(value: object) -> str:
    kind = type(value).__name__
    if inspect.iscoroutine(value):
        return f"a coroutine (`{value.__qualname__}`) that was not awaited; await it and keep what it returns"
    if inspect.isawaitable(value):
        return f"an awaitable ({kind}) that was not awaited; await it and keep what it returns"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{kind}; use a string, or the path of a file with the bytes"
    if isinstance(value, set | frozenset):
        return f"a {kind}, which has no order; keep `sorted(…)`"
    if hasattr(value, "model_dump"):
        return f"a {kind}; keep its `model_dump(mode='json')`"
    if hasattr(value, "__dataclass_fields__"):
        return f"a {kind}; keep its `dataclasses.asdict(…)`"
    if hasattr(value, "isoformat"):
        return f"a {kind}; keep its `isoformat()`"
    return f"a {kind}; use strings, numbers, booleans, null, lists, and mappings with string keys"
