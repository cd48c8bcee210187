# SPDX-License-Identifier: Apache-2.0
"""``/vnflcm/{v1,v2}/batches``: updates of many VNF instances in waves; an extension of SOL003."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from container_update.model.objects import Json
from container_update.vnfm import batches
from container_update.vnfm.api import models, parts
from container_update.vnfm.http.authentication import user_of
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.database import timestamp
from container_update.vnfm.store.rows import Batch, by_id
from container_update.vnfm.workers import Workers

_LAST = 100


def router(service: ServiceContext, workers: Workers, api: str) -> APIRouter:
    """Return the resource of one of the two APIs."""
    routes = parts.sol_router(api, "batches", "Batches")

    @routes.get("", responses=parts.refusals(), tags=[parts.EXTENSION])
    def list_all() -> list[Json]:
        """Return the last 100 batches of this API, the last one first; an extension of SOL003."""
        last = select(Batch).where(Batch.api == api).order_by(Batch.started.desc(), Batch.id)
        with service.database.reading() as session:
            return [_represent(service, session, row) for row in session.scalars(last.limit(_LAST))]

    @routes.get("/{batch_id}", responses=parts.refusals(404), tags=[parts.EXTENSION])
    def show(batch_id: str) -> Json:
        """Return a batch with its members and their states; an extension of SOL003."""
        with service.database.reading() as session:
            return _represent(service, session, by_id(session, Batch, batch_id, api))

    @routes.post("", status_code=201, responses=parts.refusals(413), tags=[parts.EXTENSION])
    @parts.taking(models.NEW_BATCH[api])
    def create(body: models.RequestBody, http: Request, response: Response) -> Json:
        """Send a request to many instances in waves; an extension of SOL003."""
        with service.database.writing() as session:
            batch = batches.create(service, session, api, body.as_sent(), user_of(http).name)
            session.flush()
            answer = _represent(service, session, batch)
        workers.batch(batch.id)
        response.headers["Location"] = answer["_links"]["self"]["href"]
        return answer

    @routes.post("/{batch_id}/resume", responses=parts.refusals(404, 409), tags=[parts.EXTENSION])
    def resume(batch_id: str) -> Json:
        """Go on with a batch that stopped, and try again what failed; an extension of SOL003."""
        with service.database.writing() as session:
            batch = by_id(session, Batch, batch_id, api, lock=True)
            batches.resume(session, batch)
            answer = _represent(service, session, batch)
        workers.batch(batch.id)
        return answer

    @routes.post("/{batch_id}/cancel", responses=parts.refusals(404, 409), tags=[parts.EXTENSION])
    def cancel(batch_id: str) -> Json:
        """Begin nothing more of a batch; what has begun goes on. An extension of SOL003."""
        with service.database.writing() as session:
            batch = by_id(session, Batch, batch_id, api, lock=True)
            batches.cancel(batch)
            return _represent(service, session, batch)

    return routes


def _represent(service: ServiceContext, session: Session, batch: Batch) -> Json:
    body = batch.body
    return {
        "id": batch.id,
        "state": batch.state,
        "startTime": timestamp(batch.started),
        "stateEnteredTime": timestamp(batch.entered),
        "requestedBy": batch.requested_by,
        "operation": batch.operation,
        **{name: body[name] for name in ("request", "waveSize", "maxFailures", "wave")},
        "why": body.get("why", ""),
        "members": batches.members_of(session, batch),
        "_links": {
            "self": {"href": f"{service.settings.base_url}/vnflcm/{batch.api}/batches/{batch.id}"}
        },
    }
