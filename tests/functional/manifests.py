# SPDX-License-Identifier: Apache-2.0
"""Manifests for the functional tests, as text with placeholders."""

from __future__ import annotations

import textwrap

from tests.functional.cnf import IMAGES


def config_map(name: str = "cm", immutable: bool = False, **data: str) -> str:
    """Return a ConfigMap with these keys."""
    lines = "".join(f"  {key}: {value!r}\n" for key, value in data.items())
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n{lines}"
    return text + ("immutable: true\n" if immutable else "")


def secret(name: str = "sec", kind: str = "Opaque", **data: str) -> str:
    """Return a Secret with these keys."""
    lines = "".join(f"  {key}: {value!r}\n" for key, value in data.items())
    head = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\ntype: {kind}\n"
    return f"{head}stringData:\n{lines}"


ENV = """
env:
- name: SETTING
  valueFrom: {configMapKeyRef: {name: cm, key: setting}}
"""
ENV_FROM = "envFrom: [{configMapRef: {name: cm}}]"
MOUNT = "volumeMounts: [{name: conf, mountPath: /conf}]"
SUB_PATH = "volumeMounts: [{name: conf, mountPath: /conf/setting, subPath: setting}]"
VOLUME = "volumes: [{name: conf, configMap: {name: cm}}]"
PROJECTED = "volumes: [{name: conf, projected: {sources: [{configMap: {name: cm}}]}}]"


def workload(
    kind: str,
    name: str = "w",
    *,
    image: str = IMAGES[0],
    container: str = "",
    pod: str = "",
    spec: str = "",
    metadata: str = "",
    replicas: int | None = None,
) -> str:
    """Return a workload with *spec*, whose pod has *pod* and the container ``main`` *container*."""
    text = f"containers:\n- name: main\n  image: {image}\n"
    text += textwrap.indent(textwrap.dedent(container).strip(), "  ") + "\n"
    text += "terminationGracePeriodSeconds: 1\n" + textwrap.dedent(pod).strip() + "\n"
    head = f"metadata:\n  name: {name}\n" + textwrap.indent(metadata, "  ")
    head = head.rstrip() + "\n"
    if kind == "Pod":
        return f"apiVersion: v1\nkind: Pod\n{head}spec:\n" + textwrap.indent(text, "  ")
    template = f"metadata: {{labels: {{app: {name}}}}}\nspec:\n" + textwrap.indent(text, "  ")
    if kind in ("Job", "CronJob"):
        return _batch(kind, head, template)
    body = f"selector: {{matchLabels: {{app: {name}}}}}\n"
    if kind != "DaemonSet":
        body += f"replicas: {1 if replicas is None else replicas}\n"
    if kind == "StatefulSet":
        body += f"serviceName: {name}\n"
    body += textwrap.dedent(spec).strip() + "\n"
    body += "template:\n" + textwrap.indent(template, "  ")
    return f"apiVersion: apps/v1\nkind: {kind}\n{head}spec:\n" + textwrap.indent(body, "  ")


def _batch(kind: str, head: str, template: str) -> str:
    template += "  restartPolicy: Never\n"
    job = "template:\n" + textwrap.indent(template, "  ")
    if kind == "Job":
        return f"apiVersion: batch/v1\nkind: Job\n{head}spec:\n" + textwrap.indent(job, "  ")
    body = "schedule: '0 0 1 1 *'\njobTemplate:\n  spec:\n" + textwrap.indent(job, "    ")
    return f"apiVersion: batch/v1\nkind: CronJob\n{head}spec:\n" + textwrap.indent(body, "  ")
