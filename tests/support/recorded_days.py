"""Recordings of a small or a large cluster, from a seed: a scheduler and its API server, played over simulated time.

`record_day` plays nodes with heartbeats, single pods, and gangs that come, are bound, confirmed, run, finish and are
deleted; important pods preempt others. Every change of an object has a larger resourceVersion, and a session follows
every moment with more than heartbeats. `make_morning` is the example of docs/replay.md:

    python -m tests.support.recorded_days examples/replay/morning.jsonl.gz
"""

from __future__ import annotations

import heapq
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from tests.support.builders import COSCHEDULING_LABEL, ZONE, node, pod, pod_group
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Put, Remove
from tutti.engine.placement.engine import Engine
from tutti.engine.session.plan import Plan
from tutti.engine.session.policy import Policy
from tutti.engine.session.queue import Queue
from tutti.engine.session.session import session
from tutti.kube import objects as k
from tutti.kube.times import micros, timestamp
from tutti.wire.recording.recorder import GzipWriter, Recorder, Write

SECOND = 1_000_000
START = micros("2026-03-02T08:00:00Z")
CONDITIONS = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")


class Day(NamedTuple):
    """How large a recording is."""

    seed: int = 1
    nodes: int = 1_000
    pods: int = 20_000
    seconds: int = 86_400
    cores: int = 32
    images: int = 20
    """Images in the status of each node."""
    heartbeat: int = 300
    """Seconds between two reports of a node that say nothing new."""


class Recorded(NamedTuple):
    """What was recorded."""

    plans: list[Plan]
    edits: int


def record_day(day: Day, write: Write, policy: Policy | None = None) -> Recorded:
    """Play a day and record it."""
    played = _PlayedDay(day, write, policy or Policy())
    played.run()
    return Recorded(played.plans, played.edits)


class _PlayedDay:
    def __init__(self, day: Day, write: Write, policy: Policy) -> None:
        self.day, self.policy, self.random = day, policy, random.Random(day.seed)
        self.plans: list[Plan] = []
        self.edits = self._version = self._actions = 0
        self._todo: list[tuple[int, int, Callable[[], None]]] = []
        self._objects: dict[tuple[str, str], k.Object] = {}
        """What the API server has."""
        self.now, self._is_quiet = START, True
        self._cluster = Cluster(self._first_nodes())
        self._engine, self._queue, self._recorder = Engine(self._cluster), Queue(self._cluster), Recorder(write)
        self._recorder.state(self._cluster)
        self._plan_arrivals()
        for number in range(day.nodes):
            self._at(self.random.randrange(day.heartbeat), self._heartbeat, f"node-{number:04}")

    # Time -------------------------------------------------------------------------------------------------------------

    def _at(self, seconds: int, action: Callable[..., None], *arguments: object) -> None:
        """Do something some seconds from now."""
        self._actions += 1
        moment = self.now + seconds * SECOND
        if moment <= START + self.day.seconds * SECOND:
            heapq.heappush(self._todo, (moment, self._actions, lambda: action(*arguments)))

    def run(self) -> None:
        """Play until nothing is left to do; a session follows every moment with more than heartbeats."""
        while self._todo:
            self.now = self._todo[0][0]
            self._is_quiet = self._queue.wake is None or self._queue.wake > self.now
            while self._todo and self._todo[0][0] == self.now:
                heapq.heappop(self._todo)[2]()
            if self._is_quiet:
                continue
            plan = session(self._engine, self._queue, self.now, self.policy)
            self.plans.append(plan)
            self._recorder.session(self.now, self.policy, plan)
            self._carry_out(plan)

    # The API server ---------------------------------------------------------------------------------------------------

    def _observe(self, edit: Put | Remove) -> None:
        self.edits += 1
        self._is_quiet &= isinstance(edit, Put) and isinstance(edit.obj, k.Node)
        self._recorder.edit(edit)
        self._cluster.observe(edit)

    def _put(self, obj: k.Object) -> None:
        obj = self._stamped(obj)
        self._objects[obj.KIND, obj.key] = obj
        self._observe(Put(obj))

    def _stamped(self, obj: k.Object) -> k.Object:
        self._version += 1
        return replace(obj, metadata=replace(obj.metadata, resource_version=str(self._version)))

    def _change_pod(self, key: str, **fields: object) -> None:
        """Change fields of a pod's spec, status or metadata, if the pod still exists."""
        old = self._objects.get(("Pod", key))
        if isinstance(old, k.Pod):
            parts = {
                part: {
                    name: value for name, value in fields.items() if name in type(getattr(old, part)).__struct_fields__
                }
                for part in ("metadata", "spec", "status")
            }
            self._put(replace(old, **{part: replace(getattr(old, part), **new) for part, new in parts.items()}))

    def _delete(self, key: str) -> None:
        old = self._objects.pop(("Pod", key), None)
        if old is not None:
            self._observe(Remove("Pod", key, old.metadata.uid))

    # Nodes ------------------------------------------------------------------------------------------------------------

    def _first_nodes(self) -> list[k.Object]:
        for number in range(self.day.nodes):
            new = node(f"node-{number:04}", str(self.day.cores), memory="128Gi", zone="abc"[number % 3])
            images = [
                k.NodeImage(names=[f"registry.example/app-{each}@sha256:{each:064x}"], size_bytes=10**8)
                for each in range(self.day.images)
            ]
            new = replace(new, status=replace(new.status, images=images, conditions=self._conditions()))
            self._objects["Node", new.key] = self._stamped(new)
        return list(self._objects.values())

    def _conditions(self) -> list[k.Condition]:
        beat = timestamp(self.now)
        return [
            k.Condition(type=name, status=str(name == "Ready"), reason=f"Kubelet{name}", last_heartbeat_time=beat)
            for name in CONDITIONS
        ]

    def _heartbeat(self, name: str) -> None:
        old = self._objects["Node", name]
        assert isinstance(old, k.Node)
        self._put(replace(old, status=replace(old.status, conditions=self._conditions())))
        self._at(self.day.heartbeat, self._heartbeat, name)

    # Pods -------------------------------------------------------------------------------------------------------------

    def _plan_arrivals(self) -> None:
        draw, made, number = self.random, 0, 0
        while made < self.day.pods:
            size = min(draw.choice((1, 1, 1, 1, 4, 8)), self.day.pods - made)
            self._at(draw.randrange(max(self.day.seconds - 60, 1)), self._arrive, number, size)
            made, number = made + size, number + 1

    def _arrive(self, number: int, size: int) -> None:
        """Create a pod or a gang of a Job."""
        draw, name = self.random, f"{'job' if size == 1 else 'train'}-{number}"
        labels = {"job-name": name, "app": draw.choice(("etl", "web", "train"))}
        if size > 1:
            labels[COSCHEDULING_LABEL] = name
            self._put(pod_group(name, size))
        cpu, priority = draw.choice(("1", "2", "4")), draw.choice((0, 0, 0, 100))
        for member in range(size):
            self._put(
                pod(
                    f"{name}-{member}", cpu, memory="2Gi", uid=f"uid-{number}-{member}", labels=labels,
                    created=timestamp(self.now), priority=priority,
                )
            )  # fmt: skip

    def _carry_out(self, plan: Plan) -> None:
        """Let the API server and the kubelets do what a plan says."""
        draw = self.random
        for bound in plan.binds:
            self._at(1, self._confirm, bound.pod, bound.node)
        for eviction in plan.evictions:
            if eviction.to is None:
                self._at(1, self._terminate, eviction.pod)
                self._at(draw.randrange(5, 30), self._delete, eviction.pod)
        for held in plan.nominated:
            self._at(1, self._nominate, held.pod, held.node)

    def _terminate(self, key: str) -> None:
        self._change_pod(key, deletion_timestamp=timestamp(self.now))

    def _nominate(self, key: str, name: str) -> None:
        self._change_pod(key, nominated_node_name=name)

    def _confirm(self, key: str, name: str) -> None:
        old = self._objects.get(("Pod", key))
        if old is None:
            return
        labels = {**(old.metadata.labels or {}), ZONE: "abc"[int(name[-4:]) % 3]}
        self._change_pod(key, labels=labels, node_name=name)
        self._at(2, self._start, key)

    def _start(self, key: str) -> None:
        self._change_pod(key, phase="Running", start_time=timestamp(self.now))
        run_time = int(self.random.lognormvariate(6.5, 1.0)) + 10
        self._at(run_time, self._finish, key)

    def _finish(self, key: str) -> None:
        self._change_pod(key, phase="Succeeded")
        self._at(60, self._delete, key)


MORNING = Day(seed=10, nodes=5, pods=40, seconds=1_800, cores=8, images=2)
"""The example of docs/replay.md: half an hour on five nodes that are too few."""


def make_morning() -> bytes:
    """Return the example as a gzip file."""
    parts: list[bytes] = []
    writer = GzipWriter(parts.append)
    record_day(MORNING, writer)
    writer.close()
    return b"".join(parts)


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(make_morning())
