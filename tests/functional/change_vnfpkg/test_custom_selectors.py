# SPDX-License-Identifier: Apache-2.0
"""Objects of other kinds whose spec has a selector of another form, as Calico's NetworkPolicy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.functional.change_vnfpkg.conftest import kubernetes_site
from tests.functional.change_vnfpkg.kubernetes import KubernetesContractSite as Site
from tests.functional.change_vnfpkg.kubernetes import Shape
from tests.functional.change_vnfpkg.site import V1, V2
from tests.functional.conftest import until
from tests.functional.upgrade_types import BLUE_GREEN, CANARY, ROLLING
from tests.internals.core import ObjectKey

GROUP = "selectors.example.com"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"policies.{GROUP}"},
    "spec": {
        "group": GROUP,
        "names": {"kind": "Policy", "plural": "policies"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


@pytest.fixture(params=[BLUE_GREEN, CANARY, ROLLING])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """A namespace of the cluster with the kind, for each strategy."""
    with kubernetes_site(request.param, request, tmp_path) as site:
        assert isinstance(site, Site)
        site.admin.create(DEFINITION)
        site.cluster = site.admin
        yield site
        site.admin.delete(key := ObjectKey.of(DEFINITION))
        until(lambda: site.admin.get(key) is None)


@pytest.mark.parametrize("selector", ["app == 'web'", [{"key": "app"}], {"matchLabels": ["app"]}])
def test_a_selector_of_another_form_takes_effect(site: Site, selector: object) -> None:
    for order, release in ((1, V1), (2, V2)):
        body = {"apiVersion": f"{GROUP}/v1", "kind": "Policy", "metadata": {"name": "allow"}}
        policy = {**body, "spec": {"selector": selector, "order": order}}
        site.shape = Shape(more={"policy.yaml": yaml.safe_dump(policy)})
        if release is V1:
            site.instantiate(V1)
        else:
            site.change(V2)
    assert site.is_at("v2")
    assert site.get(GROUP, "Policy", "allow")["spec"] == {"selector": selector, "order": 2}
