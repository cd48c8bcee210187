"""The contract's VNF on OpenStack: two scaling groups in a stack of their own.

Who serves is the load balancer's matter, which the scripts tell; here whatever runs VDU1 serves.
"""

from __future__ import annotations

import contextlib
import itertools
import textwrap
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from container_update.model.cancellation import CancelToken
from container_update.model.errors import ContainerUpdateError, NoWayBackError
from container_update.model.operation import name_of
from container_update.model.options import Options
from container_update.model.outcome import Outcome
from container_update.model.plan import Plan
from container_update.operations.change_package import (
    Changed,
    coordination_of,
    preview_change,
    resume_change,
    run_change,
)
from container_update.operations.change_request import ChangeRequest
from container_update.operations.strategies.openstack import OpenStackTarget
from container_update.operations.strategy import ChangeJob
from container_update.package import build, hot
from container_update.stacks import live
from container_update.stacks.client import Heat, reference
from container_update.stacks.operation import StackInstance
from tests.functional.change_vnfpkg.dying import Died, Dying
from tests.functional.change_vnfpkg.site import INSTANCE, PLAIN, Ask, ContractSite, Release
from tests.functional.stacks import templates
from tests.functional.stacks.vnf import until

STACK = f"vnf-{INSTANCE}"
BAD_IMAGE = "image-bad"


def image(release: Release, vdu: str) -> str:
    """What a VDU runs in a release."""
    return BAD_IMAGE if vdu in release.broken else f"image-{release.version}"


def files(release: Release) -> dict[str, str]:
    """The BaseHOT of a release: a group for each VDU, each with a file of its own."""
    groups, parameters, nested = {}, {}, {}
    for vdu in release.vdus:
        names = ("image", "flavor", "network")
        above = {"image": f"image_{vdu}", "flavor": "flavor", "network": "network"}
        properties = {name: {"get_param": above[name]} for name in names}
        group = templates.group({"type": f"{vdu}.yaml", "properties": properties})
        group["properties"]["desired_capacity"] = {"get_param": f"size_{vdu}"}
        group["properties"]["min_size"] = 0
        groups[f"{vdu}_group"] = group
        parameters[f"image_{vdu}"] = {"type": "string", "default": image(release, vdu)}
        parameters[f"size_{vdu}"] = {"type": "number", "default": 1}
        resources = templates.server()
        if vdu != "VDU1":
            text = yaml.safe_dump(resources).replace("VDU1", vdu).replace("CP1", "CP2")
            resources = yaml.safe_load(text)
        nested[f"BaseHOT/simple/nested/{vdu}.yaml"] = yaml.safe_dump(templates.template(resources))
    top = templates.template(groups, **parameters)
    del top["parameters"]["image"]
    return {"BaseHOT/simple/top.yaml": yaml.safe_dump(top), **nested}


def flavour(release: Release) -> str:
    """The deployment flavour of a release."""
    text = templates.vnfd("image-none", "small", release.vdus)
    for vdu in release.vdus:
        text = text.replace(
            f"name: {vdu}, sw_image_data: {{name: image-none}}",
            f"name: {vdu}, sw_image_data: {{name: {image(release, vdu)}}}",
        )
    return text


@dataclass
class OpenStackContractSite(ContractSite):
    """A project of a cloud."""

    upgrade_type: str
    heat: Heat
    folder: Path
    options: Options
    old: str = ""
    asked: ChangeJob | None = None
    numbers: Any = field(default_factory=itertools.count)

    bad_image_words = f"Image {BAD_IMAGE} could not be found"

    no_way_back = (NoWayBackError,)

    @property
    def renews_vnfc_ids(self) -> bool:
        return False

    @property
    def can_change_a_part(self) -> bool:
        return self.in_place

    @property
    def fewest_writes(self) -> int:
        return 6

    # --- what the contract asks for -------------------------------------------------------------

    def instantiate(self, release: Release) -> None:
        self.old = self.package(release)
        texts = files(release)
        body = {
            "stack_name": STACK,
            "template": texts.pop("BaseHOT/simple/top.yaml"),
            "files": {path.rpartition("/")[2]: text for path, text in texts.items()},
            "parameters": {"flavor": "small", "network": "net0"},
        }
        self.heat.create(body)
        until(lambda: self.page()["stack_status"] == "CREATE_COMPLETE")

    def change(self, release: Release, ask: Ask = PLAIN) -> Changed:
        job, site = self.job(release, ask)
        return run_change(job, site, ask.cancel, ask.progress)

    def plan(self, release: Release, ask: Ask = PLAIN) -> Plan:
        return preview_change(*self.job(release, ask))

    def rollback(self) -> Outcome | None:
        return StackInstance(self.heat, INSTANCE, self.options).recover(back=True)

    def resume(self) -> Outcome | None:
        assert self.asked is not None
        site, cancel = self.site(), CancelToken()
        scripts = coordination_of(self.asked, site, cancel)
        return resume_change(self.asked, site, cancel, lambda _: None, scripts)

    def running(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for vdu, _, name in self.servers():
            found.setdefault(vdu, set()).add(name.removeprefix("image-"))
        return found

    def serving(self) -> set[str]:
        return self.running().get("VDU1", set())

    def instances(self, vdu: str) -> set[str]:
        return {server for found, server, _ in self.servers() if found == vdu}

    def left_over(self) -> list[str]:
        return [name for name in self.stacks() if name != self.page()["stack_name"]]

    def scale(self, vdu: str, replicas: int) -> None:
        size = {"parameters": {f"size_{vdu}": replicas}}
        self.heat.update(reference(self.page()), size, existing=True)
        until(lambda: self.page()["stack_status"] == "UPDATE_COMPLETE")
        assert len(self.instances(vdu)) == replicas

    def runs_from(self, release: Release) -> None:
        self.old = self.package(release)

    def cut_short(self, release: Release, ask: Ask, number: int) -> bool:
        job, site = self.job(release, ask)
        dying: Any = Dying(self.heat, number, ("create", "update", "delete"))
        with contextlib.suppress(ContainerUpdateError, Died):
            run_change(job, replace(site, service=dying), ask.cancel, ask.progress)
        journal = name_of(INSTANCE)
        until(lambda: all(not status.endswith("IN_PROGRESS") for status in self.statuses()))
        page = self.heat.stack(journal)
        if page is not None:
            tags = {"tags": "holder=dead,renewed=2020-01-01T00:00:00Z"}
            self.heat.update(reference(page), tags, existing=True)
            until(lambda: all(not status.endswith("IN_PROGRESS") for status in self.statuses()))
        return bool(dying.is_dead)

    def instance_record(self) -> dict[str, Any]:
        vnfcs = [
            {
                "id": f"id-of-{server}",
                "vduId": vdu,
                "computeResource": {"resourceId": server},
                "metadata": {},
            }
            for vdu, server, _ in self.servers()
        ]
        info = {"vnfcResourceInfo": vnfcs, "instance_id": self.page()["id"]}
        return {"id": INSTANCE, "vnfdId": "vnfd-v1", "instantiatedVnfInfo": info}

    # --- packages and requests ------------------------------------------------------------------

    def package(self, release: Release) -> str:
        """A package folder of a release."""
        root = self.folder / f"package-{next(self.numbers)}"
        texts = templates.package(release.vnfd_id, flavour(release), files(release))
        for name, text in {**texts, **release.scripts}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        build.write_metadata(root)
        return str(root)

    def job(self, release: Release, ask: Ask = PLAIN) -> tuple[ChangeJob, OpenStackTarget]:
        """The job of a change, and where it is carried out."""
        params = {"upgrade_type": self.upgrade_type, **ask.params}
        params["vdu_params"] = self.vdu_params(release, params.get("vdu_params"))
        body = {"vnfdId": release.vnfd_id, "additionalParams": params, **ask.body}
        self.asked = ChangeJob(
            request=ChangeRequest.of(body),
            old=self.old,
            new=self.package(release),
            instance_id=INSTANCE,
            options=replace(self.options, **ask.options),
            leave_failed=ask.leave_failed,
            instance=ask.instance,
        )
        return self.asked, self.site()

    def vdu_params(self, release: Release, given: Any) -> list[Any]:
        """Required on OpenStack; Blue-Green concerns every VDU."""
        listed = [given] if isinstance(given, dict) else list(given or ())
        if listed and self.in_place:
            return listed
        named = {vdu["vdu_id"] for vdu in listed}
        first = listed[0] if listed else {}
        return [*listed, *({**first, "vdu_id": vdu} for vdu in release.vdus if vdu not in named)]

    def site(self) -> OpenStackTarget:
        """Where the VNF runs."""
        return OpenStackTarget(self.heat, self.page()["stack_name"])

    # --- looking --------------------------------------------------------------------------------

    def stacks(self) -> list[str]:
        """The names of this VNF's stacks, its journal's among them."""
        return [page["stack_name"] for page in self.heat.stacks() if INSTANCE in page["stack_name"]]

    def statuses(self) -> list[str]:
        """What state these are in."""
        return [str(page["stack_status"]) for page in self.heat.stacks()]

    def page(self) -> dict[str, Any]:
        """The page of the VNF's stack; of the first where there are two."""
        found = [page for page in self.heat.stacks() if page["stack_name"].startswith("vnf-")]
        page = self.heat.stack(reference(min(found, key=lambda page: len(page["stack_name"]))))
        assert page is not None
        return page

    def servers(self) -> list[tuple[str, str, str]]:
        """VDU, id and image of each server."""
        found = []
        for entry in self.heat.resources(reference(self.page()), live.DEPTH):
            if entry["resource_type"] == hot.SERVER:
                stack = entry["links"][1]["href"].partition("/stacks/")[2]
                page = self.heat.resource(stack, entry["resource_name"])
                assert page is not None
                id_ = entry["physical_resource_id"]
                found.append((entry["resource_name"], id_, page["attributes"]["image"]["id"]))
        return found
