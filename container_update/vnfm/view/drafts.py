# SPDX-License-Identifier: Apache-2.0
"""Drafts of requests: what can be known of one from the instance and the packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy.orm import Session

from container_update.model.objects import Json
from container_update.model.requests import CONFIG_PATHS, DEF_FILES, UPGRADE_TYPE
from container_update.package.csar import Csar
from container_update.vnfm import instances, packages, vims
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import Instance

_CONFIG = frozenset({"ConfigMap", "Secret"})


def draft(
    service: ServiceContext, session: Session, row: Instance, operation: str, vnfd_id: str
) -> Json:
    """Return the body of a request about an instance, to be completed by a person.

    :param operation: INSTANTIATE, MODIFY_INFO or CHANGE_VNFPKG.
    :param vnfd_id: of the package that the request leads to; '' for INSTANTIATE.
    :raises ProblemError: 422: there is no such package or operation.
    """
    package = packages.of_vnfd(session, vnfd_id or row.vnfd_id)
    with packages.opened(service, package) as files:
        if operation == "INSTANTIATE":
            return _instantiation(files)
        if operation == "MODIFY_INFO":
            return _modification(files, vnfd_id)
        if operation == "CHANGE_VNFPKG":
            vim_type = vims.type_of(instances.vims_of(service, row))
            is_stack = vims.kind_of({"vimType": vim_type}) == vims.OPENSTACK
            return _change(files, vnfd_id, row, is_stack=is_stack)
    raise ProblemError(422, f"operation: there are no drafts of {operation[:64]!r}")


def _instantiation(files: Csar) -> Json:
    params = {DEF_FILES: list(files.manifest_files()), "namespace": "default"}
    flavours = [flavour.id for flavour in files.flavours if flavour.id]
    body: Json = {"flavourId": flavours[0] if flavours else "default"}
    return {**body, "additionalParams": params} if params[DEF_FILES] else body


def _modification(files: Csar, vnfd_id: str) -> Json:
    config = [
        path
        for path in files.manifest_files()
        if any(each.key.kind in _CONFIG for each in files.manifests(path, "default"))
    ]
    body: Json = {"vnfdId": vnfd_id}
    return {**body, "metadata": {CONFIG_PATHS: config}} if config else body


def _change(files: Csar, vnfd_id: str, row: Instance, *, is_stack: bool) -> Json:
    info: Mapping[str, Any] = row.body.get("instantiatedVnfInfo") or {}
    vdus: Iterable[str] = files.vdus(info.get("flavourId"))
    params: Json = {UPGRADE_TYPE: "RollingUpdate"}
    if is_stack:
        params["vdu_params"] = [{"vdu_id": vdu} for vdu in vdus]
    else:
        params[DEF_FILES] = list(files.manifest_files())
    return {"vnfdId": vnfd_id, "additionalParams": params}
