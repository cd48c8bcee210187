"""What kind of answer a client asks for."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from container_update.emulator.kubernetes.api_errors import ApiError


class Form(enum.Enum):
    """The forms that an object or a list can be answered in."""

    OBJECT = ""
    TABLE = "Table"
    PARTIAL = "PartialObjectMetadata"
    PARTIAL_LIST = "PartialObjectMetadataList"
    DISCOVERY = "APIGroupDiscoveryList"


_JSON = ("application/json", "*/*", "application/*", "")


def form(accept: str) -> Form:
    """The first form of an Accept header that is offered; 406 where none is.

    Only JSON is offered, never protobuf: clients list JSON as the second choice.
    """
    for media in accept.split(","):
        kind, *parameters = (part.strip() for part in media.split(";"))
        if kind not in _JSON:
            continue
        values = dict(part.partition("=")[::2] for part in parameters)
        try:
            return Form(values.get("as", ""))
        except ValueError:
            continue
    raise ApiError(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json",
        {},
    )


def flag(query: Mapping[str, str], name: str) -> bool:
    """Whether a yes-or-no parameter is given and says yes: anything but 'false' and '0' does."""
    return name in query and query[name].lower() not in ("false", "0")
