# SPDX-License-Identifier: Apache-2.0
"""``container-update doctor``: all that has to be in order before an update, checked at once."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, TextIO

from container_update.cli import connection
from container_update.cli.arguments import option_arguments
from container_update.cli.commands.update import request_of
from container_update.cli.reports import json_report
from container_update.cli.terminal import advice, output
from container_update.model.errors import ClusterError, ContainerUpdateError, with_advice
from container_update.model.plan import Plan

if TYPE_CHECKING:
    from container_update.cluster.client import KubernetesCluster
    from container_update.engine.checks.preflight import Check


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add = command.add_argument
    add("old", metavar="OLD", nargs="?", help=f"the current package: {connection.PACKAGE}")
    add("new", metavar="NEW", nargs="?", help="the new package, as OLD")
    add("--def-file", action="append", default=[], metavar="PATH",
        help="a def-file of the instance (repeatable; default: all of OLD)")  # fmt: skip
    add("--config-path", action="append", default=[], metavar="PATH",
        help="a file of NEW with ConfigMaps or Secrets to update (repeatable)")  # fmt: skip
    connection.add_cluster_arguments(command, (output.TEXT, output.JSON), shown=())


def run(parsed: argparse.Namespace, out: TextIO) -> int:
    """Carry out all checks; return the exit status of the first problem, 0 without one."""
    from container_update.engine.checks import preflight  # noqa: PLC0415, slow to load

    checks: list[Check] = []
    for check in _checks(parsed):
        checks.append(check)
        if parsed.output == output.TEXT:
            out.write(_line(check, parsed) + "\n")
            out.flush()
    if parsed.output == output.JSON:
        found = [{**check.as_dict(), **_advice(check, parsed)} for check in checks]
        body = json_report.document("Checks", {"checks": found})
        out.write(output.as_json(body) + "\n")
    return preflight.exit_status(checks)


def _line(check: Check, parsed: argparse.Namespace) -> str:
    if check.error is None:
        return f"ok       {check.name}: {check.found}"
    return f"problem  {check.name}: {with_advice(check.error, advice.advice(check.error, parsed))}"


def _advice(check: Check, parsed: argparse.Namespace) -> dict[str, str]:
    return {} if check.error is None else {"advice": advice.advice(check.error, parsed)}


def _checks(parsed: argparse.Namespace) -> Iterator[Check]:
    """Yield the checks that are possible: what needs the cluster only where it can be reached."""
    from container_update.engine.checks.preflight import Check, check, place  # noqa: PLC0415

    packages = dict.fromkeys(filter(None, (parsed.old, parsed.new)))
    for path in packages:
        yield check("package", partial(_package, path, parsed))
    try:
        cluster = connection.connected_cluster(parsed)
    except ContainerUpdateError as error:
        yield Check("kubeconfig", error=error)
        return
    with cluster:
        yield Check("kubeconfig", place(cluster.context))
        yield from _in_cluster(parsed, cluster)


def _package(path: str, parsed: argparse.Namespace) -> str:
    from container_update.engine.checks import preflight  # noqa: PLC0415
    from container_update.package.tools.lint.check import check  # noqa: PLC0415

    return preflight.package(path, check(path, options=option_arguments.read(parsed)))


def _in_cluster(parsed: argparse.Namespace, cluster: KubernetesCluster) -> Iterator[Check]:
    from container_update.engine.checks.preflight import (  # noqa: PLC0415, slow to load
        Check,
        changes,
        check,
        namespace,
        rights,
    )

    yield (server := check("server", partial(_server, cluster)))
    if isinstance(server.error, ClusterError):
        return
    yield (there := check("namespace", partial(namespace, parsed.namespace, cluster)))
    if there.error is not None:
        return
    plan = Plan(parsed.namespace, parsed.instance_id, ())
    if parsed.new:
        try:
            plan = _plan(parsed, cluster)
            yield Check("update", changes(plan))
        except ContainerUpdateError as error:
            yield Check("update", error=error)
    yield check("rights", partial(rights, plan, cluster))
    yield check("operation", partial(_operation, parsed, cluster))


def _server(cluster: KubernetesCluster) -> str:
    from container_update.engine.checks.preflight import version  # noqa: PLC0415

    try:
        return version(cluster.version())
    except ClusterError as error:
        if error.status != 403:
            raise
        return "it answers; this account may not read its version"


def _operation(parsed: argparse.Namespace, cluster: KubernetesCluster) -> str:
    from container_update.engine import recover as resume  # noqa: PLC0415
    from container_update.engine.checks import preflight  # noqa: PLC0415

    options = option_arguments.read(parsed)
    names = {"namespace": parsed.namespace, "instance_id": parsed.instance_id}
    return preflight.idle(resume.status(cluster, options, **names))


def _plan(parsed: argparse.Namespace, cluster: KubernetesCluster) -> Plan:
    from container_update.engine.goals.update import plan_update  # noqa: PLC0415, slow to load

    return plan_update(request_of(parsed), cluster, option_arguments.read(parsed))
