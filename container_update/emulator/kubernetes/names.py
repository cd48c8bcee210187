"""Generated names: a base of the caller's, a random end of the server's.

The lengths are those of a Kubernetes 1.36 API server: a ReplicaSet of 63 characters gives pods
whose names are 63 characters long, five of them random.
"""

from __future__ import annotations

import secrets

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of a random end: no vowels and no look-alikes, so that no word comes of it."""

RANDOM_LENGTH = 5
LONGEST_NAME = 63


def random_end() -> str:
    """Five random characters."""
    return "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_LENGTH))


def generate(base: str) -> str:
    """A name that begins with *base* (``metadata.generateName``), which is cut at 58 characters."""
    return base[: LONGEST_NAME - RANDOM_LENGTH] + random_end()
