# SPDX-License-Identifier: Apache-2.0
"""The live servers of a VNF in a cloud, by VDU, each with what Nova and Heat say of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from container_update.model.objects import Json
from container_update.openstack import live as live_stacks
from container_update.openstack import vnfcs
from container_update.openstack import vnfm_records as stack_records
from container_update.openstack.client import Heat, reference
from container_update.openstack.vnfcs import VnfcServer
from container_update.package import hot
from container_update.package.hot import Place, StackBody
from container_update.vnfm.lcm.infrastructure.openstack import stack_name
from container_update.vnfm.lcm.operation_context import VnfRecord
from container_update.workloads.pod_state import Tone

_RUNS = "ACTIVE"
_PASSING = frozenset(
    {"BUILD", "HARD_REBOOT", "MIGRATING", "PASSWORD", "REBOOT", "REBUILD", "RESCUE", "RESIZE",
     "REVERT_RESIZE", "VERIFY_RESIZE"}
)  # fmt: skip
"""States of a server that another one follows; in all others but ACTIVE it stays out of service.

Source: Nova's API guide, "Server concepts".
"""
_STATES = {Tone.GOOD: "ok", Tone.BUSY: "changing", Tone.BAD: "bad"}


def vdus_of(
    instance_id: str, record: VnfRecord, vdus: Mapping[str, str], heat: Heat
) -> tuple[str, list[Json]]:
    """Return the name of the instance's stack, and the VDUs with the servers of all its stacks.

    One request for the stacks; for each of the instance's (two during a Blue-Green change) three;
    one for each server; one for each image, for its name; and Keystone's.
    """
    stacks = live_stacks.stacks_of(heat, stack_name(instance_id))
    recorded = record.info.get(stack_records.STACK)
    names = [str(s["stack_name"]) for s in sorted(stacks, key=lambda s: s["id"] != recorded)]
    by_vdu: dict[str, list[Json]] = {vdu_id: [] for vdu_id in vdus}
    for stack in stacks:
        top = reference(stack)
        body = StackBody(heat.template(top), files=heat.files(top))
        places = hot.places_in(body, vdus)
        resources = heat.resources(top, live_stacks.DEPTH)
        servers = vnfcs.members(resources, top, places)
        for vdu_id, place in places.items():
            of_vdu = [server for server in servers if server.vdu_id == vdu_id]
            heads = [r for r in resources if (vnfcs.stack_of(r) or top) == top]
            by_vdu[vdu_id] += _workload(heat, str(stack["stack_name"]), place, heads, of_vdu)
    first = names[0] if names else stack_name(instance_id)
    return first, [{"vduId": vdu_id, "workloads": each} for vdu_id, each in by_vdu.items()]


def _workload(
    heat: Heat, stack: str, place: Place, heads: Sequence[Json], servers: Sequence[VnfcServer]
) -> Iterator[Json]:
    """Yield the resource of a stack that is or contains a VDU's servers; nothing if it is gone."""
    for head in heads:
        if head["resource_name"] != place.head:
            continue
        entries = [_vnfc(heat, server) for server in servers]
        tones = [Tone(entry["tone"]) for entry in entries]
        tones.append(_heat_tone(head) or Tone.GOOD)
        yield {
            "object": f"{'Group' if place.grouped else 'Server'} {stack}/{place.head}",
            "state": _STATES[max(tones, key=list(_STATES).index)],
            "images": list(dict.fromkeys(image for e in entries for image in e["images"])),
            "desired": len(entries) if place.grouped else 1,
            "ready": tones[:-1].count(Tone.GOOD),
            "vnfcs": entries,
        }


def _vnfc(heat: Heat, server: VnfcServer) -> Json:
    resource = heat.resource(server.stack, server.resource) or {}
    attributes: Json = resource.get("attributes") or {}
    word, tone, problem = _state(resource, attributes)
    image = (attributes.get("image") or {}).get("id")  # a server that boots from a volume has none
    return {
        "name": server.name,
        "state": word,
        "tone": tone.value,
        "problem": problem,
        "restarts": 0,
        "images": [heat.image_name(str(image))] if image else [],
        "started": str(attributes.get("created") or resource.get("creation_time") or ""),
    }


def _state(resource: Json, attributes: Json) -> tuple[str, Tone, str]:
    """Return a server's state, tone and problem: by Heat while Heat acts on it, else by Nova."""
    nova, heat = str(attributes.get("status") or ""), str(resource.get("resource_status") or "")
    tone = _heat_tone(resource)
    if tone is Tone.BAD:
        return heat, tone, str(resource.get("resource_status_reason") or "")
    if nova and nova != _RUNS and nova not in _PASSING:
        return nova, Tone.BAD, str((attributes.get("fault") or {}).get("message") or "")
    if tone is Tone.BUSY or nova in _PASSING or not nova:
        return (nova if nova in _PASSING else heat or "GONE"), Tone.BUSY, ""
    return nova, Tone.GOOD, ""


def _heat_tone(resource: Json) -> Tone | None:
    """Return the tone of a resource by how its action ended; None where it ended well."""
    status = str(resource.get("resource_status") or "")
    tones = {"_FAILED": Tone.BAD, "_IN_PROGRESS": Tone.BUSY}
    return next((tone for ending, tone in tones.items() if status.endswith(ending)), None)
