# SPDX-License-Identifier: Apache-2.0
"""The updates of the two user guides; the outputs in the guides are expected."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from container_update import Outcome, install, update
from tests.functional.cnf import Cnf, PodState
from tests.internals.core import KubernetesCluster, content, guide_request


@dataclass(frozen=True)
class Expected:
    """What a guide's second set of tables shows."""

    restarted_pods: dict[str, str]
    """Pods with RESTARTS 1 and their new image."""
    rolled: dict[tuple[str, str], str]
    """Workloads with new pods and their new image."""
    untouched: tuple[tuple[str, str], ...]
    """Workloads and pods of the second group."""
    second_config: str
    """The number at the end of the second group's ConfigMap and Secret."""


GUIDES = {
    "v1": Expected(
        {"env-test1": "cirros", "volume-test1": "cirros"},
        {
            ("Deployment", "deployment1"): "cirros",
            ("DaemonSet", "daemonset"): "cirros",
            ("ReplicaSet", "replicaset"): "cirros",
        },
        (("Pod", "env-test2"), ("Pod", "volume-test2"), ("Deployment", "deployment2")),
        "2",
    ),
    "v2": Expected(
        {"env-test": "tomcat", "volume-test": "cirros"},
        {
            ("Deployment", "vdu1-update"): "cirros",
            ("DaemonSet", "daemonset-vdu5"): "cirros",
            ("ReplicaSet", "vdu2-update"): "celebdor/kuryr-demo",
        },
        (("Pod", "env-test2"), ("Pod", "volume-test2"), ("Deployment", "deployment2-vdu6")),
        "3",
    ),
}


@dataclass(frozen=True)
class Run:
    """An update that has run."""

    cnf: Cnf
    expected: Expected
    before: dict[tuple[str, str], dict[str, PodState]]
    outcome: Outcome

    def pods(self, kind: str, name: str) -> dict[str, PodState]:
        return self.cnf.pods(kind, name)

    def sizes(self, secret: str) -> dict[str, int]:
        data = content(self.cnf.get("Secret", secret)).data
        return {key: len(value) for key, value in data.items()}


@pytest.fixture(params=GUIDES)
def run(request: pytest.FixtureRequest, cnf: Cnf, cluster: KubernetesCluster) -> Run:
    """A guide's old package instantiated and updated to the new one."""
    update_request = replace(guide_request(request.param), namespace=cnf.namespace)
    install(
        update_request.old,
        getattr(cnf, "admin", cluster),
        def_files=update_request.def_files,
        namespace=cnf.namespace,
        instance_id=update_request.instance_id,
        options=cnf.options,
    )
    expected = GUIDES[request.param]
    names = [
        *(("Pod", name) for name in expected.restarted_pods),
        *expected.rolled,
        *expected.untouched,
    ]
    before = {name: cnf.pods(*name) for name in names}
    return Run(cnf, expected, before, update(update_request, cluster, cnf.options))


def test_the_first_group_is_updated_and_the_second_is_as_it_was(run: Run) -> None:
    new, old = "configmap2 data2\nfoo2\nbar2", "configmap data\nfoo\nbar"
    second = run.expected.second_config
    assert run.cnf.get("ConfigMap", "cm-data")["data"] == {"cmKey1.txt": new}
    assert run.cnf.get("ConfigMap", f"cm-data{second}")["data"] == {"cmKey1.txt": old}
    assert run.sizes("secret-data") == {"password": 16, "secKey1.txt": 18}
    assert run.sizes(f"secret-data{second}") == {"password": 15, "secKey1.txt": 15}

    for name, image in run.expected.restarted_pods.items():
        (before,), (after,) = run.before["Pod", name].values(), run.pods("Pod", name).values()
        assert (after.uid, after.restarts, after.image) == (before.uid, 1, image)

    for (kind, name), image in run.expected.rolled.items():
        pods, olds = run.pods(kind, name), run.before[kind, name]
        assert {pod.image for pod in pods.values()} == {image}
        assert not {pod.uid for pod in pods.values()} & {pod.uid for pod in olds.values()}

    for name in run.expected.untouched:
        assert run.pods(*name) == run.before[name]


def test_the_records_are_the_live_pods_of_every_vdu(run: Run) -> None:
    recorded = {vnfc.pod_name for vnfc in run.outcome.vnfcs}
    live = {pod for name in run.before for pod in run.pods(*name)}
    assert recorded == live


def test_the_update_needs_less_than_thirty_requests(run: Run) -> None:
    assert run.outcome.requests < 30
