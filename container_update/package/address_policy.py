# SPDX-License-Identifier: Apache-2.0
"""Check URLs that somebody else chose, and classify the network of an address.

The author of a package, a request or a subscription chooses a URL, and this host may have access to
networks that the author has not. The caller decides which networks are allowed, and which hosts an
operator allows in addition.

Sources: the IANA special-purpose address registries (RFC 6890); RFC 6052 and 8215 (NAT64).
"""

from __future__ import annotations

import enum
import ipaddress
from urllib.parse import SplitResult, urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Network(enum.Enum):
    """Who can reach an address."""

    PUBLIC = "public"
    """Everybody on the internet."""
    PRIVATE = "private"
    """The same site's network (RFC 1918, RFC 4193), or the network behind a NAT64."""
    OFF_LIMITS = "off limits"
    """Only this host or its link (loopback, link-local including cloud metadata), a carrier's
    customers (100.64.0.0/10), a multicast group, or nobody."""


_PRIVATE = tuple(
    ipaddress.ip_network(text)
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10")
)
_OFF_LIMITS = tuple(
    ipaddress.ip_network(text)
    for text in ("100.64.0.0/10", "192.0.0.0/24", "64:ff9b:1::/48", "3fff::/20")
)
"""Special networks that not every version of Python's ``ipaddress`` knows."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def split_url(url: str) -> SplitResult:
    """Return the parts of a URL, with a valid host and port.

    :raises ValueError: the URL has characters that are not printable ASCII, or an invalid port.
    """
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("expected printable ASCII characters")
    parts = urlsplit(url)
    parts.hostname, parts.port  # noqa: B018 (both raise ValueError)
    return parts


def network_of(address: str) -> Network:
    """Return the network of an IP address; a scope ('%eth0') is ignored.

    An IPv6 address that embeds an IPv4 address belongs to the network of that address. An address
    behind a NAT64 is never public, because the gateway decides which network it leads to.

    :raises ValueError: it is not an IP address.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if ip in _NAT64:
        behind = _classified(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF))
        return Network.PRIVATE if behind is Network.PUBLIC else behind
    return _classified(_embedded(ip) or ip)


def _embedded(ip: Address) -> Address | None:
    """Return the IPv4 address in an IPv4-mapped, 6to4 or Teredo address; None in any other."""
    if isinstance(ip, ipaddress.IPv4Address):
        return None
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo or (None, None))[1]


def _classified(ip: Address) -> Network:
    if any(ip in network for network in _PRIVATE):
        return Network.PRIVATE
    usable = ip.is_global and not (ip.is_multicast or ip.is_reserved)
    if not usable or any(ip in network for network in _OFF_LIMITS):
        return Network.OFF_LIMITS
    return Network.PUBLIC
