"""Mgmt Drivers of the v1 API: classes that stevedore finds in Tacker's namespace, in this process.

As in Tacker, the VNFD has the name of the entry point, and the file that defines the class must be
the one in the package, byte for byte. If Tacker is not installed, the base class that such a file
imports from it is replaced.
"""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from container_update.drivers import change_by_modify, v1_host, v1_records
from container_update.model.errors import ContainerUpdateError, PackageError
from container_update.model.objects import Json, Manifest
from container_update.model.outcome import Outcome, Vnfc
from container_update.model.requests import CONFIG_PATHS, UpdateRequest
from container_update.operations.change_package import Changed
from container_update.operations.records.vnf_records import Records
from container_update.operations.update import update
from container_update.package.vnfd import InterfaceScript
from container_update.vnfm.lcm.mgmt_drivers import v1_objects
from container_update.vnfm.lcm.mgmt_drivers.drivers import MODIFIED, Drivers, Work, file_of
from container_update.vnfm.lcm.operation_context import OperationContext, Record

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

    api = "v1"

    def work(self, record: Record) -> Work | None:
        """See Drivers."""
        context, script = self.context, self.scripts[MODIFIED]
        self._refuse_other_file(MODIFIED, script, load(script.implementation), record.vnfd_id)
        instance = v1_objects.instance(context.instance_id, record, context.connection)
        new, paths = context.package(record.vnfd_id), self._arguments(MODIFIED)[CONFIG_PATHS]
        v1_records.check(instance, paths, str(self.folder))
        found = v1_records.work_of(instance, str(self.folder), str(new), paths)
        return None if found is None else Work(*found)

    def call(self, event: str, record: Record, new: Path | None = None) -> Record:  # noqa: ARG002
        """See Drivers; the driver asks the host for the new package."""
        script = self.scripts.get(event)
        if script is None or script.implementation == NOOP or event.endswith(_ROLLBACK):
            return record
        driver = load(script.implementation)
        self._refuse_other_file(event, script, driver, record.vnfd_id)
        host = Host(self.context)
        context = SimpleNamespace(**{v1_host.ATTRIBUTE: host})
        instance = v1_objects.instance(self.context.instance_id, record, self.context.connection)
        arguments = self._arguments(event)
        getattr(driver, event)(context=context, vnf_instance=instance, **arguments)
        written = Records.of_update(host.outcomes[-1]) if host.outcomes else None
        return replace(
            record,
            body=v1_objects.body(instance, record.body, written),
            touched=written.restarted if written else frozenset(),
        )

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
        return {name: v1_objects.request(request), "grant": None, "grant_request": None}

    def _refuse_other_file(
        self, event: str, script: InterfaceScript, driver: Any, vnfd_id: str
    ) -> None:
        """Refuse another driver than the copy in the package that the record names by now: at the
        end of a modification that is the new one, as in Tacker."""
        copy = file_of(event, script, self.context.package(vnfd_id))
        if copy.read_bytes() != Path(inspect.getfile(type(driver))).read_bytes():
            raise PackageError(
                f"{script.file} is not the file of the driver {script.implementation}, as it is "
                f"installed here: put that file into the package with the VNFD {vnfd_id}"
            )


def load(name: str) -> Any:
    """Return the driver with a name.

    :raises DriverError: none is installed, or it cannot be loaded.
    """
    from stevedore import DriverManager  # noqa: PLC0415, slow to load
    from stevedore.exception import NoMatches  # noqa: PLC0415

    _replace_missing_base()
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


def _replace_missing_base() -> None:
    """Provide the one name of Tacker that a driver's file imports, if Tacker is not installed."""
    if _BASE in sys.modules or find_spec("tacker") is not None:
        return
    for name in itertools.accumulate(_BASE.split("."), "{}.{}".format):
        sys.modules.setdefault(name, ModuleType(name))
    base = type("VnflcmMgmtAbstractDriver", (), {"__doc__": "The base of v1 Mgmt Drivers."})
    sys.modules[_BASE].VnflcmMgmtAbstractDriver = base  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Host:
    """This VNFM for the v1 driver; implements :class:`v1_host.Host`."""

    context: OperationContext = field(repr=False)
    outcomes: list[Outcome] = field(default_factory=list)
    """Of the driver's updates."""

    def package_path(self, vnfd_id: str) -> str:
        """See v1_host.Host."""
        return str(self.context.package(vnfd_id))

    def update(self, request: UpdateRequest, vnf_instance: Any) -> Outcome:
        """See v1_host.Host."""
        del vnf_instance  # the context knows its VIM
        context = self.context
        options, cancel, steps = context.service.options, context.cancel, context.steps
        with context.cluster() as cluster:
            outcome = update(request, cluster, options, cancel, steps)
        self.outcomes.append(outcome)
        return outcome

    def change(self, body: Json, request: UpdateRequest, vnf_instance: Any) -> Changed:
        """See v1_host.Host."""
        del vnf_instance  # the context has its record
        context = self.context
        with context.cluster() as cluster:
            return change_by_modify.run(
                body,
                request,
                cluster,
                context.connection,
                context.service.options,
                instance={"id": context.instance_id, **context.record.body},
                cancel=context.cancel,
                progress=context.steps,
                listen=context.steps.script,
            )

    def record_objects(self, vnf_instance: Any, manifests: Iterable[Manifest]) -> None:
        """Do nothing: this VNFM finds them by their label."""

    def vnfc_record(self, vnfc_id: str, vnfc: Vnfc, metadata: Mapping[str, str]) -> Any:
        """See v1_host.Host."""
        return v1_objects.vnfc_record(vnfc_id, vnfc, metadata)
