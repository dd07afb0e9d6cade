"""What the OpenAPI document says about bodies and queries, which no handler reads into types.

Contract: bodies are described as openly as they are read, to the depth at which a wrong type is sure to be refused;
fields that are not named here are left to the readers in `tutti.recommend.wire`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tutti.recommend.records.request import Binder, Objective, Strategy
from tutti.serve.http.query import WEIGHTS
from tutti.serve.openapi import examples
from tutti.wire.tutti_api.request import Body

Tree = dict[str, Any]

_TEXT: Tree = {"type": ["string", "null"]}
_NUMBER: Tree = {"type": ["integer", "null"], "minimum": 0, "maximum": 2**31 - 1}
_TEXTS: Tree = {"type": ["array", "null"], "items": {"type": "string"}}
_MAP: Tree = {"type": ["object", "null"]}


def _ref(name: str) -> Tree:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(**properties: Tree) -> Tree:
    return {"type": ["array", "null"], "items": {"type": "object", "properties": properties}}


_SNAPSHOT: Tree = {
    "type": "object",
    "description": "What Gardener's scaling recommender takes: Go's names, in any case.",
    "properties": {
        "ID": _TEXT,
        "SnapshotTime": _TEXT,
        "AutoscalerConfig": {
            "type": ["object", "null"],
            "properties": {"NodeTemplates": _MAP, "NodeGroups": _MAP, "CASettings": _MAP},
        },
        "WorkerPools": _list(Name=_TEXT, MachineType=_TEXT, Minimum=_NUMBER, Maximum=_NUMBER, Zones=_TEXTS),
        "PriorityClasses": _list(),
        "Pods": _list(Name=_TEXT, Namespace=_TEXT, NodeName=_TEXT, Labels=_MAP, Requests=_MAP, Spec=_MAP),
        "Nodes": _list(Name=_TEXT, Labels=_MAP, Allocatable=_MAP, Capacity=_MAP),
    },
}
_PLANNER: Tree = {
    "type": "object",
    "description": "What the planner of gardener/scaling-advisor takes: Go's names, in any case.",
    "properties": {
        "id": _TEXT,
        "correlationID": _TEXT,
        "constraint": {"type": "object", "description": "A ScalingConstraint of sa.gardener.cloud/v1alpha1."},
        "simulatorStrategy": _TEXT,
        "scoringStrategy": _TEXT,
        "adviceGenerationMode": _TEXT,
        "AdviceGenerationTimeout": {"type": ["integer", "null"], "minimum": 0, "maximum": 2**63 - 1},
        "snapshot": {
            "type": ["object", "null"],
            "properties": {"pods": _list(name=_TEXT, namespace=_TEXT), "nodes": _list(name=_TEXT, labels=_MAP)},
        },
    },
    "required": ["constraint"],
}
_OURS: Tree = {
    "description": "A cluster in one of the forms that Tutti reads, told apart by the first level.",
    "anyOf": [
        _ref("Body"),
        {
            "type": "object",
            "description": "Kubernetes objects as kubectl prints them, a ClusterSnapshot, a planner request of "
            "scaling-advisor, or a scenario file.",
        },
    ],
}


def schemas() -> Tree:
    """The bodies by name, with everything that they refer to."""
    _, found = msgspec.json.schema_components((Body,), ref_template="#/components/schemas/{name}")
    return {**found, "ClusterSnapshot": _SNAPSHOT, "PlannerRequest": _PLANNER}


def _body(schema: Tree, bodies: dict[str, Tree]) -> Tree:
    shown = {name.replace(" ", "-"): {"summary": name, "value": value} for name, value in bodies.items()}
    return {"required": True, "content": {"application/json": {"schema": schema, "examples": shown}}}


BODIES = {
    "/recommend": _body(_ref("ClusterSnapshot"), examples.GARDENER),
    "/v1/recommendations": _body(_OURS, examples.OURS),
    "/v1/plans": _body(_ref("PlannerRequest"), examples.PLANNER),
}


def parameters(longest: float) -> list[Tree]:
    """The query; `longest` is the most seconds that it may ask for."""
    seconds = {"type": "number", "exclusiveMinimum": 0, "maximum": longest}
    return [
        _parameter("objective", _words(*Objective), "Of the plans with most pods, the best has least of this."),
        _parameter("strategy", _words(*Strategy), "How nodes are chosen: all at once, or one by one by a score."),
        _parameter("binder", _words(*Binder), "Who will put the pods on the new nodes."),
        _parameter("weights", {"type": "string", "pattern": WEIGHTS}, "What a core, a GiB and a GPU are worth."),
        _parameter("timeLimit", seconds, "Seconds for the search, by counting its work."),
        _parameter("down", {"type": "boolean"}, "Whether to look for nodes that can go."),
    ]


def _parameter(name: str, schema: Tree, description: str) -> Tree:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": description}


def _words(*words: str) -> Tree:
    return {"type": "string", "enum": list(words)}
