"""Read an on/off switch from the environment."""

import os
from collections.abc import Mapping

from troth.errors import MisuseError

__all__ = ["stop_at_bugs", "switch"]

_ON = frozenset({"1", "yes", "true", "on"})
_OFF = frozenset({"", "0", "no", "false", "off"})


def switch(name: str, *, default: bool = False, environ: Mapping[str, str] | None = None) -> bool:
    """Say whether the environment variable `name` is switched on; unset is `default`."""
    value = (os.environ if environ is None else environ).get(name)
    if value is None:
        return default
    word = value.strip().lower()
    if word in _ON:
        return True
    if word in _OFF:
        return False
    raise MisuseError(
        f"The environment variable `{name}` is {value!r}, which is neither on nor off.\n"
        "Nothing was done, because its meaning is unclear.\n"
        "Write 1, yes, true or on to switch it on; 0, no, false or off to switch it off."
    )


def stop_at_bugs() -> None:
    """With `TROTH_DEBUG=1`, let the first exception of our own in an analysis end the command, with its traceback."""
    if switch("TROTH_DEBUG"):
        from troth.analysis.crash import raise_at_once

        raise_at_once(is_on=True)
