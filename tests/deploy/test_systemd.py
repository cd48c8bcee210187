# SPDX-License-Identifier: Apache-2.0
"""The systemd unit: what it runs, what it lets it do, and the settings beside it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from container_update import Options
from tests.deploy.manifests import ROOT, configuration, stop_seconds
from tests.internals.core import main, options
from tests.internals.service import Settings, settings

UNIT = ROOT / "deploy/systemd/container-update.service"
SETTINGS = ROOT / "deploy/systemd/vnfm.conf"
WORST_EXPOSURE = "20"
"""What ``systemd-analyze security`` may find, in tenths: 100 is a unit without any restriction."""

RESTRICTIONS = {
    "AmbientCapabilities": "",
    "CapabilityBoundingSet": "",
    "DynamicUser": "yes",
    "NoNewPrivileges": "yes",
    "PrivateDevices": "yes",
    "PrivateTmp": "yes",
    "ProtectHome": "yes",
    "ProtectSystem": "strict",
    "RestrictNamespaces": "yes",
    "StateDirectoryMode": "0700",
    "UMask": "0077",
}


@pytest.fixture(scope="module")
def service() -> Mapping[str, Sequence[str]]:
    """The values of each option in the section [Service]."""
    found: dict[str, list[str]] = defaultdict(list)
    section = ""
    for line in UNIT.read_text().splitlines():
        if line.startswith("["):
            section = line
        elif section == "[Service]" and line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found[name].append(value)
    return found


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze: apt-get install systemd")
    return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False)


def test_systemd_finds_no_fault(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name  # with a program that exists here
    text = UNIT.read_text()
    assert "ExecStart=/opt/container-update/bin/container-update vnfm serve " in text
    copy.write_text(text.replace("/opt/container-update/bin/container-update", sys.executable))
    found = analyze("verify", str(copy))
    assert (found.returncode, found.stderr) == (0, "")


def test_the_exposure_is_low() -> None:
    words = ["--offline=true", "--no-pager", f"--threshold={WORST_EXPOSURE}"]
    found = analyze("security", *words, str(UNIT))
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("name", RESTRICTIONS)
def test_the_restriction_is_set(name: str, service: Mapping[str, Sequence[str]]) -> None:
    assert service[name] == [RESTRICTIONS[name]]


def test_only_a_failure_starts_it_again_and_a_stop_spares_the_scripts(
    service: Mapping[str, Sequence[str]],
) -> None:
    assert service["Restart"] == ["on-failure"]
    assert service["KillMode"] == ["mixed"]
    drain = configuration(SETTINGS.read_text())["vnfm"]["drain_seconds"]
    assert stop_seconds(drain) < float(service["TimeoutStopSec"][0])


def test_it_runs_a_command_that_exists(
    service: Mapping[str, Sequence[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    program, *command, option, value = service["ExecStart"][0].split()
    assert (Path(program).name, value) == ("container-update", "%d/vnfm.conf")
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    assert f"{option} " in capsys.readouterr().out


def test_the_settings_exist_and_name_what_the_unit_provides(
    service: Mapping[str, Sequence[str]],
) -> None:
    sections = configuration(SETTINGS.read_text())
    assert sections["vnfm"].keys() <= {option.name for option in fields(Settings)}
    assert sections[options.GROUP].keys() <= {option.name for option in fields(Options)}
    assert sections.keys() == {settings.GROUP, options.GROUP}
    provided = {
        f"/run/credentials/{UNIT.name}/{entry.partition(':')[0]}"
        for entry in service["LoadCredential"]
    }
    named = {sections["vnfm"][name] for name in ("tls_cert", "tls_key")}
    assert named | {f"/run/credentials/{UNIT.name}/vnfm.conf"} == provided
    assert sections["vnfm"]["state_dir"] == f"/var/lib/{service['StateDirectory'][0]}"
