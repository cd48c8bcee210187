"""``/vnflcm/{v1,v2}/vnf_instances``: VNF instances and what may be asked of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from container_update.model.errors import PackageError
from container_update.model.objects import Json
from container_update.operations.change_request import ChangeRequest
from container_update.vnfm import instances, operations, packages, vims
from container_update.vnfm.api import models, representations
from container_update.vnfm.api.attribute_selectors import Attributes
from container_update.vnfm.api.parts import accepted, known_id, listed, refusals, version_of
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import Instance
from container_update.vnfm.workers import Workers

_ATTRIBUTES = Attributes(
    required=frozenset(
        {"id", "vnfdId", "vnfProvider", "vnfProductName", "vnfSoftwareVersion", "vnfdVersion",
         "instantiationState", "_links"}
    ),
    hidden=("vnfConfigurableProperties", "vimConnectionInfo", "instantiatedVnfInfo", "metadata",
            "extensions"),
)  # fmt: skip


def router(service: ServiceContext, workers: Workers, api: str) -> APIRouter:
    """Return the resource of one of the two APIs."""
    routes = APIRouter(
        prefix=f"/vnflcm/{api}/vnf_instances",
        tags=[f"VNF instances ({api})"],
        dependencies=[Depends(version_of(api))],
    )
    _add_resource(routes, service, api)
    starter = _Starter(service, workers, api)
    (_add_v1 if api == "v1" else _add_v2)(routes, starter)
    _add_terminate(routes, starter)
    return routes


def _add_resource(routes: APIRouter, service: ServiceContext, api: str) -> None:
    @routes.post("", status_code=201, responses=refusals(409, 413))
    def create(body: models.CreateVnf, response: Response) -> Json:
        """Create a VNF instance of an onboarded package."""
        with service.database.writing() as session:
            created = instances.create(service, session, api, body.as_sent())
            answer = representations.instance(created, None, service.settings.base_url)
        response.headers["Location"] = answer["_links"]["self"]["href"]
        return answer

    @routes.get("", responses=refusals())
    def list_all(request: Request, response: Response) -> list[Json]:
        """Return the VNF instances of this API."""
        every = select(Instance).where(Instance.api == api)
        with service.database.reading() as session:
            return listed(
                every.order_by(Instance.created, Instance.id),
                lambda query: [_shown(service, row) for row in session.scalars(query)],
                request,
                response,
                attributes=_ATTRIBUTES,
                page_size=service.settings.page_size,
            )

    @routes.get("/{instance_id}", responses=refusals(404))
    def show(instance_id: str) -> Json:
        """Return a VNF instance."""
        with service.database.reading() as session:
            return _shown(service, instances.get(session, api, _id(instance_id)))

    @routes.delete("/{instance_id}", status_code=204, responses=refusals(404, 409))
    def delete(instance_id: str) -> None:
        """Delete a VNF instance that is not instantiated."""
        with service.database.writing() as session:
            found = instances.get(session, api, _id(instance_id), lock=True)
            instances.delete(service, session, found)


def _id(text: str) -> str:
    return known_id(text, "VNF instance")


def _shown(service: ServiceContext, row: Instance) -> Json:
    return representations.instance(row, instances.vims_of(service, row), service.settings.base_url)


class _Starter:
    """Starts lifecycle operations."""

    def __init__(self, service: ServiceContext, workers: Workers, api: str) -> None:
        self.service = service
        self.workers = workers
        self.api = api

    def start(
        self,
        instance_id: str,
        operation: str,
        request: Json,
        *,
        instantiated: bool | None,
        vnfd_id: str | None = None,
    ) -> Response:
        """Write the operation down, queue it, answer 202.

        :param instantiated: what the instance has to be; None: either.
        :param vnfd_id: the package that it leads to.
        """
        service = self.service
        with service.database.writing() as session:
            instance = instances.get(session, self.api, _id(instance_id), lock=True)
            if instantiated is not None and instance.instantiated is not instantiated:
                expected = "INSTANTIATED" if instantiated else "NOT_INSTANTIATED"
                raise ProblemError(
                    409,
                    f"VNF instance {instance.id}: {operation} is possible only while it is "
                    f"{expected}",
                )
            if request.get("vimConnectionInfo") and operation == "MODIFY_INFO":
                _refuse_vims(instance)
            if operation == "CHANGE_VNFPKG":
                self._refuse_wrong_change(session, instance, request)
            if vnfd_id is not None:
                packages.of_vnfd(session, vnfd_id)
            hidden: Collection[str] = ()
            if operation == "INSTANTIATE":
                hidden = self._hidden(session, instance, self._vim(session, request), request)
            begun = operations.begin(
                service,
                session,
                instance,
                operation,
                request=request,
                vnfd_id=vnfd_id,
                hidden=hidden,
            )
        self.workers.operation(begun.id)
        root = f"{service.settings.base_url}/vnflcm/{self.api}"
        return accepted(f"{root}/vnf_lcm_op_occs/{begun.id}", self.api)

    def modify(self, instance_id: str, body: models.ModifyVnf) -> Response:
        """Start a modification, to another package or of the record alone."""
        sent = body.as_sent()
        return self.start(
            instance_id, "MODIFY_INFO", sent, instantiated=None, vnfd_id=sent.get("vnfdId")
        )

    def _refuse_wrong_change(self, session: Session, instance: Instance, request: Json) -> None:
        """ProblemError 422 where a change is not asked for as the instance's VIM needs it."""
        try:
            vim = vims.connection(self.service, session, instances.vims_of(self.service, instance))
            ChangeRequest.of(request, vim["vimType"])
        except PackageError as error:
            raise ProblemError(422, str(error)) from error

    def _vim(self, session: Session, request: Json) -> Json:
        """Return the VIM that an instantiation names; ProblemError 422 where it cannot be made
        there."""
        try:
            found = vims.connection(self.service, session, request.get("vimConnectionInfo"))
        except PackageError as error:
            raise ProblemError(422, str(error)) from error
        if self.api == "v1" and vims.kind_of(found) == vims.OPENSTACK:
            raise ProblemError(
                422, "vimConnectionInfo: VNFs in an OpenStack are made in the v2 API: use it"
            )
        return found

    def _hidden(
        self, session: Session, instance: Instance, vim: Json, request: Json
    ) -> frozenset[str]:
        """Return the parameters that a stack's templates hide."""
        if vims.kind_of(vim) != vims.OPENSTACK:
            return frozenset()
        flavour_id = str(request.get("flavourId"))
        return packages.hidden_parameters(self.service, session, instance.vnfd_id, flavour_id)


def _refuse_vims(instance: Instance) -> None:
    if not instance.instantiated:
        raise ProblemError(
            409,
            f"VNF instance {instance.id}: vimConnectionInfo can be modified once it is "
            "INSTANTIATED: leave it out, or name the VIM when instantiating",
        )


_ANSWERS: dict[str, Any] = {
    "status_code": 202,
    "response_class": Response,
    "responses": refusals(404, 409, 413),
}


def _add_v1(routes: APIRouter, starter: _Starter) -> None:
    @routes.post("/{instance_id}/instantiate", **_ANSWERS)
    def instantiate(instance_id: str, body: models.InstantiateVnfV1) -> Response:
        """Instantiate a VNF instance."""
        return starter.start(instance_id, "INSTANTIATE", body.as_sent(), instantiated=False)

    @routes.patch("/{instance_id}", **_ANSWERS)
    def modify(instance_id: str, body: models.ModifyVnfV1) -> Response:
        """Modify a VNF instance; with a vnfdId it may be moved to another package."""
        return starter.modify(instance_id, body)


def _add_v2(routes: APIRouter, starter: _Starter) -> None:
    @routes.post("/{instance_id}/instantiate", **_ANSWERS)
    def instantiate(instance_id: str, body: models.InstantiateVnfV2) -> Response:
        """Instantiate a VNF instance."""
        return starter.start(instance_id, "INSTANTIATE", body.as_sent(), instantiated=False)

    @routes.patch("/{instance_id}", **_ANSWERS)
    def modify(instance_id: str, body: models.ModifyVnfV2) -> Response:
        """Modify a VNF instance; with a vnfdId it may be moved to another package."""
        return starter.modify(instance_id, body)

    @routes.post("/{instance_id}/change_vnfpkg", **_ANSWERS)
    def change_vnfpkg(instance_id: str, body: models.ChangeVnfPkg) -> Response:
        """Change the package of a VNF instance: Blue-Green or rolling."""
        return starter.start(
            instance_id, "CHANGE_VNFPKG", body, instantiated=True, vnfd_id=body.get("vnfdId")
        )


def _add_terminate(routes: APIRouter, starter: _Starter) -> None:
    @routes.post("/{instance_id}/terminate", **_ANSWERS)
    def terminate(instance_id: str, body: models.TerminateVnf) -> Response:
        """Terminate a VNF instance."""
        return starter.start(instance_id, "TERMINATE", body.as_sent(), instantiated=True)
