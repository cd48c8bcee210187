# SPDX-License-Identifier: Apache-2.0
"""``/v1.0/vims``: registered VIMs, for ``openstack vim`` (Tacker's legacy API)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from sqlalchemy import select
from sqlalchemy.orm import Session

from container_update.model.objects import Json
from container_update.vnfm import vims
from container_update.vnfm.api import models, parts, representations
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import VimRow, by_id


def router(service: ServiceContext) -> APIRouter:
    """Return the resource; the client ends its paths with ``.json``."""
    asking = [Depends(parts.check_accept), Depends(service.vim_requests.count)]
    routes = APIRouter(prefix="/v1.0", tags=["VIMs"], dependencies=asking)

    def represent(rows: Sequence[VimRow]) -> list[Json]:
        statuses = vims.statuses(service, rows)
        return [representations.vim(row, statuses[row.id]) for row in rows]

    @routes.post("/vims.json", status_code=201, responses=parts.refusals(409, 413, 429))
    @routes.post("/vims", status_code=201, responses=parts.refusals(409, 413, 429))
    def register(body: models.NewVim) -> dict[str, Json]:
        """Register a VIM."""
        with parts.unprocessable(service):
            vims.require(body.vim.type)
        with service.database.writing() as session:
            service.database.take_turns(session)  # one of them may be the default
            vim = vims.register(service, session, body.vim.model_dump(exclude_none=True))
        return {"vim": represent([vim])[0]}

    @routes.get("/vims.json", responses=parts.refusals(429))
    @routes.get("/vims", responses=parts.refusals(429))
    def list_all(
        vim_id: Annotated[str | None, Query(alias="id", **parts.QUERY_TEXT)] = None,
        name: Annotated[str | None, Query(**parts.QUERY_TEXT)] = None,
    ) -> dict[str, list[Json]]:
        """Return the registered VIMs; ``id`` and ``name`` in the query select one."""
        given = {VimRow.id: vim_id, VimRow.name: name}
        wanted = (column == value for column, value in given.items() if value is not None)
        query = select(VimRow).where(*wanted).order_by(VimRow.created, VimRow.id)
        with service.database.reading() as session:
            rows = session.scalars(query).all()
        return {"vims": represent(rows)}

    @routes.get("/vims/{vim_id}", responses=parts.refusals(404, 429))
    def show(vim_id: str) -> dict[str, Json]:
        """Return a registered VIM, without its credentials."""
        with service.database.reading() as session:
            vim = _get(session, vim_id)
        return {"vim": represent([vim])[0]}

    @routes.put("/vims/{vim_id}", responses=parts.refusals(404, 409, 413, 429))
    def change(vim_id: str, body: models.ChangedVim) -> dict[str, Json]:
        """Change a registered VIM."""
        with service.database.writing() as session, parts.unprocessable(service):
            service.database.take_turns(session)
            vim = _get(session, vim_id)
            vims.change(service, session, vim, body.vim.as_sent())
        return {"vim": represent([vim])[0]}

    @routes.delete("/vims/{vim_id}", status_code=204, responses=parts.refusals(404, 429))
    def delete(vim_id: str) -> None:
        """Delete a VIM; instances that name it cannot be reached any more."""
        with service.database.writing() as session:
            session.delete(_get(session, vim_id))

    return routes


def _get(session: Session, vim_id: str) -> VimRow:
    return by_id(session, VimRow, vim_id.removesuffix(".json"))
