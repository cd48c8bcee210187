# SPDX-License-Identifier: Apache-2.0
"""The ChangeCurrentVnfPkgRequest of SOL003 as a frozen value.

Source: ETSI GS NFV-SOL 003, 5.5.2.12, and the additionalParams of the specification "Support
ChangeCurrentVNFPackage for VNF software modification". An upgrade type is accepted in every
spelling, and ``cp-name`` of the specification's table as well as ``cp_name`` of its sample.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from container_update.engine.goals import upgrade_types
from container_update.engine.goals.request_schema import (
    CHANGE_REQUEST,
    COORDINATE,
    COORDINATE_NEW,
    COORDINATE_OLD,
    EXTERNAL_LB,
)
from container_update.model.errors import PackageError
from container_update.model.requests import DEF_FILES
from container_update.model.scripts import NEW, OLD
from container_update.package import archive, fetch

Values = Mapping[str, Any]

BLUE_GREEN = "Blue-Green"

LINKS = ("extVirtualLinks", "extManagedVirtualLinks")
"""The attributes for networks that another system manages; for VNFs in an OpenStack."""


@dataclass(frozen=True)
class ScriptName:
    """A script as the request names it: for coordination, or a gate."""

    path: str
    """In the package of its VNF, else in the other one."""
    class_name: str | None = None
    """The class in it to be used; None: the script runs as it is."""
    attribute: str = field(default="", compare=False)
    """Of the request, for messages."""


@dataclass(frozen=True)
class VduParams:
    """One VDU that is to be changed, and how a script reaches its VNFCs."""

    vdu_id: str
    old_vnfc: Values = field(default_factory=dict, repr=False)
    """``cp_name``, ``username``, ``password`` of the old VNFC."""
    new_vnfc: Values = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class ChangeRequest:
    """A request to change the current VNF package: a ChangeCurrentVnfPkgRequest of SOL003.

    >>> request = ChangeRequest.of(
    ...     {"vnfdId": "vnfd-2", "additionalParams": {"upgrade_type": "rolling"}}
    ... )
    >>> request == ChangeRequest(vnfd_id="vnfd-2", upgrade_type="RollingUpdate")
    True
    """

    vnfd_id: str
    upgrade_type: str
    """As its strategy's entry point has it."""
    coordinate_old: ScriptName | None = None
    coordinate_new: ScriptName | None = None
    gate_scripts: tuple[ScriptName, ...] = ()
    """What its gates run, in the package of the new VNF."""
    vdu_params: tuple[VduParams, ...] = ()
    """The VDUs to change; empty: all of them."""
    def_files: tuple[str, ...] = ()
    """What is applied: paths in the new package, or URLs; empty: all of the new package."""
    external_lb: Values | None = field(default=None, repr=False)
    """The load balancer that the scripts configure: ``ip_address``, ``username``, ``password``.
    Empty: there is none; None: the request does not say."""
    vim_connection_info: Values = field(default_factory=dict, repr=False)
    extensions: Values = field(default_factory=dict)
    vnf_configurable_properties: Values = field(default_factory=dict)
    body: Values = field(default_factory=dict, repr=False, compare=False)
    """The request's JSON: as it was received, else made of the fields above."""

    def __post_init__(self) -> None:
        if not self.body:
            object.__setattr__(self, "body", _body(self))

    @classmethod
    def of(cls, body: object, vim_type: str | None = None) -> ChangeRequest:
        """Parse the JSON of a request.

        :param vim_type: where the VNF runs; the upgrade type has to be one for it. None: for any.
        :raises PackageError: an attribute is missing or wrong; the message names it by its path.
        """
        given = _with_cp_names(body)
        CHANGE_REQUEST.check(given)
        assert isinstance(body, Mapping), "as the schema says"
        params = given["additionalParams"]
        external_lb = params.get(EXTERNAL_LB) or {} if EXTERNAL_LB in params else None
        request = cls(
            vnfd_id=body["vnfdId"],
            upgrade_type=upgrade_types.resolve(params["upgrade_type"], vim_type),
            coordinate_old=_script(params, COORDINATE_OLD),
            coordinate_new=_script(params, COORDINATE_NEW),
            gate_scripts=tuple(_gate_scripts(params)),
            vdu_params=_vdu_params(params.get("vdu_params") or ()),
            def_files=tuple(_paths(params.get(DEF_FILES) or ())),
            external_lb=external_lb,
            vim_connection_info=body.get("vimConnectionInfo") or {},
            extensions=body.get("extensions") or {},
            vnf_configurable_properties=body.get("vnfConfigurableProperties") or {},
            body=dict(body),
        )
        if vim_type is not None:
            request.check_vim(vim_type)
        return request

    @property
    def scripts(self) -> Mapping[str, ScriptName]:
        """'new' and 'old' to the coordination script of that VNF, where it has one."""
        both = {NEW: self.coordinate_new, OLD: self.coordinate_old}
        return {which: script for which, script in both.items() if script is not None}

    @property
    def runs_scripts(self) -> bool:
        """Whether programs of the packages are run, for coordination or by a gate."""
        return bool(self.scripts or self.gate_scripts)

    @property
    def script_paths(self) -> Mapping[str, str]:
        """The same, to the path of the script."""
        return {which: script.path for which, script in self.scripts.items()}

    @property
    def script_params(self) -> Mapping[str, str]:
        """What additionalParams say of scripts."""
        named = [_script_params(COORDINATE[which], each) for which, each in self.scripts.items()]
        return {name: text for params in named for name, text in params.items() if text}

    def vnfc_param(self, vdu_id: str, which: str) -> Values:
        """Return how a script reaches the 'new' or 'old' VNFCs of a VDU; may be empty."""
        for vdu in self.vdu_params:
            if vdu.vdu_id == vdu_id:
                return vdu.new_vnfc if which == "new" else vdu.old_vnfc
        return {}

    def check_vim(self, vim_type: str) -> None:
        """Check that the request has what the specification requires for the VIM of the VNF.

        :raises PackageError: an attribute is missing, or would do nothing.
        """
        if upgrade_types.kind_of_vim(vim_type) != "openstack":
            for name in LINKS:
                if self.body.get(name):
                    raise PackageError(
                        f"{name}: is for VNFs in an OpenStack only: leave it out of the request"
                    )
            return
        for name in ("hold", "gate", "canary_steps"):
            if self.body["additionalParams"].get(name):
                raise PackageError(
                    "a change on OpenStack does not wait for it: leave it out; the script of the "
                    "new VNF can decide instead",
                    path=f"additionalParams.{name}",
                )
        if not self.vdu_params:
            raise PackageError(
                "expected the VDUs to change, found none: a change on OpenStack needs them",
                path="additionalParams.vdu_params",
            )
        if self.upgrade_type == BLUE_GREEN and self.scripts and self.external_lb is None:
            raise PackageError(
                "expected ip_address, username and password of the load balancer that the "
                "coordination scripts configure, found nothing: Blue-Green on OpenStack needs it; "
                "if they configure none, set it to null",
                path=f"additionalParams.{EXTERNAL_LB}",
            )

    def check_vdus(self, vdus: Collection[str], vim_type: str) -> None:
        """Check vdu_params against the VDUs of the new package.

        :raises PackageError: it has no such VDU, or the request leaves one out that changes too.
        """
        where, chosen = "additionalParams.vdu_params", [vdu.vdu_id for vdu in self.vdu_params]
        for number, vdu_id in enumerate(chosen):
            if vdu_id not in vdus:
                raise PackageError(
                    f"expected a VDU of the new package (it has {', '.join(vdus) or 'none'}), "
                    f"found {vdu_id}",
                    path=f"{where}[{number}].vdu_id",
                )
        left_out = sorted(set(vdus) - set(chosen))
        is_openstack = upgrade_types.kind_of_vim(vim_type) == "openstack"
        if is_openstack and self.upgrade_type == BLUE_GREEN and left_out:
            raise PackageError(
                f"expected every VDU of the new package, without {', '.join(left_out)}: "
                "Blue-Green on OpenStack replaces the whole stack; name them too, or use "
                "RollingUpdate",
                path=where,
            )


# --- what a VNFM adds to it -----------------------------------------------------------------------


@dataclass(frozen=True)
class Occurrence:
    """The operation occurrence of a change, where a VNFM shows it (SOL003)."""

    id: str
    url: str
    instance_url: str


@dataclass(frozen=True)
class FromVnfm:
    """What a VNFM knows of a VNF whose package changes; all of it may be missing."""

    instance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The VnfInstance, for the scripts."""
    occurrence: Occurrence | None = None
    """For the scripts; None: no VNFM shows this change."""
    access: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """How a script reaches the VIM; empty: as this process does."""
    promoted: str = ""
    """The name of the hold that a person has promoted: a change that waits there goes on."""


# --- what no output may show ----------------------------------------------------------------------

_SECRET = re.compile(r"password|token|secret|passphrase|private_key", re.IGNORECASE)


def secrets_in(value: object, hidden: bool = False) -> Iterator[str]:
    """Yield every text below an attribute with a name like password or token."""
    if isinstance(value, Mapping):
        for name, below in value.items():
            yield from secrets_in(below, hidden or _SECRET.search(str(name)) is not None)
    elif isinstance(value, (list, tuple)):
        for below in value:
            yield from secrets_in(below, hidden)
    elif hidden and isinstance(value, str) and value:
        yield value


# --- back to JSON -------------------------------------------------------------------------------


def _body(request: ChangeRequest) -> Values:
    """Return the JSON of a request; a journal keeps it, scripts read it."""
    params = {
        "upgrade_type": request.upgrade_type,
        **_script_params(COORDINATE_NEW, request.coordinate_new),
        **_script_params(COORDINATE_OLD, request.coordinate_old),
        "vdu_params": [
            {
                "vdu_id": vdu.vdu_id,
                "old_vnfc_param": dict(vdu.old_vnfc),
                "new_vnfc_param": dict(vdu.new_vnfc),
            }
            for vdu in request.vdu_params
        ],
        DEF_FILES: list(request.def_files),
    }
    given = {name: value for name, value in params.items() if value}
    if request.external_lb is not None:
        given[EXTERNAL_LB] = dict(request.external_lb)
    body = {
        "vnfdId": request.vnfd_id,
        "additionalParams": given,
        "vimConnectionInfo": dict(request.vim_connection_info),
        "extensions": dict(request.extensions),
        "vnfConfigurableProperties": dict(request.vnf_configurable_properties),
    }
    return {name: value for name, value in body.items() if value}


def _script_params(name: str, script: ScriptName | None) -> Values:
    return {} if script is None else {name: script.path, f"{name}-class": script.class_name}


# --- what a schema cannot say -------------------------------------------------------------------


def _with_cp_names(body: Any) -> Any:
    """Return a request with every ``cp-name`` in vdu_params as ``cp_name``."""
    params = body.get("additionalParams") if isinstance(body, Mapping) else None
    if not isinstance(params, Mapping) or "vdu_params" not in params:
        return body
    params = {**params, "vdu_params": _with_cp_name(params["vdu_params"])}
    return {**body, "additionalParams": params}


def _with_cp_name(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_cp_name(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    spelling = {"cp-name": "cp_name"} if "cp_name" not in value else {}
    return {spelling.get(name, name): _with_cp_name(below) for name, below in value.items()}


def _script(params: Values, name: str) -> ScriptName | None:
    path, class_name = params.get(name), params.get(f"{name}-class")
    attribute = f"additionalParams.{name}"
    if path is None:
        if class_name is None:
            return None
        raise PackageError(
            f"names a class, but {name} names no script with it: add it",
            path=f"{attribute}-class",
        )
    if class_name is not None and not class_name.isidentifier():
        raise PackageError(
            f'expected the name of a class, found "{class_name}"', path=f"{attribute}-class"
        )
    return ScriptName(_inside(path, attribute), class_name, attribute)


def _gate_scripts(params: Values) -> Iterator[ScriptName]:
    steps = enumerate(params.get("canary_steps") or ())
    entries = {"": params, **{f"canary_steps[{n}].": s for n, s in steps if isinstance(s, Mapping)}}
    for where, entry in entries.items():
        gate, attribute = entry.get("gate") or {}, f"additionalParams.{where}gate"
        asked = gate.keys() & {"query", "at_least", "at_most", "script"}
        if gate and asked != {"script"} and not ("query" in asked and "script" not in asked):
            raise PackageError(
                "expected a query with its bounds, or a script, found "
                f"{' and '.join(sorted(asked)) or 'neither'}",
                path=attribute,
            )
        if gate and "script" in gate:
            yield ScriptName(_inside(gate["script"], attribute), None, attribute)


def _paths(paths: Sequence[str]) -> Iterator[str]:
    for number, path in enumerate(paths):
        attribute = f"additionalParams.{DEF_FILES}[{number}]"
        yield path if fetch.is_url(path) else _inside(path, attribute)


def _inside(path: str, attribute: str) -> str:
    try:
        return archive.inside(path)
    except PackageError as error:
        raise PackageError(str(error), path=attribute) from None


def _vdu_params(given: Values | Sequence[Values]) -> tuple[VduParams, ...]:
    """Accept one object too: the specification's sample has one, its table says 0..N."""
    entries = [given] if isinstance(given, Mapping) else given
    ids = [entry["vdu_id"] for entry in entries]
    for number, vdu_id in enumerate(ids):
        if vdu_id in ids[:number]:
            raise PackageError(
                f"{vdu_id} is there twice", path=f"additionalParams.vdu_params[{number}].vdu_id"
            )
    return tuple(
        VduParams(
            vdu_id=entry["vdu_id"],
            old_vnfc=entry.get("old_vnfc_param") or {},
            new_vnfc=entry.get("new_vnfc_param") or {},
        )
        for entry in entries
    )
