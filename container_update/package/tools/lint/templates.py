# SPDX-License-Identifier: Apache-2.0
"""Rules about HEAT templates, which a package of virtual machines has instead of manifests."""

from __future__ import annotations

from collections.abc import Iterator

from container_update.model.errors import PackageError
from container_update.package import hot
from container_update.package.hot_files import base_hot
from container_update.package.tools.lint.finding import Finding
from container_update.package.tools.lint.subject import Subject, located
from container_update.package.vnfd import NODES, node_path


def templates(subject: Subject) -> Iterator[Finding]:
    """Check that each flavour has a top template, and exactly one server for each VDU."""
    if not subject.package.has_templates:
        return
    for flavour in subject.flavours:
        try:
            body = base_hot(subject.package, flavour.id)
            servers = [place for place, _ in hot.servers(body)]
        except PackageError as error:
            yield located(error, flavour.path)
            continue
        vdu_servers: set[hot.Place] = set()
        for vdu_id, name in flavour.vdus.items():
            places = hot.places_named(body, vdu_id, name)
            vdu_servers.update(places)
            if len(places) != 1:
                yield Finding.error(
                    subject.source(flavour, *node_path(vdu_id)),
                    f"{vdu_id} has {len(places) or 'no'} {hot.SERVER} in the templates of flavour"
                    f" {flavour.id}: expected exactly one",
                    f"name the resource of one server {vdu_id}, or set its property name to {name}",
                )
        for place in servers:
            if place not in vdu_servers:
                yield Finding.warning(
                    subject.source(flavour, *NODES),
                    f"the server {place} belongs to no VDU: it is not recorded and not updated",
                    "add a VDU with that name to the VNFD",
                )
