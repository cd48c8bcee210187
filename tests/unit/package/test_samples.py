"""The samples: where they lie."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

from container_update.model.errors import ContainerUpdateError
from container_update.package import samples

CHECKOUT = Path(__file__).parents[3] / "samples"


def test_a_checkout_that_is_installed_in_place_has_its_own_samples() -> None:
    assert samples.root().resolve() == CHECKOUT


def test_samples_that_are_not_installed_are_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def files(package: str) -> None:
        raise ModuleNotFoundError(package)

    monkeypatch.setattr(resources, "files", files)
    with pytest.raises(ContainerUpdateError, match="samples are not installed: run 'pip install"):
        samples.root()
