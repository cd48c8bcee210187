# SPDX-License-Identifier: Apache-2.0
"""The queries that several parts of the service make."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, CursorResult, select, update
from sqlalchemy.orm import Session

from container_update.vnfm.problems import ProblemError
from container_update.vnfm.store.rows import (
    Base,
    Batch,
    Instance,
    OperationRow,
    Package,
    Subscription,
    VimRow,
)

Row = TypeVar("Row", bound=Base)

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

_NAMES: Mapping[type[Base], str] = {
    Batch: "batch",
    Instance: "VNF instance",
    OperationRow: "operation",
    Package: "VNF package",
    Subscription: "subscription",
    VimRow: "VIM",
}


def by_id(
    session: Session, table: type[Row], row_id: str, api: str | None = None, *, lock: bool = False
) -> Row:
    """Return the row with the id that a request names.

    :param api: for the resources that each API has of its own.
    :param lock: no other transaction changes or deletes the row until this one ends.
    :raises ProblemError: 404: there is none.
    """
    row = None
    if _ID.fullmatch(row_id):
        row = session.get(table, row_id.lower(), with_for_update=lock or None)
    if row is None or getattr(row, "api", None) != api:
        raise ProblemError(404, f"{_NAMES[table]} {row_id[:64]!r}: there is none with this id")
    return row


def compare_and_set(
    session: Session, table: type[Base], *conditions: ColumnElement[bool], **values: Any
) -> bool:
    """Change the row that meets the conditions; return False if another transaction was first."""
    result = session.execute(
        update(table)
        .where(*conditions)
        .values(**values)
        .execution_options(synchronize_session=False)
    )
    assert isinstance(result, CursorResult)
    return bool(result.rowcount == 1)


def package_title(session: Session, vnfd_id: str | None) -> str:
    """Return the product and the version of the package with a VNFD; '' if there is none."""
    package = session.scalar(select(Package).where(Package.vnfd_id == vnfd_id))
    if package is None:
        return ""
    names = (package.body.get(name) for name in ("vnfProductName", "vnfSoftwareVersion"))
    return " ".join(str(name) for name in names if name)
