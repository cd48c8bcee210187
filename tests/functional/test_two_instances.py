# SPDX-License-Identifier: Apache-2.0
"""Two VNF instances of one namespace that are installed at the same time."""

from __future__ import annotations

from typing import Any

import pytest

from container_update import UpdateFailedError, install
from tests.functional.cnf import BAD_IMAGE, INSTANCE, Cnf
from tests.functional.manifests import config_map, workload

OTHER = "another"


class Slow:
    """A client before whose first creation of a ConfigMap something else happens."""

    def __init__(self, cluster: Any, before: Any) -> None:
        self._cluster, self._before = cluster, before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def create(self, body: Any) -> Any:
        """Create an object."""
        if body["kind"] == "ConfigMap":
            self._before()
            self._before = lambda: None
        return self._cluster.create(body)


def test_the_configuration_of_the_other_one_is_not_taken_for_its_own(cnf: Cnf) -> None:
    settings = config_map(setting="a")
    first = cnf.package({"cm.yaml": settings})
    second = cnf.package({"cm.yaml": settings, "w.yaml": workload("Deployment", image=BAD_IMAGE)})

    def install_other() -> None:
        install(first, cnf.admin, namespace=cnf.namespace, instance_id=OTHER, options=cnf.options)

    slow: Any = Slow(cnf.admin, install_other)
    with pytest.raises(UpdateFailedError, match="cm was created by another client"):
        install(second, slow, options=cnf.options, **cnf.where)
    labels = cnf.get("ConfigMap", "cm")["metadata"]["labels"]
    assert labels["tacker_vnf_instance_id"] == OTHER != INSTANCE
