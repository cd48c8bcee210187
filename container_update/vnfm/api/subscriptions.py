"""``/vnflcm/{v1,v2}/subscriptions``: who is notified of lifecycle changes."""

from __future__ import annotations

import uuid

from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from container_update.model.objects import Json
from container_update.vnfm.api import models, representations
from container_update.vnfm.api.attribute_selectors import Attributes
from container_update.vnfm.api.parts import known_id, listed, refusals, version_of
from container_update.vnfm.notify import callback_test, subscription_filters
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.database import now
from container_update.vnfm.store.rows import Subscription


def router(service: ServiceContext, api: str) -> APIRouter:
    """Return the resource of one of the two APIs."""
    routes = APIRouter(
        prefix=f"/vnflcm/{api}/subscriptions",
        tags=[f"Subscriptions ({api})"],
        dependencies=[Depends(version_of(api))],
    )
    base_url = service.settings.base_url

    @routes.post("", status_code=201, responses=refusals(413))
    def create(body: models.NewSubscription, response: Response) -> Json:
        """Subscribe to notifications; the callback URI is asked whether it answers."""
        subscription_filters.check(body.filter)
        callback_test.check_callback(service.settings, body.callbackUri, body.authentication)
        created = Subscription(
            id=str(uuid.uuid4()),
            created=now(),
            api=api,
            callback_uri=body.callbackUri,
            filter=body.filter,
            sealed=service.vault.seal(body.authentication) if body.authentication else None,
        )
        with service.database.writing() as session:
            session.add(created)
        answer = representations.subscription(created, base_url)
        response.headers["Location"] = answer["_links"]["self"]["href"]
        return answer

    @routes.get("", responses=refusals())
    def list_all(request: Request, response: Response) -> list[Json]:
        """Return the subscriptions of this API."""
        every = select(Subscription).where(Subscription.api == api)
        with service.database.reading() as session:
            return listed(
                every.order_by(Subscription.created, Subscription.id),
                lambda query: [
                    representations.subscription(row, base_url) for row in session.scalars(query)
                ],
                request,
                response,
                attributes=Attributes(),
                page_size=service.settings.page_size,
            )

    @routes.get("/{subscription_id}", responses=refusals(404))
    def show(subscription_id: str) -> Json:
        """Return a subscription."""
        with service.database.reading() as session:
            return representations.subscription(_get(session, api, subscription_id), base_url)

    @routes.delete("/{subscription_id}", status_code=204, responses=refusals(404))
    def delete(subscription_id: str) -> None:
        """End a subscription; what is not delivered yet is dropped."""
        with service.database.writing() as session:
            session.delete(_get(session, api, subscription_id))

    return routes


def _get(session: Session, api: str, subscription_id: str) -> Subscription:
    found = session.get(Subscription, known_id(subscription_id, "subscription"))
    if found is None or found.api != api:
        raise ProblemError(404, f"subscription {subscription_id}: there is none with this id")
    return found
