# SPDX-License-Identifier: Apache-2.0
"""Makes the page of real projects: ``python doc/compatibility.py FOLDER``, at the root.

Two versions of each go through the commands on the embedded cluster. FOLDER keeps the projects'
repositories, which are cloned where they are not there yet; nothing of them becomes part of this
one. ``git`` is needed, and ``kubectl`` for what is made with kustomize.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from container_update.cli.main import main  # noqa: E402
from container_update.cluster.client import connect  # noqa: E402
from container_update.emulator.kubernetes import EmbeddedCluster  # noqa: E402

PAGE = ROOT / "doc/source/developers/compatibility.rst"


@dataclass(frozen=True)
class Project:
    """A project that publishes its manifests."""

    repository: str
    """Owner and name, at GitHub."""
    versions: tuple[str, str]
    """An old and a new tag or commit."""
    path: str
    """Of the file, or of the folder for kustomize."""
    namespace: str = "default"
    """Where it is installed; it has to be there."""

    @property
    def name(self) -> str:
        """The name of the repository."""
        return self.repository.partition("/")[2]


PROJECTS = (
    Project("argoproj/argo-cd", ("v3.4.5", "v3.5.1"), "manifests/install.yaml"),
    Project("argoproj/argo-rollouts", ("v1.8.3", "v1.9.1"), "manifests/install.yaml"),
    Project("projectcalico/calico", ("v3.31.3", "v3.32.1"), "manifests/calico.yaml"),
    Project("flannel-io/flannel", ("v0.27.4", "v0.28.9"), "Documentation/kube-flannel.yml"),
    Project("kubernetes/dashboard", ("v2.6.1", "v2.7.0"), "aio/deploy/recommended.yaml"),
    Project("kubernetes/ingress-nginx", ("controller-v1.14.5", "controller-v1.15.1"),
            "deploy/static/provider/cloud/deploy.yaml"),
    Project("longhorn/longhorn", ("v1.10.1", "v1.11.1"), "deploy/longhorn.yaml"),
    Project("metallb/metallb", ("v0.14.9", "v0.15.3"), "config/manifests/metallb-native.yaml"),
    Project("k8snetworkplumbingwg/multus-cni", ("v4.2.4", "v4.3.0"),
            "deployments/multus-daemonset.yml"),
    Project("niloysh/open5gs-k8s", ("v4.0.0", "v5.0.0"), "open5gs", "open5gs"),
)  # fmt: skip

STEPS = {
    "check": ["csar", "check", "{new}"],
    "install": ["install", "{old}"],
    "plan": ["plan", "{new}"],
    "apply": ["apply", "{new}", "--yes"],
    "undo": ["undo", "--yes"],
    "change": ["change", "{new}", "--upgrade-type", "RollingUpdate", "--yes"],
    "change back": ["change", "{old}", "--upgrade-type", "RollingUpdate", "--yes"],
    "uninstall": ["uninstall", "--yes"],
}
"""Step to its command."""
HOW = dict.fromkeys(("install", "apply", "change", "change back"), ("--timeout", "60s"))
MEANINGS = {0: "done", 2: "nothing to do", 3: "changes"}


def clone_of(project: Project, folder: Path) -> Path:
    """Return the repository of a project, cloned if need be."""
    clone = folder / project.repository.replace("/", "+")
    if not clone.exists():
        address = f"https://github.com/{project.repository}"
        _output("git", "clone", "--bare", address, str(clone))
    return clone


def write_package(project: Project, version: str, clone: Path, target: Path) -> str:
    """Write a package of a version; return its path."""
    files = target / "Files/kubernetes"
    files.mkdir(parents=True)
    tree = _output("git", "-C", str(clone), "archive", version, project.path)
    source = target.with_name(f"{target.name}-source")
    with tarfile.open(fileobj=io.BytesIO(tree)) as archive:
        archive.extractall(source, filter="data")
    found = source / project.path
    is_file = found.is_file()
    text = found.read_bytes() if is_file else _output("kubectl", "kustomize", str(found))
    (files / "all.yaml").write_bytes(text)
    return str(target)


def _output(*command: str) -> bytes:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout  # noqa: S603


def outcomes(project: Project, folder: Path) -> Iterator[tuple[str, int, str]]:
    """Run the steps for a project; yield each with its exit status and its error."""
    clone = clone_of(project, folder)
    with tempfile.TemporaryDirectory() as name, EmbeddedCluster(nodes=2) as cluster:
        work = Path(name)
        old, new = (
            write_package(project, version, clone, work / side)
            for version, side in zip(project.versions, ("old", "new"), strict=True)
        )
        where = ["--kubeconfig", str(cluster.write_kubeconfig(work / "kubeconfig"))]
        where += ["--instance-id", project.name, "--namespace", project.namespace]
        if project.namespace != "default":
            body = {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": project.namespace},
            }
            with connect(where[1]) as admin:
                admin.create(body)
        for step, words in STEPS.items():
            command = [word.format(old=old, new=new) for word in words]
            errors, shown = io.StringIO(), io.StringIO()
            options = [*where, *HOW.get(step, ())] if step != "check" else ()
            with redirect_stderr(errors):
                status = main([*command, *options], shown)
            found = (line for line in shown.getvalue().splitlines() if line.startswith("error:"))
            error = errors.getvalue().strip() or " ".join(found)
            yield step, status, error.replace(name, "")
            if step == "install" and status:
                return


def page(folder: Path) -> str:
    """Return the text of the page."""
    reasons: list[str] = []
    rows = []
    for project in PROJECTS:
        cells = dict.fromkeys(STEPS, "")
        for step, status, error in outcomes(project, folder):
            sys.stderr.write(f"{project.name}: {step}: {status} {error}\n")
            cells[step] = MEANINGS.get(status, "")
            if status not in MEANINGS:
                reasons.append(f"{project.name}, {step}: {error}")
                cells[step] = f"{status} [#n{len(reasons)}]_"
        versions = " to ".join(project.versions)
        rows.append([f"`{project.repository} <https://github.com/{project.repository}>`_",
                     f"{versions}: ``{project.path}``", *cells.values()])  # fmt: skip
    return "\n".join((*_begin(), *_table([["project", "versions", *STEPS], *rows]), *_end(reasons)))


TEXT = """
Manifests that projects of this field publish, and what each command did with them on the embedded
cluster (:doc:`emulator`): the new version is checked (``csar check``), the old one installed, the
update to the new one planned, carried out and undone; then the package is changed to the new
version (``change-vnfpkg``, rolling) and back, and uninstalled. An update changes configuration and
images alone, so it may have nothing to do; a change of the package applies all. A number is the
exit status, with the reason. What a program itself would make, such as a Secret or a certificate,
is not there: no container is run.
These manifests are in no CSAR, and have no VNFD: the check looks at the objects alone.
"""


def _begin() -> Iterator[str]:
    title = "Real projects"
    yield from ("=" * len(title), title, "=" * len(title), "")
    yield ".. Made by ``python doc/compatibility.py FOLDER``: change that, not this."
    yield TEXT


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield from (".. list-table::", "   :header-rows: 1", "   :stub-columns: 1", "")
    for row in rows:
        yield from (f"   {'* -' if not number else '  -'} {cell}".rstrip()
                    for number, cell in enumerate(row))  # fmt: skip
    yield ""


def _end(reasons: Sequence[str]) -> Iterator[str]:
    for number, reason in enumerate(reasons, 1):
        text = f".. [#n{number}] {reason.replace('*', chr(92) + '*').replace('`', '')}"
        yield from textwrap.wrap(text, 100, subsequent_indent="   ")
    if reasons:
        yield ""


if __name__ == "__main__":
    PAGE.write_text(page(Path(sys.argv[1])), encoding="utf-8")
