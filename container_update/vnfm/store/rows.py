# SPDX-License-Identifier: Apache-2.0
"""The tables of the service, as mapped classes.

What is queried is a column; the rest of a resource is its JSON, with SOL003's names. Credentials
are only in the columns named ``sealed``, encrypted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from container_update.vnfm.problems import ProblemError
from container_update.vnfm.states import UNSETTLED

FULL = "FULL"
"""The verbosity of notifications with all details."""

PACKAGES = "pk"
"""The ``api`` of subscriptions to changes of packages."""

CHANGED_INFO, CHANGED_BY_PACKAGE = "changedInfo", "modificationsTriggeredByVnfPkgChange"

ONE_AT_A_TIME = "one_unsettled_operation"
"""The index that refuses a second operation of an instance: the insert is the lock."""

_WAITING = sa.text("delivered IS NULL AND given_up IS NULL")
_UNSETTLED = sa.text("state IN ({})".format(", ".join(sorted(f"'{s.value}'" for s in UNSETTLED))))


class Base(DeclarativeBase):
    """The tables of this service."""

    type_annotation_map = {dict[str, Any]: sa.JSON, list[Any]: sa.JSON}  # noqa: RUF012


class Package(Base):
    """A VNF package (SOL005, 9.5.2.5)."""

    __tablename__ = "packages"

    id: Mapped[str] = mapped_column(sa.String(36), primary_key=True)
    created: Mapped[datetime]
    onboarding_state: Mapped[str] = mapped_column(sa.String(16))
    operational_state: Mapped[str] = mapped_column(sa.String(16))
    vnfd_id: Mapped[str | None] = mapped_column(sa.String(255), unique=True)
    owner: Mapped[str | None] = mapped_column(sa.String(36))
    """The service that onboards it."""
    attempts: Mapped[int] = mapped_column(default=0)
    """How often it was begun to read the content, since it was uploaded."""
    user_data: Mapped[dict[str, Any]]
    body: Mapped[dict[str, Any]]
    """What the package itself says, once it is onboarded."""


class Instance(Base):
    """A VNF instance (SOL003, 5.5.2.2)."""

    __tablename__ = "instances"

    id: Mapped[str] = mapped_column(sa.String(36), primary_key=True)
    created: Mapped[datetime]
    api: Mapped[str] = mapped_column(sa.String(2))
    """'v1' or 'v2': each API has its own instances, as in Tacker."""
    vnfd_id: Mapped[str] = mapped_column(
        sa.String(255), sa.ForeignKey("packages.vnfd_id"), index=True
    )
    instantiated: Mapped[bool]
    body: Mapped[dict[str, Any]]
    sealed: Mapped[str | None] = mapped_column(sa.Text)
    """vimConnectionInfo."""


class OperationRow(Base):
    """A lifecycle operation occurrence (SOL003, 5.5.2.13)."""

    __tablename__ = "operations"
    __table_args__ = (
        sa.Index(
            ONE_AT_A_TIME,
            "instance_id",
            unique=True,
            sqlite_where=_UNSETTLED,
            postgresql_where=_UNSETTLED,
        ),
        sa.Index("operations_in_order", "api", "started", "id"),
        sa.Index("operations_by_start", "started"),
        sa.Index("operations_by_entry", "entered"),
    )

    id: Mapped[str] = mapped_column(sa.String(36), primary_key=True)
    api: Mapped[str] = mapped_column(sa.String(2))
    instance_id: Mapped[str] = mapped_column(sa.String(36), index=True)
    vnfd_id: Mapped[str | None] = mapped_column(sa.String(255))
    """The new package, if the operation has one."""
    operation: Mapped[str] = mapped_column(sa.String(32))
    state: Mapped[str] = mapped_column(sa.String(16), index=True)
    started: Mapped[datetime]
    entered: Mapped[datetime]
    """When it entered its state."""
    owner: Mapped[str | None] = mapped_column(sa.String(36))
    """The service that runs it."""
    due: Mapped[datetime | None]
    """When a worker goes on with it; None: it does not wait for a time."""
    requested_by: Mapped[str] = mapped_column(sa.Text, default="", server_default="")
    """The name of the user whose request it is."""
    why: Mapped[str] = mapped_column(sa.Text, default="", server_default="")
    """The reason that the user gave, one line."""
    instance_name: Mapped[str] = mapped_column(sa.Text, default="", server_default="")
    """vnfInstanceName at the time of the request."""
    old_package: Mapped[str] = mapped_column(sa.Text, default="", server_default="")
    """Product and version at the time of the request."""
    new_package: Mapped[str] = mapped_column(sa.Text, default="", server_default="")
    """Those of the package that the request leads to; empty: the same one."""
    params: Mapped[dict[str, Any]]
    """The request without credentials, as it is shown."""
    sealed: Mapped[str] = mapped_column(sa.Text)
    """The whole request."""
    kept: Mapped[dict[str, Any] | None]
    """user_script_err_handling_data: what a Mgmt Driver left for a retry or a rollback."""
    changes: Mapped[dict[str, Any] | None]
    """resourceChanges."""
    changed: Mapped[dict[str, Any] | None]
    """What changed in the attributes of the instance; shown under :func:`changed_name`."""
    error: Mapped[dict[str, Any] | None]
    """ProblemDetails."""
    batch_id: Mapped[str | None] = mapped_column(sa.String(36), index=True)
    """The batch that began it."""


class Batch(Base):
    """The same request to many VNF instances, some at a time."""

    __tablename__ = "batches"

    id: Mapped[str] = mapped_column(sa.String(36), primary_key=True)
    api: Mapped[str] = mapped_column(sa.String(2))
    operation: Mapped[str] = mapped_column(sa.String(32))
    state: Mapped[str] = mapped_column(sa.String(16), index=True)
    started: Mapped[datetime] = mapped_column(index=True)
    entered: Mapped[datetime]
    """When it entered its state."""
    requested_by: Mapped[str] = mapped_column(sa.Text)
    new_package: Mapped[str] = mapped_column(sa.Text)
    """Product and version of the package that the request leads to; empty: the same one."""
    body: Mapped[dict[str, Any]]
    """What :mod:`container_update.vnfm.batches` knows of its members and waves."""
    sealed: Mapped[str] = mapped_column(sa.Text)
    """The whole request to each instance."""


def api_root(api: str) -> str:
    """Return the path of the API that has the subscriptions of an ``api``."""
    return "/vnfpkgm/v1" if api == PACKAGES else f"/vnflcm/{api}"


def changed_name(operation: str) -> str:
    """Return the attribute of an operation with what changed: SOL003 allows one of the two only."""
    return CHANGED_BY_PACKAGE if operation == "CHANGE_VNFPKG" else CHANGED_INFO


class StepRow(Base):
    """The state of one object in an operation."""

    __tablename__ = "steps"

    operation_id: Mapped[str] = mapped_column(
        sa.String(36), sa.ForeignKey("operations.id", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True)
    object: Mapped[str] = mapped_column(sa.Text)
    action: Mapped[str] = mapped_column(sa.String(64))
    state: Mapped[str] = mapped_column(sa.String(32))
    reasons: Mapped[list[Any]]
    message: Mapped[str] = mapped_column(sa.Text)
    problem: Mapped[str] = mapped_column(sa.Text, default="", server_default="")
    """Why it failed; it stays when the step has been undone."""
    diff: Mapped[list[Any]] = mapped_column(default=list, server_default="[]")
    """Lines of a unified diff: what the step changes, without values of Secrets."""
    # SQLAlchemy 2.0 and 2.1 differ on a plain float
    seconds: Mapped[float] = mapped_column(sa.Double)


class VimRow(Base):
    """A registered VIM."""

    __tablename__ = "vims"

    id: Mapped[str] = mapped_column(sa.String(36), primary_key=True)
    created: Mapped[datetime]
    name: Mapped[str] = mapped_column(sa.String(255), unique=True)
    is_default: Mapped[bool]
    body: Mapped[dict[str, Any]]
    sealed: Mapped[str] = mapped_column(sa.Text)
    """auth_cred."""


class Subscription(Base):
    """A subscription to notifications about lifecycle changes (SOL003, 5.5.2.16), or about packages
    (10.5.2.4)."""

    __tablename__ = "subscriptions"

    id: Mapped[str] = mapped_column(sa.String(36), primary_key=True)
    created: Mapped[datetime]
    api: Mapped[str] = mapped_column(sa.String(2))
    """'v1' or 'v2' of lifecycle management, or :data:`PACKAGES`."""
    callback_uri: Mapped[str] = mapped_column(sa.Text)
    filter: Mapped[dict[str, Any] | None]
    verbosity: Mapped[str] = mapped_column(sa.String(5), default=FULL)
    """'FULL' or 'SHORT' (LcmOpOccNotificationVerbosityType)."""
    sealed: Mapped[str | None] = mapped_column(sa.Text)
    """authentication."""


class Notification(Base):
    """A notification to deliver, delivered, or given up."""

    __tablename__ = "outbox"
    __table_args__ = (
        sa.Index(
            "waiting_notifications",
            "subscription_id",
            "id",
            sqlite_where=_WAITING,
            postgresql_where=_WAITING,
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    subscription_id: Mapped[str] = mapped_column(
        sa.String(36), sa.ForeignKey("subscriptions.id", ondelete="CASCADE"), index=True
    )
    body: Mapped[dict[str, Any]]
    created: Mapped[datetime]
    attempts: Mapped[int]
    next_attempt: Mapped[datetime] = mapped_column(index=True)
    delivered: Mapped[datetime | None]
    given_up: Mapped[datetime | None]


# --- the queries that several parts make --------------------------------------------------------

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


def lock_operation(session: Session, operation_id: str) -> OperationRow:
    """Return an operation as it is now; no other transaction changes it until this one ends."""
    return session.get_one(
        OperationRow, operation_id, populate_existing=True, with_for_update={"key_share": True}
    )


def compare_and_set(
    session: Session, table: type[Base], *conditions: sa.ColumnElement[bool], **values: Any
) -> bool:
    """Change the row that meets the conditions; return False if another transaction was first."""
    result = session.execute(
        sa.update(table)
        .where(*conditions)
        .values(**values)
        .execution_options(synchronize_session=False)
    )
    assert isinstance(result, sa.CursorResult)
    return bool(result.rowcount == 1)


def package_title(session: Session, vnfd_id: str | None) -> str:
    """Return the product and the version of the package with a VNFD; '' if there is none."""
    package = session.scalar(sa.select(Package).where(Package.vnfd_id == vnfd_id))
    if package is None:
        return ""
    names = (package.body.get(name) for name in ("vnfProductName", "vnfSoftwareVersion"))
    return " ".join(str(name) for name in names if name)
