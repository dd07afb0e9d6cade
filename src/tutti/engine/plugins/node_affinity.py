"""NodeAffinity: the node selector and the node affinity of the pod, and those that the profile adds."""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import Ints
from tutti.cluster.events import Event
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.plugins.base import NodePlugin, NodeRows
from tutti.engine.plugins.verdict import Reason, Refusal, Variants
from tutti.kube.objects import NodeAffinity
from tutti.kube.selectors import NODE_NAME_FIELD, parse_node_selector, parse_node_term


class NodeAffinityPlugin(NodePlugin):
    """Required terms filter, preferred terms score."""

    name = "NodeAffinity"
    cures = frozenset((Event.NODE_ADDED, Event.NODE_LABELS))
    scaled = "up"
    refusals = (
        Refusal("node(s) didn't match scheduler-enforced node affinity", resolvable=False),
        Refusal("node(s) didn't match Pod's node affinity/selector", resolvable=False),
    )

    def __init__(self, added: NodeAffinity | None = None) -> None:
        self._added = parse_node_selector(added.required) if added else None
        parsed = ((p.weight, parse_node_term(p.preference)) for p in (added.preferred if added else None) or ())
        self._added_preferred = tuple((weight, term) for weight, term in parsed if term is not None and weight)

    def filter(self, window: NodeRows, spec: SpecClass) -> Variants | None:
        """Refuse nodes that the profile's, then the pod's own requirements leave out."""
        if self._added is None and spec.node_terms is None and not spec.node_labels:
            return None
        nodes = window.nodes
        met = nodes.meeting(spec.node_labels, window.rows)
        if spec.node_terms is not None:
            met &= nodes.in_any_term(spec.node_terms, window.rows)
        answers = np.where(met, np.uint8(0), np.uint8(2))
        if self._added is not None:
            answers[~nodes.in_any_term(self._added, window.rows)] = 1
        return answers

    def score(self, window: NodeRows, spec: SpecClass) -> Ints | None:
        """Add up the weights of the preferred terms that hold."""
        affinity = spec.spec.affinity and spec.spec.affinity.node_affinity
        if not self._added_preferred and not (affinity and affinity.preferred):
            return None
        total = np.zeros(len(window), dtype=np.int64)
        for weight, term in (*self._added_preferred, *spec.preferred_nodes):
            total += weight * window.nodes.in_term(term, window.rows)
        return total


def named_nodes(spec: SpecClass) -> frozenset[str] | Reason | None:
    """Give the nodes that every required term names, None when some term names none.

    kube-scheduler looks at no other nodes then; terms that contradict each other end the attempt.
    """
    affinity = spec.spec.affinity and spec.spec.affinity.node_affinity
    terms = affinity.required.node_selector_terms if affinity and affinity.required else None
    names: set[str] = set()
    for term in terms or ():
        wanted = [
            frozenset(r.values or ())
            for r in term.match_fields or ()
            if r.key == NODE_NAME_FIELD and r.operator == "In"
        ]
        if not wanted:
            return None
        names |= frozenset.intersection(*wanted)
    if not terms:
        return None
    if not names:
        return Reason(NodeAffinityPlugin.name, ("pod affinity terms conflict",), resolvable=False)
    return frozenset(names)
