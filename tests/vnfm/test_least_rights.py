# SPDX-License-Identifier: Apache-2.0
"""The service with the rights that ``deploy/kubernetes`` gives it in a namespace, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from container_update import Options
from container_update.emulator.kubernetes import Behaviour, EmbeddedCluster
from tests.functional import role
from tests.tacker.conftest import Kubectl
from tests.vnfm import scalable
from tests.vnfm.client import Client

LIFECYCLE = Path(__file__).parents[2] / "deploy/kubernetes/cnf-namespace.yaml"
NAMESPACE = "default"
RBAC = "apis/rbac.authorization.k8s.io/v1"
Json = dict[str, Any]


@pytest.fixture
def options() -> Options:
    return Options(lease_seconds=3, timeout=20, undo_timeout=20, grace_period=0.5)


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    """A cluster with the account and its Roles, as the two files say."""
    objects = [
        *role.objects(NAMESPACE),
        *yaml.safe_load_all(LIFECYCLE.read_text().replace("my-cnf", NAMESPACE)),
    ]
    with EmbeddedCluster(behaviour=Behaviour(start_seconds=0.01, stop_seconds=0.01)) as running:
        for obj in objects:
            plural = f"{obj['kind'].lower()}s"
            running.call(
                lambda registry, plural=plural, obj=obj: registry.create(plural, NAMESPACE, obj)
            )
        yield running


@pytest.fixture
def vims(client: Client, cluster: EmbeddedCluster, tmp_path: Path) -> Any:
    """The vimConnectionInfo of a request, with the account's token."""
    administrator = str(cluster.write_kubeconfig(tmp_path / "administrator"))
    path = role.write_kubeconfig(administrator, NAMESPACE, tmp_path / "account")
    (user,) = yaml.safe_load(Path(path).read_text())["users"]
    found = client.vims(cluster)
    entry = found["vim1"] if client.api == "v2" else found[0]
    entry["accessInfo"] = {"bearer_token": user["user"]["token"]}
    return found


def test_a_vnf_is_instantiated_scaled_healed_and_terminated(
    client: Client, created: str, vims: Any, kubectl: Kubectl
) -> None:
    scale = {"type": "SCALE_OUT", "aspectId": scalable.ASPECT, "numberOfSteps": 1}
    whole = {"additionalParams": {"all": True}}
    client.do("POST", f"{created}/instantiate", scalable.instantiation(vims))
    client.do("POST", f"{created}/scale", scale)
    assert len(kubectl.pods()) == 3
    one = client.call("GET", created)["instantiatedVnfInfo"]["vnfcResourceInfo"][0]["id"]
    if client.api == "v1":
        client.do("POST", f"{created}/heal", {"vnfcInstanceId": [one]})
    client.do("POST", f"{created}/heal", whole)
    client.do("POST", f"{created}/terminate", {"terminationType": "FORCEFUL"})
    assert kubectl.pods() == {}
