# SPDX-License-Identifier: Apache-2.0
"""The three circles of tests, and the sample of a matrix that is in the first.

::

    pytest               everything that decides something
    pytest -m thorough   what takes longer than one waits before a commit
    pytest -m complete   every point of the matrices: hours

A test is in the first circle unless a marker says otherwise. A test with several tables of
parameters, or with a fixture that has several (the two APIs, each strategy on each VIM), is a
matrix: outside ``tests/unit`` the first circle has as many of its points as it takes to have each
row of each table once, on one of the fixtures. The second circle has as many of the others, and of
the matrices that it has alone, as have each row of each table and each of the fixtures once; the
third circle has the rest. Where a test runs in several circles with more points in each
(``in_circles``), the second one has each row already, and what the first one leaves out is left to
the third.

What a real Kubernetes judges runs there (``.ci/run``): the embedded cluster has the tests of
``ON_THE_LAB`` in the second circle.
"""

from __future__ import annotations

import collections
import enum
import itertools
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence

import pytest

from tests.functional.real import REAL, reaches_it

THOROUGH = {
    "tests/emulator/test_helm.py": "Helm, against the emulator",
    "tests/emulator/test_kubectl.py": "kubectl, against the emulator",
    "tests/emulator/test_protobuf.py": "kubectl, against the emulator",
    "tests/functional/change_vnfpkg/test_samples.py": "processes, and what is typed",
    "tests/functional/change_vnfpkg/test_traffic.py": "load",
    "tests/functional/reference/test_trouble.py": "a matrix of faults",
    "tests/functional/stacks/test_failures.py": "stacks that fail in every way",
    "tests/functional/stacks/test_sample_readmes.py": "processes, and what is typed",
    "tests/functional/stacks/test_samples.py": "processes, and what is typed",
    "tests/functional/stacks/test_server_actions.py": "a matrix of servers and what changes",
    "tests/functional/stacks/test_two_hosts.py": "two hosts",
    "tests/functional/stacks/test_vnfc_over_ssh.py": "processes",
    "tests/functional/test_hostile_neighbour.py": "hostile Secrets",
    "tests/functional/test_hostile_neighbour_of_a_driver.py": "hostile Secrets",
    "tests/functional/test_least_rights.py": "a matrix of rights",
    "tests/functional/test_library.py": "processes, and what is typed",
    "tests/functional/test_mirror.py": "each kind behind a webhook",
    "tests/functional/test_signals.py": "processes that get signals",
    "tests/functional/test_terminal_orders.py": "hostile texts",
    "tests/functional/test_tutorials.py": "processes, and what is typed",
    "tests/functional/test_yaml.py": "kubectl, against the reader of YAML",
    "tests/project/test_benchmarks.py": "measures",
    "tests/project/test_wheel.py": "builds, three times",
    "tests/tacker/": "a real Tacker",
    "tests/unit/package/test_hostile.py": "hostile packages",
    "tests/vnfm/test_coordination.py": "processes of scripts",
    "tests/vnfm/test_demo.py": "processes and the openstack client",
    "tests/vnfm/test_docs.py": "a browser",
    "tests/vnfm/test_driver_scripts.py": "hostile packages",
    "tests/vnfm/test_drivers.py": "processes of drivers",
    "tests/vnfm/test_guides.py": "processes and the openstack client",
    "tests/vnfm/test_handover.py": "services that are killed",
    "tests/vnfm/test_hostile_answers.py": "hostile answers",
    "tests/vnfm/test_hostile_packages.py": "hostile packages",
    "tests/vnfm/test_live_resources.py": "what the page shows",
    "tests/vnfm/test_load.py": "load",
    "tests/vnfm/test_members.py": "services that are killed",
    "tests/vnfm/test_openapi.py": "generated requests",
    "tests/vnfm/test_openstack.py": "stacks, which tests/functional has too",
    "tests/vnfm/test_openstack_served.py": "processes and the openstack client",
    "tests/vnfm/test_outages.py": "services whose database goes away",
    "tests/vnfm/test_page.py": "a browser",
    "tests/vnfm/test_page_of_batches.py": "a browser",
    "tests/vnfm/test_page_of_many.py": "a browser",
    "tests/vnfm/test_plans.py": "what the page shows",
    "tests/vnfm/test_progress.py": "what the page shows",
    "tests/vnfm/test_records.py": "each attribute of a record after each request",
    "tests/vnfm/test_recovery.py": "services that are killed",
    "tests/vnfm/test_specification.py": "each sample request of the specification",
    "tests/vnfm/test_stopped.py": "services that end",
    "tests/vnfm/test_tackers_packages.py": "a real Tacker",
    "tests/vnfm/test_terminated.py": "services that are terminated",
    "tests/vnfm/test_upkeep_openstack.py": "heal and scale in stacks",
    "tests/vnfm/test_upkeep_served.py": "processes and the openstack client",
    "tests/vnfm/test_view.py": "what the page shows",
    "tests/vnfm/test_vim_modifications.py": "each part of a VIM's connection, on each VIM",
}
"""Files and folders of the second circle, and what makes them expensive."""

ON_THE_LAB = {
    "tests/functional/change_vnfpkg/test_autoscalers_and_budgets.py": "a change beside autoscalers",
    "tests/functional/change_vnfpkg/test_bare_pod.py": "bare pods in a change",
    "tests/functional/change_vnfpkg/test_canary.py": "the steps of a canary",
    "tests/functional/change_vnfpkg/test_command.py": "what is typed for a change",
    "tests/functional/change_vnfpkg/test_contract.py": "what every strategy guarantees",
    "tests/functional/change_vnfpkg/test_hand_over.py": "names that are taken over",
    "tests/functional/change_vnfpkg/test_kubernetes.py": "a change on Kubernetes",
    "tests/functional/change_vnfpkg/test_listed_files.py": "files that a request lists",
    "tests/functional/change_vnfpkg/test_meanwhile.py": "other clients during a change",
    "tests/functional/change_vnfpkg/test_new_workloads.py": "workloads that a package adds",
    "tests/functional/change_vnfpkg/test_objects_of_others.py": "objects of other owners",
    "tests/functional/change_vnfpkg/test_update_strategies.py": "update strategies of workloads",
    "tests/functional/change_vnfpkg/test_way_back.py": "the undo of a change",
    "tests/functional/reference/test_two_hosts.py": "two hosts",
    "tests/functional/test_api_versions.py": "versions of APIs",
    "tests/functional/test_asked_first.py": "dry runs",
    "tests/functional/test_budgets.py": "disruption budgets",
    "tests/functional/test_ci_page.py": "the page for a CI",
    "tests/functional/test_cli.py": "what is typed",
    "tests/functional/test_content_of_others.py": "keys of other clients",
    "tests/functional/test_conventions.py": "labels and annotations",
    "tests/functional/test_cost.py": "numbers of requests",
    "tests/functional/test_failures.py": "failing rollouts",
    "tests/functional/test_finalizers.py": "finalizers",
    "tests/functional/test_finished_jobs.py": "Jobs that have run",
    "tests/functional/test_freeze.py": "instances that are frozen",
    "tests/functional/test_history.py": "revisions",
    "tests/functional/test_immutable.py": "immutable configuration",
    "tests/functional/test_inputs.py": "forms of packages",
    "tests/functional/test_install.py": "installations",
    "tests/functional/test_jobs.py": "Jobs",
    "tests/functional/test_kept_claims.py": "claims that stay",
    "tests/functional/test_kept_objects.py": "objects that stay",
    "tests/functional/test_kills.py": "processes that are killed",
    "tests/functional/test_list.py": "which instances there are",
    "tests/functional/test_lost_nodes.py": "nodes that are lost",
    "tests/functional/test_meddling_neighbour.py": "another client between any two requests",
    "tests/functional/test_operators.py": "operators",
    "tests/functional/test_optional_configuration.py": "optional references",
    "tests/functional/test_other_clients.py": "other clients",
    "tests/functional/test_other_spellings.py": "other spellings of the same",
    "tests/functional/test_own_namespace.py": "a namespace of the VNF's own",
    "tests/functional/test_own_webhook.py": "webhooks of the package",
    "tests/functional/test_pulled_images.py": "images that are pulled first",
    "tests/functional/test_quotas.py": "quotas",
    "tests/functional/test_rendered.py": "charts and kustomizations",
    "tests/functional/test_restarts.py": "what restarts",
    "tests/functional/test_rollouts.py": "rollouts",
    "tests/functional/test_saved_plans.py": "saved plans",
    "tests/functional/test_secrets_stay_secret.py": "what is shown of Secrets",
    "tests/functional/test_served_versions.py": "versions that a server serves",
    "tests/functional/test_three_ways.py": "fields of other clients",
    "tests/functional/test_uninstalled.py": "what an uninstall leaves",
    "tests/functional/test_upkeep.py": "scale and heal",
    "tests/functional/test_watch.py": "who watches",
}
"""Files of tests/functional that the lab has in its first circle, and the embedded cluster in its
second one. In the first one of both are the table of the promises (``test_promises.py``), a sample
of the faults (``test_faults.py``) and the waits."""


class Circle(enum.Enum):
    """A circle; its value is the marker of its tests."""

    DEFAULT = ""
    THOROUGH = "thorough"
    COMPLETE = "complete"

    @property
    def command(self) -> str:
        """What runs it."""
        return f"pytest -m {self.value}" if self.value else "pytest"

    def __str__(self) -> str:
        return self.name.lower()


def circle_of(item: pytest.Item) -> Circle:
    """Return the circle of a test."""
    markers = {marker.name for marker in item.iter_markers()}
    marked = (circle for circle in reversed(Circle) if circle.value in markers)
    return next(marked, Circle.DEFAULT)


def in_circles(*circles: Circle) -> pytest.MarkDecorator:
    """Have a test run in several circles, each time with more points: ``circle`` says where."""
    marks = {
        Circle.DEFAULT: (),
        Circle.THOROUGH: (pytest.mark.thorough,),
        Circle.COMPLETE: (pytest.mark.complete, pytest.mark.timeout(0)),
    }
    points = [pytest.param(circle, marks=marks[circle], id=str(circle)) for circle in circles]
    return pytest.mark.parametrize("circle", points)


def move_all_but_a_sample(items: Sequence[pytest.Item]) -> None:
    """Put THOROUGH into the second circle; of each matrix, all but a sample into the next one."""
    for item in items:
        is_listed = item.nodeid.startswith(tuple(THOROUGH)) or is_left_to_the_lab(item)
        _put(item, circle_of(item), Circle.THOROUGH if is_listed else Circle.DEFAULT)
    for circle, following in itertools.pairwise(Circle):
        inside = (item for item in items if circle_of(item) is circle and not _has_all(item))
        for name, points in itertools.groupby(inside, lambda item: item.nodeid.partition("[")[0]):
            matrix = list(points)
            start = zlib.crc32(name.encode())  # another fixture for each test, always the same one
            with_fixtures = circle is Circle.THOROUGH
            chosen = sample([_values(item, with_fixtures) for item in matrix], start)
            for number, item in enumerate(matrix):
                if number not in chosen:
                    has_circles = "circle" in _params(item)
                    _put(item, Circle.COMPLETE if has_circles else following)


def is_left_to_the_lab(item: pytest.Item) -> bool:
    """Tell whether a test that the lab's first circle has need not be in this one."""
    if REAL or not item.nodeid.startswith(tuple(ON_THE_LAB)):
        return False
    return reaches_it(item) and not item.get_closest_marker("embedded")


def _put(item: pytest.Item, *circles: Circle) -> None:
    """Have a test in the last one of these circles, and in no other."""
    names = {circle.value for circle in Circle}
    item.own_markers = [marker for marker in item.own_markers if marker.name not in names]
    last = max(circles, key=list(Circle).index)
    if last is not Circle.DEFAULT:
        item.add_marker(last.value)


def _has_all(item: pytest.Item) -> bool:
    """Whether all points of a test are in its circle: the second one has each row of
    ``in_circles``, with a part of its points."""
    is_second = circle_of(item) is Circle.THOROUGH and "circle" in _params(item)
    return item.nodeid.startswith("tests/unit/") or is_second


def sample(points: Sequence[frozenset[str]], start: int) -> set[int]:
    """Return the numbers of a few points that have each value once, preferring those from *start*
    on."""
    order = [(start + number) % len(points) for number in range(len(points))]
    chosen: set[int] = set()
    left = frozenset[str]().union(*points)
    while left:
        best = max(order, key=lambda number: len(points[number] & left))
        chosen.add(best)
        left -= points[best]
    return chosen or {order[0]}


def _params(item: pytest.Item) -> Mapping[str, object]:
    return getattr(getattr(item, "callspec", None), "params", {})


def _values(item: pytest.Item, with_fixtures: bool) -> frozenset[str]:
    """Return a test's row of each of its tables, and of each of its fixtures."""
    params = _params(item)
    tables = [mark.args[0] for mark in item.iter_markers("parametrize")]
    rows = [re.findall(r"\w+", table) if isinstance(table, str) else table for table in tables]
    rows += [[name] for name in params if with_fixtures]
    return frozenset(repr([(name, params[name]) for name in row]) for row in rows)


def what_was_not_run(left_out: Mapping[str, int]) -> str:
    """Return a line about the tests of other circles, by their command; '' if there are none."""
    numbers = [f"{number} tests of '{command}'" for command, number in sorted(left_out.items())]
    return f"Not run: {', '.join(numbers)}." if numbers else ""


def skipped(reasons: Iterable[str]) -> list[str]:
    """Return a line for each reason why tests were skipped."""
    return [
        f"Skipped: {number} test{'s' * (number > 1)}: {reason}"
        for reason, number in collections.Counter(reasons).most_common()
    ]
