"""Mgmt Drivers of the v1 API: classes that stevedore finds in Tacker's namespace, in this process.

As Tacker does it: the VNFD's word is the name of the entry point, and the file that defines the
class has to be the one that lies in the package, byte for byte. Where Tacker is not installed, the
base class that such a file imports from it is stood in for.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from container_update.drivers import v1_host
from container_update.model.errors import ContainerUpdateError, PackageError
from container_update.model.outcome import Outcome, Vnfc
from container_update.model.requests import UpdateRequest
from container_update.operations.update import update
from container_update.package.vnfd import InterfaceScript
from container_update.vnfm.lcm.mgmt_drivers import v1_objects
from container_update.vnfm.lcm.operation_context import OperationContext, Record

NAMESPACE = "tacker.tacker.mgmt.drivers"
NOOP = "vnflcm_noop"
_BASE = "tacker.vnfm.mgmt_drivers.vnflcm_abstract_driver"


class DriverError(ContainerUpdateError):
    """A driver failed, or cannot be loaded."""


@dataclass(frozen=True)
class V1Drivers:
    """The drivers that a package's VNFD names."""

    context: OperationContext
    folder: Path
    scripts: Mapping[str, InterfaceScript]

    def call(self, event: str, record: Record, new: Path | None = None) -> Record:  # noqa: ARG002
        """See Drivers; the new package is asked of the host."""
        named = self.scripts.get(event)
        if named is None or named.implementation == NOOP or event.endswith(_ROLLBACK):
            return record
        driver = load(named.implementation)
        self._refuse_other_file(event, named, driver)
        context = SimpleNamespace(**{v1_host.ATTRIBUTE: Host(self.context)})
        instance = v1_objects.instance(self.context.instance_id, record, self.context.connection)
        arguments = self._arguments(event)
        getattr(driver, event)(context=context, vnf_instance=instance, **arguments)
        return replace(record, body=v1_objects.body(instance, record.body))

    def _arguments(self, event: str) -> dict[str, Any]:
        """Return what Tacker hands over beside context and instance."""
        if event == "modify_information_start":
            return {"modify_vnf_request": None}
        if event == "modify_information_end":
            metadata = self.context.request.get("metadata") or {}
            paths = list(metadata.get("configmap_secret_paths") or ())
            return {
                "modify_vnf_request": None,
                "old_vnf_package_path": str(self.folder),
                "configmap_secret_paths": paths,
            }
        operation = event.removesuffix("_start").removesuffix("_end")
        request = v1_objects.request(self.context.request)
        given: dict[str, Any] = {f"{operation}_vnf_request": request}
        return {**given, "grant": None, "grant_request": None}

    def _refuse_other_file(self, event: str, named: InterfaceScript, driver: Any) -> None:
        if not named.file:
            raise PackageError(
                f"the VNFD maps {event} to {named.implementation}: expected an artifact of this "
                "name with the driver's file, and found none"
            )
        copy = (self.folder / named.file).resolve()
        if not copy.is_relative_to(self.folder.resolve()) or not copy.is_file():
            raise PackageError(f"{named.file}: the VNFD maps {event} to it: no such file")
        if _digest(copy) != _digest(Path(inspect.getfile(type(driver)))):
            raise PackageError(
                f"{named.file} is not the file of the driver {named.implementation} that is "
                "installed here: put that file into the package"
            )


_ROLLBACK = ("_rollback_start", "_rollback_end")
"""The v1 API has no drivers at a rollback."""


def load(name: str) -> Any:
    """Return the driver of a name.

    :raises DriverError: none is installed, or it cannot be loaded.
    """
    from stevedore import DriverManager  # noqa: PLC0415, slow to load
    from stevedore.exception import NoMatches  # noqa: PLC0415

    _stand_in_for_tacker()
    try:
        return DriverManager(
            NAMESPACE, name, invoke_on_load=True, on_load_failure_callback=_cannot_load
        ).driver
    except NoMatches as error:
        raise DriverError(
            f"the VNFD names the Mgmt Driver {name}: nothing of this name is installed in "
            f"{NAMESPACE}"
        ) from error


def _cannot_load(_: object, entry_point: object, error: BaseException) -> None:
    raise DriverError(f"{entry_point} cannot be loaded: {error}") from error


def _stand_in_for_tacker() -> None:
    """Provide the one name of Tacker's that a driver's file imports, where Tacker is missing."""
    if _BASE in sys.modules or find_spec("tacker") is not None:
        return
    parts = _BASE.split(".")
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        sys.modules.setdefault(name, ModuleType(name))
    base = type("VnflcmMgmtAbstractDriver", (), {"__doc__": "The base of v1 Mgmt Drivers."})
    sys.modules[_BASE].VnflcmMgmtAbstractDriver = base  # type: ignore[attr-defined]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass(frozen=True)
class Host:
    """This VNFM, as the v1 driver asks it; implements :class:`v1_host.Host`."""

    context: OperationContext = field(repr=False)

    def package_path(self, vnfd_id: str) -> str:
        """See v1_host.Host."""
        return str(self.context.package(vnfd_id))

    def update(self, request: UpdateRequest, vnf_instance: Any) -> Outcome:
        """See v1_host.Host."""
        del vnf_instance  # the context knows its VIM
        context = self.context
        with context.cluster() as cluster:
            return update(request, cluster, context.service.options, context.cancel, context.steps)

    def vnfc_record(self, vnfc_id: str, vnfc: Vnfc, metadata: Mapping[str, str]) -> Any:
        """See v1_host.Host."""
        return v1_objects.vnfc_record(vnfc_id, vnfc, metadata)
