"""Label and node selectors as data."""

from __future__ import annotations

from tutti.kube.objects.meta import KubeStruct


class LabelSelectorRequirement(KubeStruct, frozen=True):
    """A condition on one label, or on one node field."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(KubeStruct, frozen=True):
    """Conditions on labels; an object must meet all of them. Without conditions the selector selects everything."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


class NodeSelectorTerm(KubeStruct, frozen=True):
    """Conditions on a node's labels and fields; a node must meet all of them."""

    match_expressions: list[LabelSelectorRequirement] | None = None
    match_fields: list[LabelSelectorRequirement] | None = None


class NodeSelector(KubeStruct, frozen=True):
    """Terms; a node must match at least one of them."""

    node_selector_terms: list[NodeSelectorTerm] | None = None
