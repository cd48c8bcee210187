# SPDX-License-Identifier: Apache-2.0
"""ETSI's API conformance tests (NFV-TST 010) against ``container-update vnfm serve``.

``python -m tests.etsi.run`` fetches the suite and its libraries into a folder, starts the service
with the embedded cluster, brings it into the state that each test presupposes, and writes what
became of each test to ``tests/etsi/results.json``: ``doc/source/developers/conformance.rst`` has
these counts. The folder is ``$CONTAINER_UPDATE_ETSI_SUITE`` or ``.etsi-suite`` in the checkout.
Nothing of the suite is part of this project.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from container_update.emulator.kubernetes import EmbeddedCluster
from tests.etsi.proxy import Proxy
from tests.etsi.states import States
from tests.vnfm.consumer import Consumer
from tests.vnfm.waiting import until

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("CONTAINER_UPDATE_ETSI_SUITE", CHECKOUT / ".etsi-suite"))
RESULTS = Path(__file__).with_name("results.json")
SUITE = "https://github.com/openmsa/etsi-mano-app-test"
LIBRARIES = (
    "robotframework",
    "RESTinstance",
    "robotframework-dependencylibrary",
    "robotframework-jsonlibrary",
    "robotframework-jsonschemalibrary",
    "robotframework-mockserver",
)
LCM = "SOL003/VNFLifecycleManagement-API"
PACKAGES = "SOL003/VNFPackageManagement-API"
ONBOARDING = "SOL005/VNFPackageManagement-API"
WORKFLOWS = re.compile("Workflow|Notification|Keywords")
"""Files that need an NFVO of the suite's own, a mock server of Java."""
CONFIGURATION = """
[vnfm]
callback_hosts = 127.0.0.1
page_size = 2
drain_seconds = 0
[container_update]
retry_seconds = 0
"""


def fetch() -> Path:
    """Fetch what is missing of the suite and its libraries; return the suite's folder."""
    suite, environment = FOLDER / "suite", FOLDER / "venv"
    if not suite.exists():
        source = os.environ.get("CONTAINER_UPDATE_ETSI_SOURCE", SUITE)
        # without its mock server, a program that a mirror may not have
        subprocess.run(["git", "clone", "-q", "--sparse", source, str(suite)], check=True)
        apis = ("SOL003", "SOL005")
        subprocess.run(["git", "-C", str(suite), "sparse-checkout", "set", *apis], check=True)
    if not environment.exists():
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        pip = str(environment / "bin" / "pip")
        subprocess.run([pip, "install", "-q", *LIBRARIES], check=True)
    return suite


@contextlib.contextmanager
def service(folder: Path) -> Iterator[tuple[int, str]]:
    """Run the service; yield its port and a token."""
    conf, state = folder / "vnfm.conf", folder / "state"
    conf.write_text(CONFIGURATION)
    command = [sys.executable, "-c", "from container_update.cli.main import main; main()"]
    arguments = ["vnfm", "serve", "--config-file", str(conf), "--port", "0"]
    out, log = folder / "out", folder / "log"
    with out.open("w") as written, log.open("w") as logged:
        process = subprocess.Popen(
            [*command, *arguments, "--state-dir", str(state)],
            cwd=CHECKOUT,
            stdout=written,
            stderr=logged,
        )
    try:

        def answers() -> bool:
            assert process.poll() is None, log.read_text()
            return "startup complete" in log.read_text()

        until(answers, "the service answers", 300.0)
        (port,) = re.findall(r"http://127.0.0.1:(\d+)", out.read_text())
        lines = (state / "tokens").read_text().splitlines()
        yield int(port), next(line.split()[1] for line in lines if line.startswith("admin "))
    finally:
        process.terminate()
        process.wait(60)


@dataclass(frozen=True)
class Http:
    """What :class:`tests.vnfm.client.Client` sends with."""

    url: str
    token: str

    def request(self, method: str, path: str, **sent: Any) -> Any:
        """Send a request and return its response, with any status."""
        headers = {**sent.get("headers", {}), "Authorization": f"Bearer {self.token}"}
        data = sent.get("content")
        if sent.get("json") is not None:
            data, headers["Content-Type"] = json.dumps(sent["json"]).encode(), "application/json"
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return Answer(answer.status, dict(answer.headers), answer.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, dict(error.headers), error.read())


@dataclass(frozen=True)
class Answer:
    """A response."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")

    def json(self) -> Any:
        return json.loads(self.content)


@dataclass
class Robot:
    """Runs files of a copy of the suite."""

    suite: Path
    variables: Mapping[str, str]
    results: dict[str, dict[str, str]] = field(default_factory=dict)

    def run(
        self,
        folder: str,
        file: str,
        variables: Mapping[str, str],
        tests: Collection[str],
    ) -> None:
        """Run these tests of a file and keep what became of each."""
        output = self.suite / "output.xml"
        values = {**self.variables, **variables}
        arguments = [each for name, value in values.items() for each in ("-v", f"{name}:{value}")]
        arguments += [each for name in tests for each in ("--test", _literal(name))]
        command = [str(FOLDER / "venv/bin/robot"), "--output", str(output), "--log", "NONE"]
        subprocess.run(
            [*command, "--report", "NONE", *arguments, f"{file}.robot"],
            cwd=self.suite / folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # warnings about the suite's syntax
            timeout=1800,
            check=False,  # its status is the number of tests that failed
        )
        kept = self.results.setdefault(f"{folder}/{file}", {})
        for test in ET.parse(output).getroot().iter("test"):
            name, status = test.get("name", ""), test.find("status")
            assert status is not None
            said = " ".join((status.text or "").split())[:160]
            kept[name] = said or "failed" if status.get("status") == "FAIL" else "passed"


def tests_in(path: Path) -> list[str]:
    """Return the names of the tests of a file."""
    _, _, text = path.read_text().partition("*** Test Cases ***")
    lines = text.partition("***")[0].splitlines()
    return [line.strip() for line in lines if re.match(" ?[^ \t#]", line)]


def _lower(names: Collection[str]) -> set[str]:
    return {name.lower() for name in names}


def _literal(name: str) -> str:
    """Return a pattern of robot that matches a name alone."""
    return re.sub(r"([\[\]*?])", r"[\1]", name)


def record(results: Mapping[str, Mapping[str, str]], token: str) -> None:
    """Write the results of files beside those of the others, without the token of this run."""
    before = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    text = json.dumps({**before, **results}, indent=1, sort_keys=True)
    RESULTS.write_text(text.replace(token, "TOKEN") + "\n")


def main() -> None:
    """Run all files, or those that are named without their folders, and write the results."""
    suite = fetch()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="etsi-")))
        shutil.copytree(suite, folder / "suite", ignore=shutil.ignore_patterns(".git"))
        cluster = stack.enter_context(EmbeddedCluster())
        consumer = stack.enter_context(Consumer())
        port, token = stack.enter_context(service(folder))
        proxy = stack.enter_context(Proxy(port))
        http = Http(f"http://127.0.0.1:{proxy.port}", token)
        states = States(folder, http, cluster, consumer)
        states.fill(folder / "suite")
        common = {"AUTHORIZATION": f"Bearer {token}", "apiRoot": ""}
        for side in ("VNFM", "NFVO"):
            common |= {f"{side}_HOST": "127.0.0.1", f"{side}_PORT": str(proxy.port)}
            common[f"{side}_SCHEMA"] = "http"
        robot = Robot(folder / "suite", common)
        wanted = sys.argv[1:]
        for api in (LCM, PACKAGES, ONBOARDING):
            for path in sorted((suite / api).glob("*.robot")):
                name = f"{api}/{path.stem}"
                if WORKFLOWS.search(path.stem) or (wanted and path.stem not in wanted):
                    continue
                special = states.special(name)
                usual = [test for test in tests_in(path) if test.lower() not in _lower(special)]
                if usual:
                    robot.run(api, path.stem, states.usual(name), usual)
                for test, variables in special.items():
                    robot.run(api, path.stem, variables(), [test])
                became = robot.results[name].values()
                passed = sum(each == "passed" for each in became)
                print(f"{name}: {passed} of {len(became)} passed", flush=True)
                record(robot.results, token)


if __name__ == "__main__":
    main()
