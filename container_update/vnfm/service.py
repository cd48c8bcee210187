# SPDX-License-Identifier: Apache-2.0
"""The service with all its parts: the module to read first.

    request -> api/ -> a row in the database, 202 -> workers -> lcm/perform -> the VIM -> the record

``service_context`` is what every part works with, ``states`` and ``store/rows`` what is stored,
``operations`` the life of an occurrence, ``lcm/`` what an operation does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import fields
from importlib.metadata import version

from fastapi import APIRouter, Depends, FastAPI
from fastapi.concurrency import run_in_threadpool

from container_update.cluster.private_file import make_private_folder
from container_update.model.options import GROUP, Options
from container_update.vnfm import metrics, page
from container_update.vnfm.api import (
    batches,
    document,
    instances,
    operations,
    packages,
    parts,
    subscriptions,
    vims,
)
from container_update.vnfm.http import authentication, error_responses, health, limits
from container_update.vnfm.notify.delivery import Notifier
from container_update.vnfm.service_context import ServiceContext
from container_update.vnfm.settings import Settings
from container_update.vnfm.store import liveness
from container_update.vnfm.store.database import Database
from container_update.vnfm.store.rows import PACKAGES
from container_update.vnfm.store.vault import Vault
from container_update.vnfm.view import routes as view
from container_update.vnfm.workers import Workers


class Service:
    """The VNFM: its context, its threads and its REST API.

    :raises ContainerUpdateError: its settings, keys or database cannot be used.
    """

    def __init__(self, settings: Settings, options: Options) -> None:
        make_private_folder(settings.folder)
        _write_options(settings, options)
        database = Database(settings.database)
        with database.explain_errors():
            lock = liveness.join(database, settings.members, settings.lock_seconds)
            database.upgrade()
        self.context = ServiceContext(
            settings=settings,
            options=options.for_vnfm(),
            database=database,
            vault=Vault(settings.key_path),
            process_lock=lock,
        )
        self.workers = Workers(self.context)
        self.notifier = Notifier(
            settings, database, self.context.vault, self.context.metrics.count_notification
        )
        self.link = authentication.OneTimeLink()
        self.app = self._app()

    def start(self) -> None:
        """Start the threads; the API answers once this has returned."""
        self.workers.start()
        self.notifier.start()

    def stop(self) -> None:
        """Stop the threads in the configured time; nothing that was accepted is lost."""
        self.workers.stop()
        self.notifier.stop()
        self.context.process_lock.leave()
        self.context.database.close()

    def _app(self) -> FastAPI:
        app = FastAPI(
            title="container-update VNFM",
            version=version("container-update"),
            summary="The parts of SOL003 and SOL005 that an update needs",
            docs_url=None,
            redoc_url=None,
            lifespan=self._lifespan,
        )
        authenticated = Depends(authentication.authenticator(self.context.settings))
        for router in self._routers():
            app.include_router(router, dependencies=[authenticated])
        checks: Mapping[str, health.Check] = {
            "database": health.Paced(lambda: health.answers(self.context.database)),
            "state_dir": health.Paced(lambda: health.has_room(self.context.settings.folder)),
            "workers": lambda: self.workers.is_alive,
            "notifier": lambda: self.notifier.is_alive,
            "lock": self.context.process_lock.holds,
        }
        app.include_router(health.router(checks))
        app.include_router(authentication.link_router(self.link))
        page.install(app)
        document.complete(app)
        error_responses.install(app)
        limits.install(app, self.context.settings)
        app.add_middleware(parts.add_version)
        metrics.install(app, self.context.metrics)
        return app

    def _routers(self) -> Iterator[APIRouter]:
        """Yield the resources that need a token."""
        context, workers = self.context, self.workers
        yield packages.router(context, workers)
        yield subscriptions.router(context, PACKAGES)
        yield parts.versions()
        for api in ("v1", "v2"):
            yield instances.router(context, workers, api)
            yield operations.router(context, workers, api)
            yield batches.router(context, workers, api)
            yield subscriptions.router(context, api)
        yield vims.router(context)
        yield view.router(context)
        size = context.settings.workers
        gauges = metrics.Gauges(context.database, lambda: workers.busy, size)
        yield metrics.router(context.metrics, gauges)

    @asynccontextmanager
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(self.start)
        yield
        await run_in_threadpool(self.stop)


def _write_options(settings: Settings, options: Options) -> None:
    """Write the options of updates to a file, from which the scripts of packages read them."""
    lines = [f"[{GROUP}]"]
    for option in fields(Options):
        value = getattr(options, option.name)
        text = ",".join(value) if isinstance(value, tuple) else value
        lines.append(f"{option.name} = {text}")
    (settings.folder / "options.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")
