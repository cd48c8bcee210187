"""What the API server sends: errors as ClusterError, and the events of a watch. Pure.

Never a Secret's value: of a refused Secret only the fields are named. Source: Kubernetes API
concepts, "Efficient detection of changes".
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from container_update.model.cluster import WatchEvent
from container_update.model.errors import ClusterError
from container_update.model.objects import Json

_CONNECTION = re.compile(r"^(<[^>]*>|\w+\([^)]*\)|None): ")
"""How urllib3 begins a message: with the connection object."""

_TRANSIENT = frozenset({429, 500, 502, 503, 504})

_ADVICE = {
    401: "the API server does not accept the credentials: check the token",
    403: "the user may not do this: see the Role in the documentation",
    413: "the object is too large for the cluster's database: make it smaller",
}
_QUOTA_ADVICE = "make room in the namespace, or have its ResourceQuota raised"
_MESSAGE_LIMIT = 1000

_COUNTS = r"[\w./-]+=\w+(?:,[\w./-]+=\w+)*"
_QUOTA = re.compile(
    rf"exceeded quota: [a-z0-9.-]+, requested: {_COUNTS}, used: {_COUNTS}, limited: {_COUNTS}"
)
"""The server's refusal because of a ResourceQuota: names and numbers, nothing of the object."""


def cause(error: BaseException) -> str:
    """Return the innermost reason of a connection error, without addresses of Python objects."""
    reason = getattr(error, "reason", None)
    if isinstance(reason, BaseException):
        return cause(reason)
    return _CONNECTION.sub("", str(error))


def is_tls(error: BaseException) -> bool:
    """Tell whether it is a certificate error: it will not pass the next time either."""
    import urllib3  # noqa: PLC0415

    reason = getattr(error, "reason", None)
    return isinstance(error, urllib3.exceptions.SSLError) or (
        isinstance(reason, BaseException) and is_tls(reason)
    )


def refuse(what: str, status: int, data: bytes, headers: Mapping[str, str]) -> NoReturn:
    """Raise the ClusterError for a response that is no success.

    :param what: the request, as the message begins: 'replace Deployment ns/web'.
    :param data: the response's body, which should be a Status object.
    """
    body: Json = {}
    with contextlib.suppress(ValueError):
        parsed = json.loads(data)
        body = parsed if isinstance(parsed, dict) else {}
    reason, message = str(body.get("reason", "")), str(body.get("message", ""))
    causes = (body.get("details") or {}).get("causes") or ()
    too_large = status == 413 or "request is too large" in message  # etcd's words, with status 500
    budget = any(cause.get("reason") == "DisruptionBudget" for cause in causes)
    quota = _QUOTA.search(message)
    if quota is not None:
        message = quota[0]
    elif " Secret " in f"{what} ":
        message = ", ".join(f"{c.get('field', '')}: {c.get('reason', '')}" for c in causes)
    parts = [
        f"{what}: the API server answered {status} {reason}".rstrip(),
        message[:_MESSAGE_LIMIT],
        _QUOTA_ADVICE if quota else _ADVICE.get(413 if too_large else status, ""),
    ]
    retry_after = headers.get("Retry-After", "")
    raise ClusterError(
        ": ".join(filter(None, parts)),
        status=status,
        reason=reason,
        retry_after=float(retry_after) if retry_after.isdigit() else None,
        transient=status in _TRANSIENT and not too_large and not budget,
    )


def events(what: str, response: Any) -> Iterator[WatchEvent]:
    """Yield every event until the response ends.

    :param what: the request, for messages.
    :param response: urllib3's, not read yet.
    :raises ClusterError: transient where the connection broke; with the server's status where it
        sent an ERROR: 410 means that the watch has to begin anew from a list.
    """
    for line in _lines(what, response):
        try:
            event = json.loads(line)
            body = event["object"]
        except (ValueError, KeyError) as error:
            text = f"{what}: the connection broke within an event"
            raise ClusterError(text, transient=True) from error
        if event["type"] == "ERROR":
            raise ClusterError(
                f"{what}: {body.get('message', '')}",
                status=body.get("code"),
                reason=str(body.get("reason", "")),
            )
        yield WatchEvent(event["type"], body)


def _lines(what: str, response: Any) -> Iterator[bytes]:
    import urllib3  # noqa: PLC0415, slow to load

    rest = b""
    try:
        for chunk in response.stream(amt=65536, decode_content=True):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from filter(None, lines)
    except (urllib3.exceptions.HTTPError, OSError) as error:
        text = f"{what}: the connection broke: {cause(error)}"
        raise ClusterError(text, transient=True) from error
