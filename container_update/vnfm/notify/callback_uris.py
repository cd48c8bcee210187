"""Which URIs the service may be told to send requests to, and which addresses they may lead to.

Whoever has a token chooses them, and this host may reach what they may not: so a name is resolved
once, every address that it has is judged, and the connection goes to a judged one. An NFVO is often
in a private network, so those are allowed too.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Collection

from aiohttp import ThreadedResolver
from aiohttp.abc import AbstractResolver, ResolveResult

from container_update.package.address_policy import Network, network_of, split_url

LONGEST_URI = 2048


def uri_problem(uri: str, hosts: Collection[str]) -> str:
    """Why no request may go to a URI; nothing where it may.

    :param hosts: the only ones that are allowed, wherever they are; none: see
        :func:`address_problem`. A name is judged when it is resolved.
    """
    if len(uri) > LONGEST_URI:
        return f"expected a URI of up to {LONGEST_URI} characters"
    try:
        parts = split_url(uri)
    except ValueError as error:
        return f"expected a URI: {error}"
    host = parts.hostname
    if parts.scheme not in ("http", "https") or not host or parts.fragment:
        return "expected http://HOST/PATH or https://HOST/PATH"
    if "@" in parts.netloc:
        return "expected credentials in the subscription's authentication, not in the URI"
    if hosts and host not in hosts:
        return f"{host} is none of the hosts that [vnfm] callback_hosts allows"
    return "" if host in hosts else address_problem(host)


def address_problem(address: str) -> str:
    """Why no request may go to an address; nothing where it may, or where it is a name."""
    try:
        network = network_of(address)
    except ValueError:
        return ""
    if network is Network.OFF_LIMITS:
        return f"{address} is off limits as long as [vnfm] callback_hosts does not name the host"
    return ""


class JudgingResolver(AbstractResolver):
    """Resolves a name where every address that it has is allowed.

    :param hosts: names that may have any address.
    """

    def __init__(self, hosts: Collection[str]) -> None:
        self._hosts = hosts
        self._resolver = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a host; OSError where one of them is off limits."""
        found = await self._resolver.resolve(host, port, family)
        for entry in found if host not in self._hosts else ():
            if problem := address_problem(entry["host"]):
                raise PermissionError(errno.EACCES, problem)
        return found

    async def close(self) -> None:
        """Nothing is open."""
        await self._resolver.close()
