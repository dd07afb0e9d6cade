"""Drain nodes in the planning cluster, step by step, as it would be done in the real cluster.

Contract: `drain` cordons the nodes, joins new nodes, and then drains one node after the other. A step evicts pods
together: never more than a disruption budget allows, and of a gang either members above its minimum or all members. The
engine places the evicted pods of a step before the next step begins. A node is removed in the step that evicts its last
pod; empty nodes are removed first. If a pod finds no place, `drain` returns `DrainBlocked`, and the planning cluster
stays unchanged. `cordon` keeps pods off nodes that are drained later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from tutti.autoscalers.cluster_autoscaler.drainability import MAX_GRACE_SECONDS, DrainabilityRules, grace_of
from tutti.cluster.edits import Put, Remove, Unbind
from tutti.cluster.node_edits import cordoned, node_of, pods_on
from tutti.cluster.trial import Trial
from tutti.engine.placement.engine import Decision
from tutti.engine.reasons.pod_failure import fit_error
from tutti.engine.session.schedule import schedule
from tutti.kube.gangs.gang import DisruptionMode
from tutti.kube.objects import Node, Pod
from tutti.market.offerings import Offering
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.down.node_pods import blocking_reason, pods_to_move
from tutti.recommend.records.down_plan import Move, ScaleDownStep

_REMOVAL_ANNOTATION = "tutti.dev/going"
_CORDONED = "node(s) were unschedulable"


class DrainBlocked(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Why nodes cannot be drained."""

    node: str
    reason: str
    message: str
    pod: str = ""


class _StuckError(Exception):
    """Carries `DrainBlocked` out of a trial."""

    def __init__(self, stuck: DrainBlocked) -> None:
        super().__init__(stuck.message)
        self.stuck = stuck


class Drainer:
    """Drains nodes of a planning cluster; see the module's contract."""

    def __init__(self, planning: PlanningCluster, rules: DrainabilityRules) -> None:
        self._planning, self._cluster, self._rules = planning, planning.cluster, rules
        self._nodes: Sequence[str] = ()
        """The nodes that are being drained."""

    def cordon(self, nodes: Iterable[str]) -> None:
        """Cordon nodes that are to be removed, with an annotation that exists only in the planning cluster."""
        for name in nodes:
            node = node_of(self._cluster, name)
            if not _is_being_removed(node):
                annotations = {**(node.metadata.annotations or {}), _REMOVAL_ANNOTATION: ""}
                annotated = replace(node, metadata=replace(node.metadata, annotations=annotations))
                self._cluster.apply(Put(cordoned(annotated)))

    def drain(
        self, nodes: Sequence[str], bought: Mapping[str, Offering] | None = None
    ) -> list[ScaleDownStep] | DrainBlocked:
        """Drain the nodes in this order, after new ones have joined; return the steps."""
        try:
            with Trial(self._cluster) as trial:
                steps = self._drain(nodes, bought or {})
                trial.keep()
        except _StuckError as error:
            return error.stuck
        return steps

    def _drain(self, nodes: Sequence[str], bought: Mapping[str, Offering]) -> list[ScaleDownStep]:
        self._nodes = nodes
        self.cordon(nodes)
        empty = tuple(name for name in nodes if not pods_to_move(self._cluster, name, self._rules))
        for name in empty:
            self._remove(name)
        for name, offering in bought.items():
            self._planning.join(offering, name)
        steps = [ScaleDownStep(removes=empty)] if empty else []
        steps += [ScaleDownStep(adds=tuple(bought))] if bought else []
        for name in nodes:
            if name not in empty:
                steps += self._drain_node(name)
        return steps

    def _drain_node(self, name: str) -> list[ScaleDownStep]:
        """Move all pods off a node, in as few steps as budgets and gangs allow."""
        steps = []
        while pods_left := pods_to_move(self._cluster, name, self._rules):
            pods = self._evictable_together(name, pods_left)
            moves, grace = self._move(pods, name), min(max(map(grace_of, pods)), MAX_GRACE_SECONDS)
            is_last = not pods_to_move(self._cluster, name, self._rules)
            steps.append(ScaleDownStep(moves=moves, removes=(name,) if is_last else (), grace=grace))
        if not steps:  # its last pods moved with their gang when another node was drained
            steps = [ScaleDownStep(removes=(name,))]
        self._remove(name)
        return steps

    def _evictable_together(self, name: str, pods_left: Iterable[Pod]) -> list[Pod]:
        """Return as many pods of a node as may be evicted together, with members of their gangs that must move too."""
        chosen: dict[str, Pod] = {}
        for pod in pods_left:
            if pod.key in chosen:
                continue
            unit = self._eviction_unit(pod, chosen)
            for each in unit:
                if (blocking := blocking_reason(each, self._rules)) is not None:
                    reason, detail = blocking
                    raise _StuckError(
                        DrainBlocked(node=name, reason=reason, message=f"pod {each.key} {detail}", pod=each.key)
                    )
            if self._rules.budgets.allow_together([*chosen.values(), *unit]):
                chosen |= {each.key: each for each in unit}
            elif not self._rules.budgets.allow_together(unit):
                message = f"a disruption budget does not allow that the {len(unit)} pods of its gang leave at once"
                raise _StuckError(DrainBlocked(node=name, reason="BlockedByPod", message=message, pod=pod.key))
        return list(chosen.values())

    def _eviction_unit(self, pod: Pod, chosen: Mapping[str, Pod]) -> list[Pod]:
        """Return the pod, or its whole gang if the gang would fall below its minimum without the pod.

        A gang whose pods may be disrupted one by one also moves whole then.
        """
        cluster, gangs = self._cluster, self._planning.gangs
        key = gangs.key_of(cluster.pod_row(pod.key))
        if key is None:
            return [pod]
        gang, running = gangs.gang(key), gangs.state(key, ()).running
        if len(running) == 1:
            return [pod]
        members = [each for row in running if (each := cluster.pods.objects[row]) is not None]
        chosen_members = sum(each.key in chosen for each in members)
        spare_members = len(running) - gang.minimum - chosen_members
        if gang.disruption is not DisruptionMode.ALL and not gang.parts and spare_members > 0:
            return [pod]
        return [each for each in members if each.key not in chosen]

    def _move(self, pods: Sequence[Pod], node: str) -> tuple[Move, ...]:
        """Evict pods, place them again, and return the moves."""
        cluster = self._cluster
        sources = {pod.key: cluster.pods.node_names[cluster.pod_row(pod.key)] or "" for pod in pods}
        for key in sources:
            cluster.apply(Unbind(key))
        if any(self._planning.gangs.key_of(cluster.pod_row(key)) is not None for key in sources):
            plan = schedule(cluster, sources, self._planning.profile, preemption=False)
            for each in plan.unschedulable:
                raise _StuckError(_no_place(node, each.pod, each.message))
        else:
            for decision in self._planning.engine.place(list(sources)):
                if decision.node is None:
                    raise _StuckError(_no_place(node, decision.pod, fit_error(self._without_cordoned(decision))))
        moves = []
        for key, source in sources.items():
            target = cluster.pods.node_names[cluster.pod_row(key)]
            if target is None or _is_being_removed(node_of(cluster, target)):  # the pod tolerates the cordon
                raise _StuckError(
                    _no_place(node, key, f"it goes back to {target}" if target else "no scheduler tries to place it")
                )
            moves.append(Move(pod=key, source=source, target=target))
        return tuple(moves)

    def _without_cordoned(self, decision: Decision) -> Decision:
        """Return a decision without the cordoned nodes: they are cordoned only in the planning cluster."""
        names = self._cluster.nodes.row_of
        cordoned_count = sum(name in names for name in self._nodes)
        reasons = dict(decision.reasons)
        if reasons.get(_CORDONED, 0) >= cordoned_count:
            reasons[_CORDONED] -= cordoned_count
        return replace(decision, nodes=decision.nodes - cordoned_count, reasons={k: v for k, v in reasons.items() if v})

    def _remove(self, name: str) -> None:
        """Remove a node, with the pods that belong to it."""
        for pod in pods_on(self._cluster, name):
            self._cluster.apply(Remove(Pod.KIND, pod.key))
        self._cluster.apply(Remove(Node.KIND, name))


def _is_being_removed(node: Node) -> bool:
    return _REMOVAL_ANNOTATION in (node.metadata.annotations or {})


def _no_place(node: str, pod: str, detail: str) -> DrainBlocked:
    return DrainBlocked(
        node=node, reason="NoPlaceToMovePods", message=f"no other node takes pod {pod}: {detail}", pod=pod
    )
