"""``/vnflcm/{v1,v2}/vnf_lcm_op_occs``: operation occurrences, and what may be asked of them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from container_update.model.objects import Json
from container_update.vnfm import operations
from container_update.vnfm.api import representations
from container_update.vnfm.api.attribute_selectors import Attributes
from container_update.vnfm.api.parts import accepted, known_id, listed, refusals, version_of
from container_update.vnfm.lcm.perform import TASKS
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.states import Request as Asked
from container_update.vnfm.store.rows import Operation, Step
from container_update.vnfm.workers import Workers

_ATTRIBUTES = Attributes(
    required=frozenset(
        {"id", "operationState", "stateEnteredTime", "startTime", "vnfInstanceId", "operation",
         "isAutomaticInvocation", "isCancelPending", "_links"}
    ),
    hidden=("operationParams", "error", "resourceChanges", "changedInfo"),
)  # fmt: skip

_ACCEPTED: dict[str, Any] = {
    "status_code": 202,
    "response_class": Response,
    "responses": refusals(404, 409),
}


def router(service: ServiceContext, workers: Workers, api: str) -> APIRouter:
    """Return the resource of one of the two APIs."""
    routes = APIRouter(
        prefix=f"/vnflcm/{api}/vnf_lcm_op_occs",
        tags=[f"Operation occurrences ({api})"],
        dependencies=[Depends(version_of(api))],
    )
    _add_reading(routes, service, api)
    _add_requests(routes, service, workers, api)
    return routes


def _add_reading(routes: APIRouter, service: ServiceContext, api: str) -> None:
    base_url = service.settings.base_url

    @routes.get("", responses=refusals())
    def list_all(request: Request, response: Response) -> list[Json]:
        """Return the operation occurrences of this API, the first ones first."""
        every = select(Operation).where(Operation.api == api)
        with service.database.reading() as session:
            return listed(
                every.order_by(Operation.started, Operation.id),
                lambda query: [
                    representations.operation(row, base_url) for row in session.scalars(query)
                ],
                request,
                response,
                attributes=_ATTRIBUTES,
                page_size=service.settings.page_size,
            )

    @routes.get("/{operation_id}", responses=refusals(404))
    def show(operation_id: str) -> Json:
        """Return an operation occurrence."""
        with service.database.reading() as session:
            return representations.operation(_get(session, api, operation_id), base_url)

    @routes.get("/{operation_id}/progress", responses=refusals(404))
    def progress(operation_id: str) -> Json:
        """How far it is, object by object, and why each restarts; an extension of SOL003."""
        with service.database.reading() as session:
            found = _get(session, api, operation_id)
            steps = session.scalars(
                select(Step).where(Step.operation_id == found.id).order_by(Step.number)
            )
            return representations.progress(found, list(steps))


def _add_requests(routes: APIRouter, service: ServiceContext, workers: Workers, api: str) -> None:
    base_url = service.settings.base_url

    @routes.post("/{operation_id}/retry", **_ACCEPTED)
    def retry(operation_id: str) -> Response:
        """Go on with an operation that is FAILED_TEMP."""
        return begin_again(operation_id, Asked.RETRY)

    @routes.post("/{operation_id}/rollback", **_ACCEPTED)
    def rollback(operation_id: str) -> Response:
        """Undo an operation that is FAILED_TEMP."""
        return begin_again(operation_id, Asked.ROLLBACK)

    def begin_again(operation_id: str, asked: Asked) -> Response:
        with service.database.writing() as session:
            found = _get(session, api, operation_id)
            if asked is Asked.ROLLBACK and TASKS[found.operation].undo is None:
                raise ProblemError(
                    409,
                    f"operation {found.id}: {found.operation} cannot be rolled back: send a "
                    "request to retry or fail",
                )
            operations.ask(service, session, found, asked)
        workers.operation(found.id)
        return accepted(f"{base_url}/vnflcm/{api}/vnf_lcm_op_occs/{found.id}", api)

    @routes.post("/{operation_id}/fail", responses=refusals(404, 409))
    def fail(operation_id: str) -> Json:
        """Give an operation up that is FAILED_TEMP: its instance is free for another one."""
        with service.database.writing() as session:
            found = _get(session, api, operation_id)
            operations.ask(service, session, found, Asked.FAIL)
            return representations.operation(found, base_url)

    @routes.post("/{operation_id}/cancel", status_code=202, responses=refusals(404, 409))
    def cancel(operation_id: str) -> None:
        """Not supported: always refused."""
        with service.database.reading() as session:
            found = _get(session, api, operation_id)
        raise ProblemError(
            409,
            f"operation {found.id}: cancel is not supported: wait until it ends; one that failed "
            "can be rolled back",
        )


def _get(session: Session, api: str, operation_id: str) -> Operation:
    found = session.get(Operation, known_id(operation_id, "operation"))
    if found is None or found.api != api:
        raise ProblemError(404, f"operation {operation_id}: there is none with this id")
    return found
