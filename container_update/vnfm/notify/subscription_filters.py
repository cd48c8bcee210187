# SPDX-License-Identifier: Apache-2.0
"""The filters of subscriptions: LifecycleChangeNotificationsFilter, SOL003 5.5.3.12. Pure.

All attributes of a filter must match, each with any one of its values.
"""

from __future__ import annotations

from collections.abc import Mapping

from container_update.model.objects import Json
from container_update.model.schema import TEXT, Fields, ListOf, Schema

_OF_NOTIFICATION = {
    "notificationTypes": "notificationType",
    "operationTypes": "operation",
    "operationStates": "operationState",
}
"""Attributes of the filter, with those of the notification."""
_OF_INSTANCE = {
    "vnfdIds": "vnfdId",
    "vnfInstanceIds": "id",
    "vnfInstanceNames": "vnfInstanceName",
}
_INSTANCES, _PRODUCTS = "vnfInstanceSubscriptionFilter", "vnfProductsFromProviders"
_NESTED = (
    (_PRODUCTS, "vnfProvider", None),
    ("vnfProducts", "vnfProductName", None),
    ("versions", "vnfSoftwareVersion", "vnfdVersions"),
)
"""The levels of vnfProductsFromProviders: list, attribute of its entries, list of VNFD versions."""


def _schema() -> Fields:
    """Return the schema of a filter; nothing of it may be misspelt, or it would say nothing."""
    inside: dict[str, Schema] = {}
    for listed, name, versions in reversed(_NESTED):
        inside |= {versions: ListOf(TEXT)} if versions else {}
        entry = Fields({name: TEXT, **inside}, {name}, whole=f"entry of {listed}", has_nulls=False)
        inside = {listed: ListOf(entry)}
    inside |= dict.fromkeys(_OF_INSTANCE, ListOf(TEXT))
    instances = Fields(inside, whole=_INSTANCES, has_nulls=False)
    whole: dict[str, Schema] = {_INSTANCES: instances}
    whole |= dict.fromkeys(_OF_NOTIFICATION, ListOf(TEXT))
    return Fields(whole, whole="filter", has_nulls=False)


FILTER = _schema()
"""What :func:`matches` can read."""


def matches(filter_: Json | None, notification: Json, instance: Json) -> bool:
    """Return whether a subscription's filter, which has the schema, lets a notification pass.

    :param instance: the attributes of the VNF instance that the notification is about.
    """
    if not filter_:
        return True
    of_instance = filter_.get(_INSTANCES) or {}
    return (
        _any_of(filter_, notification, _OF_NOTIFICATION)
        and _any_of(of_instance, instance, _OF_INSTANCE)
        and _product(of_instance, instance, 0)
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
