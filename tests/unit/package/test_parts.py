# SPDX-License-Identifier: Apache-2.0
"""A def-file is read in parts: the same objects, lines and errors, and each part parsed once."""

from __future__ import annotations

import gc
import itertools
from pathlib import Path

import pytest
import yaml

from container_update.model.errors import PackageError
from container_update.model.options import Options
from container_update.package import csar, manifests, yaml11
from container_update.package.manifests import ReadDocuments, parts
from container_update.package.tools.check import Subject

ONE = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {}\ndata:\n  k: |\n    --- is text\n"
GOOD = [
    ONE.format("a"),
    ONE.format("b").replace("\n", "\r\n"),
    "# a comment\n",
    "",
    "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n...\n# an end\n",
    "kind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: p}}\n",
    "apiVersion: v1\rkind: Secret\rmetadata: {name: r}\r",
    "apiVersion: v1\nkind: Secret\nmetadata: {name: n, labels: {a: 'x\u2028 y\u0085 z'}}\n",
    "apiVersion: v1\nkind: Secret\nmetadata: {name: m, labels: &l {b: c}, annotations: *l}\n",
]
WRONG = [
    "a: 'quoted\n", "a: [1,\n", "a: {b:\n", 'a: "\n', "a: *b\n", "- a\nb: c\n", "a:\n\tb: c\n",
    "kind: 7\n", "a: &a [*a]\n", "a: \ud7ff\n? [b]\n: c\n", "@\n", "a: !x y\n",
    "%YAML 1.1\n", "%TAG ! x\n---\na: b\n", "apiVersion: v1\nkind: Pod\nmetadata: {name: 7}\n",
    "kind: ConfigMap\napiVersion: v1\nmetadata: {name: c}\ndata:\n  k/: v\n", "... x\n",
]  # fmt: skip
MARKERS = ["---\n", "--- # a comment\n", "---\r\n", "--- \n"]


def outcome(text: bytes, known: ReadDocuments | None = None):
    try:
        found = manifests.parse(text, "f.yaml", "ns", known=known)
        return [
            (
                each.key,
                each.body,
                each.otherwise,
                each.source,
                each.source.of(("metadata", "labels", "a")).line,
                each.source.of(("data", "k")).line,
            )
            for each in found
        ]
    except PackageError as error:
        return str(error)


def undivided(text: bytes, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr(manifests, "parts", lambda text: [(text, False)])
        return outcome(text)


def files() -> list[bytes]:
    """Every two documents after one another, between all markers, with and without a last line
    end."""
    texts = []
    for number, (first, second) in enumerate(itertools.product(GOOD + WRONG, repeat=2)):
        marker, last = MARKERS[number % 4], ONE.format("last")
        whole = marker.join((ONE.format("first"), first, second, last))
        texts += [whole.encode(), whole.rstrip("\r\n").encode(), (marker + whole).encode()]
    return texts


ALL = pytest.mark.thorough


@pytest.mark.parametrize(
    ("loader", "every"),
    [
        ("CSafeLoader", 11),
        ("SafeLoader", 101),
        pytest.param("CSafeLoader", 1, marks=ALL),
        pytest.param("SafeLoader", 7, marks=ALL),
    ],
)
def test_a_file_in_parts_is_what_it_is_as_a_whole(loader, every, monkeypatch):
    monkeypatch.setattr(yaml11, "LOADER", getattr(yaml, loader))
    texts = files()[::every]
    assert len(texts) > 20
    known = ReadDocuments()
    for text in texts:
        expected = undivided(text, monkeypatch)
        assert outcome(text) == expected, text
        assert outcome(text, known) == expected, text
        assert outcome(text, known) == expected, text


def test_a_control_character_is_refused_where_it_is_not_in_the_first_part_too():
    text = (ONE.format("a") + "---\na: \x01\n---\n" + ONE.format("b")).encode()
    assert "without control characters" in outcome(text)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The texts that are parsed from now on."""
    parsed: list[bytes] = []
    parse = yaml.parse

    def counting(text: bytes, **more: object):
        parsed.append(text)
        return parse(text, **more)

    monkeypatch.setattr(yaml, "parse", counting)
    return parsed


def file_of(names: range, changed: int = -1) -> bytes:
    documents = (ONE.format(f"n{name}") for name in names)
    texts = [text + "  changed: x\n" * (number == changed) for number, text in enumerate(documents)]
    return "---\n".join(texts).encode()


def test_only_what_changed_is_parsed_of_the_second_package(monkeypatch):
    known = ReadDocuments()
    old = outcome(file_of(range(100)), known)
    parsed = counted(monkeypatch)
    new = outcome(b"---\n" + file_of(range(100), changed=50), known)
    # of the first one, which begins with a marker now, and of the one that changed
    assert len(parsed) == 2 * 2, "once for the objects, once for the lines that are asked for"
    assert [each[0] for each in new] == [each[0] for each in old]
    assert sum(a[1] is b[1] for a, b in zip(old, new, strict=True)) == 98


def test_what_is_known_counts_against_the_limits_at_the_same_place():
    text, known = file_of(range(3)), ReadDocuments()
    outcome(text, known)
    limits = Options(yaml_values=20)
    messages = set()
    for each in (None, known):
        with pytest.raises(PackageError) as caught:
            manifests.parse(text, "f.yaml", "ns", options=limits, known=each)
        messages.add(str(caught.value))
    assert messages == {
        "f.yaml:12: more than 20 values in the YAML files of one package, with aliases expanded "
        "(option yaml_values)"
    }


def test_parts_end_where_documents_begin():
    text = b"# x\n---\na: 1\n--- b\n---c: d\n---\n%TAG x\n---\ne\n"
    assert [part for part, _ in parts(text)] == [
        b"# x\n",
        b"---\na: 1\n",
        b"--- b\n---c: d\n",
        b"---\n%TAG x\n---\ne\n",
    ]


# --- what is kept ---------------------------------------------------------------------------------

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: things.example.com, annotations: {{a: {version}}}}}
spec: {{text: {text}}}
"""


def package(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = folder / "Files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(folder)


def test_a_check_keeps_no_object_that_runs_no_containers(tmp_path):
    crds = (CRD.format(version="one", text="x").replace("things", f"t{n}") for n in range(50))
    files = {"a.yaml": "---\n".join(crds), "b.yaml": ONE.format("c")}
    with csar.open_package(package(tmp_path / "old", files)) as opened:
        found = Subject(opened).manifests
    gc.collect()
    bodies = [each for each in gc.get_objects() if type(each) is dict and "metadata" in each]
    assert len(found) == 51
    assert [each for each in bodies if each.get("spec") == {"text": "x"}] == []
    assert found[-1].source.of(("immutable",)).line == 1
