"""Proposals that change the gang's own pods and group; the caller tries whether they help.

Every proposal makes the same change to all pending pods of the gang. No proposal tolerates a cordon or a taint that
reports a problem of the node, because those are for the node's owner to remove.
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
from tutti.kube.gangs.dialect import unfinished_pods
from tutti.kube.generated_names import made_uid
from tutti.kube.objects import Object, Pod, PodSpec, PodStatus, Toleration
from tutti.kube.taints import HARD_EFFECTS, tolerates

_MAX_TAINT_SETS = 6
"""The maximum number of taint sets that are proposed to be tolerated."""
_MAX_NEW_PODS = 1_000
"""The maximum number of new pods for the gang or for one of its parts."""


def gang_members(trials: CureTrials) -> list[Pod]:
    """Return the gang's pods that are waiting or running, each with its current node."""
    pods, members = trials.cluster.pods, []
    for row in trials.gangs.rows(trials.key):
        pod = pods.objects[row]
        if pod is not None:
            node = pods.node_names[row]
            members.append(pod if node == pod.spec.node_name else replace(pod, spec=replace(pod.spec, node_name=node)))
    return unfinished_pods(members)


def gang_objects(trials: CureTrials) -> list[Object]:
    """Return the objects that describe the gang."""
    return group_objects(group_keys(trials), trials.find_object)


def group_keys(trials: CureTrials) -> list[str]:
    """Return the keys of the groups that the gang's pods name."""
    membership_by_row = trials.cluster.groups.membership_by_row
    return sorted({membership_by_row[row].group for row in trials.gangs.rows(trials.key)})


def put_edits(changed: Iterable[Object]) -> tuple[Put, ...]:
    """Return the edits that replace objects."""
    return tuple(map(Put, changed))


# What the pods require of nodes ---------------------------------------------------------------------------------------


def toleration_proposals(trials: CureTrials) -> Iterator[list[Cure]]:
    """Yield one round: tolerate the taints that keep the gang's pods off nodes, the most frequent taints first."""
    proposals = []
    pods = trials.waiting_pods()
    tolerations = [t for pod in pods[:1] for t in pod.spec.tolerations or ()]
    node_counts: Counter[tuple[tuple[str, str, str], ...]] = Counter()
    nodes = trials.cluster.nodes
    for row in nodes.row_of.values():
        node = nodes.objects[row]
        hard = [t for t in (node.spec.taints if node is not None else None) or () if t.effect in HARD_EFFECTS]
        untolerated = [t for t in hard if not any(tolerates(each, t) for each in tolerations)]
        if untolerated and nodes.on[row] and not any(map(is_transient_taint, untolerated)):
            node_counts[tuple((t.key, t.value or "", t.effect) for t in untolerated)] += 1
    for taints, number in sorted(node_counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_MAX_TAINT_SETS]:
        new = [_toleration(*taint) for taint in taints]
        taint_text = ", ".join(f"{key}{f'={value}' if value else ''}:{effect}" for key, value, effect in taints)
        text = f"let its pods tolerate {taint_text} (on {number} node{'' if number == 1 else 's'})"
        proposals.append(Cure(kind="toleration", text=text, edits=_edit_specs(pods, partial(_tolerating, new=new))))
    yield proposals


def _toleration(key: str, value: str, effect: str) -> Toleration:
    if value:
        return Toleration(key=key, operator="Equal", value=value, effect=effect)
    return Toleration(key=key, operator="Exists", effect=effect)


def _tolerating(spec: PodSpec, new: list[Toleration]) -> PodSpec:
    return replace(spec, tolerations=[*(spec.tolerations or ()), *new])


def selector_proposals(trials: CureTrials) -> Iterator[list[Cure]]:
    """Yield two rounds: drop each node selector label, and the required node affinity, alone; then all of them."""
    pods = trials.waiting_pods()
    selected = sorted({(key, value) for pod in pods for key, value in (pod.spec.node_selector or {}).items()})
    proposals = [
        (
            f"drop nodeSelector {key}={value} of its pods",
            _edit_specs(pods, partial(_without_selector, pairs={(key, value)})),
        )
        for key, value in selected
    ]
    has_required_affinity = any(_has_required_affinity(pod.spec) for pod in pods)
    if has_required_affinity:
        proposals.append(("drop the required node affinity of its pods", _edit_specs(pods, _without_required_affinity)))
    yield [Cure(kind="nodeSelector", text=text, edits=edits) for text, edits in proposals]
    if len(proposals) > 1:
        text = f"drop nodeSelector{' and required node affinity' if has_required_affinity else ''} of its pods"
        edits = _edit_specs(pods, lambda spec: _without_required_affinity(_without_selector(spec, set(selected))))
        yield [Cure(kind="nodeSelector", text=text, edits=edits)]


def _edit_specs(pods: Iterable[Pod], change: Callable[[PodSpec], PodSpec]) -> tuple[Put, ...]:
    return put_edits(replace(pod, spec=change(pod.spec)) for pod in pods)


def _without_selector(spec: PodSpec, pairs: set[tuple[str, str]]) -> PodSpec:
    kept = {key: value for key, value in (spec.node_selector or {}).items() if (key, value) not in pairs}
    return replace(spec, node_selector=kept or None)


def _has_required_affinity(spec: PodSpec) -> bool:
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    return affinity is not None and affinity.required is not None


def _without_required_affinity(spec: PodSpec) -> PodSpec:
    if spec.affinity is None or spec.affinity.node_affinity is None:
        return spec
    return replace(
        spec, affinity=replace(spec.affinity, node_affinity=replace(spec.affinity.node_affinity, required=None))
    )


# What the gang requires -----------------------------------------------------------------------------------------------


def topology_proposals(trials: CureTrials) -> Iterator[list[Cure]]:
    """Yield two rounds: drop each required topology label alone; then all of them."""
    gang = trials.gangs.gang(trials.key)
    gang_topologies = [gang.topology, *(topology for part in gang.parts for topology in topologies(part))]
    labels = list(dict.fromkeys(each.required for each in gang_topologies if each.required))
    yield [_topology_proposal(trials, [label]) for label in labels]
    if len(labels) > 1:
        yield [_topology_proposal(trials, labels)]


def _topology_proposal(trials: CureTrials, labels: list[str]) -> Cure:
    described_by: tuple[Object, ...] = (*gang_objects(trials), *gang_members(trials))
    originals = {(o.KIND, o.key): o for o in described_by}
    edited: dict[tuple[str, str], Object] = {}
    for label in labels:
        changed = without_topology((originals | edited).values(), label, trials.find_object)
        edited |= {(o.KIND, o.key): o for o in changed}
    text = f"drop its required topology {' and '.join(labels)}"
    return Cure(kind="topology", text=text, edits=put_edits(edited.values()))


# What is missing ------------------------------------------------------------------------------------------------------


def missing_group_proposal(trials: CureTrials) -> Cure | None:
    """Return the proposal to create the missing group object, with the number of pods as its minimum."""
    gang, count = trials.gangs.gang(trials.key), len(gang_members(trials))
    missing = missing_group(trials.key, gang.dialect, group_keys(trials), count, trials.find_object)
    if missing is None:
        return None
    obj, size = missing
    return Cure(kind="group", text=f"create {obj.WIRE_KIND} {obj.key} with {size}", edits=(Put(obj),))


def gates_proposal(trials: CureTrials) -> Cure | None:
    """Return the proposal to remove the scheduling gates of the gang's pods."""
    pods = map(trials.cluster.pod, trials.pending_keys())
    gated = [pod for pod in pods if pod.spec.scheduling_gates and not pod.metadata.deletion_timestamp]
    if not gated or not trials.engine.profile.gates:
        return None
    names = ", ".join(sorted({gate.name for pod in gated for gate in pod.spec.scheduling_gates or ()}))
    text = f"remove the scheduling gate{'s' if ',' in names else ''} {names} of {_count_text(len(gated), 'pod')}"
    return Cure(kind="gates", text=text, edits=_edit_specs(gated, lambda spec: replace(spec, scheduling_gates=None)))


def more_pods_proposal(trials: CureTrials) -> Cure | None:
    """Return the proposal to create the pods that the gang lacks, each as a copy of an existing one."""
    new_pods: dict[str, Pod] = {}
    template_names: dict[str, None] = {}
    state = trials.gang_state()
    for count, rows in _missing_pods(state, state.need()):
        if not rows or count > _MAX_NEW_PODS:
            return None
        template = trials.cluster.pod(trials.cluster.pods.keys[rows[0]])
        template_names[template.metadata.name] = None
        number = 0
        for _ in range(count):
            number += 1
            while (key := f"{template.key}-more-{number}") in trials.cluster.pods.row_of or key in new_pods:
                number += 1
            new_pods[key] = _copy_pod(template, key)
    if not new_pods:
        return None
    text = f"create {_count_text(len(new_pods), 'more pod')} like {', '.join(template_names)}"
    return Cure(kind="pods", text=text, edits=put_edits(new_pods.values()), pods=len(new_pods))


def _missing_pods(state: GangState, need: Need) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield, part by part, the number of missing pods and the rows of pods that can serve as templates."""
    unmet_parts = sorted((part for part in need.parts if part.least), key=lambda part: part.least)
    missing_in_parts = 0
    for part in unmet_parts[: need.parts_needed]:
        for count, rows in _missing_pods(state, part):
            missing_in_parts += count
            yield count, rows
    missing = need.missing - len(need.all_waiting) - missing_in_parts
    if missing > 0:
        other_members = (*state.waiting, *state.running) if need.parts else need.running
        yield missing, (*need.waiting, *other_members)


def _copy_pod(pod: Pod, key: str) -> Pod:
    """Return a new pending pod with the spec of another pod."""
    name = key.partition("/")[2]
    metadata = replace(pod.metadata, name=name, uid=made_uid(f"Pod/{key}"), creation_timestamp=None)
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=None), status=PodStatus(phase="Pending"))


def _count_text(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
