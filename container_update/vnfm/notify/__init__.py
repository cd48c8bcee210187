"""Notifications to subscribers: the outbox, their delivery, and where they may go."""
