"""The events in the response to a watch, as they come.

Source: Kubernetes API concepts, "Efficient detection of changes".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from container_update.cluster.api_errors import cause
from container_update.model.cluster import WatchEvent
from container_update.model.errors import ClusterError


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
