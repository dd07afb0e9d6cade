"""A day of a cluster: Jobs and gangs arrive, run for drawn durations, and end; sessions decide where they run.

`play_day` needs two functions: one that changes the cluster (a watch) and one that runs a session. Both may record. The
same seed and the same plans give the same edits. Objects have increasing resourceVersions. Arrivals follow the hours of
a day, so that pods wait at noon; a few pods have a higher priority and evict others, which leave after a grace period.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable

from msgspec.structs import replace
from tests.support.builders import owner_reference

from session_bars.objects import START, nodes, pod
from tutti.cluster.edits import Edit, Put, Remove
from tutti.engine.session.plan import Plan
from tutti.engine.session.policy import SECOND
from tutti.kube import objects as k
from tutti.kube.gangs.tutti_annotations import DURATION, MIN_MEMBER
from tutti.kube.times import timestamp

Apply = Callable[[Edit], None]
Decide = Callable[[int], Plan]
DAY = 86_400
TICK = 10
"""Seconds between two sessions, if anything has changed since the last one."""
RETRY = 300
"""Seconds between two sessions if nothing changes."""
GRACE = 30
NODE_CPU = 8


class _Day:
    """The state of the API server in a simulated day; times are seconds since its begin."""

    def __init__(self, apply: Apply, *, pods: int, seed: int) -> None:
        self._apply, self._pod_count, self._random = apply, pods, random.Random(seed)
        self._version = 1_000
        self._duration: dict[str, int] = {}
        """How long each pod runs, by key."""
        self._objects: dict[str, k.Pod] = {}
        self._ends: list[tuple[int, str]] = []
        self._arrivals: list[tuple[int, list[k.Pod]]] = []

    def put(self, obj: k.Object) -> None:
        """Store a new version of an object, and report it."""
        self._version += 1
        obj = replace(obj, metadata=replace(obj.metadata, resource_version=str(self._version)))
        if isinstance(obj, k.Pod):
            self._objects[obj.key] = obj
        self._apply(Put(obj))

    # Arrivals ---------------------------------------------------------------------------------------------------------

    def draw_arrivals(self) -> None:
        """Draw all Jobs and gangs of the day."""
        draw, made, job = self._random, 0, 0
        while made < self._pod_count:
            size = min(self._pod_count - made, round(2 ** draw.uniform(0, 5)))
            # More arrivals around noon: the density is 1 - cos, by rejection.
            while True:
                second = draw.randrange(DAY - 3_600)
                if draw.random() < (1 - 0.9 * math.cos(2 * math.pi * second / DAY)) / 1.9:
                    break
            self._arrivals.append((second, self._job(f"job-{job:05}", size, second)))
            made, job = made + size, job + 1
        self._arrivals.sort(key=lambda each: (each[0], each[1][0].key), reverse=True)

    def _job(self, name: str, size: int, second: int) -> list[k.Pod]:
        draw = self._random
        is_gang, cpu = size > 1 and draw.random() < 0.3, draw.choice(("1", "1", "2", "4", "6"))
        seconds = min(8 * 3_600, max(60, round(draw.lognormvariate(math.log(4_500), 1))))
        notes = {DURATION: str(seconds)} if draw.random() < 0.7 else {}
        if is_gang:
            notes[MIN_MEMBER] = str(size)
        priority = 10 if draw.random() < 0.02 else 0
        pods = []
        for number in range(size):
            made = pod(
                f"{name}-{number}", cpu, memory="1Gi", gang=name if is_gang else None, annotations=notes,
                labels={"job-name": name}, created=timestamp(START + second * SECOND), priority=priority,
                owner=owner_reference("Job", name),
            )  # fmt: skip
            self._duration[made.key] = seconds
            pods.append(made)
        return pods

    # Time passes ------------------------------------------------------------------------------------------------------

    def pass_until(self, second: int) -> bool:
        """Report everything that happens until a time; return whether anything did."""
        changed = False
        while self._ends and self._ends[0][0] <= second:
            _, key = heapq.heappop(self._ends)
            obj = self._objects.pop(key, None)
            if obj is not None:
                changed = True
                self._end(obj)
        while self._arrivals and self._arrivals[-1][0] <= second:
            changed = True
            for each in self._arrivals.pop()[1]:
                self.put(each)
        return changed

    def _end(self, obj: k.Pod) -> None:
        if obj.metadata.deletion_timestamp is None:
            self.put(replace(obj, status=replace(obj.status, phase="Succeeded")))
            self._objects.pop(obj.key)
        self._apply(Remove("Pod", obj.key, obj.metadata.uid))

    def carry_out(self, plan: Plan, second: int) -> None:
        """Report what an executor does with a plan: victims begin to leave, pods are bound and start."""
        now = timestamp(START + second * SECOND)
        for eviction in plan.evictions:
            obj = self._objects[eviction.pod]
            if obj.metadata.deletion_timestamp is None:
                self.put(replace(obj, metadata=replace(obj.metadata, deletion_timestamp=now)))
                heapq.heappush(self._ends, (second + GRACE, eviction.pod))
        for bound in plan.binds:
            obj = self._objects[bound.pod]
            status = replace(obj.status, phase="Running", start_time=now)
            self.put(replace(obj, spec=replace(obj.spec, node_name=bound.node), status=status))
            heapq.heappush(self._ends, (second + self._duration[bound.pod], bound.pod))

    @property
    def waiting(self) -> int:
        """The number of pods that are not bound."""
        return sum(obj.spec.node_name is None for obj in self._objects.values())


def play_day(apply: Apply, decide: Decide, *, node_count: int, pods: int, seed: int = 13) -> tuple[int, int]:
    """Play a day; return the number of sessions, and the largest number of waiting pods at a full hour."""
    day = _Day(apply, pods=pods, seed=seed)
    for obj in nodes(node_count, NODE_CPU):
        day.put(obj)
    day.draw_arrivals()
    sessions = most = last = 0
    for second in range(0, DAY, TICK):
        if day.pass_until(second) or second - last >= RETRY:
            plan = decide(START + second * SECOND)
            day.carry_out(plan, second)
            sessions, last = sessions + 1, second
        if second % 3_600 == 0:
            most = max(most, day.waiting)
    return sessions, most
