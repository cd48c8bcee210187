# SPDX-License-Identifier: Apache-2.0
"""A strategy of another distribution is used by its name, without a change of this code."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from container_update import PackageError
from tests import one_by_one
from tests.functional.change_vnfpkg.conftest import kubernetes_site
from tests.functional.change_vnfpkg.kubernetes import KubernetesContractSite
from tests.functional.change_vnfpkg.site import V1, V2, Arguments
from tests.internals.core import main


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KubernetesContractSite]:
    """A VNF in a cluster."""
    with kubernetes_site("One-By-One", request, tmp_path) as contract_site:
        assert isinstance(contract_site, KubernetesContractSite)
        contract_site.instantiate(V1)
        yield contract_site


@pytest.fixture
def upgrade_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The upgrade types that the installed strategy was run for."""
    return one_by_one.install(tmp_path / "plugin", monkeypatch)


def type_change(site: KubernetesContractSite, upgrade_type: str) -> int:
    """Run the command and return its exit status."""
    arguments = [site.old, site.package(V2), "--upgrade-type", upgrade_type]
    return main(["change", *arguments, *site.command_options], io.StringIO())


def test_the_library_uses_an_installed_strategy(
    upgrade_types: list[str], site: KubernetesContractSite
) -> None:
    site.change(V2)
    assert site.is_at("v2")
    assert upgrade_types == ["One-By-One"]


def test_the_command_line_uses_an_installed_strategy_in_any_spelling(
    upgrade_types: list[str], site: KubernetesContractSite
) -> None:
    assert type_change(site, "ONE BY ONE") == 0
    assert site.is_at("v2")
    assert upgrade_types == ["ONE BY ONE"]


def test_an_upgrade_type_that_is_not_installed_is_refused_and_the_others_named(
    upgrade_types: list[str],
    site: KubernetesContractSite,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert type_change(site, "Big-Bang") == 64
    assert 'kubernetes: Blue-Green, Canary, One-By-One, RollingUpdate), found "Big-Bang"' in (
        capsys.readouterr().err
    )
    with pytest.raises(PackageError, match="Blue-Green, Canary, One-By-One, RollingUpdate"):
        site.change(V2, Arguments({"upgrade_type": "Big-Bang"}))
    assert site.is_at("v1")
    assert upgrade_types == []
