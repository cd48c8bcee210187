# SPDX-License-Identifier: Apache-2.0
"""What the service keeps: the database, its tables and history, secrets at rest."""
