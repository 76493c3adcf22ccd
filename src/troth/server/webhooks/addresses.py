"""Tell addresses of the public internet from addresses inside: this machine, its network, its cloud.

A webhook goes to an address that somebody else names. Without this check that somebody could make the server call its
own database, its neighbours, or the metadata service of its cloud.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from troth.errors import MisuseError

__all__ = ["Address", "Allowed", "why_inside"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# Of our own, because what `is_global` says has changed between patch releases of Python, and is true of multicast.
_INSIDE: tuple[tuple[_Network, str], ...] = tuple(
    (ipaddress.ip_network(network), meaning)
    for network, meaning in (
        ("0.0.0.0/8", "this machine"),
        ("10.0.0.0/8", "a private network"),
        ("100.64.0.0/10", "a carrier's or a cloud's own network"),
        ("127.0.0.0/8", "this machine"),
        ("168.63.129.16/32", "a cloud's own service"),  # Azure; it looks public
        ("169.254.0.0/16", "a link-local address, where clouds keep their credentials"),
        ("172.16.0.0/12", "a private network"),
        ("192.0.0.0/24", "reserved for protocols"),
        ("192.0.2.0/24", "reserved for documentation"),
        ("192.88.99.0/24", "a relay that leads anywhere"),
        ("192.168.0.0/16", "a private network"),
        ("198.18.0.0/15", "a network for benchmarks"),
        ("198.51.100.0/24", "reserved for documentation"),
        ("203.0.113.0/24", "reserved for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("::/128", "this machine"),
        ("::1/128", "this machine"),
        ("64:ff9b:1::/48", "a translator of a private network"),
        ("100::/64", "reserved to discard"),
        ("2001:2::/48", "a network for benchmarks"),
        ("2001:10::/28", "reserved"),
        ("2001:20::/28", "reserved"),
        ("2001:db8::/32", "reserved for documentation"),
        ("3fff::/20", "reserved for documentation"),
        ("5f00::/16", "a network's own routing"),
        ("fc00::/7", "a private network"),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a private network"),
        ("ff00::/8", "multicast"),
    )
)

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_COMPATIBLE = ipaddress.ip_network("::/96")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)


def why_inside(address: Address) -> str | None:
    """What an address inside is; nothing for one of the public internet.

    An IPv6 address that carries an IPv4 one (mapped, 6to4, Teredo, NAT64, ISATAP) leads to that one, so both count.
    """
    for candidate in (address, *_carried(address)):
        for network, meaning in _INSIDE:
            if candidate.version == network.version and candidate in network:
                return meaning if candidate == address else f"a way to {candidate}, {meaning}"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None and not _is_unicast(address):
        return "not an address of the public internet"
    return None


def _is_unicast(address: ipaddress.IPv6Address) -> bool:
    """All that was ever given out lies in 2000::/3, and NAT64 has a prefix of its own."""
    return int(address) >> 125 == 1 or address in _NAT64


def _carried(address: Address) -> Iterator[ipaddress.IPv4Address]:
    if not isinstance(address, ipaddress.IPv6Address):
        return
    low = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        yield low
    if (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP:
        yield low


@dataclass(frozen=True, slots=True)
class Allowed:
    """Exceptions: host names whose addresses are not looked at, and networks that count as outside."""

    names: frozenset[str]
    networks: tuple[_Network, ...]

    @classmethod
    def of(cls, exceptions: Iterable[object]) -> "Allowed":
        """Read `hooks.internal`, `10.1.2.3` and `10.1.0.0/16`."""
        if isinstance(exceptions, str):
            raise MisuseError(f"`allow` is the string {exceptions!r}. Give a list: `allow=[{exceptions!r}]`.")
        names, networks = set(), []
        for exception in exceptions:
            if not isinstance(exception, str) or not exception.strip():
                raise MisuseError(f"`allow` has {exception!r}. Give host names, addresses or networks, as strings.")
            try:
                networks.append(ipaddress.ip_network(exception))
            except ValueError:
                if "/" in exception or ":" in exception:
                    raise MisuseError(
                        f"`allow` has {exception!r}, which is neither a network nor a host name.\n"
                        "Nothing was allowed. Write `10.1.0.0/16`, `::1` or `hooks.internal`, without a port or a path."
                    ) from None
                names.add(exception.lower().rstrip("."))
        return cls(frozenset(names), tuple(networks))

    def has_name(self, host: str) -> bool:
        """Whether this host may be anywhere."""
        return host.lower().rstrip(".") in self.names

    def has_address(self, address: Address) -> bool:
        """Whether this address counts as outside."""
        return any(address.version == network.version and address in network for network in self.networks)
