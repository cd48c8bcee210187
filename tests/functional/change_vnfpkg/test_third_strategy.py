"""A strategy that is installed beside ours is used by its name, without a line changed here."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from container_update.cli.main import main
from container_update.model.errors import PackageError
from tests import canary
from tests.functional.change_vnfpkg.conftest import kubernetes_site
from tests.functional.change_vnfpkg.kubernetes import KubernetesContractSite
from tests.functional.change_vnfpkg.site import INSTANCE, V1, V2, Ask


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KubernetesContractSite]:
    """A VNF in a cluster."""
    with kubernetes_site("Canary", request, tmp_path) as made:
        assert isinstance(made, KubernetesContractSite)
        made.instantiate(V1)
        yield made


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The upgrade types that the installed strategy was run for."""
    return canary.install(tmp_path / "canary", monkeypatch)


def type_change(site: KubernetesContractSite, upgrade_type: str) -> int:
    """Type the command; its exit status."""
    where = ["-n", site.namespace, "--kubeconfig", site.kubeconfig, "--instance-id", INSTANCE]
    arguments = [site.old, site.package(V2), "--upgrade-type", upgrade_type]
    return main(["change-vnfpkg", *arguments, *where], io.StringIO())


def test_the_library_uses_it(prepared: list[str], site: KubernetesContractSite) -> None:
    site.change(V2)
    assert site.is_at("v2")
    assert prepared == ["Canary"]


def test_the_command_line_uses_it_in_any_spelling(
    prepared: list[str], site: KubernetesContractSite
) -> None:
    assert type_change(site, "CANARY") == 0
    assert site.is_at("v2")
    assert prepared == ["Canary"]


def test_a_type_that_is_not_installed_is_refused_with_those_that_are(
    prepared: list[str],
    site: KubernetesContractSite,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert type_change(site, "Big-Bang") == 4
    assert 'kubernetes: Blue-Green, Canary, RollingUpdate), found "Big-Bang"' in (
        capsys.readouterr().err
    )
    with pytest.raises(PackageError, match="Blue-Green, Canary, RollingUpdate"):
        site.change(V2, Ask({"upgrade_type": "Big-Bang"}))
    assert site.is_at("v1")
    assert prepared == []
