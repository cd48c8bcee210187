# SPDX-License-Identifier: Apache-2.0
"""What may be given as a package: folders of any layout, one file, standard input, or nothing."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from container_update import PackageError
from tests.functional.cnf import Cnf
from tests.functional.manifests import ENV, config_map, workload
from tests.internals.core import main

FILES = {"cm": config_map(setting="a"), "w": workload("Deployment", container=ENV)}
OLD = "---\n".join(FILES.values())
NEW = "---\n".join([config_map(setting="b"), FILES["w"]])
EVENTS = "event: {presence: required}\n"
CHANGE = ("--upgrade-type", "RollingUpdate")


@dataclass
class Shell:
    """Types commands, with what comes on standard input."""

    cnf: Cnf
    kubeconfig: str
    monkeypatch: pytest.MonkeyPatch

    def run(self, command: str, *words: str, stdin: str = "") -> tuple[int, str]:
        self.monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        where = ("-n", self.cnf.namespace, "--kubeconfig", self.kubeconfig)
        out = io.StringIO()
        more = () if command == "csar" else where
        return main([command, *words, *more], out), out.getvalue()

    def data(self) -> Mapping[str, str]:
        data: Mapping[str, str] = self.cnf.get("ConfigMap", "cm")["data"]
        return data


@pytest.fixture
def shell(cnf: Cnf, admin_kubeconfig: str, monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(cnf, admin_kubeconfig, monkeypatch)


def written(root: Path, files: Mapping[str, str]) -> str:
    root.mkdir()
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return str(root)


def zipped(path: Path, files: Mapping[str, str]) -> str:
    with zipfile.ZipFile(path, "w") as packed:
        for name, text in files.items():
            packed.writestr(name, text)
    return str(path)


FORMS = {
    "one file": {"web.yaml": NEW},
    "a flat folder": {
        "d/cm.yaml": config_map(setting="b"),
        "d/w.yml": FILES["w"],
    },
    "folders in a folder": {"d/cm/cm.yaml": NEW, "d/events.yaml": EVENTS, "d/README.md": "# a\n"},
    "below Files": {"d/Files/kubernetes/web.yaml": NEW, "d/other.yaml": "kind: [\n"},
}


@pytest.mark.parametrize("files", FORMS.values(), ids=FORMS)
def test_manifests_of_any_layout_are_a_package_for_each_verb(
    files: Mapping[str, str], shell: Shell, tmp_path: Path
) -> None:
    root = Path(written(tmp_path / "new", files))
    new, old = str(root / next(iter(files)).split("/")[0]), str(tmp_path / "old.yaml")
    Path(old).write_text(OLD)
    assert shell.run("install", old)[0] == 0
    status, plan = shell.run("plan", old, new, "-o", "json")
    assert status == 3
    identities = [package["source"] for package in json.loads(plan)["packages"]]
    assert identities == [old, new]
    assert shell.run("apply", old, new)[0] == 0
    assert shell.data() == {"setting": "b"}
    assert shell.run("apply", old, new)[0] == 2
    assert shell.run("change", new, old, *CHANGE)[0] == 0
    assert shell.data() == {"setting": "a"}
    assert shell.run("uninstall", old)[0] == 0


def test_standard_input_is_a_package_for_each_verb(shell: Shell, tmp_path: Path) -> None:
    old = str(tmp_path / "old.yaml")
    Path(old).write_text(OLD)
    assert shell.run("install", "-", stdin=OLD)[0] == 0
    assert shell.run("plan", old, "-", stdin=NEW)[0] == 3
    assert shell.run("doctor", old, "-", stdin=NEW)[0] == 0
    status, text = shell.run("apply", old, "-", stdin=NEW)
    assert (status, shell.data()) == (0, {"setting": "b"})
    assert "old.yaml (sha256" in text
    assert shell.run("change", "-", old, *CHANGE, stdin=NEW)[0] == 0
    assert shell.data() == {"setting": "a"}
    assert shell.run("plan", "-", "-", stdin=OLD)[0] == 2
    assert shell.run("uninstall", "-", stdin=OLD)[0] == 0


def test_a_plan_of_standard_input_cannot_be_saved(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "plan.json"
    assert shell.run("plan", "-", "-", "--out", str(saved), stdin=OLD)[0] == 64
    assert "a saved plan: expected packages that can be read again later" in capsys.readouterr().err
    assert not saved.exists()


def test_what_is_wrong_on_standard_input_has_its_line(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.run("install", "-", stdin="# c\n" + OLD + "---\nkind: Pod\n")[0] == 4
    assert "stdin.yaml:" in capsys.readouterr().err
    status, text = shell.run("csar", "check", "-", stdin=OLD + "---\n" + EVENTS)
    assert status == 0
    assert "stdin.yaml:27: has neither apiVersion nor kind" in text


@pytest.mark.parametrize("form", ["one file", "a flat folder", "below Files"])
def test_mere_manifests_are_checked_without_what_only_a_csar_has(
    form: str, shell: Shell, tmp_path: Path
) -> None:
    root = Path(written(tmp_path / "new", FORMS[form]))
    status, text = shell.run("csar", "check", str(root / next(iter(FORMS[form])).split("/")[0]))
    assert status == 0
    assert "note: TOSCA-Metadata/TOSCA.meta: missing: these are manifests without a package" in text


def test_a_key_that_is_there_twice_is_logged_once(
    cnf: Cnf, caplog: pytest.LogCaptureFixture
) -> None:
    cnf.instantiate(**FILES)
    plan = cnf.plan({"cm": FILES["cm"] + "  setting: c\n", "moved": FILES["w"]})
    assert f"ConfigMap {cnf.namespace}/cm" in [str(step.key) for step in plan.steps]
    (record,) = (record for record in caplog.records if "is twice" in record.getMessage())
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("Files/cm.yaml:6 in ")


# --- nothing --------------------------------------------------------------------------------------

META = "TOSCA-Metadata/TOSCA.meta"
LISTED = "TOSCA-Meta-File-Version: 1.0\n\nName: Files/image.bin\n"
PACKAGE = {META: LISTED, "Files/image.bin": "x"}
NOTHING: dict[str, tuple[Mapping[str, str], str]] = {
    "an empty folder": ({}, "expected manifests in its YAML files, found no files at all"),
    "other files": ({"a.txt": "", "b.md": ""}, "found a.txt and 1 other file, no manifest"),
    "a descriptor": ({"Definitions/upf.yaml": EVENTS}, "upf.yaml, no manifest"),
    "YAML that is no manifest": (
        {"a.yaml": EVENTS, "b.yaml": "- 1\n", "c/d.json": "{}"},
        "found a.yaml and 2 other files with neither apiVersion nor kind",
    ),
    "manifests beside Files": (
        {"Files/image.bin": "", "kubernetes/a.yaml": OLD, "kubernetes/b.yml": OLD},
        "expected manifests below Files/, found kubernetes/a.yaml and 1 other YAML file, not "
        f"there: put them below Files/, or list them in {META}",
    ),
    "manifests that are not listed": (
        {**PACKAGE, "Files/kubernetes/a.yaml": OLD, "Definitions/x.yaml": EVENTS},
        "expected manifests among the files that its metadata lists, found "
        "Files/kubernetes/a.yaml, not among those listed",
    ),
    "a package in a folder": ({"web/Files/a.yaml": OLD, "web/x": ""}, "in its folder web: "),
    "a package with metadata in folders": (
        {f"a/web/{name}": text for name, text in {**PACKAGE, "Files/a.yaml": OLD}.items()},
        "found a package in its folder a/web: ",
    ),
    "a package in a folder, zipped on a Mac": (
        {"web/Files/a.yaml": OLD, "__MACOSX/web/Files/._a.yaml": "x"},
        "found a package in its folder web: ",
    ),
    "two packages": (
        {"v1/Files/a.yaml": OLD, "v2/Files/a.yaml": OLD},
        "found packages in v1/ and 1 other folder: name one of them",
    ),
    "a chart": (
        {"Files/web/Chart.yaml": "name: w\n", "Files/web/templates/a.yaml": "{{ a }}"},
        "found the Helm chart Files/web: render it: helm template NAME Files/web > web.yaml",
    ),
    "virtual machines": (
        {**PACKAGE, "BaseHOT/simple/top.yaml": "heat_template_version: 1\n"},
        "found HEAT templates in BaseHOT/: name the stack: heat change --stack NAME",
    ),
}


def verbs(package: str, good: str) -> Sequence[Sequence[str]]:
    return [
        ("install", package),
        ("uninstall", package),
        ("plan", package, good),
        ("plan", good, package),
        ("apply", package, good),
        ("apply", good, package),
        ("change", package, good, *CHANGE),
        ("change", good, package, *CHANGE),
    ]


def test_a_package_without_manifests_is_an_error_of_each_verb_that_says_what_is_there(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.cnf.instantiate(**FILES)
    wrong = []
    for number, (name, (files, message)) in enumerate(NOTHING.items()):
        package = (written, zipped)[number % 2](tmp_path / f"package{number}", files)
        for verb in verbs(package, shell.cnf.old):
            status, told = shell.run(*verb)[0], capsys.readouterr().err
            if (status, message in told) != (4, True):
                wrong.append((name, verb, status, told))
    assert wrong == []


def test_nothing_on_standard_input_is_an_error(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.run("install", "-", stdin="\n")[0] == 4
    told = "found stdin.yaml, which is empty: look whether what makes it has failed"
    assert told in capsys.readouterr().err


def test_doctor_and_check_find_that_there_are_no_manifests(shell: Shell, tmp_path: Path) -> None:
    shell.cnf.instantiate(**FILES)
    for number, (name, (files, message)) in enumerate(NOTHING.items()):
        package = written(tmp_path / f"package{number}", files)
        status, text = shell.run("doctor", shell.cnf.old, package)
        assert status == 4, name
        assert f"problem  update: {package}: expected manifests" in text, name
        found = (message.partition("found ")[2] or message).partition(":")[0]
        if "BaseHOT" not in message:
            assert found in shell.run("csar", "check", package)[1], name


def test_files_that_a_request_names_have_manifests(cnf: Cnf) -> None:
    cnf.instantiate(**FILES)
    files = {**FILES, "events": EVENTS}
    message = r"expected manifests in Files/events\.yaml, found none"
    for named in ({"config_paths": ("Files/events.yaml",)}, {"def_files": ("Files/events.yaml",)}):
        cnf.old = cnf.package({f"{name}.yaml": text for name, text in files.items()})
        with pytest.raises(PackageError, match=message):
            cnf.plan(files, **named)


def test_a_kustomization_of_a_folder_inside_is_left_out(
    shell: Shell, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
    files = {
        "base/cm.yaml": FILES["cm"],
        "base/kustomization.yaml": f"{head}resources: [cm.yaml]\n",
    }
    folder = written(tmp_path / "manifests", files)
    assert shell.run("install", folder, "-y")[0] == 0
    assert shell.data() == {"setting": "a"}
    assert "base/kustomization.yaml:1" in caplog.text
    assert "it is left out" in caplog.text
    assert (
        "warning: base/kustomization.yaml:1: is for kustomize"
        in shell.run("csar", "check", folder)[1]
    )
