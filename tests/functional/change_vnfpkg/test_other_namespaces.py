# SPDX-License-Identifier: Apache-2.0
"""A VNF in two namespaces, with objects of one name in both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.functional.change_vnfpkg.conftest import CHANGE_OPTIONS
from tests.functional.change_vnfpkg.kubernetes import KubernetesContractSite as Site
from tests.functional.change_vnfpkg.kubernetes import Shape
from tests.functional.change_vnfpkg.site import V1, V2, Arguments
from tests.functional.upgrade_types import BLUE_GREEN, CANARY, ROLLING
from tests.internals.core import Json, KubernetesCluster, ObjectKey


@pytest.fixture(params=[BLUE_GREEN, CANARY])
def site(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    admin: KubernetesCluster,
    namespace: str,
    kubeconfig: str,
) -> Site:
    """A namespace to instantiate the VNF in, with all rights."""
    options = CHANGE_OPTIONS
    return Site(request.param, admin, admin, namespace, tmp_path, options, kubeconfig=kubeconfig)


def there(text: str, namespace: str) -> str:
    """Return a manifest for another namespace."""
    body = yaml.safe_load(text)
    body["metadata"]["namespace"] = namespace
    return yaml.safe_dump(body)


def autoscaler(namespace: str, target: str) -> Json:
    """Return an autoscaler of a Deployment of its namespace."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "scaler", "namespace": namespace},
        "spec": {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 5},
    }


def test_deployments_of_one_name_and_selector_change_at_once(site: Site, elsewhere: str) -> None:
    for release in (V1, V2):
        shape = Shape()
        both = {"b.yaml": there(shape.deployment("VDU1", release), elsewhere)}
        site.shape = Shape(more=both)
        if release is V1:
            site.instantiate(V1)
        else:
            site.change(V2)
    assert site.is_at("v2")
    other = site.admin.get(ObjectKey("apps", "Deployment", elsewhere, "web"))
    assert other is not None
    assert "1.28" in str(other["spec"]["template"])


@pytest.mark.parametrize("files", [("service", "web", "worker"), ("service", "web", "worker", "b")])
def test_an_autoscaler_of_another_namespace_stays_as_it_is(
    site: Site, elsewhere: str, files: tuple[str, ...]
) -> None:
    renamed = site.upgrade_type == BLUE_GREEN  # a canary's Service selects both by one label
    shape = Shape(versioned_names=renamed)
    target = shape.name("VDU1", V1.version)
    stays = [
        there(shape.deployment("VDU1", V1), elsewhere),
        yaml.safe_dump(autoscaler(elsewhere, target)),
    ]
    site.shape = replace(shape, more={"b.yaml": "---\n".join(stays)})
    site.instantiate(V1)
    listed = [f"Files/{name}.yaml" for name in files]
    site.change(V2, Arguments({"lcm-kubernetes-def-files": listed}))
    key = ObjectKey("autoscaling", "HorizontalPodAutoscaler", elsewhere, "scaler")
    scaler = site.admin.get(key)
    assert scaler is not None
    assert scaler["spec"]["scaleTargetRef"]["name"] == target


def test_no_gap_is_noted_for_a_service_of_another_namespace(site: Site, elsewhere: str) -> None:
    site.upgrade_type = ROLLING
    for release in (V1, V2):
        shape = Shape(labelled=True)
        site.shape = replace(shape, more={"b.yaml": there(shape.service_text(release), elsewhere)})
        if release is V1:
            site.instantiate(V1)
    noted = [note.key.namespace for note in site.plan(V2).notes if "no endpoints" in note.text]
    assert noted == [site.namespace]
