# SPDX-License-Identifier: Apache-2.0
"""The history of the tables (Alembic)."""
