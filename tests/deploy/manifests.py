# SPDX-License-Identifier: Apache-2.0
"""The manifests of ``deploy/kubernetes``, as kustomize would put them together."""

from __future__ import annotations

import configparser
from pathlib import Path
from typing import Any

import yaml

from tests.internals.service import connections, workers

Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy/kubernetes"
BASE = KUBERNETES / "base"
NAMESPACE = "container-update"


def objects() -> list[Json]:
    """Return the objects of the base in the order of its kustomization."""
    files = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    return [found for name in files for found in yaml.safe_load_all((BASE / name).read_text())]


def of(kind: str) -> Json:
    """Return the one object of a kind."""
    (found,) = (found for found in objects() if found["kind"] == kind)
    return found


def pod() -> Json:
    """Return the pod's spec."""
    return dict(of("Deployment")["spec"]["template"]["spec"])


def container() -> Json:
    """Return the one container of the pod."""
    (only,) = pod()["containers"]
    return dict(only)


def configuration(text: str) -> dict[str, dict[str, str]]:
    """Return the sections of a configuration file."""
    parser = configparser.ConfigParser()
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


def settings() -> dict[str, dict[str, str]]:
    """Return the sections of the ConfigMap's file."""
    return configuration(of("ConfigMap")["data"]["vnfm.conf"])


def stop_seconds(drain_seconds: str) -> float:
    """Return the maximum time that the service takes to stop, in seconds."""
    return connections.STOP_SECONDS + float(drain_seconds) + workers.CANCEL_SECONDS
