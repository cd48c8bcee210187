# SPDX-License-Identifier: Apache-2.0
"""The settings of an update, as a dataclass and as oslo.config options.

oslo.config is imported only when a configuration file is read: the command line and the v2 script
start without it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any

from container_update.model.plan import CHANGED_KEYS, CHANGED_OBJECTS

GROUP = "container_update"
"""The section of the configuration file."""

PACKAGE_OPTIONS = (
    "url_schemes",
    "url_hosts",
    "url_seconds",
    "url_bytes",
    "package_urls",
    "package_files",
    "package_bytes",
    "def_file_bytes",
    "yaml_values",
    "yaml_characters",
    "yaml_depth",
    "vnfd_seconds",
    "vnfd_bytes",
    "signature_ca",
    "require_signature",
)
"""The options that limit how a package is read."""

KUBECTL, TACKER = "kubectl", "tacker"
REFUSE, NOTE = "refuse", "note"

OF_VNFM = 2
"""The most operations of an instance that are kept where a VNFM has it on record."""
LONGEST_LEASE = 3600.0
"""In seconds. Who may write into the VNF's namespace can write a lease: it keeps no operation
waiting for longer, and one that says so is refused."""

_MIB = 1024 * 1024


def size_text(size: int) -> str:
    """Return a size in a unit that fits, rounded up.

    >>> size_text(8 * _MIB), size_text(8 * _MIB + 1), size_text(1000)
    ('8MiB', '8.1MiB', '1000 bytes')
    """
    for unit, name in ((1024 * _MIB, "GiB"), (_MIB, "MiB")):
        if size >= unit:
            return f"{math.ceil(size * 10 / unit) / 10:g}{name}"
    return f"{size} bytes" if not size or size % 1024 else f"{size // 1024}KiB"


def option(  # noqa: PLR0913
    default: float | int | bool | str | tuple[str, ...],
    text: str,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] | None = None,
    *,
    kind: str | None = None,
    secret: bool = False,
) -> Any:
    """Return a field of a dataclass with settings.

    :param text: what it is, for the help and for oslo-config-generator.
    :param kind: its class in ``oslo_config.cfg``; None: by the type of its default.
    :param secret: its value is shown nowhere.
    """
    limits = {"min": minimum, "max": maximum, "choices": choices}
    metadata = {"help": text, **limits, "kind": kind, "secret": secret}
    return field(default=default, repr=not secret, metadata=metadata)


_NO_LIMITS = {"min": None, "max": None, "choices": None}


def refuse_invalid(settings: Any, group: str) -> None:
    """Refuse settings with a value that is out of its bounds, or none of its choices.

    :raises ValueError: names the first such setting.
    """
    for each in fields(settings):
        value, limits = getattr(settings, each.name), each.metadata
        expected = None
        if limits["min"] is not None and value < limits["min"]:
            expected = f"at least {limits['min']:g}"
        elif limits["max"] is not None and value > limits["max"]:
            expected = f"at most {limits['max']:g}"
        elif limits["choices"] is not None and value not in limits["choices"]:
            expected = f"one of {', '.join(limits['choices'])}"
        if expected:
            raise ValueError(f"[{group}] {each.name}: expected {expected}, found {value}")


@dataclass(frozen=True)
class Options:
    """The settings of an update. Times are in seconds, sizes in bytes.

    >>> Options(timeout=120, workers=8).undo_timeout
    600.0
    """

    timeout: float = option(600.0, "Maximum time in seconds for one workload to restart.", 1)
    undo_timeout: float = option(600.0, "Maximum time in seconds to undo a failed update.", 1)
    grace_period: float = option(
        30.0,
        "Time in seconds that all new pods of a workload may report an error (ImagePullBackOff, "
        "CrashLoopBackOff, ...), or the API server may refuse to create them (a quota, admission), "
        "before the update fails.",
        0,
    )
    settle_seconds: float = option(
        0.0,
        "Time in seconds that all restarted workloads must stay ready before the update succeeds, "
        "to notice pods without a readiness probe that crash after their start.",
        0,
    )
    retry_seconds: float = option(
        60.0,
        "Time in seconds to retry a request if the API server is unreachable or overloaded.",
        0,
    )
    restart_for: str = option(
        CHANGED_KEYS,
        "What restarts a workload: changed-keys, a key of a ConfigMap or Secret that its pods use; "
        "changed-objects, any key of one that they use, for programs that read more of it than "
        "their manifests declare.",
        choices=(CHANGED_KEYS, CHANGED_OBJECTS),
    )
    file_end: str = option(
        KUBECTL,
        "How a text block at the end of a file without a line end is read: as kubectl does, with "
        "one, or as Tacker does, without. A VNF of a VNFM: as Tacker does.",
        choices=(KUBECTL, TACKER),
    )
    dry_run_denials: str = option(
        REFUSE,
        "What follows where admission denies the dry run of a write: refuse, nothing is written; "
        "note, the write is not tried first. For a webhook that denies dry runs alone.",
        choices=(REFUSE, NOTE),
    )
    lease_seconds: float = option(
        60.0,
        "Time in seconds without a heartbeat after which another host may take over an update.",
        3,
        LONGEST_LEASE,
    )
    history: int = option(
        10,
        "Number of ended operations that the history of each VNF instance keeps, as Secrets in its "
        "namespace, to show and to undo them; 0: none. A VNF of a VNFM: the last two, to roll the "
        "last one back.",
        0,
    )
    workers: int = option(100, "Maximum number of workloads that restart at the same time.", 1)
    request_timeout: float = option(
        30.0, "Maximum time in seconds for one request to the API server.", 1
    )
    page_size: int = option(250, "Maximum number of objects in one page of a list.", 1)
    watch_seconds: float = option(300.0, "Time in seconds after which a watch is renewed.", 1)
    drain_seconds: float = option(
        15.0,
        "Time in seconds that the old pods of a Blue-Green change stay after the traffic was "
        "switched, until all nodes send it to the new pods and open requests are answered.",
        0,
    )
    coordination_seconds: float = option(
        300.0, "Maximum time in seconds for one run of a coordination script.", 1
    )
    prometheus: str = option(
        "",
        "URL of the Prometheus server that gates of a change query: http://prometheus:9090.",
    )
    url_schemes: tuple[str, ...] = option(
        ("http", "https"), "Allowed schemes of def-file URLs: http, https, file."
    )
    url_hosts: tuple[str, ...] = option(
        (),
        "Hosts from which def-files may be fetched, by name or address as in the URL; if empty, "
        "all hosts that have only public addresses.",
    )
    url_seconds: float = option(
        30.0,
        "Maximum time in seconds to fetch one def-file, name servers and handshakes included.",
        0.1,
    )
    url_bytes: int = option(8 * _MIB, "Maximum size in bytes of a def-file at a URL.", 1)
    package_urls: int = option(
        20, "Maximum number of URLs in a package's metadata, each of which is fetched.", 0
    )
    package_files: int = option(
        20_000, "Maximum number of files in a package; in a zip also of folders.", 1
    )
    package_bytes: int = option(
        256 * _MIB,
        "Maximum size in bytes of all files in a package together, images too.",
        1,
    )
    def_file_bytes: int = option(
        8 * _MIB, "Maximum size in bytes of a def-file or definitions file.", 1
    )
    yaml_values: int = option(
        500_000,
        "Maximum number of values in the YAML files of a package, with aliases expanded.",
        1,
    )
    yaml_characters: int = option(
        32 * _MIB,
        "Maximum number of characters in the texts and keys of a package's YAML files, with "
        "aliases expanded, and in the HEAT templates and other files of a flavour.",
        1,
    )
    yaml_depth: int = option(100, "Maximum nesting depth of mappings and lists in a YAML file.", 1)
    vnfd_seconds: float = option(
        1.5, "Maximum processor time in seconds to parse the topologies of a VNFD.", 0.1
    )
    vnfd_bytes: int = option(
        160 * _MIB, "Maximum memory in bytes to parse the topologies of a VNFD.", 32 * _MIB
    )
    signature_ca: str = option(
        "",
        "A PEM file with the certificates of trusted signers, or of their authorities: packages "
        "that none of them signed are refused. If empty, a signature only shows that a package "
        "was not changed.",
    )
    require_signature: bool = option(
        False, "Has no effect any more: signature_ca, which it needs, refuses unsigned packages."
    )
    pull: bool = option(
        False,
        "Have the nodes pull each new image first, in pods that are deleted at once, and refuse "
        "the plan if an image is not found or not allowed.",
    )
    render: bool = option(
        False,
        "Have kubectl render a folder that is a kustomization, and helm one that is a chart. Only "
        "the command line does this by default; do not use it for packages of other users.",
    )
    journal_key: str = option(
        "",
        "A secret text that signs the journals and histories in the cluster: those without its "
        "signature are refused.",
        secret=True,
    )
    no_journal_key: bool = option(
        False,
        "Do not sign journals and histories, and accept unsigned ones for objects of the VNF. "
        "Without this option and journal_key the command makes a key for its user.",
    )
    insecure_skip_tls_verify: bool = option(
        False, "Do not verify the API server's certificate; never use this in production."
    )

    def __post_init__(self) -> None:
        refuse_invalid(self, GROUP)
        if self.require_signature and not self.signature_ca:
            raise ValueError(
                f"[{GROUP}] require_signature needs signature_ca: else any signature is accepted"
            )

    def for_vnfm(self) -> Options:
        """Return the options for a VNF that a VNFM has on record.

        Its history is the VNFM's: the cluster has what a rollback of the last operation needs (of a
        change of the package what the one before led to, too), and no more, since the record would
        not know of another undo. Its files are read as Tacker does, which the user guides show.
        """
        return replace(self, history=min(self.history, OF_VNFM), file_end=TACKER)

    @classmethod
    def from_conf(cls, conf: Any) -> Options:
        """Return the options of an ``oslo_config.cfg.ConfigOpts``; register them if necessary."""
        return cls(**read_section(conf, GROUP, cls))


DEFAULTS = Options()


@dataclass(frozen=True)
class Release:
    """What a Helm chart is rendered for; it decides what the manifests are."""

    namespace: str = "default"
    name: str = ""
    """The VNF instance; empty: it has the name of the chart."""
    kube_version: str = ""
    """Of the cluster; empty: not known."""
    api_versions: tuple[str, ...] = ()
    """What the cluster serves, as ``apps/v1`` and ``apps/v1/Deployment``."""


@dataclass(frozen=True)
class ChartOptions(Options):
    """The settings of an operation with a Helm chart."""

    release: Release = field(default=Release(), metadata=_NO_LIMITS)


def read_section(conf: Any, group: str, settings: type) -> dict[str, Any]:
    """Return the values of a settings dataclass from its group of an oslo.config object."""
    conf.register_opts(oslo_options(settings), group=group)
    values: dict[str, Any] = {each.name: conf[group][each.name] for each in fields(settings)}
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return {**values, **lists}


def oslo_options(settings: type) -> list[Any]:
    """Return a settings dataclass as oslo.config options.

    :param settings: its fields have a default, and the other arguments of the option as metadata.
    """
    from oslo_config import cfg  # noqa: PLC0415

    kinds = {bool: "BoolOpt", int: "IntOpt", float: "FloatOpt", str: "StrOpt", tuple: "ListOpt"}
    options = []
    for each in fields(settings):
        arguments = {name: value for name, value in each.metadata.items() if value is not None}
        kind = arguments.pop("kind", None) or kinds[type(each.default)]
        default = list(each.default) if isinstance(each.default, tuple) else each.default
        options.append(getattr(cfg, kind)(each.name, default=default, **arguments))
    return options


def list_opts() -> list[tuple[str, list[Any]]]:
    """Return the group and its options, for oslo-config-generator."""
    return [(GROUP, oslo_options(Options))]
