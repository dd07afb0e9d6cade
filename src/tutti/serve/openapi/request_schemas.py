"""Request bodies in the OpenAPI document: their schemas, made from the types that read them, and examples.

Contract: the schema of a ``/v1/recommendations`` body is that of `Body`. The readers of the other two formats accept
names in any case and names that they do not know, so their schemas stay open and have the fields of `_SHOWN_FIELDS`
only; the types of these fields come from the reader's types.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect

from tutti.serve.openapi import examples
from tutti.wire.gardener import schema as gardener
from tutti.wire.scaling_advisor import schema as scaling_advisor
from tutti.wire.tutti_api.request import Body

Tree = dict[str, Any]
COMPONENTS = "#/components/schemas/"
_TYPES: dict[type[inspect.Type], str] = {
    inspect.StrType: "string",
    inspect.IntType: "integer",
    inspect.ListType: "array",
    inspect.DictType: "object",
    inspect.StructType: "object",
}
_SHOWN_FIELDS: dict[type[msgspec.Struct], str] = {
    gardener.GardenerSnapshotText: "ID SnapshotTime AutoscalerConfig WorkerPools PriorityClasses Pods Nodes",
    gardener.AutoscalerText: "NodeTemplates NodeGroups CASettings",
    gardener.WorkerPoolText: "Name MachineType Minimum Maximum Zones",
    gardener.PriorityClassText: "",
    gardener.GardenerPodText: "Name Namespace NodeName Labels Requests Spec",
    gardener.GardenerNodeText: "Name Labels Allocatable Capacity",
    scaling_advisor.PlannerText: "id correlationID constraint simulatorStrategy scoringStrategy adviceGenerationMode "
    "AdviceGenerationTimeout snapshot",
    scaling_advisor.PlannerSnapshotText: "pods nodes",
    scaling_advisor.PlannerPodText: "name namespace",
    scaling_advisor.PlannerNodeText: "name labels",
}
"""The fields of each type that the document shows; any other type is an object with any content."""
_CONSTRAINT: Tree = {"type": "object", "description": "A ScalingConstraint of sa.gardener.cloud/v1alpha1."}
"""A planner request needs a constraint; the type allows null because Kubernetes objects can hold the constraint."""
_ANY_FORMAT: Tree = {
    "description": "A cluster in one of the forms that Tutti reads, told apart by the first level.",
    "anyOf": [
        {"$ref": f"{COMPONENTS}Body"},
        {
            "type": "object",
            "description": "Kubernetes objects as kubectl prints them, a ClusterSnapshot, a planner request of "
            "scaling-advisor, or a scenario file.",
        },
    ],
}


def body_components() -> Tree:
    """Return the schemas of all bodies by name, with the schemas that they refer to."""
    _, components = msgspec.json.schema_components((Body,), ref_template=f"{COMPONENTS}{{name}}")
    snapshot = _described(
        gardener.GardenerSnapshotText, "What Gardener's scaling recommender takes: Go's names, in any case."
    )
    planner = _described(
        scaling_advisor.PlannerText,
        "What the planner of gardener/scaling-advisor takes: Go's names, in any case.",
    )
    planner["properties"]["constraint"] = _CONSTRAINT
    return {**components, "ClusterSnapshot": snapshot, "PlannerRequest": planner | {"required": ["constraint"]}}


def _described(kind: type[msgspec.Struct], description: str) -> Tree:
    schema = _schema(inspect.type_info(kind))
    return {"type": schema.pop("type"), "description": description, **schema}


def _schema(info: inspect.Type) -> Tree:
    if isinstance(info, inspect.UnionType):
        (value_type,) = (each for each in info.types if not isinstance(each, inspect.NoneType))
        schema = _schema(value_type)
        return schema | {"type": [schema["type"], "null"]}
    schema = {"type": _TYPES[type(info)]}
    if isinstance(info, inspect.IntType):
        bounds = {"minimum": info.ge, "maximum": info.le}
        return schema | {name: bound for name, bound in bounds.items() if bound is not None}
    if isinstance(info, inspect.ListType):
        return schema | {"items": _schema(info.item_type)}
    if isinstance(info, inspect.StructType) and info.cls in _SHOWN_FIELDS:
        fields = {each.encode_name: each.type for each in info.fields}
        return schema | {"properties": {name: _schema(fields[name]) for name in _SHOWN_FIELDS[info.cls].split()}}
    return schema


def _body(schema: Tree, bodies: dict[str, Tree]) -> Tree:
    shown = {name.replace(" ", "-"): {"summary": name, "value": value} for name, value in bodies.items()}
    return {"required": True, "content": {"application/json": {"schema": schema, "examples": shown}}}


BODIES = {
    "/recommend": _body({"$ref": f"{COMPONENTS}ClusterSnapshot"}, examples.GARDENER),
    "/v1/recommendations": _body(_ANY_FORMAT, examples.TUTTI),
    "/v1/plans": _body({"$ref": f"{COMPONENTS}PlannerRequest"}, examples.PLANNER),
}
