# SPDX-License-Identifier: Apache-2.0
"""The packages between which the hosts of a history move one VNF, and the states they describe."""

from __future__ import annotations

from dataclasses import dataclass

from tests.functional.manifests import config_map, secret, workload
from tests.functional.promise import Expected, Running
from tests.functional.reference_update import Files

GONE = -1
"""The state of a VNF that is not installed."""


@dataclass(frozen=True)
class Family:
    """Packages of one VNF; a state is the number of one, or :data:`GONE`.

    :param all_differs: every object differs between any two packages, and the first one lacks a
        Secret; otherwise two packages differ from the first one in different objects.
    """

    all_differs: bool

    @property
    def targets(self) -> tuple[int, ...]:
        """Those that an update may lead to."""
        return (1, 2) if self.all_differs else (0, 1, 2)

    @property
    def beginnings(self) -> tuple[str, ...]:
        """The operations that somebody may begin. An installation adds what is missing, which has
        to be all or nothing: where each package has the same objects."""
        updates = ("update", "bad update")
        return updates if self.all_differs else (*updates, "install", "uninstall", "uninstall")

    def _values(self, number: int) -> tuple[str, str, str]:
        """Return the content of the ConfigMap and of the Secret, and the image."""
        if self.all_differs:
            return f"v{number}", f"v{number}", f"app:{number}"
        return f"v{number % 2}", f"v{number // 2}", "app:0"

    def files(self, number: int, *, bad: bool = False) -> Files:
        """Return a package; a bad one fails at its end."""
        setting, typed, image = self._values(3 if bad else number)
        files = {
            "cm": config_map("cm", setting=setting),
            "typed": secret("typed", kind=f"example.org/{typed}", setting=typed),
            "d": workload(
                "Deployment",
                "d",
                image=image,
                container=_ENV.format(source="configMapKeyRef: {name: cm"),
            ),
            "s": workload(
                "StatefulSet",
                "s",
                image="bad:missing" if bad else image,
                container=_ENV.format(source="secretKeyRef: {name: typed"),
            ),
        }
        if self.all_differs and (number or bad):
            files["sec"] = secret("sec", token=setting)
        return files

    def expected(self, state: int) -> Expected:
        """Return what is there in a state."""
        if state == GONE:
            there = self.expected(0)
            return Expected(dict.fromkeys(there.config), dict.fromkeys(there.workloads))
        setting, typed, image = self._values(state)
        token = {"token": setting} if self.all_differs and state else None
        seen = {"SETTING": setting} | ({"TOKEN": setting} if token else {})
        return Expected(
            {
                ("ConfigMap", "cm"): {"setting": setting},
                ("Secret", "typed"): {"setting": typed},
                ("Secret", "sec"): token,
            },
            {
                ("Deployment", "d"): Running(image, seen),
                ("StatefulSet", "s"): Running(image, {"SETTING": typed}),
            },
        )


_ENV = """
env:
- name: SETTING
  valueFrom: {{{source}, key: setting}}}}
- name: TOKEN
  valueFrom: {{secretKeyRef: {{name: sec, key: token, optional: true}}}}
"""
