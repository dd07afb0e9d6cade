"""Objects that come and go: how much memory stays, and whether an edit costs the same in the end as at the beginning.

`churn` must run in a process of its own (`churn_rows` starts it), so that the memory of the process is that of the
cluster. After each batch a session runs and everything of the batch is removed; `Cluster.collect`, if it exists, is
called between sessions. Growth counts from the time when `FIRST` objects have come and gone.
"""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace
from tests.support.builders import COSCHEDULING_LABEL, owner_reference

from session_bars.objects import CREATED, SHAPES, START, World, apart, nodes, pod, pod_group, running, spread
from tutti.cluster.edits import Edit, Put, Remove
from tutti.engine.session.policy import SECOND
from tutti.kube import objects as k

FIRST = 50_000
TOO_MUCH = 320
"""Megabytes of growth at which a run stops: more than twice the bar."""
NODES = 1_000
PODS_PER_JOB = 10
_PAGE = resource.getpagesize()
_LABEL = "job-name"


class Churned(msgspec.Struct, frozen=True):
    """What a run measured."""

    done: int
    """The number of objects that came and went."""
    growth: float
    """The growth of the process after the first objects, in megabytes."""
    first_growth: float
    """The growth until then."""
    work: tuple[float, float]
    """Units of the meter per edit: the first window after the first objects, and the last window."""
    micros: tuple[float, float]
    """Microseconds per edit in the same windows."""
    seconds: float
    collects: bool


class _Window:
    """The work and the time of some edits."""

    def __init__(self, world: World) -> None:
        self._world, self._edits = world, 0
        self._begin = (world.cluster.meter.count, time.thread_time())

    def rates(self, edits: int) -> tuple[float, float]:
        """Return units and microseconds per edit since the last call; `edits` is the number of all edits so far."""
        count, now = self._world.cluster.meter.count, time.thread_time()
        number = max(1, edits - self._edits)
        rates = (count - self._begin[0]) / number, 1e6 * (now - self._begin[1]) / number
        self._edits, self._begin = edits, (count, now)
        return rates


def churn(kind: str, count: int, limit: float) -> Churned:
    """Let objects of a kind come and go, until the limit in CPU seconds or a growth of `TOO_MUCH`."""
    world = World([*nodes(NODES, 64), *running(2 * NODES, NODES)])
    collect: Callable[[], object] | None = getattr(world.cluster, "collect", None)
    batch_of, size = BATCHES[kind]
    world.decide(START)
    first = min(FIRST, count // 2)
    begin, window = time.thread_time(), _Window(world)
    memory_at_start = memory_at_first = _memory()
    edits = done = 0
    rates: list[tuple[float, float]] = []
    growth, step = 0.0, max(size, (count - first) // 20 // size * size)
    while done < count:
        arriving, leaving = batch_of(done, size)
        for edit in arriving:
            world.cluster.apply(edit)
        plan = world.decide(START + (done // size + 1) * SECOND)
        world.confirm(plan)
        for edit in leaving:
            world.cluster.apply(edit)
        if collect is not None:
            collect()
        edits += len(arriving) + len(plan.binds) + len(leaving)
        done += size
        if done == first:
            memory_at_first = _memory()
            window.rates(edits)
        elif done > first and (done - first) % step == 0:
            rates.append(window.rates(edits))
            growth = _memory() - memory_at_first
            if growth > TOO_MUCH or time.thread_time() - begin > limit:
                break
        elif time.thread_time() - begin > limit:
            break
    rates = rates or [window.rates(edits)]
    work, micros = zip(rates[0], rates[-1], strict=True)
    took = time.thread_time() - begin
    return Churned(done, growth, memory_at_first - memory_at_start, work, micros, took, collect is not None)


def _memory() -> float:
    """Return the memory of this process in megabytes."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * _PAGE / 1e6


# Batches: edits before the session, and edits after it ----------------------------------------------------------------

Batch = tuple[list[Edit], list[Edit]]


def _removals(objects: Sequence[k.Object]) -> list[Edit]:
    return [Remove(obj.KIND, obj.key, obj.metadata.uid) for obj in objects]


def _jobs(done: int, size: int) -> Batch:
    """Pods of Jobs; every third Job has a spread or an anti-affinity on its own name."""
    pods = [_job_pod(number) for number in range(done, done + size)]
    return [Put(each) for each in pods], _removals(pods)


def _job_pod(number: int) -> k.Pod:
    job = number // PODS_PER_JOB
    name = f"job-{job}"
    labels = {_LABEL: name, "batch.kubernetes.io/job-name": name, "controller-uid": f"uid-{job}"}
    made = pod(
        f"{name}-{number}", memory=f"{1024 + job % SHAPES}Mi", labels=labels, created=CREATED,
        owner=owner_reference("Job", name),
    )  # fmt: skip
    if job % 3:
        return made
    selector = k.LabelSelector(match_labels={_LABEL: name})
    if job % 2:
        rule = replace(spread(name, skew=5), label_selector=selector)
        return replace(made, spec=replace(made.spec, topology_spread_constraints=[rule]))
    affinity = apart(name)
    assert affinity.pod_anti_affinity is not None
    (term,) = affinity.pod_anti_affinity.required or ()
    terms = k.PodAffinity(required=[replace(term, label_selector=selector)])
    return replace(made, spec=replace(made.spec, affinity=k.Affinity(pod_anti_affinity=terms)))


def _node_names(done: int, size: int) -> Batch:
    """Nodes with new names, each with a pod."""
    made: list[k.Object] = []
    for number in range(done, done + size):
        (new,) = nodes(1, 64)
        assert isinstance(new, k.Node)
        name = f"ip-{number * 7919 % 1_000_003:07}"
        labels = {**(new.metadata.labels or {}), "kubernetes.io/hostname": name}
        made.append(replace(new, metadata=replace(new.metadata, name=name, uid=name, labels=labels)))
        made.append(pod(f"pod-{number}", on=name, created=CREATED))
    probe = pod(f"probe-{done}", created=CREATED)
    return [*map(Put, made), Put(probe)], _removals([*made, probe])


def _taints(done: int, size: int) -> Batch:
    """Nodes that get a taint with a new value, and lose it again."""
    edits: list[Edit] = []
    restored: list[Edit] = []
    plain = nodes(NODES, 64)
    for number in range(done, done + size):
        old = plain[number % NODES]
        assert isinstance(old, k.Node)
        value = str(1_800_000_000 + number)
        taint = k.Taint(key="DeletionCandidateOfClusterAutoscaler", value=value, effect="PreferNoSchedule")
        edits.append(Put(replace(old, spec=replace(old.spec, taints=[taint]))))
        restored.append(Put(old))
    probe = pod(f"probe-{done}", created=CREATED)
    return [*edits, Put(probe)], [*restored, *_removals([probe])]


def _gangs(done: int, size: int) -> Batch:
    """PodGroups with two pods each."""
    made: list[k.Object] = []
    for number in range(done, done + size):
        name = f"gang-{number}"
        made.append(pod_group(name, 2))
        labels = {COSCHEDULING_LABEL: name}
        made += [pod(f"{name}-{i}", memory="1Gi", labels=labels, created=CREATED) for i in range(2)]
    return [*map(Put, made)], _removals(made)


BATCHES: dict[str, tuple[Callable[[int, int], Batch], int]] = {
    "jobs": (_jobs, 1_000),
    "node-names": (_node_names, 500),
    "taints": (_taints, 500),
    "gangs": (_gangs, 500),
}
"""The batches of each kind, and the number of objects in a batch."""
