"""TaintToleration: taints keep pods off (NoSchedule, NoExecute) or make a node less welcome (PreferNoSchedule)."""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import Ints
from tutti.cluster.events import Event
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.plugins.base import NodePlugin, NodeRows
from tutti.engine.plugins.verdict import Refusal, Variants
from tutti.kube.objects import Taint, Toleration
from tutti.kube.taints import first_untolerated, tolerates


class TaintToleration(NodePlugin):
    """One answer per set of taints, spread over the nodes that have it."""

    name = "TaintToleration"
    cures = frozenset((Event.NODE_ADDED, Event.NODE_TAINTS))
    scaled = "down"
    refusals = (Refusal("node(s) had untolerated taint(s)", resolvable=False),)

    def filter(self, window: NodeRows, spec: SpecClass) -> Variants | None:
        """Refuse nodes with a taint that the pod does not bear."""
        sets = window.nodes.taint_sets
        refused = (first_untolerated(taints, spec.tolerations) is not None for taints in sets)
        table = np.fromiter(refused, np.uint8, len(sets))
        answers: Variants = table[window.nodes.taints[window.rows]]
        return answers

    def score(self, window: NodeRows, spec: SpecClass) -> Ints | None:
        """Count the soft taints that the pod does not bear."""
        soft = tuple(t for t in spec.tolerations if t.effect in (None, "", "PreferNoSchedule"))
        sets = window.nodes.taint_sets
        table = np.fromiter((_unborne(taints, soft) for taints in sets), np.int64, len(sets))
        counts: Ints = table[window.nodes.taints[window.rows]]
        return counts


def _unborne(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> int:
    return sum(t.effect == "PreferNoSchedule" and not any(tolerates(o, t) for o in tolerations) for t in taints)
