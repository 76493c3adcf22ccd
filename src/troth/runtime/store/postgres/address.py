"""Read the address of a store in PostgreSQL: what libpq is given, and what is ours.

    postgresql://user@host/database?schema=troth&heartbeat=1&lifetime=5&machine_lifetime=600

`schema`, `heartbeat`, `lifetime` and `machine_lifetime` are ours; everything else is libpq's, TLS and credentials
included. What is shown of an address is put together anew from the few parts that are no secret.
"""

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import ProgrammingError

from troth.errors import MisuseError

__all__ = ["HEARTBEAT", "LIFETIME", "MACHINE_LIFETIME", "SCHEMA", "Address", "parse"]

SCHEMA = "troth"
HEARTBEAT = 1.0
LIFETIME = 5.0
"""Seconds without a heartbeat after which an owner is taken for dead. Five beats: one that is late is not enough."""
MACHINE_LIFETIME = 600.0
"""Seconds after which the jobs of a machine are lost on which nobody looks after them. A job outlives its program,
which may be restarted or brought up to date meanwhile."""

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a store is, and how its owners show that they live. `repr` shows no password."""

    conninfo: str
    schema: str
    heartbeat: float
    lifetime: float
    machine_lifetime: float
    shown: str
    """What may be printed and logged."""
    is_pooled: bool = False
    """Whether a pooler stands between, so that nothing can be set for a session. It is found out by connecting."""

    @property
    def silence(self) -> float:
        """Seconds without a heartbeat after which a worker is taken for dead.

        A little less than its lifetime: when that is over, somebody else has looked, and goes on.
        """
        return 0.9 * self.lifetime

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


def parse(url: str) -> Address:
    """Read `url`; what is wrong with it is said without repeating it, because it may contain a password."""
    base, _, query = url.partition("?")
    ours: dict[str, str] = {}
    theirs: list[tuple[str, str]] = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in {"schema", "heartbeat", "lifetime", "machine_lifetime"}:
            ours[name] = value
        else:
            theirs.append((name, value))
    try:
        if _is_ambiguous(base):
            raise ProgrammingError  # libpq would read a part of the password as a host or a database, and name it
        parts = conninfo_to_dict(f"{base}?{urlencode(theirs, quote_via=quote)}" if theirs else base)
    except ProgrammingError:
        raise MisuseError(
            "The address of the PostgreSQL store cannot be parsed. It is not shown here, because it may contain a "
            "password.\nIt looks like `postgresql://user@host:5432/database?schema=troth`; a special character "
            "in a password is written as its percent code, such as `%40` for `@`."
        ) from None
    schema = ours.get("schema", SCHEMA)
    if _NAME.fullmatch(schema) is None or schema.startswith("pg_"):
        raise MisuseError(
            f"`schema` is {schema!r} in the address of the store; it is a name of lowercase letters, digits and "
            "underscores that does not begin with a digit or with `pg_`."
        )
    heartbeat = _seconds("heartbeat", ours, HEARTBEAT)
    lifetime = _seconds("lifetime", ours, LIFETIME)
    if lifetime < 2 * heartbeat:
        raise MisuseError(
            f"`lifetime` is {lifetime:g} s and `heartbeat` {heartbeat:g} s in the address of the store: an owner with "
            "one late heartbeat would be considered dead. Make `lifetime` at least two heartbeats."
        )
    machine_lifetime = _seconds("machine_lifetime", ours, MACHINE_LIFETIME)
    shown = _shown(parts, schema)
    return Address(make_conninfo("", **parts), schema, heartbeat, lifetime, machine_lifetime, shown)


def _is_ambiguous(base: str) -> bool:
    """Whether a password may hold an `@` or a `/` that is not written as `%40` or `%2F`."""
    credentials, at, rest = base.partition("://")[2].partition("@")
    return bool(at) and ("@" in rest.lstrip("@") or "/" in credentials)


def _seconds(name: str, ours: dict[str, str], usual: float) -> float:
    try:
        value = float(ours.get(name, usual))
    except ValueError:
        value = 0.0
    if not 0 < value < 86_400:
        raise MisuseError(f"`{name}` is {ours[name]!r} in the address of the store; it is a number of seconds.")
    return value


def _shown(parts: dict[str, str | int | None], schema: str) -> str:
    user = f"{quote(str(parts['user']))}@" if parts.get("user") else ""
    host = str(parts.get("host") or parts.get("hostaddr") or "")
    port = f":{parts['port']}" if parts.get("port") else ""
    where = quote(host, safe=":,") if host.startswith("/") else host
    return f"postgresql://{user}{where}{port}/{quote(str(parts.get('dbname') or ''))}?schema={schema}"
