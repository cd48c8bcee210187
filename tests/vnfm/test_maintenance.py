# SPDX-License-Identifier: Apache-2.0
"""``container-update db upgrade``, and the page about backups, whose lines are typed."""

from __future__ import annotations

import io
import os
import shutil
import stat
import subprocess
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pytest
from sqlalchemy import select

from container_update import Options
from tests.internals.core import main
from tests.internals.service import (
    Database,
    OperationRow,
    Service,
    Settings,
    VimRow,
    known_revisions,
    now,
    operations,
)
from tests.vnfm.later import later_version

NEWEST = known_revisions()[0]
PAGE = Path(__file__).parents[2] / "doc/source/vnfm.rst"


@dataclass
class Site:
    """A service that is stopped, with its database."""

    folder: Path
    url: str

    @property
    def settings(self) -> Settings:
        return Settings(state_dir=str(self.folder), database_url=self.url, auth="none")

    @cached_property
    def database(self) -> Database:
        return Database(self.settings.database)

    def upgrade(self) -> str:
        out = io.StringIO()
        where = ["--state-dir", str(self.folder), "--database-url", self.url]
        assert main(["vnfm", "db", "upgrade", *where[: None if self.url else 2]], out) == 0
        return out.getvalue()

    def add_vim(self, name: str) -> None:
        """Store something that can be recognized."""
        with self.database.writing() as session:
            session.add(
                VimRow(id=name, created=now(), name=name, is_default=False, body={}, sealed="")
            )
        self.database.close()

    def vims(self) -> set[str]:
        with self.database.reading() as session:
            names = set(session.scalars(select(VimRow.name)))
        self.database.close()
        return names

    def type(self, section: str) -> None:
        """Run what the page lets its reader type in a section, for this kind of database."""
        program = "sqlite3" if not self.url else "pg_dump"
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not on this machine")
        blocks = [
            lines.replace("   $ ", "").replace("   ", "").strip()
            for lines in _blocks(section)
            if ("pg_" in lines) == bool(self.url) or "stop.sql <<" in lines
        ]
        subprocess.run(
            ["sh", "-ec", "\n".join(blocks)],
            cwd=self.folder,
            env={**os.environ, "DATABASE_URL": self.url},
            check=True,
        )


def _blocks(section: str) -> list[str]:
    text = PAGE.read_text().partition(f"\n{section}\n=")[2].partition("\n====")[0]
    return [
        part.partition("\n\n")[2].split("\n\n")[0] for part in text.split(".. code-block::")[1:]
    ]


@pytest.fixture
def site(database: str, tmp_path: Path) -> Site:
    site = Site(tmp_path, database)
    site.upgrade()
    return site


def test_the_tables_are_upgraded_once(database: str, tmp_path: Path) -> None:
    site = Site(tmp_path, database)
    assert f"the tables were created ({NEWEST})" in site.upgrade()
    assert f"the tables have revision {NEWEST} already" in site.upgrade()
    site.add_vim("before")
    with later_version(tmp_path) as newest:
        assert f"the tables were upgraded from revision {NEWEST} to {newest}" in site.upgrade()
        assert site.database.revision() == newest
    assert site.vims() == {"before"}


def test_the_lines_of_the_page_bring_back_what_was_there(site: Site) -> None:
    site.add_vim("before")
    site.type("Back up")
    (backup,) = (path for name in ("vnfm.backup", "vnfm.dump") for path in site.folder.glob(name))
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    site.add_vim("later")
    site.type("Restore")
    assert site.vims() == {"before"}


def test_what_a_restored_database_has_at_work_goes_on_by_no_means_by_itself(site: Site) -> None:
    states = ("STARTING", "PROCESSING", "ROLLING_BACK", "COMPLETED", "FAILED_TEMP")
    with site.database.writing() as session:
        session.add_all(
            OperationRow(
                id=state, api="v2", instance_id=state, operation="HEAL", state=state,
                started=now(), entered=now(), params={}, sealed="", owner=None,
            )
            for state in states
        )  # fmt: skip
    site.database.close()
    site.type("Back up")
    site.type("Restore")
    service = Service(replace(site.settings, lock_seconds=0.0), Options()).context
    assert operations.take_over(service) == []
    with service.database.reading() as session:
        found = {row.id: row.state for row in session.scalars(select(OperationRow))}
    failed = dict.fromkeys(states[:3], "FAILED_TEMP")
    assert found == {**{state: state for state in states}, **failed}
    service.process_lock.leave()
    service.database.close()


def test_a_start_upgrades_tables_of_an_older_revision(tmp_path: Path) -> None:
    site = Site(tmp_path, "")
    site.upgrade()
    with later_version(tmp_path) as newest:
        service = Service(site.settings, Options())
        assert site.database.revision() == newest
    service.context.process_lock.leave()
    service.context.database.close()
