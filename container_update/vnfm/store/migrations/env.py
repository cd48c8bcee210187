# SPDX-License-Identifier: Apache-2.0
"""Alembic's environment: the connection comes from ``Database.upgrade``."""

from alembic import context

from container_update.vnfm.store.rows import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    transaction_per_migration=False,
)
context.run_migrations()
