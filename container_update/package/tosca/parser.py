# SPDX-License-Identifier: Apache-2.0
"""Parse the topologies of VNFDs with toscaparser: the program of a child process with limits.

It reads one JSON value from each line of standard input and answers with one of standard output,
see :func:`answer`. Imports nothing of this project: it has to start quickly.
"""

from __future__ import annotations

import json
import math
import resource
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

OUT_OF_MEMORY, TOO_LONG = 3, 4
"""Exit statuses."""

_LARGEST_ANSWER = 16 * 1024 * 1024
_PROBLEMS = 3
_VNF = "tosca.nodes.nfv.VNF"
_VDUS = ("tosca.nodes.nfv.Vdu.Compute", "tosca.nodes.nfv.Vdu.OsContainerDeployableUnit")


def main(seconds: float, size: int) -> None:
    """Answer the requests on standard input, until its end.

    :param seconds: of processor time for each; SIGPROF ends this process after them, whatever it
        does.
    :param size: of its memory, in bytes.
    """
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    _limit(resource.RLIMIT_DATA, size)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    try:
        import toscaparser.topology_template  # noqa: F401, PLC0415, while the request is awaited

        while request := sys.stdin.readline():
            signal.setitimer(signal.ITIMER_PROF, seconds)
            until = math.ceil(time.process_time() + seconds) + 1
            _limit(resource.RLIMIT_CPU, until, rises=True)  # where our parent has blocked SIGPROF
            text = json.dumps(answer(json.loads(request)), default=_unknown)
            if len(text) > _LARGEST_ANSWER:
                sys.exit(TOO_LONG)
            print(text, flush=True)
    except MemoryError:
        sys.exit(OUT_OF_MEMORY)


def _limit(kind: int, value: int, *, rises: bool = False) -> None:
    allowed = resource.getrlimit(kind)[1]
    value = value if allowed == resource.RLIM_INFINITY else min(value, allowed)
    resource.setrlimit(kind, (value, allowed if rises else value))


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the topologies, or the path of the file with a problem, and the problem.

    :param request: ``types``, by section; ``top`` and ``nested``: topology templates by the paths
        of their files. Nested ones substitute nodes of those at the top.
    """
    path = ""
    try:
        parsed = {}
        for path, template in request["top"].items():
            parsed[path] = _parse(template, request["types"], {})
        if request["nested"]:
            abstract = {node.type: node for top in parsed.values() for node in top.nodetemplates}
            parsed = {}
            for path, template in request["nested"].items():
                parsed[path] = _parse(template, request["types"], abstract)
        topologies = []
        for path, topology in parsed.items():
            topologies.append({"path": path, **_facts(topology)})
    except MemoryError:
        raise
    except _ProblemError as error:
        return {"path": path, "problem": str(error)}
    except Exception as error:  # noqa: BLE001, toscaparser raises errors of any kind
        return {"path": path, "problem": f"{type(error).__name__}: {error}"}
    return {"topologies": topologies}


class _ProblemError(Exception):
    """toscaparser found problems."""


def _parse(template: Any, types: Mapping[str, Any], abstract: Mapping[str, Any]) -> Any:
    """Return a topology; its inputs are the properties of the node above that it substitutes."""
    from toscaparser.common.exception import ExceptionCollector  # noqa: PLC0415, within the limits
    from toscaparser.topology_template import TopologyTemplate  # noqa: PLC0415, within the limits

    node_type = (template.get("substitution_mappings") or {}).get("node_type", "")
    substituted = abstract.get(node_type)
    properties = substituted.get_properties() if substituted else {}
    inputs = {name: property_.value for name, property_ in properties.items()}
    definitions = {name: type_ for section in types.values() for name, type_ in section.items()}
    ExceptionCollector.start()
    try:
        parsed = TopologyTemplate(
            template, definitions, types.get("relationship_types", {}), inputs, substituted
        )
    finally:
        ExceptionCollector.stop()
    if problems := ExceptionCollector.getExceptionsReport(False):
        raise _ProblemError("; ".join(problems[:_PROBLEMS]))
    return parsed


def _facts(topology: Any) -> dict[str, Any]:
    mappings = topology.substitution_mappings
    return {
        "mapped": (mappings.properties if mappings else None) or {},
        "nodes": list(_nodes(topology)),
        "policies": topology.tpl.get("policies"),
    }


def _nodes(topology: Any) -> Iterator[dict[str, Any]]:
    for node in topology.nodetemplates:
        yield {
            "name": node.name,
            "is_vnf": bool(node.is_derived_from(_VNF)),
            "is_vdu": any(node.is_derived_from(vdu_type) for vdu_type in _VDUS),
            "properties": {name: node.get_property_value(name) for name in node.get_properties()},
            "template": node.entity_tpl,
        }


def _unknown(_: object) -> None:
    """Return what stands for a value that only the inputs of an instance determine."""
