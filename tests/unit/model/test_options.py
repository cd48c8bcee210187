# SPDX-License-Identifier: Apache-2.0
"""The settings of an update: what they may be, and that a configuration file says the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from oslo_config import cfg

from container_update.model.options import Options
from container_update.model.plan import CHANGED_OBJECTS


def read(folder: Path, line: str) -> Options:
    """Return the options of a configuration file with this line."""
    path = folder / "container-update.conf"
    path.write_text(f"[container_update]\n{line}\n")
    conf = cfg.ConfigOpts()
    conf(args=[], default_config_files=[str(path)])
    return Options.from_conf(conf)


def test_a_choice_is_read_from_a_configuration_file(tmp_path: Path) -> None:
    assert read(tmp_path, f"restart_for = {CHANGED_OBJECTS}").restart_for == CHANGED_OBJECTS


def test_what_is_no_choice_is_refused_with_the_choices(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"changed-keys.*changed-objects"):
        read(tmp_path, "restart_for = keys")
    with pytest.raises(ValueError, match="restart_for: expected one of changed-keys, "):
        Options(restart_for="keys")
