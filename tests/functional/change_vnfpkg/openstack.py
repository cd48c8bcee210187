# SPDX-License-Identifier: Apache-2.0
"""The contract's VNF on OpenStack: two scaling groups in a stack of their own.

The scripts configure which servers the load balancer uses; here all servers of VDU1 serve.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from container_update import ChangePackageRequest, ContainerUpdateError, Options, Outcome
from tests.functional.change_vnfpkg.dying import Died, Dying
from tests.functional.change_vnfpkg.site import INSTANCE, PLAIN, Arguments, ContractSite, Release
from tests.functional.changed import Changed, in_stack
from tests.functional.stacks import templates
from tests.functional.stacks.vnf import until
from tests.internals.core import (
    FromVnfm,
    StackChange,
    build,
    hot,
    name_of,
)
from tests.internals.stacks import Heat, StackInstance, live, reference

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
    latest: Callable[[], StackChange] | None = None
    """Returns the change that was asked for last, from its beginning."""
    numbers: Any = field(default_factory=itertools.count)

    @property
    def renews_vnfc_ids(self) -> bool:
        return False

    @property
    def can_change_a_part(self) -> bool:
        return self.in_place

    # --- what the contract requires --------------------------------------------------------------

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
        until(lambda: self.live_stack()["stack_status"] == "CREATE_COMPLETE")

    def change(self, release: Release, arguments: Arguments = PLAIN) -> Changed:
        how = {"cancel": arguments.cancel, "progress": arguments.progress}
        change = self.goal(release, arguments)
        return in_stack(change, leave_failed=arguments.leave_failed, **how)

    def rollback(self) -> Outcome | None:
        return StackInstance(self.heat, INSTANCE, self.options).recover(back=True)

    def resume(self) -> Outcome | None:
        assert self.latest is not None
        return self.latest().recover(back=False)

    def running(self) -> dict[str, set[str]]:
        versions: dict[str, set[str]] = {}
        for vdu, _, name in self.servers():
            versions.setdefault(vdu, set()).add(name.removeprefix("image-"))
        return versions

    def serving(self) -> set[str]:
        return self.running().get("VDU1", set())

    def instances(self, vdu: str) -> set[str]:
        return {server for server_vdu, server, _ in self.servers() if server_vdu == vdu}

    def left_over(self) -> list[str]:
        return [name for name in self.stacks() if name != self.live_stack()["stack_name"]]

    def scale(self, vdu: str, replicas: int) -> None:
        size = {"parameters": {f"size_{vdu}": replicas}}
        self.heat.update(reference(self.live_stack()), size, existing=True)
        until(lambda: self.live_stack()["stack_status"] == "UPDATE_COMPLETE")
        assert len(self.instances(vdu)) == replicas

    def runs_from(self, release: Release) -> None:
        self.old = self.package(release)

    def interrupt(self, release: Release, arguments: Arguments, number: int) -> bool:
        dying: Any = Dying(self.heat, number, ("create", "update", "delete"))
        change = self.goal(release, arguments, dying)
        with contextlib.suppress(ContainerUpdateError, Died):
            change.run(arguments.cancel, arguments.progress, leave_failed=arguments.leave_failed)
        journal = name_of(INSTANCE)
        until(lambda: all(not status.endswith("IN_PROGRESS") for status in self.statuses()))
        journal_stack = self.heat.stack(journal)
        if journal_stack is not None:
            tags = {"tags": "holder=dead,renewed=2020-01-01T00:00:00Z"}
            self.heat.update(reference(journal_stack), tags, existing=True)
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
        info = {"vnfcResourceInfo": vnfcs, "instance_id": self.live_stack()["id"]}
        return {"id": INSTANCE, "vnfdId": "vnfd-v1", "instantiatedVnfInfo": info}

    # --- packages and requests ------------------------------------------------------------------

    def package(self, release: Release) -> str:
        """Write a package folder of a release and return its path."""
        root = self.folder / f"package-{next(self.numbers)}"
        texts = templates.package(release.vnfd_id, flavour(release), files(release))
        for name, text in {**texts, **release.scripts}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        build.write_metadata(root)
        return str(root)

    def goal(
        self, release: Release, arguments: Arguments = PLAIN, heat: Heat | None = None
    ) -> StackChange:
        """Return the change to a release."""
        params = {"upgrade_type": self.upgrade_type, **arguments.params}
        params.setdefault("external_lb_param", None)  # the contract's scripts configure none
        params["vdu_params"] = self.vdu_params(release, params.get("vdu_params"))
        body = {"vnfdId": release.vnfd_id, "additionalParams": params, **arguments.body}
        old, new = self.old, self.package(release)
        request = ChangePackageRequest(body, old, new, instance_id=INSTANCE)
        options = replace(self.options, **arguments.options)
        vnfm = FromVnfm(arguments.instance)

        def goal(heat: Heat) -> StackChange:
            return StackChange(request, heat, self.live_stack()["stack_name"], options, vnfm)

        self.latest = partial(goal, self.heat)
        return goal(heat or self.heat)

    def vdu_params(self, release: Release, requested: Any) -> list[Any]:
        """Complete the vdu_params: required on OpenStack, for every VDU with Blue-Green."""
        vdus = [requested] if isinstance(requested, dict) else list(requested or ())
        if vdus and self.in_place:
            return vdus
        vdu_ids = {vdu["vdu_id"] for vdu in vdus}
        other = json.loads(json.dumps(vdus[0] if vdus else {}).replace("CP1", "CP2"))
        return [*vdus, *({**other, "vdu_id": vdu} for vdu in release.vdus if vdu not in vdu_ids)]

    # --- the live state --------------------------------------------------------------------------

    def stacks(self) -> list[str]:
        """Return the names of this VNF's stacks, the journal's included."""
        return [
            stack["stack_name"] for stack in self.heat.stacks() if INSTANCE in stack["stack_name"]
        ]

    def statuses(self) -> list[str]:
        """Return the statuses of all stacks."""
        return [str(stack["stack_status"]) for stack in self.heat.stacks()]

    def live_stack(self) -> dict[str, Any]:
        """Return the VNF's stack; the old one if there are two."""
        candidates = [
            stack for stack in self.heat.stacks() if stack["stack_name"].startswith("vnf-")
        ]
        stack = self.heat.stack(
            reference(min(candidates, key=lambda stack: len(stack["stack_name"])))
        )
        assert stack is not None
        return stack

    def servers(self) -> list[tuple[str, str, str]]:
        """Return VDU, id and image of each server."""
        servers = []
        for entry in self.heat.resources(reference(self.live_stack()), live.DEPTH):
            if entry["resource_type"] == hot.SERVER:
                stack = entry["links"][1]["href"].partition("/stacks/")[2]
                resource = self.heat.resource(stack, entry["resource_name"])
                assert resource is not None
                id_ = entry["physical_resource_id"]
                servers.append((entry["resource_name"], id_, resource["attributes"]["image"]["id"]))
        return servers
