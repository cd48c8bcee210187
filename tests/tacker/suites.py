# SPDX-License-Identifier: Apache-2.0
"""Tacker's own functional tests, once with Tacker's drivers and once with ours.

    CONTAINER_UPDATE_KUBECONFIG=... python tests/tacker/suites.py [own|ours] [PART OF A NAME...]

runs them and prints both results side by side, with seconds; what ran before is kept. They come
from Tacker's source distribution. The cluster is to be one for this alone: whatever a test leaves
in it is deleted. Without a kubeconfig it is the embedded one. ``/tmp/scale_end`` and the like, by
which a test has an operation fail, are Tacker's.

The tests of VNFs of servers run with ``OS_CLOUD``, on a cloud for this alone too, whose
administrator is in clouds.yaml.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from tests.functional.stacks.site import REAL as CLOUD
from tests.functional.stacks.site import administrators_cloud
from tests.tacker import keystone, programs, services
from tests.tacker import lab as labs
from tests.tacker.cloud import RealCloud, write_certificates
from tests.tacker.cluster import RealCluster
from tests.tacker.lab import CHECKOUT, VERSION, Lab
from tests.tacker.operator import Operator

DRIVERS = ("own", "ours")
TESTS = "tacker.tests.functional"
V1, V2 = f"{TESTS}.sol_kubernetes.vnflcm", f"{TESTS}.sol_kubernetes_v2"


@dataclass(frozen=True)
class Suite:
    """Tests that share a Tacker."""

    packages: tuple[str, ...]
    conf: str
    """What their ``tacker.conf`` has beside what Tacker needs."""
    on_cloud: bool = True
    """Whether they are of VNFs of servers."""

    @property
    def name(self) -> str:
        """What Tacker calls the first package."""
        return self.packages[0].removeprefix(f"{TESTS}.")


LEFT_OUT = {
    f"{V1}.test_kubernetes_helm": "needs Helm",
    f"{V2}.test_helm": "needs Helm",
    f"{V2}.test_vnfpm_basic": "needs a Prometheus",
    f"{V2}.test_vnfpm_threshold_basic": "needs a Prometheus",
    f"{V2}.test_threshold_prometheus_plugin": "needs a Prometheus",
}
"""Modules that do not run here, and why."""

NO_DRIVER = {
    f"{TESTS}.sol_separated_nfvo.vnflcm.test_vnf_instance_with_user_data_nfvo_separate": (
        "functional6",
        "functional7",
    ),
    f"{TESTS}.sol_multi_tenant.vnflcm.test_vnf_lcm_with_multi_tenant": ("mt_functional1",),
}
"""Modules that run with Tacker's drivers alone, and their packages, which map no operation."""

CONF = """
[prometheus_plugin]
fault_management = True
auto_healing = True
auto_scaling = True
[container_update]
insecure_skip_tls_verify = true
"""
"""Some of the requests have no certificate authority: Tacker then verifies nothing."""

NFVO = """
[v2_nfvo]
use_external_nfvo = True
endpoint = {scheme}://localhost:9990
token_endpoint = {scheme}://localhost:9990/token
client_id = 229ec984de7547b2b662e968961af5a4
client_password = devstack
use_client_secret_basic = True
nfvo_verify_cert = True
nfvo_ca_cert_file = {{authority}}
"""
"""An NFVO beside Tacker, which is a server in the tests."""

KUBERNETES = Suite((V1, V2), CONF, on_cloud=False)
WITH_SCRIPT = (
    Suite((f"{TESTS}.sol_separated_nfvo_v2",), NFVO.format(scheme="http")),
    Suite(
        (f"{TESTS}.sol_https_v2",),
        NFVO.format(scheme="https")
        + """
[v2_vnfm]
notification_verify_cert = True
notification_ca_cert_file = {authority}
[prometheus_plugin]
fault_management = True
auto_scaling = True
performance_management = True
performance_management_package = tacker.sol_refactored.common.monitoring_plugin_base
performance_management_class = MonitoringPluginStub
""",
    ),
    Suite(
        (f"{TESTS}.sol_encrypt_cred_v2",),
        """
[DEFAULT]
use_credential_encryption = True
keymanager_type = local
crypt_key_dir = {folder}/crypt
"""
        + NFVO.format(scheme="https"),
    ),
)
"""Suites of VNFs of servers some of which map operations to a script."""

SUITES = (
    KUBERNETES,
    *WITH_SCRIPT,
    Suite(
        (f"{TESTS}.sol_separated_nfvo.vnflcm",),
        """
[connect_grant]
base_url = http://127.0.0.1:9990/grant/v1/grants
[connect_vnf_packages]
base_url = http://127.0.0.1:9990/vnfpkgm/v1/vnf_packages
pipeline = package_content,vnfd,artifacts
[openstack_vim]
stack_retries = 120
""",
    ),
    Suite((f"{TESTS}.sol_multi_tenant.vnflcm",), ""),
)
"""The configurations are those of Tacker's CI, in its ``zuul.d/jobs/openstack.yaml``."""

REQUIREMENTS = ("tempest", "ddt", "python-cinderclient", "flask")
"""What the tests import that Tacker does not need."""

FAULTY = '''"""Fails where a test asks for it, as the script that it replaces; else it is ours."""
import io, os, pickle, sys, tempfile
from container_update.drivers import v2_process
given = sys.stdin.buffer.read()
operation = pickle.loads(given)["operation"]
with open(os.path.join(tempfile.gettempdir(), "operations"), "a") as calls:
    calls.write(operation + "\\n")
if os.path.exists("/tmp/" + operation):
    sys.exit(f"the test has {operation} fail")
sys.stdin = io.TextIOWrapper(io.BytesIO(given))
v2_process.main()
'''
TEST_SECONDS = 1500
OWN_V1 = "samples/mgmt_driver/kubernetes/container_update/container_update_mgmt.py"
OWN_V2 = "tacker/sol_refactored/mgmt_drivers/container_update_mgmt_v2.py"


@dataclass(frozen=True)
class Result:
    """What became of a test."""

    outcome: str
    seconds: float
    reason: str
    left: Sequence[str]
    """What it left in the cluster, by kind and name."""
    operations: Sequence[str] | None = None
    """Those that Tacker ran our script for; None: not counted."""


@contextlib.contextmanager
def cluster_of(kubeconfig: str | None, folder: Path) -> Iterator[RealCluster]:
    """Yield the cluster of a kubeconfig, or an embedded one."""
    if kubeconfig:
        yield RealCluster(Path(kubeconfig))
        return
    from container_update.emulator.kubernetes import EmbeddedCluster  # noqa: PLC0415

    with EmbeddedCluster() as embedded:
        yield RealCluster(embedded.write_kubeconfig(folder / "kubeconfig"))


def cloud_of_tests() -> RealCloud:
    """Return the cloud that ``OS_CLOUD`` names."""
    return RealCloud(administrators_cloud() or str(CLOUD))


# --- Tacker's sources ---------------------------------------------------------------------------


def sources_of(lab: Lab) -> Path:
    """Return the folder of Tacker's sources, which may not be there."""
    return lab.folder / f"tacker-{VERSION}"


def fetch(lab: Lab) -> Path:
    """Return the folder of Tacker's sources; fetch them, and what their tests import."""
    sources = sources_of(lab)
    if not sources.exists():
        pip = (str(lab.python), "-m", "pip", "-q")
        subprocess.run([*pip, "install", *REQUIREMENTS], check=True)
        with tempfile.TemporaryDirectory(dir=lab.folder) as folder:
            of_sources = ("--no-deps", "--no-build-isolation", "--no-binary", "tacker")
            command = [*pip, "download", *of_sources, "-d", folder, f"tacker=={VERSION}"]
            subprocess.run(command, check=True)
            (archive,) = Path(folder).glob("*.tar.gz")
            shutil.unpack_archive(archive, folder)
            Path(folder, sources.name).rename(sources)
    return sources


def tests_of(suite: Suite, sources: Path) -> list[str]:
    """Return the names of the tests of a suite."""
    found = []
    for package in suite.packages:
        for file in sorted(sources.joinpath(*package.split(".")).glob("test_*.py")):
            text = file.read_text()
            (case,) = re.findall(r"(?m)^class (\w+)\(", text)
            tests = re.findall(r"(?m)^    def (test_\w+)\(self\b", text)
            found += [f"{package}.{file.stem}.{case}.{test}" for test in tests]
    return found


def offered(suite: Suite, sources: Path) -> list[str]:
    """Return the names of the tests of a suite that run here."""
    return [name for name in tests_of(suite, sources) if name.rsplit(".", 2)[0] not in LEFT_OUT]


def copy_sources(sources: Path, driver: str, to: Path) -> list[Path]:
    """Copy the tests and their packages, with a driver in them; return the exchanged scripts."""
    shutil.copytree(sources, to, ignore=shutil.ignore_patterns("doc", "releasenotes"))
    if driver == "own":
        return []
    drivers = CHECKOUT / "container_update/drivers"
    shutil.copy(drivers / "tacker_v1.py", to / OWN_V1)
    shutil.copy(drivers / "tacker_v2.py", to / OWN_V2)
    scripts = [*to.glob("samples/tests/functional/*/*/**/sample_script.py")]
    for script in scripts:
        script.write_text(FAULTY)
    return scripts


def address(to: Path, cluster: RealCluster, login: str) -> list[Path]:
    """Write the address of a cluster and that of Keystone into the tests; return the manifests that
    this changes."""
    given = to / "samples/tests/etc/samples"
    vim = {
        "auth_url": cluster.url,
        "bearer_token": cluster.token,
        "project_name": "default",
        "ssl_ca_cert": cluster.ca_text.replace("\n", " "),
        "type": "kubernetes",
    }
    (given / "local-k8s-vim.yaml").write_text(yaml.safe_dump(vim))
    user = given / "local-vim.yaml"
    user.write_text(re.sub(r"(?m)^auth_url: .*$", f"auth_url: {login}", user.read_text()))
    return _bound_to(cluster.one_of_several_nodes(), to)


def _bound_to(node: str, sources: Path) -> list[Path]:
    """Bind all DaemonSets to a node, because the tests count on one; return their files."""
    if not node:
        return []
    files = [
        file
        for file in sources.glob("samples/tests/**/*.yaml")
        if re.search(r"(?m)^kind: DaemonSet", file.read_text())
    ]
    for file in files:
        selector = f"    spec:\n      nodeSelector: {{kubernetes.io/hostname: {node}}}\n"
        file.write_text(file.read_text().replace("    spec:\n", selector))
    return files


def correct_hashes(sources: Path, exchanged: Sequence[Path]) -> None:
    """Correct the hashes of what was exchanged; a test itself puts its driver into the package."""
    for metadata in sources.glob("samples/tests/**/TOSCA.meta"):
        _correct_hashes(metadata, exchanged, (sources / OWN_V1, sources / OWN_V2))


def _correct_hashes(metadata: Path, exchanged: Sequence[Path], drivers: Sequence[Path]) -> None:
    root = metadata.parents[1]
    files = {str(each.relative_to(root)): each for each in exchanged if root in each.parents}
    files |= {f"Scripts/{each.name}": each for each in drivers}

    def with_hash(entry: re.Match[str]) -> str:
        file = files.get(entry[2].strip())
        hashed = entry[3] if file is None else hashlib.sha256(file.read_bytes()).hexdigest()
        return f"{entry[1]}{hashed}"

    entry = r"(Name: (.+)\nContent-Type: .+\nAlgorithm: SHA-256\nHash: )(\w+)"
    metadata.write_text(re.sub(entry, with_hash, metadata.read_text()))


def shadow_of(driver: Path, folder: Path) -> Path:
    """Make a folder that, in Python's path, has Tacker's v1 driver loaded in the place of ours.

    Python takes the entry points of the first distribution of a name.
    """
    information = folder / "container_update-0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: container-update\nVersion: 0\n"
    )
    (information / "entry_points.txt").write_text(
        "[tacker.tacker.mgmt.drivers]\n"
        f"mgmt-container-update = {driver.stem}:ContainerUpdateMgmtDriver\n"
    )
    shutil.copy(driver, folder)
    return folder


# --- running ------------------------------------------------------------------------------------

Run = Callable[[str], Result]


@contextlib.contextmanager
def running(lab: Lab, driver: str, cluster: RealCluster, folder: Path) -> Iterator[Run]:
    """Start a Tacker with a driver, for the tests on Kubernetes and for a ``with`` block; yield the
    function that runs a test."""
    sources, work = fetch(lab), folder / "sources"
    path = shadow_of(sources / OWN_V1, folder / "path") if driver == "own" else None
    with (
        services.running(lab, folder, KUBERNETES.conf, path) as tacker,
        keystone.running(tacker.url) as login,
    ):
        exchanged = copy_sources(sources, driver, work)
        correct_hashes(work, [*exchanged, *address(work, cluster, login)])
        Operator(tacker, "v1").register_vim(cluster, "vim-kubernetes")
        with _runner(lab, tacker.conf, work) as runner:
            yield lambda name: _run(runner, name, cluster, folder)


@contextlib.contextmanager
def running_on_cloud(
    lab: Lab, driver: str, suite: Suite, cloud: RealCloud, folder: Path
) -> Iterator[Run]:
    """Start a Tacker as :func:`running` does, for a suite of VNFs of servers."""
    sources, work = fetch(lab), folder / "sources"
    path = shadow_of(sources / OWN_V1, folder / "path") if driver == "own" else None
    pem, authority = write_certificates(folder)
    conf = suite.conf.format(folder=folder, authority=authority) + cloud.tacker_conf()
    with services.running(lab, folder, conf, path, "keystonemiddleware.auth_token") as tacker:
        cloud.add_tacker(tacker.url)
        exchanged = copy_sources(sources, driver, work)
        correct_hashes(work, exchanged)
        cloud.address(work, pem)
        with _runner(lab, tacker.conf, work) as runner:
            yield lambda name: _run(runner, name, cloud, folder)


@contextlib.contextmanager
def _runner(lab: Lab, conf: Path, work: Path) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, **programs.environment(lab)}
    environment["PYTHONPATH"] = f"{work}:{environment['PYTHONPATH']}"
    command = ["timeout", str(TEST_SECONDS * 30), str(lab.python)]
    with (
        (conf.parent / "tests.log").open("wb") as log,
        subprocess.Popen(
            [*command, str(programs.INSIDE / "run_tests.py"), str(conf)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            cwd=work,
            text=True,
        ) as runner,
    ):
        try:
            yield runner
        finally:
            runner.terminate()


def _run(
    runner: subprocess.Popen[str], name: str, vim: RealCluster | RealCloud, folder: Path
) -> Result:
    assert runner.stdin is not None
    assert runner.stdout is not None
    calls = folder / "tmp" / "operations"
    calls.write_text("")
    runner.stdin.write(f"{name}\n")
    runner.stdin.flush()
    answer = json.loads(runner.stdout.readline())
    return Result(**answer, left=vim.clean(), operations=calls.read_text().split())


# --- the table ----------------------------------------------------------------------------------


def table(results: Mapping[str, Mapping[str, Result]], tests: Sequence[str]) -> str:
    """Return both results side by side, with seconds, as text that Sphinx reads too."""
    rows = [("Test", "With Tacker's drivers", "With ours")]
    for test in tests:
        module = test.rsplit(".", 2)[0]
        own, ours = [_cell(results.get(driver, {}).get(test)) for driver in DRIVERS]
        if module in LEFT_OUT:
            own, ours = LEFT_OUT[module], ""
        elif module in NO_DRIVER:
            ours = "does not touch a driver"
        rows.append((_short(test), own, ours))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule])


def _short(test: str) -> str:
    *_, package, module, _, name = test.split(".")
    version = "v2" if package.endswith("v2") else "v1"
    return f"{version} {module.removeprefix('test_')} {name.removeprefix('test_')}"


def _cell(result: Result | None) -> str:
    if result is None:
        return "not run"
    calls = f", {len(result.operations)} calls" if result.operations else ""
    return f"{result.outcome} {result.seconds:.0f} s{calls}"


Results = dict[str, dict[str, Result]]
"""Of each driver, by the test's name."""


def load(file: Path) -> Results:
    """Return the results so far."""
    stored = json.loads(file.read_text()) if file.exists() else {}
    return {
        driver: {name: Result(**each) for name, each in of_driver.items()}
        for driver, of_driver in stored.items()
    }


def add(file: Path, driver: str, test: str, result: Result) -> None:
    """Store one more result."""
    results = load(file)
    results.setdefault(driver, {})[test] = result
    stored = {
        driver: {name: asdict(each) for name, each in of_driver.items()}
        for driver, of_driver in results.items()
    }
    file.write_text(json.dumps(stored, indent=1))


def main(arguments: Sequence[str]) -> None:
    """Run the tests that are asked for, and print the table of all."""
    lab = labs.find()
    labs.fetch(lab)
    labs.install_checkout(lab)
    drivers = [each for each in DRIVERS if each in arguments] or DRIVERS
    parts = [each for each in arguments if each not in DRIVERS]
    sources, file = fetch(lab), lab.folder / "suites.json"
    suites = [suite for suite in SUITES if CLOUD or not suite.on_cloud]
    for driver, suite in itertools.product(drivers, suites):
        tests = offered(suite, sources)
        if driver == "ours":
            tests = [test for test in tests if test.rsplit(".", 2)[0] not in NO_DRIVER]
        wanted = [test for test in tests if not parts or any(part in test for part in parts)]
        if wanted:
            run_tests(lab, driver, suite, wanted, file)
    for on_cloud in (False, True):
        of_kind = [suite for suite in SUITES if suite.on_cloud == on_cloud]
        tests = [test for suite in of_kind for test in tests_of(suite, sources)]
        print(table(load(file), tests), end="\n\n")


def run_tests(lab: Lab, driver: str, suite: Suite, tests: Sequence[str], file: Path) -> None:
    """Run tests of a suite with a driver, and store and print each result."""
    folder = Path(tempfile.mkdtemp(prefix=f"suites-{driver}-"))
    with contextlib.ExitStack() as stack:
        if suite.on_cloud:
            cloud = cloud_of_tests()
            run = stack.enter_context(running_on_cloud(lab, driver, suite, cloud, folder))
        else:
            kubeconfig = os.environ.get("CONTAINER_UPDATE_KUBECONFIG")
            cluster = stack.enter_context(cluster_of(kubeconfig, folder))
            run = stack.enter_context(running(lab, driver, cluster, folder))
        for test in tests:
            result = run(test)
            add(file, driver, test, result)
            print(driver, _short(test), _cell(result), *result.left, sep="  ", flush=True)
            if result.outcome == "failed":
                print(result.reason, f"(logs: {folder})", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
