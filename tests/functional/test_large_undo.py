# SPDX-License-Identifier: Apache-2.0
"""What an undo does for each object does not grow with the number of objects."""

from __future__ import annotations

from unittest import mock

import pytest

from container_update import UpdateFailedError, install
from tests.functional.cnf import BAD_IMAGE, Cnf
from tests.functional.manifests import workload
from tests.internals.core import ManifestStep

NUMBER = 30
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: s%d}\nspec: {ports: [{port: 80}]}\n"


def test_an_undo_does_not_compare_each_step_with_all_others(cnf: Cnf) -> None:
    services = "---\n".join(SERVICE % number for number in range(NUMBER))
    package = cnf.package({"s.yaml": services, "w.yaml": workload("Deployment", image=BAD_IMAGE)})
    compared = mock.Mock(wraps=ManifestStep.__eq__)

    def is_same(one: ManifestStep, other: object) -> object:
        return compared(one, other)

    with mock.patch.object(ManifestStep, "__eq__", is_same), pytest.raises(UpdateFailedError):
        install(package, cnf.admin, options=cnf.options, **cnf.where)
    assert compared.call_count < 2 * NUMBER
