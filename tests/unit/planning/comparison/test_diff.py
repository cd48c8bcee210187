# SPDX-License-Identifier: Apache-2.0
"""What counts as a difference: content of configuration, images, and what does not take effect."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from container_update.model.errors import PackageError
from container_update.model.objects import Json, Manifest
from container_update.model.plan import ConfigChange, ConfigDifference, ImageChange
from container_update.package import manifests
from container_update.planning.comparison import diff, live_objects
from container_update.planning.steps.config import laid_over
from tests.unit.build import b64, config_map, live, manifest, secret, workload, yaml_of

CREATE, REPLACE, RECREATE = ConfigChange.CREATE, ConfigChange.REPLACE, ConfigChange.RECREATE

# --- configuration ------------------------------------------------------------------------------


def change_of(
    new: Manifest, found: Json | None, old: Json | None = None
) -> ConfigDifference | None:
    """What becomes of a live object that was made from *old*, or else is as it was made."""
    before = None if found is None else manifest(found if old is None else old, "old.yaml", 5)
    now = None if found is None else live(found)
    step = laid_over(before, new, now)
    return diff.config_change(before, new, now, step.after)


SAME = {
    "the same data": (config_map(), config_map()),
    "no data and empty data": (config_map(data={}), {**config_map(), "data": None}),
    "stringData and the same in data": (
        secret(data={}, stringData={"k": "word"}),
        secret(data={"k": "word"}),
    ),
    "stringData over data": (
        secret(data={"k": "old", "l": "x"}, stringData={"k": "word"}),
        secret(data={"k": "word", "l": "x"}),
    ),
    "base64 with other line breaks": (
        {**secret(), "data": {"k": "d29y\n  ZA==\n"}},
        secret(data={"k": "word"}),
    ),
    "no type and the type that the server sets": (secret(), secret(type="Opaque")),
    "immutable false and absent": (config_map(immutable=False), config_map()),
    "immutable on both sides": (config_map(immutable=True), config_map(immutable=True)),
    "the same bytes, once as text and once as binary": (
        config_map(data={"k": "word"}),
        config_map(data={}, binaryData={"k": b64("word")}),
    ),
    "a value that is null is empty": (config_map(data={"k": None}), config_map(data={"k": ""})),
    "stringData of a ConfigMap, which has none": (config_map(stringData={"x": "1"}), config_map()),
    "binaryData of a Secret, which has none": (secret(binaryData={"x": b64("1")}), secret()),
    "the type of a ConfigMap, which has none": (config_map(type="x"), config_map()),
}  # fmt: skip


@pytest.mark.parametrize(("new", "found"), SAME.values(), ids=SAME.keys())
def test_what_says_the_same_is_no_change(new: Json, found: Json) -> None:
    assert change_of(manifest(new), found) is None


CHANGES: dict[str, tuple[Json, Json | None, ConfigChange, str, bool, list[str]]] = {
    "another value": (
        config_map(data={"a": "12", "b": "1"}), config_map(data={"a": "1", "b": "1"}),
        REPLACE, "a", False, ["key a: changed"],
    ),
    "a new key": (
        config_map(data={"a": "1", "b": "123"}), config_map(),
        REPLACE, "b", False, ["key b: new"],
    ),
    "a new key that is empty": (
        config_map(data={"a": "1", "b": ""}), config_map(),
        REPLACE, "b", False, ["key b: new"],
    ),
    "a removed key": (config_map(data={}), config_map(), REPLACE, "a", False, ["key a: removed"]),
    "several keys, in order": (
        config_map(data={"c": "1", "b": "x"}), config_map(data={"a": "1", "b": "1"}),
        REPLACE, "a b c", False,
        ["key a: removed", "key b: changed", "key c: new"],
    ),
    "binary data": (
        config_map(data={}, binaryData={"k": b64("\0\2\3")}),
        config_map(data={}, binaryData={"k": b64("\0\1")}),
        REPLACE, "k", False, ["key k: changed"],
    ),
    "a word of a Secret": (
        secret(data={"p": "morrison"}), secret(data={"p": "rison"}),
        REPLACE, "p", False, ["key p: changed"],
    ),
    "stringData of a Secret": (
        secret(data={}, stringData={"p": "né"}), secret(data={"p": "n"}),
        REPLACE, "p", False, ["key p: changed"],
    ),
    "it becomes immutable": (
        config_map(immutable=True), config_map(),
        REPLACE, "", False, ["immutable: false -> true"],
    ),
    "it is immutable": (
        config_map(data={"a": "2"}, immutable=True), config_map(immutable=True),
        RECREATE, "a", False,
        ["key a: changed", "is immutable: deleted and created again"],
    ),
    "it is no longer immutable": (
        config_map(), config_map(immutable=True), RECREATE, "", False,
        ["immutable: true -> false", "is immutable: deleted and created again"],
    ),
    "a Secret's type changes": (
        secret(type="example.org/x"), secret(),
        RECREATE, "", True, ["type: Opaque -> example.org/x"],
    ),
    "labels and annotations, of no key": (
        config_map(metadata={"labels": {"a": "new"}, "annotations": {"b": "new"}}),
        config_map(metadata={"labels": {"a": "old"}, "annotations": {"c": "old"}}),
        REPLACE, "", False,
        [
            "metadata.labels.a differs (f.yaml:3)",
            "metadata.annotations.c differs (old.yaml:5 of the old package)",
            "metadata.annotations.b differs (f.yaml:3)",
        ],
    ),
    "the labels alone of what is immutable": (
        config_map(immutable=True, metadata={"labels": {"a": "new"}}), config_map(immutable=True),
        REPLACE, "", False, ["metadata.labels differs (f.yaml:3)"],
    ),
    "it is not there": (
        config_map(data={"a": "1", "b": "2"}), None, CREATE, "a b", True, [],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("new", "found", "how", "keys", "whole", "details"), CHANGES.values(), ids=CHANGES.keys()
)
def test_a_change_says_how_it_is_made_and_which_keys_it_touches(
    new: Json, found: Json | None, how: ConfigChange, keys: str, whole: bool, details: list[str]
) -> None:
    wanted = manifest(new, "f.yaml", 3)
    change = change_of(wanted, found)
    assert change is not None
    assert (change.key, change.source) == (wanted.key, wanted.source)
    assert (change.how, change.keys, change.whole) == (how, frozenset(keys.split()), whole)
    assert [str(reason) for reason in change.reasons] == details


def test_content_is_bytes_by_key_however_it_is_spelled() -> None:
    body = secret(data={"a": "1"}, stringData={"b": "2"}, type="t", immutable=True)
    assert diff.content(body) == diff.Content({"a": b"1", "b": b"2"}, "t", True)
    assert diff.content(config_map()) == diff.Content({"a": b"1"}, "", False)


def test_a_secrets_words_are_in_no_detail() -> None:
    before, after = secret(data={"p": "canary-1"}), secret(data={"p": "canary-22"})
    text = str(change_of(manifest(after), before))
    for word in ("canary-1", "canary-22", b64("canary-1"), b64("canary-22")):
        assert word not in text


WRONG = {
    "a number": (config_map(data={"port": 8080}), "data.port", "int"),
    "a truth value": (secret(stringData={"debug": True}), "stringData.debug", "bool"),
    "a list where the map belongs": (config_map() | {"data": ["a"]}, "data", "map of strings"),
    "text that is no base64": (secret() | {"data": {"k": "canary!"}}, "data.k", "base64"),
    "base64 with a stranger in it": (secret() | {"data": {"k": "Y2Fu!YXJ5"}}, "data.k", "base64"),
    "base64 without its end": (secret() | {"data": {"k": "Y2FuYXJ5cw"}}, "data.k", "base64"),
    "text as binaryData": (config_map(binaryData={"k": "é"}), "binaryData.k", "base64"),
}


@pytest.mark.parametrize(("body", "field", "expected"), WRONG.values(), ids=WRONG.keys())
def test_a_value_that_the_server_would_refuse_is_named_without_showing_it(
    body: Json, field: str, expected: str
) -> None:
    with pytest.raises(PackageError) as caught:
        diff.stated_content(manifest(body, "f.yaml", 9))
    message = str(caught.value)
    assert message.startswith(f"f.yaml:9: {body['kind']} ns/{body['metadata']['name']}: {field}: ")
    assert expected in message
    assert "8080" not in message
    assert "canary" not in message
    assert "Y2Fu" not in message


# --- images -------------------------------------------------------------------------------------

POD = """
initContainers:
- {name: init, image: init:1}
- {name: side, image: side:1, restartPolicy: Always}
containers:
- {name: a, image: app:1}
- {name: b, image: app:1}
"""


def with_images(kind: str, images: dict[str, str]) -> Json:
    spec = yaml_of(POD)
    for container in (*spec["initContainers"], *spec["containers"]):
        container["image"] = images.get(container["name"], container["image"])
    return workload(kind, spec)


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "CronJob"])
def test_images_are_compared_by_the_containers_names(kind: str) -> None:
    new = with_images(kind, {"init": "init:2", "side": "side:2", "b": "app:2"})
    assert diff.image_changes(manifest(with_images(kind, {})), manifest(new)) == (
        ImageChange("init", "init:1", "init:2", init=True),
        ImageChange("side", "side:1", "side:2"),
        ImageChange("b", "app:1", "app:2"),
    )


VOLUMES = "containers: [{{name: a, image: app:1}}]\nvolumes: [{{name: a, {}}}, {{name: v, {}}}]"


def volumes(first: str, second: str, kind: str = "Deployment") -> Manifest:
    """A workload with these two volumes."""
    return manifest(workload(kind, VOLUMES.format(first, second)))


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "CronJob"])
def test_a_volume_with_an_image_is_compared_by_its_name_as_a_container_is(kind: str) -> None:
    old, new = (volumes(f"image: {{reference: {tag}}}", "emptyDir: {}", kind) for tag in "xy")
    (change,) = diff.image_changes(old, new)
    assert (change, str(change)) == (ImageChange("volume a", "x", "y"), "volume a: image x -> y")
    assert diff.field_changes(old, new) == ()


def test_a_volume_that_becomes_or_was_an_image_is_a_field_that_differs() -> None:
    image, empty = "image: {reference: x}", "emptyDir: {}"
    old, new = volumes(image, empty), volumes(empty, image)
    assert diff.image_changes(old, new) == ()
    assert [change.path for change in diff.field_changes(old, new)] == [
        f"{T}.volumes[a].image",
        f"{T}.volumes[v].image",
    ]


def test_another_order_of_containers_is_no_change() -> None:
    new = with_images("Deployment", {})
    new["spec"]["template"]["spec"]["containers"].reverse()
    old = manifest(with_images("Deployment", {}))
    assert diff.image_changes(old, manifest(new)) == ()
    assert diff.field_changes(old, manifest(new)) == ()


def test_a_container_that_vanished_is_refused_with_both_places() -> None:
    new = with_images("Deployment", {})
    del new["spec"]["template"]["spec"]["containers"][0]
    with pytest.raises(PackageError) as caught:
        diff.image_changes(
            manifest(with_images("Deployment", {}), "old.yaml", 4), manifest(new, "new.yaml", 8)
        )
    assert str(caught.value) == (
        "new.yaml:8: Deployment ns/w: expected a container a as in old.yaml:4, found init, side, b:"
        " containers are matched by name, so keep the name"
    )


def test_a_container_that_lost_its_image_is_refused() -> None:
    new = with_images("Deployment", {"b": ""})
    with pytest.raises(PackageError, match=r"container b: expected an image, as in old.yaml:4"):
        diff.image_changes(
            manifest(with_images("Deployment", {}), "old.yaml", 4), manifest(new, "new.yaml", 8)
        )


def test_a_workload_that_lost_all_containers_is_refused() -> None:
    with pytest.raises(PackageError, match="found none"):
        diff.image_changes(
            manifest(with_images("Pod", {})), manifest(workload("Pod", "{containers: []}"))
        )


def test_an_image_change_reads_as_a_sentence() -> None:
    assert str(ImageChange("a", "x:1", "x:2")) == "container a: image x:1 -> x:2"
    assert str(ImageChange("i", "x:1", "x:2", True)) == "init container i: image x:1 -> x:2"


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("r.org:5000/core/upf:1", "r.org:5000/core/upf:2", "upf:1 -> upf:2"),
        ("r.org/core/upf@sha256:a", "r.org/core/upf:2@sha256:b", "upf@sha256:a -> upf:2@sha256:b"),
        ("r.org/core/upf:1", "mirror.org/core/upf:1", "r.org/core/upf:1 -> mirror.org/core/upf:1"),
        ("upf:1", "r.org/upf:1", "upf:1 -> r.org/upf:1"),
    ],
)
def test_an_image_change_names_the_registry_only_where_that_changes(
    old: str, new: str, shown: str
) -> None:
    assert str(ImageChange("a", old, new)) == f"container a: image {shown}"


# --- everything else ----------------------------------------------------------------------------


def deployment(spec: str, **more: Any) -> Json:
    return workload("Deployment", spec, **more)


CONTAINER = "containers: [{name: a, image: app:1}]"
T = "spec.template.spec"

IGNORED: dict[str, tuple[Json, Json, list[str]]] = {
    "replicas": (
        deployment(CONTAINER, replicas=1), deployment(CONTAINER, replicas=2), ["spec.replicas"],
    ),
    "a field that appears": (
        deployment(CONTAINER), deployment(CONTAINER, paused=True), ["spec.paused"],
    ),
    "a field that vanishes": (
        deployment(CONTAINER, paused=True), deployment(CONTAINER), ["spec.paused"],
    ),
    "the fields of the old manifest come first": (
        deployment(CONTAINER, x=1, y=1), deployment(CONTAINER, z=1, y=2, x=2),
        ["spec.x", "spec.y", "spec.z"],
    ),
    "a variable's value, found by the variable's name": (
        deployment("containers: [{name: a, image: i, env: [{name: E}, {name: F, value: x}]}]"),
        deployment("containers: [{name: a, image: i, env: [{name: F, value: y}, {name: E}]}]"),
        [f"{T}.containers[a].env[F].value"],
    ),
    "a new variable": (
        deployment("containers: [{name: a, image: i, env: [{name: E, value: x}]}]"),
        deployment("containers: [{name: a, image: i, env: [{name: E, value: x}, {name: F}]}]"),
        [f"{T}.containers[a].env[F]"],
    ),
    "a first variable": (
        deployment("containers: [{name: a, image: i}]"),
        deployment("containers: [{name: a, image: i, env: [{name: E, value: x}]}]"),
        [f"{T}.containers[a].env"],
    ),
    "a new container beside one with another image": (
        deployment(CONTAINER),
        deployment("containers: [{name: n, image: new}, {name: a, image: app:2}]"),
        [f"{T}.containers[n]"],
    ),
    "a list without names is one thing": (
        deployment("containers: [{name: a, image: app:1, args: [x, y]}]"),
        deployment("containers: [{name: a, image: app:1, args: [x, z]}]"),
        [f"{T}.containers[a].args"],
    ),
    "a list whose names repeat is one thing": (
        deployment("containers: [{name: a, image: i, ports: [{name: p, x: 1}, {name: p, x: 2}]}]"),
        deployment("containers: [{name: a, image: i, ports: [{name: p, x: 1}, {name: p, x: 3}]}]"),
        [f"{T}.containers[a].ports"],
    ),
    "a list that gets names is one thing": (
        deployment("containers: [{name: a, image: i, ports: [{containerPort: 1}]}]"),
        deployment("containers: [{name: a, image: i, ports: [{name: p, containerPort: 1}]}]"),
        [f"{T}.containers[a].ports"],
    ),
    "absent, null and empty are the same": (
        deployment(CONTAINER, a=None, b={}, c=[], d={}, e=[]),
        deployment(CONTAINER, b=None, c={}, d=[]),
        [],
    ),
    "false, 0 and the empty text are not absent": (
        deployment(CONTAINER, a=False, b=0, c=""), deployment(CONTAINER),
        ["spec.a", "spec.b", "spec.c"],
    ),
    "a list that loses its names is one thing": (
        deployment("containers: [{name: a, image: i, ports: [{name: p, containerPort: 1}]}]"),
        deployment("containers: [{name: a, image: i, ports: [{containerPort: 1}]}]"),
        [f"{T}.containers[a].ports"],
    ),
    "a list of texts that hold the word name": (
        deployment("containers: [{name: a, image: i, args: [--name=x]}]"),
        deployment("containers: [{name: a, image: i, args: [--name=y]}]"),
        [f"{T}.containers[a].args"],
    ),
    "a list without names that is the same": (
        deployment("containers: [{name: a, image: i, args: [x, y]}]", replicas=1),
        deployment("containers: [{name: a, image: i, args: [x, y]}]", replicas=2),
        ["spec.replicas"],
    ),
    "an image in the template of what is no workload of Kubernetes": (
        {**deployment(CONTAINER), "apiVersion": "example.org/v1"},
        {**deployment(CONTAINER.replace(":1", ":2")), "apiVersion": "example.org/v1"},
        [f"{T}.containers[a].image"],
    ),
    "a map that becomes a list": (
        deployment(CONTAINER, a={"x": 1}), deployment(CONTAINER, a=["x"]), ["spec.a"],
    ),
    "images alone take effect": (
        deployment(CONTAINER), deployment(CONTAINER.replace(":1", ":2")), [],
    ),
    "content of configuration takes effect": (
        secret(stringData={"b": "1"}),
        secret(data={"b": "2"}, stringData={"c": "2"}, type="x", binaryData={"d": 1}),
        [],
    ),
    "that configuration becomes immutable takes effect": (
        config_map(), config_map(immutable=True), [],
    ),
    "a label of configuration": (
        config_map(metadata={"labels": {"l": "1"}}),
        config_map(data={"a": "2"}, metadata={"labels": {"l": "2"}}),
        ["metadata.labels.l"],
    ),
    "an image of what is no workload": (
        {"kind": "Thing", "metadata": {"name": "t"}, "spec": {"image": "x:1"}, "data": 1},
        {"kind": "Thing", "metadata": {"name": "t"}, "spec": {"image": "x:2"}, "data": 2},
        ["spec.image", "data"],
    ),
    "a workload's data are not configuration": (
        {**deployment(CONTAINER), "data": 1}, {**deployment(CONTAINER), "data": 2}, ["data"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "paths"), IGNORED.values(), ids=IGNORED.keys())
def test_what_does_not_take_effect_is_named_by_its_path(
    old: Json, new: Json, paths: list[str]
) -> None:
    assert [each.path for each in diff.field_changes(manifest(old), manifest(new))] == paths


def parsed(text: str, path: str = "new.yaml") -> Manifest:
    """The only object of a def-file, which knows the lines of its fields."""
    (read,) = manifests.parse(textwrap.dedent(text).encode(), path, "ns")
    return read


WORKER = """\
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: worker}
    spec:
      template:
        spec:
          containers:
          - name: web
            image: app:1
            env:
            - {name: FIRST, value: "1"}
            - name: GREETING
              value: hello
"""
WEB = f"{T}.containers[web]"

VALUES: dict[str, tuple[str, str, list[str]]] = {
    "another value": (
        "value: hello", "value: hi", [f'{WEB}.env[GREETING].value: "hello" -> "hi" (new.yaml:13)'],
    ),
    "a field that appears": (
        "image: app:1", "image: app:1\n            tty: true",
        [f"{WEB}.tty: none -> true (new.yaml:10)"],
    ),
    "a field that vanishes is looked for in the old package": (
        '            - {name: FIRST, value: "1"}\n', "",
        [
            f'{WEB}.env[FIRST]: {{"name":"FIRST","value":"1"}} -> none '
            "(old.yaml:11 of the old package)"
        ],
    ),
    "a text that was a number": ("value: hello", "value: 'yes'", [
        f'{WEB}.env[GREETING].value: "hello" -> "yes" (new.yaml:13)',
    ]),
    "a value that would not fit into a line": (
        "value: hello", f"value: {'x' * 100}",
        [f'{WEB}.env[GREETING].value: "hello" -> "{"x" * 56}... (new.yaml:13)'],
    ),
    "a value with what would control a terminal": (
        "value: hello", r'value: "a\e[1m\u202Eb"',
        [rf'{WEB}.env[GREETING].value: "hello" -> "a\u001b[1m\u202eb" (new.yaml:13)'],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "other", "expected"), VALUES.values(), ids=VALUES.keys())
def test_a_field_that_differs_has_both_values_and_its_own_line(
    text: str, other: str, expected: list[str]
) -> None:
    assert text in WORKER
    changes = diff.field_changes(parsed(WORKER, "old.yaml"), parsed(WORKER.replace(text, other)))
    assert list(map(str, changes)) == expected


@pytest.mark.parametrize(
    ("same", "begin", "end"),
    [(500, "..." + "a" * 20, "z" * 31 + "..."), (39, '"' + "a" * 39, "z" * 14 + "...")],
)
def test_two_long_values_are_shown_where_they_begin_to_differ(
    same: int, begin: str, end: str
) -> None:
    old, new = (
        deployment(CONTAINER, text="a" * same + middle + "z" * 500) for middle in ("one", "two")
    )
    (change,) = diff.field_changes(manifest(old), manifest(new))
    assert change.old == f"{begin}one{end}"
    assert change.new == f"{begin}two{end}"


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
SECRETS: dict[str, tuple[Json, Json, str]] = {
    "a label of a Secret": (
        secret(metadata={"labels": {"l": "canary-1"}}),
        secret(metadata={"labels": {"l": "canary-2"}}),
        "metadata.labels.l: changed (f.yaml:1)",
    ),
    "what kubectl keeps of a Secret": (
        secret(metadata={"annotations": {LAST_APPLIED: "canary"}}),
        secret(),
        "metadata.annotations: (not shown) -> none (f.yaml:1 of the old package)",
    ),
    "what kubectl keeps of another object": (
        deployment(CONTAINER),
        deployment(CONTAINER)
        | {"metadata": {"name": "w", "annotations": {LAST_APPLIED: "canary"}}},
        f'metadata.annotations: none -> {{"{LAST_APPLIED}":"(not... (f.yaml:1)',
    ),
    "a Secret that another object describes": (
        deployment(CONTAINER, extra=secret(data={"k": "canary-1"})),
        deployment(CONTAINER, extra=secret(data={"k": "canary-2"})),
        "spec.extra.data.k: changed (f.yaml:1)",
    ),
    "a list of Secrets that another object describes": (
        deployment(CONTAINER),
        deployment(CONTAINER, extra=[secret(data={"k": "canary"})]),
        'spec.extra: none -> ["(not shown)"] (f.yaml:1)',
    ),
}


@pytest.mark.parametrize(("old", "new", "expected"), SECRETS.values(), ids=SECRETS.keys())
def test_a_field_of_a_secret_that_differs_has_no_value(old: Json, new: Json, expected: str) -> None:
    (change,) = diff.field_changes(manifest(old, "f.yaml", 1), manifest(new, "f.yaml", 1))
    assert str(change) == expected
    assert "canary" not in repr(change)
    assert b64("canary-1") not in repr(change)


# --- a live object against its own manifest -----------------------------------------------------


@pytest.mark.parametrize(
    ("said", "live", "more"),
    [
        ({"a": 1}, {"a": 1, "defaulted": True}, False),
        ({"a": 1}, {"a": 2}, True),
        ({"a": 1}, {}, True),
        ({"a": {}, "b": None, "c": [], "d": ""}, {}, False),
        ({"value": ""}, {"value": "x"}, True),
        ({"value": "1.0"}, {"value": "1"}, True),
        ({"replicas": 3}, {"replicas": 1}, False),
        (
            {"limits": {"cpu": "1000m", "memory": "1Gi"}},
            {"limits": {"cpu": "1", "memory": "1024Mi"}},
            False,
        ),
        ({"sizeLimit": "1Gi"}, {"sizeLimit": "1024Mi"}, False),
        ({"limits": {"cpu": "1"}}, {"limits": {"cpu": "2"}}, True),
        ({"limits": {"cpu": "1"}}, {}, True),
        (
            {"limits": {"cpu": "0.7", "memory": "1e9"}},
            {"limits": {"cpu": "700m", "memory": "1G"}},
            False,
        ),
        ({"limits": {"cpu": "0.0005"}}, {"limits": {"cpu": "500u"}}, False),
        ({"limits": {"cpu": "1.2.3"}}, {"limits": {"cpu": "1"}}, True),
        ({"limits": {"memory": "1E"}}, {"limits": {"memory": "1"}}, True),
        ({"port": 80}, {"port": "80"}, False),
        ({"l": [{"name": "a", "x": 1}]}, {"l": [{"name": "b"}, {"name": "a", "x": 1}]}, False),
        ({"l": [{"name": "a", "x": 1}]}, {"l": [{"name": "a", "x": 2}]}, True),
        ({"l": ["a", "b"]}, {"l": ["a"]}, True),
        ({"l": ["a"]}, {"l": "a"}, True),
        ({"v": "1.2.3"}, {"v": "1.2.3.4"}, True),
    ],
)
def test_a_manifest_says_more_than_is_live(said: Json, live: Json, *, more: bool) -> None:
    manifest = {"kind": "X", "metadata": {"name": "x"}, "spec": said}
    there = {"metadata": {"name": "y", "uid": "u"}, "spec": live}
    assert live_objects.covers(there, manifest) is not more


def test_a_label_of_the_manifest_that_is_not_live_is_more() -> None:
    labelled = {"kind": "X", "metadata": {"name": "x", "labels": {"a": "b"}}}
    assert not live_objects.covers({"metadata": {"name": "x", "labels": {"other": "c"}}}, labelled)
