# SPDX-License-Identifier: Apache-2.0
"""Gets the login of a connection again where the server does not accept it any more.

Tokens and certificates live for minutes or hours, an update of many pods may take longer. A 401 is
the one sign that holds for every kind of login: nothing here looks at the time when one expires.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from container_update.cluster.credentials import header_value
from container_update.cluster.login.configuration import Configuration
from container_update.model.errors import ClusterError

LOG = logging.getLogger(__name__)

_PAUSE = 10.0
"""After how many seconds a login is got again that was of no use when it was got the last time, so
that of an account that was locked not every request starts a plugin."""


@dataclass(frozen=True, eq=False)
class Login:
    """What the server knows us by."""

    configuration: Configuration
    pool: Any
    """The connections: a client certificate belongs to a connection."""

    @classmethod
    def of(cls, configuration: Configuration) -> Login:
        """Return the login of a configuration, with connections of its own."""
        return cls(configuration, configuration.connections())

    def headers(self, *, has_body: bool) -> dict[str, str]:
        """Return the headers of a request."""
        headers = {"Accept": "application/json", "User-Agent": "container-update"}
        if has_body:
            headers["Content-Type"] = "application/json"
        if credentials := self.configuration.authorization():
            headers["authorization"] = header_value(credentials)
        return headers

    def close(self) -> None:
        """Close the connections, and remove the files that were made for it."""
        self.pool.clear()
        for path in self.configuration.own_files:
            path.unlink(missing_ok=True)


@dataclass(eq=False)
class Logins:
    """The login that is in use, and how to get another; thread-safe.

    Where many requests are refused at the same time, one of them gets the new login for all.
    """

    current: Login
    renew: Callable[[], Login] | None
    """Gets another; None: there is only this one."""
    clock: Callable[[], float] = field(default=time.monotonic, kw_only=True)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _before: list[Login] = field(default_factory=list, init=False)
    _accepted: Login | None = field(default=None, init=False)
    """The last one that the server has accepted."""
    _asked: float = field(default=-math.inf, init=False)
    """When another was asked for."""

    def close(self) -> None:
        """Close all logins."""
        for login in [*self._before, self.current]:
            login.close()

    def send(self, what: str, request: Callable[[Login], Any]) -> Any:
        """Send a request; once more, with another login, where the answer is 401.

        A request that is answered so has changed nothing, whatever its method is.

        :param what: the request, for messages.
        :raises ClusterError: it could not be sent, or no other login be got.
        """
        used = self.current
        response = request(used)
        if response.status == 401 and (other := self._other(used, what)) is not used:
            response.close()
            used, response = other, request(other)
        if response.status != 401:
            self._accepted = used
        return response

    def _other(self, refused: Login, what: str) -> Login:
        """Return another login; the refused one where there is none."""
        with self._lock:
            if self.current is refused and self.renew and self._may_help(refused):
                LOG.info("%s: the API server answered 401: the credentials are got again", what)
                self._asked, self._accepted = self.clock(), None
                try:
                    self.current = self.renew()
                    self._before.append(refused)
                except ClusterError as error:
                    status = None if error.transient else 401
                    raise ClusterError(
                        f"{what}: the API server answered 401, and the credentials could not be "
                        f"got again: {error}",
                        status=status,
                        transient=error.transient,
                    ) from error
            return self.current

    def _may_help(self, refused: Login) -> bool:
        return self._accepted is refused or self.clock() - self._asked >= _PAUSE
