# SPDX-License-Identifier: Apache-2.0
"""Hundreds of malicious packages, the same ones for the same seed.

Every one of them moves a CNF from :func:`good_package` to something broken, oversized or deceitful,
and every one has to be refused. ``python -m tests.hostile OLD < LIST`` tries them and prints what
became of each: run as a process of its own, bounded in memory and time.
"""

from __future__ import annotations

import copy
import faulthandler
import gc
import io
import json
import os
import random
import resource
import signal
import stat
import struct
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.packages import META, block, flavour, with_vnfd, write_folder

PAIRS = 50
"""How many packages have two wrong fields, drawn at random."""
MEMORY = 1536 * 1024 * 1024
CPU_SECONDS = 60
"""Bound of one try, whatever else the machine does meanwhile."""
READ_SECONDS, READ_MEMORY = 40, 200 * 1000 * 1000
"""What a package may cost that is only read: processor time, and bytes of memory.

The costliest takes 4 to 14 seconds, by the machine; a busy one charges twice as much for it.
"""
SECONDS = 300
"""Bound of one try that waits for something."""
SHORT_SECONDS = 0.2
"""The processor time to parse a VNFD that is known to take more than the default."""

CNF = "Files/cnf.yaml"
HASH = "0" * 64


@dataclass(frozen=True)
class Hostile:
    """A package and a description of its fault."""

    what: str
    source: str


# --- the CNF that is to be updated --------------------------------------------------------------


def container(**more: Any) -> dict[str, Any]:
    return {"name": "main", "image": "app:1", **more}


def cnf() -> list[dict[str, Any]]:
    """Return the CNF's objects."""
    env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "k"}}}]
    pod = {"containers": [container(env=env)], "initContainers": [container(name="init")]}
    pod["volumes"] = [{"name": "v", "configMap": {"name": "cm"}}]
    template = {"metadata": {"labels": {"app": "w"}}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "w"}}, "template": template}

    def manifest_of(version: str, kind: str, **more: Any) -> dict[str, Any]:
        metadata = {"name": kind.lower(), "namespace": "ns", "labels": {"a": "b"}}
        return {"apiVersion": version, "kind": kind, "metadata": metadata, **copy.deepcopy(more)}

    return [
        manifest_of("v1", "ConfigMap", data={"k": "old"}),
        manifest_of("v1", "Secret", data={"k": "b2xk"}, type="Opaque"),
        manifest_of("v1", "Pod", spec=pod),
        manifest_of("apps/v1", "Deployment", spec=spec),
        manifest_of("apps/v1", "StatefulSet", spec=spec),
        manifest_of("batch/v1", "CronJob", spec={"jobTemplate": {"spec": {"template": template}}}),
        manifest_of("example.com/v1", "Thing", spec={"a": [1]}),
    ]


def text_of(objects: list[dict[str, Any]]) -> str:
    return "\n---\n".join(json.dumps(body) for body in objects)


def good_files() -> dict[str, str]:
    return with_vnfd({"df.yaml": flavour("simple", {"VDU1": "pod"})}, {CNF: text_of(cnf())})


def good_package(folder: Path) -> str:
    """Write the valid old package."""
    return write_folder(folder, good_files())


# --- fields that are not what they should be ----------------------------------------------------

NOT_TEXT: tuple[Any, ...] = (7, True, [], ["x"], {}, {"a": {"b": []}}, 1.5)
NOT_A_MAPPING: tuple[Any, ...] = (7, True, "x", [], [{}], 10**30)
NOT_A_LIST: tuple[Any, ...] = (7, True, "x", {"A": "b"}, {})
BAD_NAMES: tuple[Any, ...] = (
    *NOT_TEXT, "", "a/../../secrets/b", "../x", "a\u001b[2Jb", "a\nb", "A b", "ä", "x" * 300,
    "a%2fb", "a?watch=true", "..", "a\0b",
)  # fmt: skip
BAD_LIST_ITEMS: tuple[Any, ...] = (*NOT_A_LIST, [None], ["x"], [7], [[]], [[[{}]]])
BAD_CONTAINERS: tuple[Any, ...] = (
    *BAD_LIST_ITEMS,
    [{}],
    [{"image": "app:1"}],
    [container(name=["main"])],
    [container(name={"a": "b"})],
    [container(image=5)],
    [container(image=["app:1"])],
    [container(image="app:1\u001b]0;owned\u0007")],
    [container(env={"A": "b"})],
    [container(env=["A"])],
    [container(envFrom={"configMapRef": {}})],
    [container(volumeMounts=[7])],
    [container(restartPolicy=[])],
)

Path_ = tuple[str, ...]
_POD: Mapping[Path_, tuple[Any, ...]] = {
    ("spec",): NOT_A_MAPPING,
    ("spec", "containers"): BAD_CONTAINERS,
    ("spec", "initContainers"): BAD_CONTAINERS,
    ("spec", "volumes"): BAD_LIST_ITEMS,
    ("spec", "imagePullSecrets"): BAD_LIST_ITEMS,
    ("metadata",): NOT_A_MAPPING,
}


def _below(*prefix: str) -> dict[Path_, tuple[Any, ...]]:
    return {(*prefix, *path): values for path, values in _POD.items()}


_EVERY: Mapping[Path_, tuple[Any, ...]] = {
    ("apiVersion",): (*NOT_TEXT, "", "v1/../v1", "v1?x", "a/b/c", "\u001b[1m"),
    ("kind",): (*NOT_TEXT, "", "Pod/x", "../x", "Po\td", "\u001b[1m"),
    ("metadata",): NOT_A_MAPPING,
    ("metadata", "name"): BAD_NAMES,
    ("metadata", "namespace"): BAD_NAMES[1:],
    ("metadata", "labels"): NOT_A_MAPPING,
    ("metadata", "labels", "a"): NOT_TEXT,
    ("metadata", "annotations"): NOT_A_MAPPING,
    ("metadata", "annotations", "a\u001b[2J"): ("x",),
}
_CONTENT: Mapping[Path_, tuple[Any, ...]] = {
    ("data",): (*NOT_A_MAPPING, {"a/b": "x"}, {"\u001b[2J": "x"}, {"": "x"}, {"x" * 300: "y"}),
    ("data", "k"): NOT_TEXT,
    ("immutable",): ("true", 1, [], {}),
}
_SPEC = {("spec",): NOT_A_MAPPING, ("spec", "replicas"): ("3", [], {}, 1.5, True)}
FIELDS: Mapping[str, Mapping[Path_, tuple[Any, ...]]] = {
    "ConfigMap": {**_EVERY, **_CONTENT, ("binaryData",): NOT_A_MAPPING,
                  ("binaryData", "b"): (*NOT_TEXT, "%%%", "a")},
    "Secret": {**_EVERY, **_CONTENT, ("data", "k"): (*NOT_TEXT, "not base64!"),
               ("stringData",): NOT_A_MAPPING, ("stringData", "s"): NOT_TEXT,
               ("type",): (7, True, ["x"], {"a": "b"}, "a\u001b[2J")},
    "Pod": {**_EVERY, **_POD},
    "Deployment": {**_EVERY, **_SPEC, ("spec", "template"): NOT_A_MAPPING,
                   **_below("spec", "template")},
    "StatefulSet": {**_EVERY, **_SPEC, **_below("spec", "template")},
    "CronJob": {**_EVERY, ("spec",): NOT_A_MAPPING, ("spec", "jobTemplate"): NOT_A_MAPPING,
                **_below("spec", "jobTemplate", "spec", "template")},
    "Thing": _EVERY,
}  # fmt: skip
"""For each kind the fields that are read, with values that they must not have."""


KINDS = tuple(FIELDS)


def _with(body: Any, path: Path_, value: Any) -> None:
    for name in path[:-1]:
        body = body.setdefault(name, {})
        if not isinstance(body, dict):
            return  # the other wrong field of a pair is above this one
    body[path[-1]] = value


def wrong_fields(rng: random.Random) -> Iterator[tuple[str, dict[str, str]]]:
    """Packages in which one field has a wrong value, and some in which two have."""
    table = [
        (kind, path, value)
        for kind, fields in FIELDS.items()
        for path, values in fields.items()
        for value in values
    ]
    pairs = [tuple(rng.sample(table, 2)) for _ in range(PAIRS)]
    for wrong in [*((entry,) for entry in table), *pairs]:
        objects = cnf()
        for kind, path, value in wrong:
            _with(objects[KINDS.index(kind)], path, value)
        what = [f"{'.'.join(path)} of a {kind} is {value!r}"[:200] for kind, path, value in wrong]
        yield " and ".join(what), {CNF: text_of(objects)}


# --- texts --------------------------------------------------------------------------------------


def _bomb(times: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, times)]
    return "\n".join(lines)


def _merge_bomb(times: int) -> str:
    lines = ["m0: &m0 {k: v}"]
    for number in range(1, times):
        below = f"*m{number - 1}"
        lines.append(f"m{number}: &m{number} {{<<: [{below}, {below}], k{number}: {below}}}")
    return "\n".join(lines)


HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: configmap, namespace: ns}\n"
TEXTS: Mapping[str, str | bytes] = {
    "aliases that grow tenfold, nine times": _bomb(9),
    "aliases that grow tenfold, ninety times": _bomb(90),
    "merge keys that grow": _merge_bomb(40),
    "an anchor within itself": HEAD + "data: &d {k: *d}\n",
    "an alias to nothing": HEAD + "data: *nothing\n",
    "lists 100000 deep": "[" * 100_000,
    "lists 100000 deep, closed": "[" * 100_000 + "]" * 100_000,
    "mappings 100000 deep": "{a: " * 100_000,
    "sequences of sequences": "- " * 50_000 + "x",
    "indented ever deeper": "\n".join(" " * n + "a:" for n in range(2_000)),
    "aliases that deepen": "a0: &a0 [x]\n"
    + "\n".join(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 2_000)),
    "a text of 9 MiB": HEAD + "data: {k: " + "x" * (9 * 1024 * 1024) + "}\n",
    "a million values": "[" + "1," * 1_000_000 + "]",
    "a million documents": "---\n1\n" * 300_000,
    "JSON of two million lists before more of it": '{"a": [' + "[]," * 2_000_000 + "1]}{}",
    "a key of 9 MiB": "x" * (9 * 1024 * 1024) + ": 1\n",
    "a key that is a list": "? [a, b]\n: c\n",
    "a key that is a mapping": "? {a: b}\n: c\n",
    "a key that is null": "~: c\n",
    "a key with an escape sequence": HEAD + 'spec: {"\\e[2J": x}\n',
    "a python object": "!!python/object/apply:os.system ['true']\n",
    "a python name": HEAD + "data: {k: !!python/name:os.system }\n",
    "a python module": "!!python/module:os\n",
    "a tag of its own": HEAD + "data: !evil {k: v}\n",
    "a tag with an escape sequence": HEAD + "data: !e%1b[2J {k: v}\n",
    "a set": "!!set {a, b}\n",
    "an ordered map": "!!omap [a: b]\n",
    "binary": HEAD + "data: {k: !!binary aGk=}\n",
    "a number of a million digits as a value": HEAD + "data: {k: " + "9" * 1_000_000 + "}\nx: [\n",
    "an integer tag on a million digits": HEAD + "data: {k: !!int " + "9" * 1_000_000 + "}\n",
    "a base-60 number": HEAD + "data: {k: !!int 1:1:1}\n",
    "infinity": HEAD + "data: {k: .inf}\n",
    "not a number": HEAD + "data: {k: .nan}\n",
    "a float tag on text": HEAD + "data: {k: !!float x}\n",
    "NUL bytes": HEAD.encode() + b"data: {k: a\0b}\n",
    "nothing but NUL bytes": bytes(1000),
    "invalid UTF-8": HEAD.encode() + b"data: {k: \xff\xfe\xfa}\n",
    "UTF-16 of half a character": b"\xff\xfea",
    "a surrogate": HEAD.encode() + b"data: {k: \xed\xa0\x80}\n",
    "control characters": HEAD + "data: {k: a\x07b}\n",
    "two byte order marks": "\ufeff\ufeff" + HEAD + "data: {k: 1}\n",
    "random bytes": random.Random(1).randbytes(5_000),
    "a tab as indentation": "a:\n\tb: c\n",
    "an open bracket": HEAD + "data: {k: [\n",
    "an open quote": HEAD + 'data: {k: "\n',
    "a bad escape": HEAD + 'data: {k: "\\q"}\n',
    "a bad directive": "%YAML 9.9\n---\na: b\n",
    "a directive twice": "%YAML 1.1\n%YAML 1.1\n---\na: b\n",
    "a scalar": "just text",
    "a number": "5",
    "a list of numbers": "[1, 2, 3]",
    "lists in lists": "apiVersion: v1\nkind: List\nitems: [[[]]]\n",
    "Lists in Lists": "{apiVersion: v1, kind: List, items: [" * 200 + "]}" * 200,
    "an item that is text": "apiVersion: v1\nkind: List\nitems: [x]\n",
    "items that are a mapping": "apiVersion: v1\nkind: List\nitems: {a: b}\n",
    "an object twice": f"{HEAD}---\n{HEAD}",
    "no objects of the CNF at all": "apiVersion: v1\nkind: Thing\nmetadata: {name: x}\n",
    "a page of HTML": "<!DOCTYPE html><html><body>Sign in</body></html>",
    "an executable": b"\x7fELF\x02\x01\x01" + bytes(200),
    "a zip in place of YAML": b"PK\x03\x04" + bytes(100),
}


# --- metadata -----------------------------------------------------------------------------------

_GOOD = text_of(cnf())
METADATA: Mapping[str, str | bytes] = {
    "a wrong hash": f"Name: {CNF}\nAlgorithm: SHA-256\nHash: {HASH}\n",
    "an unknown algorithm": f"Name: {CNF}\nAlgorithm: MD5\nHash: {HASH}\n",
    "an algorithm that is a path": f"Name: {CNF}\nAlgorithm: ../../sha\nHash: {HASH}\n",
    "a hash that is too short": f"Name: {CNF}\nAlgorithm: SHA-256\nHash: 00\n",
    "a hash without an algorithm": f"Name: {CNF}\nHash: {HASH}\n",
    "an algorithm without a hash": f"Name: {CNF}\nAlgorithm: SHA-256\n",
    "a hash of 1 MiB": f"Name: {CNF}\nAlgorithm: SHA-256\nHash: {'0' * 1024 * 1024}\n",
    "a name of 1 MiB": f"Name: {'x/' * 500_000}a.yaml\n",
    "a name that leaves the package": "Name: ../../../etc/hostname.yaml\n",
    "an absolute name": "Name: /etc/hostname.yaml\n",
    "a name with an escape sequence": "Name: a\x1b[2J.yaml\n",
    "a name with NUL": "Name: a\0b.yaml\n",
    "no name": f"Name:\nAlgorithm: SHA-256\nHash: {HASH}\n",
    "a folder as a name": "Name: Files.yaml/..\nName: Files/.yaml\n",
    "a file that is missing": "Name: Files/missing.yaml\n",
    "two hashes for one file": block(CNF, _GOOD) + block(CNF, "another"),
    "200000 blocks": "".join(f"Name: f{n}.yaml\n\n" for n in range(200_000)),
    "a name in a million lines": "Name: x\n"
    + " y\n" * 1_000_000
    + f"\nName: {CNF}\nAlgorithm: SHA-256\nHash: {HASH}\n",
    "a hash in another case that is none": f"name: {CNF}\nalgorithm: sha256\nhash: {HASH}\n",
    "random bytes": random.Random(2).randbytes(10_000) + b"\xff",
    "invalid UTF-8": b"Name: \xff\xfe\n",
    "a file of this host": "Name: file:///etc/hostname.yaml\n",
    "a file of another host": "Name: file://example.com/etc/x.yaml\n",
    "the address of cloud metadata": "Name: http://169.254.169.254/latest/user-data.yaml\n",
    "this host's address": "Name: http://127.0.0.1:1/x.yaml\n",
    "this host's address as a number": "Name: http://2130706433:1/x.yaml\n",
    "this host's address in IPv6": "Name: http://[::1]:1/x.yaml\n",
    "this host's IPv4 address in IPv6": "Name: http://[::ffff:127.0.0.1]:1/x.yaml\n",
    "a private address": "Name: http://10.0.0.1/x.yaml\n",
    "no address": "Name: http://0.0.0.0:1/x.yaml\n",
    "a host name with a user": "Name: http://me:hunter2@example.com/x.yaml\n",
    "another scheme": "Name: gopher://example.com:70/x.yaml\n",
    "a scheme that runs things": "Name: ext::sh://x/x.yaml\n",
    "no host": "Name: http:///x.yaml\n",
    "a port that is none": "Name: http://example.com:99999999/x.yaml\n",
    "a VNFD that is missing": "Entry-Definitions: Definitions/none.yaml\n\n" + block(CNF, _GOOD),
    "a VNFD that leaves the package": "Entry-Definitions: ../../x.yaml\n\n" + block(CNF, _GOOD),
    "an absolute VNFD": "Entry-Definitions: /etc/passwd\n\n" + block(CNF, _GOOD),
    "the def-file as VNFD": f"Entry-Definitions: {CNF}\n\n" + block(CNF, _GOOD),
    "itself as manifest and VNFD": f"Entry-Definitions: {META}\nETSI-Entry-Manifest: {META}\n",
    "a manifest that is missing": "ETSI-Entry-Manifest: none.mf\n",
    "a manifest that leaves the package": "ETSI-Entry-Manifest: ../../../etc/passwd\n",
    "a VNFD from the network": "Entry-Definitions: http://127.0.0.1:1/v.yaml\n\n"
    + block(CNF, _GOOD),
}


# --- the VNFD -----------------------------------------------------------------------------------


def _flavour(old: str = "", new: str = "") -> str:
    return flavour("simple", {"VDU1": "pod"}).replace(old, new, 1)


def _node(types: str, properties: str = "") -> str:
    """Return a flavour with one more node, of the type ``evil.Node`` among these types."""
    text = _flavour("topology_template:", f"{types}topology_template:")
    return f"{text}    Evil:\n      type: evil.Node\n      properties: {{{properties}}}\n"


def pattern(expression: str, value: str) -> str:
    """Return a flavour with a value that has to match a regular expression."""
    constraint = f"{{type: string, constraints: [{{pattern: '{expression}'}}]}}"
    types = "node_types:\n  evil.Node:\n    derived_from: tosca.nodes.Root\n"
    return _node(f"{types}    properties: {{p: {constraint}}}\n", f"p: {value}")


REGULAR_EXPRESSION = pattern("(a+)+$", "a" * 45 + "!")
"""A flavour whose own regular expression takes 2**45 steps, and lets no other thread run."""


def _nested_defaults(depth: int) -> str:
    """Data types of two properties each, whose defaults are of the data type below: the last one is
    validated 2**depth times."""
    types = "".join(
        f"  d{n}:\n    derived_from: tosca.datatypes.Root\n    properties:\n"
        + "".join(f"      {name}: {{type: d{n + 1}, default: {{z: 1}}}}\n" for name in "ab")
        + "      z: {type: integer, required: false}\n"
        for n in range(depth)
    )
    return _node(
        f"data_types:\n{types}  d{depth}:\n    derived_from: tosca.datatypes.Root\n"
        "    properties: {z: {type: integer, required: false}}\n"
        "node_types:\n  evil.Node:\n    derived_from: tosca.nodes.Root\n"
        "    properties: {p: {type: d0, default: {z: 1}}}\n"
    )


def _nodes_times_properties(number: int) -> str:
    properties = "".join(f"      p{n}: {{type: string, default: x}}\n" for n in range(number))
    types = "node_types:\n  evil.Node:\n    derived_from: tosca.nodes.Root\n    properties:\n"
    nodes = "".join(f"    Evil{n}: {{type: evil.Node}}\n" for n in range(number))
    return _node(f"{types}{properties}") + nodes


def _valid_values(number: int) -> str:
    numbers = ", ".join(map(str, range(number)))
    return _node(
        "node_types:\n  evil.Node:\n    derived_from: tosca.nodes.Root\n    properties:\n"
        f"      p: {{type: list, entry_schema: {{type: integer, constraints: [{{valid_values: "
        f"[{numbers}]}}]}}}}\n",
        f"p: [{', '.join([str(number)] * number)}]",
    )


VNFDS: Mapping[str, str] = {
    "nested quantifiers in a regular expression": REGULAR_EXPRESSION,
    "alternatives that overlap in a regular expression": pattern("(a|a)*$", "a" * 45 + "!"),
    "quantifiers one after the other": pattern("a*" * 20 + "$", "a" * 500 + "!"),
    "a regular expression of a million characters": pattern("(a?){1000}" * 100_000, "b"),
    "a regular expression with large counts": pattern("((a{1000}){1000}){1000}", "b"),
    "no regular expression": pattern("((((", "b"),
    "defaults within defaults, 40 deep": _nested_defaults(40),
    "4000 nodes of 4000 properties each": _nodes_times_properties(4_000),
    "40000 values that are compared with 40000 valid ones": _valid_values(40_000),
    "20000 inputs without a value": _flavour(
        "  inputs:\n",
        "  inputs:\n" + "".join(f"    i{n}: {{type: string}}\n" for n in range(20_000)),
    ),
    "an import from the network": _flavour("types.yaml", "http://127.0.0.1:1/t.yaml"),
    "an import of this host": _flavour("types.yaml", "file:///etc/passwd"),
    "an absolute import": _flavour("types.yaml", "/etc/passwd"),
    "an import that leaves the package": _flavour("types.yaml", "../../../../etc/passwd"),
    "an import of a folder": _flavour("types.yaml", "."),
    "an import of nothing": _flavour("types.yaml", "''"),
    "imports that are a mapping": _flavour("- file: types.yaml", "  a: b"),
    "an import that is a list": _flavour("file: types.yaml", "[[types.yaml]]"),
    "a topology that is text": "topology_template: x\nimports: [types.yaml]\nnode_types: 5\n",
    "node templates that are text": _flavour("node_templates:", "node_templates: x\n  other:"),
    "node types that are a list": _flavour(
        "topology_template:", "node_types: [a]\ntopology_template:"
    ),
    "a type that derives from itself": _flavour(
        "topology_template:", "node_types: {test.VNF: {derived_from: test.VNF}}\ntopology_template:"
    ),
    "types that derive from each other": _flavour(
        "topology_template:",
        "node_types: {test.VNF: {derived_from: b}, b: {derived_from: test.VNF}}\n"
        "topology_template:",
    ),
    "a mapping to an unknown type": _flavour("node_type: test.VNF", "node_type: none"),
    "a mapping that is text": _flavour("substitution_mappings:", "substitution_mappings: x\n  y:"),
    "a VDU without a name": _flavour("properties: {name: pod}", "properties: {}"),
    "a VDU whose name is empty": _flavour("{name: pod}", "{name: ''}"),
    "a VDU whose name is a function": _flavour("{name: pod}", "{name: {get_input: none}}"),
    "a function of functions": _flavour(
        "{name: pod}", "{name: " + "{concat: [" * 40 + "x" + "]}" * 40 + "}"
    ),
    "a bomb": _bomb(9),
    "a VDU that is a list": _flavour("type: tosca.nodes.nfv.Vdu.Compute", "[]\n    Other: {"),
    "a requirement on itself": _flavour(
        "properties: {name: pod}", "properties: {name: pod}\n      requirements: [{a: VDU1}]"
    ),
}


# --- zips ---------------------------------------------------------------------------------------


def _zip(
    entries: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED, mode: int = 0
) -> bytearray:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for name, text in entries.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            packed.writestr(info, text, method)
    return bytearray(buffer.getvalue())


def _entry(name: str, mode: int = 0) -> bytearray:
    return _zip({CNF: _GOOD, name: "x"}, mode=mode)


def _patched(content: bytearray, local: int, central: int, value: bytes) -> bytearray:
    """With the same field changed in an entry's own header and in the directory."""
    directory = content.index(b"PK\x01\x02")
    content[local : local + len(value)] = value
    content[directory + central : directory + central + len(value)] = value
    return content


def _overlapping() -> bytearray:
    """Return an archive with many entries that all point at the same compressed bytes."""
    one = _zip({CNF: bytes(1024 * 1024)})
    start = one.index(b"PK\x01\x02")
    end = one.index(b"PK\x05\x06")
    record = one[start:end]
    records = bytearray()
    for number in range(2_000):
        name = f"Files/{number:04}.yml".encode()
        records += record.replace(CNF.encode(), name)
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 2_000, 2_000, len(records), start, 0)
    return one[:start] + records + tail


def _many(number: int) -> bytearray:
    return _zip({f"f/{index}": b"" for index in range(number)}, zipfile.ZIP_STORED)


ZIPS: Mapping[str, Callable[[], bytes | bytearray]] = {
    "a file that grows 1000 times and more": lambda: _zip(
        {CNF: bytes(64 * 1024 * 1024)}, zipfile.ZIP_BZIP2
    ),
    "a def-file of 70 MiB": lambda: _zip({CNF: b"# comment\n" * 7_000_000}),
    "a def-file of 20 MiB": lambda: _zip({CNF: b"# comment\n" * 2_000_000}),
    "a zip in a zip": lambda: _zip({CNF: _zip({CNF: bytes(8 * 1024 * 1024)})}),
    "files that overlap": _overlapping,
    "too many files": lambda: _many(20_001),
    "a path that leaves it": lambda: _entry("../../evil.yaml"),
    "a hidden path that leaves it": lambda: _entry("a/b/../../../evil.yaml"),
    "an absolute path": lambda: _entry("/etc/cron.d/evil"),
    "a path of dots": lambda: _entry("."),
    "a file twice": lambda: _entry("Files/../Files//cnf.yaml"),
    "a link": lambda: _entry("Files/link", stat.S_IFLNK | 0o777),
    "a character device": lambda: _entry("Files/dev", stat.S_IFCHR | 0o666),
    "a block device": lambda: _entry("Files/dev", stat.S_IFBLK | 0o666),
    "a pipe": lambda: _entry("Files/pipe", stat.S_IFIFO | 0o666),
    "a socket": lambda: _entry("Files/sock", stat.S_IFSOCK | 0o666),
    "a wrong checksum": lambda: _patched(_zip({CNF: _GOOD}), 14, 16, b"\1\2\3\4"),
    "an encrypted file": lambda: _patched(_zip({CNF: _GOOD}), 6, 8, b"\1\0"),
    "an unknown compression": lambda: _patched(_zip({CNF: _GOOD}), 8, 10, b"\x63\0"),
    "a size that is a lie": lambda: _patched(_zip({CNF: _GOOD}), 22, 24, b"\1\0\0\0"),
    "a size that is a big lie": lambda: _patched(_zip({CNF: _GOOD}), 22, 24, b"\xf0\xff\xff\x7f"),
    "a compressed size that is a lie": lambda: _patched(_zip({CNF: _GOOD}), 18, 20, b"\5\0\0\0"),
    "another name in the directory": lambda: _zip({"x" * len(CNF): _GOOD}).replace(
        b"x" * len(CNF), CNF.encode(), 1
    ),
    "damaged content": lambda: _patched(_zip({CNF: _GOOD}), 60, 70, b"\xff" * 8),
    "half a file": lambda: _zip({CNF: _GOOD})[:300],
    "a directory that points nowhere": lambda: _zip({CNF: _GOOD})[:-6] + b"\xff\xff\xff\x7f\0\0",
    "nothing": lambda: b"",
    "random bytes": lambda: random.Random(3).randbytes(100_000),
    "a beginning and an end": lambda: b"PK\x03\x04" + bytes(100) + b"PK\x05\x06" + b"\xff" * 18,
    "no def-file": lambda: _zip({"web/Files/other.yaml": _GOOD}),
    "an empty zip": lambda: _zip({}),
}


# --- folders ------------------------------------------------------------------------------------


def _linked(target: str) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        path.unlink()
        path.symlink_to(target)

    return make


def _replaced(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def replace(path: Path) -> None:
        path.unlink()
        make(path)

    return replace


def _folder_link(path: Path) -> None:
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to("/etc")


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)


FOLDERS: Mapping[str, Callable[[Path], object]] = {
    "a link to a file of this host": _linked("/etc/hostname"),
    "a link that leaves the package": _linked("../../../../../../../../etc/hostname"),
    "a link to itself": _linked("cnf.yaml"),
    "a link to a device": _linked("/dev/zero"),
    "a link to nothing": _linked("nowhere"),
    "a folder that is a link": _folder_link,
    "a pipe": _replaced(os.mkfifo),
    "a folder in place of the file": _replaced(Path.mkdir),
    "a file of 100 MiB of nothing": _sparse,
    "no file": Path.unlink,
}


# --- small packages that would take much ---------------------------------------------------------


def _aliases(length: int, times: int, name: str = "configmap") -> str:
    """Return a ConfigMap with aliases of one text."""
    head = HEAD.replace("{name: configmap", f"{{name: {name}")
    return f"{head}data:\n  k: &a {'x' * length}\n" + "".join(
        f"  k{number}: *a\n" for number in range(times)
    )


def _many_files() -> dict[str, str]:
    files = {f"Files/{n}.yaml": _aliases(1000, 1000, f"c{n}") for n in range(50)}
    return {META: "".join(block(path, text) for path, text in files.items()), **files}


def _spelt(times: int, name: str, text: str) -> str:
    return "".join(block("./" * number + name, text) for number in range(times))


EXPENSIVE: Mapping[str, Callable[[], dict[str, str]]] = {
    "aliases of a text of a million letters": lambda: {CNF: _aliases(1_000_000, 2_000)},
    "aliases of a text in each of many files": _many_files,
    "two hashes of a file that is spelt in hundreds of ways": lambda: {
        META: _spelt(400, CNF, _GOOD) + block(f"Files/../{CNF}", "another"),
        CNF: _GOOD,
    },
    "thousands of URLs": lambda: {
        META: "".join(f"Name: http://example.com/{number}.png\n" for number in range(3_000))
        + block(CNF, _GOOD),
        CNF: _GOOD,
    },
    "a hundred thousand imports": lambda: with_vnfd(
        {"df.yaml": _flavour("- file: types.yaml\n", "- types.yaml\n" * 100_000)}, {CNF: _GOOD}
    ),
}
EXPENSIVE_ZIPS: Mapping[str, Callable[[], bytes | bytearray]] = {
    "too many folders": lambda: _zip({f"f{number}/": "" for number in range(20_001)}),
    "a file that is a folder too": lambda: _zip({CNF: _GOOD, f"{CNF}/a": ""}),
    "a name that no file system takes": lambda: _entry("x" * 300),
}


# --- all of them --------------------------------------------------------------------------------


def packages(folder: Path, seed: int) -> list[Hostile]:
    """Write all packages below *folder* and return them."""
    return [
        Hostile(what, make(folder / f"{number:03}"))
        for number, (what, make) in enumerate(_makers(random.Random(seed)))
    ]


Maker = Callable[[Path], str]
Use = Callable[[str, str, Any], None]
"""Uses two packages, the old and the new one, with these options."""


def _makers(rng: random.Random) -> Iterator[tuple[str, Maker]]:
    for what, text in TEXTS.items():
        yield f"text: {what}", _in_folder({CNF: text})
    for what, text in METADATA.items():
        yield f"metadata: {what}", _in_folder({META: text, CNF: _GOOD})
    for what, text in VNFDS.items():
        yield f"VNFD: {what}", _in_folder(with_vnfd({"df.yaml": text}, {CNF: _GOOD}))
    for what, content in ZIPS.items():
        yield f"zip: {what}", _in_zip(content)
    for what, change in FOLDERS.items():
        yield f"folder: {what}", _changed(change)
    for what, files in wrong_fields(rng):
        yield f"field: {what}", _in_folder(files)
    for what, expensive in EXPENSIVE.items():
        yield f"expensive: {what}", _in_folder(expensive())
    for what, content in EXPENSIVE_ZIPS.items():
        yield f"expensive: zip: {what}", _in_zip(content)


def _in_folder(files: Mapping[str, str | bytes]) -> Maker:
    def make(path: Path) -> str:
        for name, text in files.items():
            target = path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)

    return make


def _in_zip(content: Callable[[], bytes | bytearray]) -> Maker:
    def make(path: Path) -> str:
        target = path.with_suffix(".zip")
        target.write_bytes(content())
        return str(target)

    return make


def _changed(change: Callable[[Path], object]) -> Maker:
    def make(path: Path) -> str:
        write_folder(path, {CNF: _GOOD})
        change(path / CNF)
        return str(path)

    return make


# --- trying them --------------------------------------------------------------------------------


def main() -> None:
    """Try the packages named on standard input, one a line; print a JSON line for each try.

    Each package has a process of its own. A line has the processor time of its try, and the most
    memory that the process has held until then.
    """
    from container_update import Options  # noqa: PLC0415

    old = sys.argv[1]
    options = Options()
    for _, use in WAYS:  # imports what each try needs
        _try(use, old, old, options)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    faulthandler.register(signal.SIGPROF, chain=True)
    gc.freeze()  # a fork's collections leave the pages alone that it shares
    for line in sys.stdin:
        source = line.rstrip("\n")
        for answer in _in_fork(old, source, options):
            print(json.dumps(answer), flush=True)


def _in_fork(old: str, source: str, options: Any) -> list[dict[str, Any]]:
    """Try a package in each way, in a process of its own; return what became of it."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        with open(writing, "w", encoding="utf-8") as pipe:
            json.dump(list(_answers(old, source, options)), pipe)
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        text = pipe.read()
    status = os.waitpid(process, 0)[1]
    assert status == 0, f"{source}: ended with {status}"
    return list(json.loads(text))


def _answers(old: str, source: str, options: Any) -> Iterator[dict[str, Any]]:
    for way, use in WAYS:
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        before = _cpu_seconds()
        answer = {"source": source, "way": way, **_try(use, old, source, options)}
        yield {**answer, "seconds": _cpu_seconds() - before, "memory": _peak_bytes()}
        # a reader that had to be ended at its usual limit is ended at a smaller one too
        if answer["error"] == "ReaderEndedError":
            options = replace(options, vnfd_seconds=SHORT_SECONDS)


_USERS = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
"""Of what is measured: this process, and those that it started."""


def _cpu_seconds() -> float:
    usages = map(resource.getrusage, _USERS)
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _peak_bytes() -> int:
    return max(resource.getrusage(kind).ru_maxrss for kind in _USERS) * 1024


def _try(use: Use, old: str, new: str, options: Any) -> dict[str, str]:
    try:
        use(old, new, options)
    except Exception as error:  # noqa: BLE001, the error is the result
        return {"error": type(error).__name__, "message": str(error)}
    return {"error": "", "message": ""}


def _read(_: str, source: str, options: Any) -> None:
    from container_update.package import csar, manifests  # noqa: PLC0415

    with csar.open_package(source, options=options) as package:
        package.verify()
        package.vdus()
        keys = [
            manifest.key
            for path in package.manifest_files()
            for manifest in manifests.parse(package.read(path), path, "ns")
        ]
        if len(set(keys)) < len(cnf()):
            package.read(CNF)


def _update(old: str, new: str, options: Any) -> None:
    from container_update import update  # noqa: PLC0415

    cluster = _cluster()
    try:
        update(_request(old, new), cluster, options)
    finally:
        wrote = [call for call in cluster.calls if not call.startswith(("list", "get"))]
        assert not wrote, f"a hostile package had something written: {wrote}"


def _request(old: str, new: str) -> Any:
    from container_update import UpdateRequest  # noqa: PLC0415
    from container_update.package import csar  # noqa: PLC0415

    with csar.open_package(new) as package:
        listed = tuple(package.manifest_files())
    return UpdateRequest(old, new, config_paths=listed, namespace="ns")


def _cluster() -> Any:
    from tests.unit.fakes import FakeCluster  # noqa: PLC0415

    return FakeCluster(*(body for body in cnf() if body["kind"] != "Thing"))


WAYS: tuple[tuple[str, Use], ...] = (("read", _read), ("update", _update))


if __name__ == "__main__":
    main()
