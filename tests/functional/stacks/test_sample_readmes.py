# SPDX-License-Identifier: Apache-2.0
"""The commands in the READMEs of the samples for OpenStack, run as they are printed."""

from __future__ import annotations

import glob
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

import pytest

from tests.functional.stacks.vnf import Vnf
from tests.internals.core import main, samples

pytest.importorskip("paramiko")  # before what imports it

from container_update.emulator.heat.balancer import Balancer

COMMANDS = re.compile(r"^ {6}(?![ $])(.*)$", re.MULTILINE)
"""Those of the numbered steps; what the reader has to look up or edit is after a prompt."""
PROGRAMS = {
    "python3": [sys.executable],
    "openstack": [str(Path(sys.executable).with_name("openstack"))],
}
"""The others are container-update itself and those of every system."""
DONE, NOTHING_TO_DO, PENDING = 0, 2, 3
BUILD_AND_CHECK = [DONE] * 4
SET_BACKENDS = ["set-backends", "VDU1"]
BLUE_GREEN, ROLLING = "06-openstack-blue-green", "07-openstack-rolling"


def commands(readme: str) -> list[str]:
    """Return the commands to type, each on one line."""
    return COMMANDS.findall(re.sub(r" \\\n +", " ", readme))


def filled_in(command: str, names: Mapping[str, str]) -> list[str]:
    """Return the words of a command with the site's names instead of the README's."""
    for name, value in names.items():
        command = re.sub(rf"\b{re.escape(name)}(?![\w-])", value, command)
    return shlex.split(command)


def run(words: list[str]) -> tuple[int | None, str]:
    """Run a command; the exit status of those that are container-update's, and their output."""
    program, *arguments = words
    if program == "container-update":
        out = io.StringIO()
        return main(arguments, out), out.getvalue()
    program_words = PROGRAMS.get(program, [program])
    expanded = (sorted(glob.glob(word)) or [word] for word in arguments)  # as a shell does
    ran = subprocess.run(
        [*program_words, *chain.from_iterable(expanded)],
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, f"{words}: {ran.stdout}{ran.stderr}"
    return None, ran.stdout


def balance(folder: Path, request_file: str, balancer: Balancer) -> int:
    """Take the README's step with the load balancer, if the request has one; return how often it
    is told then."""
    path = folder / request_file
    request = json.loads(path.read_text())
    if "external_lb_param" not in request["additionalParams"]:
        return 0
    request["additionalParams"]["external_lb_param"] = balancer.login()
    path.write_text(json.dumps(request))
    (folder / "after" / "Scripts" / "known_hosts").write_text(balancer.known_hosts())
    return 1


@pytest.mark.parametrize(
    ("sample", "request_file", "statuses", "keeps_servers"),
    [
        (BLUE_GREEN, "request.json", [PENDING, DONE], False),
        (BLUE_GREEN, "request-without-load-balancer.json", [PENDING, DONE], False),
        (ROLLING, "request.json", [PENDING, DONE, NOTHING_TO_DO], True),
    ],
)
def test_a_sample_does_what_its_readme_says(
    sample: str,
    request_file: str,
    statuses: list[int],
    keeps_servers: bool,
    vnf: Vnf,
    balancer: Balancer,
    os_cloud: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = vnf.folder / sample
    shutil.copytree(samples.root() / sample, folder)
    monkeypatch.chdir(folder)
    told = balance(folder, request_file, balancer)
    old, new = vnf.site.images
    names = {
        "mycloud": os_cloud, "vnf-sample": vnf.stack, "request.json": request_file,
        "OLD_IMAGE": old, "NEW_IMAGE": new, "NETWORK": vnf.site.network,
        "OLD_FLAVOR": vnf.site.flavors[0], "NEW_FLAVOR": vnf.site.flavors[1],
    }  # fmt: skip
    expected, servers = iter([*BUILD_AND_CHECK, *statuses]), []
    for command in commands((folder / "README.rst").read_text()):
        if "heat change" in command or " delete " in command:
            servers.append(vnf.servers())
        if "NEW_STACK" in command:
            names["NEW_STACK"] = vnf.live_stack()["stack_name"]
        status, output = run(filled_in(command, names))
        assert status is None or status == next(expected), f"{command}: {status}\n{output}"
    assert list(expected) == []
    before, after = servers[0], servers[-1]
    assert list(before.values()) == [old, old]
    assert list(after.values()) == [new, new]
    assert (set(before) == set(after)) is keeps_servers
    assert keeps_servers or set(before).isdisjoint(after)
    assert vnf.stacks() == []
    assert [command.split()[:2] for command in balancer.commands] == [SET_BACKENDS] * told
