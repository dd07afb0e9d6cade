"""The order of the queue: which pod or gang is tried first.

Contract: pure. The higher priority comes first, then the earlier creation (a group's creation counts for its gang),
then the name; what has no creation time counts as new and comes last. Within a priority the minimums of all gangs come
before the pods beyond them, so that no gang grows while another cannot start.
"""

from __future__ import annotations

from collections.abc import Iterable

from tutti.cluster.cluster import Cluster
from tutti.cluster.groups import NO_GROUP
from tutti.engine.gangs.gang_state import Gangs, creation_time
from tutti.engine.placement.profile import Profile
from tutti.engine.session.plan import NotConsidered, Order, Turn
from tutti.kube.objects import Pod


def turns(
    cluster: Cluster, gangs: Gangs, pods: Iterable[str], *, profile: Profile
) -> tuple[list[Turn], list[NotConsidered]]:
    """Sort pending pods into turns; return these, and the pods that the scheduler does not try."""
    table, name, gated = cluster.pods, profile.scheduler_name, profile.gates
    found: list[Turn] = []
    left_out: list[tuple[Order, NotConsidered]] = []
    members: dict[str, list[tuple[int, str]]] = {}
    roots = gangs.roots()
    for key in pods:
        row = cluster.pod_row(key)
        pod = table.objects[row]
        assert pod is not None
        spec, since = pod.spec, creation_time(pod)
        usual = spec.scheduler_name is None or spec.scheduler_name == name
        if not usual or (gated and spec.scheduling_gates) or pod.metadata.deletion_timestamp is not None:
            why = not_considered(pod, profile)
            if why is not None:
                left_out.append(((-(spec.priority or 0), False, since, key), why))
                continue
        number = table.group[row]
        gang = None if number == NO_GROUP else roots[number]
        if gang is None:
            found.append(Turn((-(spec.priority or 0), False, since, key), (key,)))
        else:
            members.setdefault(gang, []).append((since, key))
    for gang, mine in members.items():
        found += _gang_turns(cluster, gangs, gang, sorted(mine))
    return sorted(found), [why for _, why in sorted(left_out, key=lambda pair: pair[0])]


def _gang_turns(cluster: Cluster, gangs: Gangs, key: str, pods: list[tuple[int, str]]) -> list[Turn]:
    gang = gangs.gang(key)
    priority = gang.priority
    if priority is None:
        priority = int(cluster.pods.priority[gangs.rows(key)].max())
    first = gang.created if gang.created is not None else pods[0][0]
    keys = tuple(pod for _, pod in pods)
    return [Turn((-priority, surplus, first, key), keys, key) for surplus in (False, True)]


def not_considered(pod: Pod, profile: Profile) -> NotConsidered | None:
    """Return why the scheduler does not try a pending pod; None if it does."""
    spec = pod.spec
    if (spec.scheduler_name or profile.scheduler_name) != profile.scheduler_name:
        return NotConsidered(pod.key, "other scheduler", f"schedulerName is {spec.scheduler_name}")
    if pod.metadata.deletion_timestamp is not None:
        return NotConsidered(pod.key, "terminating", "the pod is being deleted")
    if spec.scheduling_gates and profile.gates:
        gates = " ".join(gate.name for gate in spec.scheduling_gates)
        return NotConsidered(pod.key, "gated", f"waiting for scheduling gates: [{gates}]")
    return None
