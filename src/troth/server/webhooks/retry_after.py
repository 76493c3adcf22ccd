"""Read the header `Retry-After`: a number of seconds, or a date."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

__all__ = ["seconds_until"]

_LONGEST = 86400.0  # a receiver that asks for more is asked again after a day


def seconds_until(header: str | None, now: float) -> float | None:
    """How many seconds the receiver wants to be left alone; nothing if it does not say so in words we know."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(float(text), _LONGEST)
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max(0.0, moment.timestamp() - now), _LONGEST) if moment > datetime.min.replace(tzinfo=UTC) else None
