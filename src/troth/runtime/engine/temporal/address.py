"""Read the address of a Temporal server: where it is, and how its workers show that they live.

    temporal://host:7233/namespace?queue=troth&heartbeat=1

`queue` begins the names of the task queues, one for each decision. A step is given up that was silent for `heartbeat`
seconds; `sticky` is how long its worker may leave a run untouched, `task` how long a decision may take between two
steps. `tls=1` asks for TLS; the key of an account in the cloud is read from `TEMPORAL_API_KEY`, never from the address.
"""

import os
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from troth.errors import MisuseError

__all__ = ["API_KEY", "SCHEME", "TemporalAddress", "is_temporal", "parse"]

SCHEME = "temporal://"
API_KEY = "TEMPORAL_API_KEY"

_SECONDS = {"heartbeat": 1.0, "sticky": 0.5, "task": 3.0}
"""With them, the run of a killed worker goes on after about two and a half seconds (`bench/runtime/temporal.py`): a
timer of the server itself is up to a second late. A heartbeat is sent four times in its span: a machine that does not
come to that in a second needs a longer one."""


@dataclass(frozen=True, slots=True)
class TemporalAddress:
    """Where a server is. `repr` shows no secret: there is none in it."""

    host: str
    namespace: str
    queue: str
    heartbeat: float
    sticky: float
    task: float
    is_tls: bool

    @property
    def owner(self) -> str:
        """Under which name the runs on this server are held in the store, whichever worker carries them out."""
        return f"temporal:{self.host}/{self.namespace}/{self.queue}"

    @property
    def api_key(self) -> str | None:
        """The key of the account, if there is one."""
        return os.environ.get(API_KEY) or None

    def queue_of(self, decision: str) -> str:
        """The task queue of a decision: only workers that know it poll for it."""
        return f"{self.queue}/{decision}"

    def workflow_id(self, run_id: str) -> str:
        """How a run is called on the server."""
        return f"{self.queue}/{run_id}"

    def run_id(self, workflow_id: str) -> str:
        """The run that is called so on the server."""
        return workflow_id.removeprefix(f"{self.queue}/")


def is_temporal(engine: object) -> bool:
    """Whether `engine` is the address of a Temporal server."""
    return isinstance(engine, str) and engine.startswith(SCHEME)


def parse(url: str) -> TemporalAddress:
    """Read `url`; refuses what is no address, and options that it does not know, by name."""
    form = "`temporal://host:7233/namespace?queue=troth`"
    if not is_temporal(url):
        raise MisuseError(f"{url!r} is not an address of an engine. Nothing was opened. It looks like {form}.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or 7233
    except ValueError as error:
        raise MisuseError(f"The address of the engine cannot be read: {error}. It looks like {form}.") from None
    if not host or parts.username or parts.password:
        why = "it names no host" if not host else f"a secret does not belong there; set `{API_KEY}` instead"
        raise MisuseError(f"The address of the engine cannot be used: {why}. It looks like {form}.")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = sorted(set(options) - {*_SECONDS, "queue", "tls"})
    if unknown:
        listing = ", ".join(["`queue`", *(f"`{name}`" for name in _SECONDS), "`tls`"])
        raise MisuseError(f"The address of the engine has an option {unknown[0]!r}; there are {listing}.")
    seconds = {name: _number(name, options.get(name), default) for name, default in _SECONDS.items()}
    queue = options.get("queue", "troth")
    if not queue or "/" in queue:
        raise MisuseError(f"`queue` is {queue!r} in the address of the engine; it is a name without a slash.")
    name = f"[{host}]" if ":" in host else host
    namespace = unquote(parts.path.strip("/")) or "default"
    return TemporalAddress(
        f"{name}:{port}", namespace, queue, is_tls=options.get("tls", "0") not in {"", "0"}, **seconds
    )


def _number(name: str, text: str | None, default: float) -> float:
    try:
        seconds = default if text is None else float(text)
    except ValueError:
        seconds = -1.0
    if not 0.1 <= seconds <= 3600:
        raise MisuseError(f"`{name}` is {text!r} in the address of the engine; it is 0.1 to 3600 seconds.")
    return seconds
