"""Label and node selectors as data."""

from __future__ import annotations

from tutti.kube.objects.meta import Wire


class LabelSelectorRequirement(Wire, frozen=True):
    """One condition of a label selector."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Wire, frozen=True):
    """Conditions on labels, all of which must hold; without any, everything is selected."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


class NodeSelectorTerm(Wire, frozen=True):
    """Conditions on a node's labels and fields, all of which must hold."""

    match_expressions: list[LabelSelectorRequirement] | None = None
    match_fields: list[LabelSelectorRequirement] | None = None


class NodeSelector(Wire, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: list[NodeSelectorTerm] | None = None
