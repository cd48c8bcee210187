"""The settings of an update, as a value and as oslo.config options.

oslo.config is imported only when options are asked for: a command line call and a v2 script start
without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

GROUP = "container_update"
"""The section of the configuration file."""

READING = (
    "url_schemes",
    "url_hosts",
    "url_seconds",
    "url_bytes",
    "package_files",
    "package_bytes",
    "def_file_bytes",
    "yaml_values",
    "yaml_depth",
)
"""The options that are bounds within which a package is read."""

_MIB = 1024 * 1024


def _option(
    default: float | int | bool | tuple[str, ...], text: str, minimum: float | None = None
) -> Any:
    return field(default=default, metadata={"help": text, "min": minimum})


@dataclass(frozen=True)
class Options:
    """How an update behaves. Times are in seconds."""

    timeout: float = _option(600.0, "How long one workload may take to be restarted.", 1)
    undo_timeout: float = _option(600.0, "How long the undo of a failed update may take.", 1)
    grace_period: float = _option(
        30.0,
        "How long all new pods of a workload may be in trouble (ImagePullBackOff, "
        "CrashLoopBackOff, ...) before the update fails.",
        0,
    )
    settle_seconds: float = _option(
        0.0,
        "How long everything that restarted must stay ready before the update counts as done. A "
        "pod without a readiness probe is ready before it does anything, and may crash then.",
        0,
    )
    retry_seconds: float = _option(
        60.0, "How long a request is tried again while the API server is away or overloaded.", 0
    )
    lease_seconds: float = _option(
        60.0,
        "After how long without a sign of life another host may take over an update. Clocks of "
        "hosts must agree within less than this.",
        3,
    )
    workers: int = _option(32, "How many workloads restart at the same time.", 1)
    request_timeout: float = _option(30.0, "How long one request to the API server may take.", 1)
    page_size: int = _option(500, "How many objects one page of a list holds.", 1)
    watch_seconds: float = _option(300.0, "How long one watch lasts before it is renewed.", 1)
    drain_seconds: float = _option(
        15.0,
        "How long the old pods of a Blue-Green change stay after the traffic was switched: until "
        "every node has heard of it and open requests are answered.",
        0,
    )
    coordination_seconds: float = _option(
        300.0, "How long a coordination script of a change of the package may run.", 1
    )
    url_schemes: tuple[str, ...] = _option(
        ("http", "https"), "Schemes that a def-file's URL may have: http, https, file."
    )
    url_hosts: tuple[str, ...] = _option(
        (),
        "Hosts that def-files may be fetched from, by name or address, as their URLs spell it. "
        "None: every host that has only public addresses.",
    )
    url_seconds: float = _option(30.0, "How long it may take to fetch a def-file.", 0.1)
    url_bytes: int = _option(8 * _MIB, "How big a def-file at a URL may be.", 1)
    package_files: int = _option(20_000, "How many files a package may have.", 1)
    package_bytes: int = _option(64 * 1024 * _MIB, "How big all files of a package may be.", 1)
    def_file_bytes: int = _option(8 * _MIB, "How big a def-file or definitions file may be.", 1)
    yaml_values: int = _option(
        500_000, "How many values a def-file may hold, with its aliases written out.", 1
    )
    yaml_depth: int = _option(100, "How deep mappings and lists may lie inside each other.", 1)
    insecure_skip_tls_verify: bool = _option(
        False, "Do not verify the API server's certificate. Never in production."
    )

    def __post_init__(self) -> None:
        for option in fields(self):
            minimum, value = option.metadata["min"], getattr(self, option.name)
            if minimum is not None and value < minimum:
                raise ValueError(f"[{GROUP}] {option.name}: expected at least {minimum}: {value}")

    @classmethod
    def from_conf(cls, conf: Any) -> Options:
        """The options of an ``oslo_config.cfg.ConfigOpts``; registers them where needed."""
        conf.register_opts(_oslo_options(), group=GROUP)
        section: Mapping[str, Any] = conf[GROUP]
        values: dict[str, Any] = {option.name: section[option.name] for option in fields(cls)}
        lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return cls(**{**values, **lists})


def _oslo_options() -> list[Any]:
    from oslo_config import cfg  # noqa: PLC0415

    kinds = {bool: cfg.BoolOpt, int: cfg.IntOpt, float: cfg.FloatOpt, tuple: cfg.ListOpt}
    options = []
    for option in fields(Options):
        kind: Any = kinds[type(option.default)]
        bounds = {} if option.metadata["min"] is None else {"min": option.metadata["min"]}
        text = option.metadata["help"]
        value: Any = option.default
        default = list(value) if isinstance(value, tuple) else value
        options.append(kind(option.name, default=default, help=text, **bounds))
    return options


def list_opts() -> list[tuple[str, list[Any]]]:
    """For oslo-config-generator: the group and its options."""
    return [(GROUP, _oslo_options())]
