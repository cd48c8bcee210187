"""Which items of a list are answered, and which of their attributes: SOL013 clauses 5.2 and 5.3.

Pure. :func:`select` is what the handlers of lists call. The parameters of clause 5.3:

======================================  =========================================================
none, or ``exclude_default``            all but the attributes that are hidden by default
``all_fields``                          all
``fields=a,b/c``                        the required ones and these
``fields=a,b/c`` and ``exclude_default``  all but the hidden ones, and these
``exclude_fields=a,b/c``                all but these; a required one stays
======================================  =========================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from container_update.model.objects import Json
from container_update.vnfm.api import query_filters
from container_update.vnfm.problems import ProblemError

MOST_FIELDS = 64
PARAMETERS = frozenset({"all_fields", "fields", "exclude_fields", "exclude_default"})
_TOGETHER = tuple(
    frozenset(names)
    for names in (
        set[str](),
        {"all_fields"},
        {"fields"},
        {"fields", "exclude_default"},
        {"exclude_fields"},
        {"exclude_default"},
    )
)

Paths = dict[str, Any]
"""Attribute to what is named below it; an empty one means all of it."""


@dataclass(frozen=True)
class Attributes:
    """What the specification says of the attributes of a resource."""

    required: frozenset[str] = frozenset()
    """Those with a lowest cardinality of one: in every answer."""
    hidden: tuple[str, ...] = ()
    """Paths that are left out where nothing is asked for."""


def select(
    bodies: Iterable[Json], query: Mapping[str, str], attributes: Attributes | None = None
) -> list[Json]:
    """Return the bodies that ``filter`` finds, with the attributes that the selectors leave.

    :param query: the request's query parameters; others than those of clause 5 are left alone.
    :raises ProblemError: 400: a parameter is wrong, or two of them exclude each other.
    """
    narrow = Selector.of(query, attributes or Attributes())
    return [narrow.apply(body) for body in query_filters.find(bodies, query.get("filter"))]


@dataclass(frozen=True)
class Selector:
    """The attributes that are kept, of those the ones that are dropped; None keeps all."""

    keep: Paths | None
    drop: Paths

    @classmethod
    def of(cls, query: Mapping[str, str], attributes: Attributes) -> Selector:
        """Return what the parameters say.

        :raises ProblemError: 400: a parameter is wrong, or two of them exclude each other.
        """
        given = PARAMETERS & query.keys()
        if given not in _TOGETHER:
            raise ProblemError(
                400,
                f"{', '.join(sorted(given))} exclude each other: only fields and exclude_default "
                "go together (SOL013 clause 5.3)",
            )
        listed = _listed(query, "fields")
        if "all_fields" in given:
            return cls(None, {})
        if "exclude_fields" in given:
            excluded = _listed(query, "exclude_fields")
            return cls(None, _paths(p for p in excluded if p[0] not in attributes.required))
        if given == {"fields"}:
            return cls(_paths([*listed, *([name] for name in attributes.required)]), {})
        hidden = (query_filters.path_of(path) for path in attributes.hidden)
        return cls(None, _paths(path for path in hidden if not _asked(path, listed)))

    def apply(self, body: Json) -> Json:
        """Return the body with only these attributes; the given one is left as it is."""
        kept = body if self.keep is None else _kept(body, self.keep)
        return dict(_without(kept, self.drop))


def _listed(query: Mapping[str, str], name: str) -> list[list[str]]:
    if name not in query:
        return []
    paths = query[name].split(",")
    if len(paths) > MOST_FIELDS:
        raise ProblemError(
            400, f"{name}: expected at most {MOST_FIELDS} attributes, found {len(paths)}"
        )
    return [query_filters.path_of(path) for path in paths]


def _asked(path: list[str], listed: list[list[str]]) -> bool:
    """Whether a path, what is above it or what is below it is listed."""
    return any(path[: len(other)] == other[: len(path)] for other in listed)


def _paths(paths: Iterable[list[str]]) -> Paths:
    """Return the paths as a tree; what is named as a whole stays whole."""
    root: Paths = {}
    for path in sorted(paths, key=len, reverse=True):
        branch = root
        for name in path[:-1]:
            branch = branch.setdefault(name, {})
        branch[path[-1]] = {}
    return root


def _kept(found: Any, paths: Paths) -> Any:
    if not paths:
        return found
    if isinstance(found, list):
        return [_kept(entry, paths) for entry in found]
    if isinstance(found, dict):
        return {name: _kept(found[name], below) for name, below in paths.items() if name in found}
    return found


def _without(found: Any, paths: Paths) -> Any:
    if not paths:
        return found
    if isinstance(found, list):
        return [_without(entry, paths) for entry in found]
    if not isinstance(found, dict):
        return found
    dropped = {name for name, below in paths.items() if not below}
    return {
        name: _without(value, paths.get(name, {}))
        for name, value in found.items()
        if name not in dropped
    }
