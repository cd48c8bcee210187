# SPDX-License-Identifier: Apache-2.0
"""How a deployment flavour is scaled: aspects, instantiation levels, numbers of instances. Pure.

Source: ETSI GS NFV-SOL 001, 6.10: ScalingAspects, VduScalingAspectDeltas, VduInitialDelta,
InstantiationLevels, VduInstantiationLevels, and the VduProfile of 6.8.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from container_update.model.errors import PackageError

_POLICY = "tosca.policies.nfv."

SCALE_OUT = "SCALE_OUT"
"""The ScaleVnfRequest's type for more instances; the other one is SCALE_IN."""


@dataclass(frozen=True)
class Aspect:
    """A scaling aspect."""

    max_level: int
    deltas: Mapping[str, Sequence[int]]
    """VDU to the instances that each step out adds: the first is the one from level 0 to 1."""


@dataclass(frozen=True)
class Level:
    """An instantiation level."""

    scale_levels: Mapping[str, int]
    """Aspect to scale level."""
    instances: Mapping[str, int]
    """VDU to number of instances."""


@dataclass(frozen=True)
class Scaling:
    """What a flavour says about scaling; empty where it says nothing."""

    aspects: Mapping[str, Aspect] = field(default_factory=dict)
    levels: Mapping[str, Level] = field(default_factory=dict)
    default_level: str = ""
    limits: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)
    """VDU to the least and the greatest number of its instances."""

    @classmethod
    def of(cls, policies: object, profiles: Mapping[str, Mapping[str, Any]]) -> Scaling:
        """Read the policies of a topology.

        :param policies: ``topology_template.policies``, as the VNFD writes it.
        :param profiles: VDU to its ``vdu_profile``.
        """
        read = _Policies(policies)
        aspects = dict(read.aspects())
        return cls(
            aspects,
            dict(read.levels(aspects)),
            read.default_level(),
            {
                vdu: (
                    _number(profile.get("min_number_of_instances")),
                    _number(profile.get("max_number_of_instances")),
                )
                for vdu, profile in profiles.items()
            },
        )

    def level(self, level_id: str | None) -> Level:
        """Return an instantiation level, None: the default one, or raise PackageError."""
        if level_id is None:
            first = dict.fromkeys(self.aspects, 0)
            return self.levels.get(self.default_level) or Level(first, {})
        if level_id not in self.levels:
            known = ", ".join(self.levels) or "none"
            raise PackageError(
                "instantiationLevelId: expected an instantiation level of the flavour (the VNFD "
                f"has {known}), found {level_id}"
            )
        return self.levels[level_id]

    def scaled_level(self, aspect_id: str, level: int, steps: int) -> int:
        """Return the level of an aspect after *steps* out, or in where negative, or refuse them."""
        aspect = self.aspects.get(aspect_id)
        if aspect is None:
            known = ", ".join(self.aspects) or "none"
            raise PackageError(
                f"aspectId: expected a scaling aspect of the flavour (the VNFD has {known}), found "
                f"{aspect_id}"
            )
        if not 0 <= level + steps <= aspect.max_level:
            raise PackageError(
                f"numberOfSteps: {aspect_id} is at scale level {level}, expected a level from 0 to "
                f"{aspect.max_level} after the operation, found {level + steps}"
            )
        return level + steps

    def scaled_instances(
        self, aspect_id: str, level: int, steps: int, now: Mapping[str, int]
    ) -> dict[str, int]:
        """Return the number of instances of each VDU that an aspect scales, after *steps*.

        :param level: of the aspect now.
        :param now: VDU to its number of instances now.
        :raises PackageError: as :meth:`scaled_level`, or a VDU's profile does not allow its number.
        """
        after = self.scaled_level(aspect_id, level, steps)
        low, high = sorted((level, after))
        numbers = {}
        for vdu, deltas in self.aspects[aspect_id].deltas.items():
            number = now.get(vdu, 0) + sum(deltas[low:high]) * (1 if steps > 0 else -1)
            least, most = self.limits.get(vdu, (None, None))
            if number < (least or 0) or (most is not None and number > most):
                raise PackageError(
                    f"numberOfSteps: {vdu} would have {number} instances, expected "
                    f"{least or 0} to {'any number' if most is None else most} (its vdu_profile)"
                )
            numbers[vdu] = number
        return numbers


class _Policies:
    """The policies of a topology, by their types."""

    def __init__(self, policies: object) -> None:
        entries = policies if isinstance(policies, list) else [policies]
        self._policies = [
            policy
            for entry in entries
            if isinstance(entry, dict)
            for policy in entry.values()
            if isinstance(policy, dict)
        ]

    def _of(self, kind: str) -> Iterator[tuple[Mapping[str, Any], Sequence[str]]]:
        """Yield properties and targets of each policy of a type."""
        for policy in self._policies:
            if policy.get("type") == _POLICY + kind:
                yield _mapping(policy.get("properties")), policy.get("targets") or ()

    def aspects(self) -> Iterator[tuple[str, Aspect]]:
        """Yield each scaling aspect by its id."""
        for properties, _ in self._of("ScalingAspects"):
            for name, aspect in _mapping(properties.get("aspects")).items():
                most = _number(_mapping(aspect).get("max_scale_level")) or 0
                step_ids = _mapping(aspect).get("step_deltas") or ()
                yield name, Aspect(most, dict(self._deltas(name, most, step_ids)))

    def _deltas(
        self, aspect_id: str, steps: int, step_ids: Sequence[str]
    ) -> Iterator[tuple[str, Sequence[int]]]:
        for properties, vdus in self._of("VduScalingAspectDeltas"):
            by_id = _numbers(properties.get("deltas"))
            if properties.get("aspect") != aspect_id or not by_id:
                continue
            # one step delta stands for every step; one that has no number here is the VDU's first
            ids = [*step_ids, *[step_ids[-1] if step_ids else ""] * steps][:steps]
            first = next(iter(by_id.values()))
            for vdu in vdus:
                yield vdu, tuple(by_id.get(step_id, first) for step_id in ids)

    def levels(self, aspects: Mapping[str, Aspect]) -> Iterator[tuple[str, Level]]:
        """Yield each instantiation level by its id."""
        for properties, _ in self._of("InstantiationLevels"):
            for level_id, level in _mapping(properties.get("levels")).items():
                info = _mapping(_mapping(level).get("scale_info"))
                scale_levels = {
                    name: _number(_mapping(info.get(name)).get("scale_level")) or 0
                    for name in aspects
                }
                yield level_id, Level(scale_levels, self._instances(level_id, aspects, info))

    def _instances(
        self, level_id: str, aspects: Mapping[str, Aspect], info: Mapping[str, Any]
    ) -> dict[str, int]:
        """Return the numbers of instances: as the level says for a VDU, else by its aspects."""
        numbers: dict[str, int] = {}
        for properties, vdus in self._of("VduInitialDelta"):
            initial = _number(_mapping(properties.get("initial_delta")).get("number_of_instances"))
            numbers |= dict.fromkeys(vdus, initial) if initial is not None else {}
        for name, aspect in aspects.items():
            level = _number(_mapping(info.get(name)).get("scale_level")) or 0
            for vdu in aspect.deltas.keys() & numbers.keys():
                numbers[vdu] += sum(aspect.deltas[vdu][:level])
        for properties, vdus in self._of("VduInstantiationLevels"):
            stated = _numbers(properties.get("levels")).get(level_id)
            numbers |= dict.fromkeys(vdus, stated) if stated is not None else {}
        return numbers

    def default_level(self) -> str:
        """Return the default instantiation level, as the only one is (SOL001); '' for none."""
        for properties, _ in self._of("InstantiationLevels"):
            levels = list(_mapping(properties.get("levels")))
            return str(properties.get("default_level") or (levels[0] if len(levels) == 1 else ""))
        return ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _numbers(value: object) -> dict[str, int]:
    """Return ``number_of_instances`` of each entry that has one."""
    numbers = {
        name: _number(_mapping(entry).get("number_of_instances"))
        for name, entry in _mapping(value).items()
    }
    return {name: number for name, number in numbers.items() if number is not None}


def _number(value: object) -> int | None:
    """Return a number; None for a value that only the inputs of an instance determine."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
