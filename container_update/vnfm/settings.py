"""The settings of the service, as a dataclass and as oslo.config options, group ``[vnfm]``."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from container_update.model.options import oslo_options, read_section

GROUP = "vnfm"
"""The section of the configuration file."""

LOG_FORMATS = ("auto", "text", "json")

_MIB = 1024 * 1024
_DAY = 24 * 3600


def _option(default: float | int | str | tuple[str, ...], text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Settings:
    """The settings of the service. Times are in seconds, sizes in bytes."""

    host: str = _option("127.0.0.1", "The address to listen on.")
    port: int = _option(9890, "The port to listen on; 0: a free one.")
    state_dir: str = _option(
        "vnfm-state",
        "The folder of the packages, the keys and, by default, the database. Services that share a "
        "database share this folder too.",
    )
    database_url: str = _option(
        "", "postgresql://USER@HOST/NAME. Empty: an SQLite file in state_dir."
    )
    endpoint: str = _option(
        "", "The URL under which clients know the service, for links. Empty: from host and port."
    )
    log_format: str = _option(
        "auto", "The format of log lines: text, json, or auto (text on a terminal, otherwise json)."
    )
    workers: int = _option(8, "Maximum number of operations that run at the same time.")
    request_bytes: int = _option(1 * _MIB, "Maximum size in bytes of a request's body.")
    upload_bytes: int = _option(1024 * _MIB, "Maximum size in bytes of an uploaded package.")
    download_seconds: float = _option(
        600.0, "Maximum time to fetch a package from the URI of a request."
    )
    page_size: int = _option(100, "Maximum number of entries in one page of a list.")
    drain_seconds: float = _option(
        30.0, "Maximum time for running operations to end when the service stops."
    )
    driver_seconds: float = _option(
        3600.0, "Maximum time for one run of a Mgmt Driver script of a package."
    )
    lock_seconds: float = _option(
        10.0,
        "Interval of the checks whether another service on the same database died; the same in "
        "all of them.",
    )
    auth: str = _option(
        "token_file", "Who may use the API: token_file, keystone, or none (only on loopback)."
    )
    token_file: str = _option(
        "", "The file with one token a line. Empty: tokens in state_dir, made at the first start."
    )
    keystone_url: str = _option("", "Keystone's URL, with its version: http://HOST:5000/v3.")
    keystone_roles: tuple[str, ...] = _option(
        ("admin",), "The roles that may use the API; a user needs one of them."
    )
    keystone_reader_roles: tuple[str, ...] = _option(
        (), "The roles that may only read; a user with one of keystone_roles may do everything."
    )
    keystone_username: str = _option("", "The user that validates tokens in Keystone.")
    keystone_password: str = field(
        default="", repr=False, metadata={"help": "That user's password.", "secret": True}
    )
    keystone_project: str = _option("service", "That user's project.")
    keystone_user_domain: str = _option("Default", "The domain of the user.")
    keystone_project_domain: str = _option("Default", "The domain of the project.")
    keystone_cacert: str = _option("", "The file with the authority of Keystone's certificate.")
    tls_cert: str = _option("", "The certificate to serve HTTPS with, and its chain. Empty: HTTP.")
    tls_key: str = _option("", "The certificate's private key.")
    key_file: str = _option(
        "", "The key that credentials are encrypted with. Empty: vault.key in state_dir."
    )
    callback_seconds: float = _option(
        10.0, "Maximum time for one attempt to deliver a notification."
    )
    callback_attempts: int = _option(8, "Maximum number of attempts to deliver a notification.")
    callback_hosts: tuple[str, ...] = _option(
        (),
        "Hosts to which notifications may go, also loopback ones. Empty: every host that has only "
        "public and private addresses.",
    )
    operation_seconds: float = _option(
        90.0 * _DAY,
        "Time for which an operation is kept after its end, with its steps; the last one of each "
        "instance stays. 0: for ever.",
    )
    subscriptions: int = _option(500, "Maximum number of subscriptions, of both APIs together.")

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if isinstance(value, (int, float)) and value < 0:
                raise ValueError(f"[{GROUP}] {option.name}: expected at least 0, found {value}")
        if self.auth not in ("token_file", "keystone", "none"):
            raise ValueError(f"[{GROUP}] auth: expected token_file, keystone or none: {self.auth}")
        if self.log_format not in LOG_FORMATS:
            raise ValueError(
                f"[{GROUP}] log_format: expected one of {', '.join(LOG_FORMATS)}, found "
                f"{self.log_format}"
            )
        if self.auth == "none" and not is_loopback(self.host):
            raise ValueError(
                f"[{GROUP}] auth: none is only for a loopback address, and host is {self.host}: "
                "choose token_file or keystone"
            )
        if bool(self.tls_cert) != bool(self.tls_key):
            raise ValueError(f"[{GROUP}] tls_cert and tls_key: expected both or neither")
        for name in ("workers", "page_size", "driver_seconds"):
            if getattr(self, name) < 1:
                raise ValueError(f"[{GROUP}] {name}: expected at least 1")

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


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is a loopback one."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def list_opts() -> list[tuple[str, list[Any]]]:
    """Return the group and its options, for oslo-config-generator."""
    return [(GROUP, oslo_options(Settings))]
