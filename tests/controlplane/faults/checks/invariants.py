"""The invariants of a soak run, checked on its history.

Contract: pure functions; each returns the violations it found, and an empty list if the invariant holds.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec

from tests.controlplane.faults.checks.history import GangChange, History, NodeChange, PodChange


class Violation(msgspec.Struct, frozen=True):
    """A broken invariant: when, which object, and what happened."""

    time: float
    name: str
    problem: str


def nodes_over_allocatable(history: History) -> list[Violation]:
    """Return each bind after which the pods of a node requested more than the node has.

    A pod takes room from its bind until it is Succeeded, Failed or gone. Changes of pods are in the order of the API
    server, so a bind is compared with exactly the pods that the server had at that moment.
    """
    nodes = {node.name: node for node in history.nodes}
    on_node: dict[str, dict[str, PodChange]] = defaultdict(dict)
    place: dict[str, str] = {}
    found = []
    for pod in history.pods:
        if not pod.is_running:
            on_node[place.pop(pod.uid, "")].pop(pod.uid, None)
            continue
        is_new = pod.uid not in place
        place[pod.uid] = pod.node
        on_node[pod.node][pod.uid] = pod
        node = nodes.get(pod.node)
        if is_new and node is not None and (excess := _excess(node, on_node[pod.node])):
            found.append(Violation(pod.time, pod.node, f"{excess} after the bind of {pod.name}"))
    return found


def pods_bound_twice(history: History) -> list[Violation]:
    """Return pods with two accepted Bindings, or with two nodes."""
    found = []
    binds = [write for write in history.writes if write.verb == "bind"]
    for key, count in Counter(write.uid or write.name for write in binds).items():
        if count > 1:
            last = next(write for write in reversed(binds) if key in (write.uid, write.name))
            found.append(Violation(last.time, last.name, f"{count} Bindings were accepted"))
    nodes: dict[str, str] = {}
    for pod in history.pods:
        before = nodes.setdefault(pod.uid, pod.node) or pod.node
        if pod.node and pod.node != before:
            found.append(Violation(pod.time, pod.name, f"moved from {before} to {pod.node}"))
        nodes[pod.uid] = pod.node or before
    return found


def pods_lost(history: History) -> list[Violation]:
    """Return gangs whose pods wait at the end although there is room for the minimum.

    Pods of a gang request the same, so counting the places on each node is exact. Room to which pods of at least the
    same priority are nominated counts as taken.
    """
    last = final_pods(history)
    found = []
    for gang, pods in _waiting_gangs(history, last).items():
        running = sum(pod.is_running and not pod.deleting for pod in last if pod.gang == gang.name)
        missing = max(gang.minimum - running, 1)
        pod = pods[0]
        places = sum(_places(node, last, pod) for node in history_nodes(history))
        if len(pods) >= missing and places >= missing:
            reason = f"{pod.reason}: {pod.message}" if pod.reason else "no reason is given"
            found.append(
                Violation(pod.time, gang.name, f"{missing} of {gang.minimum} wait, {places} would fit; {reason}")
            )
    return found


def silent_pods(history: History) -> list[Violation]:
    """Return pods that wait at the end and do not say why."""
    return [
        Violation(pod.time, pod.name, "waits without a reason")
        for pod in final_pods(history)
        if pod.is_pending and not pod.message
    ]


def final_pods(history: History) -> list[PodChange]:
    """Return the pods that exist at the end, as they were last seen."""
    last = {pod.uid: pod for pod in history.pods}
    return [pod for pod in last.values() if not pod.gone]


def history_nodes(history: History) -> list[NodeChange]:
    """Return the nodes that exist at the end."""
    last = {node.name: node for node in history.nodes}
    return [node for node in last.values() if not node.gone]


def _excess(node: NodeChange, pods: dict[str, PodChange]) -> str:
    cpu, memory = sum(pod.cpu for pod in pods.values()), sum(pod.memory for pod in pods.values())
    if cpu > node.cpu:
        return f"cpu {cpu}m of {node.cpu}m"
    if memory > node.memory:
        return f"memory {memory} of {node.memory}"
    return f"{len(pods)} of {node.pods} pods" if len(pods) > node.pods else ""


def _waiting_gangs(history: History, last: list[PodChange]) -> dict[GangChange, list[PodChange]]:
    ended = {gang.name for gang in history.gangs if gang.ended}
    gangs = {gang.name: gang for gang in history.gangs if not gang.ended and gang.name not in ended}
    waiting: dict[GangChange, list[PodChange]] = defaultdict(list)
    for pod in last:
        if pod.is_pending and pod.gang in gangs:
            waiting[gangs[pod.gang]].append(pod)
    return waiting


def _places(node: NodeChange, pods: list[PodChange], wanted: PodChange) -> int:
    """Return how many pods like this one fit on a node."""
    taken = [
        pod
        for pod in pods
        if (pod.is_running and pod.node == node.name)
        or (pod.nominated == node.name and pod.gang != wanted.gang and pod.priority >= wanted.priority)
    ]
    cpu, memory = node.cpu - sum(pod.cpu for pod in taken), node.memory - sum(pod.memory for pod in taken)
    fits = [node.pods - len(taken)]
    if wanted.cpu:
        fits.append(cpu // wanted.cpu)
    if wanted.memory:
        fits.append(memory // wanted.memory)
    return max(min(fits), 0)
