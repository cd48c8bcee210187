# SPDX-License-Identifier: Apache-2.0
"""Which live workloads have images that no package explains: the server is asked about them."""

from __future__ import annotations

import pytest

from container_update.model.objects import Json, Manifest, ObjectKey, Source
from container_update.planning.steps.manifest import (
    manifest_digest,
    unexplained_workloads,
    with_recorded_digest,
)
from container_update.workloads.pod_template import images

KEY = ObjectKey("apps", "Deployment", "ns", "w")


def body(**images: str) -> Json:
    containers = [{"name": name, "image": image} for name, image in images.items()]
    metadata = {"name": "w", "namespace": "ns"}
    spec = {"template": {"spec": {"containers": containers}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def manifest(content: Json) -> Manifest:
    return Manifest(ObjectKey.of(content), content, Source("w.yaml", 1))


def asked(old: Json | None, new: Json, live: Json | None) -> list[dict[str, str]]:
    there = {} if live is None else {KEY: live}
    pair = (None if old is None else manifest(old), manifest(new))
    return [images(desired) for desired in unexplained_workloads([pair], there)]


OLD, NEW = body(a="app:1"), body(a="app:2")


@pytest.mark.parametrize(
    ("old", "new", "live"),
    [
        pytest.param(OLD, NEW, OLD, id="as the old package says"),
        pytest.param(OLD, NEW, NEW, id="as the new package says"),
        pytest.param(OLD, NEW, None, id="not there"),
        pytest.param(OLD, OLD, body(a="m/app:1"), id="an image that the packages do not change"),
        pytest.param(OLD, NEW, body(b="m/app:1"), id="a container that is gone"),
    ],
)
def test_without_an_unknown_image_nothing_is_asked(old: Json, new: Json, live: Json | None) -> None:
    assert asked(old, new, live) == []


@pytest.mark.parametrize(
    ("old", "new", "live"),
    [
        pytest.param(OLD, NEW, body(a="m/app:1"), id="the mirror's of the old image"),
        pytest.param(OLD, NEW, body(a="m/app:2"), id="the mirror's of the new image"),
        pytest.param(None, NEW, body(a="m/app:2"), id="new in the package"),
    ],
)
def test_an_image_of_neither_package_is_asked_for(old: Json | None, new: Json, live: Json) -> None:
    assert asked(old, new, live) == [{"a": "app:2"}]


def test_of_what_was_made_from_the_new_manifest_every_image_is_to_be_its() -> None:
    """Another field differs between the packages: by its digest the live object has that."""
    new = {**OLD, "spec": {**OLD["spec"], "replicas": 2}}
    live = with_recorded_digest(body(a="m/app:1"), manifest_digest(new))
    assert asked(OLD, new, live) == [{"a": "app:1"}]


def test_a_configmap_has_no_images() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    assert (
        list(unexplained_workloads([(None, manifest(config))], {ObjectKey.of(config): config}))
        == []
    )
