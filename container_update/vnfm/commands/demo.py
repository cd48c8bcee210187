# SPDX-License-Identifier: Apache-2.0
"""``container-update vnfm serve --demo``: the service with a cluster and sample packages.

The embedded cluster is registered as the default VIM, the packages of the samples are onboarded,
and their requests are files, all in a temporary folder.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import yaml

from container_update.cluster.client import connect
from container_update.emulator.demo.emulators import embedded_cluster
from container_update.model.errors import ContainerUpdateError
from container_update.model.requests import DEF_FILES
from container_update.package.tools import build, samples
from container_update.vnfm import packages, vims
from container_update.vnfm.http.authentication import read_tokens
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.store.rows import Package

if TYPE_CHECKING:
    from container_update.emulator.kubernetes import EmbeddedCluster
    from container_update.vnfm.settings import Settings

_DRIVER = "mgmt-container-update"
_MODIFY = ("modify_information_start", "modify_information_end")
_EVENTS: Mapping[str, tuple[str, ...]] = {
    "v1": _MODIFY,
    "v2": (*_MODIFY, "modify_information_rollback_start", "modify_information_rollback_end"),
}
"""The operations for which the guides' packages call the Mgmt Driver, by API."""
_FAILING_VNFD = "3f0c6a1e-8d52-4b7f-9a64-c1d7e25b90f8"
_NO_IMAGE = "registry.example/no-such-image"
"""An image that cannot be pulled: the demo has a package with it, to watch an update fail."""


@dataclass(frozen=True)
class Scene:
    """A VNF instance that the operator can create, and then update."""

    name: str
    """The name of the instance, of its namespace and of its files."""
    variable: str
    """The shell variable with the instance's id."""
    api: str
    sample: str

    @property
    def is_guide(self) -> bool:
        """It is the scene of a user guide."""
        return self.sample.startswith(samples.GUIDE)

    @property
    def verb(self) -> str:
        """The command that moves the VNF to the new package."""
        return "update" if self.is_guide else "change-vnfpkg"


SCENES = (
    Scene("guide-v1", "V1", "v1", f"{samples.GUIDE}/v1"),
    Scene("guide-v2", "V2", "v2", f"{samples.GUIDE}/v2"),
    Scene("blue-green", "BLUE", "v2", "04-blue-green"),
    Scene("rolling", "ROLL", "v2", "05-rolling-update"),
)


@dataclass(frozen=True)
class Stage:
    """The folder and the cluster of the demo."""

    folder: Path
    cluster: EmbeddedCluster

    @property
    def state_dir(self) -> str:
        """The service's ``state_dir``."""
        return str(self.folder / "state")

    @staticmethod
    def token(settings: Settings) -> str:
        """Return the token that the first start of the service has made."""
        return read_tokens(settings.token_path)["admin"].value

    def prepare(self, context: ServiceContext) -> str:
        """Register the cluster, onboard the packages, write the requests.

        :returns: the commands to type in a shell.
        :raises ContainerUpdateError: a package cannot be onboarded.
        """
        self._register(context)
        kubeconfig = self.cluster.write_kubeconfig(self.folder / "kubeconfig")
        with connect(str(kubeconfig)) as cluster:
            for scene in SCENES:
                metadata = {"name": scene.name}
                cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        vnfds = {}
        for scene in SCENES:
            vnfds[scene.name] = _onboard(context, self._build(scene, "before"))
            if scene.name == "guide-v2":
                _onboard(context, self._built_to_fail(scene))
            _onboard(context, self._build(scene, "after"))
            self._write_requests(scene)
        return self._commands(context, vnfds)

    def _register(self, context: ServiceContext) -> None:
        body = {
            "name": "demo",
            "type": "kubernetes",
            "auth_url": self.cluster.url,
            "auth_cred": {"bearer_token": self.cluster.token, "ssl_ca_cert": self.cluster.ca_text},
            "vim_project": {"name": "default"},
            "is_default": True,
        }
        with context.database.writing() as session:
            vims.register(context, session, body)

    def _build(self, scene: Scene, side: str) -> Path:
        folder = self.folder / "packages" / scene.name / side
        shutil.copytree(samples.root() / scene.sample / side, folder)
        return self._zip(scene, folder)

    def _built_to_fail(self, scene: Scene) -> Path:
        """Build the new package of a guide once more, as 2.1 with an image that is not there."""
        folder = self.folder / "packages" / scene.name / "failing"
        sample = samples.root() / scene.sample
        shutil.copytree(sample / "after", folder)
        vnfd_id = json.loads((sample / "sample_param_file.json").read_text())["vnfdId"]
        others = {vnfd_id: _FAILING_VNFD, "'2.0'": "'2.1'", "image: cirros": f"image: {_NO_IMAGE}"}
        for file in folder.rglob("*.yaml"):
            text = file.read_text(encoding="utf-8")
            for old, new in others.items():
                text = text.replace(old, new)
            file.write_text(text, encoding="utf-8")
        self.cluster.behaviour.bad_images.append(_NO_IMAGE)
        return self._zip(scene, folder)

    @staticmethod
    def _zip(scene: Scene, folder: Path) -> Path:
        if scene.is_guide:
            _name_driver(folder / "Definitions", scene.api)
        api = scene.api if scene.is_guide else None
        return build.build(folder, folder.with_suffix(".zip"), api=api)

    def _write_requests(self, scene: Scene) -> None:
        sample = samples.root() / scene.sample
        if scene.is_guide:
            instance = json.loads((sample / "instance_kubernetes.json").read_text())
            flavour_id, params = instance["flavourId"], instance["additionalParams"]
        else:
            flavour_id = "default"
            files = (sample / "before" / "Files" / "kubernetes").glob("*.yaml")
            params = {DEF_FILES: sorted(f"Files/kubernetes/{file.name}" for file in files)}
        params = {**params, "namespace": scene.name}
        body = {"flavourId": flavour_id, "additionalParams": params}
        text = json.dumps(body, indent=2) + "\n"
        (self.folder / f"{scene.name}-instantiate.json").write_text(text, encoding="utf-8")
        request = "sample_param_file.json" if scene.is_guide else "request.json"
        shutil.copyfile(sample / request, self.folder / f"{scene.name}-{scene.verb}.json")

    def _commands(self, context: ServiceContext, vnfds: Mapping[str, str]) -> str:
        settings = context.settings
        lines = [
            "# once: pip install python-openstackclient python-tackerclient",
            f"cd {self.folder}",
            f"export OS_AUTH_TYPE=admin_token OS_ENDPOINT={settings.base_url}",
            f"export OS_TOKEN=$(cut -d ' ' -f 2 {settings.token_path})",
            "",
            "# the VIM and the packages",
            "openstack vim list",
            "openstack vnf package list",
        ]
        for scene in SCENES:
            version = "" if scene.api == "v1" else " --os-tacker-api-version 2"
            when = f"when `openstack vnflcm op list{version}` says COMPLETED, the next"
            instance, option = f"${scene.variable}", "--I " if scene.is_guide else ""
            lines += [
                "",
                f"# {scene.name}: {when}",
                f"{scene.variable}=$(openstack vnflcm create {vnfds[scene.name]} "
                f"--name {scene.name}{version} -f value -c ID)",
                f"openstack vnflcm instantiate {instance} {scene.name}-instantiate.json{version}",
                f"openstack vnflcm {scene.verb} {instance} "
                f"{option}{scene.name}-{scene.verb}.json{version}",
            ]
            if scene.is_guide:
                lines.append(f"openstack vnflcm show {instance}{version}")
        return "\n".join(lines) + "\n"


@contextmanager
def stage() -> Iterator[Stage]:
    """Create a folder and a cluster for the ``with`` block, which need the extra emulator."""
    with TemporaryDirectory(prefix="container-update-demo-") as name, embedded_cluster() as cluster:
        yield Stage(Path(name), cluster)


def _onboard(context: ServiceContext, zipped: Path) -> str:
    """Onboard a package; return its VNFD id."""
    with context.database.writing() as session:
        package_id = packages.create(session, {}).id
    part = packages.begin_upload(context, package_id)
    shutil.copyfile(zipped, part)
    packages.end_upload(context, package_id)
    packages.onboard(context, package_id)
    with context.database.reading() as session:
        package = session.get_one(Package, package_id)
    if package.vnfd_id is None:
        reason = package.body.get("onboardingFailureDetails", {}).get("detail")
        raise ContainerUpdateError(f"the package {zipped} cannot be onboarded: {reason}")
    return package.vnfd_id


def _name_driver(definitions: Path, api: str) -> None:
    """Add the Mgmt Driver to a guide's package, which has none."""
    script = build.DRIVERS[api][1]
    artifact = {
        "description": "Moves the VNF to another package",
        "type": "tosca.artifacts.Implementation.Python",
        "file": script if api == "v1" else f"../{script}",  # as Tacker reads it
    }
    events = {event: {"implementation": _DRIVER} for event in _EVENTS[api]}
    with _edit(definitions / "types.yaml") as types:
        known = types["interface_types"]["tosca.interfaces.nfv.Vnflcm"]
        known.update({event: {} for event in events})
    with _edit(definitions / "df_simple.yaml") as flavour:
        vnf = flavour["topology_template"]["node_templates"]["VNF"]
        vnf |= {"interfaces": {"Vnflcm": events}, "artifacts": {_DRIVER: artifact}}


@contextmanager
def _edit(file: Path) -> Iterator[Any]:
    """Read a YAML file, and write it again after the ``with`` block changed its content."""
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    yield content
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
