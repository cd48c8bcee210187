# SPDX-License-Identifier: Apache-2.0
"""What a VNF instance runs from. With it an operation needs no old package. It is kept with the
operation that led there. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from container_update.cluster import operation_schema as schemas
from container_update.model.errors import PlanError
from container_update.model.objects import Json, Manifest, Source
from container_update.model.packing import DAMAGED, pack, unpack
from container_update.model.plan import Plan
from container_update.model.requests import PackageIdentity

_LARGEST = 8_000_000
"""Compressed bytes of the manifests; beyond it only the identities of the objects are kept. The
journal has them too, and most of its room is for what the operation does."""


@dataclass(frozen=True)
class InstanceRecord:
    """What a VNF instance runs from.

    >>> record = InstanceRecord(None, (), ("Files/web.yaml",))
    >>> InstanceRecord.decode(record.encode("cnf")) == record
    True
    """

    package: PackageIdentity | None
    """None where it is not known."""
    manifests: tuple[Manifest, ...] = field(repr=False)
    """In force, under the names that the package gives; see :attr:`is_whole`."""
    def_files: tuple[str, ...] = ()
    vdus: Mapping[str, str] = field(default_factory=dict)
    """VDU id to the name of its workload in the manifests."""
    is_whole: bool = True
    """False: the manifests are too large to be kept, only their identities are known."""

    @classmethod
    def of(cls, plan: Plan) -> InstanceRecord:
        """Return the record of an instance once a plan is carried out."""
        package = plan.packages[-1] if plan.packages else None
        return cls(
            package, tuple(map(_restore_name, plan.manifests)), plan.def_files, dict(plan.vdus)
        )

    @property
    def by_path(self) -> dict[str, tuple[Manifest, ...]]:
        """The manifests by their def-file."""
        files: dict[str, tuple[Manifest, ...]] = {}
        for manifest in self.manifests:
            path = manifest.source.path
            files[path] = (*files.get(path, ()), manifest)
        return files

    def encode(self, namespace: str) -> bytes:
        """Return the record as compressed bytes.

        Who may read Secrets in one namespace is to learn nothing of another one's: of a Secret of
        another namespace only the names of its keys are kept.

        :param namespace: where the bytes are kept.
        :returns: empty where even the identities are too large.
        """
        whole = [_body(manifest, namespace) for manifest in self.manifests]
        for bodies in (whole, [None] * len(whole)):
            with contextlib.suppress(PlanError):  # it is too large
                data = self._bytes(bodies)
                if len(data) <= _LARGEST:
                    return data
        return b""

    def _bytes(self, bodies: Sequence[Json | None]) -> bytes:
        values = {
            "package": self.package and asdict(self.package),
            "manifests": [
                [manifest.key.as_dict(), manifest.source.path, manifest.source.line, body]
                for manifest, body in zip(self.manifests, bodies, strict=True)
            ],
            "defFiles": list(self.def_files),
            "vdus": dict(self.vdus),
        }
        return pack(values)

    @classmethod
    def decode(cls, data: bytes) -> InstanceRecord:
        """Return the record of :meth:`encode`.

        :raises ValueError: another client wrote it.
        """
        try:
            return cls._of(unpack(data))
        except DAMAGED as error:
            raise ValueError("is damaged") from error

    @classmethod
    def _of(cls, values: Json) -> InstanceRecord:
        schemas.refuse_other(schemas.INSTANCE, values)
        entries, package = values["manifests"], values.get("package")
        vdus = dict(values["vdus"])
        for key, _, _, body in entries:
            schemas.refuse_other_object(schemas.object_key(key), body)
        return cls(
            package and PackageIdentity(**package),
            tuple(
                Manifest(schemas.object_key(key), dict(body or {}), Source(path, line))
                for key, path, line, body in entries
            ),
            tuple(values["defFiles"]),
            vdus,
            all(body is not None for *_, body in entries),
        )


def _restore_name(manifest: Manifest) -> Manifest:
    """Return a manifest under its own name, whatever name its object has in the cluster."""
    key, name = manifest.key, str(manifest.body["metadata"]["name"])
    return manifest if key.name == name else replace(manifest, key=replace(key, name=name))


def _body(manifest: Manifest, namespace: str) -> Json:
    body, key = manifest.body, manifest.key
    if key.kind != "Secret" or key.namespace == namespace:
        return body
    names = [*(body.get("data") or ()), *(body.get("stringData") or ())]
    kept = {name: value for name, value in body.items() if name != "stringData"}
    return {**kept, "data": dict.fromkeys(names, "")}
