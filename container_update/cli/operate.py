# SPDX-License-Identifier: Apache-2.0
"""How a command that has a goal is carried out: plan it, save the plan, or do it and show it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO, cast

from container_update.cli import connection
from container_update.cli.arguments import option_arguments
from container_update.cli.terminal import advice, approval, output
from container_update.cli.terminal.output import DONE, NOTHING_TO_DO
from container_update.model.errors import (
    ChangeNeededError,
    ContainerUpdateError,
    MissingError,
    NotInstalledError,
)
from container_update.model.plan import Plan
from container_update.model.requests import (
    ChangePackageRequest,
    InstallRequest,
    Saveable,
    UpdateRequest,
)

if TYPE_CHECKING:
    from container_update.cluster.client import KubernetesCluster
    from container_update.engine.goal import Goal
    from container_update.engine.goals.change import PackageChange
    from container_update.engine.goals.change_request import ChangeRequest
    from container_update.model.cluster import Cluster
    from container_update.model.options import Options
    from container_update.model.outcome import Outcome, Progress
    from container_update.model.scripts import ScriptReport
    from container_update.records.vnf_records import Records

Asked = Callable[[], Saveable]
"""Returns what a command was asked for; its namespace is known once it has connected."""
_LONGEST_MESSAGE = 200


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of a command that carries out its plan unless it is only to be shown."""
    add = command.add_argument
    add("--plan", action="store_true", help="show what this would do; write nothing")
    add_saving_arguments(command, "with --plan: ")
    add_message_argument(command)
    output.add_plan_arguments(command)
    output.add_approval_arguments(command)
    connection.add_cluster_arguments(command)


def add_message_argument(command: argparse.ArgumentParser) -> None:
    """Add the reason, which the history keeps."""
    command.add_argument("-m", metavar="WHY", dest="message", type=_line, default="",
        help="the reason, one line, for the history and for Events")  # fmt: skip


def _line(text: str) -> str:
    if not text.isprintable() or len(text) > _LONGEST_MESSAGE:
        raise argparse.ArgumentTypeError(
            f"expected one line of at most {_LONGEST_MESSAGE} characters, found another text"
        )
    return text


def add_saving_arguments(command: argparse.ArgumentParser, when: str = "") -> None:
    """Add the arguments of what else is done with a plan."""
    add = command.add_argument
    add("--out", metavar="FILE", type=Path,
        help=f"{when}save the plan, for 'apply FILE'")  # fmt: skip
    add("--summary", action="store_true", help=f"{when}show a line for each object, as text")
    add("--server", action="store_true",
        help=f"{when}have the API server try every write")  # fmt: skip


def run(
    request_of: Callable[[argparse.Namespace], Saveable], parsed: argparse.Namespace, out: TextIO
) -> int:
    """Carry out a goal, or show its plan where only that is asked for; return the exit status."""
    return (show if parsed.plan else carry_out)(parsed, out, partial(request_of, parsed))


def show(parsed: argparse.Namespace, out: TextIO, request: Asked) -> int:
    """Show the plan of a goal, save it where that is asked for; return the exit status."""
    from container_update.engine import saved_plan  # noqa: PLC0415, slow to load
    from container_update.engine.run import preview  # noqa: PLC0415, as above

    if parsed.out is not None:
        saved_plan.refuse_unfit(request())
    with connection.connected_cluster(parsed) as cluster:
        goal, options = _goal(parsed, cluster, request()), option_arguments.read(parsed)
        _look_up_record(parsed, cluster, goal)
        with _show_refused_plan(parsed, out):
            try:
                plan = with_images_checked(preview(goal, cluster, options), cluster, options)
            except (ChangeNeededError, MissingError):
                _show_change(request(), parsed, out, cluster, options)
                raise
        status = _present(plan, parsed, out, request, cluster)
        _remark_operation(parsed, out, cluster, goal)
        return status


def _show_change(
    wanted: Saveable,
    parsed: argparse.Namespace,
    out: TextIO,
    cluster: KubernetesCluster,
    options: Options,
) -> None:
    """Show, as text, what a change of the package would do where an update is refused."""
    from container_update.engine.run import preview  # noqa: PLC0415, slow to load

    if parsed.output != output.TEXT or not isinstance(wanted, UpdateRequest):
        return
    body = {"additionalParams": {"upgrade_type": "RollingUpdate"}}
    change = ChangePackageRequest(body, wanted.old, wanted.new, **wanted.placing)
    with suppress(ContainerUpdateError):
        plan = preview(_goal(parsed, cluster, change), cluster, options)
        out.write("An update cannot do this. A rolling change of the package would do:\n")
        output.show_plan(plan, parsed, out)


def with_images_checked(plan: Plan, cluster: Cluster, options: Options) -> Plan:
    """Return the plan with what the nodes say of its new images, where the options ask for that.

    A plan has no way to write, and this creates pods: it comes after the plan, by its own option.
    """
    if not options.pull or plan.is_empty:
        return plan
    from container_update.cluster.retry import RetryingCluster  # noqa: PLC0415, slow to load
    from container_update.engine.checks.image_check import check_images_pullable  # noqa: PLC0415

    return check_images_pullable(plan, RetryingCluster(cluster, options.retry_seconds), options)


@contextmanager
def _show_refused_plan(parsed: argparse.Namespace, out: TextIO) -> Iterator[None]:
    """Show a plan, as text, that is refused for what the server or the nodes say."""
    from container_update.engine.checks.image_check import UnpulledImagesError  # noqa: PLC0415
    from container_update.engine.checks.server_check import RefusedWritesError  # noqa: PLC0415

    try:
        yield
    except (RefusedWritesError, UnpulledImagesError) as error:
        if parsed.output == output.TEXT:
            output.show_plan(error.plan, parsed, out)
        raise


def _present(
    plan: Plan, parsed: argparse.Namespace, out: TextIO, request: Asked, cluster: KubernetesCluster
) -> int:
    """Show a plan, save it where that is asked for; return the exit status."""
    from container_update.engine.verbs import save_plan  # noqa: PLC0415, slow to load

    if parsed.output == output.TEXT:
        status = output.show_plan(plan, parsed, out)
    if parsed.server:
        output.remark(_acceptance(plan), parsed, out)
    if parsed.out is not None:
        save_plan(plan, request(), cluster, parsed.out)
        output.remark(f"Saved in {parsed.out}.", parsed, out)
    if parsed.output != output.TEXT:  # one document: the plan, or why it is refused
        status = output.show_plan(plan, parsed, out)
    return status


def _remark_operation(
    parsed: argparse.Namespace, out: TextIO, cluster: KubernetesCluster, goal: Goal
) -> None:
    """Say that an operation of the instance has not ended: its end changes what was planned on."""
    from container_update.cluster.retry import RetryingReader  # noqa: PLC0415, slow to load
    from container_update.engine.cluster_view import ClusterView  # noqa: PLC0415, as above
    from container_update.model.cluster import if_allowed  # noqa: PLC0415, as above

    options = option_arguments.read(parsed)
    view = ClusterView(RetryingReader(cluster, options.retry_seconds), *goal.intent.where, options)
    try:
        current = if_allowed(view.status, None)
    except ContainerUpdateError as error:  # it may be signed with the key of another host
        output.remark(f"The state of the last operation cannot be read: {error}", parsed, out)
        return
    if current is not None and (record := current.record) is not None:
        progress = f"Operation of {record.host}: {record.progress(runs=current.is_running)}."
        output.remark(f"{progress} The plan is of the objects as they are now.", parsed, out)


def _acceptance(plan: Plan) -> str:
    if not plan.writes:
        return "The API server was not asked: there is no dry run of deletions."
    what, why = f"all {plan.writes} writes" if plan.writes > 1 else "the only write", ""
    if plan.tried != plan.writes:
        what = f"{plan.tried} of {plan.writes} writes"
        why = "; the notes say why the others cannot be tried"
    return f"The API server accepts {what} (dry run){why}."


def _goal(
    parsed: argparse.Namespace, cluster: KubernetesCluster, wanted: Saveable, *, saved: bool = False
) -> Goal:
    from container_update.engine.goals.of_request import goal_of  # noqa: PLC0415, slow to load

    options = option_arguments.read(parsed)
    if not saved and not isinstance(wanted, InstallRequest):
        wanted = replace(wanted, instance_id=connection.find_instance(parsed, cluster))
    try:
        goal = goal_of(wanted, cluster, options)
    except NotInstalledError:
        if not (getattr(parsed, "install", False) and isinstance(wanted, UpdateRequest)):
            raise
        goal = goal_of(InstallRequest(wanted.new, **wanted.placing), cluster, options)
    asks = goal.intent.asks_server or getattr(parsed, "server", False)
    why = getattr(parsed, "message", "")
    goal.intent = replace(goal.intent, why=why, asks_server=asks)
    connection.instance_header(parsed, cluster, goal.intent.instance_id)
    return goal


def _look_up_record(parsed: argparse.Namespace, cluster: KubernetesCluster, goal: Goal) -> None:
    """Have the head of a plan say where its old package is not on record; it costs a request."""
    from container_update.engine.instances import recorded_package  # noqa: PLC0415, slow to load

    if getattr(parsed, "old", "") and getattr(parsed, "new", ""):
        where = (*goal.intent.where, option_arguments.read(parsed))
        parsed.header = replace(parsed.header, runs_from=recorded_package(cluster, *where))


def ask_about_others(
    parsed: argparse.Namespace,
    out: TextIO,
    cluster: KubernetesCluster,
    instance_id: str | None,
    *,
    begins: bool = False,
) -> None:
    """Ask on a terminal before an interrupted operation is ended that another operator began.

    :param begins: another one begins afterwards: FrozenError where none may, as its plan could not
        be carried out.
    :raises NotApprovedError: any answer but yes.
    """
    if parsed.yes or parsed.output != output.TEXT or not approval.is_possible():
        return
    from container_update.cluster.beginning import origin_of  # noqa: PLC0415, slow to load
    from container_update.cluster.lease import refuse_frozen  # noqa: PLC0415, slow to load
    from container_update.cluster.operation import Operation  # noqa: PLC0415, slow to load
    from container_update.engine.resume import status  # noqa: PLC0415, slow to load

    options = option_arguments.read(parsed)
    current = status(cluster, options, namespace=parsed.namespace, instance_id=instance_id)
    if begins and current.record is None:
        refuse_frozen(current.frozen, parsed.namespace, instance_id)
    if not isinstance(current.record, Operation) or not (current.holder is None or current.expired):
        return
    who = current.record.origin.who
    if who != origin_of("", ()).who:
        out.write(f"{current}\n")
        approval.ask(f"{who} began it. This command finishes or undoes it first. Go on?")


def carry_out(
    parsed: argparse.Namespace,
    out: TextIO,
    request: Asked,
    saved: Mapping[str, Any] | None = None,
) -> int:
    """Carry out a goal and show its outcome; return the exit status.

    :param saved: the plan that was approved: no other one is carried out.
    """
    from container_update.engine import run as engine  # noqa: PLC0415, slow to load
    from container_update.engine import saved_plan  # noqa: PLC0415, as above

    with (
        connection.connected_cluster(parsed) as cluster,
        approval.stopped_by_signals(leave=parsed.leave_on_signal) as cancel,
    ):
        wanted = request()
        goal = _goal(parsed, cluster, wanted, saved=saved is not None)
        if saved is None and not parsed.yes and approval.is_possible():
            _look_up_record(parsed, cluster, goal)
        ask_about_others(parsed, out, cluster, goal.intent.instance_id, begins=True)

        def run(progress: Progress) -> Outcome:
            return engine.run(
                goal,
                cluster,
                option_arguments.read(parsed),
                cancel,
                saved_plan.refuse_other_plan(progress, saved, cluster.context.server),
                leave_failed=getattr(parsed, "leave_failed", False),
            )

        if isinstance(wanted, ChangePackageRequest):
            return carry_out_change(cast("PackageChange", goal), wanted, run, parsed, out)
        with output.progress(parsed, out) as progress:
            outcome = run(progress)
    output.show_outcome(outcome, parsed, out)
    return DONE if outcome.results else NOTHING_TO_DO


def carry_out_change(  # noqa: PLR0913
    change: AnyChange,
    request: ChangePackageRequest,
    run: Callable[[Progress], Outcome],
    parsed: argparse.Namespace,
    out: TextIO,
    *,
    follow: Callable[[Outcome], None] = lambda _: None,
) -> int:
    """Carry out a change of the package, on either VIM, and show its outcome and the results of its
    scripts; return the exit status.

    :param follow: corrects where the VNF runs, for the command that goes back.
    """
    from container_update.records.instance_file import write_records  # noqa: PLC0415, slow to load

    try:
        with output.progress(parsed, out) as progress:
            outcome = run(progress)
    finally:
        output.show_scripts(change.reports, parsed, out)
    if outcome.held:
        output.show_outcome(outcome, parsed, out)
        return DONE
    before = request.old or next((each.source for each in outcome.plan.packages), "OLD")
    follow(outcome)
    records = change.records(outcome)
    more = {
        "scripts": [script.as_dict() for script in change.reports],
        "vnfdId": records.vnfd_id,
        "resourceNames": dict(records.resource_names),
    }
    way_back = advice.change_back_command(change.change, before, parsed)
    has_record = not (request.old or parsed.family or change.reports) and outcome.has_way_back
    if has_record and outcome.revision is not None:  # the package of the record may be of this name
        way_back = advice.revision_command("undo", outcome.revision, parsed)
    output.show_outcome(outcome, parsed, out, way_back, change.reports, more)
    write_records(request, records)
    return DONE if outcome.results else NOTHING_TO_DO


class AnyChange(Protocol):
    """A change of the package, wherever the VNF runs."""

    @property
    def change(self) -> ChangeRequest:
        """What it was asked for."""

    @property
    def reports(self) -> Sequence[ScriptReport]:
        """Every run of a coordination script, in order."""

    def records(self, outcome: Outcome, /) -> Records:
        """Return what a VNFM has to record of an outcome."""
