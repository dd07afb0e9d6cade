"""Nodes, pods, gangs and clusters for the rows; the same arguments give the same objects.

All times are microseconds; `START` is the time of the first session. Nodes and pods come from the tests' builders.
"""

from __future__ import annotations

import random

from msgspec.structs import replace
from tests.support.builders import apart, node, pod, pod_group, spread

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Put
from tutti.engine.placement.engine import Engine
from tutti.engine.session.plan import Plan
from tutti.engine.session.policy import SECOND, Policy
from tutti.engine.session.queue import Queue
from tutti.engine.session.session import session
from tutti.kube import objects as k
from tutti.kube.gangs.tutti_annotations import MIN_MEMBER
from tutti.kube.times import timestamp

__all__ = ["apart", "pod", "pod_group", "spread"]

START = 1_800_000_000 * SECOND
CREATED = timestamp(START)
SHAPES = 20
"""Running and arriving pods differ in their memory: so many shapes."""


class World:
    """A cluster with its engine and its queue, as a live scheduler keeps them between sessions."""

    def __init__(self, objects: list[k.Object], policy: Policy | None = None) -> None:
        self.cluster = Cluster(objects)
        self.engine, self.queue = Engine(self.cluster), Queue(self.cluster)
        self.policy = policy or Policy()

    def put(self, *objects: k.Object) -> None:
        """Put objects into the cluster."""
        for obj in objects:
            self.cluster.apply(Put(obj))

    def decide(self, now: int) -> Plan:
        """Run a session."""
        return session(self.engine, self.queue, now, self.policy)

    def retry_all(self, cluster: Cluster, now: int) -> Plan:
        """Run a session on another cluster with an empty queue, which tries every waiting pod."""
        return session(Engine(cluster), Queue(cluster), now, self.policy)

    def confirm(self, plan: Plan) -> None:
        """Report the bindings of a plan back, as a watch does."""
        for bound in plan.binds:
            obj = self.cluster.pod(bound.pod)
            running = replace(obj.status, phase="Running")
            self.cluster.apply(Put(replace(obj, spec=replace(obj.spec, node_name=bound.node), status=running)))


def nodes(count: int, cpu: int, *, pools: int = 1) -> list[k.Object]:
    """Make nodes in three zones; `pools` is the number of values of the label `pool`."""
    return [
        node(name_of(i), str(cpu), memory="256Gi", zone=f"zone-{i % 3}", labels={"pool": f"pool-{i % pools}"})
        for i in range(count)
    ]


def name_of(number: int) -> str:
    """Return the name of a node."""
    return f"node-{number:05}"


def running(count: int, on: int, *, priorities: int = 1) -> list[k.Object]:
    """Make running pods of one CPU on `on` nodes; start times, and priorities below `priorities`, are drawn."""
    draw = random.Random(13)
    return [
        pod(
            f"run-{i:06}", memory=f"{1024 + i % SHAPES}Mi", on=name_of(i % on), app=f"app-{i % 200}", created=CREATED,
            started=timestamp(START - draw.randrange(1, 40_000) * SECOND), priority=draw.randrange(priorities),
        )
        for i in range(count)
    ]  # fmt: skip


def waiting(name: str, number: int, cpu: str = "1", **fields: object) -> k.Pod:
    """Make a waiting pod, one of `SHAPES` shapes by its number."""
    memory = f"{1024 + number % SHAPES}Mi"
    return pod(f"{name}-{number:06}", cpu, memory=memory, created=CREATED, **{"app": name, **fields})  # type: ignore[arg-type]


def gang(name: str, size: int, cpu: str, *, shape: int = 0, priority: int = 0) -> list[k.Object]:
    """Make the waiting pods of a gang that states its size in annotations."""
    notes = {MIN_MEMBER: str(size)}
    return [
        pod(
            f"{name}-{i}", cpu, memory=f"{1024 + shape}Mi", gang=name, annotations=notes, created=CREATED,
            priority=priority,
        )
        for i in range(size)
    ]  # fmt: skip
