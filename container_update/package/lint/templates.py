"""Rules about HEAT templates: a package of virtual machines has them in the place of manifests."""

from __future__ import annotations

from collections.abc import Iterator

from container_update.model.errors import PackageError
from container_update.package import hot
from container_update.package.hot_files import base_hot
from container_update.package.lint.finding import Finding
from container_update.package.lint.subject import Subject, located


def templates(subject: Subject) -> Iterator[Finding]:
    """Each flavour has one tree of templates, with one server for each VDU."""
    if not subject.has_templates:
        return
    for flavour in subject.flavours:
        try:
            body = base_hot(subject.package, flavour.id, subject.package.settings.yaml)
            servers = [place for place, _ in hot.servers(body)]
        except PackageError as error:
            yield located(error, flavour.path)
            continue
        claimed: set[hot.Place] = set()
        for vdu_id, name in flavour.vdus.items():
            places = hot.places_named(body, vdu_id, name)
            claimed.update(places)
            if len(places) != 1:
                yield Finding.error(
                    flavour.path,
                    f"{vdu_id} has {len(places) or 'no'} {hot.SERVER} in the templates of flavour"
                    f" {flavour.id}: what it runs on is not known",
                    f"name one server's resource {vdu_id}, or give it the property name: {name}",
                )
        for place in servers:
            if place not in claimed:
                yield Finding.warning(
                    flavour.path,
                    f"the server {place} belongs to no VDU: it is not recorded and not updated",
                    "add a VDU with that name to the VNFD",
                )
