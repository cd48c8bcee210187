# SPDX-License-Identifier: Apache-2.0
"""Notifications, stored in the transaction of the change that they report.

There is one for each subscription that matches; :mod:`container_update.vnfm.notify.delivery` sends
them.

Source: ETSI GS NFV-SOL 003, 5.5.2.17 to 5.5.2.19, 10.5.2.5 and 10.5.2.6.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from container_update.model.objects import Json
from container_update.model.schema import TEXT, Fields, ListOf, Schema, Text
from container_update.vnfm.states import State
from container_update.vnfm.store.database import now, timestamp
from container_update.vnfm.store.rows import (
    FULL,
    PACKAGES,
    Instance,
    Notification,
    OperationRow,
    Package,
    Subscription,
    api_root,
    changed_name,
)

CREATED = "VnfIdentifierCreationNotification"
DELETED = "VnfIdentifierDeletionNotification"
_OCCURRENCE = "VnfLcmOperationOccurrenceNotification"
_ONBOARDED = "VnfPackageOnboardingNotification"
_PACKAGE_CHANGED = "VnfPackageChangeNotification"

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
    if operation.error is not None and operation.state in _RESULTS:  # SOL003, 5.5.2.17
        body["error"] = operation.error
    details = dict(operation.changes or {})
    if operation.changed:
        details[changed_name(operation.operation)] = operation.changed
    instance = session.get(Instance, operation.instance_id)
    _add(session, operation.api, body, base_url, _attributes(instance), details=details)


def add_instance_change(session: Session, instance: Instance, kind: str, base_url: str) -> None:
    """Add the notifications of an instance that was created or deleted."""
    root = f"{base_url}/vnflcm/{instance.api}"
    body: Json = {
        "notificationType": kind,
        "vnfInstanceId": instance.id,
        "_links": {"vnfInstance": {"href": f"{root}/vnf_instances/{instance.id}"}},
    }
    _add(session, instance.api, body, base_url, _attributes(instance))


def _attributes(instance: Instance | None) -> Json:
    """Return the attributes of an instance that a filter may name."""
    if instance is None:
        return {}
    return {"id": instance.id, "vnfdId": instance.vnfd_id, **instance.body}


def add_package_onboarded(session: Session, package: Package, base_url: str) -> None:
    """Add the notifications of a package that was onboarded."""
    _add_package(session, package, base_url, {"notificationType": _ONBOARDED}, in_use=False)


def add_package_change(
    session: Session, package: Package, base_url: str, *, in_use: bool, deleted: bool = False
) -> None:
    """Add the notifications of an onboarded package that was enabled or disabled, or deleted."""
    change: Json = {"notificationType": _PACKAGE_CHANGED, "changeType": "PKG_DELETE"}
    if not deleted:
        change |= {"changeType": "OP_STATE_CHANGE", "operationalState": package.operational_state}
    _add_package(session, package, base_url, change, in_use=in_use)


def _add_package(
    session: Session, package: Package, base_url: str, change: Json, *, in_use: bool
) -> None:
    link = {"href": f"{base_url}{api_root(PACKAGES)}/vnf_packages/{package.id}"}
    ids = {"vnfPkgId": package.id, "vnfdId": package.vnfd_id}
    attributes = {
        **package.body,
        "id": package.id,
        "vnfdId": package.vnfd_id,
        "operationalState": package.operational_state,
        "usageState": "IN_USE" if in_use else "NOT_IN_USE",
    }
    _add(session, PACKAGES, {**change, **ids, "_links": {"vnfPackage": link}}, base_url, attributes)


def _add(  # noqa: PLR0913
    session: Session,
    api: str,
    body: Json,
    base_url: str,
    attributes: Json,
    *,
    details: Json | None = None,
) -> None:
    """Add a notification for each subscription that matches, all with one id (5.5.2.17)."""
    moment, notification_id = now(), str(uuid.uuid4())
    of_api = select(Subscription).where(Subscription.api == api)
    stays = of_api.with_for_update(read=True, key_share=True)  # until it is referred to
    for subscription in session.scalars(stays).all():
        if not matches(subscription.filter, body, attributes):
            continue
        link = {"href": f"{base_url}{api_root(api)}/subscriptions/{subscription.id}"}
        session.add(
            Notification(
                subscription_id=subscription.id,
                body={
                    "id": notification_id,
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


# --- the filters of subscriptions: LifecycleChangeNotificationsFilter, SOL003 5.5.3.12, and
# PkgmNotificationsFilter, 10.5.3.4 --------------------------------------------------------------
# All attributes of a filter must match, each with any one of its values.


_OF_NOTIFICATION = {
    "notificationTypes": "notificationType",
    "operationTypes": "operation",
    "operationStates": "operationState",
}
"""Attributes of the filter, with those of the notification."""
_VALUES = {
    "notificationTypes": (_OCCURRENCE, CREATED, DELETED),
    "operationTypes": (
        "INSTANTIATE", "SCALE", "SCALE_TO_LEVEL", "CHANGE_FLAVOUR", "TERMINATE", "HEAL", "OPERATE",
        "CHANGE_EXT_CONN", "MODIFY_INFO", "CREATE_SNAPSHOT", "REVERT_TO_SNAPSHOT", "CHANGE_VNFPKG",
    ),
    "operationStates": tuple(state.value for state in State),
}  # fmt: skip
"""SOL003's values of these attributes, also of operations that this service does not have."""
_OF_INSTANCE = {"vnfdIds": "vnfdId", "vnfInstanceIds": "id", "vnfInstanceNames": "vnfInstanceName"}
_OF_PACKAGE = {
    "vnfdId": "vnfdId",
    "vnfPkgId": "id",
    "operationalState": "operationalState",
    "usageState": "usageState",
}
_INSTANCES, _PRODUCTS = "vnfInstanceSubscriptionFilter", "vnfProductsFromProviders"
_NESTED = (
    (_PRODUCTS, "vnfProvider", None),
    ("vnfProducts", "vnfProductName", None),
    ("versions", "vnfSoftwareVersion", "vnfdVersions"),
)
"""The levels of vnfProductsFromProviders: list, attribute of its entries, list of VNFD versions."""


def _any_value(values: Collection[str]) -> Schema:
    return ListOf(Text(f"one of {', '.join(values)}", f"({'|'.join(values)})"))


def _products() -> dict[str, Schema]:
    """Return the schema of vnfProductsFromProviders."""
    inside: dict[str, Schema] = {}
    for listed, name, versions in reversed(_NESTED):
        inside |= {versions: ListOf(TEXT)} if versions else {}
        entry = Fields({name: TEXT, **inside}, {name}, whole=f"entry of {listed}", has_nulls=False)
        inside = {listed: ListOf(entry)}
    return inside


_INSTANCE_FILTER = {**_products(), **dict.fromkeys(_OF_INSTANCE, ListOf(TEXT))}
FILTER = Fields(
    {
        _INSTANCES: Fields(_INSTANCE_FILTER, whole=_INSTANCES, has_nulls=False),
        **{listed: _any_value(values) for listed, values in _VALUES.items()},
    },
    whole="filter",
    has_nulls=False,
)
"""What :func:`matches` can read; nothing of it may be misspelt, or it would say nothing."""
PACKAGE_FILTER = Fields(
    {
        **_products(),
        **dict.fromkeys(_OF_PACKAGE, ListOf(TEXT)),
        "notificationTypes": _any_value((_ONBOARDED, _PACKAGE_CHANGED)),
        "operationalState": _any_value(("ENABLED", "DISABLED")),
        "usageState": _any_value(("IN_USE", "NOT_IN_USE")),
    },
    whole="filter",
    has_nulls=False,
)
"""The same for packages."""


def matches(filter_: Json | None, notification: Json, resource: Json) -> bool:
    """Return whether a subscription's filter, which has the schema, lets a notification pass."""
    if not filter_:
        return True
    of_resource = filter_.get(_INSTANCES) or filter_
    return (
        _any_of(filter_, notification, _OF_NOTIFICATION)
        and _any_of(of_resource, resource, _OF_INSTANCE | _OF_PACKAGE)
        and _product(of_resource, resource, 0)
    )


def _any_of(filter_: Json, resource: Json, names: Mapping[str, str]) -> bool:
    """Return whether every list of values has the resource's; an absent attribute matches."""
    return all(
        not filter_.get(listed) or name not in resource or resource[name] in filter_[listed]
        for listed, name in names.items()
    )


def _product(filter_: Json, instance: Json, level: int) -> bool:
    if level == len(_NESTED):
        return True
    listed, name, versions = _NESTED[level]
    return not filter_.get(listed) or any(
        entry.get(name) == instance.get(name)
        and (
            not versions
            or not entry.get(versions)
            or instance.get("vnfdVersion") in entry[versions]
        )
        and _product(entry, instance, level + 1)
        for entry in filter_[listed]
    )
