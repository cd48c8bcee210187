# SPDX-License-Identifier: Apache-2.0
"""What a request lists is applied; what it does not list stays, with the specification's VNF."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from container_update import PlanError, UpdateFailedError, install, terminate
from tests.functional import upgrade_types
from tests.functional.change_vnfpkg import specification
from tests.functional.change_vnfpkg.conftest import kubernetes_site
from tests.functional.change_vnfpkg.kubernetes import BAD_IMAGE, KubernetesContractSite
from tests.functional.change_vnfpkg.site import INSTANCE, V1, V2, Arguments, ContractSite, Release
from tests.functional.change_vnfpkg.specification import NAME, SERVICE, SpecificationShape
from tests.functional.changed import Changed
from tests.internals.core import Json, is_deleting

Site = KubernetesContractSite
SCRIPTED = replace(V2, vdus=("VDU1",), scripts=specification.SCRIPTS)
OLD = replace(V1, vdus=("VDU1",))


@pytest.fixture(params=upgrade_types.UPGRADE_TYPES)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContractSite]:
    """The specification's VNF, instantiated from its old package, for each strategy."""
    with kubernetes_site(request.param, request, tmp_path) as contract_site:
        assert isinstance(contract_site, Site)
        instantiate(contract_site, OLD)
        yield contract_site


def instantiate(site: Site, release: Release, files: Mapping[str, Json] | None = None) -> None:
    """Instantiate a release with these files; without, with the specification's."""
    site.shape = shape(v1=files)
    site.old = site.package(release)
    install(
        site.old,
        site.admin,
        namespace=site.namespace,
        instance_id=INSTANCE,
        options=replace(site.options.for_vnfm(), history=0),
    )


def shape(**files: Mapping[str, Json] | None) -> SpecificationShape:
    """The files of the releases v1 and v2, where they are not the specification's."""
    return SpecificationShape(files_of=tuple((v, f) for v, f in files.items() if f is not None))


def change(site: Site, listed: list[str] | None = None, **params: Any) -> Changed:
    """Change to the new package by the sample request, or with other def-files."""
    sample = specification.request(site.upgrade_type, "")["additionalParams"]
    if listed is not None:
        sample["lcm-kubernetes-def-files"] = listed
    given = {name: value for name, value in {**sample, **params}.items() if value is not None}
    changed = site.change(SCRIPTED, Arguments(given))
    site.old = site.package(SCRIPTED)
    return changed


def terminate_from(site: Site, package: str, changed: Changed) -> None:
    """Terminate the VNF as a VNFM does after a change, by the def-files that it left."""
    terminate(
        package,
        site.admin,
        instance_id=INSTANCE,
        def_files=changed.outcome.plan.def_files,
        namespace=site.namespace,
    )


def names(site: Site, group: str, kind: str) -> set[str]:
    """The names of the VNF's live objects of a kind."""
    return {
        body["metadata"]["name"]
        for body in site.objects(group, kind)
        if (body["metadata"].get("labels") or {}).get("tacker_vnf_instance_id") == INSTANCE
        and not is_deleting(body)
    }


def images(site: Site) -> set[str]:
    """The images that the VNF's pods run."""
    return {
        container["image"]
        for pod in site.objects("", "Pod")
        for container in pod["spec"]["containers"]
        if not is_deleting(pod)
    }


def served(site: Site) -> set[str]:
    """The images of the pods that get the Service's traffic."""
    pods = {pod["metadata"]["uid"]: pod for pod in site.objects("", "Pod")}
    return {
        pods[endpoint["targetRef"]["uid"]]["spec"]["containers"][0]["image"]
        for body in site.objects("discovery.k8s.io", "EndpointSlice")
        if body["metadata"]["labels"].get("kubernetes.io/service-name") == SERVICE
        for endpoint in body.get("endpoints") or ()
        if endpoint["conditions"].get("ready") and endpoint["targetRef"]["uid"] in pods
    }


# --- the specification's sample -----------------------------------------------------------------


def test_the_sample_request_changes_the_deployment_and_deletes_nothing(site: Site) -> None:
    service, config = (
        site.get("", kind, name)
        for kind, name in (("Service", SERVICE), ("ConfigMap", "nginx-app-original"))
    )
    changed = change(site)
    assert images(site) == served(site) == {"nginx:1.28-alpine"}
    assert site.get("", "ConfigMap", "nginx-app-original") == config
    now = site.get("", "Service", SERVICE)
    assert now["metadata"]["uid"] == service["metadata"]["uid"]
    expected = {"app": NAME, "version": "new-version"}
    selector = {k: v for k, v in now["spec"]["selector"].items() if not k.startswith("container-")}
    assert selector == expected
    assert not [step for step in changed.outcome.plan.steps if step.key.kind == "ConfigMap"]
    assert sorted(changed.records.def_files or changed.outcome.plan.def_files) == [
        "Files/kubernetes/configmap.yaml",
        "Files/kubernetes/deployment.yaml",
        "Files/kubernetes/service.yaml",
    ]


def test_after_the_sample_request_a_termination_leaves_nothing(site: Site) -> None:
    changed = change(site)
    terminate_from(site, site.old, changed)
    for group, kind in (("apps", "Deployment"), ("", "Service"), ("", "ConfigMap"), ("", "Pod")):
        assert not names(site, group, kind)


def test_a_failed_sample_change_puts_the_service_back(site: Site) -> None:
    before = site.get("", "Service", SERVICE)["spec"]
    broken = {**specification.files("new")}
    path = "kubernetes/deployment.yaml"
    broken[path] = specification.deployment("new", image=BAD_IMAGE)
    site.shape = shape(v2=broken)
    with pytest.raises(UpdateFailedError):
        change(site)
    assert site.get("", "Service", SERVICE)["spec"] == before
    assert images(site) == served(site) == {"nginx:alpine"}


def test_without_the_parameter_all_of_the_new_package_is_applied(site: Site) -> None:
    added = {**specification.files("new"), "extra.yaml": account("extra")}
    site.shape = shape(v2=added)
    site.change(SCRIPTED, Arguments({"vdu_params": [{"vdu_id": "VDU1"}]}))
    assert site.get("", "ConfigMap", "nginx-app-original")["data"]["index.html"] == "<h1>new</h1>"
    assert names(site, "", "ServiceAccount") == {"extra"}
    assert images(site) == served(site) == {"nginx:1.28-alpine"}


def test_what_a_second_request_lists_takes_effect_later(site: Site) -> None:
    """The first change left the ConfigMap and the ServiceAccount of the old package."""
    account_file = "kubernetes/account.yaml"
    old = {**specification.files("original"), account_file: account("sa")}
    site.admin.create(
        {**account("sa"), "metadata": {**LABELLED, "name": "sa", "namespace": site.namespace}}
    )
    site.old = replace_files(site, OLD, v1=old)
    new = {**specification.files("new"), account_file: account("sa", automount=False)}
    site.shape = shape(v2=new)
    change(site)
    assert "automountServiceAccountToken" not in site.get("", "ServiceAccount", "sa")
    change(site, [f"Files/{account_file}", "Files/kubernetes/configmap.yaml"])
    assert site.get("", "ServiceAccount", "sa")["automountServiceAccountToken"] is False
    assert site.get("", "ConfigMap", "nginx-app-original")["data"]["index.html"] == "<h1>new</h1>"


LABELLED = {"labels": {"tacker_vnf_instance_id": INSTANCE}}


def replace_files(site: Site, release: Release, **files: Mapping[str, Json]) -> str:
    """Return a package of a release with other files."""
    site.shape = shape(**files)
    return site.package(release)


def account(name: str, *, automount: bool | None = None) -> Json:
    """A ServiceAccount's manifest."""
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    return body if automount is None else {**body, "automountServiceAccountToken": automount}


# --- deleting -----------------------------------------------------------------------------------


def test_only_what_no_file_of_the_new_package_describes_is_deleted(site: Site) -> None:
    old = {**specification.files("original"), "gone.yaml": account("gone")}
    site.admin.create(
        {**account("gone"), "metadata": {**LABELLED, "name": "gone", "namespace": site.namespace}}
    )
    site.old = replace_files(site, OLD, v1=old)
    site.shape = shape()
    changed = change(site, vdu_params=None)
    assert names(site, "", "ServiceAccount") == set()
    (step,) = [step for step in changed.outcome.plan.steps if step.key.kind == "ServiceAccount"]
    assert [str(reason) for reason in step.reasons] == [
        "no file of the new package describes it (it was in Files/gone.yaml:1)"
    ]


# --- a VDU alone --------------------------------------------------------------------------------

OTHER = "kubernetes/other.yaml"


def other(image: str = "nginx:alpine") -> Json:
    """The DaemonSet of another VDU."""
    body = specification.deployment("original", image=image)
    labels = {"app": "other"}
    body["kind"], body["metadata"]["name"] = "DaemonSet", "other"
    template = {**body["spec"]["template"], "metadata": {"labels": labels}}
    body["spec"] = {"selector": {"matchLabels": labels}, "template": template}
    return body


@pytest.mark.parametrize("listed", [[specification.LISTED], None], ids=["its file", "all files"])
def test_a_vdu_alone_leaves_the_others_in_the_cluster_and_in_the_record(
    site: Site, listed: list[str] | None
) -> None:
    private = {**specification.config_map("original"), "metadata": {"name": "of-other"}}
    daemon = other()
    daemon["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"] = "of-other"
    site.admin.create(in_namespace(site, private))
    site.admin.create(in_namespace(site, daemon))
    site.until(lambda: len(names(site, "", "Pod") | pods_of(site, "other")) >= 1)
    files = {OTHER: daemon, "kubernetes/of-other.yaml": private}
    release = replace(OLD, vdus=("VDU1", "VDU2"))
    site.old = replace_files(site, release, v1={**specification.files("original"), **files})
    newer = {OTHER: other("nginx:1.28-alpine"), "kubernetes/of-other.yaml": {**private, "data": {}}}
    site.shape = shape(v2={**specification.files("new"), **newer})
    params = specification.request(site.upgrade_type, "")["additionalParams"]
    params["lcm-kubernetes-def-files"] = listed
    before = pods_of(site, "other")
    two_vdus = replace(SCRIPTED, vdus=("VDU1", "VDU2"))
    changed = site.change(two_vdus, Arguments(params))
    assert pods_of(site, "other") == before
    assert site.get("", "ConfigMap", "of-other")["data"] == private["data"]
    recorded = {vnfc.vdu_id for vnfc in changed.records.vnfcs}
    assert recorded == {"VDU1", "VDU2"}
    assert changed.records.workloads is not None
    assert set(changed.records.workloads) == {"VDU1", "VDU2"}
    assert f"Files/{OTHER}" in changed.outcome.plan.def_files
    terminate_from(site, site.package(two_vdus), changed)
    for group, kind in (("apps", "Deployment"), ("apps", "DaemonSet"), ("", "ConfigMap")):
        assert not names(site, group, kind)


def in_namespace(site: Site, body: Json) -> Json:
    """A manifest as the VNFM creates it."""
    metadata = {**body["metadata"], **LABELLED, "namespace": site.namespace}
    return {**body, "metadata": metadata}


def pods_of(site: Site, app: str) -> set[str]:
    """The UIDs of the live pods with a label."""
    return {
        pod["metadata"]["uid"]
        for pod in site.objects("", "Pod")
        if (pod["metadata"].get("labels") or {}).get("app") == app and not is_deleting(pod)
    }


def test_a_termination_finds_what_no_package_describes_any_more(site: Site) -> None:
    """The new package has neither the other VDU nor its kind; it stays, as it is not to change."""
    site.admin.create(in_namespace(site, other()))
    old = {**specification.files("original"), OTHER: other()}
    site.old = replace_files(site, replace(OLD, vdus=("VDU1", "VDU2")), v1=old)
    site.shape = shape()
    changed = change(site)
    assert names(site, "apps", "DaemonSet") == {"other"}
    terminate_from(site, site.old, changed)
    assert not names(site, "apps", "DaemonSet")
    assert not pods_of(site, "other")


# --- a Service that cannot follow ---------------------------------------------------------------


def test_a_service_that_would_lose_its_traffic_is_refused_and_its_file_named(site: Site) -> None:
    new = specification.deployment("new")
    del new["spec"]["template"]["metadata"]["labels"]["version"]
    site.shape = shape(v2={**specification.files("new"), "kubernetes/deployment.yaml": new})
    with pytest.raises(PlanError, match=r"Service .*version.*add Files/kubernetes/service.yaml"):
        change(site)
    assert images(site) == {"nginx:alpine"}
