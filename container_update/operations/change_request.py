"""What a client asks for: the ChangeCurrentVnfPkgRequest of SOL003 as a frozen value.

Source: ETSI GS NFV-SOL 003, 5.5.2.12, and the additionalParams of the specification "Support
ChangeCurrentVNFPackage for VNF software modification". Where that specification and Tacker's own
documents spell a thing differently, both are accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from container_update.model.errors import PackageError
from container_update.model.requests import DEF_FILES
from container_update.operations import upgrade_types
from container_update.package import archive, fetch

Values = Mapping[str, Any]


_KNOWN = frozenset(
    {"vnfdId", "additionalParams", "vimConnectionInfo", "extensions", "vnfConfigurableProperties"}
)
_UNSUPPORTED = frozenset({"extVirtualLinks", "extManagedVirtualLinks"})
"""Of SOL003, but not supported by the specification."""


@dataclass(frozen=True)
class ScriptName:
    """A coordination script as the request names it."""

    path: str
    """In the new package."""
    class_name: str | None = None
    """The class in it to be used; None: the script runs as it is."""


@dataclass(frozen=True)
class VduParams:
    """One VDU that is to be changed, and how a script reaches its VNFCs."""

    vdu_id: str
    old_vnfc: Values = field(default_factory=dict, repr=False)
    """``cp_name``, ``username``, ``password`` of the old VNFC."""
    new_vnfc: Values = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class ChangeRequest:
    """A request to change the current VNF package."""

    vnfd_id: str
    upgrade_type: str
    """As its strategy's entry point has it."""
    coordinate_old: ScriptName | None = None
    coordinate_new: ScriptName | None = None
    vdu_params: tuple[VduParams, ...] = ()
    """The VDUs to change; empty: all of them."""
    def_files: tuple[str, ...] = ()
    """Paths in the new package, or URLs (:data:`DEF_FILES`); empty: as they were."""
    vim_connection_info: Values = field(default_factory=dict, repr=False)
    extensions: Values = field(default_factory=dict)
    vnf_configurable_properties: Values = field(default_factory=dict)
    body: Values = field(default_factory=dict, repr=False)
    """The request as it came."""

    @classmethod
    def of(cls, body: object, vim_type: str | None = None) -> ChangeRequest:
        """Return the value of a request's JSON.

        :param vim_type: where the VNF runs; the upgrade type has to be one for it. None: for any.
        :raises PackageError: an attribute is missing or wrong; the message names it by its path.
        """
        if not isinstance(body, Mapping):
            _wrong("the request", "a JSON object", body)
        for name in body:
            if name in _UNSUPPORTED:
                raise PackageError(f"{name}: is not supported, leave it out of the request")
            if name not in _KNOWN:
                raise PackageError(
                    f"{name}: is no attribute of a request to change the VNF package: expected "
                    f"{', '.join(sorted(_KNOWN))}"
                )
        params = _mapping(body, "additionalParams", "")
        where = "additionalParams."
        return cls(
            vnfd_id=_text(body, "vnfdId", ""),
            upgrade_type=upgrade_types.resolve(_text(params, "upgrade_type", where), vim_type),
            coordinate_old=_script(params, "lcm-operation-coordinate-old-vnf"),
            coordinate_new=_script(params, "lcm-operation-coordinate-new-vnf"),
            vdu_params=tuple(_vdu_params(params)),
            def_files=tuple(_paths(params, DEF_FILES, where)),
            vim_connection_info=_mapping(body, "vimConnectionInfo", ""),
            extensions=_mapping(body, "extensions", ""),
            vnf_configurable_properties=_mapping(body, "vnfConfigurableProperties", ""),
            body=dict(body),
        )


_SECRET = re.compile(r"password|token|secret|passphrase|private_key", re.IGNORECASE)


def secrets_in(value: object, hidden: bool = False) -> Iterator[str]:
    """Every text below an attribute with a name like password or token: not to be shown."""
    if isinstance(value, Mapping):
        for name, below in value.items():
            yield from secrets_in(below, hidden or _SECRET.search(str(name)) is not None)
    elif isinstance(value, (list, tuple)):
        for below in value:
            yield from secrets_in(below, hidden)
    elif hidden and isinstance(value, str) and value:
        yield value


# --- the attributes -----------------------------------------------------------------------------


def _wrong(path: str, expected: str, found: object) -> NoReturn:
    """Only the kind of what was found: it might be a password in the wrong place."""
    what = "nothing" if found is None else f"a value of type {type(found).__name__}"
    raise PackageError(f"{path}: expected {expected}, found {what}")


def _mapping(body: Values, name: str, where: str) -> Values:
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        _wrong(f"{where}{name}", "a JSON object", value)
    return value


def _text(body: Values, name: str, where: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        _wrong(f"{where}{name}", "text that is not empty", value if value != "" else None)
    return value


def _script(params: Values, name: str) -> ScriptName | None:
    where, class_key = "additionalParams.", f"{name}-class"
    if params.get(name) is None:
        if params.get(class_key) is not None:
            raise PackageError(
                f"{where}{class_key}: names a class, but {name} names no script with it: add it"
            )
        return None
    path = _inside(_text(params, name, where), f"{where}{name}")
    if params.get(class_key) is None:
        return ScriptName(path)
    class_name = _text(params, class_key, where)
    if not class_name.isidentifier():
        place = f"{where}{class_key}"
        raise PackageError(f'{place}: expected the name of a class, found "{class_name}"')
    return ScriptName(path, class_name)


def _paths(params: Values, name: str, where: str) -> Iterator[str]:
    value = params.get(name)
    if value is None:
        return
    if not isinstance(value, list) or not value:
        _wrong(f"{where}{name}", "a list of paths that is not empty", value)
    for number, path in enumerate(value):
        place = f"{where}{name}[{number}]"
        if not isinstance(path, str):
            _wrong(place, "a path in the new package", path)
        yield path if fetch.is_url(path) else _inside(path, place)


def _inside(path: str, place: str) -> str:
    try:
        return archive.inside(path)
    except PackageError as error:
        raise PackageError(f"{place}: {error}") from None


def _vdu_params(params: Values) -> Iterator[VduParams]:
    """The specification's sample has one object where its table says 0..N: both are taken."""
    name = "additionalParams.vdu_params"
    value = params.get("vdu_params")
    if value is None:
        return
    if isinstance(value, Mapping):
        yield _one_vdu(value, name)
        return
    if not isinstance(value, list):
        _wrong(name, "a list of VDUs", value)
    seen: set[str] = set()
    for number, entry in enumerate(value):
        vdu = _one_vdu(entry, f"{name}[{number}]")
        if vdu.vdu_id in seen:
            raise PackageError(f"{name}[{number}].vdu_id: {vdu.vdu_id} is there twice")
        seen.add(vdu.vdu_id)
        yield vdu


def _one_vdu(entry: object, path: str) -> VduParams:
    if not isinstance(entry, Mapping):
        _wrong(path, "a JSON object with a vdu_id", entry)
    return VduParams(
        vdu_id=_text(entry, "vdu_id", f"{path}."),
        old_vnfc=_mapping(entry, "old_vnfc_param", f"{path}."),
        new_vnfc=_mapping(entry, "new_vnfc_param", f"{path}."),
    )
