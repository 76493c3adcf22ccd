"""No address inside is ever called, however it is written and whenever its name changes."""

import asyncio
import ipaddress

import pytest

from troth.errors import MisuseError
from troth.server.webhooks.addresses import Allowed, why_inside
from troth.server.webhooks.name_resolution import InsideError, UnknownHostError, check_host


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("127.0.0.1", id="loopback"),
        pytest.param("127.255.3.4", id="all of loopback"),
        pytest.param("0.0.0.0", id="unspecified"),
        pytest.param("10.0.0.1", id="private 10"),
        pytest.param("172.16.0.1", id="private 172.16"),
        pytest.param("172.31.255.255", id="private 172.31"),
        pytest.param("192.168.1.1", id="private 192.168"),
        pytest.param("169.254.169.254", id="metadata"),
        pytest.param("100.100.100.200", id="carrier-grade NAT, a cloud's metadata"),
        pytest.param("168.63.129.16", id="Azure's own service"),
        pytest.param("192.0.0.8", id="protocols"),
        pytest.param("198.18.0.1", id="benchmarks"),
        pytest.param("224.0.0.1", id="multicast"),
        pytest.param("255.255.255.255", id="broadcast"),
        pytest.param("::", id="unspecified 6"),
        pytest.param("::1", id="loopback 6"),
        pytest.param("fe80::1", id="link-local 6"),
        pytest.param("fc00::1", id="unique local"),
        pytest.param("fd00:ec2::254", id="metadata 6"),
        pytest.param("fec0::1", id="site-local"),
        pytest.param("ff02::1", id="multicast 6"),
        pytest.param("::ffff:127.0.0.1", id="mapped loopback"),
        pytest.param("::ffff:10.0.0.1", id="mapped private"),
        pytest.param("::127.0.0.1", id="compatible loopback"),
        pytest.param("64:ff9b::7f00:1", id="NAT64 loopback"),
        pytest.param("64:ff9b::a9fe:a9fe", id="NAT64 metadata"),
        pytest.param("64:ff9b:1::808:808", id="NAT64 of a private network"),
        pytest.param("2002:7f00:1::", id="6to4 loopback"),
        pytest.param("2002:a00:1::1", id="6to4 private"),
        pytest.param("2001:0:7f00:1::", id="Teredo server inside"),
        pytest.param("2001:0:808:808::80ff:fffe", id="Teredo client inside"),
        pytest.param("2607:f8b0::5efe:10.0.0.1", id="ISATAP private"),
        pytest.param("2001:db8::1", id="documentation"),
        pytest.param("4000::1", id="never given out"),
    ],
)
def test_inside(text):
    """It is refused, and said what it is."""
    assert why_inside(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    "text",
    [
        "8.8.8.8",
        "93.184.216.34",
        "172.32.0.1",
        "100.128.0.1",
        "2606:4700:4700::1111",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2002:808:808::1",
    ],
)
def test_outside(text):
    """An address of the public internet is used."""
    assert why_inside(ipaddress.ip_address(text)) is None


def looking_up(*addresses):
    async def look_up(host, port):
        return addresses

    return look_up


@pytest.mark.parametrize(
    ("addresses", "is_refused"),
    [
        pytest.param(["93.184.216.34", "2606:2800::1"], False, id="all outside"),
        pytest.param(["93.184.216.34", "127.0.0.1"], True, id="one of two inside"),
        pytest.param(["127.0.0.1", "93.184.216.34"], True, id="the first inside"),
        pytest.param(["93.184.216.34", "::ffff:127.0.0.1"], True, id="inside in disguise"),
    ],
)
def test_every_address_of_a_name_counts(addresses, is_refused):
    """A name is refused for any of its addresses."""
    checking = check_host("hooks.example", 443, Allowed.of([]), looking_up(*addresses))
    if is_refused:
        with pytest.raises(InsideError, match=r"hooks\.example"):
            asyncio.run(checking)
    else:
        assert [str(one) for one in asyncio.run(checking)] == addresses


@pytest.mark.parametrize(
    "host", ["127.1", "2130706433", "0x7f.1", "017700000001", "localhost", "[::1]", "[::ffff:7f00:1]"]
)
def test_other_ways_to_write_loopback(host):
    """What the system makes of it is what is checked."""
    with pytest.raises((InsideError, UnknownHostError)):
        asyncio.run(check_host(host, 80, Allowed.of([])))


@pytest.mark.parametrize(
    ("allow", "host", "address"),
    [
        pytest.param(["hooks.internal"], "Hooks.Internal.", "10.0.0.5", id="a name"),
        pytest.param(["10.0.0.0/8"], "any.example", "10.0.0.5", id="a network"),
        pytest.param(["::1"], "any.example", "::1", id="an address"),
    ],
)
def test_exceptions(allow, host, address):
    """What is named in `allow` may be inside."""
    assert asyncio.run(check_host(host, 443, Allowed.of(allow), looking_up(address)))


@pytest.mark.parametrize("allow", ["hooks.internal", ["10.0.0.0/99"], ["hooks.internal:8080"], [""], [7]])
def test_an_exception_that_cannot_be_read_is_refused(allow):
    """Nobody believes that something is allowed, or forbidden, that is not."""
    with pytest.raises(MisuseError):
        Allowed.of(allow)


def test_an_exception_for_one_name_is_none_for_another():
    """Only what is named is let in."""
    with pytest.raises(InsideError):
        asyncio.run(
            check_host("other.internal", 443, Allowed.of(["hooks.internal", "10.1.0.0/16"]), looking_up("10.2.0.1"))
        )
