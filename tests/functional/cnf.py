# SPDX-License-Identifier: Apache-2.0
"""A CNF under test: write packages, instantiate, update, read its pods."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from container_update import (
    HealRequest,
    Options,
    Outcome,
    Plan,
    Revision,
    UpdateRequest,
    history,
    install,
    plan_update,
    resume,
    rollback,
    undo,
    update,
)
from tests.internals.core import (
    Collection,
    Heal,
    Json,
    KubernetesCluster,
    ObjectKey,
    is_deleting,
    is_finished,
    owned_pods,
    run,
)

INSTANCE = "5d1b2a6c-0f0e-4c59-9f0f-6f2f6f1f0001"

IMAGES = ("nginx:1.27-alpine", "nginx:1.28-alpine")
"""Two images that exist and run for ever."""

BAD_IMAGE = "bad:missing"
"""One that no registry has."""

GROUPS = dict.fromkeys(("Pod", "ConfigMap", "Secret", "Service"), "")
GROUPS |= {"CronJob": "batch", "Job": "batch"}


@dataclass(frozen=True)
class PodState:
    """What shows whether a pod or its containers are new."""

    uid: str
    restarts: int
    image: str


@dataclass
class Cnf:
    """One CNF in one namespace."""

    admin: KubernetesCluster
    """The client that instantiates and reads it: may do everything."""
    cluster: KubernetesCluster
    """The client that updates it: may do what samples/rbac/role.yaml grants."""
    namespace: str
    folder: Path
    options: Options
    old: str = ""
    numbers: Any = field(default_factory=itertools.count)

    def package(self, files: Mapping[str, str]) -> str:
        """Write a package folder with these manifests below Files/ and return its path."""
        root = self.folder / f"package-{next(self.numbers)}"
        for name, text in files.items():
            path = root / "Files" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return str(root)

    def instantiate(self, **files: str) -> None:
        """Create a CNF from ``name=text`` manifests, as a VNFM does: every file is a def-file, and
        there is no history of it."""
        self.old = self.package({f"{name}.yaml": text for name, text in files.items()})
        install(
            self.old,
            self.admin,
            namespace=self.namespace,
            instance_id=INSTANCE,
            options=replace(self.options.for_vnfm(), history=0),
        )

    def request(self, files: Mapping[str, str], **more: Any) -> UpdateRequest:
        """Return a request to update to a package with these ``name=text`` manifests."""
        new = self.package({f"{name}.yaml": text for name, text in files.items()})
        more = {"namespace": self.namespace, "instance_id": INSTANCE, **more}
        return UpdateRequest(old=self.old, new=new, **more)

    def plan(self, files: Mapping[str, str], **more: Any) -> Plan:
        """Return the plan of an update to these manifests."""
        return plan_update(self.request(files, **more), self.cluster, self.options)

    def update(
        self, files: Mapping[str, str], options: Options | None = None, **more: Any
    ) -> Outcome:
        """Update to a package with these manifests."""
        return update(self.request(files, **more), self.cluster, options or self.options)

    def update_to(self, new: str, **more: Any) -> Outcome:
        """Update to this package."""
        request = UpdateRequest(
            old=self.old, new=new, namespace=self.namespace, instance_id=INSTANCE, **more
        )
        return update(request, self.cluster, self.options)

    def heal(self, package: str, cluster: KubernetesCluster | None = None) -> Outcome:
        """Bring the whole CNF to what a package says."""
        goal = Heal(HealRequest(package, namespace=self.namespace), self.options)
        return run(goal, cluster or self.cluster, self.options)

    # --- the live state -------------------------------------------------------------------------

    def resume(self) -> Outcome | None:
        """Finish the update that was interrupted."""
        return resume(self.cluster, self.options, **self.where)

    def rollback(self) -> Outcome | None:
        """Undo the update that was interrupted."""
        return rollback(self.cluster, self.options, **self.where)

    def history(self) -> tuple[Revision, ...]:
        """Return its operations that have ended, the newest first."""
        return history(self.cluster, self.options, **self.where)

    def undo(self, revision: int | None = None, options: Options | None = None) -> Outcome | None:
        """Undo finished updates."""
        return undo(self.cluster, options or self.options, revision=revision, **self.where)

    @property
    def where(self) -> dict[str, Any]:
        """The arguments that say which instance it is."""
        return {"namespace": self.namespace, "instance_id": INSTANCE}

    def key(self, kind: str, name: str) -> ObjectKey:
        """Return the key of one of its objects."""
        return ObjectKey(GROUPS.get(kind, "apps"), kind, self.namespace, name)

    def get(self, kind: str, name: str) -> Json:
        """Return one of its objects, which has to exist."""
        live_object = self.admin.get(self.key(kind, name))
        assert live_object is not None, f"{kind} {name} is not there"
        return live_object

    def pods(self, kind: str, name: str) -> dict[str, PodState]:
        """Return the pods of a workload by name."""
        listed = self.admin.list(Collection("", "Pod", self.namespace)).items
        sets = self.admin.list(Collection("apps", "ReplicaSet", self.namespace)).items
        owned = owned_pods(self.get(kind, name), listed, sets)
        return {
            pod["metadata"]["name"]: PodState(
                pod["metadata"]["uid"],
                sum(s["restartCount"] for s in pod["status"].get("containerStatuses", ())),
                pod["spec"]["containers"][0]["image"],
            )
            for pod in owned
            if not is_deleting(pod) and not is_finished(pod)
        }
