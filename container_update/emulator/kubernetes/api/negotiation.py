# SPDX-License-Identifier: Apache-2.0
"""Content negotiation: the representation that a client requests."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from container_update.emulator.kubernetes.api_errors import ApiError


class Representation(enum.Enum):
    """The representations of an object or a list; the values are those of ``as=``."""

    OBJECT = ""
    TABLE = "Table"
    PARTIAL = "PartialObjectMetadata"
    PARTIAL_LIST = "PartialObjectMetadataList"
    DISCOVERY = "APIGroupDiscoveryList"


_JSON = ("application/json", "*/*", "application/*", "")


def representation(accept: str) -> Representation:
    """Return the first representation in an Accept header that is offered; raise 406 without one.

    Only JSON is offered, never protobuf: clients list JSON as the second choice.
    """
    for media in accept.split(","):
        kind, *parameters = (part.strip() for part in media.split(";"))
        if kind not in _JSON:
            continue
        values = dict(part.partition("=")[::2] for part in parameters)
        try:
            return Representation(values.get("as", ""))
        except ValueError:
            continue
    message = "only the following media types are accepted: application/json"
    raise ApiError(406, "NotAcceptable", message, {})


def flag(query: Mapping[str, str], name: str) -> bool:
    """Return whether a boolean parameter is given and is neither 'false' nor '0'."""
    return name in query and query[name].lower() not in ("false", "0")
