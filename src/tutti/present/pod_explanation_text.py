"""The explanation of a pod as text: the outcome, feasible nodes with scores, and refusing nodes with reasons.

Contract: in a cluster with more than `FEW` nodes, nodes with the same cells share a line. `wide` gives every node a
line, prints full plugin names, and adds the free amounts of the resources that the pod requests.
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

_Cells = Callable[[NodeExplanation], tuple[object, ...]]

FEW = 20
"""Up to this number of nodes, every node has a line."""
_MAX_EXAMPLES, _MAX_LINES = 3, 15
_SHORT_NAMES = {
    "TaintToleration": "TAINTS", "NodeAffinity": "AFFINITY", "NodeResourcesFit": "FIT", "VolumeBinding": "VOLUMES",
    "PodTopologySpread": "SPREAD", "InterPodAffinity": "PODS", "NodeResourcesBalancedAllocation": "BALANCE",
    "ImageLocality": "IMAGES",
}  # fmt: skip


def pod_text(explanation: PodExplanation, cluster: Cluster, *, wide: bool) -> str:
    """Return the whole explanation; `cluster` is the cluster in which the pod was explained."""
    grouped = not wide and len(explanation.nodes) > FEW
    feasible = [node for node in explanation.nodes if node.feasible]
    refused = [node for node in explanation.nodes if not node.feasible]
    parts = [_head(explanation, cluster, len(feasible), len(refused))]
    free = _FreeAmounts(explanation.pod, cluster) if wide else None
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
        nodes = {cluster.pods.node_names[cluster.pod_row(pod)] for pod in explanation.evicts}
        where = f"from {explanation.nominated} and go there"
        if nodes != {explanation.nominated}:  # a gang is evicted as a whole
            where = f"and go to {explanation.nominated}"
        lines.append(("Preemption", f"would evict {victims} {where}"))
    elif explanation.nominated is not None:
        lines.append(("Preemption", f"room is held on {explanation.nominated} until terminating pods have left"))
    if explanation.nodes:
        lines.append(("Nodes", f"{feasible} could take it, {refused} could not"))
    return "\n".join(f"{label + ':':<13}{text}" for label, text in lines)


def _gang_outcome(explanation: PodExplanation) -> str | None:
    """Return the outcome of the pod's gang in one line."""
    if explanation.gang is None or explanation.gang_outcome is None:
        return None
    return outcome_text(explanation.gang_outcome, explanation.gang.partition("/")[0])


def pod_data(explanation: PodExplanation) -> dict[str, Any]:
    """Return the explanation as data for programs; the gang's outcome is a line of text."""
    data: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(explanation, gang_outcome=None))
    return data | {"gangOutcome": _gang_outcome(explanation)}


def _outcome(explanation: PodExplanation) -> str:
    """Return where the pod goes or would go, or why no node takes it."""
    totals = {node.name: node.total for node in explanation.nodes if node.feasible}
    if explanation.goes_to is None:
        why = explanation.message or ""
        return why if explanation.node is None else f"if pending again today, it would get no node: {why}"
    score = totals.get(explanation.goes_to)
    because = f"score {score}" if score is not None else "the only node that can take it"
    if explanation.node is None:
        return f"goes to {explanation.goes_to}: {_score_lead(explanation, because)}"
    if explanation.goes_to == explanation.node:
        return f"if pending again today, it would go to {explanation.node} again: {_score_lead(explanation, because)}"
    current = next((node for node in explanation.nodes if node.name == explanation.node), None)
    if current is None:
        comparison = f"{explanation.node} no longer exists"
    elif current.feasible:
        comparison = f"{explanation.node} has {current.total}"
    else:
        comparison = f"{explanation.node} would refuse it: {', '.join(current.reasons)}"
    return f"if pending again today, it would go to {explanation.goes_to}: {because}; {comparison}"


def _score_lead(explanation: PodExplanation, because: str) -> str:
    """Return the score of the best node and the next best node, or the number of nodes with the same score."""
    ranked = [node for node in explanation.nodes if node.feasible and node.total is not None]
    if len(ranked) < 2:
        return because
    equal = sum(node.total == ranked[0].total for node in ranked)
    if equal > 1:
        return f"{because}, as have {counted(equal - 1, 'other node')}; the first by name is taken"
    return f"{because}; the next best is {ranked[1].name} with {ranked[1].total}"


def _scores(nodes: Sequence[NodeExplanation], *, grouped: bool, free: _FreeAmounts | None) -> str:
    """Return the table of feasible nodes, best first, with every plugin's part of the total score."""
    plugins = list(dict.fromkeys(plugin for node in nodes for plugin in node.scores))
    names = [plugin.upper() if free is not None else _SHORT_NAMES.get(plugin, plugin.upper()) for plugin in plugins]

    def cells(node: NodeExplanation) -> tuple[object, ...]:
        return (NONE if node.total is None else node.total, *(node.scores.get(plugin, 0) for plugin in plugins))

    return _table(nodes, ("TOTAL", *names), cells, grouped=grouped, free=free)


def _reasons(nodes: Sequence[NodeExplanation], *, grouped: bool, free: _FreeAmounts | None) -> str:
    """Return the table of nodes that refuse the pod: plugin, reason, and whether evictions could help."""

    def cells(node: NodeExplanation) -> tuple[object, ...]:
        if node.victims:
            effect = f"of {counted(len(node.victims), 'pod')}"
        else:
            effect = "could help" if node.eviction_could_help else "no help"
        return node.plugin, effect, ", ".join(node.reasons)

    return _table(nodes, ("REFUSED BY", "EVICTION", "REASON"), cells, grouped=grouped, free=free)


def _table(
    nodes: Sequence[NodeExplanation], headers: Sequence[str], cells: _Cells, *, grouped: bool, free: _FreeAmounts | None
) -> str:
    """Return a table with a line for each node or, if `grouped`, for each set of nodes with the same cells."""
    if grouped:
        groups: dict[tuple[object, ...], list[str]] = {}
        for node in nodes:
            groups.setdefault(cells(node), []).append(node.name)
        rows = [(len(names), _examples(names), *key) for key, names in groups.items()]
        text = table(("NODES", "NAMES", *headers), rows[:_MAX_LINES])
        return (
            text
            if len(rows) <= _MAX_LINES
            else f"{text}\n... {len(rows) - _MAX_LINES:,} more lines; -o wide has every node"
        )
    if free is None:
        return table(("NODE", *headers), ((node.name, *cells(node)) for node in nodes))
    return table(("NODE", "FREE", *headers), ((node.name, free.on(node.name), *cells(node)) for node in nodes))


def _examples(names: Sequence[str]) -> str:
    shown = ",".join(names[:_MAX_EXAMPLES])
    return f"{shown},..." if len(names) > _MAX_EXAMPLES else shown


class _FreeAmounts:
    """The free amounts of the resources that one pod requests."""

    def __init__(self, pod: str, cluster: Cluster) -> None:
        self._cluster = cluster
        row = cluster.pod_row(pod)
        self._resources = [name for name, amount in incoming_requests(cluster.pod(pod)).items() if amount]
        self._own = cluster.pods.node_names[row], cluster.usages.matrix[cluster.pods.usage[row]]

    def on(self, node: str) -> str:
        """Return the free amounts on a node; the pod itself does not count as used."""
        row, nodes, resources = self._cluster.node_row(node), self._cluster.nodes, self._cluster.resources
        amounts = []
        for name in self._resources:
            place = resources.index(name)
            left = int(nodes.alloc[place, row] - nodes.used[place, row])
            if self._own[0] == node:
                left += int(self._own[1][place])
            amounts.append(f"{name}={format_quantity(name, left)}")
        return ",".join(amounts) or NONE
