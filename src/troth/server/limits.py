"""Set how much a server takes in, and for how long it waits."""

from dataclasses import dataclass, fields

from troth.errors import MisuseError

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes are in bytes, times in seconds. The counts hold for one process."""

    body: int = 10_000_000
    """The largest body of a request."""
    requests: int = 200
    """Requests at once that are not streams; one more is answered with 503."""
    streams: int = 4000
    """Streams and sockets at once; one more is answered with 503."""
    turns: int = 32
    """Turns and runs under way at once for one owner; one more is answered with 429."""
    header_time: float = 10.0
    """For the headers of a request."""
    body_time: float = 30.0
    """For the body of a request."""
    idle_time: float = 30.0
    """For which a connection without a request is kept."""
    write_time: float = 30.0
    """For which a reader of a stream or of a large answer may take nothing at all, until its connection is closed."""
    keep_alive: float = 15.0
    """After which a quiet stream sends a comment."""
    lag: int = 5000
    """Events that a reader may be behind, for longer than `write_time`, until it is told so and disconnected."""
    wait: float = 60.0
    """The longest time that a request waits for a result with `Prefer: wait=N`."""
    drain: float = 30.0
    """For which turns may go on after SIGTERM."""
    remember: float = 86_400.0
    """For which the answer to a request with an `Idempotency-Key` is kept."""

    keep: float | None = None
    """For which what was said in a talk is kept after its last entry; forever without it."""

    def __post_init__(self) -> None:
        """Refuse limits that would let nothing through."""
        for field in fields(self):
            number = getattr(self, field.name)
            if number is None and field.name == "keep":
                continue
            least = 0 if field.name == "drain" else 1e-9
            if isinstance(number, bool) or not isinstance(number, int | float) or not least <= number < float("inf"):
                raise MisuseError(
                    f"The limit `{field.name}` is {number!r}, so every request would be refused. Give a number above 0."
                )
