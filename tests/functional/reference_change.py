# SPDX-License-Identifier: Apache-2.0
"""The changes of the package that the fault matrix runs: one for each strategy.

They include what an update cannot do: objects are created and deleted, a Service is held and
switched, scripts run. Those that have to fail do so by their last script, when all else is done.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from container_update import ChangePackageRequest, Options, change_package
from tests.functional import reference_update
from tests.functional.cnf import IMAGES, INSTANCE
from tests.functional.manifests import ENV, config_map, workload
from tests.functional.promise import Expected, Running
from tests.functional.reference_update import Files, Lab, Reference
from tests.functional.scripts import BAD, GOOD
from tests.functional.upgrade_types import BLUE_GREEN, CANARY, ROLLING
from tests.internals.core import KubernetesCluster

OPTIONS = replace(reference_update.OPTIONS, drain_seconds=0.05, coordination_seconds=15)

NEW_SCRIPT, OLD_SCRIPT = "Scripts/new.py", "Scripts/old.py"
SCRIPTS = {
    BLUE_GREEN: (NEW_SCRIPT, OLD_SCRIPT),
    CANARY: (NEW_SCRIPT, OLD_SCRIPT),
    ROLLING: (NEW_SCRIPT,),
}

SERVICE = """\
apiVersion: v1
kind: Service
metadata: {{name: w}}
spec: {{selector: {{app: w}}, ports: [{{name: http, port: {port}}}]}}
"""


def _files(value: str, image: str, port: int) -> Files:
    return {
        "cm": config_map("cm", setting=value),
        "deployment": workload("Deployment", "w", container=ENV, image=image, replicas=2),
        "stateful": workload("StatefulSet", "s", image=image),
        "service": SERVICE.format(port=port),
    }


OLD_FILES = {
    **_files("old", IMAGES[0], 80),
    "gone": config_map("gone", a="b"),
    "leaving": workload("Deployment", "l"),
}
_NEW_FILES = {**_files("new", IMAGES[1], 81), "come": workload("Deployment", "n")}


def _expected(value: str, image: str) -> Expected:
    is_old = value == "old"
    runs = {
        ("Deployment", "w"): Running(image, {"SETTING": value}, pods=2),
        ("StatefulSet", "s"): Running(image, {}),
        ("Deployment", "l"): Running(IMAGES[0], {}) if is_old else None,
        ("Deployment", "n"): None if is_old else Running(IMAGES[0], {}),
    }
    config = {
        ("ConfigMap", "cm"): {"setting": value},
        ("ConfigMap", "gone"): {"a": "b"} if is_old else None,
    }
    return Expected(config, runs, serves={"w": ("Deployment", "w")})


@dataclass(frozen=True)
class ReferenceChange(Reference[ChangePackageRequest]):
    """A change of the package by one of the strategies."""

    upgrade_type: str = BLUE_GREEN

    def request(self, lab: Lab, namespace: str, files: Files) -> ChangePackageRequest:
        params = {"upgrade_type": self.upgrade_type}
        for path, role in zip(SCRIPTS[self.upgrade_type], ("new", "old"), strict=False):
            params[f"lcm-operation-coordinate-{role}-vnf"] = path
        return ChangePackageRequest(
            {"vnfdId": "vnfd-v2", "additionalParams": params},
            old=lab.package(self.old_files),
            new=lab.package(files),
            namespace=namespace,
            instance_id=INSTANCE,
        )

    def run(
        self, cluster: KubernetesCluster, request: ChangePackageRequest, options: Options
    ) -> None:
        change_package(request, cluster, options)


def _reference(upgrade_type: str) -> ReferenceChange:
    *before, last = SCRIPTS[upgrade_type]
    good = {**_NEW_FILES, **dict.fromkeys(before, GOOD)}
    return ReferenceChange(
        old_files=OLD_FILES,
        ways={"done": {**good, last: GOOD}, "undone": {**good, last: BAD}},
        old=_expected("old", IMAGES[0]),
        new=_expected("new", IMAGES[1]),
        options=OPTIONS,
        upgrade_type=upgrade_type,
    )


CHANGES = {upgrade_type: _reference(upgrade_type) for upgrade_type in SCRIPTS}
