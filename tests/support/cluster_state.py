"""What a cluster knows and answers, in a form that two clusters can be compared by."""

from __future__ import annotations

from tutti.cluster.cluster import Cluster
from tutti.engine.explain.node_verdicts import node_verdicts
from tutti.engine.placement.engine import Engine
from tutti.engine.preemption.default_preemption import preempt


def rebuilt(cluster: Cluster) -> Cluster:
    """Build the same state in an empty cluster."""
    fresh = Cluster()
    for edit in cluster.edits():
        fresh.apply(edit)
    return fresh


def answers(cluster: Cluster, engine: Engine, most: int = 4) -> list[object]:
    """Return verdicts and preemption results of some pending pods."""
    pending = sorted(key for key, row in cluster.pods.row_of.items() if cluster.pods.node_names[row] is None)
    return [(node_verdicts(engine, key), preempt(engine, engine.attempt(key))) for key in pending[:most]]


def cluster_state(cluster: Cluster) -> dict[str, object]:
    """Nodes, pods, objects, ports and claims by their names; rows and registries do not count."""
    nodes, pods = cluster.nodes, cluster.pods
    names = cluster.resources.names
    state: dict[str, object] = {}
    for name, row in nodes.row_of.items():
        used = {names[i] or f"nonzero-{i}": int(v) for i, v in enumerate(nodes.used[:, row]) if v}
        on_it = sorted(pods.keys[p] for p in cluster.pods_on_row[row])
        state[f"node {name}"] = (nodes.objects[row], bool(nodes.on[row]), used, on_it)
    for key, row in pods.row_of.items():
        where = pods.node_names[row]
        state[f"pod {key}"] = (pods.objects[row], where, int(pods.start[row]), cluster.holds.get(key))
    state["objects"] = {kind: dict(objects) for kind, objects in cluster.objects.items() if objects}
    volumes = cluster.assumed_volumes
    state["assumed volumes"] = {
        (pod, *name): volumes.reported(cluster.objects[name[0]][name[1]])
        for pod, names in volumes.by_pod.items()
        for name in names
    }
    state["ports"] = {
        port: {nodes.names[row]: frozenset(taken) for row, taken in rows.items()}
        for port, rows in cluster.occupancy.ports.items()
        if rows
    }
    state["claims"] = dict(cluster.occupancy.claim_users)
    return state
