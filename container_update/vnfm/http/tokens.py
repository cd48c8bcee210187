"""The token file: who may use the service where no Keystone is asked."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from container_update.model.errors import ContainerUpdateError
from container_update.vnfm.http.principal import Principal
from container_update.vnfm.store.private_file import private_text

SHORTEST = 16
"""Characters that a token of the token file has at least."""
_LINE = re.compile(r"(?:(?P<name>\S+)\s+)?(?P<token>\S+)")


class TokenFile:
    """The tokens of a file: one a line, a name before it if wanted; ``#`` begins a comment.

    :param path: the file; made with one random token where there is none.
    :raises ContainerUpdateError: it holds no tokens, or others than its owner may read it.
    """

    def __init__(self, path: Path) -> None:
        self._digests = {_digest(token): name for name, token in read_tokens(path).items()}

    def __call__(self, token: str) -> Principal | None:
        """Return the name of a token, found in the same time whether it is there or not."""
        given, found = _digest(token), None
        for digest, name in self._digests.items():
            if hmac.compare_digest(digest, given):
                found = Principal(name)
        return found


def read_tokens(path: Path) -> Mapping[str, str]:
    """Name to token.

    :param path: the file; made with one random token where there is none.
    :raises ContainerUpdateError: it holds no tokens, or others than its owner may read it.
    """
    tokens: dict[str, str] = {}
    first = f"admin {secrets.token_urlsafe(32)}\n"
    for number, line in enumerate(private_text(path, first).splitlines(), 1):
        text = line.partition("#")[0].strip()
        match = _LINE.fullmatch(text)
        if not text:
            continue
        if not match or len(match["token"]) < SHORTEST:
            raise ContainerUpdateError(
                f"{path}:{number}: expected NAME TOKEN, the token of {SHORTEST} characters or more"
            )
        name = match["name"] or f"line {number}"
        if name in tokens:
            raise ContainerUpdateError(f"{path}:{number}: the name {name} is there twice")
        tokens[name] = match["token"]
    if not tokens:
        raise ContainerUpdateError(f"{path}: expected tokens, one a line, and found none")
    return tokens


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
