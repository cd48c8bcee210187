# SPDX-License-Identifier: Apache-2.0
"""A VNF under test: write packages, instantiate, change, read its servers."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from container_update import ChangePackageRequest, Options, Outcome, ScriptStep
from tests import packages
from tests.functional.changed import Changed
from tests.functional.stacks import templates
from tests.functional.stacks.change import NEW_VNFD, PATHS, Call, change
from tests.functional.stacks.site import REAL, Site
from tests.internals.core import StackBody, hot
from tests.internals.stacks import (
    ROLLING,
    Heat,
    StackInstance,
    StackRequest,
    Terminate,
    live,
    operate,
    reference,
)

OLD_VNFD = "vnfd-old"


@dataclass
class Vnf:
    """One VNF in one stack."""

    heat: Heat
    folder: Path
    site: Site
    options: Options
    instance_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    old: str = ""
    numbers: Any = field(default_factory=itertools.count)

    @property
    def stack(self) -> str:
        """The name of the VNF's first stack."""
        return f"vnf-{self.instance_id}"

    def package(
        self, shape: str, image: str, flavor: str = "", *, vnfd_id: str = NEW_VNFD, **files: str
    ) -> str:
        """Write a package folder and return its path."""
        root = self.folder / f"package-{next(self.numbers)}"
        vdus = ("VDU1", "VDU2") if shape.startswith("two") else ("VDU1",)
        flavour = templates.vnfd(image, flavor or self.site.flavors[0], vdus)
        content = {**templates.hot(shape), **files}
        return packages.write_folder(root, templates.package(vnfd_id, flavour, content))

    def instantiate(
        self, shape: str = "group", files: Mapping[str, str] = {}, **parameters: Any
    ) -> str:
        """Create the stack of an old package, wait for it and return the package's path.

        :param files: of the package, in place of the shape's.
        """
        self.old = self.package(shape, self.site.images[0], vnfd_id=OLD_VNFD, **files)
        parameter_values = {
            "image": self.site.images[0],
            "flavor": self.site.flavors[0],
            "network": self.site.network,
            **parameters,
        }
        texts = {**templates.hot(shape), **files}
        body = {
            "stack_name": self.stack,
            "template": texts.pop("BaseHOT/simple/top.yaml"),
            "files": {path.rpartition("/")[2]: text for path, text in texts.items()},
            "parameters": parameter_values,
        }
        self.heat.create(body)
        until(lambda: self.live_stack()["stack_status"] == "CREATE_COMPLETE")
        return self.old

    def request(self, new: str, upgrade_type: str = ROLLING) -> StackRequest:
        """Return a request for VDU1."""
        return StackRequest(
            self.old,
            new,
            self.live_stack()["stack_name"],
            upgrade_type,
            ("VDU1",),
            self.instance_id,
            scripts=PATHS,
        )

    def change_request(
        self, new: str, params: Mapping[str, Any], old: str = ""
    ) -> ChangePackageRequest:
        """Return a request to change the package."""
        body = {"vnfdId": NEW_VNFD, "additionalParams": params}
        return ChangePackageRequest(body, old or self.old, new, instance_id=self.instance_id)

    def change(self, new: str, upgrade_type: str = ROLLING, **more: Any) -> Changed:
        """Change the package."""
        return change(self.request(new, upgrade_type), self.heat, self.options, **more)

    def instance(
        self, coordinate: Callable[[Call], object] = lambda _: None, **more: Any
    ) -> StackInstance:
        """Return the instance for status, resume and rollback."""

        def coordinated(step: ScriptStep, _: object) -> None:
            coordinate(Call.of(step))

        return StackInstance(
            self.heat, self.instance_id, self.options, coordinated, scripts=PATHS, **more
        )

    def terminate(self) -> Outcome:
        """Delete all of it."""
        return operate(Terminate(self.stack), self.instance())

    def leave_real_cloud(self) -> None:
        """Delete the stacks from a real cloud; an embedded one ends with its test."""
        for name in self.stacks() if REAL else ():
            self.heat.delete(name)

    # --- the live state -------------------------------------------------------------------------

    def stacks(self) -> list[str]:
        """Return the names of this instance's stacks, the journal included."""
        stacks = self.heat.stacks()
        return [stack["stack_name"] for stack in stacks if self.instance_id in stack["stack_name"]]

    def live_stack(self) -> dict[str, Any]:
        """Return the VNF's one stack as Heat shows it."""
        (name,) = [name for name in self.stacks() if name.startswith("vnf-")]
        stack = self.heat.stack(name)
        assert stack is not None
        return stack

    def body(self) -> StackBody:
        """Return the stack's templates, parameters and files."""
        return live.body_of(self.heat, reference(self.live_stack()))

    def servers(self) -> dict[str, str]:
        """Return the ids of the servers, each with its image."""
        images = {}
        for resource in self.heat.resources(reference(self.live_stack()), live.DEPTH):
            if resource["resource_type"] == hot.SERVER:
                stack = resource["links"][1]["href"].partition("/stacks/")[2]
                server = self.heat.resource(stack, resource["resource_name"])
                assert server is not None
                image = server["attributes"].get("image") or {"id": "from a volume"}
                images[resource["physical_resource_id"]] = image["id"]
        return images

    def ids(self, kind: str) -> set[str]:
        """Return the ids of all resources of a type."""
        entries = self.heat.resources(reference(self.live_stack()), live.DEPTH)
        return {
            entry["physical_resource_id"] for entry in entries if entry["resource_type"] == kind
        }


PATIENCE = 600.0 if REAL else 60.0
"""Seconds that a cloud may take: a real one takes a minute for a stack where it is busy."""


def until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait for a condition of the cloud.

    :raises AssertionError: it did not come true in time.
    """
    deadline, pause = time.monotonic() + seconds, 0.01
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(pause)
        pause = min(1.5 * pause, 0.5)
