# SPDX-License-Identifier: Apache-2.0
"""``container-update doctor``: all that has to be in order before an update, checked at once."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TextIO

from container_update.cli import connection
from container_update.cli.arguments import option_arguments
from container_update.cli.commands.update import request_of
from container_update.cli.terminal import advice, output
from container_update.cli.terminal.screen import Screen
from container_update.model.cluster import if_allowed
from container_update.model.errors import ClusterError, ContainerUpdateError, with_advice
from container_update.model.plan import Plan
from container_update.planning.plan_json import document
from container_update.reports.lines import Line

if TYPE_CHECKING:
    from container_update.cluster.client import KubernetesCluster
    from container_update.engine.checks.preflight import Check


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command; see :mod:`container_update.cli.commands.update`."""
    text = "check what an update needs: cluster, rights, packages"
    command = add("doctor", _doctor, text)
    command.add_argument("old", metavar="OLD", nargs="?",
        help=f"the current package: {connection.PACKAGE}")  # fmt: skip
    command.add_argument("new", metavar="NEW", nargs="?", help="the new package, as OLD")
    command.add_argument("--def-file", action="append", default=[], metavar="PATH",
        help="a def-file of the instance (repeatable; default: all of OLD)")  # fmt: skip
    command.add_argument("--config-path", action="append", default=[], metavar="PATH",
        help="a file of NEW with ConfigMaps or Secrets to update (repeatable)")  # fmt: skip
    connection.add_cluster_arguments(command, output.DOCUMENTS)


def _doctor(parsed: argparse.Namespace, out: TextIO) -> int:
    """Carry out all checks; return the exit status of the first problem, 0 without one."""
    from container_update.engine.checks import preflight  # noqa: PLC0415, slow to load

    checks: list[Check] = []
    for check in _checks(parsed):
        checks.append(check)
        if parsed.output == output.TEXT:
            Screen(out).show([Line.of(_line(check, parsed))])
            out.flush()
    if output.is_document(parsed):
        entries = [each.as_dict() for each in checks]
        for check, entry in zip(checks, entries, strict=True):
            if check.error is not None:
                entry["advice"] = advice.advice(check.error, parsed)
        body = document("Checks", {"checks": entries})
        output.write_document(body, parsed, out)
    return preflight.exit_status(checks)


def _line(check: Check, parsed: argparse.Namespace) -> str:
    if check.error is None:
        return f"ok       {check.name}: {check.found}"
    return f"problem  {check.name}: {with_advice(check.error, advice.advice(check.error, parsed))}"


def _checks(parsed: argparse.Namespace) -> Iterator[Check]:
    """Yield the checks that are possible: what needs the cluster only where it can be reached."""
    from container_update.engine.checks import preflight  # noqa: PLC0415, slow to load
    from container_update.package.tools.check import check  # noqa: PLC0415, slow to load

    def package(path: str) -> str:
        return preflight.package(path, check(path, options=option_arguments.read(parsed)))

    for path in dict.fromkeys(filter(None, (parsed.old, parsed.new))):
        yield preflight.check("package", partial(package, path))
    try:
        cluster = connection.connected_cluster(parsed)
    except ContainerUpdateError as error:
        yield preflight.Check("kubeconfig", error=error)
        return
    with cluster:
        yield preflight.Check("kubeconfig", preflight.place(cluster.context))
        yield from _in_cluster(parsed, cluster)


def _in_cluster(parsed: argparse.Namespace, cluster: KubernetesCluster) -> Iterator[Check]:
    from container_update.engine.checks import preflight  # noqa: PLC0415, slow to load
    from container_update.engine.resume import status  # noqa: PLC0415, slow to load
    from container_update.engine.verbs import plan_of  # noqa: PLC0415, slow to load

    options = option_arguments.read(parsed)
    namespace = parsed.namespace
    unknown = "it answers; this account may not read its version"
    version = partial(if_allowed, lambda: preflight.version(cluster.version()), unknown)
    yield (server := preflight.check("server", version))
    if isinstance(server.error, ClusterError):
        return
    yield (space := preflight.check("namespace", lambda: preflight.namespace(namespace, cluster)))
    if space.error is not None:
        return
    plan = Plan(namespace, parsed.instance_id, ())
    try:
        parsed.instance_id = connection.find_instance(parsed, cluster, may_be_new=True)
    except ContainerUpdateError as error:
        yield preflight.Check("instance", error=error)
        yield preflight.check("rights", lambda: preflight.rights(plan, cluster))
        return
    if parsed.new:
        try:
            plan = plan_of(request_of(parsed), cluster, options)
            yield preflight.Check("update", preflight.changes(plan))
        except ContainerUpdateError as error:
            yield preflight.Check("update", error=error)
    yield preflight.check("rights", lambda: preflight.rights(plan, cluster))
    where = {"namespace": namespace, "instance_id": parsed.instance_id}
    yield preflight.check("operation", lambda: preflight.idle(status(cluster, options, **where)))
