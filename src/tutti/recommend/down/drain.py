"""Drainage: nodes emptied on the picture, step by step, as it would be done.

Contract: `drain` cordons the nodes that shall go, lets new ones join, and then empties one node after the other. A step
evicts pods at once: never more of a disruption budget's than it allows, and of a gang either members above its minimum
or all of them together. What was evicted in a step is placed by the engine before the next begins. A node goes in the
step in which its last pod left it; nodes with nothing on them go first. If some pod finds no place, it gives
`DrainBlocked`, and the picture is as it was. `cordon` keeps pods off nodes that shall go later.
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
from tutti.recommend.down.node_pods import blocking, leaving
from tutti.recommend.records.down_plan import Move, ScaleDownStep

_GOING = "tutti.dev/going"
_CORDONED = "node(s) were unschedulable"


class DrainBlocked(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Why nodes cannot be emptied."""

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
    """See the module's contract."""

    def __init__(self, planning: PlanningCluster, rules: DrainabilityRules) -> None:
        self._planning, self._cluster, self._rules = planning, planning.cluster, rules
        self._nodes: Sequence[str] = ()
        """Those that are being drained."""

    def cordon(self, nodes: Iterable[str]) -> None:
        """Keep pods off nodes that shall go. The mark is in the picture, and goes when that is rolled back."""
        for name in nodes:
            node = node_of(self._cluster, name)
            if not _is_going(node):
                marks = {**(node.metadata.annotations or {}), _GOING: ""}
                marked = replace(node, metadata=replace(node.metadata, annotations=marks))
                self._cluster.apply(Put(cordoned(marked)))

    def drain(
        self, nodes: Sequence[str], bought: Mapping[str, Offering] | None = None
    ) -> list[ScaleDownStep] | DrainBlocked:
        """Empty the nodes in this order, after new ones have joined; give the steps."""
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
        empty = tuple(name for name in nodes if not leaving(self._cluster, name, self._rules))
        for name in empty:
            self._remove(name)
        for name, offering in bought.items():
            self._planning.join(offering, name)
        steps = [ScaleDownStep(removes=empty)] if empty else []
        steps += [ScaleDownStep(adds=tuple(bought))] if bought else []
        for name in nodes:
            if name not in empty:
                steps += self._empty(name)
        return steps

    def _empty(self, name: str) -> list[ScaleDownStep]:
        """Move everybody off a node, in as few steps as budgets and gangs allow."""
        steps = []
        while movers := leaving(self._cluster, name, self._rules):
            pods = self._evicted_at_once(name, movers)
            moves, grace = self._move(pods, name), min(max(map(grace_of, pods)), MAX_GRACE_SECONDS)
            last = not leaving(self._cluster, name, self._rules)
            steps.append(ScaleDownStep(moves=moves, removes=(name,) if last else (), grace=grace))
        if not steps:  # its last pods left with their gang, for another node's sake
            steps = [ScaleDownStep(removes=(name,))]
        self._remove(name)
        return steps

    def _evicted_at_once(self, name: str, movers: Iterable[Pod]) -> list[Pod]:
        """As many of the pods of a node as may be evicted together, with those of their gangs that must come along."""
        taken: dict[str, Pod] = {}
        for pod in movers:
            if pod.key in taken:
                continue
            unit = self._unit(pod, taken)
            for each in unit:
                if (blocked := blocking(each, self._rules)) is not None:
                    word, why = blocked
                    raise _StuckError(
                        DrainBlocked(node=name, reason=word, message=f"pod {each.key} {why}", pod=each.key)
                    )
            if self._rules.budgets.allow_together([*taken.values(), *unit]):
                taken |= {each.key: each for each in unit}
            elif not self._rules.budgets.allow_together(unit):
                message = f"a disruption budget does not allow that the {len(unit)} pods of its gang leave at once"
                raise _StuckError(DrainBlocked(node=name, reason="BlockedByPod", message=message, pod=pod.key))
        return list(taken.values())

    def _unit(self, pod: Pod, taken: Mapping[str, Pod]) -> list[Pod]:
        """The pod, or its whole gang where the gang would fall below its minimum without it.

        A gang that says that its pods may be disrupted one by one still falls below its minimum: it moves whole too.
        """
        cluster, gangs = self._cluster, self._planning.gangs
        key = gangs.key_of(cluster.pod_row(pod.key))
        if key is None:
            return [pod]
        gang, running = gangs.gang(key), gangs.state(key, ()).running
        if len(running) == 1:
            return [pod]
        members = [each for row in running if (each := cluster.pods.objects[row]) is not None]
        gone = sum(each.key in taken for each in members)
        spare = len(running) - gang.minimum - gone
        if gang.disruption is not DisruptionMode.ALL and not gang.parts and spare > 0:
            return [pod]
        return [each for each in members if each.key not in taken]

    def _move(self, pods: Sequence[Pod], node: str) -> tuple[Move, ...]:
        """Evict pods, and place them again."""
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
                    raise _StuckError(_no_place(node, decision.pod, fit_error(self._without_going(decision))))
        moves = []
        for key, source in sources.items():
            target = cluster.pods.node_names[cluster.pod_row(key)]
            if target is None or _is_going(node_of(cluster, target)):  # it tolerates the cordon
                raise _StuckError(_no_place(node, key, f"it goes back to {target}" if target else "nobody tries"))
            moves.append(Move(pod=key, source=source, target=target))
        return tuple(moves)

    def _without_going(self, decision: Decision) -> Decision:
        """A refusal that does not count the nodes that go, which are cordoned here alone."""
        names = self._cluster.nodes.row_of
        going = sum(name in names for name in self._nodes)
        reasons = dict(decision.reasons)
        if reasons.get(_CORDONED, 0) >= going:
            reasons[_CORDONED] -= going
        return replace(decision, nodes=decision.nodes - going, reasons={k: v for k, v in reasons.items() if v})

    def _remove(self, name: str) -> None:
        """Take a node away, with what belongs to it."""
        for pod in pods_on(self._cluster, name):
            self._cluster.apply(Remove(Pod.KIND, pod.key))
        self._cluster.apply(Remove(Node.KIND, name))


def _is_going(node: Node) -> bool:
    return _GOING in (node.metadata.annotations or {})


def _no_place(node: str, pod: str, why: str) -> DrainBlocked:
    return DrainBlocked(node=node, reason="NoPlaceToMovePods", message=f"no other node takes pod {pod}: {why}", pod=pod)
