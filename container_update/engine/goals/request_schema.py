# SPDX-License-Identifier: Apache-2.0
"""The attributes of requests, once.

A request to change the VNF package is checked by it wherever it comes from; the service's OpenAPI
document shows it.

Source: ETSI GS NFV-SOL 003, 4.4.1.6 and 5.5.2.12, and the additionalParams of the specification
"Support ChangeCurrentVNFPackage for VNF software modification".
"""

from __future__ import annotations

from functools import partial

from container_update.model.pauses import LONGEST_HOLD, LONGEST_PERIOD
from container_update.model.requests import DEF_FILES
from container_update.model.schema import (
    LINE,
    TRUTH,
    AnyOf,
    Empty,
    Fields,
    ListOf,
    MapOf,
    Number,
    Schema,
    Text,
    or_null,
)
from container_update.model.scripts import NEW, OLD

COORDINATE = {which: f"lcm-operation-coordinate-{which}-vnf" for which in (NEW, OLD)}
COORDINATE_NEW, COORDINATE_OLD = COORDINATE.values()
"""The attributes that name a coordination script; with ``-class`` behind them, a class in it."""

EXTERNAL_LB = "external_lb_param"

_record = partial(Fields, has_nulls=False)


def _text(description: str, pattern: str = r"[^\x00-\x1f\x7f]+", longest: int = 255) -> Text:
    return Text(description, pattern, longest)


def _login(description: str, place: str, place_description: str) -> AnyOf:
    """Return the schema of a login: complete, or empty or null like one that is left out."""
    fields: dict[str, Schema] = {
        place: _text(place_description),
        "username": _text("text: the name of a user there"),
        "password": _text("text: the user's password", longest=4096),
    }
    login = _record(fields, fields.keys(), description=description, has_similar=False)
    return AnyOf(description, (Empty(), *or_null(login).alternatives))


def _credential(description: str) -> AnyOf:
    """Return the schema of a text that may be empty, null or left out."""
    return or_null(_text(description, r"[^\x00]*", 65536))


_OBJECT = Fields({}, description="a JSON object")
_LINKS = or_null(
    ListOf(
        Fields({}, description="a JSON object: a virtual link"),
        description="a list of virtual links, each a JSON object with the id of its network",
    )
)

URL = _text(
    "text: http://HOST or https://HOST, perhaps with a port and a path, without a user name",
    r"https?://[^\x00-\x20\x7f@/?#]+([/?#][^\x00-\x20\x7f]*)?",
    2048,
)
_TOKEN = _text(
    "text: a token of printable ASCII characters in one line", r"\s*[\x21-\x7e]+\s*", 65536
)
_CERTIFICATE = _credential("text: the certificate of the VIM's authority, PEM")

ACCESS = _record(
    {
        "bearer_token": or_null(_TOKEN),
        "username": _credential("text: the name of a user"),
        "password": _credential("text: the user's password"),
        "oidc_token_url": or_null(URL),
        "client_id": _credential("text: the id of the client at the OpenID Connect provider"),
        "client_secret": _credential("text: the secret of that client"),
        "ssl_ca_cert": _CERTIFICATE,
    },
    description="a JSON object: the login of a VIM; what else a kind of VIM needs is kept",
)

VIM_CONNECTION = _record(
    {
        "id": or_null(_text("text: the id of the entry")),
        "vimId": or_null(_text("text: the id of a registered VIM")),
        "vimType": or_null(_text("text: ETSINFV.KUBERNETES.V_1 for example")),
        "interfaceInfo": _record(
            {"endpoint": or_null(URL), "ssl_ca_cert": _CERTIFICATE}, description="a JSON object"
        ),
        "accessInfo": ACCESS,
        "extra": _OBJECT,
    },
    description="a JSON object that says how a VIM is reached",
    whole="VimConnectionInfo",
)

_VNFC = _login(
    "a JSON object by which a coordination script reaches a VNFC: cp_name, username, password",
    "cp_name",
    "text: the VNFC's connection point; cp-name is understood too",
)
_VDU = _record(
    {
        "vdu_id": _text("text: the VDU's id in the VNFD"),
        "old_vnfc_param": _VNFC,
        "new_vnfc_param": _VNFC,
    },
    {"vdu_id"},
    description="a JSON object with a vdu_id, and how a coordination script reaches its VNFCs",
    has_similar=False,
)
_VDUS = ListOf(_VDU)

PATH = _text("a path in the package, or a URL", longest=2048)

_PERCENT = Number(1, 100, is_whole=True, description="a whole number from 1 to 100")
_HOLD = AnyOf(
    "true, to wait until the change is promoted, or a number of seconds, a day at most",
    (TRUTH, *or_null(Number(0, LONGEST_HOLD)).alternatives),
)
_GATE = or_null(
    _record(
        {
            "query": _text("text: a query in PromQL", longest=2048),
            "script": _text("text: the path of a script in the new package, else in the old one"),
            "at_least": or_null(Number(description="a number: the least value that is good")),
            "at_most": or_null(Number(description="a number: the greatest value that is good")),
            "every": Number(
                1,
                LONGEST_PERIOD,
                description="a number: seconds from one question to the next, an hour at most; 10 "
                "without it",
            ),
            "seconds": Number(
                0,
                LONGEST_HOLD,
                description="a number: for how long the values have to be good, a day at most; 60 "
                "without it",
            ),
        },
        description="a JSON object with a query to the operator's Prometheus server and its "
        "bounds, or with a script",
        whole="Gate",
    )
)
_CANARY_STEP = _record(
    {"percent": _PERCENT, "hold": _HOLD, "gate": _GATE},
    {"percent"},
    description="a JSON object with percent, and with the wait after this step",
    whole="canary step",
)


def _script(which: str) -> dict[str, Schema]:
    """Return the attributes that name a coordination script."""
    return {
        COORDINATE[which]: or_null(_text(f"text: the path of a script in the {which} package")),
        f"{COORDINATE[which]}-class": or_null(_text("text: the name of a class in that script")),
    }


_PARAMS = _record(
    {
        "upgrade_type": _text(
            "text: an upgrade type that a strategy is installed for, Blue-Green or RollingUpdate "
            "for example, in any spelling"
        ),
        **_script(NEW),
        **_script(OLD),
        "vdu_params": AnyOf(
            "a list of VDUs to change, or one; without, all of them; a VNF in an OpenStack needs "
            "it",
            (_VDUS, *or_null(_VDU).alternatives),
        ),
        EXTERNAL_LB: _login(
            "a JSON object with ip_address, username and password of the load balancer that the "
            "coordination scripts configure; Blue-Green with scripts in an OpenStack needs it, "
            "where null says that there is none",
            "ip_address",
            "text: the load balancer's address",
        ),
        "canary_steps": or_null(
            ListOf(
                AnyOf("a percentage, or a JSON object with percent", (_PERCENT, _CANARY_STEP)),
                least=1,
                description="a list of percentages, the last of them 100, each a number or a JSON "
                "object with percent, and hold or gate; without it 10, 50, 100",
            )
        ),
        "hold": _HOLD,
        "gate": _GATE,
        DEF_FILES: or_null(
            ListOf(
                PATH,
                least=1,
                description="a list of paths in the new package, or URLs, of what is applied; "
                "without it, all of the new package",
            )
        ),
    },
    {"upgrade_type"},
    description="a JSON object with upgrade_type",
    has_similar=False,
)

CHANGE_REQUEST = _record(
    {
        "vnfdId": _text("text: the id of the new package's VNFD"),
        "additionalParams": _PARAMS,
        "vimConnectionInfo": or_null(MapOf(LINE, VIM_CONNECTION, description="a JSON object")),
        "extVirtualLinks": _LINKS,
        "extManagedVirtualLinks": _LINKS,
        "extensions": or_null(_OBJECT),
        "vnfConfigurableProperties": or_null(_OBJECT),
    },
    {"vnfdId", "additionalParams"},
    description="a JSON object",
    whole="ChangeCurrentVnfPkgRequest",
)
