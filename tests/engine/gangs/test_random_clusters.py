"""Properties of gangs in any cluster: all or nothing, no needless eviction, no overfilled node, topology kept.

Every test draws its cluster from a seed (`tests/support/random_gang_clusters.py`) and checks a plan by the objects
alone: usage is added up from the objects, and the running pods are read from the cluster after the plan.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import msgspec
import pytest

from tests.support.cluster_state import cluster_state
from tests.support.gang_manifests import read_gangs
from tests.support.random_gang_clusters import RandomGangCluster, node_amounts, pod_amounts, shuffled
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Bind, Remove, Unbind
from tutti.engine.explain.node_verdicts import node_verdicts
from tutti.engine.placement.engine import Engine
from tutti.engine.session.plan import Bound, Plan
from tutti.engine.session.policy import SECOND, Policy
from tutti.engine.session.queue import Queue
from tutti.engine.session.queue_state import QueueRecord
from tutti.engine.session.schedule import schedule
from tutti.engine.session.session import session
from tutti.kube import objects as k
from tutti.kube.gangs.gang import DisruptionMode, GangPart
from tutti.kube.gangs.reader import membership, part_of, root_group
from tutti.kube.objects import Object

SEEDS = [f"{number}" for number in range(100)]
FEW_SEEDS = SEEDS[:20]
SESSIONS = 10
START = 1_800_000_000 * SECOND
ORDER_DEPENDENT_PLUGINS = ("InterPodAffinity", "PodTopologySpread")
"""Plugins whose verdict depends on the order in which pods are bound."""

each_cluster = pytest.mark.parametrize("seed", SEEDS)
some_clusters = pytest.mark.parametrize("seed", FEW_SEEDS)


class Members:
    """The gangs among some objects, with their pods."""

    def __init__(self, objects: Iterable[Object]) -> None:
        objects = list(objects)
        self.pods = {obj.key: obj for obj in objects if isinstance(obj, k.Pod)}
        self.nodes = {obj.key: obj for obj in objects if isinstance(obj, k.Node)}
        self.gangs = read_gangs(objects)
        known = {(obj.KIND, obj.key): obj for obj in objects}
        self.gang_of: dict[str, str] = {}
        self.part_of: dict[str, str] = {}
        for key, pod in self.pods.items():
            says = membership(pod)
            if says is not None:
                self.gang_of[key] = root_group(says.group, lambda kind, name: known.get((kind, name)))
                self.part_of[key] = part_of(says, self.gang_of[key])
        self.of: dict[str, list[str]] = {}
        for key, gang in self.gang_of.items():
            self.of.setdefault(gang, []).append(key)

    def running(self, gang: str) -> set[str]:
        """Return the members on nodes that are not terminating."""
        pods = (self.pods[key] for key in self.of.get(gang, ()))
        return {p.key for p in pods if p.spec.node_name in self.nodes and p.metadata.deletion_timestamp is None}

    def waiting(self, gang: str) -> set[str]:
        """Return the members that may be scheduled."""
        pods = (self.pods[key] for key in self.of.get(gang, ()))
        return {p.key for p in pods if not p.spec.node_name and not _is_not_considered(p)}

    def priority(self, key: str) -> int:
        """Return the priority of a pod or a gang; without its own, a gang has the highest priority of its members."""
        if key in self.pods:
            return self.pods[key].spec.priority or 0
        own_priority = self.gangs[key].priority
        return (
            own_priority if own_priority is not None else max(self.pods[pod].spec.priority or 0 for pod in self.of[key])
        )

    def is_short(self, key: str, present: set[str]) -> bool:
        """Return whether a gang with these running pods is below a minimum."""
        gang = self.gangs[key]
        return _is_short(
            GangPart(key, gang.minimum, gang.topology, gang.parts, gang.parts_needed), self, present, whole=True
        )

    def domains(self, key: str, present: set[str]) -> Iterator[tuple[str, str, set[str | None]]]:
        """Yield each part with a required label, the label, and its values where these pods run."""
        gang = self.gangs[key]
        whole = GangPart(key, topology=gang.topology, parts=gang.parts)
        for part, names in _each_part(whole):
            label = part.topology.required
            own_pods = present if part is whole else {pod for pod in present if self.part_of[pod] in names}
            if label is not None:
                yield part.name, label, {self.label(pod, label) for pod in own_pods}

    def label(self, pod: str, label: str) -> str | None:
        """Return the value of a label on the node of a pod."""
        return (self.nodes[self.pods[pod].spec.node_name or ""].metadata.labels or {}).get(label)


def _is_short(part: GangPart, members: Members, present: set[str], *, whole: bool = False) -> bool:
    inside = {name for each, _ in _each_part(part) for name in (each.name,)}
    own_pods = present if whole else {pod for pod in present if members.part_of[pod] in inside}
    reached = sum(not _is_short(each, members, present) for each in part.parts)
    needed = len(part.parts) if part.parts_needed is None else part.parts_needed
    return len(own_pods) < part.minimum or reached < needed


def _each_part(part: GangPart) -> Iterator[tuple[GangPart, set[str]]]:
    """Yield a part and all parts within it, each with the names of the parts that it contains."""
    below = [pair for each in part.parts for pair in _each_part(each)]
    yield part, {part.name, *(each.name for each, _ in below)}
    yield from below


def _is_not_considered(pod: k.Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None or bool(pod.spec.scheduling_gates)


class Outcome(NamedTuple):
    """A cluster, the plan for it, and the cluster after the plan."""

    objects: list[Object]
    plan: Plan
    cluster: Cluster
    before: Members
    after: Members

    @property
    def bound(self) -> dict[str, str]:
        return {each.pod: each.node for each in self.plan.binds}

    @property
    def evicted(self) -> set[str]:
        return {each.pod for each in self.plan.evictions if each.to is None}


def objects_of(cluster: Cluster) -> list[Object]:
    """Return the objects of a cluster, pods with their current nodes."""
    found: list[Object] = [obj for objects in cluster.objects.values() for obj in objects.values()]
    found += [node for node in cluster.nodes.objects if node is not None]
    for key, row in cluster.pods.row_of.items():
        pod = cluster.pod(key)
        spec = msgspec.structs.replace(pod.spec, node_name=cluster.pods.node_names[row])
        found.append(msgspec.structs.replace(pod, spec=spec))
    return found


@cache
def planned(seed: str, *, preemption: bool = True, consolidation: bool = False) -> Outcome:
    """Schedule a random cluster."""
    objects = RandomGangCluster(seed).objects
    cluster = Cluster(objects)
    plan = schedule(cluster, preemption=preemption, consolidation=consolidation)
    return Outcome(objects, plan, cluster, Members(objects), Members(objects_of(cluster)))


@some_clusters
@pytest.mark.parametrize("consolidation", [False, True])
def test_the_edits_of_a_plan_give_the_scheduled_cluster(seed: str, consolidation: bool) -> None:
    outcome = planned(seed, consolidation=consolidation)
    cluster = Cluster(outcome.objects)
    for edit in outcome.plan.edits():
        cluster.apply(edit)
    assert cluster_state(cluster) == cluster_state(outcome.cluster)


# All or nothing -------------------------------------------------------------------------------------------------------


def incomplete_gangs(before: Members, after: Members, bound: Iterable[str], evicted: set[str]) -> list[str]:
    """Return the gangs of which a pod was bound and that are below a minimum nevertheless."""
    found = []
    for gang in sorted({before.gang_of[pod] for pod in bound if pod in before.gang_of}):
        # A gang that is evicted pod by pod may have lost pods to another gang after it had started.
        lost_pods = after.gangs.get(gang, before.gangs[gang]).disruption is DisruptionMode.SINGLE and any(
            before.gang_of.get(pod) == gang for pod in evicted
        )
        left = after.running(gang)
        if left and before.is_short(gang, left) and after.is_short(gang, left) and not lost_pods:
            found.append(gang)
    return found


@each_cluster
def test_a_gang_of_which_a_pod_starts_reaches_its_minimums(seed: str) -> None:
    outcome = planned(seed)
    assert incomplete_gangs(outcome.before, outcome.after, outcome.bound, outcome.evicted) == []


@each_cluster
def test_a_gang_that_cannot_start_binds_no_pod_and_has_a_message(seed: str) -> None:
    outcome = planned(seed)
    gang_results = {each.gang: each for each in outcome.plan.gangs}
    for key, gang in outcome.before.gangs.items():
        waiting = outcome.before.waiting(key)
        if not waiting or not (gang.problem or outcome.before.is_short(key, outcome.before.running(key) | waiting)):
            continue
        if gang.problem is None and outcome.evicted.intersection(outcome.before.of[key]):
            continue  # a minimum that counts the pods has become lower
        assert not waiting.intersection(outcome.bound), key
        assert gang_results[key].message, key
        assert not gang_results[key].placed, key


@each_cluster
def test_every_pending_pod_is_in_the_plan_once(seed: str) -> None:
    outcome = planned(seed)
    plan = outcome.plan
    listed = Counter(each.pod for part in (plan.unschedulable, plan.not_considered, plan.nominated) for each in part)
    listed += Counter(set(outcome.bound))
    assert listed == Counter(key for key, pod in outcome.before.pods.items() if not pod.spec.node_name)
    for gang in plan.gangs:
        own_pods = [pod for pod in outcome.bound if outcome.before.gang_of.get(pod) == gang.gang]
        assert gang.placed == len(own_pods), gang.gang


# Room and rules -------------------------------------------------------------------------------------------------------


def overfilled_nodes(after: Members, nodes: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Return the nodes that are filled beyond their allocatable, and the free amounts on each."""
    found = {}
    for name in set(nodes):
        taken = [pod_amounts(pod) for pod in after.pods.values() if pod.spec.node_name == name]
        left = tuple(o - sum(t) for o, *t in zip(node_amounts(after.nodes[name]), *taken, strict=True))
        if min(left) < 0:
            found[name] = left
    return found


@each_cluster
def test_no_node_is_filled_beyond_its_allocatable(seed: str) -> None:
    outcome = planned(seed)
    assert overfilled_nodes(outcome.after, outcome.bound.values()) == {}


@each_cluster
def test_every_pod_is_feasible_on_its_node(seed: str) -> None:
    """Check each pod after the plan; pods with rules between pods are checked in the order of the plan instead."""
    outcome = planned(seed)
    cluster = Cluster(objects_of(outcome.cluster))
    engine = Engine(cluster)
    for pod, node in outcome.bound.items():
        if pod not in cluster.pods.row_of:
            continue  # evicted later in the plan
        cluster.apply(Unbind(pod))
        verdicts = node_verdicts(engine, pod)
        why = verdicts.rejected.get(node) or verdicts.refused
        assert node in verdicts.feasible or (why is not None and why.plugin in ORDER_DEPENDENT_PLUGINS), (
            pod,
            node,
            why,
        )
        cluster.apply(Bind(pod, node))


@each_cluster
def test_the_plan_can_be_carried_out_step_by_step(seed: str) -> None:
    outcome = planned(seed)
    cluster = Cluster(outcome.objects)
    engine = Engine(cluster)
    for victim in outcome.evicted.difference(*(bound.evicts for bound in outcome.plan.binds)):
        cluster.apply(Remove("Pod", victim))  # evicted for a pod that waits for terminating pods
    for bound in outcome.plan.binds:
        for victim in bound.evicts:
            cluster.apply(Remove("Pod", victim))
        verdicts = node_verdicts(engine, bound.pod)
        assert bound.node in verdicts.feasible, (
            bound.pod,
            bound.node,
            verdicts.rejected.get(bound.node) or verdicts.refused,
        )
        cluster.apply(Bind(bound.pod, bound.node))


def gangs_outside_their_domain(
    before: Members, after: Members, changed: Iterable[str]
) -> list[tuple[str, str, set[str | None]]]:
    """Return the gangs and parts whose pods were in one domain and then came to run outside of it."""
    found = []
    for gang in sorted({before.gang_of[pod] for pod in changed if pod in before.gang_of}):
        was = {part: values for part, _, values in before.domains(gang, before.running(gang))}
        if gang not in after.gangs:
            continue  # the gang was evicted
        for part, label, values in after.domains(gang, after.running(gang)):
            ok = len(was[part]) <= 1 and None not in was[part]
            if ok and (len(values) > 1 or None in values):
                found.append((f"{gang} {part}", label, values))
    return found


@each_cluster
def test_members_share_the_required_label(seed: str) -> None:
    outcome = planned(seed)
    assert gangs_outside_their_domain(outcome.before, outcome.after, outcome.bound) == []


# Evictions ------------------------------------------------------------------------------------------------------------


@each_cluster
def test_every_preemptor_starts(seed: str) -> None:
    outcome = planned(seed)
    for by in {each.by for each in outcome.plan.evictions}:
        own_pods = {by} if by in outcome.before.pods else set(outcome.before.of[by])
        if own_pods & outcome.evicted:
            continue  # evicted for a more important gang
        # Room is held where terminating pods must leave first; the next plan shows whether that room is needed.
        starts = {*outcome.bound, *(each.pod for each in outcome.plan.nominated)}
        if by in outcome.before.pods:
            assert by in starts, by
        else:
            assert not outcome.after.is_short(by, outcome.after.running(by) | own_pods & starts), by
        for pod in own_pods.intersection(outcome.bound):
            assert outcome.before.pods[pod].spec.preemption_policy != "Never"


@each_cluster
def test_only_pods_of_lower_priority_are_evicted(seed: str) -> None:
    outcome = planned(seed)
    before = outcome.before
    for each in outcome.plan.evictions:
        assert before.priority(each.pod) < before.priority(each.by), each
        if each.gang is not None:
            assert before.priority(each.gang) < before.priority(each.by), each


@each_cluster
def test_gangs_are_evicted_whole_or_lose_their_surplus_only(seed: str) -> None:
    outcome = planned(seed)
    for gang in {outcome.before.gang_of[pod] for pod in outcome.evicted if pod in outcome.before.gang_of}:
        record, ran = outcome.before.gangs[gang], outcome.before.running(gang)
        if record.disruption is DisruptionMode.SINGLE:
            continue
        stays = ran - outcome.evicted
        if record.disruption is DisruptionMode.WHOLE and not outcome.before.is_short(gang, outcome.after.running(gang)):
            continue
        assert not stays, (gang, record.disruption)


@pytest.mark.parametrize("block", range(4))
def test_no_eviction_is_needless(block: int) -> None:
    """Check clusters in which only one turn evicts other pods."""
    with_one = [
        (outcome, steps[0])
        for outcome in map(planned, SEEDS[block::4])
        if len(steps := [n for n, bound in enumerate(outcome.plan.binds) if bound.evicts]) == 1
        and not outcome.plan.nominated
    ]
    assert with_one
    for outcome, step in with_one:
        check_each_eviction_is_needed(outcome, step)


def check_each_eviction_is_needed(outcome: Outcome, step: int) -> None:
    """Check that no eviction unit can stay: without its eviction, the preemptor does not start."""
    first = outcome.plan.binds[step]
    for unit in eviction_units(outcome.before, first.evicts):
        cluster = cluster_before_eviction(outcome, step, kept=unit)
        plan = schedule(cluster, preemption=False)
        started = {each.pod for each in plan.binds}
        assert not started, f"{first.gang or first.pod} fits without evicting {sorted(unit)}"


def eviction_units(before: Members, victims: Sequence[str]) -> list[set[str]]:
    """Return the victims that were evicted together."""
    found: dict[str, set[str]] = {}
    for victim in victims:
        gang = before.gang_of.get(victim)
        record = before.gangs.get(gang or "")
        together = record is not None and record.disruption is not DisruptionMode.SINGLE
        if together and gang is not None and before.running(gang) <= set(victims):
            found.setdefault(gang, set()).add(victim)
        else:
            found[f"pod {victim}"] = {victim}
    return list(found.values())


def cluster_before_eviction(outcome: Outcome, step: int, *, kept: set[str]) -> Cluster:
    """Return the cluster before an eviction, without other waiting pods and with all victims but `kept` gone."""
    binds, first = outcome.plan.binds[:step], outcome.plan.binds[step]
    cluster = Cluster(outcome.objects)
    for bound in binds:
        cluster.apply(Bind(bound.pod, bound.node))
    for victim in set(first.evicts) - kept:
        cluster.apply(Remove("Pod", victim))
    keep = _preemptor_pods(outcome, binds, first)
    for key in sorted(cluster.pods.row_of):
        if cluster.pods.node_names[cluster.pod_row(key)] is None and key not in keep:
            cluster.apply(Remove("Pod", key))
    return cluster


def _preemptor_pods(outcome: Outcome, binds: Sequence[Bound], first: Bound) -> set[str]:
    """Return the pods for which others were evicted: a single pod, or those of a gang that starts."""
    gang = first.gang
    if gang is None:
        return {first.pod}
    ran = outcome.before.running(gang) | {b.pod for b in binds if b.gang == gang}
    return {first.pod} if not outcome.before.is_short(gang, ran) else outcome.before.waiting(gang)


# Plans as a whole -----------------------------------------------------------------------------------------------------


@each_cluster
def test_the_order_of_objects_does_not_matter(seed: str) -> None:
    outcome = planned(seed)
    mixed = schedule(Cluster(shuffled(outcome.objects, 1)))
    assert msgspec.json.encode(mixed) == msgspec.json.encode(outcome.plan)


@each_cluster
def test_scheduling_again_changes_nothing(seed: str) -> None:
    again = schedule(planned(seed).cluster.copy())
    assert (again.binds, again.evictions) == ((), ())


@some_clusters
def test_without_preemption_no_pod_is_evicted(seed: str) -> None:
    outcome = planned(seed, preemption=False)
    assert outcome.plan.evictions == ()
    assert incomplete_gangs(outcome.before, outcome.after, outcome.bound, set()) == []
    assert overfilled_nodes(outcome.after, outcome.bound.values()) == {}


@some_clusters
def test_every_moved_pod_has_a_node(seed: str) -> None:
    outcome = planned(seed, consolidation=True)
    moved = {each.pod: each for each in outcome.plan.evictions if each.to is not None}
    for pod in outcome.before.pods.values():
        if pod.spec.node_name and pod.key not in outcome.evicted:
            assert outcome.cluster.pods.node_names[outcome.cluster.pod_row(pod.key)], pod.key
    cluster = Cluster(objects_of(outcome.cluster))
    engine = Engine(cluster)
    for pod, move in moved.items():
        assert move.to != move.node, move
        assert outcome.before.priority(pod) <= outcome.before.priority(move.by), move
        if pod in outcome.evicted:
            continue
        node = cluster.pods.node_names[cluster.pod_row(pod)] or ""
        cluster.apply(Unbind(pod))
        verdicts = node_verdicts(engine, pod)
        why = verdicts.rejected.get(node) or verdicts.refused
        assert node in verdicts.feasible or (why is not None and why.plugin in ORDER_DEPENDENT_PLUGINS), (
            pod,
            node,
            why,
        )
        cluster.apply(Bind(pod, node))
    nodes = {*outcome.bound.values(), *(each.to for each in moved.values() if each.to)}
    assert overfilled_nodes(outcome.after, nodes) == {}
    assert incomplete_gangs(outcome.before, outcome.after, outcome.bound, outcome.evicted) == []
    assert gangs_outside_their_domain(outcome.before, outcome.after, {*outcome.bound, *moved}) == []


def group_state(cluster: Cluster) -> object:
    """Return what a cluster knows of groups, by names."""
    groups, pods = cluster.groups, cluster.pods
    members = {key: {pods.keys[row] for row in groups.members[n]} for n, key in enumerate(groups.keys)}
    named = {key: groups.keys[pods.group[row]] for key, row in pods.row_of.items() if pods.group[row] >= 0}
    says = {pods.keys[row]: says for row, says in groups.membership_by_row.items()}
    return {k: v for k, v in members.items() if v}, named, says, list(cluster.events), dict(cluster.holds)


@some_clusters
def test_rollback_restores_the_cluster(seed: str) -> None:
    cluster = Cluster(RandomGangCluster(seed).objects)
    seen, groups = cluster_state(cluster), group_state(cluster)
    mark = cluster.mark()
    first = schedule(cluster)
    cluster.rollback(mark)
    assert cluster_state(cluster) == seen
    assert group_state(cluster) == groups
    mark = cluster.mark()
    assert schedule(cluster) == first
    cluster.rollback(mark)
    assert group_state(cluster) == groups


# Sessions -------------------------------------------------------------------------------------------------------------


@some_clusters
def test_sessions_end_without_incomplete_gangs(seed: str) -> None:
    draw = random.Random(seed)
    cluster = Cluster(RandomGangCluster(seed).objects)
    queue = Queue(cluster)
    evicted: set[str] = set()
    quiet = 0
    for number in range(SESSIONS):
        before = Members(objects_of(cluster))
        twin = cluster.copy()
        plan = session(Engine(cluster), queue, START + number * 20 * SECOND, Policy())
        for edit in plan.edits():
            twin.apply(edit)
        assert cluster_state(twin) == cluster_state(cluster), number
        record = queue.freeze()
        assert msgspec.json.decode(msgspec.json.encode(record), type=QueueRecord) == record
        after = Members(objects_of(cluster))
        bound = {each.pod: each.node for each in plan.binds}
        assert incomplete_gangs(before, after, bound, evicted | {each.pod for each in plan.evictions}) == [], number
        assert gangs_outside_their_domain(before, after, bound) == [], number
        assert overfilled_nodes(after, bound.values()) == {}, number
        for each in plan.evictions:
            assert each.pod not in evicted, (number, each)
            assert before.pods[each.pod].metadata.deletion_timestamp is None, (number, each)
            evicted.add(each.pod)
        waiting = {key for key, pod in after.pods.items() if not pod.spec.node_name}
        assert set(cluster.holds) <= waiting, number
        for pod in after.pods.values():
            if pod.metadata.deletion_timestamp is not None and (number > 2 or draw.random() < 0.6):
                cluster.apply(Remove("Pod", pod.key))
        quiet = quiet + 1 if not plan.binds and not plan.evictions else 0
    assert quiet >= 3
    held = {hold.owner for hold in queue.reservation.holds} if queue.reservation is not None else set()
    assert set(cluster.holds) <= held
