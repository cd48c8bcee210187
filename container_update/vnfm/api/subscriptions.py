# SPDX-License-Identifier: Apache-2.0
"""``/vnflcm/{v1,v2}/subscriptions`` and ``/vnfpkgm/v1/subscriptions``: clients to notify of changes
of instances and packages."""

from __future__ import annotations

import uuid

from fastapi import APIRouter, Depends, Response
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from container_update.model.objects import Json
from container_update.vnfm.api import models, parts, representations
from container_update.vnfm.api.queries.lists import Attributes, Page, TableQuery
from container_update.vnfm.notify import callbacks
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.database import now
from container_update.vnfm.store.rows import FULL, Subscription, by_id

_ATTRIBUTES = Attributes(required=frozenset({"id", "callbackUri", "_links"}))


def router(service: ServiceContext, api: str) -> APIRouter:
    """Return the resource of one of the APIs."""
    routes = parts.sol_router(api, "subscriptions", "Subscriptions")
    resource = representations.subscription(service.settings.base_url)
    listing = TableQuery(resource, Subscription.created, Subscription.id, _ATTRIBUTES)

    @routes.post(
        "",
        status_code=201,
        responses=parts.refusals(409, 413, 429),
        dependencies=[Depends(service.callback_tests.count)],
    )
    @parts.taking(models.NEW_SUBSCRIPTION[api])
    async def create(body: models.NewSubscription, response: Response) -> Json:
        """Subscribe to notifications; the callback URI is tested first."""
        await run_in_threadpool(_look_for_room, service)
        await callbacks.check_callback(service.settings, body.callbackUri, body.authentication)
        answer = await run_in_threadpool(store, body)
        response.headers["Location"] = answer["_links"]["self"]["href"]
        return answer

    def store(body: models.NewSubscription) -> Json:
        subscription = Subscription(
            id=str(uuid.uuid4()),
            created=now(),
            api=api,
            callback_uri=body.callbackUri,
            filter=body.filter,
            verbosity=getattr(body, "verbosity", FULL),
            sealed=service.vault.seal(body.authentication) if body.authentication else None,
        )
        with service.database.writing() as session:
            _require_room(service, session)
            session.add(subscription)
        return resource.represent(subscription)

    @routes.get("", responses=parts.refusals())
    def list_all(page: Page) -> list[Json]:
        """Return the subscriptions of this API."""
        return page.read(service, select(Subscription).where(Subscription.api == api), listing)

    @routes.get("/{subscription_id}", responses=parts.refusals(404))
    def show(subscription_id: str) -> Json:
        """Return a subscription."""
        with service.database.reading() as session:
            return resource.represent(by_id(session, Subscription, subscription_id, api))

    @routes.delete("/{subscription_id}", status_code=204, responses=parts.refusals(404))
    def delete(subscription_id: str) -> None:
        """End a subscription; notifications that are not delivered yet are dropped."""
        with service.database.writing() as session:
            session.delete(by_id(session, Subscription, subscription_id, api))

    return routes


def _look_for_room(service: ServiceContext) -> None:
    with service.database.reading() as session:
        _require_room(service, session)


def _require_room(service: ServiceContext, session: Session) -> None:
    """Raise ProblemError 409 if there are as many subscriptions as are allowed."""
    most = service.settings.subscriptions
    if (session.scalar(select(func.count(Subscription.id))) or 0) >= most:
        raise ProblemError(
            409,
            f"there are {most} subscriptions, as many as [vnfm] subscriptions allows: delete one "
            "that no subscriber needs",
        )
