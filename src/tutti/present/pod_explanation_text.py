"""The explanation of a pod as people read it: the outcome, the nodes that fit with scores, and those that refuse.

Contract: nodes that say the same are one line with their number, unless there are few nodes or `wide` is asked for;
`wide` also gives every node its line, plugins their full names, and says what the node has left of what the pod asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tutti.engine.explain.pod_explanation import NodeExplanation, PodExplanation
from tutti.kube.quantity import format_quantity
from tutti.kube.resources import incoming_requests
from tutti.present.gang_explanation_text import outcome_text
from tutti.present.plan_rows import requests_text
from tutti.present.tables import NONE, counted, table

if TYPE_CHECKING:
    from tutti.cluster.cluster import Cluster

_Said = Callable[[NodeExplanation], tuple[object, ...]]

FEW = 20
"""Up to so many nodes each has its own line."""
_EXAMPLES, _LINES = 3, 15
_SHORT = {
    "TaintToleration": "TAINTS", "NodeAffinity": "AFFINITY", "NodeResourcesFit": "FIT", "VolumeBinding": "VOLUMES",
    "PodTopologySpread": "SPREAD", "InterPodAffinity": "PODS", "NodeResourcesBalancedAllocation": "BALANCE",
    "ImageLocality": "IMAGES",
}  # fmt: skip


def pod_text(explanation: PodExplanation, cluster: Cluster, *, wide: bool) -> str:
    """The whole explanation; the cluster is the one that was asked."""
    grouped = not wide and len(explanation.nodes) > FEW
    feasible = [node for node in explanation.nodes if node.feasible]
    refused = [node for node in explanation.nodes if not node.feasible]
    parts = [_head(explanation, cluster, len(feasible), len(refused))]
    free = _Free(explanation.pod, cluster) if wide else None
    if feasible:
        parts.append(_scores(feasible, grouped=grouped, free=free))
    if refused:
        parts.append(_reasons(refused, grouped=grouped, free=free))
    return "\n\n".join(parts)


def _head(explanation: PodExplanation, cluster: Cluster, feasible: int, refused: int) -> str:
    pod = cluster.pod(explanation.pod)
    namespace, _, name = explanation.pod.partition("/")
    lines = [
        ("Name", name),
        ("Namespace", namespace),
        ("Priority", str(pod.spec.priority or 0)),
        ("Requests", requests_text(pod)),
        ("Node", explanation.node or NONE),
        ("Outcome", _outcome(explanation)),
    ]
    if explanation.gang is not None:
        lines.append(("Gang", f"{explanation.gang.partition('/')[2]} ({_gang_outcome(explanation)})"))
    if explanation.remark is not None:
        lines.append(("Skipped", f"the scheduler does not try this pod: {explanation.remark}"))
    if explanation.evicts:
        victims = ", ".join(explanation.evicts)
        lines.append(("Preemption", f"would evict {victims} from {explanation.nominated} and go there"))
    if explanation.nodes:
        lines.append(("Nodes", f"{feasible} could take it, {refused} could not"))
    return "\n".join(f"{label + ':':<13}{text}" for label, text in lines)


def _gang_outcome(explanation: PodExplanation) -> str | None:
    """What would become of the pod's gang, in one line."""
    if explanation.gang is None or explanation.gang_outcome is None:
        return None
    return outcome_text(explanation.gang_outcome, explanation.gang.partition("/")[0])


def pod_data(explanation: PodExplanation) -> dict[str, Any]:
    """The same for programs; the gang's outcome is its line of text."""
    data: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(explanation, gang_outcome=None))
    return data | {"gangOutcome": _gang_outcome(explanation)}


def _outcome(explanation: PodExplanation) -> str:
    """Where the pod goes, or why it stays or goes nowhere."""
    totals = {node.name: node.total for node in explanation.nodes if node.feasible}
    if explanation.goes_to is None:
        why = explanation.message or ""
        return why if explanation.node is None else f"asked today it would find no place: {why}"
    score = totals.get(explanation.goes_to)
    because = f"score {score}" if score is not None else "the only node that can take it"
    if explanation.node is None:
        return f"goes to {explanation.goes_to}: {_lead(explanation, because)}"
    if explanation.goes_to == explanation.node:
        return f"asked today it would go to {explanation.node} again: {_lead(explanation, because)}"
    here = next((node for node in explanation.nodes if node.name == explanation.node), None)
    if here is None:
        now = f"{explanation.node} is not there any more"
    elif here.feasible:
        now = f"{explanation.node} has {here.total}"
    else:
        now = f"{explanation.node} would refuse it: {', '.join(here.reasons)}"
    return f"asked today it would go to {explanation.goes_to}: {because}; {now}"


def _lead(explanation: PodExplanation, because: str) -> str:
    """The winner's score, and how far the next is behind."""
    ranked = [node for node in explanation.nodes if node.feasible and node.total is not None]
    if len(ranked) < 2:
        return because
    equal = sum(node.total == ranked[0].total for node in ranked)
    if equal > 1:
        return f"{because}, as have {counted(equal - 1, 'other node')}; the first by name is taken"
    return f"{because}; the next best is {ranked[1].name} with {ranked[1].total}"


def _scores(nodes: Sequence[NodeExplanation], *, grouped: bool, free: _Free | None) -> str:
    """The nodes that fit, the best first, with every plugin's part of the total."""
    plugins = list(dict.fromkeys(plugin for node in nodes for plugin in node.scores))
    names = [plugin.upper() if free is not None else _SHORT.get(plugin, plugin.upper()) for plugin in plugins]

    def said(node: NodeExplanation) -> tuple[object, ...]:
        return (NONE if node.total is None else node.total, *(node.scores.get(plugin, 0) for plugin in plugins))

    return _table(nodes, ("TOTAL", *names), said, grouped=grouped, free=free)


def _reasons(nodes: Sequence[NodeExplanation], *, grouped: bool, free: _Free | None) -> str:
    """The nodes that refuse, with the plugin that did and whether evictions could change it."""

    def said(node: NodeExplanation) -> tuple[object, ...]:
        if node.victims:
            help_ = f"of {counted(len(node.victims), 'pod')}"
        else:
            help_ = "could help" if node.eviction_could_help else "no help"
        return node.plugin, help_, ", ".join(node.reasons)

    return _table(nodes, ("REFUSED BY", "EVICTION", "REASON"), said, grouped=grouped, free=free)


def _table(
    nodes: Sequence[NodeExplanation], headers: Sequence[str], said: _Said, *, grouped: bool, free: _Free | None
) -> str:
    """A line for each node, or for all nodes that say the same."""
    if grouped:
        groups: dict[tuple[object, ...], list[str]] = {}
        for node in nodes:
            groups.setdefault(said(node), []).append(node.name)
        rows = [(len(names), _examples(names), *cells) for cells, names in groups.items()]
        text = table(("NODES", "NAMES", *headers), rows[:_LINES])
        return text if len(rows) <= _LINES else f"{text}\n... {len(rows) - _LINES:,} more lines; -o wide has every node"
    if free is None:
        return table(("NODE", *headers), ((node.name, *said(node)) for node in nodes))
    return table(("NODE", "FREE", *headers), ((node.name, free.on(node.name), *said(node)) for node in nodes))


def _examples(names: Sequence[str]) -> str:
    shown = ",".join(names[:_EXAMPLES])
    return f"{shown},..." if len(names) > _EXAMPLES else shown


class _Free:
    """What nodes have left of what one pod asks for."""

    def __init__(self, pod: str, cluster: Cluster) -> None:
        self._cluster = cluster
        row = cluster.pod_row(pod)
        self._asked = [name for name, amount in incoming_requests(cluster.pod(pod)).items() if amount]
        self._own = cluster.pods.node_names[row], cluster.usages.matrix[cluster.pods.usage[row]]

    def on(self, node: str) -> str:
        """The amounts on a node, without the pod itself if it is there."""
        row, nodes, resources = self._cluster.node_row(node), self._cluster.nodes, self._cluster.resources
        amounts = []
        for name in self._asked:
            place = resources.index(name)
            left = int(nodes.alloc[place, row] - nodes.used[place, row])
            if self._own[0] == node:
                left += int(self._own[1][place])
            amounts.append(f"{name}={format_quantity(name, left)}")
        return ",".join(amounts) or NONE
