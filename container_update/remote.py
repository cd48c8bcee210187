"""Def-files that are URLs: fetched within bounds of time, size, scheme and host."""

from __future__ import annotations

import http.client
import io
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from container_update.errors import PackageError

_CHUNK = 64 * 1024


@dataclass(frozen=True)
class Rules:
    """What may be fetched."""

    schemes: frozenset[str] = frozenset({"file", "http", "https"})
    seconds: float = 30.0
    """For the whole of a file."""
    size: int = 8 * 1024 * 1024
    """Bytes of a file."""
    clock: Callable[[], float] = time.monotonic


def is_url(path: str) -> bool:
    """Whether a def-file is a URL and no path in the package."""
    return bool(urllib.parse.urlsplit(path).scheme) and ":/" in path


def fetch(url: str, rules: Rules) -> bytes:
    """What lies at a URL.

    PackageError where a rule forbids it, or it cannot be had. A redirect may not leave the host,
    nor go from https to http.
    """
    _check(url, rules)
    deadline = rules.clock() + rules.seconds
    try:
        if urllib.parse.urlsplit(url).scheme == "file":
            with _local(url).open("rb") as file:
                return _read(file, url, deadline, rules)
        opener = urllib.request.build_opener(_SameHost)
        with opener.open(url, timeout=rules.seconds) as answer:
            return _read(answer, url, deadline, rules)
    except urllib.error.HTTPError as error:
        error.close()
        raise PackageError(f"{url} cannot be fetched: {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = getattr(error, "reason", error)
        if isinstance(cause, TimeoutError):
            raise _late(url, rules) from error
        problem = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        raise PackageError(f"{url} cannot be fetched: {problem}") from error


def _late(url: str, rules: Rules) -> PackageError:
    return PackageError(f"{url} cannot be fetched: not complete within {rules.seconds:g} seconds")


def _check(url: str, rules: Rules) -> None:
    try:
        parts = urllib.parse.urlsplit(url)
        credentials = parts.username or parts.password
    except ValueError as error:
        raise PackageError(f"{url} is no valid URL: {error}") from error
    if credentials:
        raise PackageError(
            f"a def-file at {parts.hostname} is given with a user name in its URL: "
            "that is not supported, serve it without or put it into the package"
        )
    if parts.scheme not in rules.schemes:
        allowed = ", ".join(sorted(rules.schemes)) or "none"
        raise PackageError(f"{url}: expected a URL with one of the schemes {allowed}")


def _local(url: str) -> Path:
    parts = urllib.parse.urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise PackageError(f"{url}: a file URL names a file of this host: file:///path")
    path = Path(urllib.request.url2pathname(parts.path))
    if not path.is_file():
        raise PackageError(f"{url} cannot be fetched: there is no such regular file")
    return path


def _read(
    source: io.BufferedReader | http.client.HTTPResponse, url: str, deadline: float, rules: Rules
) -> bytes:
    """All of it, a piece at a time: a slow server must not outlast the deadline."""
    content = bytearray()
    while piece := source.read1(_CHUNK):
        content += piece
        if len(content) > rules.size:
            raise PackageError(f"{url} cannot be fetched: it has more than {rules.size} bytes")
        if rules.clock() > deadline:
            raise _late(url, rules)
    return bytes(content)


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Lets a redirect pass only to the same host, and never to a less safe scheme."""

    def redirect_request(  # noqa: PLR0913, PLR0917, the base class has it so
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        old, new = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        safe = new.scheme == old.scheme or (old.scheme, new.scheme) == ("http", "https")
        if new.hostname != old.hostname or not safe:
            raise PackageError(
                f"{req.full_url} cannot be fetched: it redirects to "
                f"{new.scheme}://{new.hostname}, only the same host is followed: name that URL"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)
