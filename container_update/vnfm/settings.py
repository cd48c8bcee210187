# SPDX-License-Identifier: Apache-2.0
"""The settings of the service, as a dataclass and as oslo.config options, group ``[vnfm]``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from container_update.cluster.credentials import is_loopback
from container_update.model.options import option, oslo_options, read_section, refuse_invalid

GROUP = "vnfm"
"""The section of the configuration file."""

_MIB = 1024 * 1024
_DAY = 24 * 3600


@dataclass(frozen=True)
class Settings:
    """The settings of the service. Times are in seconds, sizes in bytes."""

    host: str = option("127.0.0.1", "The address to listen on.", kind="HostAddressOpt")
    port: int = option(9890, "The port to listen on; 0: a free one.", 0, 65535, kind="PortOpt")
    state_dir: str = option(
        "vnfm-state",
        "The folder of the packages, the keys and, by default, the database. Services that share a "
        "database share this folder too.",
    )
    database_url: str = option(
        "", "postgresql://USER@HOST/NAME. Empty: an SQLite file in state_dir."
    )
    endpoint: str = option(
        "", "The URL under which clients know the service, for links. Empty: from host and port."
    )
    workers: int = option(8, "Maximum number of operations that run at the same time.", 1)
    request_bytes: int = option(1 * _MIB, "Maximum size in bytes of a request's body.", 0)
    upload_bytes: int = option(1024 * _MIB, "Maximum size in bytes of an uploaded package.", 0)
    download_seconds: float = option(
        600.0, "Maximum time to fetch a package from the URI of a request.", 0
    )
    page_size: int = option(100, "Maximum number of entries in one page of a list.", 1)
    drain_seconds: float = option(
        30.0, "Maximum time for running operations to end when the service stops.", 0
    )
    driver_seconds: float = option(
        3600.0, "Maximum time for one run of a Mgmt Driver script of a package.", 1
    )
    lock_seconds: float = option(
        10.0,
        "Interval of the checks whether another service on the same database died; the same in "
        "all of them.",
        0,
    )
    auth: str = option(
        "token_file",
        "Who may use the API: token_file, keystone, or none (only on loopback).",
        choices=("token_file", "keystone", "none"),
    )
    token_file: str = option(
        "", "The file with one token a line. Empty: tokens in state_dir, made at the first start."
    )
    keystone_url: str = option("", "Keystone's URL, with its version: http://HOST:5000/v3.")
    keystone_roles: tuple[str, ...] = option(
        ("admin",), "The roles that may use the API; a user needs one of them."
    )
    keystone_reader_roles: tuple[str, ...] = option(
        (), "The roles that may only read; a user with one of keystone_roles may do everything."
    )
    keystone_username: str = option("", "The user that validates tokens in Keystone.")
    keystone_password: str = option("", "That user's password.", secret=True)
    keystone_project: str = option("service", "That user's project.")
    keystone_user_domain: str = option("Default", "The domain of the user.")
    keystone_project_domain: str = option("Default", "The domain of the project.")
    keystone_cacert: str = option("", "The file with the authority of Keystone's certificate.")
    tls_cert: str = option("", "The certificate to serve HTTPS with, and its chain. Empty: HTTP.")
    tls_key: str = option("", "The certificate's private key.")
    key_file: str = option(
        "", "The key that credentials are encrypted with. Empty: vault.key in state_dir."
    )
    callback_seconds: float = option(
        10.0, "Maximum time for one attempt to deliver a notification.", 0
    )
    callback_attempts: int = option(8, "Maximum number of attempts to deliver a notification.", 0)
    callback_hosts: tuple[str, ...] = option(
        (),
        "Hosts to which notifications may go, also loopback ones. Empty: every host that has only "
        "public and private addresses.",
    )
    operation_seconds: float = option(
        90.0 * _DAY,
        "Time for which an operation is kept after its end, with its steps; the last one of each "
        "instance stays. 0: for ever.",
        0,
    )
    subscriptions: int = option(500, "Maximum number of subscriptions, of both APIs together.", 0)

    def __post_init__(self) -> None:
        refuse_invalid(self, GROUP)
        if self.auth == "none" and not is_loopback(self.host):
            raise ValueError(
                f"[{GROUP}] auth: none is only for a loopback address, and host is {self.host}: "
                "choose token_file or keystone"
            )
        if bool(self.tls_cert) != bool(self.tls_key):
            raise ValueError(f"[{GROUP}] tls_cert and tls_key: expected both or neither")

    @property
    def folder(self) -> Path:
        """``state_dir`` as a path."""
        return Path(self.state_dir).expanduser().absolute()

    @property
    def database(self) -> str:
        """The database's URL."""
        return self.database_url or f"sqlite:///{self.folder / 'vnfm.sqlite'}"

    @property
    def packages(self) -> Path:
        """The folder of the packages."""
        return self.folder / "packages"

    @property
    def members(self) -> Path:
        """The folder of the locks of the services that live, beside SQLite."""
        return self.folder / "members"

    @property
    def key_path(self) -> Path:
        """The file with the key that credentials are encrypted with."""
        return Path(self.key_file).expanduser() if self.key_file else self.folder / "vault.key"

    @property
    def token_path(self) -> Path:
        """The file with the tokens."""
        return Path(self.token_file).expanduser() if self.token_file else self.folder / "tokens"

    @property
    def base_url(self) -> str:
        """The beginning of every link."""
        scheme = "https" if self.tls_cert else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.endpoint.rstrip("/") or f"{scheme}://{host}:{self.port}"

    @classmethod
    def from_conf(cls, conf: Any, **given: Any) -> Settings:
        """Return the settings of an ``oslo_config.cfg.ConfigOpts``; *given* ones override them.

        :raises ValueError: a setting is invalid.
        """
        return cls(**{**read_section(conf, GROUP, cls), **given})


def list_opts() -> list[tuple[str, list[Any]]]:
    """Return the group and its options, for oslo-config-generator."""
    return [(GROUP, oslo_options(Settings))]
