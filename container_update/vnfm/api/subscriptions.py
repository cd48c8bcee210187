"""``/vnflcm/{v1,v2}/subscriptions``: clients to notify of lifecycle changes."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from fastapi import APIRouter, Response
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from container_update.model.objects import Json
from container_update.vnfm.api import models, parts, representations
from container_update.vnfm.api.lists import Listing, Page, Text
from container_update.vnfm.notify import callbacks, subscription_filters
from container_update.vnfm.problems import ProblemError
from container_update.vnfm.queries import by_id
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.database import now
from container_update.vnfm.store.rows import FULL, Subscription


def router(service: ServiceContext, api: str) -> APIRouter:
    """Return the resource of one of the two APIs."""
    routes = parts.lcm_router(api, "subscriptions", "Subscriptions")
    base_url = service.settings.base_url
    listing = Listing(
        lambda _, row: representations.subscription(row, base_url),
        Subscription.created,
        Subscription.id,
        columns={"id": Text(Subscription.id)},
    )

    def subscribe(body: models.NewSubscription, verbosity: str, response: Response) -> Json:
        subscription_filters.check(body.filter)
        with service.database.reading() as session:
            _require_room(service, session)
        callbacks.check_callback(service.settings, body.callbackUri, body.authentication)
        subscription = Subscription(
            id=str(uuid.uuid4()),
            created=now(),
            api=api,
            callback_uri=body.callbackUri,
            filter=body.filter,
            verbosity=verbosity,
            sealed=service.vault.seal(body.authentication) if body.authentication else None,
        )
        with service.database.writing() as session:
            _require_room(service, session)
            session.add(subscription)
        answer = representations.subscription(subscription, base_url)
        response.headers["Location"] = answer["_links"]["self"]["href"]
        return answer

    (_add_v1 if api == "v1" else _add_v2)(routes, subscribe)

    @routes.get("", responses=parts.refusals())
    def list_all(page: Page) -> list[Json]:
        """Return the subscriptions of this API."""
        return page.read(service, select(Subscription).where(Subscription.api == api), listing)

    @routes.get("/{subscription_id}", responses=parts.refusals(404))
    def show(subscription_id: str) -> Json:
        """Return a subscription."""
        with service.database.reading() as session:
            row = by_id(session, Subscription, subscription_id, api)
            return representations.subscription(row, base_url)

    @routes.delete("/{subscription_id}", status_code=204, responses=parts.refusals(404))
    def delete(subscription_id: str) -> None:
        """End a subscription; what is not delivered yet is dropped."""
        with service.database.writing() as session:
            session.delete(by_id(session, Subscription, subscription_id, api))

    return routes


def _require_room(service: ServiceContext, session: Session) -> None:
    """Raise ProblemError 409 if there are as many subscriptions as are allowed."""
    most = service.settings.subscriptions
    if (session.scalar(select(func.count(Subscription.id))) or 0) >= most:
        raise ProblemError(
            409,
            f"there are {most} subscriptions, as many as [vnfm] subscriptions allows: delete one "
            "that nobody needs",
        )


_Subscribe = Callable[[models.NewSubscription, str, Response], Json]
_CREATING: Json = {"status_code": 201, "responses": parts.refusals(409, 413)}


def _add_v1(routes: APIRouter, subscribe: _Subscribe) -> None:
    @routes.post("", **_CREATING)
    def create(body: models.NewSubscription, response: Response) -> Json:
        """Subscribe to notifications; the callback URI is tested first."""
        return subscribe(body, FULL, response)


def _add_v2(routes: APIRouter, subscribe: _Subscribe) -> None:
    @routes.post("", **_CREATING)
    def create(body: models.NewSubscriptionV2, response: Response) -> Json:
        """Subscribe to notifications; the callback URI is tested first."""
        return subscribe(body, body.verbosity, response)
