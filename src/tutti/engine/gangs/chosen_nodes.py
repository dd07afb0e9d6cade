"""Bind pods on nodes that are already chosen: those that preemption chose, or those where room is held for the pods.

Contract: all pods are bound, or the cluster is unchanged. Each pod is filtered on its own node alone, as kube-scheduler
filters the nominated node of a pod first. A gang that evicted pods thus starts on the nodes for which it evicted them,
whether its victims vanish at once or terminate first.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.cluster.edits import Release
from tutti.cluster.trial import Trial
from tutti.engine.gangs.areas import Areas
from tutti.engine.gangs.gang_state import Need
from tutti.engine.placement.engine import Decision, Engine
from tutti.engine.plugins.base import Area


def bind_on_chosen_nodes(engine: Engine, chosen: Sequence[tuple[str, str]]) -> list[Decision] | None:
    """Bind each pod on its chosen node; None if one of them does not fit there.

    The pods are tried in this order, without holds of their own: the room of one must not keep out another. A pod with
    rules between pods that does not fit yet is tried again after the others, because it may need them.
    """
    bound: list[Decision] = []
    remaining = list(chosen)
    with Trial(engine.cluster) as trial:
        for pod, _ in chosen:
            if pod in engine.cluster.holds:
                engine.cluster.apply(Release(pod, announce=False))
        while remaining:
            later = []
            for pod, node in remaining:
                decision = _bind_on_node(engine, pod, node)
                if decision is not None:
                    bound.append(decision)
                elif _has_pod_rules(engine, pod):
                    later.append((pod, node))
                else:
                    return None
            if len(later) == len(remaining):
                return None
            remaining = later
        trial.keep()
        return bound


def _bind_on_node(engine: Engine, pod: str, node: str) -> Decision | None:
    row = engine.cluster.nodes.row_of.get(node)
    if row is None:
        return None
    decision = engine.place([pod], Area.of_row(row, engine.cluster.nodes.size), give_up=True)[0]
    return decision if decision.node is not None else None


def _has_pod_rules(engine: Engine, pod: str) -> bool:
    return any(engine.evaluator.incoming_pod(engine.cluster.pod_row(pod)).applicable_plugins)


def place_on_held_nodes(engine: Engine, areas: Areas, need: Need, area: Area | None = None) -> list[Decision] | None:
    """Bind the pods of a need for which room is held, if they are enough; otherwise return None."""
    cluster = engine.cluster
    if not cluster.holds:
        return None
    own_pods = (cluster.pods.keys[row] for row in need.all_waiting)
    chosen = [(pod, cluster.holds[pod].node) for pod in own_pods if pod in cluster.holds]
    if not need.parts:  # with parts, more pods than the least are needed if not the smallest parts were chosen
        chosen = chosen[: need.least]
    if not chosen or len(chosen) < need.least or not _is_within(engine, chosen, area):
        return None
    with Trial(cluster) as trial:
        bound = bind_on_chosen_nodes(engine, chosen)
        if bound is None or not _has_enough(engine, need) or not _shares_domains(engine, areas, need):
            return None
        trial.keep()
        return bound


def _is_within(engine: Engine, chosen: Sequence[tuple[str, str]], area: Area | None) -> bool:
    row_of = engine.cluster.nodes.row_of
    return area is None or all(node in row_of and area.mask[row_of[node]] for _, node in chosen)


def _has_enough(engine: Engine, need: Need) -> bool:
    """Return whether the pods that are bound by now reach the minimums of a need."""
    nodes = engine.cluster.pods.node
    bound_count = sum(1 for row in need.all_waiting if nodes[row] >= 0)
    reached = sum(1 for part in need.parts if part.least and _has_enough(engine, part))
    return bound_count >= need.missing and reached >= need.parts_needed


def _shares_domains(engine: Engine, areas: Areas, need: Need) -> bool:
    """Return whether the pods of a need, and of each part, are on nodes with one value of their required label."""
    key, nodes = need.topology.required, engine.cluster.pods.node
    rows = (*need.running, *(row for row in need.all_waiting if nodes[row] >= 0))
    domains = areas.domains_of(rows, key) if key is not None else set()
    return len(domains) <= 1 and 0 not in domains and all(_shares_domains(engine, areas, part) for part in need.parts)
