"""What a URL that somebody else chose may look like, and which network an address belongs to.

Whoever writes a package, a request or a subscription chooses a URL, and this host may reach what
they may not. The networks are the same for all of them; which ones are allowed is for the caller to
say, and so are the hosts that an operator's allow-list excepts.

Sources: the IANA special-purpose address registries (RFC 6890); RFC 6052 and 8215 (NAT64).
"""

from __future__ import annotations

import enum
import ipaddress
from urllib.parse import SplitResult, urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Network(enum.Enum):
    """Who else can reach an address."""

    PUBLIC = "public"
    """Everybody: it is one of the internet's."""
    PRIVATE = "private"
    """Whoever is in the same site's network (RFC 1918, RFC 4193), or what a NAT64 leads to."""
    OFF_LIMITS = "off limits"
    """This host or its link alone (loopback, link-local and so cloud metadata), a carrier's
    customers (100.64.0.0/10), a group (multicast), or nobody."""


_PRIVATE = tuple(
    ipaddress.ip_network(text)
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10")
)
_OFF_LIMITS = tuple(
    ipaddress.ip_network(text)
    for text in ("100.64.0.0/10", "192.0.0.0/24", "64:ff9b:1::/48", "3fff::/20")
)
"""What not every version of Python's ``ipaddress`` takes for special."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def split_url(url: str) -> SplitResult:
    """Return the parts of a URL; host and port can be read from them.

    :raises ValueError: it has other characters than printable ASCII, or a port that is none.
    """
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("expected printable ASCII characters")
    parts = urlsplit(url)
    parts.hostname, parts.port  # noqa: B018 (both raise where they cannot be read)
    return parts


def network_of(address: str) -> Network:
    """Return the network of an IP address, whose scope ('%eth0') is left out.

    An IPv6 address that stands for an IPv4 one is judged as that one. Where a NAT64 stands between
    it is never public: whose network it leads to is that gateway's matter.

    :raises ValueError: it is no IP address.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if ip in _NAT64:
        behind = _judged(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF))
        return Network.PRIVATE if behind is Network.PUBLIC else behind
    return _judged(_embedded(ip) or ip)


def _embedded(ip: Address) -> Address | None:
    """The IPv4 address that an IPv4-mapped, 6to4 or Teredo address stands for."""
    if isinstance(ip, ipaddress.IPv4Address):
        return None
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo or (None, None))[1]


def _judged(ip: Address) -> Network:
    if any(ip in network for network in _PRIVATE):
        return Network.PRIVATE
    usable = ip.is_global and not (ip.is_multicast or ip.is_reserved)
    if not usable or any(ip in network for network in _OFF_LIMITS):
        return Network.OFF_LIMITS
    return Network.PUBLIC


def is_public(address: str) -> bool:
    """Whether an IP address is one of the internet's, and so nothing that only we can reach."""
    return network_of(address) is Network.PUBLIC
