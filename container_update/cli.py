"""The command line: ``container-update plan / apply / demo / emulate``.

Exit status: 0 done, 2 nothing to do, 3 changes pending (plan), 64 wrong usage, and one for each
class of error (see ``container_update.errors``).
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

from container_update import report
from container_update.config import Options
from container_update.errors import ContainerUpdateError, UpdateFailedError
from container_update.model import UpdateRequest

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
    if getattr(parsed, "output", "text") == "json":
        body: dict[str, Any] = {"error": type(error).__name__, "message": str(error)}
        if isinstance(error, UpdateFailedError):
            body["outcome"] = report.outcome_dict(error.outcome)
        out.write(json.dumps(body, indent=2) + "\n")
    else:
        if isinstance(error, UpdateFailedError):
            out.write(report.outcome_text(error.outcome) + "\n")
        sys.stderr.write(f"container-update: {error}\n")


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
        "demo", help="the user guide's update on the embedded cluster", parents=[verbose]
    )
    command.add_argument("--guide", choices=("v1", "v2"), default="v1", help="which user guide")
    command.set_defaults(run=_demo)
    command = commands.add_parser(
        "emulate", help="run the embedded cluster until interrupted", parents=[verbose]
    )
    command.add_argument("--port", type=int, default=0, help="on loopback; 0: a free one")
    command.add_argument("--nodes", type=int, default=1, help="how many nodes it has")
    command.add_argument(
        "--kubeconfig", type=Path, default=Path("kubeconfig"), help="the file to write"
    )
    command.set_defaults(run=_emulate)
    return parser


def _update_arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("old", metavar="OLD", help="the CNF's package: a folder or a CSAR zip")
    add("new", metavar="NEW", help="the package to move to")
    add("--kubeconfig", help="default: $KUBECONFIG, ~/.kube/config, else in-cluster")
    add("--context", help="of the kubeconfig")
    add("-n", "--namespace", default="default", help="for manifests that name none")
    add("--def-file", action="append", default=[], metavar="PATH",
        help="a def-file of the instance (repeat); default: all that OLD lists")  # fmt: skip
    add("--config-path", action="append", default=[], metavar="PATH",
        help="configmap_secret_paths: a file of NEW with ConfigMaps, Secrets (repeat)")  # fmt: skip
    add("--instance-id", help="the VNF instance; another one's objects are refused")
    add("-o", "--output", choices=("text", "json"), default="text")
    add("--timeout", type=float, default=Options.timeout, metavar="SECONDS",
        help="for one workload (default: %(default)s)")  # fmt: skip
    add("--grace-period", type=float, default=Options.grace_period, metavar="SECONDS",
        help="how long all new pods may be in trouble (default: %(default)s)")  # fmt: skip
    add("--workers", type=int, default=Options.workers, metavar="N",
        help="workloads that restart at the same time (default: %(default)s)")  # fmt: skip
    add("--insecure-skip-tls-verify", action="store_true",
        help="do not verify the API server's certificate")  # fmt: skip


# --- the commands -------------------------------------------------------------------------------


def _options(parsed: argparse.Namespace) -> Options:
    try:
        return Options(
            timeout=parsed.timeout,
            grace_period=parsed.grace_period,
            workers=parsed.workers,
            insecure_skip_tls_verify=parsed.insecure_skip_tls_verify,
        )
    except ValueError as error:
        raise ContainerUpdateError(str(error)) from error


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
    from container_update.cluster import connect  # noqa: PLC0415
    from container_update.update import plan_update  # noqa: PLC0415

    options = _options(parsed)
    with connect(parsed.kubeconfig, parsed.context, options=options) as cluster:
        plan = plan_update(_request(parsed), cluster, options)
    text = report.plan_json(plan) if parsed.output == "json" else report.plan_text(plan)
    out.write(text + "\n")
    return NOTHING_TO_DO if plan.is_empty else CHANGES_PENDING


def _apply(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.cluster import connect  # noqa: PLC0415
    from container_update.update import update  # noqa: PLC0415

    options = _options(parsed)
    with connect(parsed.kubeconfig, parsed.context, options=options) as cluster:
        outcome = update(_request(parsed), cluster, options)
    if parsed.output == "json":
        out.write(report.outcome_json(outcome) + "\n")
    else:
        out.write(f"{report.plan_text(outcome.plan)}\n\n{report.outcome_text(outcome)}\n")
    return NOTHING_TO_DO if outcome.plan.is_empty else DONE


def _demo(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.demo import demo  # noqa: PLC0415

    demo(parsed.guide, out)
    return DONE


def _emulate(parsed: argparse.Namespace, out: TextIO) -> int:
    from container_update.demo import embedded_cluster  # noqa: PLC0415

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with embedded_cluster(port=parsed.port, nodes=parsed.nodes) as embedded:
        path = embedded.write_kubeconfig(parsed.kubeconfig)
        out.write(f"Kubernetes API on {embedded.url}\nkubectl --kubeconfig {path} get pods\n")
        out.flush()
        stop.wait()
    return DONE
