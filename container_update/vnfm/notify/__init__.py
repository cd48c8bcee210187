# SPDX-License-Identifier: Apache-2.0
"""Notifications to subscribers: the outbox, their delivery, and where they may go."""
