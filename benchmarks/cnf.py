# SPDX-License-Identifier: Apache-2.0
"""CNFs of any size: the packages before and after, written as folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from container_update.emulator.demo.scenarios import guide_request
from container_update.model.requests import UpdateRequest

_DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {{name: d{number}}}
spec:
  replicas: {pods}
  selector: {{matchLabels: {{app: d{number}}}}}
  template:
    metadata: {{labels: {{app: d{number}}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: {image}
        command: [sleep, infinity]
        env:
        - name: SETTING
          valueFrom: {{configMapKeyRef: {{name: c{number}, key: setting}}}}
"""
_CONFIG_MAP = """apiVersion: v1
kind: ConfigMap
metadata: {{name: c{number}}}
data: {{setting: {image}}}
"""


@dataclass(frozen=True)
class Images:
    """The images of the synthetic CNFs."""

    old: str = "app:1"
    new: str = "app:2"
    missing: str = "app:missing"
    """One that cannot be pulled."""


def guide(_: Path) -> UpdateRequest:
    """Return the request of the user guide's sample: 12 objects, 7 of which change."""
    return guide_request("v1")


def deployments(  # noqa: PLR0913
    folder: Path,
    images: Images,
    number: int,
    *,
    pods: int = 2,
    changed: int,
    bad: int = 0,
) -> UpdateRequest:
    """Write both packages of a CNF of Deployments, each with a ConfigMap; a file for each object.

    :param pods: of each Deployment.
    :param changed: how many Deployments get another image, and their ConfigMaps other content.
    :param bad: how many of those, the last ones, get one that cannot be pulled.
    """
    for name, changes in (("old", 0), ("new", changed)):
        files = folder / name / "Files"
        files.mkdir(parents=True)
        for index in range(number):
            image = images.old if index >= changes else images.new
            if changes - bad <= index < changes:
                image = images.missing
            text = _DEPLOYMENT.format(number=index, pods=pods, image=image)
            (files / f"d{index:04}.yaml").write_text(text)
            (files / f"c{index:04}.yaml").write_text(_CONFIG_MAP.format(number=index, image=image))
    return UpdateRequest(str(folder / "old"), str(folder / "new"))
