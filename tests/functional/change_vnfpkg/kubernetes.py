# SPDX-License-Identifier: Apache-2.0
"""The contract's VNF on Kubernetes: two Deployments and a Service, in a namespace of their own."""

from __future__ import annotations

import contextlib
import itertools
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from container_update import (
    ChangePackageRequest,
    ContainerUpdateError,
    Options,
    Outcome,
    Plan,
    install,
    resume,
    rollback,
)
from tests.functional.change_vnfpkg.dying import Died, Dying
from tests.functional.change_vnfpkg.site import INSTANCE, PLAIN, Arguments, ContractSite, Release
from tests.functional.changed import Changed, in_cluster
from tests.functional.conftest import overwrite
from tests.internals.core import (
    Collection,
    FromVnfm,
    Holder,
    Json,
    KubernetesCluster,
    ObjectKey,
    PackageChange,
    build,
    is_deleting,
    is_finished,
    is_ready,
    manifest_name,
    ownership,
    preview,
    utc_now,
)

NAMES = {"VDU1": "web", "VDU2": "worker"}
IMAGES = {"v1": "nginx:1.27-alpine", "v2": "nginx:1.28-alpine", "v3": "nginx:1.29-alpine"}
BAD_IMAGE = "bad:missing"

VNFD = """\
tosca_definitions_version: tosca_simple_yaml_1_2
node_types:
  tosca.nodes.nfv.VNF:
    derived_from: tosca.nodes.Root
    properties: {{descriptor_id: {{type: string}}}}
  tosca.nodes.nfv.Vdu.Compute:
    derived_from: tosca.nodes.Root
    properties: {{name: {{type: string}}}}
topology_template:
  node_templates:
    VNF: {{type: tosca.nodes.nfv.VNF, properties: {{descriptor_id: {vnfd_id}}}}}
{vdus}
"""
VDU = "    {vdu}: {{type: tosca.nodes.nfv.Vdu.Compute, properties: {{name: {name}}}}}"


@dataclass(frozen=True)
class Shape:
    """Options of the package's manifests, beyond what the contract says."""

    labelled: bool = False
    """The pod templates and the Service's selector have a label with the version."""
    versioned_names: bool = False
    """Deployments are named after their version."""
    shared: bool = False
    """The Service sends traffic to both VDUs."""
    replicas: int = 2
    more: Mapping[str, str] = field(default_factory=dict)
    """File name to more manifests."""
    container: str = ""
    """More of the containers, as YAML."""
    service: str = ""
    """More of the Service's spec, as YAML."""

    def name(self, vdu: str, version: str) -> str:
        """Return the name of a VDU's Deployment."""
        return f"{NAMES[vdu]}-{version}" if self.versioned_names else NAMES[vdu]

    def files(self, release: Release) -> dict[str, str]:
        """Return the manifests by file name."""
        manifests = {f"{NAMES[vdu]}.yaml": self.deployment(vdu, release) for vdu in release.vdus}
        return {"service.yaml": self.service_text(release), **manifests, **self.more}

    def deployment(self, vdu: str, release: Release) -> str:
        """Return the manifest of a VDU."""
        name, version = self.name(vdu, release.version), release.version
        image = BAD_IMAGE if vdu in release.broken else IMAGES[version]
        labels = {"app": name, "vnf": "sample"} | ({"version": version} if self.labelled else {})
        container = {"name": "main", "image": image, **(yaml.safe_load(self.container) or {})}
        body = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "replicas": self.replicas if vdu == "VDU1" else 1,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
                },
            },
        }
        return yaml.safe_dump(body)

    def service_text(self, release: Release) -> str:
        """Return the manifest of the Service."""
        name, version = self.name("VDU1", release.version), release.version
        selector = {"vnf": "sample"} if self.shared else {"app": name}
        selector |= {"version": version} if self.labelled else {}
        spec = {"selector": selector, "ports": [{"name": "http", "port": 80}]}
        spec |= yaml.safe_load(self.service) or {}
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}
        return yaml.safe_dump(body)


@dataclass
class KubernetesContractSite(ContractSite):
    """A namespace of a cluster."""

    upgrade_type: str
    admin: KubernetesCluster
    cluster: KubernetesCluster
    namespace: str
    folder: Path
    options: Options
    shape: Shape = Shape()
    old: str = ""
    new: str = ""
    """The package of the change that was asked for last."""
    numbers: Any = field(default_factory=itertools.count)
    kubeconfig: str = ""

    @property
    def command_options(self) -> list[str]:
        """The options of a command that works on this VNF."""
        vnf = ["-n", self.namespace, "--instance-id", INSTANCE]
        return [*vnf, "--kubeconfig", self.kubeconfig]

    # --- what the contract requires --------------------------------------------------------------

    def instantiate(self, release: Release) -> None:
        self.old = self.package(release)
        options = replace(self.options.for_vnfm(), history=0)
        install(
            self.old, self.admin, namespace=self.namespace, instance_id=INSTANCE, options=options
        )
        self.until(lambda: self.serving() == {release.version})

    def change(self, release: Release, arguments: Arguments = PLAIN) -> Changed:
        change = self.goal(release, arguments)
        return in_cluster(change, self.cluster, self._options(arguments), **_how(arguments))

    def plan(self, release: Release, arguments: Arguments = PLAIN) -> Plan:
        return preview(self.goal(release, arguments), self.cluster, self._options(arguments))

    def rollback(self) -> Outcome | None:
        return rollback(self.cluster, self.options, **self.where())

    def resume(self) -> Outcome | None:
        packages = list(filter(None, (self.old, self.new)))
        return resume(self.cluster, self.options, **self.where(), packages=packages)

    def running(self) -> dict[str, set[str]]:
        by_image = {image: version for version, image in IMAGES.items()} | {BAD_IMAGE: "bad"}
        versions: dict[str, set[str]] = {}
        for vdu in NAMES:
            images = {pod["spec"]["containers"][0]["image"] for pod in self.pods(vdu)}
            if images:
                versions[vdu] = {by_image[image] for image in images}
        return versions

    def serving(self, service: str = "web") -> set[str]:
        by_image = {image: version for version, image in IMAGES.items()}
        pods = self.endpoints(service)
        return {by_image[pod["spec"]["containers"][0]["image"]] for pod in pods}

    def instances(self, vdu: str) -> set[str]:
        return {pod["metadata"]["name"] for pod in self.pods(vdu)}

    def left_over(self) -> list[str]:
        leases = [
            lease
            for lease in self.objects("coordination.k8s.io", "Lease")
            if Holder.of(lease).seems_alive(utc_now())
        ]
        secrets = [
            s for s in self.objects("", "Secret") if s.get("type") == "container-update/journal"
        ]
        several = [vdu for vdu in NAMES if len(self.deployments(vdu)) > 1]
        names = [f"{body['kind']} {body['metadata']['name']}" for body in (*leases, *secrets)]
        passing = (
            f"Deployment {body['metadata']['name']}, which is paused or has a passing name"
            for body in self.objects("apps", "Deployment")
            if manifest_name(body) != body["metadata"]["name"] or body["spec"].get("paused")
        )
        return [*names, *(f"several Deployments of {vdu}" for vdu in several), *passing]

    def scale(self, vdu: str, replicas: int) -> None:
        (deployment,) = self.deployments(vdu)
        deployment["spec"]["replicas"] = replicas
        overwrite(self.admin, deployment)
        self.until(lambda: len(self.instances(vdu)) == replicas)

    def runs_from(self, release: Release) -> None:
        self.old = self.package(release)

    def interrupt(self, release: Release, arguments: Arguments, number: int) -> bool:
        dying: Any = Dying(self.cluster, number, ("create", "replace", "delete"))
        change = self.goal(release, arguments, dying)
        with contextlib.suppress(ContainerUpdateError, Died):
            in_cluster(change, dying, self._options(arguments), **_how(arguments))
        for lease in self.objects("coordination.k8s.io", "Lease"):
            lease["spec"]["holderIdentity"] = ""
            self.admin.replace(lease)
        return bool(dying.is_dead)

    def instance_record(self) -> dict[str, Any]:
        vnfcs = [
            {
                "id": f"id-of-{pod['metadata']['name']}",
                "vduId": vdu,
                "computeResource": {"resourceId": pod["metadata"]["name"]},
                "metadata": {},
            }
            for vdu in NAMES
            for pod in self.pods(vdu)
        ]
        return {
            "id": INSTANCE,
            "vnfdId": "vnfd-v1",
            "instantiatedVnfInfo": {"vnfcResourceInfo": vnfcs},
        }

    # --- packages and requests ------------------------------------------------------------------

    def package(self, release: Release) -> str:
        """Write a package folder of a release and return its path."""
        root = self.folder / f"package-{next(self.numbers)}"
        vdus = "\n".join(
            VDU.format(vdu=vdu, name=self.shape.name(vdu, release.version)) for vdu in release.vdus
        )
        texts = {"Definitions/sample.vnfd.yaml": VNFD.format(vnfd_id=release.vnfd_id, vdus=vdus)}
        for name, text in self.shape.files(release).items():
            texts[f"Files/{name}"] = text
        for name, text in {**texts, **release.scripts}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        build.write_metadata(root)
        return str(root)

    def goal(
        self, release: Release, arguments: Arguments = PLAIN, cluster: Any = None
    ) -> PackageChange:
        """Return the change to a release."""
        params = {"upgrade_type": self.upgrade_type, **arguments.params}
        body = {"vnfdId": release.vnfd_id, "additionalParams": params, **arguments.body}
        self.new = self.package(release)
        request = ChangePackageRequest(body, self.old, self.new, **self.where())
        vnfm = FromVnfm(arguments.instance, access={"kubeconfig": self.kubeconfig})
        return PackageChange(request, cluster or self.cluster, self._options(arguments), vnfm)

    def _options(self, arguments: Arguments) -> Options:
        return replace(self.options, **arguments.options)

    def where(self) -> dict[str, Any]:
        """Return what identifies the VNF, for resume and rollback."""
        return {"namespace": self.namespace, "instance_id": INSTANCE}

    # --- the live state --------------------------------------------------------------------------

    def objects(self, group: str, kind: str) -> list[Json]:
        """Return every object of a kind."""
        return list(self.admin.list(Collection(group, kind, self.namespace)).items)

    def get(self, group: str, kind: str, name: str) -> Json:
        """Return an object, which has to exist."""
        live_object = self.admin.get(ObjectKey(group, kind, self.namespace, name))
        assert live_object is not None, f"{kind} {name} is not there"
        return live_object

    def deployments(self, vdu: str) -> list[Json]:
        """Return the Deployments of a VDU, with or without a version in their names."""
        deployments = self.objects("apps", "Deployment")
        return [body for body in deployments if body["metadata"]["name"].startswith(NAMES[vdu])]

    def pods(self, vdu: str) -> list[Json]:
        """Return the live pods of a VDU."""
        pods, sets = self.objects("", "Pod"), self.objects("apps", "ReplicaSet")
        return [
            pod
            for deployment in self.deployments(vdu)
            for pod in ownership.owned_pods(deployment, pods, sets)
            if not is_deleting(pod) and not is_finished(pod)
        ]

    def endpoints(self, service: str = "web") -> list[Json]:
        """Return the pods behind a Service, by its EndpointSlices, which a controller writes a
        moment after its pods are ready; not those that are being deleted, which leave them a moment
        later, and an undo does not wait for that."""
        backends: dict[str, Json] = {}

        def agrees() -> bool:
            named = (s for s in self.objects("", "Service") if s["metadata"]["name"] == service)
            selectors = [body["spec"]["selector"].items() for body in named]
            pods = {
                pod["metadata"]["uid"]: pod
                for pod in self.objects("", "Pod")
                if not is_deleting(pod)
                and any(selector <= pod["metadata"]["labels"].items() for selector in selectors)
            }
            served = self._served(service)
            backends.clear()
            backends.update((uid, pod) for uid, pod in pods.items() if uid in served)
            return backends.keys() == {uid for uid, pod in pods.items() if is_ready(pod)}

        self.until(agrees)
        return list(backends.values())

    def _served(self, service: str) -> set[str]:
        return {
            endpoint["targetRef"]["uid"]
            for body in self.objects("discovery.k8s.io", "EndpointSlice")
            if body["metadata"]["labels"].get("kubernetes.io/service-name") == service
            for endpoint in body.get("endpoints") or ()
            if endpoint["conditions"].get("ready")
        }

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition."""
        from tests.functional.conftest import until  # noqa: PLC0415

        until(condition)


__all__ = ["KubernetesContractSite", "Shape"]


def _how(arguments: Arguments) -> dict[str, Any]:
    return {
        "cancel": arguments.cancel,
        "progress": arguments.progress,
        "leave_failed": arguments.leave_failed,
    }
