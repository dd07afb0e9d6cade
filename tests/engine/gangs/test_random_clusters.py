"""What must hold of gangs in any cluster: all or nothing, no eviction in vain, no overfilled node, topology kept.

Every test draws its cluster from a seed (`tests/support/random_gang_clusters.py`) and judges a plan by the objects
alone: usage is added up by hand, and the running pods are read from the cluster that the plan leaves.
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
from tests.support.random_gang_clusters import RandomGangCluster, node_amounts, pod_amounts, shuffled
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Bind, Remove, Unbind
from tutti.engine.explain.node_verdicts import node_verdicts
from tutti.engine.placement.engine import Engine
from tutti.engine.session.plan import Bound, Plan
from tutti.engine.session.policy import SECOND, Policy
from tutti.engine.session.queue import Queue, QueueRecord
from tutti.engine.session.schedule import schedule
from tutti.engine.session.session import session
from tutti.kube import objects as k
from tutti.kube.gangs.gang import DisruptionMode, GangPart
from tutti.kube.gangs.reader import membership, part_of, read_gangs, root
from tutti.kube.objects import Object

SEEDS = [f"{number}" for number in range(100)]
FEW = SEEDS[:20]
SESSIONS = 10
START = 1_800_000_000 * SECOND
LOOK_AT_OTHERS = ("InterPodAffinity", "PodTopologySpread")
"""Plugins whose answer depends on who came first."""

each_cluster = pytest.mark.parametrize("seed", SEEDS)
some_clusters = pytest.mark.parametrize("seed", FEW)


class Members:
    """The gangs among some objects: what they say, and whose pods are where."""

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
                self.gang_of[key] = root(says.group, lambda kind, name: known.get((kind, name)))
                self.part_of[key] = part_of(says, self.gang_of[key])
        self.of: dict[str, list[str]] = {}
        for key, gang in self.gang_of.items():
            self.of.setdefault(gang, []).append(key)

    def running(self, gang: str) -> set[str]:
        """Members on nodes that are not about to leave."""
        pods = (self.pods[key] for key in self.of.get(gang, ()))
        return {p.key for p in pods if p.spec.node_name in self.nodes and p.metadata.deletion_timestamp is None}

    def waiting(self, gang: str) -> set[str]:
        """Members that may be tried."""
        pods = (self.pods[key] for key in self.of.get(gang, ()))
        return {p.key for p in pods if not p.spec.node_name and not _is_left_out(p)}

    def priority(self, key: str) -> int:
        """How important a pod or a gang is: a gang that does not say is what the highest of its members is."""
        if key in self.pods:
            return self.pods[key].spec.priority or 0
        said = self.gangs[key].priority
        return said if said is not None else max(self.pods[pod].spec.priority or 0 for pod in self.of[key])

    def short(self, key: str, present: set[str]) -> bool:
        """Whether a gang of which these pods run lacks some."""
        gang = self.gangs[key]
        return _short(
            GangPart(key, gang.minimum, gang.topology, gang.parts, gang.parts_needed), self, present, whole=True
        )

    def domains(self, key: str, present: set[str]) -> Iterator[tuple[str, str, set[str | None]]]:
        """Each part that is bound to a label, the label, and its values where these pods run."""
        gang = self.gangs[key]
        whole = GangPart(key, topology=gang.topology, parts=gang.parts)
        for part, names in _each_part(whole):
            label = part.topology.required
            mine = present if part is whole else {pod for pod in present if self.part_of[pod] in names}
            if label is not None:
                yield part.name, label, {self.label(pod, label) for pod in mine}

    def label(self, pod: str, label: str) -> str | None:
        """The value of a label where a pod runs."""
        return (self.nodes[self.pods[pod].spec.node_name or ""].metadata.labels or {}).get(label)


def _short(part: GangPart, members: Members, present: set[str], *, whole: bool = False) -> bool:
    inside = {name for each, _ in _each_part(part) for name in (each.name,)}
    mine = present if whole else {pod for pod in present if members.part_of[pod] in inside}
    reached = sum(not _short(each, members, present) for each in part.parts)
    needed = len(part.parts) if part.parts_needed is None else part.parts_needed
    return len(mine) < part.minimum or reached < needed


def _each_part(part: GangPart) -> Iterator[tuple[GangPart, set[str]]]:
    """A part and all parts below it, each with the names of what is in it."""
    below = [pair for each in part.parts for pair in _each_part(each)]
    yield part, {part.name, *(each.name for each, _ in below)}
    yield from below


def _is_left_out(pod: k.Pod) -> bool:
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
    """The objects of a cluster, pods with the nodes that they are on."""
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
def test_a_plan_as_edits_gives_the_cluster_that_scheduling_left(seed: str, consolidation: bool) -> None:
    done = planned(seed, consolidation=consolidation)
    cluster = Cluster(done.objects)
    for edit in done.plan.edits():
        cluster.apply(edit)
    assert cluster_state(cluster) == cluster_state(done.cluster)


# All or nothing -------------------------------------------------------------------------------------------------------


def partial(before: Members, after: Members, bound: Iterable[str], evicted: set[str]) -> list[str]:
    """Gangs of which a pod was bound and that lack some nevertheless."""
    found = []
    for gang in sorted({before.gang_of[pod] for pod in bound if pod in before.gang_of}):
        # A gang that goes pod by pod may have lost some to a third one after it had started.
        robbed = after.gangs.get(gang, before.gangs[gang]).disruption is DisruptionMode.SINGLE and any(
            before.gang_of.get(pod) == gang for pod in evicted
        )
        left = after.running(gang)
        if left and before.short(gang, left) and after.short(gang, left) and not robbed:
            found.append(gang)
    return found


@each_cluster
def test_a_gang_of_which_a_pod_starts_has_all_that_it_needs(seed: str) -> None:
    done = planned(seed)
    assert partial(done.before, done.after, done.bound, done.evicted) == []


@each_cluster
def test_a_gang_in_trouble_binds_nothing_and_is_told_why(seed: str) -> None:
    done = planned(seed)
    told = {each.gang: each for each in done.plan.gangs}
    for key, gang in done.before.gangs.items():
        waiting = done.before.waiting(key)
        if not waiting or not (gang.problem or done.before.short(key, done.before.running(key) | waiting)):
            continue
        if gang.problem is None and done.evicted.intersection(done.before.of[key]):
            continue  # where the minimum is counted from the pods, it has become less
        assert not waiting.intersection(done.bound), key
        assert told[key].message, key
        assert not told[key].placed, key


@each_cluster
def test_every_pending_pod_is_in_the_plan_once(seed: str) -> None:
    done = planned(seed)
    plan = done.plan
    listed = Counter(each.pod for part in (plan.unschedulable, plan.not_considered, plan.nominated) for each in part)
    listed += Counter(set(done.bound))
    assert listed == Counter(key for key, pod in done.before.pods.items() if not pod.spec.node_name)
    for gang in plan.gangs:
        mine = [pod for pod in done.bound if done.before.gang_of.get(pod) == gang.gang]
        assert gang.placed == len(mine), gang.gang


# Room and rules -------------------------------------------------------------------------------------------------------


def overfilled(after: Members, nodes: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Nodes on which more is taken than they offer, and what is left of it."""
    found = {}
    for name in set(nodes):
        taken = [pod_amounts(pod) for pod in after.pods.values() if pod.spec.node_name == name]
        left = tuple(o - sum(t) for o, *t in zip(node_amounts(after.nodes[name]), *taken, strict=True))
        if min(left) < 0:
            found[name] = left
    return found


@each_cluster
def test_no_node_is_filled_beyond_what_it_offers(seed: str) -> None:
    done = planned(seed)
    assert overfilled(done.after, done.bound.values()) == {}


@each_cluster
def test_every_pod_may_run_where_it_was_put(seed: str) -> None:
    """Looked at afterwards, one by one; who looks at other pods is asked in the order of the plan instead."""
    done = planned(seed)
    cluster = Cluster(objects_of(done.cluster))
    engine = Engine(cluster)
    for pod, node in done.bound.items():
        if pod not in cluster.pods.row_of:
            continue  # it had to go again
        cluster.apply(Unbind(pod))
        told = node_verdicts(engine, pod)
        why = told.rejected.get(node) or told.refused
        assert node in told.feasible or (why is not None and why.plugin in LOOK_AT_OTHERS), (pod, node, why)
        cluster.apply(Bind(pod, node))


@each_cluster
def test_the_plan_can_be_carried_out_step_by_step(seed: str) -> None:
    done = planned(seed)
    cluster = Cluster(done.objects)
    engine = Engine(cluster)
    for victim in done.evicted.difference(*(bound.evicts for bound in done.plan.binds)):
        cluster.apply(Remove("Pod", victim))  # evicted for somebody who waits for others to leave
    for bound in done.plan.binds:
        for victim in bound.evicts:
            cluster.apply(Remove("Pod", victim))
        told = node_verdicts(engine, bound.pod)
        assert bound.node in told.feasible, (bound.pod, bound.node, told.rejected.get(bound.node) or told.refused)
        cluster.apply(Bind(bound.pod, bound.node))


def scattered(before: Members, after: Members, changed: Iterable[str]) -> list[tuple[str, str, set[str | None]]]:
    """Gangs and parts that were near to each other, and of which pods came to run somewhere else."""
    found = []
    for gang in sorted({before.gang_of[pod] for pod in changed if pod in before.gang_of}):
        was = {part: values for part, _, values in before.domains(gang, before.running(gang))}
        if gang not in after.gangs:
            continue  # it has gone
        for part, label, values in after.domains(gang, after.running(gang)):
            ok = len(was[part]) <= 1 and None not in was[part]
            if ok and (len(values) > 1 or None in values):
                found.append((f"{gang} {part}", label, values))
    return found


@each_cluster
def test_members_share_the_label_that_they_must(seed: str) -> None:
    done = planned(seed)
    assert scattered(done.before, done.after, done.bound) == []


# Evictions ------------------------------------------------------------------------------------------------------------


@each_cluster
def test_whoever_has_others_evicted_starts(seed: str) -> None:
    done = planned(seed)
    for by in {each.by for each in done.plan.evictions}:
        mine = {by} if by in done.before.pods else set(done.before.of[by])
        if mine & done.evicted:
            continue  # a third one was more important
        # Room is held where pods that were leaving anyway have to go first; that it is needed, the next plan says.
        starts = {*done.bound, *(each.pod for each in done.plan.nominated)}
        if by in done.before.pods:
            assert by in starts, by
        else:
            assert not done.after.short(by, done.after.running(by) | mine & starts), by
        for pod in mine.intersection(done.bound):
            assert done.before.pods[pod].spec.preemption_policy != "Never"


@each_cluster
def test_only_who_matters_less_is_evicted(seed: str) -> None:
    done = planned(seed)
    before = done.before
    for each in done.plan.evictions:
        assert before.priority(each.pod) < before.priority(each.by), each
        if each.gang is not None:
            assert before.priority(each.gang) < before.priority(each.by), each


@each_cluster
def test_gangs_go_whole_or_without_their_surplus(seed: str) -> None:
    done = planned(seed)
    for gang in {done.before.gang_of[pod] for pod in done.evicted if pod in done.before.gang_of}:
        record, ran = done.before.gangs[gang], done.before.running(gang)
        if record.disruption is DisruptionMode.SINGLE:
            continue
        stays = ran - done.evicted
        if record.disruption is DisruptionMode.WHOLE and not done.before.short(gang, done.after.running(gang)):
            continue
        assert not stays, (gang, record.disruption)


@pytest.mark.parametrize("block", range(4))
def test_nobody_is_evicted_who_could_have_stayed(block: int) -> None:
    """In clusters in which only one turn evicts other pods."""
    with_one = [
        (done, steps[0])
        for done in map(planned, SEEDS[block::4])
        if len(steps := [n for n, bound in enumerate(done.plan.binds) if bound.evicts]) == 1 and not done.plan.nominated
    ]
    assert with_one
    for done, step in with_one:
        spare_each(done, step)


def spare_each(done: Outcome, step: int) -> None:
    first = done.plan.binds[step]
    for unit in units(done.before, first.evicts):
        cluster = moment(done, step, spare=unit)
        plan = schedule(cluster, preemption=False)
        started = {each.pod for each in plan.binds}
        assert not started, f"{first.gang or first.pod} fits without evicting {sorted(unit)}"


def units(before: Members, victims: Sequence[str]) -> list[set[str]]:
    """Victims that went together."""
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


def moment(done: Outcome, step: int, *, spare: set[str]) -> Cluster:
    """The cluster as it was before an eviction, with nobody waiting but whom it was for, and most victims gone."""
    binds, first = done.plan.binds[:step], done.plan.binds[step]
    cluster = Cluster(done.objects)
    for bound in binds:
        cluster.apply(Bind(bound.pod, bound.node))
    for victim in set(first.evicts) - spare:
        cluster.apply(Remove("Pod", victim))
    keep = _asking(done, binds, first)
    for key in sorted(cluster.pods.row_of):
        if cluster.pods.node_names[cluster.pod_row(key)] is None and key not in keep:
            cluster.apply(Remove("Pod", key))
    return cluster


def _asking(done: Outcome, binds: Sequence[Bound], first: Bound) -> set[str]:
    """The pods for which others were evicted: one, or those of a gang that starts."""
    gang = first.gang
    if gang is None:
        return {first.pod}
    ran = done.before.running(gang) | {b.pod for b in binds if b.gang == gang}
    return {first.pod} if not done.before.short(gang, ran) else done.before.waiting(gang)


# Plans as a whole -----------------------------------------------------------------------------------------------------


@each_cluster
def test_the_order_of_objects_does_not_matter(seed: str) -> None:
    done = planned(seed)
    mixed = schedule(Cluster(shuffled(done.objects, 1)))
    assert msgspec.json.encode(mixed) == msgspec.json.encode(done.plan)


@each_cluster
def test_what_comes_out_is_settled(seed: str) -> None:
    again = schedule(planned(seed).cluster.copy())
    assert (again.binds, again.evictions) == ((), ())


@some_clusters
def test_without_preemption_nobody_goes(seed: str) -> None:
    done = planned(seed, preemption=False)
    assert done.plan.evictions == ()
    assert partial(done.before, done.after, done.bound, set()) == []
    assert overfilled(done.after, done.bound.values()) == {}


@some_clusters
def test_whoever_is_moved_has_a_place(seed: str) -> None:
    done = planned(seed, consolidation=True)
    moved = {each.pod: each for each in done.plan.evictions if each.to is not None}
    for pod in done.before.pods.values():
        if pod.spec.node_name and pod.key not in done.evicted:
            assert done.cluster.pods.node_names[done.cluster.pod_row(pod.key)], pod.key
    cluster = Cluster(objects_of(done.cluster))
    engine = Engine(cluster)
    for pod, move in moved.items():
        assert move.to != move.node, move
        assert done.before.priority(pod) <= done.before.priority(move.by), move
        if pod in done.evicted:
            continue
        node = cluster.pods.node_names[cluster.pod_row(pod)] or ""
        cluster.apply(Unbind(pod))
        told = node_verdicts(engine, pod)
        why = told.rejected.get(node) or told.refused
        assert node in told.feasible or (why is not None and why.plugin in LOOK_AT_OTHERS), (pod, node, why)
        cluster.apply(Bind(pod, node))
    nodes = {*done.bound.values(), *(each.to for each in moved.values() if each.to)}
    assert overfilled(done.after, nodes) == {}
    assert partial(done.before, done.after, done.bound, done.evicted) == []
    assert scattered(done.before, done.after, {*done.bound, *moved}) == []


def groups_seen(cluster: Cluster) -> object:
    """What a cluster knows of groups, by names."""
    groups, pods = cluster.groups, cluster.pods
    members = {key: {pods.keys[row] for row in groups.members[n]} for n, key in enumerate(groups.keys)}
    named = {key: groups.keys[pods.group[row]] for key, row in pods.row_of.items() if pods.group[row] >= 0}
    says = {pods.keys[row]: says for row, says in groups.membership_by_row.items()}
    return {k: v for k, v in members.items() if v}, named, says, list(cluster.events), dict(cluster.holds)


@some_clusters
def test_a_what_if_leaves_no_trace(seed: str) -> None:
    cluster = Cluster(RandomGangCluster(seed).objects)
    seen, groups = cluster_state(cluster), groups_seen(cluster)
    mark = cluster.mark()
    first = schedule(cluster)
    cluster.rollback(mark)
    assert cluster_state(cluster) == seen
    assert groups_seen(cluster) == groups
    mark = cluster.mark()
    assert schedule(cluster) == first
    cluster.rollback(mark)
    assert groups_seen(cluster) == groups


# Sessions -------------------------------------------------------------------------------------------------------------


@some_clusters
def test_sessions_come_to_rest_with_no_gang_in_part(seed: str) -> None:
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
        assert partial(before, after, bound, evicted | {each.pod for each in plan.evictions}) == [], number
        assert scattered(before, after, bound) == [], number
        assert overfilled(after, bound.values()) == {}, number
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
    held = {hold.pod for hold in queue.reservation.holds} if queue.reservation is not None else set()
    assert set(cluster.holds) <= held
