# SPDX-License-Identifier: Apache-2.0
"""``emulate`` and ``demo``: what their options do, and the files that they leave alone."""

from __future__ import annotations

import argparse
import io
import re
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from container_update.cli.main import main
from container_update.emulator import commands as emulate
from container_update.emulator.demo import emulators
from container_update.emulator.kubernetes import EmbeddedCluster
from container_update.model.errors import PackageError


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    emulate.add_arguments(parser)
    return parser.parse_args(words)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> str:
    """Run the command, which ends at once."""
    out, stop = io.StringIO(), threading.Event()
    stop.set()
    kind = emulate._emulate_cloud if "--openstack" in words else emulate._emulate_cluster
    kind(parse(*words), out, stop)
    return out.getvalue()


def test_pods_are_slow_and_images_cannot_be_pulled(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[EmbeddedCluster] = []

    def embedded(**how: Any) -> EmbeddedCluster:
        made.append(EmbeddedCluster(**how))
        return made[-1]

    monkeypatch.setattr(emulators, "embedded_cluster", embedded)
    run("--slow", "5s", "--fail", "upf:*", "--fail", "*/smf:2", "--crash", "amf-*")
    behaviour = made[0].behaviour
    assert behaviour.ready_seconds == 5
    images = ("upf:1", "site/smf:2", "site/smf:1", "amf:1", "is/missing:1")
    assert [image for image in images if behaviour.pull_fails(image, 0)] == [
        *("upf:1", "site/smf:2", "is/missing:1")
    ]
    crashing = ("amf-0", "amf:1"), ("x", "amf-image:1")
    assert all(behaviour.exit_of(pod, "main", image, 0) for pod, image in crashing)
    assert behaviour.exit_of("x", "main", "amf:1", 0) is None
    run()
    assert made[1].behaviour.ready_seconds == 0


FILES = {
    "kubeconfig": ("kubeconfig", ()),
    "another kubeconfig": ("mine/config", ("--write-kubeconfig", "mine/config")),
    "clouds.yaml": ("clouds.yaml", ("--openstack",)),
    "login of the balancer": ("balancer.json", ("--openstack",)),
}


FOREIGN = {
    "a comment": "# precious\n",
    "other names": "clusters: [{name: site}]\nusers: [{name: embedded}]\nclouds: {site: {}}\n",
    "one more": "clusters: [{name: embedded}]\nusers: [{name: embedded}, {name: me}]\n"
    "clouds: {embedded: {}, site: {}}\nexternal_lb_param: {}\n",
    "a list": "[external_lb_param]\n---\n",
    "no YAML": "clusters: *embedded",
    "binary": "\0",
}


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize(("name", "words"), FILES.values(), ids=FILES)
def test_a_file_of_somebody_else_stays_as_it_is(
    name: str, words: tuple[str, ...], text: str
) -> None:
    file = Path(name)
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    with pytest.raises(PackageError, match=f"^{name} exists, and was not .*name another"):
        run(*words)
    assert file.read_text() == text


def test_its_kubeconfig_is_written_again_after_its_namespace_was_changed() -> None:
    run()
    content = yaml.safe_load(Path("kubeconfig").read_text())
    content["contexts"][0] = {"name": "mine", "context": {"cluster": "embedded"}}
    Path("kubeconfig").write_text(yaml.safe_dump(content))
    run()
    assert "mine" not in Path("kubeconfig").read_text()


@pytest.mark.parametrize(("name", "words"), FILES.values(), ids=FILES)
def test_a_file_that_it_wrote_itself_is_written_again(name: str, words: tuple[str, ...]) -> None:
    file = Path(name)
    file.parent.mkdir(exist_ok=True)
    run(*words)
    first = file.read_text()
    file.chmod(0o644)
    run(*words)
    assert yaml.safe_load(file.read_text()).keys() == yaml.safe_load(first).keys()
    assert file.read_text() != first
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_folder_that_is_not_there_is_told() -> None:
    with pytest.raises(PackageError, match="none/config cannot be written: No such file"):
        run("--write-kubeconfig", "none/config")


@pytest.mark.parametrize("guide", ["v1", "v2"])
def test_the_demo_of_a_failure_shows_the_cause_and_that_all_is_as_before(guide: str) -> None:
    out = io.StringIO()
    assert main(["try", "demo", "--scenario", "failure", "--guide", guide], out) == 0
    before, update, after = out.getvalue().split("\n\nThe ")
    assert "failed: " in update
    assert 'ImagePullBackOff: image "cirros": not found' in update
    failed = (line for line in update.splitlines() if "ImagePullBackOff" in line)
    assert {line.count("cirros") for line in failed} == {1}
    assert "Everything is as before" in update
    assert "undone: ConfigMap default/cm-data: replace" in update

    assert table(after) == table(before)


def table(text: str) -> list[list[str]]:
    """The table of what runs, without ages."""
    (found,) = (part for part in text.split("\n\n") if part.startswith("WORKLOAD "))
    return [re.sub(r" \d+[smh] ", " ", line).split() for line in found.splitlines()]


@pytest.mark.parametrize("what", [[], ["--openstack"]], ids=["cluster", "cloud"])
def test_a_port_in_use_is_a_sentence(what: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedCluster() as other:
        assert main(["try", "emulate", *what, "--port", str(other.port)], io.StringIO()) == 1
    error = capsys.readouterr().err
    assert f"cannot listen on port {other.port}: " in error
    assert "--port" in error
