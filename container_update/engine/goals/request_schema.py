# SPDX-License-Identifier: Apache-2.0
"""The attributes of requests, once: as JSON Schema.

A request to change the VNF package is checked by it wherever it comes from; the service's OpenAPI
document shows it.

Source: ETSI GS NFV-SOL 003, 4.4.1.6 and 5.5.2.12, and the additionalParams of the specification
"Support ChangeCurrentVNFPackage for VNF software modification".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from container_update.model.errors import PackageError
from container_update.model.objects import Json
from container_update.model.requests import DEF_FILES

COORDINATE_NEW, COORDINATE_OLD = (
    f"lcm-operation-coordinate-{which}-vnf" for which in ("new", "old")
)
"""The attributes that name a coordination script; with ``-class`` behind them, a class in it."""

EXTERNAL_LB = "external_lb_param"

_REFUSES_SIMILAR = "x-refuses-similar-names"
"""In the schema of an object that may have any other attribute: but none that looks like one of its
own, which would be a spelling mistake."""

_SIMILAR = 0.8
"""How similar two names are (difflib's ratio) so that one is taken for the other, misspelt."""


def _text(description: str, **more: Any) -> Json:
    """Return the schema of a text of one line."""
    form = {"minLength": 1, "maxLength": 255, "pattern": r"^[^\x00-\x1f\x7f]+$"}
    return {"type": "string", "description": description, **form, **more}


def _or_null(schema: Json) -> Json:
    """Return the schema of an attribute that may be null as well as left out."""
    return {**schema, "type": [schema["type"], "null"]}


def _login(description: str, place: str, place_description: str) -> Json:
    """Return the schema of a login: complete, or empty or null like one that is left out."""
    login = {
        "type": "object",
        "properties": {
            place: _text(place_description),
            "username": _text("text: the name of a user there"),
            "password": _text("text: the user's password", maxLength=4096),
        },
        "required": [place, "username", "password"],
        _REFUSES_SIMILAR: True,
    }
    nothing = {"type": "object", "maxProperties": 0}
    return {"description": description, "anyOf": [nothing, login, {"type": "null"}]}


_OBJECT: Json = {"type": "object"}

URL: Json = _text(
    "text: http://HOST or https://HOST, perhaps with a port and a path, without a user name",
    pattern=r"^https?://[^\x00-\x20\x7f@/?#]+([/?#][^\x00-\x20\x7f]*)?$",
    maxLength=2048,
)


def _credential(description: str) -> Json:
    """Return the schema of a text that may be empty, null or left out."""
    form = {"minLength": 0, "maxLength": 65536, "pattern": r"^[^\x00]*$"}
    return _or_null(_text(description, **form))


_CERTIFICATE = _credential("text: the certificate of the VIM's authority, PEM")

ACCESS: Json = {
    "type": "object",
    "properties": {
        "bearer_token": _or_null(
            _text(
                "text: a token of printable ASCII characters in one line",
                pattern=r"^\s*[\x21-\x7e]+\s*$",
                maxLength=65536,
            )
        ),
        "username": _credential("text: the name of a user"),
        "password": _credential("text: the user's password"),
        "oidc_token_url": _or_null(URL),
        "client_id": _credential("text: the id of the client at the OpenID Connect provider"),
        "client_secret": _credential("text: the secret of that client"),
        "ssl_ca_cert": _CERTIFICATE,
    },
}
"""The login of a VIM; what else a kind of VIM needs is kept."""

VIM_CONNECTION: Json = {
    "title": "VimConnectionInfo",
    "type": "object",
    "description": "a JSON object that says how a VIM is reached",
    "properties": {
        "id": _or_null(_text("text: the id of the entry")),
        "vimId": _or_null(_text("text: the id of a registered VIM")),
        "vimType": _or_null(_text("text: ETSINFV.KUBERNETES.V_1 for example")),
        "interfaceInfo": {
            "type": "object",
            "properties": {"endpoint": _or_null(URL), "ssl_ca_cert": _CERTIFICATE},
        },
        "accessInfo": ACCESS,
        "extra": _OBJECT,
    },
    "additionalProperties": False,
}

_VNFC: Json = _login(
    "a JSON object by which a coordination script reaches a VNFC: cp_name, username, password",
    "cp_name",
    "text: the VNFC's connection point; cp-name is understood too",
)

_VDU: Json = {
    "type": "object",
    "description": "a JSON object with a vdu_id, and how a coordination script reaches its VNFCs",
    "properties": {
        "vdu_id": _text("text: the VDU's id in the VNFD"),
        "old_vnfc_param": _VNFC,
        "new_vnfc_param": _VNFC,
    },
    "required": ["vdu_id"],
    _REFUSES_SIMILAR: True,
}

_DEF_FILES: Json = {
    "type": "array",
    "description": "a list of paths in the package, or URLs, of what the VNF is to be made of",
    "items": _text("a path in the package, or a URL", maxLength=2048),
}

_LINKS: Json = {
    "type": ["array", "null"],
    "description": "a list of virtual links, each a JSON object with the id of its network",
    "items": {**_OBJECT, "description": "a JSON object: a virtual link"},
}

INSTANTIATE_PARAMS: Json = {
    "type": "object",
    "description": "a JSON object; besides, parameters of a stack's templates",
    "properties": {
        DEF_FILES: _DEF_FILES,
        "namespace": _text(
            "the name of a namespace", pattern="^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", maxLength=63
        ),
    },
}
"""additionalParams of an instantiation: what Tacker reads of them; others are kept."""

_PERCENT: Json = {
    "type": "integer",
    "minimum": 1,
    "maximum": 100,
    "description": "a whole number from 1 to 100",
}

_HOLD: Json = {
    "description": "true, to wait until somebody promotes the change, or a number of seconds",
    "anyOf": [
        {"type": "boolean"},
        {"type": "number", "minimum": 0, "maximum": 86400},
        {"type": "null"},
    ],
}


def _bound(description: str) -> Json:
    return {"type": ["number", "null"], "description": description}


_GATE: Json = {
    "type": ["object", "null"],
    "title": "Gate",
    "description": "a JSON object with a query to the operator's Prometheus server, and its bounds",
    "properties": {
        "query": _text("text: a query in PromQL", maxLength=2048),
        "at_least": _bound("a number: the least value that is good"),
        "at_most": _bound("a number: the greatest value that is good"),
        "every": {
            "type": "number",
            "minimum": 1,
            "maximum": 3600,
            "description": "a number: seconds from one question to the next; 10 without it",
        },
        "seconds": {
            "type": "number",
            "minimum": 0,
            "maximum": 86400,
            "description": "a number: for how long the values have to be good; 60 without it",
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}

_CANARY_STEP: Json = {
    "type": "object",
    "title": "canary step",
    "description": "a JSON object with percent, and what is waited for after this step",
    "properties": {"percent": _PERCENT, "hold": _HOLD, "gate": _GATE},
    "required": ["percent"],
    "additionalProperties": False,
}

_PARAMS: Json = {
    "type": "object",
    "properties": {
        "upgrade_type": _text(
            "text: an upgrade type that a strategy is installed for, in any spelling",
            examples=["Blue-Green", "RollingUpdate"],
        ),
        COORDINATE_NEW: _or_null(_text("text: the path of a script in the new package")),
        f"{COORDINATE_NEW}-class": _or_null(_text("text: the name of a class in that script")),
        COORDINATE_OLD: _or_null(_text("text: the path of a script in the old package")),
        f"{COORDINATE_OLD}-class": _or_null(_text("text: the name of a class in that script")),
        "vdu_params": {
            "description": "a list of VDUs to change, or one; without, all of them; a VNF in an "
            "OpenStack needs it",
            "anyOf": [{"type": "array", "items": _VDU}, _VDU, {"type": "null"}],
        },
        EXTERNAL_LB: _login(
            "a JSON object with ip_address, username and password of the load balancer that the "
            "coordination scripts configure; Blue-Green with scripts in an OpenStack needs it, "
            "where null says that there is none",
            "ip_address",
            "text: the load balancer's address",
        ),
        "canary_steps": {
            "type": ["array", "null"],
            "minItems": 1,
            "description": "a list of percentages, the last of them 100, each a number or a JSON "
            "object with percent, and hold or gate; without it 10, 50, 100",
            "items": {
                "description": "a percentage, or a JSON object with percent",
                "anyOf": [_PERCENT, _CANARY_STEP],
            },
        },
        "hold": _HOLD,
        "gate": _GATE,
        DEF_FILES: _or_null(
            {
                **_DEF_FILES,
                "minItems": 1,
                "description": "a list of paths in the new package, or URLs, of what is applied; "
                "without it, all of the new package",
            }
        ),
    },
    "required": ["upgrade_type"],
    _REFUSES_SIMILAR: True,
}

CHANGE_REQUEST: Json = {
    "title": "ChangeCurrentVnfPkgRequest",
    "type": "object",
    "properties": {
        "vnfdId": _text("text: the id of the new package's VNFD"),
        "additionalParams": _PARAMS,
        "vimConnectionInfo": _or_null(
            {**_OBJECT, "additionalProperties": _or_null(VIM_CONNECTION)}
        ),
        "extVirtualLinks": _LINKS,
        "extManagedVirtualLinks": _LINKS,
        "extensions": _or_null(_OBJECT),
        "vnfConfigurableProperties": _or_null(_OBJECT),
    },
    "required": ["vnfdId", "additionalParams"],
    "additionalProperties": False,
}


# --- checking -----------------------------------------------------------------------------------

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": Mapping,
    "array": list,
    "string": str,
    "null": type(None),
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}
_NUMBERS = frozenset({"integer", "number"})


def check(value: object, schema: Json, path: str = "") -> None:
    """Check a value against a schema of this module.

    :param path: its path in the request, for the message.
    :raises PackageError: names the path of the first wrong attribute, but not its value, which may
        be a password in the wrong attribute.
    """
    fitting = next((each for each in schema.get("anyOf", [schema]) if _has_type(value, each)), None)
    if fitting is None or not _has_form(value, fitting):
        expected = schema.get("description", "a JSON object")
        found = "one of another form"
        if fitting is None:
            is_missing = value in (None, "")
            found = "nothing" if is_missing else f"a value of type {type(value).__name__}"
        raise PackageError(f"{path or 'the request'}: expected {expected}, found {found}")
    if isinstance(value, Mapping):
        _check_attributes(value, fitting, path)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            check(item, fitting["items"], f"{path}[{number}]")


def _has_type(value: object, schema: Json) -> bool:
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if isinstance(value, Mapping) and len(value) > schema.get("maxProperties", len(value)):
        return False
    if value == "" and schema.get("minLength") != 0:
        return False
    return any(
        isinstance(value, _TYPES[name]) and not (isinstance(value, bool) and name in _NUMBERS)
        for name in names
    )


def _has_form(value: object, schema: Json) -> bool:
    if isinstance(value, str):
        in_form = re.fullmatch(schema["pattern"], value) is not None
        return in_form and len(value) <= schema["maxLength"]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    return not isinstance(value, list) or len(value) >= schema.get("minItems", 0)


def _check_attributes(value: Mapping[str, Any], schema: Json, path: str) -> None:
    known: Json = schema.get("properties", {})
    required = schema.get("required", ())
    others = schema.get("additionalProperties", True)
    where = f"{path}." if path else ""
    for name in value if others is not True else ():
        if name in known:
            continue
        if others is False:
            expected = ", ".join(known)
            raise PackageError(
                f"{where}{name}: is no attribute of a {schema['title']}: expected {expected}"
            )
        check(value[name], others, f"{where}{name}")
    if schema.get(_REFUSES_SIMILAR):
        refuse_similar(value, known, where)
    for name, below in known.items():
        if name in value or name in required:
            # where an object is missing, the message names the attribute that is missing in it
            missing: Json | None = {} if below.get("type") == "object" else None
            check(value.get(name, missing), below, f"{where}{name}")


def refuse_similar(names: Iterable[str], known: Iterable[str], where: str) -> None:
    """Refuse a name that looks like a known one: its value would be ignored without a word."""
    plain = {_plain(name): name for name in known}
    for name in names:
        similar = get_close_matches(_plain(name), plain, n=1, cutoff=_SIMILAR)
        if similar and name != plain[similar[0]]:
            raise PackageError(
                f"{where}{name}: is not known; did you mean {plain[similar[0]]}? Correct it, or "
                "give an attribute of your own a name that cannot be mistaken"
            )


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()
