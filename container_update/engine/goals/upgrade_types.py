# SPDX-License-Identifier: Apache-2.0
"""Which upgrade types there are: those that a strategy is installed for, by kind of VIM.

A strategy is a planner: an entry point in the group ``container_update.strategies``, whose name is
the kind of VIM and the upgrade type: ``kubernetes-Blue-Green``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from container_update.model.errors import ContainerUpdateError, PackageError

NAMESPACE = "container_update.strategies"

VIMS: Mapping[str, str] = {
    "kubernetes": "kubernetes",
    "ETSINFV.KUBERNETES.V_1": "kubernetes",
    "openstack": "openstack",
    "ETSINFV.OPENSTACK_KEYSTONE.V_3": "openstack",
}
"""vimType of Tacker and SOL003 to the kind of VIM in an entry point's name."""

_SHORT = {"rolling": "rollingupdate"}


def kind_of_vim(vim_type: str) -> str:
    """Return the kind of VIM that a vimType is; one that is not in :data:`VIMS` is its own kind."""
    return VIMS.get(vim_type, vim_type)


def installed_types() -> Mapping[str, Sequence[str]]:
    """Return the upgrade types that a strategy is installed for, by kind of VIM."""
    from stevedore import NamedExtensionManager  # noqa: PLC0415, slow to load

    by_kind: dict[str, set[str]] = {}
    for entry_point in NamedExtensionManager(NAMESPACE, names=[]).list_entry_points():
        kind, _, upgrade_type = entry_point.name.partition("-")
        if upgrade_type:
            by_kind.setdefault(kind, set()).add(upgrade_type)
    return {kind: sorted(by_kind[kind]) for kind in sorted(by_kind)}


def resolve(
    text: str, vim_type: str | None = None, *, name: str = "additionalParams.upgrade_type"
) -> str:
    """Return the installed upgrade type that a text spells, whatever its case, spaces, - and _.

    :param vim_type: only strategies for this VIM count; None: any.
    :param name: what the text is called where it was given.
    :raises PackageError: none is installed; the message lists those that are.
    """
    by_kind = installed_types()
    kinds = list(by_kind) if vim_type is None else [kind_of_vim(vim_type)]
    known = {_plain(name): name for kind in kinds for name in by_kind.get(kind, ())}
    plain = _plain(text)
    resolved = known.get(plain) or known.get(_SHORT.get(plain, ""))
    if resolved is None:
        lists = {kind: ", ".join(by_kind.get(kind, ())) or "none" for kind in kinds}
        choices = "; ".join(f"{kind}: {names}" for kind, names in lists.items())
        raise PackageError(
            f'expected one that a strategy is installed for ({choices}), found "{text}"', path=name
        )
    return resolved


def _plain(text: str) -> str:
    return re.sub(r"[\s_-]", "", text).lower()


def find(vim_type: str, upgrade_type: str) -> Any:
    """Return the planner of a strategy; errors list those installed, or say why none loads."""
    from stevedore import DriverManager, exception  # noqa: PLC0415, slow to load

    name = f"{kind_of_vim(vim_type)}-{resolve(upgrade_type, vim_type)}"
    try:
        return DriverManager(NAMESPACE, name).driver
    except exception.MultipleMatches as error:
        raise ContainerUpdateError(
            f"{name}: expected one strategy of this name: uninstall one of them ({error})"
        ) from error
    except Exception as error:  # a plugin may raise anything
        raise ContainerUpdateError(f"the strategy {name} cannot be loaded: {error}") from error
