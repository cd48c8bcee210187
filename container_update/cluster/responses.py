# SPDX-License-Identifier: Apache-2.0
"""What the API server sends: its answers, errors as ClusterError, and the events of a watch.

It may be a machine in between that sends without an end: nothing is kept that is larger than
:data:`MAX_BYTES`, and no answer is read for longer than a request may take. Never a Secret's value:
of a refused Secret only the fields are named. Source: Kubernetes API concepts, "Efficient detection
of changes".
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import math
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

from container_update.model.cluster import WatchEvent
from container_update.model.errors import (
    AdmissionError,
    ClusterError,
    ConversionError,
    NextStep,
    NoDryRunError,
    QuotaError,
)
from container_update.model.objects import Json
from container_update.model.packing import count_marks

_CONNECTION = re.compile(r"^(<[^>]*>|\w+\([^)]*\)|None): ")
"""How urllib3 begins a message: with the connection object."""

_TRANSIENT = frozenset({429, 500, 502, 503, 504})

_ADVICE = {
    401: "the API server does not accept the credentials{}: check the token",
    403: "a permission is missing, or admission refuses it",
    413: "the object is too large for the cluster's database: make it smaller",
}
_ENDING = "NamespaceTerminating"
"""The reason of a cause: the namespace of the new object is being deleted."""
_ENDING_ADVICE = "wait until the namespace is gone, then create it, or choose another one"
_QUOTA_ADVICE = "make room in the namespace, or have its ResourceQuota raised"
_CONVERSION_ADVICE = (
    "the webhook that the CustomResourceDefinition of {} names for its conversion has to answer"
)
_UNANSWERED_ADVICE = "it has to answer, or its configuration has to go"
_MESSAGE_LIMIT = 1000

MAX_BYTES = 16 * 1024 * 1024
"""Of an answer, or of an event of a watch. The database of a cluster keeps no object of 2 MiB; a
page of a list that is larger is read as several."""
MAX_VALUES = 2_000_000
"""Of an answer: each takes ten times as much memory as text."""
_CONFIGURATION = frozenset({"ConfigMap", "Secret"})
_CHANGES = frozenset({"ADDED", "MODIFIED", "DELETED"})
_CHUNK = 65536

MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError)
"""What is raised where an answer is read that is JSON, of another shape than it should have. Who
asks servers that every user may name, while others wait, takes it for an error of the server."""


class AnswerTooLargeError(ClusterError):
    """An answer is larger than it may be."""

    def __init__(self, what: str, most: str = f"{MAX_BYTES} bytes") -> None:
        super().__init__(
            f"{what}: expected an answer of at most {most}, found more: is the URL right?"
        )


@dataclass(frozen=True)
class Answer:
    """An answer that was read to its end."""

    what: str
    """The request, as messages begin: 'replace Deployment ns/web'."""
    status: int
    data: bytes
    headers: Mapping[str, str]

    @property
    def body(self) -> Json:
        """The JSON object of a successful answer; ClusterError for anything else."""
        with contextlib.suppress(ValueError, RecursionError):
            body = json.loads(self.data)
            if isinstance(body, dict):
                return body
        raise _shape_error(self.what, "a JSON object", self.status)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the server warns of in the headers."""
        texts = _WARNING.findall(self.headers.get("Warning", ""))
        return tuple(re.sub(r"\\(.)", r"\1", text) for text in texts)


def read(
    what: str,
    response: Any,
    seconds: float,
    most: int = MAX_BYTES,
    most_values: int = MAX_VALUES,
) -> Answer:
    """Read an answer to its end.

    :param what: the request, for messages.
    :param response: urllib3's, not read yet.
    :param seconds: how long that may take.
    :param most: how many bytes it may have, as *most_values* how many values.
    :raises AnswerTooLargeError: it is too large.
    :raises urllib3.exceptions.HTTPError: the connection broke, or it took too long.
    """
    import urllib3  # noqa: PLC0415

    end, data, values = time.monotonic() + seconds, bytearray(), 0
    try:
        for chunk in _chunks(response):
            data += chunk
            values += count_marks(chunk)
            if len(data) > most:
                raise AnswerTooLargeError(what, f"{most} bytes")
            if values > most_values:
                raise AnswerTooLargeError(what, f"{most_values} values")
            if time.monotonic() > end:
                raise urllib3.exceptions.HTTPError(f"no complete answer within {seconds:g} seconds")
    except BaseException:
        response.close()
        raise
    return Answer(what, response.status, bytes(data), response.headers)


def _chunks(response: Any) -> Iterator[bytes]:
    """Yield the content as it arrives."""
    if hasattr(response, "read1"):
        yield from iter(lambda: response.read1(_CHUNK, decode_content=False), b"")
    else:  # before urllib3 2.1: waits for more, if the server does not send it in chunks
        yield from response.stream(_CHUNK, decode_content=False)


_COUNTS = r"[\w./-]+=\w+(?:,[\w./-]+=\w+)*"
_QUOTA = re.compile(
    rf"exceeded quota: [a-z0-9.-]+, requested: {_COUNTS}, used: {_COUNTS}, limited: {_COUNTS}"
)
"""The server's refusal because of a ResourceQuota: names and numbers, nothing of the object."""
_CONVERSION = re.compile(r"conversion webhook for (\S{1,300}, Kind=\w{1,63}) failed")
"""What the server could not convert, as its message begins (apiextensions-apiserver)."""
_NAME = "[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
_ADMISSION = re.compile(
    rf"(?:admission webhook|(?P<unanswered>failed calling webhook)) \"{_NAME}\""
    r"(?: denied the request|(?P<untried> does not support dry run))?"
    rf"|ValidatingAdmissionPolicy '{_NAME}'(?: with binding '{_NAME}' denied request)?"
)
"""Whose refusal it is, as the server says before it quotes anything: a name, nothing of the object.

Source: Kubernetes, apiserver/pkg/admission/plugin/webhook and policy/validating."""


def cause(error: BaseException) -> str:
    """Return the innermost reason of a connection error, without addresses of Python objects."""
    reason = getattr(error, "reason", None)
    if isinstance(reason, BaseException):
        return cause(reason)
    return _CONNECTION.sub("", str(error))


def is_refused_certificate(error: BaseException) -> bool:
    """Tell whether the server's certificate is refused, for good; a broken handshake passes."""
    reasons = (getattr(error, "reason", None), error.__context__, *error.args)
    return isinstance(error, ssl.SSLCertVerificationError) or any(
        isinstance(each, BaseException) and is_refused_certificate(each) for each in reasons
    )


@contextlib.contextmanager
def reading(what: str, expected: str) -> Iterator[None]:
    """Take for an answer of the wrong shape whatever the block fails with that reads it: the server
    that has our credentials is trusted for the rest.

    :raises ClusterError: something in it is not there, or of another type.
    """
    try:
        yield
    except MALFORMED as error:
        raise _shape_error(what, expected) from error


def objects(what: str, page: Json, version: str, kind: str) -> tuple[list[Json], str, str]:
    """Return the objects of a page of a list, its version, and where the next one begins.

    :param version: of the objects, as is *kind*: a server leaves both out.
    :raises ClusterError: it is no list.
    """
    with reading(what, "a list of objects"):
        items, metadata = page.get("items") or [], page["metadata"]
        for item in items:
            _identify(item, version, kind)
        return items, metadata["resourceVersion"], metadata.get("continue") or ""


def check_object(what: str, body: Json, version: str, kind: str) -> Json:
    """Return an object of the API as it was answered.

    :param version: that was asked for, as was *kind*: a list does not repeat them.
    :raises ClusterError: it is no object.
    """
    with reading(what, f"an object of kind {kind}"):
        return _identify(body, version, kind)


def _identify(body: Json, version: str, kind: str) -> Json:
    """Give an object the kind that a list leaves out; refuse what is another answer."""
    body.update(apiVersion=version, kind=kind)
    mappings = ("spec", "status", "data") if kind in _CONFIGURATION else ("spec", "status")
    if not all(isinstance(body.get(name) or {}, dict) for name in mappings):
        raise ValueError
    body["metadata"]["name"]
    return body


def _shape_error(what: str, expected: str, status: int | None = None) -> ClusterError:
    return ClusterError(
        f"{what}: expected {expected} from the API server, found something else: is its URL right?",
        status=status,
    )


_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
"""An entry of a ``Warning`` header: code, agent, text (RFC 7234, 5.5)."""


def refuse(answer: Answer, user: str | None = None) -> NoReturn:
    """Raise the ClusterError for an answer that is no success.

    :param answer: its body should be a Status object.
    :param user: whose credentials were sent, as the kubeconfig calls it.
    """
    what, status, headers = answer.what, answer.status, answer.headers
    body: Json = {}
    with contextlib.suppress(ClusterError):
        body = answer.body
    reason, message = str(body.get("reason", "")), str(body.get("message", ""))
    details = body.get("details")
    causes = (details.get("causes") if isinstance(details, dict) else None) or ()
    causes = [each for each in causes if isinstance(each, dict)]
    reasons = frozenset(str(each.get("reason", "")) for each in causes)
    too_large = status == 413 or "request is too large" in message  # etcd's words, with status 500
    patterns = _QUOTA, _ADMISSION, _CONVERSION
    quota, admission, conversion = (each.search(message) for each in patterns)
    if quota is not None:
        message = quota[0]
    elif " Secret " in f"{what} ":
        found = (": ".join(filter(None, map(each.get, ("field", "reason")))) for each in causes)
        message = admission[0] if admission else ", ".join(filter(None, found))
    advice, lacks_right = _ADVICE.get(413 if too_large else status, ""), False
    if quota is not None:
        advice = _QUOTA_ADVICE
    elif _ENDING in reasons:
        advice = _ENDING_ADVICE
    elif conversion is not None:
        advice = _CONVERSION_ADVICE.format(conversion[1])
    elif admission is not None:  # the permission is there
        advice = _UNANSWERED_ADVICE if admission["unanswered"] else ""
    else:
        lacks_right = status == 403
    parts = [
        f"{what}: the API server answered {status} {reason}".rstrip(),
        message[:_MESSAGE_LIMIT],
        advice.format(f" of user {user}" if user else ""),
    ]
    retry_after = headers.get("Retry-After", "")
    kind = ClusterError if quota is None else QuotaError
    kind = kind if conversion is None else ConversionError
    if admission is not None:
        kind = NoDryRunError if admission["untried"] else AdmissionError
    raise kind(
        ": ".join(filter(None, parts)),
        status=status,
        reason=reason,
        causes=reasons,
        retry_after=float(retry_after) if retry_after.isdecimal() else None,
        transient=status in _TRANSIENT and not too_large and "DisruptionBudget" not in reasons,
        next_step=NextStep.GRANT_RIGHTS if lacks_right else None,
    )


def events(
    what: str, response: Any, version: str, kind: str, seconds: float
) -> Iterator[WatchEvent]:
    """Yield every event until the response ends.

    :param what: the request, for messages.
    :param version: of the objects, as is *kind*.
    :param response: urllib3's, not read yet.
    :param seconds: how long the server was asked to send them: it may not end by itself.
    :raises ClusterError: transient where the connection broke; with the server's status where it
        sent an ERROR: 410 means that the watch has to begin anew from a list.
    """
    for line in _lines(what, response, seconds):
        event = _event(line, version, kind)
        if event is None:
            raise ClusterError(f"{what}: the connection broke within an event", transient=True)
        if event.type == "ERROR":
            code = event.object.get("code")
            raise ClusterError(
                f"{what}: {event.object.get('message', '')}",
                status=code if isinstance(code, int) else None,
                reason=str(event.object.get("reason", "")),
            )
        yield event


def _event(line: bytes, version: str, kind: str) -> WatchEvent | None:
    with contextlib.suppress(*MALFORMED):
        event = json.loads(line)
        body = event["object"]
        if event["type"] in _CHANGES:
            return WatchEvent(event["type"], _identify(body, version, kind))
        if event["type"] in ("BOOKMARK", "ERROR") and isinstance(body, dict):
            return WatchEvent(event["type"], body)
    return None


def _lines(what: str, response: Any, seconds: float) -> Iterator[bytes]:
    import urllib3  # noqa: PLC0415, slow to load

    end, rest = time.monotonic() + seconds, b""
    try:
        for chunk in _chunks(response):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in filter(None, lines):
                if time.monotonic() > end:
                    return
                if count_marks(line) > MAX_VALUES:
                    raise AnswerTooLargeError(what, f"{MAX_VALUES} values")
                yield line
            if len(rest) > MAX_BYTES:
                raise AnswerTooLargeError(what)
            if time.monotonic() > end:
                return
    except (urllib3.exceptions.HTTPError, OSError) as error:
        text = f"{what}: the connection broke: {cause(error)}"
        raise ClusterError(text, transient=True) from error


# --- answers within the time of one read --------------------------------------------------------
# one of their trailers: the time limit of a socket begins anew with each byte.


class _Bytes(io.RawIOBase):
    """What comes from a socket, until the time is over."""

    def __init__(self, raw: io.RawIOBase, seconds: float) -> None:
        self._raw = raw
        self._end = time.monotonic() + seconds

    def readable(self) -> bool:
        """See io."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """See io; TimeoutError where the time is over."""
        if time.monotonic() > self._end:
            raise TimeoutError("the answer did not come to its end in time")
        count: int | None = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        """See io."""
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, **more: Any) -> None:
        super().__init__(sock, *arguments, **more)
        self.fp = io.BufferedReader(_Bytes(self.fp.detach(), sock.gettimeout() or math.inf))


def timely(pools: Any) -> Any:
    """Have urllib3's manager of pools read all answers so; return it."""
    classes = pools.pool_classes_by_scheme
    pools.pool_classes_by_scheme = {scheme: _timely(pool) for scheme, pool in classes.items()}
    return pools


@cache
def _timely(pool: Any) -> Any:
    how = {"response_class": _Response}
    classes = {"ConnectionCls": type("Connection", (pool.ConnectionCls,), how)}
    return type(pool.__name__, (pool,), classes)
