# SPDX-License-Identifier: Apache-2.0
"""Which steps of a journal or a history are carried out or undone.

The rule is :mod:`container_update.planning.foreign_steps`; this module reads the objects for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from container_update.cluster.informer import Informer
from container_update.cluster.retry import RetryingReader
from container_update.cluster.scope import Scope
from container_update.model import errors
from container_update.model.objects import Collection, Json, ObjectKey
from container_update.model.plan import Action
from container_update.planning.foreign_steps import Owned
from container_update.planning.steps import ObjectStep
from container_update.planning.update import collections


@dataclass(frozen=True)
class Trust:
    """Tells which steps of a journal or a history are about the VNF instance."""

    cluster: RetryingReader
    owned: Owned

    def steps_of(
        self,
        steps: Sequence[ObjectStep],
        seen: Mapping[ObjectKey, Json | None],
        deletes: Action,
        source: str,
        *,
        next_step: errors.NextStep = errors.NextStep.NAME_PACKAGES,
    ) -> tuple[ObjectStep, ...]:
        """Return the steps that may be carried out or undone; see :class:`Owned`.

        :param seen: the live objects that were read already; None: there is none.
        :param source: the name of what the steps are read from, for the message.
        :param next_step: of the error.
        :raises PlanError: a step is about an object that is not known to be the VNF's.
        """
        keys = [key for key in self.owned.unknown(steps) if key not in seen]
        with Informer(self.cluster, Scope(keys)) as informer:
            listed = collections(keys).intersection(map(Collection.of, keys))
            read = informer.read(keys, listed)
        live = {**read, **{key: body for key, body in seen.items() if body is not None}}
        trusted, foreign = self.owned.trusted_steps(steps, live, deletes)
        if foreign:
            more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
            raise errors.PlanError(
                f"{source}: expected steps about objects of this VNF instance, found one about "
                f"{foreign[0]}{more}. No package of this request describes that object with this "
                "content, and the object is not known to be the instance's: an account that may "
                "create Secrets there may have written the step. Nothing was written",
                next_step=next_step,
            )
        return trusted
