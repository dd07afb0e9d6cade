"""Gangs: throughput of the engine, starvation, the time of a preemption, and NVIDIA's burst of gangs.

Engine only, no API server: objects in, `schedule` of `tutti.engine.session` on them, a plan out. Clusters are made
here, outside the time that is taken, from fixed seeds; times are the best of some runs, each on a fresh cluster, those
of single decisions are percentiles. What came out is checked: no gang is partial, and where one is bound to a rack, it
is in one. Prints what was measured beside the bar. usage: gangs.py [--only NAME ...] [--runs 3] [--profile NAME]
"""

from __future__ import annotations

import argparse
import cProfile
import csv
import gc
import math
import pstats
import random
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple, TypeVar

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Put, Remove
from tutti.engine.placement.engine import Engine
from tutti.engine.session.context import SessionContext
from tutti.engine.session.gang_attempts import GangAttempts
from tutti.engine.session.passes import pending_pods
from tutti.engine.session.plan import Plan
from tutti.engine.session.policy import OFFLINE
from tutti.engine.session.queue_order import sort_into_turns
from tutti.engine.session.schedule import schedule
from tutti.kube.gangs.coscheduling import LABEL
from tutti.kube.gangs.tutti_annotations import DISRUPTION, REQUIRED
from tutti.kube.objects import (
    Container,
    CoschedulingPodGroup,
    CoschedulingSpec,
    Node,
    NodeStatus,
    Object,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)

BURST = Path(__file__).resolve().parents[2] / "shared" / "data" / "knavigator_gang_benchmark.csv"
PEER = "kube-scheduler 1.37 with its gang gates publishes 104-114 pods bound/s: through an API server, so no ratio"
TOP = 25
"""Entries of a profile that are printed."""

Result = TypeVar("Result")


class Line(NamedTuple):
    """One line of the table; `met` is None where there is no bar."""

    what: str
    bar: str = ""
    measured: str = ""
    met: bool | None = None
    outcome: str = ""


class Watch:
    """Takes times; with a profile, of one run and with what it was spent on."""

    def __init__(self, runs: int, profile: cProfile.Profile | None = None) -> None:
        self._runs, self._profile = (1 if profile else runs), profile

    def once(self, work: Callable[[], Result]) -> tuple[float, Result]:
        """Give the seconds that some work takes, and what comes of it."""
        if self._profile is not None:
            self._profile.enable()
        begin = time.perf_counter()
        result = work()
        took = time.perf_counter() - begin
        if self._profile is not None:
            self._profile.disable()
        return took, result

    def best(self, objects: Callable[[], Sequence[Object]]) -> tuple[float, float, Plan]:
        """Schedule a fresh cluster some times; give the shortest and the longest time, and the plan."""
        times, plans = [], []
        for _ in range(self._runs):
            cluster = Cluster(objects())
            gc.collect()
            took, plan = self.once(lambda cluster=cluster: schedule(cluster))  # type: ignore[misc]
            assert_whole(cluster)
            times.append(took)
            plans.append(plan)
        assert all(plan == plans[0] for plan in plans), "the same input gave two plans"
        return min(times), max(times), plans[0]


# Objects --------------------------------------------------------------------------------------------------------------


def stamp(seconds: int) -> str:
    """Write a time."""
    return (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def make_nodes(number: int, per_rack: int = 100, offers: dict[str, str] | None = None) -> list[Object]:
    """Make nodes in racks: 4 CPU, 32Gi and 110 pods unless said otherwise."""
    has = {"cpu": "4", "memory": "32Gi", "pods": "110"} | (offers or {})
    made: list[Object] = []
    for i in range(number):
        name = f"node-{i:05}"
        labels = {"kubernetes.io/hostname": name, "rack": f"rack-{i // per_rack:03}"}
        made.append(Node(metadata=ObjectMeta(name=name, labels=labels), status=NodeStatus(allocatable=has)))
    return made


def make_pod(
    name: str,
    asks: dict[str, str],
    *,
    gang: str | None = None,
    node: str | None = None,
    priority: int = 0,
    at: int = 0,
    selector: dict[str, str] | None = None,
) -> Pod:
    """Make a pod, which runs since it was created if it has a node."""
    labels = {"app": "bench"} if gang is None else {"app": "bench", LABEL: gang}
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", labels=labels, creation_timestamp=stamp(at)),
        spec=PodSpec(
            containers=[Container(name="main", resources=ResourceRequirements(requests=asks))],
            node_name=node, priority=priority, node_selector=selector,
        ),
        status=PodStatus(phase="Running", start_time=stamp(at)) if node else PodStatus(phase="Pending"),
    )  # fmt: skip


def make_gang(
    name: str, shapes: Sequence[dict[str, str]], *, rack: bool = False, nodes: Sequence[str] = (), priority: int = 0,
    at: int = 0,
) -> list[Object]:  # fmt: skip
    """Make a PodGroup that goes whole, with a pod of each shape; on nodes if it runs."""
    annotations = {DISRUPTION: "whole"} | ({REQUIRED: "rack"} if rack else {})
    meta = ObjectMeta(name=name, namespace="default", annotations=annotations, creation_timestamp=stamp(at))
    where = nodes or (None,) * len(shapes)
    return [
        CoschedulingPodGroup(metadata=meta, spec=CoschedulingSpec(min_member=len(shapes))),
        *(
            make_pod(f"{name}-{i:04}", asks, gang=name, node=node, priority=priority, at=at)
            for i, (asks, node) in enumerate(zip(shapes, where, strict=True))
        ),
    ]


def assert_whole(cluster: Cluster) -> None:
    """See that no gang is partial, and that those bound to a rack are in one."""
    members: dict[str, list[str | None]] = {}
    for key, row in cluster.pods.row_of.items():
        gang = (cluster.pod(key).metadata.labels or {}).get(LABEL)
        if gang is not None:
            members.setdefault(gang, []).append(cluster.pods.node_names[row])
    racks = {node.metadata.name: (node.metadata.labels or {})["rack"] for node in cluster.nodes.objects if node}
    for group in cluster.objects[CoschedulingPodGroup.KIND].values():
        where = [node for node in members.get(group.metadata.name, ()) if node is not None]
        assert len(where) in (0, len(members.get(group.metadata.name, ()))), f"{group.key} is partial"
        if REQUIRED in (group.metadata.annotations or {}):
            assert len({racks[node] for node in where}) <= 1, f"{group.key} is in several racks"


# Throughput -----------------------------------------------------------------------------------------------------------


def rate(watch: Watch, what: str, bar: int | None, objects: Callable[[], Sequence[Object]]) -> Line:
    """Measure how many pods a second are decided."""
    best, worst, plan = watch.best(objects)
    pods, started = plan.counts["pending"], sum(gang.starts for gang in plan.gangs)
    outcome = (
        f"{plan.counts['binds']:,} of {pods:,} pods placed, {started:,} of {len(plan.gangs):,} gangs started; "
        f"{best:.3f} s, worst run {worst:.3f} s"
    )
    met = pods / best >= bar if bar else None
    return Line(what, f">= {bar:,} pods/s" if bar else "", f"{pods / best:,.0f} pods/s", met, outcome)


def in_racks(gangs: int, size: int) -> list[Object]:
    """Make 5,000 nodes in 50 racks, and gangs that are bound to one."""
    small = {"cpu": "100m", "memory": "100Mi"}
    made = make_nodes(5_000)
    for g in range(gangs):
        made += make_gang(f"gang-{g:05}", [small] * size, rack=True, at=g)
    return made


def rack_4(watch: Watch) -> Iterator[Line]:
    """Place small gangs, each in a rack."""
    yield rate(watch, "2,250 gangs of 4 in a rack, 5,000 nodes", 10_000, lambda: in_racks(2_250, 4))
    yield Line(f"  {PEER}")


def rack_1000(watch: Watch) -> Iterator[Line]:
    """Place large gangs, each in a rack."""
    yield rate(watch, "9 gangs of 1,000 in a rack, 5,000 nodes", 50_000, lambda: in_racks(9, 1_000))


def crowded(rack: bool) -> list[Object]:
    """Make 1,000 nodes of which 90 % is taken, some more and some less, and gangs of several shapes each."""
    draw = random.Random(2026)
    made = make_nodes(1_000, 50, {"cpu": "16", "memory": "64Gi"})
    for i in range(1_000):
        left = round(16_000 * 0.9) + 200 * (i % 11 - 5)
        number = 0
        while left > 0:
            cpu = min(left, 100 * draw.randint(2, 30))
            asks = {"cpu": f"{cpu}m", "memory": f"{cpu * 5 // 2}Mi"}
            made.append(make_pod(f"old-{i:04}-{number:02}", asks, node=f"node-{i:05}"))
            left, number = left - cpu, number + 1
    for g in range(400):
        size = round(2 ** draw.uniform(1, 6))
        kinds = [
            {"cpu": f"{draw.choice((100, 250, 500, 750, 1000, 1500))}m", "memory": f"{draw.choice((128, 512, 2048))}Mi"}
            for _ in range(min(size, draw.randint(2, 4)))
        ]
        shapes = [*kinds, *(draw.choice(kinds) for _ in range(size - len(kinds)))]
        made += make_gang(f"gang-{g:05}", shapes, rack=rack and g % 3 == 0, at=1_000 + g)
    return made


def mixed(watch: Watch) -> Iterator[Line]:
    """Place gangs of several shapes where little is left."""
    yield rate(watch, "400 gangs of 2-64, 2-4 shapes each, 90 % full", 3_000, lambda: crowded(rack=False))
    yield rate(watch, "  the same, a third of them bound to a rack", None, lambda: crowded(rack=True))


# Preemption -----------------------------------------------------------------------------------------------------------


def full() -> list[Object]:
    """Make 1,000 nodes full of gangs of 10, ten gangs on the same ten nodes; about four at a time start together."""
    draw = random.Random(2026)
    made = make_nodes(1_000)
    for g in range(1_000):
        where = [f"node-{g // 10 * 10 + i:05}" for i in range(10)]
        asks = {"cpu": "400m", "memory": "1Gi"}
        made += make_gang(f"old-{g:04}", [asks] * 10, nodes=where, priority=10, at=60 * draw.randrange(250))
    return made


def settle_memory() -> None:
    """Leave what was loaded to the end of the run, as `tutti` does after loading: it is not looked through again."""
    gc.collect()
    gc.freeze()


def preempt(watch: Watch) -> Iterator[Line]:
    """Let gangs of higher priority come into a full cluster, and time the decision on each."""
    for what, cpu, memory, one_by_one in (
        ("victims' size", "400m", "1Gi", False),
        ("double size", "800m", "2Gi", False),
        ("victims' size, put one by one", "400m", "1Gi", True),
        ("double size, put one by one", "800m", "2Gi", True),
    ):
        asks = {"cpu": cpu, "memory": memory}
        new = [make_gang(f"new-{g:03}", [asks] * 10, priority=100, at=20_000 + g) for g in range(100)]
        times, context = (arriving if one_by_one else all_there)(watch, new)
        assert_whole(context.cluster)
        times.sort()
        p50, p99 = (1000 * times[math.ceil(len(times) * part) - 1] for part in (0.5, 0.99))
        plan = context.plan.plan()
        started = sum(gang.starts for gang in plan.gangs)
        outcome = (
            f"{started} of {len(new)} gangs started, {len(plan.evictions):,} pods evicted; "
            f"longest {1000 * times[-1]:.0f} ms"
        )
        measured = f"p50 {p50:.1f}, p99 {p99:.1f} ms"
        yield Line(f"1,000 gangs of 10 run, 100 preempt: {what}", "p99 <= 30 ms", measured, p99 <= 30, outcome)


def all_there(watch: Watch, new: Sequence[Sequence[Object]]) -> tuple[list[float], SessionContext]:
    """Decide on gangs that wait from the beginning: a turn each."""
    cluster = Cluster([*full(), *(obj for gang in new for obj in gang)])
    context = SessionContext(Engine(cluster), OFFLINE, None)
    attempts = GangAttempts(context)
    todo, _ = sort_into_turns(cluster, context.gangs, pending_pods(cluster), profile=context.engine.profile)
    settle_memory()
    return [watch.once(lambda turn=turn: attempts.attempt(turn))[0] for turn in todo if not turn.surplus], context


def arriving(watch: Watch, new: Sequence[Sequence[Object]]) -> tuple[list[float], SessionContext]:
    """Decide on gangs that come one after the other, as from a watch; the edits are not timed, the turns are."""
    cluster = Cluster(full())
    context = SessionContext(Engine(cluster), OFFLINE, None)
    attempts = GangAttempts(context)

    def decide() -> None:
        todo, _ = sort_into_turns(cluster, context.gangs, pending_pods(cluster), profile=context.engine.profile)
        for turn in todo:
            if not turn.surplus:
                attempts.attempt(turn)

    times = []
    settle_memory()
    for gang in new:
        for obj in gang:
            cluster.apply(Put(obj))
        times.append(watch.once(decide)[0])
    return times, context


# Starvation -----------------------------------------------------------------------------------------------------------


def hopeless() -> list[Object]:
    """Make 10,000 nodes with a CPU left, and 10,000 important pods of 500 shapes that fit nowhere before 500 that do.

    Half of the shapes would have to evict the important pod of every node, and may only evict the other one. A quarter
    is larger than any node, a quarter selects a label that no node has.
    """
    made = make_nodes(10_000)
    for i in range(10_000):
        node = f"node-{i:05}"
        made.append(make_pod(f"top-{i:05}", {"cpu": "2", "memory": "2Gi"}, node=node, priority=1_000))
        made.append(make_pod(f"low-{i:05}", {"cpu": "1", "memory": "1Gi"}, node=node, at=i))
    for i in range(10_000):
        kind, shape = i % 4, i % 500
        cpu = 4_100 + shape if kind == 1 else 500 + shape if kind == 3 else 2_100 + shape
        selector = {"disk": f"none-{shape}"} if kind == 3 else None
        asks = {"cpu": f"{cpu}m", "memory": "1Gi"}
        made.append(make_pod(f"hopeless-{i:05}", asks, priority=100, at=20_000 + i, selector=selector))
    made += [make_pod(f"small-{i:03}", {"cpu": "100m", "memory": "100Mi"}, at=40_000 + i) for i in range(500)]
    return made


def starvation(watch: Watch) -> Iterator[Line]:
    """Place small pods behind many that fit nowhere."""
    best, worst, plan = watch.best(hopeless)
    placed = sum(bound.pod.startswith("default/small-") for bound in plan.binds)
    outcome = (
        f"{placed} of 500 placed, {plan.counts['unschedulable']:,} refused, {plan.counts['evictions']} evicted; "
        f"worst run {worst:.2f} s"
    )
    met = best <= 3 and placed == 500
    yield Line("500 pods behind 10,000 hopeless ones, 10,000 nodes", "<= 3 s", f"{best:.2f} s", met, outcome)


# NVIDIA's burst -------------------------------------------------------------------------------------------------------


def knavigator(watch: Watch) -> Iterator[Line]:
    """Play 53 gangs that are submitted at once, until the last has ended."""
    if not BURST.exists():
        yield Line(f"{BURST} is not there: nothing to play")
        return
    with BURST.open() as file:
        jobs = list(csv.DictReader(file))
    made = make_nodes(32, 32, {"nvidia.com/gpu": "8"})
    length, busy = {}, 0
    for job in jobs:
        size, gpus, name = int(job["gang_size"]), int(job["gpus_per_pod"]), job["job_id"]
        length[f"default/{name}"] = int(job["duration_s"])
        busy += size * gpus * int(job["duration_s"])
        made += make_gang(name, [{"nvidia.com/gpu": str(gpus)}] * size, at=int(job["submit_order"]))
    cluster = Cluster(made)
    now, rounds, spent, ends = 0, 0, 0.0, dict[str, int]()
    while True:
        took, plan = watch.once(lambda: schedule(cluster))
        assert_whole(cluster)
        spent, rounds = spent + took, rounds + bool(plan.binds)
        ends |= {bound.pod: now + length[bound.gang or ""] for bound in plan.binds}
        if not ends:
            break
        now = min(ends.values())
        for pod in [pod for pod, end in ends.items() if end == now]:
            cluster.apply(Remove(Pod.KIND, pod))
            del ends[pod]
        assert_whole(cluster)
    left = len(pending_pods(cluster))
    outcome = (
        f"occupancy {busy / (32 * 8 * now):.1%}, no gang partial in {rounds} rounds, {left} pods left; "
        f"{1000 * spent:.0f} ms in the engine"
    )
    met = now <= 1_080 and not left
    yield Line(f"NVIDIA's burst of {len(jobs)} gangs on 32 nodes: makespan", "<= 1,080 s", f"{now:,} s", met, outcome)


ROWS: dict[str, Callable[[Watch], Iterator[Line]]] = {
    "rack-4": rack_4, "rack-1000": rack_1000, "mixed": mixed, "preempt": preempt, "starvation": starvation,
    "knavigator": knavigator,
}  # fmt: skip


def main() -> None:
    """Print the table, or one row with its profile."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="NAME", help=", ".join(ROWS))
    parser.add_argument("--runs", type=int, default=3, help="of which the best counts")
    parser.add_argument("--profile", choices=ROWS, metavar="NAME", help="say what one row spends its time on")
    options = parser.parse_args()
    profile = cProfile.Profile() if options.profile else None
    watch = Watch(options.runs, profile)
    print(f"Engine only, no API server{'; times are those of a profiled run' if profile else ''}.")
    print(f"{'WHAT':66} {'BAR':>16}  {'MEASURED':>22}  {'VERDICT':7}  CAME OUT")
    for name in [options.profile] if options.profile else options.only:
        for line in ROWS[name](watch):
            verdict = "" if line.met is None else "met" if line.met else "MISSED"
            text = f"{line.what:66} {line.bar:>16}  {line.measured:>22}  {verdict:7}  {line.outcome}"
            print(text.rstrip(), flush=True)
    if profile is not None:
        stats = pstats.Stats(profile)
        for order in ("cumulative", "tottime"):
            stats.sort_stats(order).print_stats(TOP)


if __name__ == "__main__":
    main()
