"""Which notifications a subscription wants: LifecycleChangeNotificationsFilter, SOL003 5.5.3.12.

Pure. Different attributes of a filter must all match, of the values of one attribute any.
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
"""Attribute of the filter to that of the notification."""
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
"""The levels below a provider: the list, the attribute that says which, a list of more values."""


def matches(wanted: Json | None, notification: Json, instance: Json) -> bool:
    """Whether a subscription wants a notification.

    :param wanted: the subscription's filter, as :func:`check` let it pass.
    :param instance: the VNF instance that the notification is about, as it is shown.
    """
    if not wanted:
        return True
    of_instance = wanted.get(_INSTANCES) or {}
    return (
        _any_of(wanted, notification, _OF_NOTIFICATION)
        and _any_of(of_instance, instance, _OF_INSTANCE)
        and (not of_instance.get(_PRODUCTS) or _product(of_instance, instance, 0))
    )


def _any_of(wanted: Json, found: Json, names: Mapping[str, str]) -> bool:
    """Return whether every listed filter matches; an attribute that *found* lacks is not asked."""
    return all(
        not wanted.get(listed) or name not in found or found[name] in wanted[listed]
        for listed, name in names.items()
    )


def _product(wanted: Json, instance: Json, level: int) -> bool:
    if level == len(_NESTED):
        return True
    listed, name, also = _NESTED[level]
    return not wanted.get(listed) or any(
        entry.get(name) == instance.get(name)
        and (not also or not entry.get(also) or instance.get("vnfdVersion") in entry[also])
        and _product(entry, instance, level + 1)
        for entry in wanted[listed]
    )


def check(wanted: Any) -> None:
    """Refuse what :func:`matches` could not read.

    :raises ProblemError: 400: an attribute is unknown or has another type.
    """
    if wanted is None:
        return
    nested = _object(wanted, "filter", {*_OF_NOTIFICATION, _INSTANCES}).get(_INSTANCES, {})
    _object(nested, _INSTANCES, {*_OF_INSTANCE, _PRODUCTS})
    for owner, names in ((wanted, _OF_NOTIFICATION), (nested, _OF_INSTANCE)):
        for name in names:
            _texts(owner, name)
    _check_products(nested, 0)


def _check_products(owner: Json, level: int) -> None:
    if level == len(_NESTED):
        return
    listed, name, also = _NESTED[level]
    below = {_NESTED[level + 1][0]} if level + 1 < len(_NESTED) else set()
    for entry in _list(owner, listed):
        _object(entry, listed, {name, *below, *([also] if also else [])})
        if not isinstance(entry.get(name), str):
            raise ProblemError(400, f"filter: {listed} expects a text {name} in each entry")
        if also:
            _texts(entry, also)
        _check_products(entry, level + 1)


def _object(found: Any, name: str, known: set[str]) -> Json:
    if not isinstance(found, dict) or not found.keys() <= known:
        raise ProblemError(
            400, f"filter: {name} expects an object with any of {', '.join(sorted(known))}"
        )
    return found


def _list(owner: Json, name: str) -> list[Any]:
    found = owner.get(name, [])
    if not isinstance(found, list):
        raise ProblemError(400, f"filter: {name} expects a list")
    return found


def _texts(owner: Json, name: str) -> None:
    if not all(isinstance(value, str) for value in _list(owner, name)):
        raise ProblemError(400, f"filter: {name} expects a list of texts")
