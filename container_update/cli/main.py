"""The command line: plan, apply, status, resume, rollback, demo, emulate.

Exit status: 0 done, 2 nothing to do, 3 changes pending (plan), 64 wrong usage, and one for each
class of error (see ``container_update.model.errors``).
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

from container_update.cli import (
    advice,
    change,
    csar,
    option_arguments,
    output,
    report,
    serve,
    stack_arguments,
)
from container_update.model.cancellation import Stop
from container_update.model.errors import ContainerUpdateError, with_advice
from container_update.model.requests import UpdateRequest

if TYPE_CHECKING:
    from container_update.cluster.client import KubernetesCluster
    from container_update.cluster.execution.operation import Instance

DONE, NOTHING_TO_DO, CHANGES_PENDING, USAGE = 0, 2, 3, 64


class _Parser(argparse.ArgumentParser):
    """argparse ends with 2 on wrong usage, which means "nothing to do" here."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None, out: TextIO | None = None) -> int:
    """Run one command.

    :param arguments: without the program's name; None: the process's own.
    :param out: where results go; None: standard output. Logs and errors go to standard error.
    :returns: the exit status.
    """
    parsed = _parser().parse_args(arguments)
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(parsed.verbose, 2)]
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    run: Callable[[argparse.Namespace, TextIO], int] = parsed.run
    try:
        return run(parsed, out or sys.stdout)
    except ContainerUpdateError as error:
        _report_error(error, parsed, out or sys.stdout)
        return error.exit_status


def _report_error(error: ContainerUpdateError, parsed: argparse.Namespace, out: TextIO) -> None:
    style = getattr(parsed, "output", output.TEXT)
    sentence = advice.advice(error, parsed)
    told = output.error(error, style, sentence)
    if told:
        out.write(told + "\n")
    if style != output.JSON:
        sys.stderr.write(f"container-update: {with_advice(error, sentence)}\n")


# --- the grammar --------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="container-update",
        description="Move a running CNF to a new package, restarting no more than needed.",
    )
    verbose = _Parser(add_help=False)
    verbose.add_argument(
        "-v", "--verbose", action="count", default=0, help="log what is done (-vv: every detail)"
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, run, text in (
        ("plan", _plan, "show what an update would do, and why; write nothing"),
        ("apply", _apply, "update the CNF"),
    ):
        command = commands.add_parser(name, help=text, description=text, parents=[verbose])
        _update_arguments(command)
        command.set_defaults(run=run)
    command = commands.add_parser(
        "change-vnfpkg", help="change the VNF's package: Blue-Green or rolling update",
        description="Change the VNF's package (SOL003): all of the new package takes effect.",
        parents=[verbose],
    )  # fmt: skip
    change.add_arguments(command)
    stack_arguments.add_arguments(command)
    _cluster_arguments(command)
    command.set_defaults(run=_change_vnfpkg)
    for name, run, text in (
        ("status", _status, "show the update that is under way or was cut short"),
        ("resume", _resume, "finish an update that was cut short"),
        ("rollback", _rollback, "undo an update that was cut short"),
    ):
        command = commands.add_parser(name, help=text, description=text, parents=[verbose])
        if run is _status:
            stack_arguments.add_arguments(command)
            _cluster_arguments(command, (output.TEXT, output.JSON))
        else:
            _cluster_arguments(command)
        command.set_defaults(run=run)
    csar.add_commands(commands, [verbose])
    command = commands.add_parser(
        "demo", help="the user guide's update on the embedded cluster", parents=[verbose]
    )
    command.add_argument("--guide", choices=("v1", "v2"), default="v1", help="which user guide")
    command.add_argument(
        "--scenario", default="modify",
        choices=("modify", "blue-green", "rolling", "openstack-blue-green", "openstack-rolling"),
        help="the user guide's update, or a change of the VNF package",
    )  # fmt: skip
    command.set_defaults(run=_demo)
    command = commands.add_parser(
        "emulate", help="run the embedded cluster until interrupted", parents=[verbose]
    )
    command.add_argument("--port", type=int, default=0, help="on loopback; 0: a free one")
    command.add_argument("--nodes", type=int, default=1, help="how many nodes it has")
    command.add_argument(
        "--kubeconfig", type=Path, default=Path("kubeconfig"), help="the file to write"
    )
    command.add_argument(
        "--openstack", action="store_true", help="an OpenStack's Keystone and Heat instead"
    )
    command.add_argument(
        "--clouds-yaml", type=Path, default=Path("clouds.yaml"), help="then the file to write"
    )
    command.set_defaults(run=_emulate)
    text = "run a small VNFM: SOL003 over REST, for those who have no Tacker at hand"
    command = commands.add_parser("serve", help=text, description=text, parents=[verbose])
    serve.add_arguments(command)
    command.set_defaults(run=serve.run)
    return parser


def _update_arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("old", metavar="OLD", help="the CNF's package: a folder or a CSAR zip")
    add("new", metavar="NEW", help="the package to move to")
    add("--def-file", action="append", default=[], metavar="PATH",
        help="a def-file of the instance (repeat); default: all that OLD lists")  # fmt: skip
    add("--config-path", action="append", default=[], metavar="PATH",
        help="configmap_secret_paths: a file of NEW with ConfigMaps, Secrets (repeat)")  # fmt: skip
    _cluster_arguments(command)


def _cluster_arguments(
    command: argparse.ArgumentParser, styles: Sequence[str] = output.FORMATS
) -> None:
    add = command.add_argument
    add("--kubeconfig", help="default: $KUBECONFIG, ~/.kube/config, else in-cluster")
    add("--context", help="of the kubeconfig")
    add("-n", "--namespace", default="default", help="for manifests that name none")
    add("--instance-id", help="the VNF instance; another one's objects are refused")
    add("-o", "--output", choices=styles, default=output.TEXT)
    add("--leave-on-signal", action="store_true",
        help="on SIGINT or SIGTERM leave the update for a resume, do not undo it")  # fmt: skip
    option_arguments.add_arguments(command)


# --- the commands -------------------------------------------------------------------------------


@contextmanager
def _connected(parsed: argparse.Namespace) -> Iterator[KubernetesCluster]:
    from container_update.cluster.client import connect  # noqa: PLC0415

    options = option_arguments.read(parsed)
    with connect(parsed.kubeconfig, parsed.context, options=options) as cluster:
        yield cluster


@contextmanager
def _stopped_by_signals(leave: bool) -> Iterator[Stop]:
    """The first signal asks for the end, the second one leaves at once: the journal stays."""
    stop = Stop()

    def handle(number: int, _: object) -> None:
        if stop:
            os._exit(128 + number)
        name = signal.Signals(number).name
        stop.request(f"by {name}", leave=leave)  # first: who reads the line may signal again
        ending = "leaving it for resume" if leave else "undoing"
        os.write(2, f"container-update: {name}: {ending}; again to leave at once\n".encode())

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, handle) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _request(parsed: argparse.Namespace) -> UpdateRequest:
    return UpdateRequest(
        old=parsed.old,
        new=parsed.new,
        def_files=tuple(parsed.def_file),
        config_paths=tuple(parsed.config_path),
        namespace=parsed.namespace,
        instance_id=parsed.instance_id,
    )


def _plan(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.operations.update import plan_update  # noqa: PLC0415

    with _connected(parsed) as cluster:
        plan = plan_update(_request(parsed), cluster, option_arguments.read(parsed))
    out.write(output.PLAN[parsed.output](plan) + "\n")
    return NOTHING_TO_DO if plan.is_empty else CHANGES_PENDING


def _apply(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.operations.update import update  # noqa: PLC0415

    as_text = parsed.output == output.TEXT
    with _connected(parsed) as cluster, _stopped_by_signals(parsed.leave_on_signal) as stop:
        progress = output.progress(out) if as_text else (lambda _: None)
        outcome = update(_request(parsed), cluster, option_arguments.read(parsed), stop, progress)
    if not as_text:
        out.write(output.OUTCOME[parsed.output](outcome) + "\n")
    elif outcome.results:
        out.write(report.sum_text(outcome) + "\n")
    return DONE if outcome.results else NOTHING_TO_DO


def _change_vnfpkg(parsed: argparse.Namespace, out: TextIO) -> int:
    options = option_arguments.read(parsed)
    with _stopped_by_signals(parsed.leave_on_signal) as stop:
        if parsed.stack:
            with stack_arguments.site(parsed, options) as stack:
                return change.run(parsed, stack, options, stop, out)
        with _connected(parsed) as cluster:
            site = change.site_of(parsed, cluster)
            return change.run(parsed, site, options, stop, out)


def _instance(parsed: argparse.Namespace, cluster: KubernetesCluster) -> Instance:
    from container_update.cluster.execution.operation import Instance  # noqa: PLC0415
    from container_update.cluster.retry import RetryingCluster  # noqa: PLC0415

    options = option_arguments.read(parsed)
    asked = RetryingCluster(cluster, options.retry_seconds)
    return Instance(asked, parsed.namespace, parsed.instance_id, options)


def _status(parsed: argparse.Namespace, out: TextIO) -> int:
    if parsed.stack:
        return stack_arguments.status(parsed, option_arguments.read(parsed), out)
    with _connected(parsed) as cluster:
        status = _instance(parsed, cluster).status()
    text = json.dumps(status.as_dict(), indent=2) if parsed.output == "json" else str(status)
    out.write(text + "\n")
    return DONE if status.record or status.holder else NOTHING_TO_DO


def _resume(parsed: argparse.Namespace, out: TextIO) -> int:
    return _recover(parsed, out, back=False)


def _rollback(parsed: argparse.Namespace, out: TextIO) -> int:
    return _recover(parsed, out, back=True)


def _recover(parsed: argparse.Namespace, out: TextIO, *, back: bool) -> int:
    with _connected(parsed) as cluster, _stopped_by_signals(leave=True) as stop:
        instance = _instance(parsed, cluster)
        if back:
            outcome = instance.recover(back=True, stop=stop)
        else:
            outcome = change.resume(parsed, instance, cluster, stop)
    if outcome is None:
        out.write(output.nothing("No update was cut short.", parsed.output) + "\n")
        return NOTHING_TO_DO
    out.write(output.OUTCOME[parsed.output](outcome) + "\n")
    return DONE


def _demo(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.cli.demo.change import demo_change  # noqa: PLC0415
    from container_update.cli.demo.stack import SCENARIOS, demo_stack  # noqa: PLC0415
    from container_update.cli.demo.update import demo  # noqa: PLC0415

    if parsed.scenario == "modify":
        demo(parsed.guide, out)
    elif parsed.scenario in SCENARIOS:
        demo_stack(parsed.scenario, out)
    else:
        demo_change(parsed.scenario, out)
    return DONE


def _emulate(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.cli.demo.update import embedded_cluster  # noqa: PLC0415

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    if parsed.openstack:
        from container_update.cli.demo.stack import emulate  # noqa: PLC0415, an extra

        emulate(parsed.clouds_yaml, parsed.port, out, stop)
        return DONE
    with embedded_cluster(port=parsed.port, nodes=parsed.nodes) as embedded:
        path = embedded.write_kubeconfig(parsed.kubeconfig)
        out.write(f"Kubernetes API on {embedded.url}\nkubectl --kubeconfig {path} get pods\n")
        out.flush()
        stop.wait()
    return DONE
