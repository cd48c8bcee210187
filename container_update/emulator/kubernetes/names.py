# SPDX-License-Identifier: Apache-2.0
"""Generated names: the caller's base and a random suffix.

The lengths are those of a Kubernetes 1.36 API server: a ReplicaSet of 63 characters gives pods
whose names are 63 characters long, five of them random.
"""

from __future__ import annotations

import secrets

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of a random suffix: without vowels, so that it contains no word."""

RANDOM_LENGTH = 5
LONGEST_NAME = 63


def random_suffix() -> str:
    """Return five random characters."""
    return "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_LENGTH))


def generate(base: str) -> str:
    """Return a name that begins with *base* (``generateName``), cut at 58 characters."""
    return base[: LONGEST_NAME - RANDOM_LENGTH] + random_suffix()
