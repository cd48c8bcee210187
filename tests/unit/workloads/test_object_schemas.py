# SPDX-License-Identifier: Apache-2.0
"""The message about a field that violates the schema of its object."""

from __future__ import annotations

import pytest

from container_update.model.errors import PackageError
from container_update.package import manifests

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  template:
    spec:
      containers:
      - name: main
        image: app:1
        env:
        - name: A
"""

CASES = {
    "replicas as text": (
        ("replicas: 1", "replicas: '1'"),
        'f.yaml:6: expected a whole number as "spec.replicas" in the Deployment, found text',
    ),
    "containers as a mapping": (
        ("- name: main", "  name: main"),
        'f.yaml:9: expected a list as "spec.template.spec.containers" in the Deployment, '
        "found a mapping",
    ),
    "a container without a name": (
        ("- name: main\n  ", "- tty: true\n  "),
        "f.yaml:10: expected text without spaces as "
        '"spec.template.spec.containers[0].name" in the Deployment, found nothing',
    ),
    "an image that is a number": (
        ("app:1", "5"),
        "f.yaml:11: expected text without spaces as "
        '"spec.template.spec.containers[0].image" in the Deployment, found a number',
    ),
    "a volume's image that is a number": (
        (
            "      containers:",
            "      volumes: [{name: v, image: {reference: 5}}]\n      containers:",
        ),
        "f.yaml:9: expected text without spaces as "
        '"spec.template.spec.volumes[0].image.reference" in the Deployment, found a number',
    ),
    "a label that is a number": (
        ("name: web", "name: web\n  labels: {a: 5}"),
        'f.yaml:5: expected text as "metadata.labels.a" in the Deployment, found a number: '
        "quote it",
    ),
    "an apiVersion with a space": (
        ("apps/v1", "apps/v1 x"),
        'f.yaml:1: expected an "apiVersion" in the Deployment, found invalid text',
    ),
    "a name that leads elsewhere": (
        ("name: web", "name: a/../../secrets/b"),
        "f.yaml:4: expected a name of lower-case letters, digits, - and . as "
        '"metadata.name" in the Deployment, found invalid text',
    ),
}


@pytest.mark.parametrize(("change", "message"), CASES.values(), ids=CASES)
def test_a_wrong_field_is_named_with_file_and_line(change, message):
    text = DEPLOYMENT.replace(*change)
    assert text != DEPLOYMENT
    with pytest.raises(PackageError) as caught:
        manifests.parse(text.encode(), "f.yaml", "default")
    assert str(caught.value) == message


RIGHT = {
    "a field that is null": ("replicas: 1", "replicas:"),
    "an empty list": ("env:\n        - name: A", "env: []"),
    "a field that is not read": ("replicas: 1", "paused: 'text'"),
}


@pytest.mark.parametrize("change", RIGHT.values(), ids=RIGHT)
def test_it_is_right_to_have(change):
    text = DEPLOYMENT.replace(*change)
    assert text != DEPLOYMENT
    assert len(manifests.parse(text.encode(), "f.yaml", "default")) == 1


NAMES = {
    ("v1", "ServiceAccount", "system:account"): True,
    ("rbac.authorization.k8s.io/v1", "ClusterRole", "system:node"): True,
    ("example.com/v1", "Thing", "Upper_Case"): True,
    ("example.com/v1", "Thing", "a/b"): False,
    ("example.com/v1", "Thing", ".."): False,
    ("example.com/v1", "Thing", "a%2fb"): False,
    ("v1", "ConfigMap", "a.b-c"): True,
    ("v1", "ConfigMap", "Upper"): False,
    ("v1", "ConfigMap", "a..b"): False,
    ("v1", "ConfigMap", "a" * 253): True,
    ("v1", "ConfigMap", "a" * 254): False,
}


@pytest.mark.parametrize(("thing", "right"), NAMES.items())
def test_a_name_fits_into_a_url(thing, right):
    version, kind, name = thing
    text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: '{name}'}}\n".encode()
    if right:
        assert manifests.parse(text, "f.yaml", "default")[0].key.name == name
    else:
        with pytest.raises(PackageError, match=r'"metadata\.name"'):
            manifests.parse(text, "f.yaml", "default")
