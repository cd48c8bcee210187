# SPDX-License-Identifier: Apache-2.0
"""Fetch def-files and packages from URLs, with limits on scheme, host, address, time and size.

The author of a package or a request chooses the URL, and this host may have access to networks
that the author has not. So a name is resolved once, all its addresses are checked, and the
connection goes to a checked address. No proxy is used, because it would resolve the name itself.
"""

from __future__ import annotations

import contextlib
import enum
import hashlib
import http.client
import io
import ipaddress
import socket
import ssl
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, BinaryIO
from urllib.parse import SplitResult, urlsplit

from container_update.model.errors import PackageError
from container_update.model.options import Options

_CHUNK = 64 * 1024
_REDIRECTS = 5
_PORTS = {"http": 80, "https": 443}
NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class UnauthorizedError(PackageError):
    """The requested server asks for credentials, not one that it redirects to.

    :param challenge: the header that says how (RFC 9110, 11.6.1).
    """

    def __init__(self, message: str = "", challenge: str = "") -> None:
        super().__init__(message)
        self.challenge = challenge


class NotFoundError(PackageError):
    """The server has nothing there."""


def is_url(path: str) -> bool:
    """Return whether a def-file is a URL, not a path in the package."""
    try:
        return bool(urllib.parse.urlsplit(path).scheme) and ":/" in path
    except ValueError:  # brackets without an address
        return True


def fetch(url: str, options: Options) -> bytes:
    """Return the content of a URL; see :func:`fetch_into`."""
    content = io.BytesIO()
    fetch_into(content, url, options)
    return content.getvalue()


def fetch_into(
    target: BinaryIO,
    url: str,
    options: Options,
    headers: Mapping[str, str] = NO_HEADERS,
    *,
    elsewhere: bool = False,
) -> None:
    """Write the content of a URL to a file.

    A redirect must stay on the same host and must not go from https to http. The time limit is for
    everything together: name servers, connections, handshakes, redirects and content.

    :param headers: of the request; go to that origin only (scheme, host and port).
    :param elsewhere: a redirect may lead to another host, by the same rules: for content that is
        compared with a digest.
    :raises UnauthorizedError: the server wants other headers.
    :raises NotFoundError: it has nothing there.
    :raises PackageError: the options forbid it, or it cannot be fetched.
    """
    for name, value in headers.items():  # what the library says of one is the value itself
        if not (value.isascii() and value.isprintable()):
            problem = f"{name}: expected printable ASCII characters"
            raise PackageError(f"{_quote(url)} cannot be fetched: {problem}")
    with Deadline(options.url_seconds) as deadline:
        try:
            _follow(target, url, options, deadline, headers, elsewhere=elsewhere)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if deadline.passed or isinstance(error, TimeoutError):
                raise PackageError(
                    f"{_quote(url)} cannot be fetched: not complete after "
                    f"{options.url_seconds:g} seconds (option url_seconds)"
                ) from error
            raise PackageError(f"{_quote(url)} cannot be fetched: {_problem(error)}") from error


def _problem(error: Exception) -> str:
    """Return the cause, with advice where the words of the library hide it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"{error.verify_message}: the environment variable SSL_CERT_FILE can name the file "
            "with the certificates of authorities that are trusted"
        )
    if isinstance(error, ssl.SSLError):
        return f"TLS fails ({error.reason or error}): does the server speak plain HTTP alone?"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _follow(  # noqa: PLR0913
    target: BinaryIO,
    url: str,
    options: Options,
    deadline: Deadline,
    headers: Mapping[str, str],
    *,
    elsewhere: bool,
) -> None:
    current = url
    for _ in range(_REDIRECTS):
        parts = _check_url(current, options)
        if parts.scheme == "file":
            with _local(current, parts).open("rb") as file:
                _copy(file, target, current, options.url_bytes)
                return
        with closing(_connection(current, parts, options, deadline)) as connection:
            path = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
            own = {"User-Agent": "container-update"}
            connection.request("GET", path, headers={**own, **headers})
            with connection.getresponse() as response:
                if response.status == 200:
                    _copy(response, target, current, options.url_bytes)
                    if deadline.passed:  # a closed connection looks like the end of the file
                        raise TimeoutError
                    return
                problem = f"{_quote(url)} cannot be fetched: {response.status} {response.reason!a}"
                if response.status == 401 and origin_of(current) == origin_of(url):
                    raise UnauthorizedError(problem, response.headers.get("WWW-Authenticate", ""))
                if response.status == 404:
                    raise NotFoundError(problem)
                if not 300 <= response.status < 400 or not response.headers.get("Location"):
                    raise PackageError(problem)
                current = _check_redirect(
                    current, response.headers["Location"], elsewhere=elsewhere
                )
                if origin_of(current) != origin_of(url):
                    headers = NO_HEADERS
    raise PackageError(
        f"{_quote(url)} cannot be fetched: it redirects more than {_REDIRECTS} times"
    )


def _quote(url: str) -> str:
    """Return a URL for messages: the part after the question mark may be a signature."""
    return url.partition("?")[0]


def origin_of(url: str) -> tuple[str, str | None, int | None]:
    """Return whom a login is for (RFC 6454, 4)."""
    parts = split_url(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


# --- rules --------------------------------------------------------------------------------------


def _check_url(url: str, options: Options) -> urllib.parse.SplitResult:
    try:
        parts = split_url(url)
    except ValueError as error:
        raise PackageError(f"{_quote(url)!a} is not a valid URL: {error}") from error
    host = parts.hostname or ""
    if "@" in parts.netloc:
        raise PackageError(
            f"the URL of a def-file on {host} has a user name, which is not supported: "
            "serve the file without a login, or put it into the package"
        )
    if parts.scheme not in options.url_schemes:
        allowed = ", ".join(sorted(options.url_schemes)) or "none"
        raise PackageError(
            f"{_quote(url)}: expected a URL with one of the schemes {allowed}: use a file instead, "
            "or allow the scheme (option url_schemes)"
        )
    if parts.scheme != "file" and options.url_hosts and host not in options.url_hosts:
        raise PackageError(
            f"{_quote(url)}: expected one of the hosts {', '.join(sorted(options.url_hosts))}: use "
            "a file instead, or allow the host (option url_hosts)"
        )
    if parts.scheme not in ("file", *_PORTS) or (parts.scheme != "file" and not host):
        raise PackageError(
            f"{_quote(url)} is not a valid URL: expected http://HOST/PATH or https://HOST/PATH"
        )
    return parts


def _check_redirect(url: str, location: str, *, elsewhere: bool) -> str:
    target = urllib.parse.urljoin(url, location)
    old, new = urllib.parse.urlsplit(url), urllib.parse.urlsplit(target)
    safe = new.scheme == old.scheme or (old.scheme, new.scheme) == ("http", "https")
    if (new.hostname != old.hostname and not elsewhere) or not safe:
        raise PackageError(
            f"{_quote(url)} cannot be fetched: it redirects to {new.scheme!a} on {new.hostname!a}, "
            "and only redirects to the same host are followed: use that URL instead"
        )
    return target


def _addresses(url: str, host: str, port: int, options: Options, seconds: float) -> list[str]:
    """Return all addresses of the host; PackageError for a forbidden one, TimeoutError too late."""
    addresses = _resolve(host, port, seconds)
    for address in addresses:
        if host not in options.url_hosts and network_of(address) is not Network.PUBLIC:
            what = host if host == address else f"{host} is at {address}, which"
            raise PackageError(
                f"{_quote(url)} cannot be fetched: {what} is not a public address: use a file "
                "instead, or allow the host (option url_hosts)"
            )
    return addresses


def _resolve(host: str, port: int, seconds: float) -> list[str]:
    """Resolve a name in a thread of its own, because the resolver has no time limit."""
    answer: Future[list[Any]] = Future()

    def resolve() -> None:
        try:
            answer.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as error:  # noqa: BLE001, raised by result()
            answer.set_exception(error)

    threading.Thread(target=resolve, daemon=True).start()
    try:
        return [str(entry[4][0]) for entry in answer.result(seconds)]
    except FutureTimeoutError as error:  # another class before Python 3.11
        raise TimeoutError from error


# --- connections --------------------------------------------------------------------------------


def _connection(
    url: str, parts: SplitResult, options: Options, deadline: Deadline
) -> http.client.HTTPConnection:
    """Connect to a checked address of the host; TLS verifies the host's name."""
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    connection = http.client.HTTPConnection(host, port)
    addresses = _addresses(url, host, port, options, deadline.seconds_left())
    connection.sock = _connect(addresses, port, deadline.seconds_left() / 2)
    try:
        is_secure = parts.scheme == "https"
        watch(connection, deadline, ssl.create_default_context() if is_secure else None)
    except BaseException:
        connection.close()
        raise
    return connection


def watch(
    connection: http.client.HTTPConnection, deadline: Deadline, tls: ssl.SSLContext | None
) -> None:
    """Have the deadline hold for a connection that was made, and for its handshake with TLS."""
    deadline.watch(connection.sock)
    if tls:
        secure = connection.sock = tls.wrap_socket(
            connection.sock, server_hostname=connection.host, do_handshake_on_connect=False
        )
        deadline.watch(secure)
        secure.do_handshake()


def _connect(addresses: list[str], port: int, seconds: float) -> socket.socket:
    """Connect to the first address that answers; raise the error of the last one."""
    share = seconds / len(addresses)
    for address in addresses[:-1]:
        with contextlib.suppress(OSError):
            return socket.create_connection((address, port), share)
    return socket.create_connection((addresses[-1], port), share)


def exchange(  # noqa: PLR0913
    url: SplitResult,
    seconds: float,
    most: int,
    *,
    tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    headers: Mapping[str, str] = MappingProxyType({}),
    form: str | None = None,
) -> tuple[int, bytes]:
    """Send one request, without a proxy; return the status and the body, cut off after *most* bytes
    and one. No redirect is followed.

    :param seconds: for all of it, the handshake with TLS too.
    :param form: sent by POST; None: a GET.
    :raises TimeoutError: the time is over.
    :raises OSError: the connection failed.
    :raises http.client.HTTPException: the answer is no HTTP.
    """
    port = url.port or {"http": 80, "https": 443}[url.scheme]
    path = f"{url.path or '/'}{'?' if url.query else ''}{url.query}"
    with (
        Deadline(seconds) as deadline,
        closing(http.client.HTTPConnection(str(url.hostname), port)) as connection,
    ):
        try:
            connection.sock = socket.create_connection(
                (url.hostname, port), deadline.seconds_left()
            )
            watch(connection, deadline, tls() if url.scheme == "https" else None)
            connection.request("GET" if form is None else "POST", path, form, dict(headers))
            answer = connection.getresponse()
            body = answer.read(most + 1)
        except (OSError, http.client.HTTPException) as error:
            if deadline.passed:
                raise TimeoutError from error
            raise
    if deadline.passed:  # a connection that was shut down looks like the end of the body
        raise TimeoutError
    return answer.status, body


class Deadline:
    """A time limit that shuts down the current connection when it is over."""

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._connection: socket.socket | None = None
        self._end = time.monotonic() + seconds
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True

    def __enter__(self) -> Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def seconds_left(self) -> float:
        """Return the seconds until the end; TimeoutError where there are none."""
        seconds = self._end - time.monotonic()
        if self.passed or seconds <= 0:
            raise TimeoutError
        return seconds

    def watch(self, connection: socket.socket) -> None:
        """Shut down this connection at the end; TimeoutError where that has passed."""
        self._connection = connection
        connection.settimeout(
            self.seconds_left()
        )  # asked last: the timer may not have seen the connection

    def _expire(self) -> None:
        self.passed = True
        if self._connection is not None:
            with contextlib.suppress(OSError):  # already closed
                # not the method of an SSLSocket, which changes what the other thread reads from
                socket.socket.shutdown(self._connection, socket.SHUT_RDWR)


# --- content ------------------------------------------------------------------------------------


def _local(url: str, parts: urllib.parse.SplitResult) -> Path:
    if parts.netloc not in ("", "localhost"):
        raise PackageError(f"{_quote(url)}: expected a file on this host: file:///PATH")
    path = Path(urllib.request.url2pathname(parts.path))
    if not path.is_file():
        raise PackageError(f"{_quote(url)} cannot be fetched: no such regular file")
    return path


def _copy(
    source: io.BufferedReader | http.client.HTTPResponse, target: BinaryIO, url: str, limit: int
) -> None:
    """Copy in chunks, so that no more than the allowed size is read."""
    size = 0
    while chunk := source.read1(_CHUNK):
        size += len(chunk)
        if size > limit:
            raise PackageError(
                f"{_quote(url)} cannot be fetched: it has more than {limit} bytes "
                "(option url_bytes)"
            )
        target.write(chunk)
    expected = getattr(source, "length", None)
    if expected:
        raise http.client.IncompleteRead(b"", expected)


def digest_of(file: IO[bytes], algorithm: str) -> str:
    """Return the hash of the rest of a file, in lower-case hexadecimal digits."""
    digest = hashlib.new(algorithm)
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


# --- whose network an address is in -------------------------------------------------------------
# The caller decides which networks are allowed, and which hosts an operator allows in addition.
# Sources: the IANA special-purpose address registries (RFC 6890); RFC 6052 and 8215 (NAT64).

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Network(enum.Enum):
    """Who can reach an address."""

    PUBLIC = "public"
    """Everybody on the internet."""
    PRIVATE = "private"
    """The same site's network (RFC 1918, RFC 4193), or the network behind a NAT64."""
    OFF_LIMITS = "off limits"
    """Only this host or its link (loopback, link-local including cloud metadata), a carrier's
    customers (100.64.0.0/10), a multicast group, or no host."""


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
        behind = _classify(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF))
        return Network.PRIVATE if behind is Network.PUBLIC else behind
    return _classify(_embedded_ipv4(ip) or ip)


def _embedded_ipv4(ip: Address) -> Address | None:
    """Return the IPv4 address in an IPv4-mapped, 6to4 or Teredo address; None in any other."""
    if isinstance(ip, ipaddress.IPv4Address):
        return None
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo or (None, None))[1]


def _classify(ip: Address) -> Network:
    if any(ip in network for network in _PRIVATE):
        return Network.PRIVATE
    usable = ip.is_global and not (ip.is_multicast or ip.is_reserved)
    if not usable or any(ip in network for network in _OFF_LIMITS):
        return Network.OFF_LIMITS
    return Network.PUBLIC
