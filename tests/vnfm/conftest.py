# SPDX-License-Identifier: Apache-2.0
"""The service's environment: a cluster, packages, databases."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
import tackerclient
from fastapi.testclient import TestClient

from container_update import Options, connect
from container_update.emulator.kubernetes import EmbeddedCluster
from tests.functional.proxy import Proxy
from tests.functional.real import REAL
from tests.internals.core import (
    Collection,
    KubernetesCluster,
    ObjectKey,
    Reading,
    samples,
    vnfd,
    yaml11,
)
from tests.internals.service import Service, Settings, perform
from tests.tacker.conftest import Kubectl
from tests.vnfm import postgres, scalable
from tests.vnfm.client import Client
from tests.vnfm.consumer import Consumer
from tests.vnfm.served import Served, served
from tests.vnfm.waiting import until

if TYPE_CHECKING:
    from tests.vnfm.clouds import Cloud

SAMPLES = samples.root()
Build = Callable[..., Mapping[str, Path]]


@contextmanager
def unrecorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have no operation recorded at its end while the block runs, as without a database."""

    def no_database(*_: object) -> None:
        raise OSError("no database")

    with monkeypatch.context() as patch:
        patch.setattr(perform, "_record", no_database)
        yield


@pytest.fixture(scope="session", autouse=True)
def parsed_once() -> Iterator[None]:
    """Parse each file of a VNFD once: every operation of every test reads ETSI's types again.

    Each use gets a copy of its own, counts as much against the limits of its package, and is
    parsed if it would exceed them.
    """
    parsed: dict[tuple[Any, ...], tuple[bytes, Reading]] = {}

    def mapping(text: bytes, path: str, options: Options, content: str, reading: Reading) -> Any:
        key = text, path, options, content
        if key not in parsed:
            own = Reading()
            value = yaml11.mapping(text, path, options, content, own)
            parsed[key] = pickle.dumps(value), own
        copied, own = parsed[key]
        reading.record(path, own.values, own.characters)
        if reading.values > options.yaml_values or reading.characters > options.yaml_characters:
            return yaml11.mapping(text, path, options, content, reading)
        return pickle.loads(copied)

    with mock.patch.object(vnfd, "mapping", mapping):
        yield


class RealCluster(Proxy):
    """A real cluster behind a proxy, with what the tests ask of the embedded one."""

    @property
    def url(self) -> str:
        """See ClusterAccess."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def ca_text(self) -> str:
        """See ClusterAccess."""
        return str(self._authority.cert_pem.bytes().decode())

    @property
    def token(self) -> str:
        """See ClusterAccess."""
        return self.upstream.token

    @property
    def behaviour(self) -> Any:
        """What only the kubelets of the embedded cluster do when they are told."""
        return pytest.skip("the kubelets of a real cluster are not told what to do")

    def clear(self, kubeconfig: str) -> None:
        """Delete what a test has left in its namespace, and wait until it is gone."""
        kinds = {"apps": ("Deployment", "StatefulSet", "DaemonSet")}
        kinds |= {"": ("Service", "ConfigMap", "Secret", "Pod"), "coordination.k8s.io": ("Lease",)}
        places = [Collection(group, kind, "default") for group in kinds for kind in kinds[group]]
        with connect(kubeconfig) as admin:

            def left() -> list[ObjectKey]:
                keys = [ObjectKey.of(each) for place in places for each in admin.list(place).items]
                return [k for k in keys if k.name != "kubernetes" and not k.name.endswith(".crt")]

            for key in left():
                admin.delete(key)
            until(lambda: not left(), "the namespace is empty", 60)


@pytest.fixture
def cluster() -> Iterator[Any]:
    """An empty cluster: where ``CONTAINER_UPDATE_KUBECONFIG`` names one, a real one."""
    if REAL is None:
        with EmbeddedCluster() as running:
            yield running
        return
    with RealCluster(REAL) as real:
        yield real
        real.clear(REAL)


@pytest.fixture
def kubernetes(cluster: EmbeddedCluster, tmp_path: Path) -> Iterator[KubernetesCluster]:
    """A client of the test's cluster."""
    with connect(str(cluster.write_kubeconfig(tmp_path / "kubeconfig"))) as connected:
        yield connected


@pytest.fixture
def options() -> Options:
    """The options of the service; a module may have its own."""
    return Options()


@pytest.fixture
def http(options: Options, tmp_path: Path) -> Iterator[TestClient]:
    """A client of a service of its own."""
    service = Service(Settings(state_dir=str(tmp_path / "state"), auth="none"), options)
    with TestClient(service.app, base_url="http://127.0.0.1:9890") as client:
        yield client


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A client of a service that the tests of a module share: it stores nothing of theirs."""
    state = tmp_path_factory.mktemp("refusing")
    service = Service(Settings(state_dir=str(state / "state"), auth="none"), Options())
    with TestClient(service.app, base_url="http://127.0.0.1:9890") as client:
        yield client


@pytest.fixture(params=["v1", "v2"])
def client(request: pytest.FixtureRequest, http: TestClient) -> Client:
    """A client of each of the two APIs, one after the other."""
    return Client(http, str(request.param))


@pytest.fixture
def created(client: Client, tmp_path: Path) -> str:
    """The path of an instance of Tacker's VNFD with scaling aspects, not instantiated."""
    return client.create(client.onboard(scalable.package(tmp_path)))


@pytest.fixture
def vnf(client: Client, created: str, cluster: EmbeddedCluster) -> str:
    """The path of a running one."""
    request = scalable.instantiation(client.vims(cluster))
    client.do("POST", f"{created}/instantiate", request)
    return created


@pytest.fixture
def consumer() -> Iterator[Consumer]:
    """A consumer of notifications that listens."""
    with Consumer() as listening:
        yield listening


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    """The embedded cloud, with a load balancer beside it."""
    from tests.vnfm.clouds import clouded  # noqa: PLC0415, it needs the extra openstack

    with clouded() as running:
        yield running


@pytest.fixture
def kubectl(cluster: EmbeddedCluster, tmp_path: Path) -> Iterator[Kubectl]:
    """A client of the test's cluster."""
    with closing(Kubectl(cluster.write_kubeconfig(tmp_path / "kubeconfig"))) as connected:
        yield connected


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Builds the user guides' packages of an API, with the guide's VNFD ids or with others."""
    tests = Path(tackerclient.__file__).parent / "tests"
    (client_types,) = tests.glob("**/sample_vnf_package/Definitions")
    types = tmp_path_factory.mktemp("types")
    for name in samples.TYPE_FILES:  # with the import that Tacker has, and its client commented out
        text = (client_types / name).read_text()
        (types / name).write_text(text.replace("#imports:\n#  - https:", "imports:\n  - https:"))
    assert "\nimports:\n  - https:" in (types / samples.TYPE_FILES[1]).read_text()

    def build(api: str, vnfd_ids: Mapping[str, str] | None = None) -> Mapping[str, Path]:
        return samples.build_for_tacker(api, types, tmp_path_factory.mktemp(api), vnfd_ids)

    return build


@pytest.fixture(scope="session")
def zipped(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Mapping[str, Path]]:
    """The packages of another sample, before and after, as zips."""

    def zipped(sample: str) -> Mapping[str, Path]:
        folder = tmp_path_factory.mktemp(sample)
        return {
            side: Path(shutil.make_archive(str(folder / side), "zip", SAMPLES / sample / side))
            for side in ("before", "after")
        }

    return zipped


def _postgresql_server() -> Iterator[postgres.Server]:
    binaries = postgres.find()
    if binaries is None:
        pytest.skip("no PostgreSQL: apt-get install postgresql")
    with postgres.running(binaries) as server:
        yield server


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[postgres.Server]:
    """A running PostgreSQL for all tests; skipped if Debian's package is not installed."""
    yield from _postgresql_server()


@pytest.fixture
def own_postgresql() -> Iterator[postgres.Server]:
    """A running PostgreSQL that this test may stop."""
    yield from _postgresql_server()


@pytest.fixture
def pair(own_postgresql: postgres.Server, tmp_path: Path) -> Iterator[tuple[Served, Served]]:
    """Two services on one database and with one state directory."""
    url = own_postgresql.create_database()
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "state").symlink_to(tmp_path / "first" / "state")
    with served(tmp_path / "first", url) as first, served(tmp_path / "second", url) as second:
        yield first, second


@pytest.fixture
def postgresql(postgresql_server: postgres.Server) -> str:
    """The URL of an empty database in it."""
    return postgresql_server.create_database()


@pytest.fixture(params=postgres.DATABASES)
def database(request: pytest.FixtureRequest) -> str:
    """The URL of each kind of database, one after the other; '' for SQLite in a folder."""
    return "" if request.param == "sqlite" else str(request.getfixturevalue("postgresql"))
