"""What a cluster knows, in a form that two clusters can be compared by."""

from __future__ import annotations

from tutti.cluster.cluster import Cluster


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
    state["ports"] = {
        port: {nodes.names[row]: frozenset(taken) for row, taken in rows.items()}
        for port, rows in cluster.occupancy.ports.items()
        if rows
    }
    state["claims"] = dict(cluster.occupancy.claim_users)
    return state
