# SPDX-License-Identifier: Apache-2.0
"""``container-update serve --demo``: the commands that it prints work as they are."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.internals.core import main
from tests.vnfm.waiting import until

SCRIPTS = Path(sys.executable).parent
RUNNING = "(in,operationState,STARTING,PROCESSING,ROLLING_BACK)"


class Demo:
    """The demo as a process of its own."""

    def __init__(self, folder: Path, *options: str, **environment: str) -> None:
        self.out, self.log = folder / "out", folder / "log"
        with self.out.open("wb") as out, self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [SCRIPTS / "container-update", "vnfm", "serve", "--demo", "--port", "0", *options],
                stdin=subprocess.DEVNULL, stdout=out, stderr=log, cwd=folder,
                env={**os.environ, "TMPDIR": str(folder), **environment},
            )  # fmt: skip

    def ready(self) -> str:
        """Wait until the service answers and return the demo's output."""

        def answers() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            *_, url = self.out.read_text().split("# the page")[0].split() or [""]
            return "/#once=" in self.out.read_text() and requests.get(url, timeout=60).ok

        until(answers, "the demo to answer", 60)
        assert self.log.read_text() == "", "nothing is below the link but what goes wrong"
        return self.out.read_text()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    running = Demo(tmp_path)
    yield running
    running.process.kill()
    running.process.wait()


def settled(url: str, token: str) -> bool:
    """Return whether no operation is running."""
    headers = {"X-Auth-Token": token, "Version": "2.0.0"}
    paths = [f"{url}/vnflcm/{api}/vnf_lcm_op_occs?filter={RUNNING}" for api in ("v1", "v2")]
    return all(requests.get(path, headers=headers, timeout=30).json() == [] for path in paths)


def states(url: str, token: str) -> list[tuple[str, str]]:
    headers = {"X-Auth-Token": token, "Version": "2.0.0"}
    return [
        (operation["operation"], operation["operationState"])
        for api in ("v1", "v2")
        for operation in requests.get(
            f"{url}/vnflcm/{api}/vnf_lcm_op_occs", headers=headers, timeout=30
        ).json()
    ]


def test_every_command_that_the_demo_prints_runs(demo: Demo, tmp_path: Path) -> None:
    """In one shell, each command after the operation of the previous one has ended."""
    bash = shutil.which("bash") or pytest.skip("no bash to type into")
    printed = demo.ready()
    *commands, url_line, link = [line for line in printed.splitlines() if line and line[0] != "#"]
    url = url_line.removeprefix("VNFM on ")
    assert link.startswith(f"{url}/#once=")
    (token_file,) = re.findall(r"-f 2 (\S+)\)", printed)
    token = Path(token_file).read_text().split()[1]
    assert token not in printed
    assert token not in demo.log.read_text()
    with subprocess.Popen(
        [bash, "-e"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, env={**os.environ, "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"},
    ) as shell:  # fmt: skip
        assert shell.stdin is not None
        assert shell.stdout is not None
        outputs = []
        for command in commands:
            shell.stdin.write(f"{command}\necho end of command\n")
            shell.stdin.flush()
            for line in shell.stdout:
                if line == "end of command\n":
                    break
                outputs.append(line)
            else:
                pytest.fail(f"{command}: {''.join(outputs[-20:])}")
            until(lambda: settled(url, token), command, 60)
    assert sum("openstack" in command for command in commands) == 16
    changes = {"MODIFY_INFO": 2, "CHANGE_VNFPKG": 2, "INSTANTIATE": 4}
    expected = [(kind, "COMPLETED") for kind, times in changes.items() for _ in range(times)]
    assert sorted(states(url, token)) == sorted(expected)
    assert demo.stop() == 0
    assert list(tmp_path.glob("container-update-demo-*")) == []


def test_the_last_line_is_a_link_that_is_opened_and_signs_in_once(tmp_path: Path) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part\nmv {opened}.part {opened}\n')
    browser.chmod(0o700)
    demo = Demo(tmp_path, "--open", BROWSER=f"{browser} %s")
    try:
        link = demo.ready().splitlines()[-1]
        until(opened.exists, "the browser to be started")
        assert opened.read_text() == f"{link}\n"
        url, _, once = link.partition("/#once=")
        answers = [
            requests.post(f"{url}/page/session", json={"once": once}, timeout=30) for _ in range(2)
        ]
        assert [answer.status_code for answer in answers] == [200, 401]
        headers = {"X-Auth-Token": answers[0].json()["token"]}
        assert requests.get(f"{url}/v1.0/vims", headers=headers, timeout=30).status_code == 200
        assert once not in demo.log.read_text()
        assert demo.stop() == 0
    finally:
        demo.process.kill()
        demo.process.wait()


def test_the_demo_refuses_another_state_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["vnfm", "serve", "--demo", "--state-dir", str(tmp_path)])
    assert status != 0
    assert "--demo" in capsys.readouterr().err
