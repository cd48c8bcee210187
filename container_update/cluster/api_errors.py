"""What an API server that refuses, or a connection that breaks, means for whoever asked. Pure.

Never a Secret's value: of a refused Secret only the fields are told.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from typing import NoReturn

from container_update.model.errors import ClusterError
from container_update.model.objects import Json

_CONNECTION = re.compile(r"^(<[^>]*>|\w+\([^)]*\)|None): ")
"""How urllib3 begins a message: with the connection object."""

_TRANSIENT = frozenset({429, 500, 502, 503, 504})

_TOO_LARGE = "request is too large"
"""What etcd says, through the API server and with status 500."""

_ADVICE = {
    401: "the API server does not accept the credentials: check the token",
    403: "the user may not do this: see the Role in the documentation",
}
_MESSAGE_LIMIT = 1000


def cause(error: BaseException) -> str:
    """Return the innermost reason of a connection error, without addresses of Python objects."""
    reason = getattr(error, "reason", None)
    if isinstance(reason, BaseException):
        return cause(reason)
    return _CONNECTION.sub("", str(error))


def is_tls(error: BaseException) -> bool:
    """Return True for a certificate error: it will not pass the next time either."""
    import urllib3  # noqa: PLC0415

    reason = getattr(error, "reason", None)
    return isinstance(error, urllib3.exceptions.SSLError) or (
        isinstance(reason, BaseException) and is_tls(reason)
    )


def refuse(what: str, status: int, data: bytes, headers: Mapping[str, str]) -> NoReturn:
    """Raise the ClusterError for an answer that is no success.

    :param what: what was asked, as the error begins: 'replace Deployment ns/web'.
    :param data: the answer's body, which should be a Status object.
    """
    body: Json = {}
    with contextlib.suppress(ValueError):
        parsed = json.loads(data)
        body = parsed if isinstance(parsed, dict) else {}
    reason, message = str(body.get("reason", "")), str(body.get("message", ""))
    if " Secret " in f"{what} ":
        message = _without_values(body)
    parts = [
        f"{what}: the API server answered {status} {reason}".rstrip(),
        message[:_MESSAGE_LIMIT],
    ]
    too_large = status == 413 or _TOO_LARGE in str(body.get("message", ""))
    if too_large:
        parts.append("the object is too large for the cluster's database: make it smaller")
    elif status in _ADVICE:
        parts.append(_ADVICE[status])
    retry_after = headers.get("Retry-After", "")
    raise ClusterError(
        ": ".join(filter(None, parts)),
        status=status,
        reason=reason,
        retry_after=float(retry_after) if retry_after.isdigit() else None,
        transient=status in _TRANSIENT and not too_large and not _is_budget(body),
    )


def _is_budget(body: Json) -> bool:
    """Return True for an eviction that a PodDisruptionBudget forbids."""
    causes = (body.get("details") or {}).get("causes") or ()
    return any(cause.get("reason") == "DisruptionBudget" for cause in causes)


def _without_values(body: Json) -> str:
    """Return a Status about a Secret: which fields, not what is in them."""
    causes = (body.get("details") or {}).get("causes") or ()
    return ", ".join(f"{cause.get('field', '')}: {cause.get('reason', '')}" for cause in causes)
