"""The order of the queue: which pod or gang is tried first, and which pods are not tried at all.

Contract: pure. Turns are sorted by priority (highest first), then by creation time (a gang has that of its group), then
by name. A pod or group without a creation time counts as new and comes last. Within one priority the minimums of all
gangs come before any surplus, so that no gang grows while another gang cannot start.
"""

from __future__ import annotations

from collections.abc import Iterable

from tutti.cluster.cluster import Cluster
from tutti.cluster.indexes.groups import NO_GROUP
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.placement.profile import Profile
from tutti.engine.session.plan import NotConsidered, Order, Turn
from tutti.kube.objects import Pod
from tutti.kube.times import micros

NO_CREATION_TIME = 2**63 - 1
"""The creation time of a pod without one: after all others."""


def sort_into_turns(
    cluster: Cluster, gangs: Gangs, pods: Iterable[str], *, profile: Profile
) -> tuple[list[Turn], list[NotConsidered]]:
    """Return the turns of pending pods in queue order, and the pods that the scheduler does not try."""
    table, scheduler_name, checks_gates = cluster.pods, profile.scheduler_name, profile.gates
    turns: list[Turn] = []
    skipped: list[tuple[Order, NotConsidered]] = []
    gang_pods: dict[str, list[tuple[int, str]]] = {}
    roots = gangs.roots()
    for key in pods:
        row = cluster.pod_row(key)
        pod = table.objects[row]
        assert pod is not None
        spec, created_at = pod.spec, creation_time(pod)
        is_ours = spec.scheduler_name is None or spec.scheduler_name == scheduler_name
        if not is_ours or (checks_gates and spec.scheduling_gates) or pod.metadata.deletion_timestamp is not None:
            reason = not_considered(pod, profile)
            if reason is not None:
                skipped.append(((-(spec.priority or 0), False, created_at, key), reason))
                continue
        group = table.group[row]
        gang = None if group == NO_GROUP else roots[group]
        if gang is None:
            turns.append(Turn((-(spec.priority or 0), False, created_at, key), (key,)))
        else:
            gang_pods.setdefault(gang, []).append((created_at, key))
    for gang, pods_of_gang in gang_pods.items():
        turns += gang_turns(gangs, gang, sorted(pods_of_gang))
    return sorted(turns), [reason for _, reason in sorted(skipped, key=lambda pair: pair[0])]


def gang_turns(gangs: Gangs, key: str, pods: list[tuple[int, str]]) -> list[Turn]:
    """Return the turn of a gang's minimum and the turn of its surplus; `pods` are creation times and keys, sorted."""
    gang, priority = gangs.gang(key), gangs.priority(key)
    created_at = gang.created if gang.created is not None else pods[0][0]
    keys = tuple(pod for _, pod in pods)
    return [Turn((-priority, surplus, created_at, key), keys, key) for surplus in (False, True)]


def not_considered(pod: Pod, profile: Profile) -> NotConsidered | None:
    """Return why the scheduler does not try a pending pod; None if the scheduler tries the pod."""
    spec = pod.spec
    if (spec.scheduler_name or profile.scheduler_name) != profile.scheduler_name:
        return NotConsidered(pod.key, "other scheduler", f"schedulerName is {spec.scheduler_name}")
    if pod.metadata.deletion_timestamp is not None:
        return NotConsidered(pod.key, "terminating", "the pod is being deleted")
    if spec.scheduling_gates and profile.gates:
        gates = " ".join(gate.name for gate in spec.scheduling_gates)
        return NotConsidered(pod.key, "gated", f"waiting for scheduling gates: [{gates}]")
    return None


def creation_time(pod: Pod) -> int:
    """Return when a pod was created, in microseconds."""
    stamp = pod.metadata.creation_timestamp
    return micros(stamp) if stamp else NO_CREATION_TIME
