# SPDX-License-Identifier: Apache-2.0
"""Tacker's own functional tests, once with Tacker's drivers and once with ours.

    CONTAINER_UPDATE_KUBECONFIG=... python tests/tacker/suites.py [own|ours] [PART OF A NAME...]

runs them and prints both results side by side, with seconds; what ran before is kept. They come
from Tacker's source distribution. The cluster is to be one for this alone: whatever a test leaves
in it is deleted. Without a kubeconfig it is the embedded one. ``/tmp/scale_end`` and the like, by
which a test has an operation fail, are Tacker's.
"""

from __future__ import annotations

import contextlib
import hashlib
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

from tests.tacker import keystone, programs, services
from tests.tacker import lab as labs
from tests.tacker.cluster import RealCluster
from tests.tacker.lab import CHECKOUT, VERSION, Lab
from tests.tacker.operator import Operator

DRIVERS = ("own", "ours")
TESTS = "tacker.tests.functional"
V1, V2 = f"{TESTS}.sol_kubernetes.vnflcm", f"{TESTS}.sol_kubernetes_v2"
LEFT_OUT = {
    f"{V1}.test_kubernetes_helm": "needs Helm",
    f"{V2}.test_helm": "needs Helm",
    f"{V2}.test_vnfpm_basic": "needs a Prometheus",
    f"{V2}.test_vnfpm_threshold_basic": "needs a Prometheus",
    f"{V2}.test_threshold_prometheus_plugin": "needs a Prometheus",
}
"""Modules that do not run here, and why."""

CONF = """
[prometheus_plugin]
fault_management = True
auto_healing = True
auto_scaling = True
[container_update]
insecure_skip_tls_verify = true
"""
"""Some of the requests have no certificate authority: Tacker then verifies nothing."""

REQUIREMENTS = ("tempest", "ddt", "python-cinderclient", "flask")
"""What the tests import that Tacker does not need."""

FAULTY = '''"""Fails where a test asks for it, as the script that it replaces; else it is ours."""
import io, os, pickle, sys
from container_update.drivers import v2_process
given = sys.stdin.buffer.read()
operation = pickle.loads(given)["operation"]
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


@contextlib.contextmanager
def cluster_of(kubeconfig: str | None, folder: Path) -> Iterator[RealCluster]:
    """Yield the cluster of a kubeconfig, or an embedded one."""
    if kubeconfig:
        yield RealCluster(Path(kubeconfig))
        return
    from container_update.emulator.kubernetes import EmbeddedCluster  # noqa: PLC0415

    with EmbeddedCluster() as embedded:
        yield RealCluster(embedded.write_kubeconfig(folder / "kubeconfig"))


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


def names(sources: Path) -> list[str]:
    """Return the names of all tests."""
    found = []
    for package in (V1, V2):
        for file in sorted(sources.joinpath(*package.split(".")).glob("test_*.py")):
            text = file.read_text()
            (case,) = re.findall(r"(?m)^class (\w+)\(", text)
            tests = re.findall(r"(?m)^    def (test_\w+)\(self\):", text)
            found += [f"{package}.{file.stem}.{case}.{test}" for test in tests]
    return found


def offered(sources: Path) -> list[str]:
    """Return the names of the tests that run here."""
    return [name for name in names(sources) if name.rsplit(".", 2)[0] not in LEFT_OUT]


def copy_sources(sources: Path, driver: str, cluster: RealCluster, login: str, to: Path) -> None:
    """Copy the tests and their packages, with a driver and the address of a cluster in them."""
    shutil.copytree(sources, to, ignore=shutil.ignore_patterns("doc", "releasenotes"))
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
    exchanged: list[Path] = []
    if driver == "ours":
        drivers = CHECKOUT / "container_update/drivers"
        shutil.copy(drivers / "tacker_v1.py", to / OWN_V1)
        shutil.copy(drivers / "tacker_v2.py", to / OWN_V2)
        exchanged = [*to.glob("samples/tests/functional/sol_kubernetes_v2/**/sample_script.py")]
        for script in exchanged:
            script.write_text(FAULTY)
    exchanged += _bound_to(cluster.one_of_several_nodes(), to)
    for metadata in to.glob("samples/tests/**/TOSCA.meta"):
        _correct_hashes(metadata, exchanged, (to / OWN_V1, to / OWN_V2))


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


def _correct_hashes(metadata: Path, exchanged: Sequence[Path], drivers: Sequence[Path]) -> None:
    """Correct the hashes of what was exchanged; a test itself puts its driver into the package."""
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
    """Start a Tacker with a driver for a ``with`` block; yield the function that runs a test."""
    sources, work = fetch(lab), folder / "sources"
    path = shadow_of(sources / OWN_V1, folder / "path") if driver == "own" else None
    with (
        services.running(lab, folder, CONF, path) as tacker,
        keystone.running(tacker.url) as login,
    ):
        copy_sources(sources, driver, cluster, login, work)
        Operator(tacker, "v1").register_vim(cluster, "vim-kubernetes")
        with _runner(lab, tacker.conf, work) as runner:
            yield lambda name: _run(runner, name, cluster)


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


def _run(runner: subprocess.Popen[str], name: str, cluster: RealCluster) -> Result:
    assert runner.stdin is not None
    assert runner.stdout is not None
    runner.stdin.write(f"{name}\n")
    runner.stdin.flush()
    answer = json.loads(runner.stdout.readline())
    return Result(**answer, left=cluster.clean())


# --- the table ----------------------------------------------------------------------------------


def table(results: Mapping[str, Mapping[str, Result]], tests: Sequence[str]) -> str:
    """Return both results side by side, with seconds, as text that Sphinx reads too."""
    rows = [("Test", "With Tacker's drivers", "With ours")]
    for test in tests:
        reason = LEFT_OUT.get(test.rsplit(".", 2)[0])
        cells = [_cell(results.get(driver, {}).get(test)) for driver in DRIVERS]
        rows.append((_short(test), *([reason, ""] if reason else cells)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule])


def _short(test: str) -> str:
    *_, package, module, _, name = test.split(".")
    version = "v2" if package.endswith("v2") else "v1"
    return f"{version} {module.removeprefix('test_')} {name.removeprefix('test_')}"


def _cell(result: Result | None) -> str:
    return f"{result.outcome} {result.seconds:.0f} s" if result else "not run"


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
    wanted = [test for test in offered(sources) if not parts or any(part in test for part in parts)]
    kubeconfig = os.environ.get("CONTAINER_UPDATE_KUBECONFIG")
    for driver in drivers:
        folder = Path(tempfile.mkdtemp(prefix=f"suites-{driver}-"))
        with (
            cluster_of(kubeconfig, folder) as cluster,
            running(lab, driver, cluster, folder) as run,
        ):
            for test in wanted:
                result = run(test)
                add(file, driver, test, result)
                print(driver, _short(test), _cell(result), *result.left, sep="  ", flush=True)
                if result.outcome == "failed":
                    print(result.reason, f"(logs: {folder})", flush=True)
    print(table(load(file), names(sources)))


if __name__ == "__main__":
    main(sys.argv[1:])
