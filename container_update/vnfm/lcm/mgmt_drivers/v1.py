# SPDX-License-Identifier: Apache-2.0
"""Mgmt Drivers of the v1 API: entry points in Tacker's namespace, in this process.

As in Tacker, the VNFD has the name of the entry point, and the file that defines the class must be
the one in the package, byte for byte. If Tacker is not installed, the base class that such a file
imports from it is replaced.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from stevedore import DriverManager, exception

from container_update.drivers import v1_records
from container_update.drivers.change_by_modify import Modification
from container_update.drivers.v1_host import vnfc_entry
from container_update.model.errors import ContainerUpdateError, PackageError
from container_update.model.objects import Json
from container_update.model.outcome import Vnfc
from container_update.model.requests import CONFIG_PATHS
from container_update.package.tools.build import driver_file
from container_update.package.vnfd import InterfaceScript
from container_update.records.vnf_records import Records
from container_update.vnfm.lcm.mgmt_drivers.drivers import MODIFIED, Drivers, file_of
from container_update.vnfm.lcm.operation_context import VnfRecord

NAMESPACE = "tacker.tacker.mgmt.drivers"
NOOP = "vnflcm_noop"
_BASE = "tacker.vnfm.mgmt_drivers.vnflcm_abstract_driver"
_ROLLBACK = ("_rollback_start", "_rollback_end")
"""The v1 API has no drivers at a rollback."""


class DriverError(ContainerUpdateError):
    """A driver failed, or cannot be loaded."""


@dataclass(frozen=True)
class V1Drivers(Drivers):
    """The drivers that a package's VNFD names."""

    @property
    def is_ours(self) -> bool:
        """Whether the driver for the end of a modification is our own: by the content of the file
        that is installed under its name, as in Tacker."""
        script = self.scripts.get(MODIFIED)
        if script is None or script.implementation == NOOP:
            return False
        try:
            installed = _find_file(load(script.implementation))
        except DriverError:  # a call of the driver raises it again
            return False
        return installed.read_bytes() == driver_file("v1").read_bytes()

    def work(self, record: VnfRecord) -> Modification | None:
        """Return what our own driver would do at a modification's end, or raise; None: nothing."""
        context, script = self.context, self.scripts[MODIFIED]
        self._refuse_other_file(MODIFIED, script, load(script.implementation), record.vnfd_id)
        instance = instance_object(context.instance_id, record, context.connection)
        new, paths = context.package(record.vnfd_id), self._arguments(MODIFIED)[CONFIG_PATHS]
        v1_records.check(instance, paths)
        return v1_records.modification_of(instance, str(self.folder), str(new), paths)

    def call(self, event: str, record: VnfRecord, new: Path | None = None) -> VnfRecord:  # noqa: ARG002
        """Run the driver of an event, for example ``modify_information_start``, if there is one.

        :param new: the folder of the package that a modification leads to.
        :raises ContainerUpdateError: the driver failed, or cannot be loaded.
        """
        script = self.scripts.get(event)
        if script is None or script.implementation == NOOP or event.endswith(_ROLLBACK):
            return record
        driver = load(script.implementation)
        self._refuse_other_file(event, script, driver, record.vnfd_id)
        instance = instance_object(self.context.instance_id, record, self.context.connection)
        arguments = self._arguments(event)
        getattr(driver, event)(context=SimpleNamespace(), vnf_instance=instance, **arguments)
        return replace(record, body=changed_body(instance, record.body))

    def _arguments(self, event: str) -> dict[str, Any]:
        """Return what Tacker passes beside context and instance."""
        request = self.context.request
        if event == "modify_information_start":
            return {"modify_vnf_request": None}
        if event == MODIFIED:
            return {
                "modify_vnf_request": None,
                "old_vnf_package_path": str(self.folder),
                CONFIG_PATHS: (request.get("metadata") or {}).get(CONFIG_PATHS) or [],
            }
        name = event.removesuffix("_start").removesuffix("_end") + "_vnf_request"
        return {name: _object(request), "grant": None, "grant_request": None}

    def _refuse_other_file(
        self, event: str, script: InterfaceScript, driver: Any, vnfd_id: str
    ) -> None:
        """Refuse a driver that differs from the recorded package's copy, as Tacker does."""
        copy = file_of(event, script, self.context.package(vnfd_id))
        if copy.read_bytes() != _find_file(driver).read_bytes():
            raise PackageError(
                f"{script.file} is not the file of the driver {script.implementation}, as it is "
                f"installed here: put that file into the package with the VNFD {vnfd_id}"
            )


def _find_file(driver: Any) -> Path:
    """Return the file that defines a driver."""
    return Path(inspect.getfile(type(driver)))


def load(name: str) -> Any:
    """Return the driver with a name; DriverError where it is not installed or not to be loaded."""
    _replace_missing_base()
    try:
        return DriverManager(NAMESPACE, name, invoke_on_load=True).driver
    except exception.NoMatches as error:
        raise DriverError(
            f"the VNFD names the Mgmt Driver {name}: nothing of this name is installed in "
            f"{NAMESPACE}"
        ) from error
    except Exception as error:  # a driver may raise anything
        raise DriverError(f"the Mgmt Driver {name} cannot be loaded: {error}") from error


def _replace_missing_base() -> None:
    """Provide the one name of Tacker that a driver's file imports, if Tacker is not installed."""
    if _BASE in sys.modules or find_spec("tacker") is not None:
        return
    for name in itertools.accumulate(_BASE.split("."), "{}.{}".format):
        sys.modules.setdefault(name, ModuleType(name))
    base = type("VnflcmMgmtAbstractDriver", (), {"__doc__": "The base of v1 Mgmt Drivers."})
    sys.modules[_BASE].VnflcmMgmtAbstractDriver = base  # type: ignore[attr-defined]


# --- a VNF instance for drivers: objects with attributes in snake_case ---------------------------
# The attributes are those of Tacker's objects that drivers use; what a driver changes is read back
# into the record.


def instance_object(instance_id: str, record: VnfRecord, connection: Json) -> SimpleNamespace:
    """Return the VnfInstance of a record, with its VIM and the VIM's credentials."""
    info = record.info
    return SimpleNamespace(
        id=instance_id,
        vnfd_id=record.vnfd_id,
        instantiation_state=record.state,
        vnf_instance_name=record.body.get("vnfInstanceName"),
        vnf_instance_description=record.body.get("vnfInstanceDescription"),
        vnf_metadata=dict(record.body.get("metadata") or {}),
        vim_connection_info=[_vim(connection)],
        instantiated_vnf_info=_info(info) if info else None,
        save=_nothing,
    )


def _nothing() -> None:
    """Do nothing: the record is stored when the operation ends."""


def _vim(connection: Json) -> SimpleNamespace:
    interface = connection.get("interfaceInfo") or {}
    access = {**(connection.get("accessInfo") or {}), "auth_url": interface.get("endpoint", "")}
    if interface.get("ssl_ca_cert"):
        access["ssl_ca_cert"] = interface["ssl_ca_cert"]
    named = {name: connection.get(name) for name in ("id", "vimId", "vimType")}
    return _object({**named, "interfaceInfo": interface, "accessInfo": access})


def _info(info: Json) -> SimpleNamespace:
    return SimpleNamespace(
        flavour_id=info.get("flavourId"),
        vnf_state=info.get("vnfState"),
        additional_params=dict(info.get("additionalParams") or {}),
        vnfc_resource_info=[_vnfc(entry) for entry in info.get("vnfcResourceInfo") or ()],
    )


def _vnfc(entry: Json) -> SimpleNamespace:
    """Return a VnfcResourceInfo."""
    entry = {"storageResourceIds": [], "metadata": {}, **copy.deepcopy(entry)}
    compute = dict.fromkeys(("resourceId", "vimLevelResourceType"))
    handle = _object({**compute, **(entry.get("computeResource") or {})})
    return _object({**entry, "computeResource": handle})


def vnfc_record(vnfc_id: str, vnfc: Vnfc, metadata: Mapping[str, str]) -> SimpleNamespace:
    """Return a new VnfcResourceInfo."""
    handle = {"resourceId": vnfc.pod_name, "vimLevelResourceType": vnfc.workload_kind}
    entry = {"id": vnfc_id, "vduId": vnfc.vdu_id, "computeResource": handle, "metadata": metadata}
    return _vnfc(entry)


def changed_body(changed: SimpleNamespace, before: Json, written: Records | None = None) -> Json:
    """Return the record's body, with what a driver changed in the objects.

    :param written: what was written into the objects, which have no links and storages.
    """
    after = dict(before)
    if changed.vnf_metadata or "metadata" in before:
        after["metadata"] = dict(changed.vnf_metadata or {})
    if (info := changed.instantiated_vnf_info) is not None:
        after["instantiatedVnfInfo"] = {
            **(before.get("instantiatedVnfInfo") or {}),
            "additionalParams": dict(info.additional_params or {}),
            "vnfcResourceInfo": [_entry(record) for record in info.vnfc_resource_info],
        }
        if written is not None:
            written.write_resources(after["instantiatedVnfInfo"])
    return after


def _entry(record: Any) -> Json:
    return {
        **vnfc_entry(record),
        "storageResourceIds": list(record.storage_resource_ids),
        "metadata": dict(record.metadata or {}),
    }


def _object(values: Json) -> SimpleNamespace:
    """Return attributes of the API as those of an object, in snake_case."""
    return SimpleNamespace(
        **{re.sub("[A-Z]", r"_\g<0>", name).lower(): value for name, value in values.items()}
    )
