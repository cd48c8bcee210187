# SPDX-License-Identifier: Apache-2.0
"""Run the package's coordination scripts: when, for which VDU, with what, and for how long.

A script is third-party code: it gets a folder of its own with a copy of the package, and the dict
of :func:`_script_input`. Exit status 0 is success; its output is shown in the report, without
passwords.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
from collections.abc import Container, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from container_update.engine.goals.change_request import (
    ChangeRequest,
    FromVnfm,
    ScriptName,
    secrets_in,
)
from container_update.engine.scripts.located import package_with_script
from container_update.engine.scripts.process import Script
from container_update.model.cancellation import CancelToken
from container_update.model.errors import CoordinationError
from container_update.model.objects import Json, ObjectKey, merge_patch
from container_update.model.options import Options
from container_update.model.plan import Note
from container_update.model.requests import ChangePackageRequest
from container_update.model.scripts import NEW, OLD, ScriptReport, ScriptStep, VduChange
from container_update.package import archive, csar

LOG = logging.getLogger(__name__)

_BIGGEST_COPY = 16 * 1024 * 1024
"""The most bytes of a file that is copied for a script; container images are bigger."""

_POLL = 0.05
_HIDDEN = "***"


@dataclass(frozen=True)
class Coordinated:
    """The change that scripts are about."""

    change: ChangeRequest
    instance_id: str | None
    vnfm: FromVnfm = field(default_factory=FromVnfm)
    access: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """How a script reaches the VIM."""


@dataclass
class Coordination:
    """The scripts of one change; *packages*: where they are, by 'new' and 'old' VNF."""

    about: Coordinated
    packages: Mapping[str, str]
    options: Options
    cancel: CancelToken = field(default_factory=CancelToken)
    operation: str = ""
    """The id of the operation in its journal; '' before it has begun."""
    reports: list[ScriptReport] = field(default_factory=list)
    """Of every run, in order."""

    @classmethod
    def of(
        cls,
        request: ChangePackageRequest,
        change: ChangeRequest,
        options: Options,
        vnfm: FromVnfm,
        access: Mapping[str, Any],
    ) -> Coordination:
        """Return the scripts of a request; *access*: to the VIM, where the VNFM does not say it."""
        recorded = vnfm.instance.get("vimConnectionInfo")
        connection = merge_patch(recorded, change.vim_connection_info)
        access = {"vim_connection_info": connection} | dict(vnfm.access or access)
        packages = {NEW: request.new, **({OLD: request.old} if request.old else {})}
        return cls(Coordinated(change, request.instance_id, vnfm, access), packages, options)

    @property
    def paths(self) -> Mapping[str, str]:
        """The paths of the request's scripts, by VNF: 'new' and 'old'."""
        return self.about.change.script_paths

    def run(self, step: ScriptStep) -> ScriptReport | None:
        """Run the script of a step.

        :returns: what it reported, also where it was stopped; None where the request has no script
            for that VNF.
        :raises CoordinationError: it failed, or ran for too long.
        """
        of_gate = ScriptName(step.path) if step.path else None
        script = of_gate or self.about.change.scripts.get(step.role)
        if script is None:
            return None
        try:
            report = self._run_in_copy(script, step.role, step.vdu)
        except OSError as error:
            raise CoordinationError(f"it cannot be run: {error}") from error
        if not of_gate:
            self.reports.append(report)
        if report.status == 0 or self._is_stopped(step.vdu):
            return report
        limit = self.options.coordination_seconds
        how = (
            f"expected it to end within {limit:g} s, ended it"
            if report.status is None
            else f"ended with status {report.status}"
        )
        raise CoordinationError(": ".join(filter(None, (how, report.last_line))))

    def _is_stopped(self, vdu: VduChange) -> bool:
        """Return whether the operation is to stop, as an undo is not: it goes on."""
        return bool(self.cancel) and not vdu.details.get("back")

    def _run_in_copy(self, script: ScriptName, which: str, vdu: VduChange) -> ScriptReport:
        """Run a script in a copy of the package that has it."""
        with tempfile.TemporaryDirectory(prefix="container-update-script-") as name:
            copy = Path(name) / "package"
            _copy_package(self._package_of(script, which), copy, self.options)
            started = time.monotonic()
            values = _script_input(self.about, self.operation, which, vdu, copy)
            with Script(script, copy, values) as process:
                status = self._wait(process, started + self.options.coordination_seconds, vdu)
            return ScriptReport(
                which=which,
                vdu_id=vdu.vdu_id,
                script=script.path,
                status=status,
                seconds=time.monotonic() - started,
                output=self._without_secrets(process.output()),
            )

    def _package_of(self, script: ScriptName, which: str) -> str:
        """Return the package that has a script, whose hash is right."""
        with ExitStack() as stack:
            opened = {
                name: stack.enter_context(csar.open_package(source, options=self.options))
                for name, source in self.packages.items()
            }
            return package_with_script(script, which, opened).source

    def _wait(self, process: Script, deadline: float, vdu: VduChange) -> int | None:
        while time.monotonic() < deadline and not self._is_stopped(vdu):
            if (status := process.wait(_POLL)) is not None:
                return status
        return None

    def _without_secrets(self, text: str) -> str:
        secrets = set(
            secrets_in([self.about.change.body, self.about.access, self.about.vnfm.instance])
        )
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, _HIDDEN)
        return text


def _copy_package(source: str, target: Path, options: Options) -> None:
    with closing(archive.open_archive(source, options)) as files:
        for name in files.names():
            if files.size(name) <= _BIGGEST_COPY:
                copy = target / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                with files.open(name) as content, copy.open("wb") as file:
                    shutil.copyfileobj(content, file)


def notes(change: ChangeRequest, used: Container[str]) -> Iterator[Note]:
    """Yield which scripts of the request are not run, as their VNF is not in *used*."""
    for which, path in change.script_paths.items():
        if which not in used:
            kind = change.upgrade_type
            text = f"{path} is not run: a {kind} does not call the script of the {which} VNF"
            yield Note(ObjectKey("", "Coordination", "", "scripts"), text)


# --- the dict that a script reads, pickled, on its standard input --------------------------------
# It is a superset of what Tacker 16 gives one: flat, the VNFC's parameters of the request
# (``cp_name``, ``username``, ``password``), ``ssh_ip``, ``is_rollback``, ``LcmCoordRequest``,
# ``inst`` and ``vnfc_info_id``. A script that was written for Tacker runs unchanged. What Tacker
# does not have is under names of our own, above all ``coordination``.
# Source: the host's ``_execute_coordinate_vnf_script``, and LcmCoordRequest of ETSI GS NFV-SOL 002,
# 10.5.2.2.


def _script_input(
    about: Coordinated, operation: str, which: str, vdu: VduChange, package: Path
) -> Json:
    """Return the dict for one run of a script.

    :param operation: its id in the journal.
    :param which: 'new' or 'old': the VNF that is coordinated.
    :param package: the folder with the script's copy of the package.
    """
    access, recorded = about.access, about.vnfm.instance
    vnfc_param = dict(about.change.vnfc_param(vdu.vdu_id, which))
    # where one is not known Tacker has no such entry either
    known = {"ssh_ip": vdu.ssh_ips.get(which), "vnfc_info_id": _vnfc_info_id(recorded, vdu)}
    instance = {"id": about.instance_id, **recorded}
    if access.get("vim_connection_info"):
        instance["vimConnectionInfo"] = access["vim_connection_info"]
    return {
        **vnfc_param,
        **{name: value for name, value in known.items() if value},
        "is_rollback": bool(vdu.details.get("back")),
        "LcmCoordRequest": _coordination_request(about, operation),
        "inst": instance,
        "request": dict(about.change.body),
        "vnf_instance": instance,
        "grant_request": {},
        "grant_response": {},
        "tmp_csar_dir": str(package),
        "coordination": {
            "vnf": which,
            "instance_id": about.instance_id,
            "vdu_id": vdu.vdu_id,
            "vnfc_param": vnfc_param,
            "old_resource": vdu.old_resource,
            "new_resource": vdu.new_resource,
            **vdu.details,
            "access": dict(access),
        },
    }


def _coordination_request(about: Coordinated, operation: str) -> Json:
    """Return an LcmCoordRequest; without a VNFM that shows the operation it has no links."""
    occurrence = about.vnfm.occurrence
    body: Json = {
        "vnfInstanceId": about.instance_id,
        "vnfLcmOpOccId": occurrence.id if occurrence else operation,
        "lcmOperationType": "CHANGE_VNFPKG",
        "coordinationActionName": "the script has to name its action",
    }
    if occurrence:
        body["_links"] = {
            "vnfLcmOpOcc": {"href": occurrence.url},
            "vnfInstance": {"href": occurrence.instance_url},
        }
    return body


def _vnfc_info_id(instance: Mapping[str, Any], vdu: VduChange) -> str | None:
    """Return the id of the VNFC that the script runs for in the record, or the VDU's first."""
    info = instance.get("instantiatedVnfInfo") or {}
    of_vdu = [e for e in info.get("vnfcResourceInfo") or () if e.get("vduId") == vdu.vdu_id]
    same = [e for e in of_vdu if e["computeResource"].get("resourceId") == vdu.resource_id]
    ids = {entry.get("vnfcResourceInfoId"): entry["id"] for entry in info.get("vnfcInfo") or ()}
    return next((ids.get(entry["id"]) for entry in same or of_vdu), None)
