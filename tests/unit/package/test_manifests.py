# SPDX-License-Identifier: Apache-2.0
"""YAML text to manifests: what comes out, from which line, and what is refused with which words."""

from __future__ import annotations

import json
import re
import textwrap
from typing import Any

import pytest
import yaml

from container_update.model.errors import PackageError
from container_update.model.objects import ObjectKey
from container_update.model.options import TACKER, Options
from container_update.package import yaml11
from container_update.package.findings import Reading
from container_update.package.manifests import parse


def read(text: str, **options: Any):
    return parse(textwrap.dedent(text).encode(), "f.yaml", "vnf", options=Options(**options))


def config_map(data: str) -> str:
    """A ConfigMap whose ``data`` (from line 5) is this text."""
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n"
    return head + textwrap.indent(data, "  ")


CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
"""

FILES = {
    "one object": (CONFIG_MAP, [("ConfigMap vnf/c", 1)]),
    "several documents": (
        CONFIG_MAP + "---\n" + CONFIG_MAP,
        [("ConfigMap vnf/c", 1), ("ConfigMap vnf/c", 5)],
    ),
    "empty documents": (
        "---\n# nothing\n---\n" + CONFIG_MAP + "---\n...\n---\n",
        [("ConfigMap vnf/c", 4)],
    ),
    "an empty file": ("", []),
    "comments alone": ("# nothing here\n", []),
    "CRLF line ends": (CONFIG_MAP.replace("\n", "\r\n"), [("ConfigMap vnf/c", 1)]),
    "a byte order mark": ("\ufeff" + CONFIG_MAP, [("ConfigMap vnf/c", 1)]),
    "JSON": (
        '{\n "apiVersion": "v1",\n "kind": "Pod",\n "metadata": {"name": "p"}}',
        [("Pod vnf/p", 1)],
    ),
    "a namespace of its own": (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: other}\n",
        [("Secret other/s", 1)],
    ),
    "an object that lives in no namespace": (
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n",
        [("Namespace n", 1)],
    ),
    "an unknown kind": (
        "apiVersion: acme.example/v1\nkind: Gadget\nmetadata: {name: g}\nanything: [1, {a: b}]\n",
        [("Gadget vnf/g", 1)],
    ),
    "kind List": (
        """\
        apiVersion: v1
        kind: List
        items:
        - apiVersion: v1
          kind: ConfigMap
          metadata: {name: a}

        - {apiVersion: v1, kind: Secret, metadata: {name: b}}
        """,
        [("ConfigMap vnf/a", 4), ("Secret vnf/b", 8)],
    ),
    "an empty List": ("apiVersion: v1\nkind: List\n", []),
    "a List in a List": (
        """\
        apiVersion: v1
        kind: List
        items:
        - apiVersion: v1
          kind: List
          items:
          - {apiVersion: v1, kind: Secret, metadata: {name: b}}
        """,
        [("Secret vnf/b", 7)],
    ),
    "an alias as an item, which is written where its anchor is": (
        """\
        apiVersion: v1
        kind: List
        metadata:
          one: &one {apiVersion: v1, kind: Secret, metadata: {name: b}}
        items:
        - *one
        """,
        [("Secret vnf/b", 4)],
    ),
    "a typed list, whose items need not repeat the kind": (
        """\
        apiVersion: apps/v1
        kind: DeploymentList
        items:
        - metadata: {name: a}
        - {apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}
        """,
        [("Deployment vnf/a", 4), ("Deployment vnf/b", 5)],
    ),
    "a kind that only ends in List": (
        "apiVersion: acme.example/v1\nkind: AllowList\nmetadata: {name: l}\n",
        [("AllowList vnf/l", 1)],
    ),
}


@pytest.mark.parametrize(("text", "expected"), FILES.values(), ids=FILES)
def test_every_object_comes_out_with_its_identity_and_line(text, expected):
    found = [(str(m.key), m.source.line) for m in read(text)]
    assert found == expected


@pytest.mark.parametrize(("text", "expected"), FILES.values(), ids=FILES)
def test_the_parser_in_python_serves_where_libyaml_is_missing(text, expected, monkeypatch):
    monkeypatch.setattr(yaml11, "LOADER", yaml.SafeLoader)
    assert [(str(m.key), m.source.line) for m in read(text)] == expected


def test_items_of_a_typed_list_get_the_kind_and_version_of_the_list():
    text = "apiVersion: apps/v1\nkind: DeploymentList\nitems: [{metadata: {name: a}}]\n"
    (manifest,) = read(text)
    assert manifest.key == ObjectKey("apps", "Deployment", "vnf", "a")
    assert manifest.body == {
        "metadata": {"name": "a"}, "kind": "Deployment", "apiVersion": "apps/v1",
    }  # fmt: skip


def test_a_source_names_the_path_as_the_package_does():
    (manifest,) = read("\n\n" + CONFIG_MAP)
    assert str(manifest.source) == "f.yaml:3"


SCALARS = [
    ("0644", 420), ("0o644", 420), ("-0644", -420), ("0x1A4", 420), ("0b11", 3), ("420", 420),
    ("1_000", 1000), ("+7", 7), ("08", 8), ("0", 0), ("-0", 0), ("9223372036854775807", 2**63 - 1),
    ("18446744073709551615", 18446744073709552000), ("0b-11", -3),
    ("1.0", 1), ("1.5", 1.5), (".5", 0.5), ("1e3", 1000), ("1.", 1), ("1e400", "1e400"),
    ("1e21", 1e21), ("123456789012345678901", 123456789012345680000),
    ("1:30", "1:30"), ("190:20:30", "190:20:30"), ("1.2.3", "1.2.3"), ("0xZZ", "0xZZ"),
    ("_1", "_1"), ("\u0661\u0662", "\u0661\u0662"),
    ("yes", True), ("No", False), ("on", True), ("OFF", False), ("y", "y"), ("N", "N"),
    ("true", True), ("tRUE", "tRUE"),
    ("~", None), ("null", None), ("", None), ("nUll", "nUll"),
    ("2026-01-01", "2026-01-01"), ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
    ("=", "="), ("<<", "<<"),
    ('"0644"', "0644"), ("'yes'", "yes"), ('""', ""), ('"~"', "~"), ("! 12", "12"),
    ("!!str 12", "12"), ("!!str yes", "yes"), ("!!int '12'", 12), ("!!float 1", 1),
    ("!!bool 'on'", True), ("!!null ''", None), ("!!timestamp 2026-01-01", "2026-01-01"),
    ("|\n  a\n  b", "a\nb\n"), (">-\n  a\n  b", "a b"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "value"), SCALARS)
def test_a_scalar_means_what_it_means_to_kubectl(written, value):
    (manifest,) = read(config_map(f"k: {written}\n"))
    found = manifest.body["data"]["k"]
    assert (found, type(found)) == (value, type(value))


KEYS = [
    ("1", "1"),
    ("0644", "420"),
    ("on", "true"),
    ("09", "9"),
    ("2.0", "2"),
    ("no", "false"),
    ("y", "y"),
    ("'on'", "on"),
    ("a.b", "a.b"),
]


@pytest.mark.parametrize(("written", "key"), KEYS)
def test_a_key_becomes_text(written, key):
    (manifest,) = read(config_map(f"{written}: v\n"))
    assert manifest.body["data"] == {key: "v"}


UNENDED = {
    "a literal block": ("k: |\n  a\n  b", "a\nb\n", "a\nb"),
    "a folded block": ("k: >\n  a\n  b", "a b\n", "a b"),
    "a block that keeps its line ends": ("k: |+\n  a\n\n  b", "a\n\nb\n", "a\n\nb"),
    "a block with the indentation that it says": ("k: |1\n  a", " a\n", " a"),
    "a block with line ends of Windows": ("k: |\r\n  a\r\n  b", "a\nb\n", "a\nb"),
}


@pytest.mark.parametrize(("data", "by_kubectl", "by_tacker"), UNENDED.values(), ids=UNENDED)
def test_a_block_at_the_end_of_a_file_without_a_line_end(data, by_kubectl, by_tacker):
    (manifest,) = read(config_map(data))
    assert manifest.body["data"] == {"k": by_kubectl}
    assert manifest.otherwise["data"] == {"k": by_tacker}
    (manifest,) = read(config_map(data), file_end=TACKER)
    assert manifest.body["data"] == {"k": by_tacker}
    assert manifest.otherwise["data"] == {"k": by_kubectl}


@pytest.mark.parametrize("data", ["k: |-\n  a", "k: a", "k: 'a'", "k: |\n  a\n", "k: >-\n  a\n  b"])
def test_most_files_mean_the_same_with_and_without_a_line_end(data):
    (manifest,) = read(config_map(data))
    assert manifest.otherwise is None


def test_only_the_last_object_of_a_file_can_be_read_without_its_line_end():
    first, last = read(config_map("k: |\n  a\n") + "---\n" + config_map("k: |\n  a"))
    assert first.otherwise is None
    assert last.otherwise["data"] == {"k": "a"}


TWICE = {
    "of a key that is there twice": ("a: x\nb: x\na: y\n", {"a": "y", "b": "x"}, ["a", 7]),
    "of a key that is a number too": ("'1': x\n1: y\n", {"1": "y"}, ["1", 6]),
    "of a key with values of two kinds": ("a: {b: x}\na: [y]\n", {"a": ["y"]}, ["a", 6]),
    "of a key that is merged too": ("x: &x {a: x}\n<<: *x\na: y\na: z\n", {"a": "z"}, ["a", 8]),
}


@pytest.mark.parametrize(("data", "expected", "warned"), TWICE.values(), ids=TWICE)
def test_the_last_value_counts(data, expected, warned):
    reading = Reading()
    (manifest,) = parse(config_map(data).encode(), "f.yaml", "vnf", reading=reading)
    assert {key: manifest.body["data"][key] for key in expected} == expected
    key, line = warned
    assert [str(finding) for finding in reading.findings] == [
        f'warning: f.yaml:{line}: the key "{key}" is twice in one mapping: the last one counts. '
        "To do: remove one of them"
    ]


def test_what_a_stranger_may_write_twice_is_not_remembered_without_end():
    reading = Reading()
    parse(config_map("a: x\n" * 2_000).encode(), "f.yaml", "vnf", reading=reading)
    assert len(reading.findings) == 1000


JSON = {
    "a pair of surrogates": (r"\ud83d\uDE00", "\U0001f600"),
    "two pairs": (r"\ud83d\ude00\ud83d\ude01", "\U0001f600\U0001f601"),
    "half a pair, which is no character": (r"a\ud83db\ude00", "a\ufffdb\ufffd"),
    "a backslash before what looks like a pair": (r"\\ud83d\\ude00", r"\ud83d\ude00"),
    "a backslash before a pair": (r"\\\ud83d\ude00", "\\\U0001f600"),
    "other escapes": (r"\u00e9\"\\\n\t", '\u00e9"\\\n\t'),
}


@pytest.mark.parametrize(("written", "value"), JSON.values(), ids=JSON)
def test_json_has_characters_beyond_the_first_plane_as_two_escapes(written, value):
    text = (
        '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"},\n"data": {"k": "%s"}}'
    )
    (manifest,) = read(text % written)
    assert manifest.body["data"] == {"k": value}
    assert manifest.source.of(("data", "k")).line == 2


def test_json_values_follow_one_another_without_separators():
    value = '{"apiVersion": "v1", "kind": "ConfigMap",\n"metadata": {"name": "%s"}}'
    objects = read(f"{value % 'a'}{value % 'b'}\n\n {value % 'c'}\n")
    names = [each.source.of(("metadata", "name")).line for each in objects]
    assert [each.key.name for each in objects] == ["a", "b", "c"]
    assert [each.source.line for each in objects] == [1, 2, 5]
    assert names == [2, 3, 6]
    with pytest.raises(PackageError, match=r"^f\.yaml:3: invalid YAML: .*document start"):
        read(f"{value % 'a'}\n{value % 'b'} c\n")


def test_json_values_that_tacker_does_not_read_are_noted_once():
    value = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "%s"}}'
    for separator, number in (("\n---\n", 0), ("\n", 1)):
        reading = Reading()
        text = separator.join(value % name for name in "abc").encode()
        assert len(parse(text, "f.json", "vnf", reading=reading)) == 3
        noted = [each for each in reading.findings if "Tacker does not read" in each.message]
        assert len(noted) == number


def test_yaml_has_no_pairs_of_escapes():
    with pytest.raises(PackageError, match=r"^f\.yaml:5: invalid YAML: .*Unicode"):
        read(config_map(r'a: "\ud83d\ude00"'))


MERGES = {
    "explicit keys win, wherever they stand": (
        "a: &a {x: '1', y2: '2'}\nb: {x: '9', <<: *a}\nc: {<<: *a, x: '9'}\n",
        {"b": {"x": "9", "y2": "2"}, "c": {"x": "9", "y2": "2"}},
    ),
    "of several the first wins": (
        "a: &a {x: '1'}\nb: &b {x: '2', z: '3'}\nc: {<<: [*a, *b]}\n", {"c": {"x": "1", "z": "3"}},
    ),
    "of several in keys of their own the last wins": (
        "a: &a {x: '1', z: '3'}\nb: &b {x: '2'}\nc: {<<: *a, <<: *b}\n",
        {"c": {"x": "2", "z": "3"}},
    ),
    "a quoted << is a key like any other": ("c: {'<<': '1'}\n", {"c": {"<<": "1"}}),
    "an alias is a value of its own": ("a: &a [x]\nb: *a\n", {"a": ["x"], "b": ["x"]}),
    "an anchor may be set anew": ("a: &a '1'\nb: &a '2'\nc: *a\n", {"c": "2"}),
}  # fmt: skip


@pytest.mark.parametrize(("data", "expected"), MERGES.values(), ids=MERGES)
def test_anchors_and_merge_keys(data, expected):
    (manifest,) = read(config_map(data))
    assert {key: manifest.body["data"][key] for key in expected} == expected


def test_a_change_of_one_alias_does_not_show_in_another():
    (manifest,) = read(config_map("a: &a {x: ['1']}\nb: *a\nc: {<<: *a}\n"))
    data = manifest.body["data"]
    data["b"]["x"].append("2")
    data["c"]["x"].append("3")
    assert data["a"] == {"x": ["1"]}
    assert data["b"] == {"x": ["1", "2"]}


def test_every_body_can_be_sent_as_json():
    text = config_map("a: 2026-01-01\nb: 1.5\nc: [~, yes, 0644]\nd: &d {e: 1}\nf: *d\n")
    (manifest,) = read(text)
    assert json.loads(json.dumps(manifest.body, allow_nan=False)) == manifest.body


NO_MANIFEST = "has neither apiVersion nor kind: it is no Kubernetes manifest and is left out"
ANSWERED = "the API server answers a request of this kind and stores nothing: it is left out"
REVIEW = "apiVersion: authorization.k8s.io/v1\nkind: SelfSubjectAccessReview\nspec: {}\n"
LEFT_OUT = {
    "text": ("hello\n", 1, NO_MANIFEST),
    "a number": ("12\n", 1, NO_MANIFEST),
    "a list": ("# c\n- hosts: all\n- kind: b\n", 2, NO_MANIFEST),
    "an event": ("event: {presence: required}\n", 1, NO_MANIFEST),
    "the second document": (CONFIG_MAP + "---\npmMetaData: {}\n", 5, NO_MANIFEST),
    "a review without a name": (REVIEW, 1, ANSWERED),
    "a review with a name": (REVIEW + "metadata: {name: n, namespace: m}\n", 1, ANSWERED),
    "a review of another group": (
        "apiVersion: authentication.k8s.io/v1beta1\nkind: TokenReview\nspec: {token: t}\n",
        1,
        ANSWERED,
    ),
    "a review in a List": (
        "apiVersion: v1\nkind: List\nitems:\n"
        "- {apiVersion: authorization.k8s.io/v1, kind: LocalSubjectAccessReview}\n",
        4,
        ANSWERED,
    ),
    "a tag of its own": ("vars: {a: !vault x}\n", 1, NO_MANIFEST),
    "a list with tags": ("- hosts: all\n  vars: !unsafe {a: b}\n", 1, NO_MANIFEST),
    "keys and values that JSON does not have": ("1.5: .inf\n? [a]\n: b\n", 1, NO_MANIFEST),
    "fields of that name further down": ("a: {kind: !x y, apiVersion: z}\n", 1, NO_MANIFEST),
    "a value of that name": ("a: kind\nb: !x y\n", 1, NO_MANIFEST),
    "the end without a line end": (CONFIG_MAP + "---\nevent: |\n  a", 5, NO_MANIFEST),
}


@pytest.mark.parametrize(("text", "line", "message"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_what_is_no_manifest_is_left_out_with_a_note(text, line, message):
    reading = Reading()
    found = parse(text.encode(), "f.yaml", "vnf", reading=reading)
    assert [str(each.key) for each in found] == ["ConfigMap vnf/c"] * text.count("ConfigMap")
    note = f"note: f.yaml:{line}: {message}. To do: nothing, if that is intended"
    assert list(map(str, reading.findings)) == [note]


def test_what_follows_something_that_is_no_manifest_has_its_line():
    first, second = read(f"{CONFIG_MAP}---\na: !x |\n  b\n  c\n---\n{CONFIG_MAP}")
    assert (first.source.line, second.source.line) == (1, 9)
    assert second.source.of(("metadata", "name")).line == 11


REFUSED = {
    "a tag, and then invalid YAML": ("a: !x y\nb: [\n", "f.yaml:3: invalid YAML"),
    "something else that is no manifest, and then an object that is wrong": (
        "a: !x y\n---\nkind: Pod\n",
        'f.yaml:3: expected an "apiVersion" in the Pod',
    ),
    "a tag in a document that is an object": (
        "a: !x y\nkind: Pod\n",
        "f.yaml:1: a tag that JSON has no value for",
    ),
    "a list of objects": (
        "- {apiVersion: v1, kind: Pod, metadata: {name: p}}\n",
        "f.yaml:1: expected a Kubernetes object, such as a List with these items, found a list of "
        "objects",
    ),
    "no kind": (
        "apiVersion: v1\n",
        'f.yaml:1: expected a Kubernetes object with a "kind", found none',
    ),
    "a kind that is no text": (
        "---\n---\nkind: yes\n",
        'f.yaml:3: expected a Kubernetes object with a "kind", found a boolean',
    ),
    "no apiVersion": (
        "kind: Pod\nmetadata: {name: p}\n",
        'f.yaml:1: expected an "apiVersion" in the Pod, found nothing',
    ),
    "no metadata": (
        "apiVersion: v1\nkind: Pod\n",
        'f.yaml:1: expected "metadata" with a name in the Pod, found nothing',
    ),
    "metadata that is a list": (
        "apiVersion: v1\nkind: Pod\nmetadata: []\n",
        'f.yaml:3: expected "metadata" with a name in the Pod, found a list',
    ),
    "no name": (
        "apiVersion: v1\nkind: Pod\nmetadata: {}\n",
        'f.yaml:3: expected text as "metadata.name" in the Pod, found none',
    ),
    "a generated name": (
        "apiVersion: v1\nkind: Pod\nmetadata: {generateName: p-}\n",
        'f.yaml:3: expected text as "metadata.name" in the Pod, found none '
        "(a generateName names a new object each time: give it a name)",
    ),
    "a name that is a number": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: 12}\n",
        'f.yaml:3: expected text as "metadata.name" in the Pod, found a number: quote it',
    ),
    "a namespace that is a boolean": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: on}\n",
        'f.yaml:3: expected text as "metadata.namespace" in the Pod p, found a boolean: quote it',
    ),
    "an item of a List": (
        "apiVersion: v1\nkind: List\nitems:\n- a\n",
        "f.yaml:1: expected a Kubernetes object, which is a mapping, found text",
    ),
    "an item of a List without a name": (
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {}\n",
        'f.yaml:6: expected text as "metadata.name" in the Pod, found none',
    ),
    "an item of a List without an apiVersion": (
        "apiVersion: v1\nkind: List\nitems:\n- kind: Pod\n  metadata: {name: p}\n",
        'f.yaml:4: expected an "apiVersion" in the Pod, found nothing',
    ),
    "bad syntax": (config_map("a: [\n"), "f.yaml:6: invalid YAML: "),
    "a tab": (config_map("a:\n\t- b\n"), "f.yaml:6: invalid YAML: "),
    "an unknown character escape": (config_map('a: "\\q"\n'), "f.yaml:5: invalid YAML: "),
    "a control character": (
        config_map("a: \x01\n"),
        "f.yaml: invalid YAML: the file must be text in UTF-8",
    ),
    "a key that is a list": (
        config_map("? [a]\n: b\n"),
        "f.yaml:5: a key must be text, found a list: quote it",
    ),
    "a key that is empty": (
        config_map("~: b\n"),
        "f.yaml:5: a key must be text, found nothing: quote it",
    ),
    "a key that is a fraction": (
        config_map("1.5: b\n"),
        "f.yaml:5: a key must be text, found a number",
    ),
    "an alias of nothing": (
        config_map("a: *b\n"),
        "f.yaml:5: an alias without an anchor before it",
    ),
    "an alias of another document": (
        config_map("a: &b x\n") + "---\n" + config_map("a: *b\n"),
        "f.yaml:11: an alias without an anchor before it",
    ),
    "an anchor in itself": (config_map("a: &b [*b]\n"), "f.yaml:5: an anchor contains itself"),
    "a merge of text": (
        config_map("<<: text\n"),
        "f.yaml:5: << expects a mapping or a list of mappings, found text",
    ),
    "binary": (config_map("a: !!binary aGk=\n"), "f.yaml:5: !!binary cannot be sent as JSON"),
    "a set": (
        config_map("a: !!set {b}\n"),
        "f.yaml:5: a tag that JSON has no value for",
    ),
    "a tag of Python's": (
        config_map("a: !!python/object/apply:os.getpid []\n"),
        "f.yaml:5: a tag that JSON has no value for",
    ),
    "a tag of one's own": (
        config_map("a: !mine b\n"),
        "f.yaml:5: a tag that JSON has no value for",
    ),
    "a tag that lies": (
        config_map("a: !!int b\n"),
        "f.yaml:5: expected a value that fits the tag !!int, found text",
    ),
    "infinity": (
        config_map("a: -.inf\n"),
        "f.yaml:5: JSON has no infinity and no NaN",
    ),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_is_said_with_file_and_line(text, message):
    with pytest.raises(PackageError) as caught:
        read(text)
    assert str(caught.value).startswith(message)


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(
        PackageError, match=r"^f\.yaml: invalid YAML: the file must be text in UTF-8"
    ):
        parse(b"a: \xff\xfe\x80", "f.yaml", "vnf")


def test_the_values_of_a_secret_are_in_no_message():
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  a: hunter2\n"
    endings = [
        "  b: !!int hunter2\n",
        "  - hunter2\n",
        '  c: "hunter2\n',
        "  <<: hunter2\n",
    ]
    for ending in endings:
        with pytest.raises(PackageError) as caught:
            read(secret + ending)
        assert "hunter2" not in str(caught.value), ending
    reading = Reading()
    parse((secret + "  a: hunter2\n").encode(), "f.yaml", "vnf", reading=reading)
    assert "hunter2" not in str(reading.findings)


def laughs(levels: int) -> str:
    """Ten aliases of ten aliases of ...: a few lines that stand for 10 ** levels values."""
    lines = ["l0: &l0 [x]"]
    lines += [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, levels + 1)]
    return config_map("\n".join(lines) + "\n")


OVER_THE_LIMITS = {
    "a billion laughs": (laughs(9), {}, "more than 500000 values in the YAML"),
    "deep lists": (config_map("a: " + "[" * 900), {}, "nested more than 100 levels deep"),
    "aliases that make it deep": (
        config_map("a: &a [[[[[[1]]]]]]\nb: [[[[[*a]]]]]\n"),
        {"yaml_depth": 12},
        "f.yaml:6: mappings and lists nested more than 12 levels deep",
    ),
    "many values": (config_map("a: [1, 2, 3, 4]\n"), {"yaml_values": 12}, "more than 12 values"),
    "many values over all documents": (
        CONFIG_MAP + "---\n" + CONFIG_MAP,
        {"yaml_values": 17},
        "f.yaml:7: more than 17",
    ),
    "aliases of a long text": (
        config_map("a: &a " + "x" * 1_000_000 + "\n" + "".join(f"b{n}: *a\n" for n in range(99))),
        {},
        "f.yaml:38: more than 33554432 characters in the YAML files of one package, with aliases "
        "expanded (option yaml_characters)",
    ),
    "aliases of a list of texts": (
        config_map("a: &a [" + "x, " * 9 + "x]\nb: [*a, *a]\n"),
        {"yaml_characters": 70},
        "f.yaml:6: more than 70 characters",
    ),
    "a long key": (config_map("k" * 50 + ": v\n"), {"yaml_characters": 80}, "more than 80 char"),
    "a big file": (
        CONFIG_MAP,
        {"def_file_bytes": 20},
        "expected a YAML file of at most 20 bytes (option def_file_bytes), found 51",
    ),
}


@pytest.mark.parametrize(
    ("text", "options", "message"), OVER_THE_LIMITS.values(), ids=OVER_THE_LIMITS
)
def test_what_goes_over_a_limit_is_refused(text, options, message):
    with pytest.raises(PackageError) as caught:
        read(text, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize("opening", ["[", "{a: "])
def test_a_file_that_the_parser_itself_finds_too_deep_is_refused(opening):
    """libyaml 0.2.6 reads at most 1,000 levels, earlier versions any number."""
    with pytest.raises(PackageError) as caught:
        read(config_map("a: " + opening * 9_000), yaml_depth=5_000)
    assert re.search(r"more than 5000 levels|exceeded maximum nesting depth", str(caught.value))


def test_what_stays_within_the_limits_is_read():
    text = CONFIG_MAP + "---\n" + CONFIG_MAP
    limits = {"yaml_values": 18, "yaml_characters": 80, "yaml_depth": 2, "def_file_bytes": 106}
    assert len(read(text, **limits)) == 2


def test_what_only_a_server_or_this_program_writes_is_no_part_of_a_manifest() -> None:
    (manifest,) = read(
        """
        apiVersion: apps/v1
        kind: Deployment
        metadata:
          name: web
          uid: 7c1e
          resourceVersion: "12"
          managedFields: [{manager: kubectl}]
          creationTimestamp: null
          labels: {tacker_vnf_instance_id: other, app: web}
          annotations: {container-update/manifest-digest: abc, container-update/order: "1"}
        spec: {template: {metadata: {labels: {tacker_vnf_instance_id: other}}}}
        status: {replicas: 1}
        """
    )
    assert manifest.body == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "labels": {"app": "web"},
            "annotations": {"container-update/order": "1"},
        },
        "spec": {"template": {"metadata": {"labels": {"tacker_vnf_instance_id": "other"}}}},
    }
