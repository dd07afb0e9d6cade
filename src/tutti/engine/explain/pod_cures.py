"""Cures in the gang's own pods and group, as proposals: whether they help is for the caller to try.

Every proposal edits all pods that wait alike. Taints that tell of trouble on a node are not proposed to be tolerated,
and neither is a cordon: that is a node's matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from msgspec.structs import replace

from tutti.cluster.edits import Put
from tutti.cluster.node_edits import is_transient_taint
from tutti.engine.explain.cure_trials import Cure, CureTrials
from tutti.engine.explain.group_edits import group_objects, missing_group, without_topology
from tutti.engine.explain.node_cures import topologies
from tutti.engine.gangs.gang_state import GangState, Need
from tutti.kube.gangs.dialect import waiting_or_running
from tutti.kube.generated_names import made_uid
from tutti.kube.objects import Object, Pod, PodSpec, PodStatus, Toleration
from tutti.kube.taints import HARD_EFFECTS, tolerates

_TAINTS = 6
"""Sets of taints that are proposed."""
_NEW_PODS = 1_000
"""New pods that are proposed at most."""


def members(trials: CureTrials) -> list[Pod]:
    """The gang's pods that count, each with the node that it is on."""
    pods, found = trials.cluster.pods, []
    for row in trials.gangs.rows(trials.key):
        pod = pods.objects[row]
        if pod is not None:
            node = pods.node_names[row]
            found.append(pod if node == pod.spec.node_name else replace(pod, spec=replace(pod.spec, node_name=node)))
    return waiting_or_running(found)


def objects(trials: CureTrials) -> list[Object]:
    """The objects that describe the gang."""
    return group_objects(groups(trials), trials.find)


def groups(trials: CureTrials) -> list[str]:
    """The groups that the gang's pods name."""
    membership_by_row = trials.cluster.groups.membership_by_row
    return sorted({membership_by_row[row].group for row in trials.gangs.rows(trials.key)})


def puts(changed: Iterable[Object]) -> tuple[Put, ...]:
    """Edits that replace objects."""
    return tuple(map(Put, changed))


# What pods ask of nodes -----------------------------------------------------------------------------------------------


def toleration_proposals(trials: CureTrials) -> Iterator[list[Cure]]:
    """The taints that keep the gang's pods off nodes, those of most nodes first."""
    found = []
    pods = trials.waiting()
    borne = [t for pod in pods[:1] for t in pod.spec.tolerations or ()]
    stopping: Counter[tuple[tuple[str, str, str], ...]] = Counter()
    nodes = trials.cluster.nodes
    for row in nodes.row_of.values():
        node = nodes.objects[row]
        hard = [t for t in (node.spec.taints if node is not None else None) or () if t.effect in HARD_EFFECTS]
        left = [t for t in hard if not any(tolerates(each, t) for each in borne)]
        if left and nodes.on[row] and not any(map(is_transient_taint, left)):
            stopping[tuple((t.key, t.value or "", t.effect) for t in left)] += 1
    for taints, number in sorted(stopping.items(), key=lambda pair: (-pair[1], pair[0]))[:_TAINTS]:
        new = [_toleration(*taint) for taint in taints]
        named = ", ".join(f"{key}{f'={value}' if value else ''}:{effect}" for key, value, effect in taints)
        text = f"let its pods tolerate {named} (on {number} node{'' if number == 1 else 's'})"
        found.append(Cure(kind="toleration", text=text, edits=_specs(pods, partial(_tolerating, new=new))))
    yield found


def _toleration(key: str, value: str, effect: str) -> Toleration:
    if value:
        return Toleration(key=key, operator="Equal", value=value, effect=effect)
    return Toleration(key=key, operator="Exists", effect=effect)


def _tolerating(spec: PodSpec, new: list[Toleration]) -> PodSpec:
    return replace(spec, tolerations=[*(spec.tolerations or ()), *new])


def selector_proposals(trials: CureTrials) -> Iterator[list[Cure]]:
    """Each label of the node selector and the required node affinity by itself; then all of it."""
    pods = trials.waiting()
    asked = sorted({(key, value) for pod in pods for key, value in (pod.spec.node_selector or {}).items()})
    found = [
        (f"drop nodeSelector {key}={value} of its pods", _specs(pods, partial(_unselected, pairs={(key, value)})))
        for key, value in asked
    ]
    bound = any(_requires_nodes(pod.spec) for pod in pods)
    if bound:
        found.append(("drop the required node affinity of its pods", _specs(pods, _unbound)))
    yield [Cure(kind="nodeSelector", text=text, edits=edits) for text, edits in found]
    if len(found) > 1:
        text = f"drop nodeSelector{' and required node affinity' if bound else ''} of its pods"
        edits = _specs(pods, lambda spec: _unbound(_unselected(spec, set(asked))))
        yield [Cure(kind="nodeSelector", text=text, edits=edits)]


def _specs(pods: Iterable[Pod], change: Callable[[PodSpec], PodSpec]) -> tuple[Put, ...]:
    return puts(replace(pod, spec=change(pod.spec)) for pod in pods)


def _unselected(spec: PodSpec, pairs: set[tuple[str, str]]) -> PodSpec:
    kept = {key: value for key, value in (spec.node_selector or {}).items() if (key, value) not in pairs}
    return replace(spec, node_selector=kept or None)


def _requires_nodes(spec: PodSpec) -> bool:
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    return affinity is not None and affinity.required is not None


def _unbound(spec: PodSpec) -> PodSpec:
    if spec.affinity is None or spec.affinity.node_affinity is None:
        return spec
    return replace(
        spec, affinity=replace(spec.affinity, node_affinity=replace(spec.affinity.node_affinity, required=None))
    )


# What the gang asks ---------------------------------------------------------------------------------------------------


def topology_proposals(trials: CureTrials) -> Iterator[list[Cure]]:
    """Each label that is required by itself; then all of them."""
    gang = trials.gangs.gang(trials.key)
    every = [gang.topology, *(topology for part in gang.parts for topology in topologies(part))]
    labels = list(dict.fromkeys(each.required for each in every if each.required))
    yield [_without(trials, [label]) for label in labels]
    if len(labels) > 1:
        yield [_without(trials, labels)]


def _without(trials: CureTrials, labels: list[str]) -> Cure:
    whole: dict[tuple[str, str], Object] = {(o.KIND, o.key): o for o in (*objects(trials), *members(trials))}
    edited: dict[tuple[str, str], Object] = {}
    for label in labels:
        edited |= {(o.KIND, o.key): o for o in without_topology((whole | edited).values(), label, trials.find)}
    text = f"drop its required topology {' and '.join(labels)}"
    return Cure(kind="topology", text=text, edits=puts(edited.values()))


# What is not there ----------------------------------------------------------------------------------------------------


def missing_group_proposal(trials: CureTrials) -> Cure | None:
    """The group object that the pods name and nobody has made, with the number of pods as its minimum."""
    gang, count = trials.gangs.gang(trials.key), len(members(trials))
    made = missing_group(trials.key, gang.dialect, groups(trials), count, trials.find)
    if made is None:
        return None
    obj, size = made
    return Cure(kind="group", text=f"create {obj.WIRE_KIND} {obj.key} with {size}", edits=(Put(obj),))


def gates_proposal(trials: CureTrials) -> Cure | None:
    """The pods that wait for scheduling gates."""
    pods = map(trials.cluster.pod, trials.pending())
    gated = [pod for pod in pods if pod.spec.scheduling_gates and not pod.metadata.deletion_timestamp]
    if not gated or not trials.engine.profile.gates:
        return None
    names = ", ".join(sorted({gate.name for pod in gated for gate in pod.spec.scheduling_gates or ()}))
    text = f"remove the scheduling gate{'s' if ',' in names else ''} {names} of {_counted(len(gated), 'pod')}"
    return Cure(kind="gates", text=text, edits=_specs(gated, lambda spec: replace(spec, scheduling_gates=None)))


def more_pods_proposal(trials: CureTrials) -> Cure | None:
    """As many further pods as the gang lacks, each like one that is there."""
    made: dict[str, Pod] = {}
    likes: dict[str, None] = {}
    standing = trials.standing()
    for count, rows in _short(standing, standing.need()):
        if not rows or count > _NEW_PODS:
            return None
        like = trials.cluster.pod(trials.cluster.pods.keys[rows[0]])
        likes[like.metadata.name] = None
        number = 0
        for _ in range(count):
            number += 1
            while (key := f"{like.key}-more-{number}") in trials.cluster.pods.row_of or key in made:
                number += 1
            made[key] = _another(like, key)
    if not made:
        return None
    text = f"create {_counted(len(made), 'more pod')} like {', '.join(likes)}"
    return Cure(kind="pods", text=text, edits=puts(made.values()), pods=len(made))


def _short(standing: GangState, need: Need) -> Iterator[tuple[int, tuple[int, ...]]]:
    """How many pods are missing, part by part, and the pods that they could be like."""
    lacking = sorted((part for part in need.parts if part.least), key=lambda part: part.least)
    found = 0
    for part in lacking[: need.parts_needed]:
        for count, rows in _short(standing, part):
            found += count
            yield count, rows
    missing = need.lack - len(need.everybody) - found
    if missing > 0:
        others = (*standing.waiting, *standing.running) if need.parts else need.running
        yield missing, (*need.waiting, *others)


def _another(pod: Pod, key: str) -> Pod:
    """A pod like another, pending and new."""
    name = key.partition("/")[2]
    metadata = replace(pod.metadata, name=name, uid=made_uid(f"Pod/{key}"), creation_timestamp=None)
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=None), status=PodStatus(phase="Pending"))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
