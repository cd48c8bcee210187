# SPDX-License-Identifier: Apache-2.0
"""What the check of a package finds: one case for each way in which a package goes wrong."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from container_update.model.errors import PackageError
from container_update.package.findings import Finding, Severity
from container_update.package.tools import samples
from container_update.package.tools.build import build, driver_file, write_metadata
from container_update.package.tools.check import check

SAMPLE = samples.root() / "01-user-guide" / "v1" / "before"
FLAVOUR = "Definitions/df_simple.yaml"
DEPLOYMENT = "Files/kubernetes/deployment.yaml"
DRIVER = "Scripts/container_update_mgmt.py"
INTERFACES = """\
      interfaces:
        Vnflcm:
          modify_information_end:
            implementation: mgmt-container-update
      artifacts:
        mgmt-container-update:
          type: tosca.artifacts.Implementation.Python
          file: Scripts/container_update_mgmt.py
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The guide's package, with the v1 driver: nothing to complain of."""
    folder = tmp_path / "package"
    shutil.copytree(SAMPLE, folder)
    after_properties = "        flavour_description: One Pod of each workload\n"
    replace(FLAVOUR, after_properties, after_properties + INTERFACES)(folder)
    requirements = "      flavour_id: simple\n    requirements: {virtual_link: []}\n"
    replace(FLAVOUR, "      flavour_id: simple\n", requirements)(folder)
    (folder / "Scripts").mkdir()
    shutil.copy(driver_file("v1"), folder / DRIVER)
    write_metadata(folder)
    return folder


Change = Callable[[Path], None]


def replace(path: str, old: str, new: str) -> Change:
    """Change a text that is there."""

    def change(folder: Path) -> None:
        text = (folder / path).read_text()
        assert old in text, f"{path} has no {old!r}"
        (folder / path).write_text(text.replace(old, new, 1))

    return change


def write(path: str, text: str) -> Change:
    """Add a file."""
    return lambda folder: (folder / path).write_text(text) and None


def append(path: str, text: str) -> Change:
    """Add to the end of a file."""
    return lambda folder: (folder / path).open("a").write(text) and None


def both(first: Change, second: Change) -> Change:
    """One change after the other."""

    def change(folder: Path) -> None:
        first(folder)
        second(folder)

    return change


def remove(path: str) -> Change:
    """Remove a file."""
    return lambda folder: (folder / path).unlink()


def serious(folder: Path) -> list[Finding]:
    return [finding for finding in check(str(folder)) if finding.severity is not Severity.NOTE]


def test_a_good_package_gives_no_more_than_notes(package: Path) -> None:
    assert serious(package) == []


def test_a_zip_is_checked_like_its_folder(package: Path, tmp_path: Path) -> None:
    packed = build(package, tmp_path / "package.zip")
    assert check(str(packed)) == check(str(package))


@pytest.mark.parametrize("name", ["no-such-package", "text.zip"])
def test_what_is_no_package_is_an_error_of_its_own(name: str, tmp_path: Path) -> None:
    (tmp_path / "text.zip").write_text("no zip")
    with pytest.raises(PackageError, match=name):
        check(str(tmp_path / name))


POLICY_TYPE = """
policy_types:
  tosca.policies.nfv.InstantiationLevels:
    derived_from: tosca.policies.Root
    properties:
      levels: {type: map, entry_schema: {type: map}}

node_types:"""
LEVELS = """
  policies:
  - levels:
      type: tosca.policies.nfv.InstantiationLevels
      properties: {levels: {one: {description: one of each}}}
"""
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
REVIEW = "apiVersion: authorization.k8s.io/v1\nkind: SelfSubjectAccessReview\nspec: {}\n"
JOB = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec: {}\n"
TWIN = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: deployment1}\nspec: {}\n"

# a change to the good package; whether its metadata is written anew; what the check says then
CASES: dict[str, tuple[Change, bool, str]] = {
    "a file changed after the package was built": (
        replace(DEPLOYMENT, "nginx", "apache"),
        False,
        f"error: {DEPLOYMENT}: {DEPLOYMENT} in .*: expected the sha256 hash",
    ),
    "a listed file that is missing": (
        remove(DEPLOYMENT),
        False,
        f"error: {DEPLOYMENT}: .*{DEPLOYMENT}",
    ),
    "a def-file that is not listed": (
        write("Files/kubernetes/service.yaml", SERVICE),
        False,
        "error: Files/kubernetes/service.yaml: is not listed in the metadata",
    ),
    "a def-file that is not listed and cannot be read": (
        write("Files/kubernetes/broken.yaml", "kind: Pod\nmetadata: {name\n"),
        False,
        "error: Files/kubernetes/broken.yaml: is not listed in the metadata",
    ),
    "YAML that is no manifest": (
        write("Files/events.yaml", "# VES\nevent: {presence: required}\n"),
        True,
        "note: Files/events.yaml:2: has neither apiVersion nor kind",
    ),
    "a review": (
        write("Files/review.yaml", REVIEW),
        True,
        "note: Files/review.yaml:1: the API server answers a request of this kind",
    ),
    "a manifest that is no YAML": (
        write("Files/kubernetes/broken.yaml", "kind: Pod\nmetadata: {name\n"),
        True,
        r"error: Files/kubernetes/broken.yaml:\d+: ",
    ),
    "a key twice in one mapping": (
        append(DEPLOYMENT, "  strategy: {}\n  strategy: {}\n"),
        True,
        rf'warning: {DEPLOYMENT}:\d+: the key "strategy" is twice in one mapping: the last one',
    ),
    "metadata with keys in another case": (
        replace("TOSCA-Metadata/TOSCA.meta", "Content-Type: a", "Content-type: a"),
        False,
        r'note: TOSCA-Metadata/TOSCA.meta:\d+: the key "Content-type" is read as "Content-Type"',
    ),
    "no metadata": (
        remove("TOSCA-Metadata/TOSCA.meta"),
        False,
        "error: TOSCA-Metadata/TOSCA.meta: missing: Tacker's v2 API refuses the package",
    ),
    "a VNFD elsewhere than in Definitions": (
        replace(
            "TOSCA-Metadata/TOSCA.meta", "Entry-Definitions: Definitions/", "Entry-Definitions: "
        ),
        False,
        "error: top.vnfd.yaml: is not in Definitions/",
    ),
    "no VNFD": (
        remove("Definitions/top.vnfd.yaml"),
        True,
        "error: TOSCA-Metadata/TOSCA.meta: does not name Entry-Definitions",
    ),
    "a VNFD whose import is missing": (
        remove("Definitions/types.yaml"),
        True,
        r"error: Definitions/top.vnfd.yaml:6: .* names Definitions/types.yaml",
    ),
    "a VDU without a workload": (
        replace(FLAVOUR, "name: deployment1", "name: deployment9"),
        True,
        f"error: {FLAVOUR}:43: VDU1 has the name deployment9, but no manifest has a workload",
    ),
    "a workload without a VDU": (
        write("Files/kubernetes/job.yaml", JOB),
        True,
        "warning: Files/kubernetes/job.yaml:3: Job default/once belongs to no VDU",
    ),
    "a VDU whose name two workloads have": (
        write("Files/kubernetes/twin.yaml", TWIN),
        True,
        f"warning: {FLAVOUR}:43: VDU1 has the name deployment1, which is the name of Deployment .*"
        " and DaemonSet",
    ),
    "nothing mapped to the operation": (
        replace(FLAVOUR, "modify_information_end:", "modify_information_start:"),
        True,
        f"warning: {FLAVOUR}:32: Vnflcm has no script for modify_information_end",
    ),
    "an implementation that is not an artifact": (
        replace(FLAVOUR, "        mgmt-container-update:\n", "        other:\n"),
        True,
        f"error: {FLAVOUR}:34: modify_information_end is implemented by mgmt-container-update,"
        " which is not an artifact",
    ),
    "another driver": (
        both(
            replace(FLAVOUR, "implementation: mgmt-container-update", "implementation: mgmt-other"),
            replace(FLAVOUR, "        mgmt-container-update:\n", "        mgmt-other:\n"),
        ),
        True,
        f"warning: {FLAVOUR}:34: modify_information_end is implemented by mgmt-other, which is not",
    ),
    "an artifact whose file is missing": (
        remove(DRIVER),
        True,
        f"error: {FLAVOUR}:38: the artifact mgmt-container-update names {DRIVER}, but there is no",
    ),
    "another driver file than the installed one": (
        replace(DRIVER, "Moves", "Moved"),
        True,
        f"error: {DRIVER}: differs from the installed driver: .*MgmtDriverHashMatchFailure",
    ),
    "substitution mappings without requirements": (
        replace(FLAVOUR, "    requirements: {virtual_link: []}\n", ""),
        True,
        f"error: {FLAVOUR}:20: substitution_mappings has no requirements",
    ),
    "an instantiation level without scale_info": (
        both(
            replace("Definitions/types.yaml", "\nnode_types:", POLICY_TYPE), append(FLAVOUR, LEVELS)
        ),
        True,
        f"error: {FLAVOUR}:91: the instantiation level one has no scale_info",
    ),
    "an object defined twice": (
        write("Files/kubernetes/again.yaml", f"---\n{SERVICE}---\n{SERVICE}"),
        True,
        "warning: Files/kubernetes/again.yaml:6: Service default/web is also defined"
        " at Files/kubernetes/again.yaml:2",
    ),
    "an object that names its namespace": (
        replace("Files/kubernetes/pod_env.yaml", "metadata:\n", "metadata:\n  namespace: cnf\n"),
        True,
        "warning: Files/kubernetes/pod_env.yaml:4: Pod cnf/env-test1 sets metadata.namespace",
    ),
    "objects that name their namespaces": (
        write(
            "Files/own.yaml",
            "---\n".join(SERVICE.replace("web", f"{n}, namespace: a") for n in "bcd"),
        ),
        True,
        "warning: Files/own.yaml:3: Service a/b and 2 more set metadata.namespace: ",
    ),
    "a ConfigMap that no manifest has": (
        replace(DEPLOYMENT, "name: cm-data", "name: cm-other"),
        True,
        f"warning: {DEPLOYMENT}:24: .*uses ConfigMap cm-other, which is in no manifest",
    ),
    "a key that the ConfigMap has not": (
        replace(DEPLOYMENT, "key: cmKey1.txt", "key: cmKey9.txt"),
        True,
        f"error: {DEPLOYMENT}:25: .*uses the key cmKey9.txt, which ConfigMap default/cm-data does"
        " not have",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_each_fault_is_found(case: tuple[Change, bool, str], package: Path) -> None:
    change, rebuild, expected = case
    change(package)
    if rebuild:
        write_metadata(package)
    found = [str(finding) for finding in check(str(package))]
    assert any(re.match(expected, text) for text in found), found


def test_the_config_map_that_every_namespace_has_needs_no_manifest(package: Path) -> None:
    replace(DEPLOYMENT, "name: cm-data", "name: kube-root-ca.crt")(package)
    write_metadata(package)
    assert not [each for each in check(str(package)) if "kube-root-ca.crt" in each.message]


def test_an_optional_reference_needs_no_manifest(package: Path) -> None:
    text = (package / DEPLOYMENT).read_text()
    indent = re.search(r"^( *)(?:- )?.*name: cm-data", text, re.M)
    assert indent is not None
    place = text[: indent.end()].rsplit("\n", 1)[1].index("name: cm-data")
    optional = f"name: nowhere\n{' ' * place}optional: true"
    replace(DEPLOYMENT, "name: cm-data", optional)(package)
    write_metadata(package)
    assert not [each for each in check(str(package)) if "nowhere" in each.message]


def test_images_of_machines_are_not_hashed(package: Path) -> None:
    (package / "Files/images").mkdir()
    write("Files/images/disk.img", "as it was listed")(package)
    write_metadata(package)
    write("Files/images/disk.img", "changed")(package)
    assert serious(package) == []


def test_manifests_without_a_package_are_made_one_by_init(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(SERVICE)
    advice = [each.advice for each in check(str(tmp_path)) if "TOSCA.meta" in each.file]
    assert advice == ["for Tacker: container-update csar init"]
    with pytest.raises(PackageError, match=r"\(csar init\), then build"):
        build(tmp_path, tmp_path.with_suffix(".zip"))


CHART = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "values.yaml": "replicas: 1\n",
    "templates/web.yaml": "kind: {{ .Values.kind }}\n",
    "charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\n",
    "crds/thing.yaml": JOB,
}
NO_MANIFESTS = {
    "a chart": {f"Files/kubernetes/web/{name}": text for name, text in CHART.items()},
    "events": {"Files/Events/ves.yaml": "event: {presence: required}\n"},
}


@pytest.mark.parametrize("files", NO_MANIFESTS.values(), ids=NO_MANIFESTS)
@pytest.mark.parametrize("listed", [True, False], ids=["listed", "not listed"])
def test_files_that_are_no_manifests_are_no_error(
    files: dict[str, str], listed: bool, package: Path
) -> None:
    for path, text in files.items():
        (package / path).parent.mkdir(parents=True, exist_ok=True)
        (package / path).write_text(text)
    if listed:
        write_metadata(package)
    assert serious(package) == []


CONFIG_MAP = "Files/kubernetes/configmap_1.yaml"


def zipped(folder: Path) -> Path:
    """The same files as a zip, with the metadata as it is."""
    return Path(shutil.make_archive(str(folder), "zip", folder))


@pytest.mark.parametrize("form", [Path, zipped], ids=["a folder", "a zip"])
@pytest.mark.parametrize(
    ("path", "old", "line"),
    [(CONFIG_MAP, "\ndata:\n", 5), (DEPLOYMENT, "metadata:\n", 3), (FLAVOUR, "node_type:", 21)],
)
def test_a_broken_file_that_changed_after_the_build_is_told_as_both_and_nothing_follows(
    path: str, old: str, line: int, form: Callable[[Path], Path], package: Path
) -> None:
    replace(path, old, f"{old.rstrip()} [}}\n")(package)
    changed, broken = serious(form(package))
    assert str(changed).startswith(f"error: {path}: {path} in ")
    assert "expected the sha256 hash" in changed.message
    assert (broken.file, broken.line) == (path, line)
    assert broken.message.startswith("invalid YAML: ")


def test_a_file_that_changed_after_the_build_is_checked_as_it_is(package: Path) -> None:
    replace(DEPLOYMENT, "key: cmKey1.txt", "key: cmKey9.txt")(package)
    changed, missing = serious(package)
    assert "expected the sha256 hash" in changed.message
    assert "uses the key cmKey9.txt" in missing.message


V2_SCRIPT = "Scripts/container_update_mgmt_v2.py"


@pytest.fixture
def v2_package(package: Path) -> Path:
    replace(FLAVOUR, f"file: {DRIVER}", f"file: ../{V2_SCRIPT}")(package)
    (package / DRIVER).unlink()
    shutil.copy(driver_file("v2"), package / V2_SCRIPT)
    write_metadata(package)
    return package


def test_a_v2_script_is_found_from_the_folder_of_the_vnfd(v2_package: Path) -> None:
    assert serious(v2_package) == []


def test_a_v2_package_needs_not_what_only_v1_expects(v2_package: Path) -> None:
    replace(FLAVOUR, "    requirements: {virtual_link: []}\n", "")(v2_package)
    write_metadata(v2_package)
    assert serious(v2_package) == []


def test_another_v2_script_than_the_installed_one_is_a_note(v2_package: Path) -> None:
    (v2_package / V2_SCRIPT).write_text("print()\n")
    write_metadata(v2_package)
    (note,) = (found for found in check(str(v2_package)) if found.file == V2_SCRIPT)
    assert note.severity is Severity.NOTE
    assert "differs from the installed script" in note.message


RECOMMENDATIONS = {
    "the pods of Pod default/env-test1 have no label app.kubernetes.io/name": (
        "Files/kubernetes/pod_env.yaml",
        "metadata:\n",
        "metadata:\n  labels: {app.kubernetes.io/name: env}\n",
    ),
}


@pytest.mark.parametrize(("message", "change"), RECOMMENDATIONS.items(), ids=RECOMMENDATIONS.keys())
def test_a_recommendation_is_noted_until_it_is_followed(
    message: str, change: tuple[str, str, str], package: Path
) -> None:
    def noted() -> bool:
        return any(found.message.startswith(message) for found in check(str(package)))

    assert noted()
    replace(*change)(package)
    write_metadata(package)
    assert not noted()


LINES = {
    "a label that the pod template has not": (
        DEPLOYMENT,
        "name: deployment1\n",
        "name: deployment1\n",
        "the pods of Deployment default/deployment1 have no label",
        "labels:",
    ),
    "a ConfigMap that is immutable": (
        CONFIG_MAP,
        "kind: ConfigMap\n",
        "kind: ConfigMap\nimmutable: true\n",
        "ConfigMap default/cm-data is immutable: an update cannot give it other content",
        "immutable: true",
    ),
    "a Secret of a volume that no manifest has": (
        "Files/kubernetes/pod_volume.yaml",
        "secretName: secret-data",
        "secretName: other",
        "volume sec-volume of Pod default/volume-test1 uses Secret other",
        "secretName: other",
    ),
    "a key of a volume that the ConfigMap has not": (
        "Files/kubernetes/pod_volume.yaml",
        "key: cmKey1.txt",
        "key: cmKey9.txt",
        "volume cm-volume of Pod default/volume-test1 uses the key cmKey9.txt",
        "- key: cmKey9.txt",
    ),
}


@pytest.mark.parametrize(("path", "old", "new", "message", "text"), LINES.values(), ids=LINES)
def test_a_finding_is_on_the_line_that_its_author_has_to_change(
    path: str, old: str, new: str, message: str, text: str, package: Path
) -> None:
    replace(path, old, new)(package)
    write_metadata(package)
    (finding,) = (each for each in check(str(package)) if each.message.startswith(message))
    lines = (package / path).read_text().splitlines()
    assert (finding.file, lines[finding.line - 1].strip()) == (path, text)


def test_errors_come_first_and_say_what_to_do(package: Path) -> None:
    remove(DRIVER)(package)
    replace(FLAVOUR, "name: deployment1", "name: deployment9")(package)
    write_metadata(package)
    found = check(str(package))
    severities = [finding.severity.value for finding in found]
    assert severities == sorted(severities)
    assert len(set(severities)) == 3
    assert all(finding.advice for finding in found)


STACK = SAMPLE.parents[2] / "06-openstack-blue-green" / "before"


@pytest.fixture
def virtual_machines(tmp_path: Path) -> Path:
    """A package whose VNF is a Heat stack: nothing to complain of."""
    return Path(shutil.copytree(STACK, tmp_path / "stack"))


def test_templates_of_another_folder_are_no_templates(virtual_machines: Path) -> None:
    shutil.copytree(virtual_machines / "BaseHOT", virtual_machines / "UserData" / "BaseHOT")
    write_metadata(virtual_machines)
    assert check(str(virtual_machines)) == ()


def test_a_package_of_virtual_machines_needs_no_manifests(virtual_machines: Path) -> None:
    assert check(str(virtual_machines)) == ()


TEMPLATES = "BaseHOT/simple"
STACK_FLAWS = {
    "VDU2 has no OS::Nova::Server in the templates of flavour simple": both(
        replace(FLAVOUR, "name: front\n", "name: back\n"), replace(FLAVOUR, "VDU1:", "VDU2:")
    ),
    "the server VDU1_group.*.VDU9 belongs to no VDU": replace(
        f"{TEMPLATES}/nested/front.yaml",
        "resources:\n",
        "resources:\n  VDU9: {type: OS::Nova::Server}\n",
    ),
    "expected a folder BaseHOT/simple/ with the flavour's HEAT templates": (
        lambda folder: (folder / TEMPLATES).rename(folder / "BaseHOT" / "other")
    ),
    "expected heat_template_version and resources": replace(
        f"{TEMPLATES}/top.yaml", "heat_template_version:", "version:"
    ),
    "expected a mapping as resources.VDU9, found nothing": replace(
        f"{TEMPLATES}/top.yaml", "resources:\n", "resources:\n  VDU9:\n"
    ),
    "keyring.bin: expected text in UTF-8": (
        lambda folder: (folder / TEMPLATES / "keyring.bin").write_bytes(b"\xff")
    ),
}


@pytest.mark.parametrize(("message", "flaw"), STACK_FLAWS.items(), ids=STACK_FLAWS.keys())
def test_a_flaw_of_the_templates_is_found(
    message: str, flaw: Change, virtual_machines: Path
) -> None:
    flaw(virtual_machines)
    write_metadata(virtual_machines)
    assert [finding for finding in check(str(virtual_machines)) if message in finding.message]
