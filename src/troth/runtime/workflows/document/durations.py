"""How a span of time is written: `200ms`, `5s`, `2m`, `1h`, `7d`, or several of them as `1m30s`."""

import re

__all__ = ["DURATION", "parse_duration", "show_duration"]

_UNITS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = r"(?:\d+(?:\.\d+)?(?:ms|[smhd]))"
DURATION = f"^{_PART}+$"


def parse_duration(text: str) -> float | None:
    """Seconds; None where `text` is not a duration."""
    if not re.fullmatch(DURATION, text):
        return None
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|[smhd])", text)
    return sum(float(count) * _UNITS[unit] for count, unit in parts)


def show_duration(seconds: float) -> str:
    """The shortest exact way to write `seconds`, to the millisecond."""
    milliseconds = round(seconds * 1000)
    shown = ""
    for unit, size in _UNITS.items():
        count, milliseconds = divmod(milliseconds, round(size * 1000))
        shown += f"{count}{unit}" if count else ""
    return shown or "0s"
