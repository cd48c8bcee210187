# SPDX-License-Identifier: Apache-2.0
"""A running Tacker: MariaDB, RabbitMQ, tacker-conductor and tacker-server, all on loopback.

Every process has a session of its own, so that stopping it also ends its children and nothing else.
"""

from __future__ import annotations

import contextlib
import http
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.tacker import programs
from tests.tacker.lab import Lab, LabError

START_SECONDS = 90.0

TACKER_CONF = """
[DEFAULT]
bind_host = 127.0.0.1
bind_port = {api}
auth_strategy = keystone
debug = True
state_path = {state}
api_paste_config = {paste}
transport_url = rabbit://guest:guest@127.0.0.1:{rabbit}/
api_workers = 1
graceful_shutdown_timeout = 2
db_synchronization_interval = 15
[database]
connection = mysql+pymysql://root@127.0.0.1:{maria}/tacker?charset=utf8
max_overflow = 200
[glance_store]
default_backend = file
stores = file
filesystem_store_datadir = {state}/store
[vnf_package]
vnf_package_csar_path = {state}/packages
[k8s_vim]
use_barbican = True
stack_retries = 500
stack_retry_wait = 1
[vim_keys]
openstack = {state}/vims
[key_manager]
api_class = keys.Keys
[ext_oauth2_auth]
use_ext_oauth2_auth = True
token_endpoint = http://127.0.0.1:9/none
client_id = none
scope = none
[coordination]
backend_url = file://{state}/coordination
[oslo_concurrency]
lock_path = {state}/locks
[v2_vnfm]
endpoint = http://127.0.0.1:{api}
kubernetes_vim_rsc_wait_timeout = 120
[v2_nfvo]
vnf_package_cache_dir = {state}/cache
[tacker]
vnflcm_mgmt_driver = vnflcm_noop,mgmt-container-update
"""

QUICK = """
[container_update]
drain_seconds = 1
grace_period = 5
lease_seconds = 20
"""

RABBIT_CONF = """
listeners.tcp.local = 127.0.0.1:{rabbit}
log.console.level = warning
vm_memory_high_watermark.absolute = 512MB
"""

CONSUMERS = """
import time, amqp
deadline = time.monotonic() + 90
def consumed(queue):
    try:
        with amqp.Connection("127.0.0.1:{rabbit}") as connection:
            return connection.channel().queue_declare(queue, passive=True).consumer_count > 0
    except amqp.exceptions.NotFound:
        return False
for queue in ("TACKER_CONDUCTOR", "TACKER_CONDUCTOR_V2"):
    while consumed(queue) is not {consumed}:
        if time.monotonic() > deadline:
            raise SystemExit(queue + " has no consumer, or still one, after 90 s")
        time.sleep(0.1)
"""
"""Waits until the conductor consumes its queues: what is sent to it before that is lost. Or until
it consumes none any more."""


@dataclass(frozen=True)
class Tacker:
    """A running Tacker."""

    lab: Lab
    url: str
    logs: Path
    conf: Path
    restart_conductor: Callable[[], None]
    """Kills the conductor, with the scripts that it runs, and starts it again."""

    def client(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run the ``openstack`` client to its end."""
        return programs.run_client(self.lab, list(arguments), self.logs)


@contextlib.contextmanager
def running(
    lab: Lab,
    folder: Path,
    more_conf: str = QUICK,
    path: Path | None = None,
    authentication: str = "identity",
) -> Iterator[Tacker]:
    """Start everything in a separate folder, and stop it at the end.

    :param more_conf: what ``tacker.conf`` has beside what Tacker needs.
    :param path: a folder where the conductor looks for modules first.
    :param authentication: the module that says whose a request is.
    """
    with contextlib.ExitStack() as stack:
        starter = _Starter(lab, folder, stack)
        ports = {name: _free_port() for name in ("api", "maria", "rabbit", "epmd", "erlang")}
        conf = _write_configuration(lab, folder, ports, more_conf, authentication)
        _start_rabbit(starter, ports)
        _start_maria(starter, ports)
        environment = {
            **os.environ,
            **programs.environment(lab),
            "CONTAINER_UPDATE_CONFIG": str(conf),
            "TMPDIR": str(_made(folder / "tmp")),
        }
        if path is not None:
            environment["PYTHONPATH"] = f"{path}:{environment['PYTHONPATH']}"
        config = ("--config-file", str(conf))
        migrate = [lab.binary("tacker-db-manage"), *config, "upgrade", "head"]
        starter.once("database", migrate, environment)
        starter.wait("rabbit", lambda: _answers(ports["rabbit"]))
        conductor = [str(lab.python), str(programs.INSIDE / "conductor.py"), *config]

        def wait_for_conductor(*, consumed: bool) -> None:
            code = CONSUMERS.format(**ports, consumed=consumed)
            starter.once("consumers", [str(lab.python), "-c", code], os.environ)

        def restart_conductor() -> None:
            starter.stop("conductor")
            wait_for_conductor(consumed=False)
            starter.start("conductor", conductor, environment)
            wait_for_conductor(consumed=True)

        starter.start("conductor", conductor, environment)
        starter.start("server", [lab.binary("tacker-server"), *config], environment)
        url = f"http://127.0.0.1:{ports['api']}"
        starter.wait("server", lambda: _serves(f"{url}/vnflcm/v2/vnf_instances"))
        wait_for_conductor(consumed=True)
        yield Tacker(lab, url, folder, conf, restart_conductor)


class _Starter:
    """Starts processes with their output in a log, and has them stopped at the end."""

    def __init__(self, lab: Lab, folder: Path, stack: contextlib.ExitStack) -> None:
        self.lab = lab
        self.folder = folder
        self._stack = stack
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, command: list[str], environment: Mapping[str, str]) -> None:
        """Start a process that runs until the end."""
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd=self.folder,
                start_new_session=True,
            )
        self._processes[name] = process
        self._stack.callback(_stop, process)

    def stop(self, name: str) -> None:
        """Kill a process."""
        _stop(self._processes[name])

    def once(self, name: str, command: list[str], environment: Mapping[str, str]) -> None:
        """Run a process to its end. LabError if it fails."""
        with (self.folder / f"{name}.log").open("wb") as log:
            completed = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd=self.folder,
                check=False,
            )
        if completed.returncode:
            raise LabError(f"{command[0]} failed: {self._last_words(name)}")

    def wait(self, name: str, ready: Callable[[], bool]) -> None:
        """Wait for a process to be ready. LabError if it ends or takes too long."""
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            if self._processes[name].poll() is not None:
                raise LabError(f"{name} ended at its start: {self._last_words(name)}")
            if time.monotonic() > deadline:
                raise LabError(f"{name} is not ready after {START_SECONDS:.0f} s")
            time.sleep(0.1)

    def _last_words(self, name: str) -> str:
        text = (self.folder / f"{name}.log").read_text(errors="replace")
        return " / ".join(text.strip().splitlines()[-3:])


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its children; their data are not needed any more."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _write_configuration(
    lab: Lab, folder: Path, ports: Mapping[str, int], more_conf: str, authentication: str
) -> Path:
    """Write tacker.conf with Tacker's own pipelines, except for the authentication."""
    state = _made(folder / "state")
    for name in ("store", "packages", "coordination", "locks"):
        _made(state / name)
    paste = folder / "api-paste.ini"
    own = (lab.venv / "etc/tacker/api-paste.ini").read_text()
    paste.write_text(own.replace("keystonemiddleware.auth_token:", f"{authentication}:"))
    conf = folder / "tacker.conf"
    conf.write_text(TACKER_CONF.format(state=state, paste=paste, **ports) + more_conf)
    return conf


def _start_rabbit(starter: _Starter, ports: Mapping[str, int]) -> None:
    home = _made(starter.folder / "rabbit")
    conf = home / "rabbitmq.conf"
    conf.write_text(RABBIT_CONF.format(**ports))
    (home / "enabled_plugins").write_text("[].\n")
    erlang = starter.lab.root / "usr/lib/erlang/bin"
    environment = {
        "HOME": str(home),
        "PATH": f"{erlang}:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": starter.lab.libraries(),
        "LANG": "C.UTF-8",
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(ports["epmd"]),
        "RABBITMQ_NODENAME": "tacker@localhost",
        "RABBITMQ_DIST_PORT": str(ports["erlang"]),
        "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
        "RABBITMQ_LOG_BASE": str(home / "log"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_CONFIG_FILE": str(conf),
        "RABBITMQ_CONF_ENV_FILE": str(home / "none"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
            "-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}"
        ),
    }
    epmd = str(starter.lab.unpacked("lib/erlang/erts-*/bin/epmd"))
    starter.start("epmd", [epmd], environment)
    starter.wait("epmd", lambda: _answers(ports["epmd"]))
    server = str(starter.lab.unpacked("lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server"))
    starter.start("rabbit", [server], environment)


def _start_maria(starter: _Starter, ports: Mapping[str, int]) -> None:
    usr = starter.lab.root / "usr"
    data, scratch = starter.folder / "maria", _made(starter.folder / "maria-tmp")
    environment = {**os.environ, "LD_LIBRARY_PATH": starter.lab.libraries()}
    common = ["--no-defaults", f"--basedir={usr}", f"--datadir={data}", f"--tmpdir={scratch}"]
    if os.geteuid() == 0:
        common.append("--user=root")
    install = [str(usr / "bin/mariadb-install-db"), *common, "--skip-test-db"]
    starter.once(
        "maria-install", [*install, "--auth-root-authentication-method=normal"], environment
    )
    options = [
        "--bind-address=127.0.0.1",
        f"--port={ports['maria']}",
        f"--socket={scratch}/socket",
        f"--lc-messages-dir={usr}/share/mysql",
        f"--character-sets-dir={usr}/share/mysql/charsets",
        "--skip-name-resolve",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-buffer-pool-size=64M",
        "--performance-schema=OFF",
        "--max-connections=600",
    ]
    starter.start("maria", [str(usr / "sbin/mariadbd"), *common, *options], environment)
    starter.wait("maria", lambda: _answers(ports["maria"]))
    create = (
        "import pymysql; c = pymysql.connect(host='127.0.0.1', user='root', port={maria});"
        "c.cursor().execute('create database tacker character set utf8mb3')"
    )
    python = str(starter.lab.python)
    starter.once("create", [python, "-c", create.format(**ports)], os.environ)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _serves(url: str) -> bool:
    request = urllib.request.Request(url, headers={"Version": "2.0.0"})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError as error:
        return error.code == http.HTTPStatus.UNAUTHORIZED
    except OSError:
        return False


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
