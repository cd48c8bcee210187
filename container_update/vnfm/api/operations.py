# SPDX-License-Identifier: Apache-2.0
"""``/vnflcm/{v1,v2}/vnf_lcm_op_occs``: operation occurrences and requests about them."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response
from sqlalchemy import select

from container_update.model.objects import Json
from container_update.vnfm import operations, states
from container_update.vnfm.api import models, parts, representations
from container_update.vnfm.api.queries.lists import Attributes, Page, TableQuery
from container_update.vnfm.lcm import tasks
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.states import Request
from container_update.vnfm.store.rows import OperationRow, StepRow, by_id
from container_update.vnfm.workers import Workers

_ATTRIBUTES = Attributes(
    required=frozenset(
        {"id", "operationState", "stateEnteredTime", "startTime", "vnfInstanceId", "operation",
         "isAutomaticInvocation", "isCancelPending", "_links"}
    ),
    hidden=("operationParams", "error", "resourceChanges", "changedInfo",
            "modificationsTriggeredByVnfPkgChange"),
)  # fmt: skip


def router(service: ServiceContext, workers: Workers, api: str) -> APIRouter:
    """Return the resource of one of the two APIs."""
    routes = parts.sol_router(api, "vnf_lcm_op_occs", "Operation occurrences")
    resource = representations.operation(service.settings.base_url)
    listing = TableQuery(resource, OperationRow.started, OperationRow.id, _ATTRIBUTES)

    @routes.get("", responses=parts.refusals())
    def list_all(page: Page) -> list[Json]:
        """Return the operation occurrences of this API, the oldest first."""
        return page.read(service, select(OperationRow).where(OperationRow.api == api), listing)

    @routes.get("/{operation_id}", responses=parts.refusals(404))
    def show(operation_id: str) -> Json:
        """Return an operation occurrence."""
        with service.database.reading() as session:
            return resource.represent(by_id(session, OperationRow, operation_id, api))

    @routes.get("/{operation_id}/progress", responses=parts.refusals(404), tags=[parts.EXTENSION])
    def progress(operation_id: str) -> Json:
        """Return the progress of each object, and why it restarts; an extension of SOL003."""
        with service.database.reading() as session:
            operation = by_id(session, OperationRow, operation_id, api)
            steps = (
                select(StepRow).where(StepRow.operation_id == operation.id).order_by(StepRow.number)
            )
            return representations.progress(operation, session.scalars(steps))

    @routes.post("/{operation_id}/retry", **parts.accepting(404, 409))
    def retry(operation_id: str) -> Response:
        """Resume an operation that is FAILED_TEMP."""
        return begin_again(operation_id, Request.RETRY)

    @routes.post("/{operation_id}/rollback", **parts.accepting(404, 409))
    def rollback(operation_id: str) -> Response:
        """Undo an operation that is FAILED_TEMP."""
        return begin_again(operation_id, Request.ROLLBACK)

    @routes.post("/{operation_id}/promote", **parts.accepting(404, 409), tags=[parts.EXTENSION])
    def promote(operation_id: str) -> Response:
        """Let a change go on that waits for a person; an extension of SOL003."""
        return begin_again(operation_id, Request.PROMOTE)

    @routes.post("/{operation_id}/abort", **parts.accepting(404, 409), tags=[parts.EXTENSION])
    def abort(operation_id: str) -> Response:
        """Undo a change that waits for a person; an extension of SOL003."""
        return begin_again(operation_id, Request.ABORT)

    def begin_again(operation_id: str, request: Request) -> Response:
        with service.database.writing() as session:
            operation = by_id(session, OperationRow, operation_id, api)
            operations.apply_request(service, session, operation, request)
        workers.operation(operation.id)
        return parts.accept_operation(service, operation)

    @routes.post(
        "/{operation_id}/fail",
        responses=parts.refusals(404, 409, 429),
        dependencies=[Depends(service.vim_requests.count)],
    )
    def fail(operation_id: str) -> Json:
        """Give up an operation that is FAILED_TEMP: its instance is free for another one."""
        with service.database.reading() as session:
            operation = by_id(session, OperationRow, operation_id, api)
        is_allowed = Request.FAIL in states.allowed_to(operation)
        left = tasks.left_by(service, operation) if is_allowed else None
        with service.database.writing() as session:
            operation = by_id(session, OperationRow, operation_id, api)
            operations.apply_request(service, session, operation, Request.FAIL, left=left)
            return resource.represent(operation)

    @routes.post("/{operation_id}/cancel", **parts.accepting(404, 409))
    def cancel(operation_id: str, body: models.CancelOperation | None = None) -> Response:
        """Cancel an operation that has not begun (it is then ROLLED_BACK), or stop one that has: it
        undoes what it wrote, and is FAILED_TEMP then."""
        with service.database.writing() as session:
            operation = by_id(session, OperationRow, operation_id, api)
            mode = body.cancelMode if body else "FORCEFUL"
            operations.apply_request(service, session, operation, Request.CANCEL, cancel_mode=mode)
        workers.cancel(operation.id)
        return parts.accept_operation(service, operation)

    return routes
