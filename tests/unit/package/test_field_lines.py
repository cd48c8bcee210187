# SPDX-License-Identifier: Apache-2.0
"""On which line each field of a YAML file is, as its author sees it in an editor."""

from __future__ import annotations

import pytest

from container_update.model.objects import FieldPath
from container_update.package import manifests
from container_update.package.yaml11 import FieldLines

TEXT = b"""\
# a comment
kind: First
data:
  text: |
    one
    two
  other: &shared
    x: 1
    y: [a,
        b]
list:
- name: a
  value: 1
-
  name: b
flow: {p: 1,
       q: 2}
alias: *shared
merged:
  <<: *shared
  y: own
two:
  <<: [*shared, {z: 1}]
8080: port
"quoted": yes
---
# nothing
---
kind: Third
"""
LINES: dict[tuple[str | int, ...], int] = {
    (): 2,
    ("kind",): 2,
    ("data",): 3,
    ("data", "text"): 4,
    ("data", "other"): 7,
    ("data", "other", "y"): 9,
    ("data", "other", "y", 1): 10,
    ("list", 0): 12,
    ("list", 0, "value"): 13,
    ("list", 1, "name"): 15,
    ("flow", "q"): 17,
    ("alias",): 18,
    ("alias", "x"): 8,
    ("merged", "x"): 8,
    ("merged", "y"): 21,
    ("two", "x"): 8,
    ("two", "z"): 23,
    ("8080",): 24,
    ("quoted",): 25,
    ("data", "absent", "x"): 3,
    ("list", 7, "name"): 11,
    ("absent",): 2,
}


@pytest.mark.parametrize(("path", "line"), LINES.items())
def test_a_field_is_on_the_line_of_its_key_or_else_where_what_is_around_it_is(
    path: FieldPath, line: int
) -> None:
    assert FieldLines(TEXT).line(0, path) == line


def test_each_document_has_its_own_fields_and_an_empty_one_counts() -> None:
    lines = FieldLines(TEXT)
    assert lines.line(2, ("kind",)) == 29
    assert lines.line(0, ("kind",)) == 2


def test_what_comes_after_the_document_may_be_broken() -> None:
    assert FieldLines(b"a: 1\nb: 2\n---\nc: [\n").line(0, ("b",)) == 2


OBJECTS = b"""\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: s}}
- apiVersion: v1
  kind: List
  items:
  - apiVersion: v1
    kind: ConfigMap
    metadata:
      name: c
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: d
"""


def test_an_object_knows_the_lines_of_its_fields_also_in_a_list() -> None:
    found = [
        (manifest.key.name, str(manifest.source), str(manifest.source.of(("metadata", "name"))))
        for manifest in manifests.parse(OBJECTS.replace(b"\n", b"\r\n"), "f.yaml", "ns")
    ]
    assert found == [
        ("s", "f.yaml:4", "f.yaml:4"),
        ("c", "f.yaml:8", "f.yaml:11"),
        ("d", "f.yaml:13", "f.yaml:16"),
    ]
