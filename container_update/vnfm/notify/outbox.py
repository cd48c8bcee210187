# SPDX-License-Identifier: Apache-2.0
"""Notifications, stored in the transaction of the change that they report.

There is one for each subscription that matches; :mod:`container_update.vnfm.notify.delivery` sends
them.

Source: ETSI GS NFV-SOL 003, 5.5.2.17 to 5.5.2.19.
"""

from __future__ import annotations

import uuid

from sqlalchemy import select
from sqlalchemy.orm import Session

from container_update.model.objects import Json
from container_update.vnfm.notify import subscription_filters
from container_update.vnfm.states import State
from container_update.vnfm.store.database import now, timestamp
from container_update.vnfm.store.rows import (
    FULL,
    Instance,
    Notification,
    OperationRow,
    Subscription,
    changed_name,
)

CREATED = "VnfIdentifierCreationNotification"
DELETED = "VnfIdentifierDeletionNotification"
_OCCURRENCE = "VnfLcmOperationOccurrenceNotification"

_RESULTS = frozenset({State.COMPLETED, State.FAILED_TEMP, State.FAILED, State.ROLLED_BACK})


def add_state_change(session: Session, operation: OperationRow, base_url: str) -> None:
    """Add the notifications of an occurrence that entered a state."""
    root = f"{base_url}/vnflcm/{operation.api}"
    body: Json = {
        "notificationType": _OCCURRENCE,
        "notificationStatus": "RESULT" if operation.state in _RESULTS else "START",
        "operationState": operation.state,
        "vnfInstanceId": operation.instance_id,
        "operation": operation.operation,
        "isAutomaticInvocation": False,
        "vnfLcmOpOccId": operation.id,
        "_links": {
            "vnfInstance": {"href": f"{root}/vnf_instances/{operation.instance_id}"},
            "vnfLcmOpOcc": {"href": f"{root}/vnf_lcm_op_occs/{operation.id}"},
        },
    }
    if operation.error is not None:
        body["error"] = operation.error
    details = dict(operation.changes or {})
    if operation.changed:
        details[changed_name(operation.operation)] = operation.changed
    instance = session.get(Instance, operation.instance_id)
    _add(session, operation.api, body, root, instance, details=details)


def add_instance_change(session: Session, instance: Instance, kind: str, base_url: str) -> None:
    """Add the notifications of an instance that was created or deleted."""
    root = f"{base_url}/vnflcm/{instance.api}"
    body: Json = {
        "notificationType": kind,
        "vnfInstanceId": instance.id,
        "_links": {"vnfInstance": {"href": f"{root}/vnf_instances/{instance.id}"}},
    }
    _add(session, instance.api, body, root, instance)


def _add(  # noqa: PLR0913
    session: Session,
    api: str,
    body: Json,
    root: str,
    instance: Instance | None,
    *,
    details: Json | None = None,
) -> None:
    """Add a notification for each subscription that matches.

    :param details: what a SHORT notification leaves out; None: it has no verbosity.
    """
    moment = now()
    attributes: Json = {}
    if instance is not None:
        attributes = {"id": instance.id, "vnfdId": instance.vnfd_id, **instance.body}
    subscriptions = session.scalars(select(Subscription).where(Subscription.api == api))
    for subscription in subscriptions.all():
        if not subscription_filters.matches(subscription.filter, body, attributes):
            continue
        link = {"href": f"{root}/subscriptions/{subscription.id}"}
        session.add(
            Notification(
                subscription_id=subscription.id,
                body={
                    "id": str(uuid.uuid4()),
                    **body,
                    **_at_verbosity(subscription, details),
                    "subscriptionId": subscription.id,
                    "timeStamp": timestamp(moment),
                    "_links": {**body["_links"], "subscription": link},
                },
                created=moment,
                attempts=0,
                next_attempt=moment,
            )
        )


def _at_verbosity(subscription: Subscription, details: Json | None) -> Json:
    """Return the verbosity, which v1 does not have, and the details if it is FULL."""
    if details is None:
        return {}
    level = {"verbosity": subscription.verbosity} if subscription.api == "v2" else {}
    return {**level, **(details if subscription.verbosity == FULL else {})}
