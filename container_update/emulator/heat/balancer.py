# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a load balancer that is configured over SSH: one user, one program.

It records the commands that it receives and answers; there is no traffic. In the demo and in the
tests the sample coordination script ``configure_balancer.py`` connects to it.
"""

from __future__ import annotations

import secrets
import socket
import threading
from typing import Any

import paramiko

USER = "ubuntu"


class Balancer(paramiko.ServerInterface):  # type: ignore[misc]
    """An SSH server on loopback, within a ``with`` block.

    :param port: the port on 127.0.0.1; 0 for any free port.
    """

    def __init__(self, *, port: int = 0) -> None:
        self.key = paramiko.ECDSAKey.generate()
        self.password = secrets.token_urlsafe(12)
        self.commands: list[str] = []
        """The commands received so far, in order."""
        self.status = 0
        """The exit status of its program."""
        self._socket = socket.create_server(("127.0.0.1", port))
        self.port = int(self._socket.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, name="balancer", daemon=True)

    def __enter__(self) -> Balancer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)

    def known_hosts(self) -> str:
        """Return its line of a known_hosts file."""
        return f"[127.0.0.1]:{self.port} {self.key.get_name()} {self.key.get_base64()}\n"

    def login(self) -> dict[str, Any]:
        """Return what a request gives as ``external_lb_param``."""
        return {
            "ip_address": "127.0.0.1",
            "port": self.port,
            "username": USER,
            "password": self.password,
        }

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # the socket was closed
                return
            transport = paramiko.Transport(connection)
            transport.add_server_key(self.key)
            try:
                transport.start_server(server=self)
            except (paramiko.SSHException, EOFError):  # the client only wanted the host key
                transport.close()

    # --- called by paramiko ---------------------------------------------------------------------

    def check_auth_password(self, username: str, password: str) -> int:
        """Accept the one user with its password."""
        known = (username, password) == (USER, self.password)
        return int(paramiko.AUTH_SUCCESSFUL if known else paramiko.AUTH_FAILED)

    def get_allowed_auths(self, username: str) -> str:  # noqa: ARG002
        """Allow passwords only."""
        return "password"

    def check_channel_request(self, kind: str, chanid: int) -> int:  # noqa: ARG002
        """Accept any channel."""
        return int(paramiko.OPEN_SUCCEEDED)

    def check_channel_exec_request(self, channel: Any, command: bytes) -> bool:
        """Record the command and answer.

        The channel is left for the client to close: paramiko confirms the client's request only
        after this returns.
        """
        self.commands.append(command.decode())
        channel.send(b"set\n")
        channel.send_exit_status(self.status)
        channel.shutdown_write()
        return True
