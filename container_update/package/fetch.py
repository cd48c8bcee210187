"""Def-files that are URLs: fetched within bounds of scheme, host, address, time and size.

Whoever writes a package or a request chooses the URL, and this host may reach what they may not: so
a name is resolved once, every address it has is judged, and the connection goes to a judged one.
No proxy is used: it would do the resolving.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import ipaddress
import socket
import ssl
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from container_update.model.errors import PackageError

_CHUNK = 64 * 1024
_REDIRECTS = 5
_PORTS = {"http": 80, "https": 443}
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
"""IPv6 addresses that stand for IPv4 ones (RFC 6052)."""


@dataclass(frozen=True)
class Rules:
    """What may be fetched."""

    schemes: frozenset[str] = frozenset({"http", "https"})
    hosts: frozenset[str] = frozenset()
    """Only these, wherever they are; none: any that has only public addresses."""
    seconds: float = 30.0
    """For the whole of a file."""
    size: int = 8 * 1024 * 1024
    """Bytes of a file."""


def is_url(path: str) -> bool:
    """Whether a def-file is a URL and no path in the package."""
    try:
        return bool(urllib.parse.urlsplit(path).scheme) and ":/" in path
    except ValueError:  # brackets that hold no address
        return True


def fetch(url: str, rules: Rules) -> bytes:
    """What lies at a URL.

    PackageError where a rule forbids it, or it cannot be had. A redirect may not leave the host,
    nor go from https to http.
    """
    with _deadline(rules.seconds) as deadline:
        try:
            return _follow(url, rules, deadline)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if deadline.passed or isinstance(error, TimeoutError):
                raise PackageError(
                    f"{url} cannot be fetched: not complete within {rules.seconds:g} seconds"
                ) from error
            problem = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise PackageError(f"{url} cannot be fetched: {problem}") from error


def _follow(url: str, rules: Rules, deadline: _Deadline) -> bytes:
    at = url
    for _ in range(_REDIRECTS):
        parts = _checked(at, rules)
        if parts.scheme == "file":
            with _local(at, parts).open("rb") as file:
                return _read(file, at, rules)
        with closing(_connection(at, parts, rules, deadline)) as connection:
            target = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
            connection.request("GET", target, headers={"User-Agent": "container-update"})
            with connection.getresponse() as answer:
                if answer.status == 200:
                    content = _read(answer, at, rules)
                    if deadline.passed:  # a connection that is shut looks like the end
                        raise TimeoutError
                    return content
                if not 300 <= answer.status < 400 or not answer.headers.get("Location"):
                    raise PackageError(
                        f"{url} cannot be fetched: {answer.status} {answer.reason!a}"
                    )
                at = _redirected(at, answer.headers["Location"])
    raise PackageError(f"{url} cannot be fetched: it redirects more than {_REDIRECTS} times")


# --- rules --------------------------------------------------------------------------------------


def _checked(url: str, rules: Rules) -> urllib.parse.SplitResult:
    if not url.isascii() or not url.isprintable() or " " in url:
        raise PackageError(f"{url!a} is no valid URL: expected printable ASCII characters")
    try:
        parts = urllib.parse.urlsplit(url)
        credentials = parts.username or parts.password
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise PackageError(f"{url} is no valid URL: {error}") from error
    if credentials:
        raise PackageError(
            f"a def-file at {host} is given with a user name in its URL: "
            "that is not supported, serve it without or put it into the package"
        )
    if parts.scheme not in rules.schemes:
        allowed = ", ".join(sorted(rules.schemes)) or "none"
        raise PackageError(
            f"{url}: expected a URL with one of the schemes {allowed}: put the file into the "
            "package, or allow the scheme with the option url_schemes"
        )
    if parts.scheme != "file" and rules.hosts and host not in rules.hosts:
        raise PackageError(
            f"{url}: expected one of the hosts {', '.join(sorted(rules.hosts))}: put the file into "
            "the package, or allow the host with the option url_hosts"
        )
    if parts.scheme not in ("file", *_PORTS) or (parts.scheme != "file" and not host):
        raise PackageError(f"{url} is no valid URL: expected http://HOST/PATH or https://HOST/PATH")
    return parts


def _redirected(url: str, location: str) -> str:
    there = urllib.parse.urljoin(url, location)
    old, new = urllib.parse.urlsplit(url), urllib.parse.urlsplit(there)
    safe = new.scheme == old.scheme or (old.scheme, new.scheme) == ("http", "https")
    if new.hostname != old.hostname or not safe:
        raise PackageError(
            f"{url} cannot be fetched: it redirects to {new.scheme!a} on {new.hostname!a}, only "
            "the same host is followed: name that URL"
        )
    return there


def _addresses(url: str, host: str, port: int, rules: Rules) -> list[str]:
    """Every address of the host, or PackageError where one of them is off limits."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in found]
    for address in addresses:
        if host not in rules.hosts and not is_public(address):
            raise PackageError(
                f"{url} cannot be fetched: {host} is at {address}, which is no public address: "
                "put the file into the package, or allow the host with the option url_hosts"
            )
    return addresses


def is_public(address: str) -> bool:
    """Whether an IP address is one of the internet's, and so nothing that only we can reach."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo or (None, None))[1]
        if inner is not None:
            return is_public(str(inner))
        if ip in _TRANSLATED:
            return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


# --- connections --------------------------------------------------------------------------------


def _connection(
    url: str, parts: urllib.parse.SplitResult, rules: Rules, deadline: _Deadline
) -> http.client.HTTPConnection:
    """A connection to a judged address of the host; TLS still expects the host's name."""
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    connection = http.client.HTTPConnection(host, port)
    plain = _connected(_addresses(url, host, port, rules), port, rules.seconds / 2)
    plain.settimeout(rules.seconds)
    deadline.ends(plain)
    connection.sock = plain
    if parts.scheme == "https":
        try:
            context = ssl.create_default_context()
            connection.sock = context.wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise
        deadline.ends(connection.sock)
    return connection


def _connected(addresses: list[str], port: int, seconds: float) -> socket.socket:
    """A connection to the first address that answers, or the last one's error."""
    share = seconds / len(addresses)
    for address in addresses[:-1]:
        with contextlib.suppress(OSError):
            return socket.create_connection((address, port), share)
    return socket.create_connection((addresses[-1], port), share)


class _Deadline:
    """Ends the connection at hand when the time is over, whatever is waited for."""

    def __init__(self) -> None:
        self.passed = False
        self._socket: socket.socket | None = None

    def ends(self, connected: socket.socket) -> None:
        """This is the connection at hand."""
        self._socket = connected

    def be_over(self) -> None:
        """The time is over."""
        self.passed = True
        if self._socket is not None:
            with contextlib.suppress(OSError):  # it is closed already
                self._socket.shutdown(socket.SHUT_RDWR)


@contextmanager
def _deadline(seconds: float) -> Iterator[_Deadline]:
    deadline = _Deadline()
    timer = threading.Timer(seconds, deadline.be_over)
    timer.daemon = True
    timer.start()
    try:
        yield deadline
    finally:
        timer.cancel()


# --- content ------------------------------------------------------------------------------------


def _local(url: str, parts: urllib.parse.SplitResult) -> Path:
    if parts.netloc not in ("", "localhost"):
        raise PackageError(f"{url}: a file URL names a file of this host: file:///path")
    path = Path(urllib.request.url2pathname(parts.path))
    if not path.is_file():
        raise PackageError(f"{url} cannot be fetched: there is no such regular file")
    return path


def _read(source: io.BufferedReader | http.client.HTTPResponse, url: str, rules: Rules) -> bytes:
    """All of it, a piece at a time, so that no more is taken than is allowed."""
    content = bytearray()
    while piece := source.read1(_CHUNK):
        content += piece
        if len(content) > rules.size:
            raise PackageError(f"{url} cannot be fetched: it has more than {rules.size} bytes")
    expected = getattr(source, "length", None)
    if expected:
        raise http.client.IncompleteRead(b"", expected)
    return bytes(content)
