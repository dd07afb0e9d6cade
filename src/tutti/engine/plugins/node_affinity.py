"""NodeAffinity: the pod's node selector and node affinity, and the affinity that the profile adds (addedAffinity)."""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import Ints
from tutti.cluster.events import Event
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.plugins.base import NodePlugin, NodeRows
from tutti.engine.plugins.verdict import Reason, Refusal, StatusCodes
from tutti.kube.objects import NodeAffinity
from tutti.kube.selectors import NODE_NAME_FIELD, parse_node_selector, parse_node_term


class NodeAffinityPlugin(NodePlugin):
    """kube-scheduler's NodeAffinity: required terms filter, preferred terms score."""

    name = "NodeAffinity"
    events_to_register = frozenset((Event.NODE_ADDED, Event.NODE_LABELS))
    normalization = "up"
    refusals = (
        Refusal("node(s) didn't match scheduler-enforced node affinity", resolvable=False),
        Refusal("node(s) didn't match Pod's node affinity/selector", resolvable=False),
    )

    def __init__(self, added: NodeAffinity | None = None) -> None:
        self._added = parse_node_selector(added.required) if added else None
        parsed = ((p.weight, parse_node_term(p.preference)) for p in (added.preferred if added else None) or ())
        self._added_preferred = tuple((weight, term) for weight, term in parsed if term is not None and weight)

    def filter(self, node_rows: NodeRows, spec: SpecClass) -> StatusCodes | None:
        """Refuse nodes that do not match the profile's added affinity (1) or the pod's affinity and selector (2)."""
        if self._added is None and spec.node_terms is None and not spec.node_labels:
            return None
        nodes = node_rows.nodes
        matches = nodes.matches_all(spec.node_labels, node_rows.rows)
        if spec.node_terms is not None:
            matches &= nodes.matches_any_term(spec.node_terms, node_rows.rows)
        codes = np.where(matches, np.uint8(0), np.uint8(2))
        if self._added is not None:
            codes[~nodes.matches_any_term(self._added, node_rows.rows)] = 1
        return codes

    def score(self, node_rows: NodeRows, spec: SpecClass) -> Ints | None:
        """Sum the weights of the preferred terms that the node matches."""
        affinity = spec.spec.affinity and spec.spec.affinity.node_affinity
        if not self._added_preferred and not (affinity and affinity.preferred):
            return None
        total = np.zeros(len(node_rows), dtype=np.int64)
        for weight, term in (*self._added_preferred, *spec.preferred_nodes):
            total += weight * node_rows.nodes.matches_term(term, node_rows.rows)
        return total


def named_nodes(spec: SpecClass) -> frozenset[str] | Reason | None:
    """PreFilter: return the nodes that every required term names by `metadata.name`; None if some term names none.

    kube-scheduler evaluates only these nodes. Contradicting terms give a reason that refuses all nodes.
    """
    affinity = spec.spec.affinity and spec.spec.affinity.node_affinity
    terms = affinity.required.node_selector_terms if affinity and affinity.required else None
    names: set[str] = set()
    for term in terms or ():
        names_by_field = [
            frozenset(r.values or ())
            for r in term.match_fields or ()
            if r.key == NODE_NAME_FIELD and r.operator == "In"
        ]
        if not names_by_field:
            return None
        names |= frozenset.intersection(*names_by_field)
    if not terms:
        return None
    if not names:
        return Reason(NodeAffinityPlugin.name, ("pod affinity terms conflict",), resolvable=False)
    return frozenset(names)
