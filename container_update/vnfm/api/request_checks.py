# SPDX-License-Identifier: Apache-2.0
"""Checks of a lifecycle request against the package and the record, before it is accepted.

Every function raises ProblemError 422 (or a PackageError, which becomes one) with what is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy.orm import Session

from container_update.engine.goals.change_request import LINKS, ChangeRequest
from container_update.engine.read_packages import check_listed, check_packages, packages_of
from container_update.model.errors import PackageError, PlanError
from container_update.model.objects import Json
from container_update.model.requests import DEF_FILES, Placing
from container_update.package import csar, fetch
from container_update.planning.upkeep import workloads_of
from container_update.vnfm import instances, packages, vims
from container_update.vnfm.lcm import records
from container_update.vnfm.lcm.operation_context import VnfRecord
from container_update.vnfm.lcm.tasks import vnfc_entries
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import Instance, Package


def check_instantiation(
    service: ServiceContext, session: Session, instance: Instance, request: Mapping[str, Any]
) -> frozenset[str]:
    """Check what can be known of an instantiation without asking the VIM.

    :returns: the hidden parameters of the VNF's Heat templates.
    """
    flavour_id, params = str(request["flavourId"]), request.get("additionalParams") or {}
    with packages.open_package(service, packages.with_vnfd(session, instance.vnfd_id)) as package:
        known = {flavour.id: flavour for flavour in package.flavours if flavour.id}
        if known and flavour_id not in known:
            raise PackageError(
                f"flavourId: expected a deployment flavour of the VNFD (it has {', '.join(known)}),"
                f" found {flavour_id}"
            )
        scaling = packages.scaling_of(package.flavours, flavour_id)
        level = scaling.level(request.get("instantiationLevelId"))
        vim = vims.connection(service, session, request.get("vimConnectionInfo"))
        if vims.kind_of(vim) != vims.OPENSTACK:
            for name in LINKS:
                if request.get(name):
                    raise PackageError(
                        f"{name}: is for VNFs in an OpenStack only: leave it out of the request"
                    )
            check_listed(params.get(DEF_FILES) or (), package)
            return frozenset()
        if instance.api == "v1":
            raise PackageError(
                "vimConnectionInfo: VNFs in an OpenStack are made in the v2 API: use it"
            )
        from container_update.openstack import instantiate  # noqa: PLC0415, an extra
        from container_update.openstack.templates.links import StackLinks  # noqa: PLC0415, an extra

        stack = instantiate.stack_of(
            package, flavour_id, params, links=StackLinks.of(request), sizes=level.instances
        )
        return stack.hidden


def check_heal(instance: Instance, request: Mapping[str, Any]) -> None:
    """Check that the record has the VNFCs that are to be healed."""
    known = vnfc_entries(instance.api, instance.body.get("instantiatedVnfInfo") or {})
    for vnfc_id in request.get("vnfcInstanceId") or ():
        if vnfc_id not in known:
            attribute = "vnfcResourceInfo" if instance.api == "v1" else "vnfcInfo"
            raise PackageError(
                f"vnfcInstanceId: expected ids of the instance's {attribute} "
                f"({', '.join(known) or 'it has none'}), found {vnfc_id}"
            )


def check_scaling(
    service: ServiceContext, session: Session, instance: Instance, request: Mapping[str, Any]
) -> None:
    """Check that the VNFD has the aspect, and allows the level and the numbers of instances, and
    that what the package makes can have these numbers."""
    record = VnfRecord.of(instance)
    vim = vims.connection(service, session, instances.vims_of(service, instance))
    with packages.open_package(service, packages.with_vnfd(session, instance.vnfd_id)) as package:
        scaling = packages.scaling_of(package.flavours, record.flavour_id)
        _, numbers = records.scale_info(scaling, record.info, request)
        try:
            _check_scalable(package, record, vims.kind_of(vim), numbers)
        except PlanError as error:
            raise ProblemError(422, str(error)) from error


def _check_scalable(
    package: csar.Csar, record: VnfRecord, kind: str | None, vdus: Iterable[str]
) -> None:
    """Raise PlanError for the first VDU that has nothing that can be scaled."""
    if kind == vims.OPENSTACK:
        from container_update.openstack import instantiate  # noqa: PLC0415, an extra

        instantiate.refuse_ungrouped(package, record.flavour_id, vdus)
    elif not any(map(fetch.is_url, record.def_files)):  # nothing is fetched before the answer
        placing = Placing(
            def_files=record.def_files, namespace=record.namespace, one_namespace=True
        )
        read = packages_of(package, placing)
        for vdu in vdus:
            any(workloads_of(vdu, read))


def check_modification(
    service: ServiceContext, session: Session, instance: Instance, request: Json
) -> None:
    """Check that the VNF stays in its namespace, what changes of its VIMs, and that the record has
    the VNFCs that are modified."""
    _check_namespace(instance, request)
    _check_vnfcs(instance, request)
    if not any(map(request.get, ("vimConnectionInfo", "vimConnectionInfoDeleteIds"))):
        return
    if not instance.instantiated:
        raise ProblemError(
            409,
            f"VNF instance {instance.id}: vimConnectionInfo can be modified once it is "
            "INSTANTIATED: leave it out, or name the VIM when instantiating",
        )
    recorded = instances.vims_of(service, instance)
    vims.checked_modification(service, session, recorded, request)


def _check_vnfcs(instance: Instance, request: Mapping[str, Any]) -> None:
    info = instance.body.get("instantiatedVnfInfo") or {}
    known = [str(vnfc["id"]) for vnfc in info.get("vnfcInfo") or ()]
    for number, entry in enumerate(request.get("vnfcInfoModifications") or ()):
        if entry["id"] not in known:
            raise PackageError(
                f"vnfcInfoModifications.{number}.id: expected an id of the instance's vnfcInfo "
                f"({', '.join(known) or 'it has none'}), found {entry['id']}"
            )


def _check_namespace(instance: Instance, request: Mapping[str, Any]) -> None:
    """Check that a modify request leaves the namespace, recorded where Tacker records it."""
    info = instance.body.get("instantiatedVnfInfo") or {}
    recorded = (instance.body if instance.api == "v1" else info).get("metadata") or {}
    patch = request.get("metadata") or {}
    if not instance.instantiated or "namespace" not in recorded.keys() & patch.keys():
        return
    if patch["namespace"] != recorded["namespace"]:
        raise ProblemError(
            422,
            f"metadata.namespace: expected {recorded['namespace']}, in which the VNF was "
            "instantiated: leave it out; to move the VNF, terminate it and instantiate it in the "
            "other namespace",
        )


def check_change(
    service: ServiceContext, session: Session, instance: Instance, request: Json
) -> None:
    """Check what can be known of a request to change the package without asking the VIM."""
    recorded = instances.vims_of(service, instance)
    change = ChangeRequest.of(request, vims.type_of(recorded))
    vim = vims.checked_modification(service, session, recorded, request)
    change.check_vim(vim["vimType"])
    package = packages.of_vnfd(session, change.vnfd_id)
    info = instance.body.get("instantiatedVnfInfo") or {}
    flavour_id = info.get("flavourId") if vims.kind_of(vim) == vims.OPENSTACK else None
    running = packages.with_vnfd(session, instance.vnfd_id)
    with (
        packages.open_package(service, package) as new,
        packages.open_package(service, running) as old,
    ):
        check_packages(change, new, old)
        if vims.kind_of(vim) != vims.OPENSTACK:
            check_listed(change.def_files, new)
        change.check_vdus(new.vdus(flavour_id), vim["vimType"])


_INSTANTIATED: Mapping[str, bool] = {
    "INSTANTIATE": False,
    **dict.fromkeys(("TERMINATE", "HEAL", "SCALE", "CHANGE_VNFPKG"), True),
}
"""Whether an instance has to be INSTANTIATED for an operation; a modification is for all."""


def check_request(
    service: ServiceContext, session: Session, instance: Instance, operation: str, request: Json
) -> tuple[Json, frozenset[str]]:
    """Check that an instance is in the state that an operation is for, the request of it, and that
    the package that it leads to is there.

    :returns: the request, with its package named by the VNFD, and with its VIM; and the names of
        the parameters whose values are not shown.
    """
    if (needed := _INSTANTIATED.get(operation, instance.instantiated)) != instance.instantiated:
        expected = "INSTANTIATED" if needed else "NOT_INSTANTIATED"
        raise ProblemError(
            409, f"VNF instance {instance.id}: {operation} is possible only while it is {expected}"
        )
    hidden: frozenset[str] = frozenset()
    if operation == "INSTANTIATE":
        hidden = check_instantiation(service, session, instance, request)
        request = _with_vim(service, session, instance, request)
    elif operation == "HEAL":
        check_heal(instance, request)
    elif operation == "SCALE":
        check_scaling(service, session, instance, request)
    elif operation == "MODIFY_INFO":
        check_modification(service, session, instance, request)
        request = _with_vnfd_id(session, request)
    elif operation == "CHANGE_VNFPKG":
        check_change(service, session, instance, request)
    if request.get("vnfdId") is not None:
        packages.of_vnfd(session, request["vnfdId"])
    return request, hidden


def _with_vim(service: ServiceContext, session: Session, instance: Instance, request: Json) -> Json:
    """Return an instantiation that names its VIM, in case another one becomes the default."""
    if request.get("vimConnectionInfo"):
        return request
    default = vims.connection(service, session, None)
    entry = {name: default[name] for name in ("vimId", "vimType")}
    named = [{"id": "default", **entry}] if instance.api == "v1" else {"default": entry}
    return {**request, "vimConnectionInfo": named}


def _with_vnfd_id(session: Session, request: Json) -> Json:
    """Return a modify request that names its package by the VNFD, as v1 also takes vnfPkgId."""
    package_id = request.get("vnfPkgId")
    if package_id is None or request.get("vnfdId") is not None:
        return request
    package = session.get(Package, package_id)
    if package is None or package.vnfd_id is None:
        raise ProblemError(422, f"vnfPkgId: expected an onboarded package, found {package_id}")
    return {**request, "vnfdId": package.vnfd_id}
