# SPDX-License-Identifier: Apache-2.0
"""The filters of subscriptions: LifecycleChangeNotificationsFilter, SOL003 5.5.3.12. Pure.

All attributes of a filter must match, each with any one of its values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from container_update.model.objects import Json
from container_update.vnfm.problems import ProblemError

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


def matches(filter_: Json | None, notification: Json, instance: Json) -> bool:
    """Return whether a subscription's filter, which passed :func:`check`, lets a notification pass.

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


def check(filter_: Any) -> None:
    """Refuse a filter that :func:`matches` could not read.

    :raises ProblemError: 400: an attribute is unknown or has another type.
    """
    if filter_ is None:
        return
    nested = _object(filter_, "filter", {*_OF_NOTIFICATION, _INSTANCES}).get(_INSTANCES, {})
    _object(nested, _INSTANCES, {*_OF_INSTANCE, _PRODUCTS})
    for owner, names in ((filter_, _OF_NOTIFICATION), (nested, _OF_INSTANCE)):
        for name in names:
            _texts(owner, name)
    _check_products(nested, 0)


def _check_products(owner: Json, level: int) -> None:
    if level == len(_NESTED):
        return
    listed, name, versions = _NESTED[level]
    below = {following for following, _, _ in _NESTED[level + 1 : level + 2]}
    for entry in _list(owner, listed):
        _object(entry, listed, {name, *below, *([versions] if versions else [])})
        if not isinstance(entry.get(name), str):
            raise ProblemError(400, f"filter: {listed} expects a text {name} in each entry")
        if versions:
            _texts(entry, versions)
        _check_products(entry, level + 1)


def _object(value: Any, name: str, known: set[str]) -> Json:
    if not isinstance(value, dict) or not value.keys() <= known:
        raise ProblemError(
            400, f"filter: {name} expects an object with any of {', '.join(sorted(known))}"
        )
    return value


def _list(owner: Json, name: str) -> list[Any]:
    values = owner.get(name, [])
    if not isinstance(values, list):
        raise ProblemError(400, f"filter: {name} expects a list")
    return values


def _texts(owner: Json, name: str) -> None:
    if not all(isinstance(value, str) for value in _list(owner, name)):
        raise ProblemError(400, f"filter: {name} expects a list of texts")
