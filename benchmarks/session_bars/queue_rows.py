"""What a session costs beside pods and gangs that wait: ends, quiet, starving, unrelated."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator

from session_bars.measure import Line, Stopwatch, settle_memory
from session_bars.objects import START, World, gang, nodes, pod, running, waiting
from tutti.cluster.edits import Put, Remove
from tutti.engine.session.plan import Plan
from tutti.engine.session.policy import SECOND, Patience, Policy
from tutti.kube import objects as k

MS = SECOND // 1000
NEVER = 1 << 60
AT_ONCE = Policy(patience=Patience(first_backoff=0, longest_backoff=0, retry_after=NEVER, starving_after=NEVER))
"""Without backoff and reservations, so that a session must give the plan of a full retry."""
KINDS = 40
PER_TRIED = 0.2
"""Milliseconds that a session may take for each pod that it tries, where a pod is cured."""


def milliseconds(seconds: float) -> str:
    """Format a time in milliseconds."""
    return f"{1000 * seconds:.2f} ms" if seconds < 1 else f"{1000 * seconds:,.0f} ms"


# A pod ends -----------------------------------------------------------------------------------------------------------


def ends(watch: Stopwatch) -> Iterator[Line]:
    """Let pods end one by one beside waiting pods, each end with a session."""
    node_count, per_node = watch.size(1_000, 100), 20
    for count, bar in ((0, 0.15), (100, 0.2), (1_000, 0.3), (5_000, 0.5)):
        world = World([*nodes(node_count, per_node, pools=10), *running(node_count * per_node, node_count)], AT_ONCE)
        world.put(*(_waiting_kind(i) for i in range(count)))
        world.decide(START)
        settle_memory()
        yield from _ends(watch, world, count, bar, last=node_count * per_node)


def _waiting_kind(number: int) -> k.Pod:
    """Make a waiting pod: one of 4 small kinds of one pool, or of 36 kinds that need more than one end on a node."""
    kind = number % KINDS
    if kind < 4:
        return pod(f"wait-{number:05}", f"{500 + 125 * kind}m", app=f"kind-{kind}", node_selector={"pool": "pool-0"})
    return pod(f"wait-{number:05}", f"{1_000 + 250 * kind}m", app=f"kind-{kind}")


def _ends(watch: Stopwatch, world: World, count: int, bar: float, *, last: int) -> Iterator[Line]:
    numbers = random.Random(count).sample(range(last), watch.size(400, 40))
    idle: list[float] = []
    cured: list[tuple[float, int, int]] = []
    checked = different = 0
    deadline = time.thread_time() + watch.limit
    for position, number in enumerate(numbers):
        if time.thread_time() > deadline and len(idle) >= 10:
            break
        now, name = START + (position + 1) * MS, f"run-{number:06}"
        before = world.cluster.copy() if position % 4 == 0 and checked < 25 else None

        def end(now: int = now, name: str = name) -> Plan:
            world.cluster.apply(Remove("Pod", f"default/{name}", name))
            return world.decide(now)

        took, plan = watch.time(end)
        if before is not None:
            before.apply(Remove("Pod", f"default/{name}", name))
            checked, different = checked + 1, different + (_decisions(plan) != _decisions(world.retry_all(before, now)))
        if plan.binds:
            cured.append((took, len(plan.turns), len(plan.binds)))
        else:
            idle.append(took)
        world.confirm(plan)
    outcome = f"{len(idle)} ends; {checked - different} of {checked} plans equal those of a full retry"
    what = f"a pod ends, {count:,} wait: nobody is cured"
    median = statistics.median(idle)
    yield Line(what, f"<= {bar} ms", milliseconds(median), 1000 * median <= bar and not different, outcome)
    if cured:
        tried, bound = (statistics.median(each[i] for each in cured) for i in (1, 2))
        extra = statistics.median((1000 * took - bar) / tries for took, tries, _ in cured)
        outcome = (
            f"{len(cured)} ends, median {milliseconds(statistics.median(each[0] for each in cured))}, "
            f"{tried:,.0f} tried, {bound:.0f} bound"
        )
        bar_text = f"{bar} + {PER_TRIED} ms/tried"
        yield Line("  somebody is cured", bar_text, f"{bar} + {max(extra, 0):.3f} ms", extra <= PER_TRIED, outcome)


def _decisions(plan: Plan) -> tuple[object, ...]:
    """Return what a plan does, without why other pods wait."""
    return [(b.pod, b.node) for b in plan.binds], [(e.pod, e.by) for e in plan.evictions], plan.holds, plan.released


# Nothing happens ------------------------------------------------------------------------------------------------------


def quiet(watch: Stopwatch) -> Iterator[Line]:
    """Run sessions beside waiting gangs while nothing happens."""
    node_count, gangs = watch.size(5_000, 200), watch.size(5_000, 200)
    world = World([*nodes(node_count, 10), *running(10 * node_count, node_count)])
    for number in range(gangs):
        world.put(*gang(f"gang-{number:05}", 2, "4", shape=number % 20))
    first, _ = watch.time(lambda: world.decide(START))
    settle_memory()
    times = [watch.time(lambda i=i: world.decide(START + i * MS))[0] for i in range(1, 31)]  # type: ignore[misc]
    median = statistics.median(times)
    what = f"quiet session, {10 * node_count:,} pods, {gangs:,} waiting gangs of 2"
    outcome = f"longest {milliseconds(max(times))}; the session that tried all: {milliseconds(first)}"
    yield Line(what, "<= 0.1 ms", milliseconds(median), 1000 * median <= 0.1, outcome)


# Starving -------------------------------------------------------------------------------------------------------------


def starving(watch: Stopwatch) -> Iterator[Line]:
    """Run sessions for some minutes beside pods that starve."""
    node_count = watch.size(1_000, 100)

    def world_with(objects: list[k.Object]) -> World:
        world = World([*nodes(node_count, 64), *running(10 * node_count, node_count)])
        world.put(*objects)
        return world

    count = watch.size(5_000, 300)
    too_large = [waiting("large", i, "100") for i in range(count)]
    absent_pool = [waiting("gpu", i, gpu=1) for i in range(50)]
    yield _starve(watch, f"{count:,} pods too large for any node", lambda: world_with([*too_large]))
    yield _starve(watch, "50 pods of a pool that is not there", lambda: world_with([*absent_pool]))
    what = f"one starving gang, {10 * node_count:,} running pods"
    yield _starve(watch, what, lambda: world_with(gang("gang", 8, "60")))


def _starve(watch: Stopwatch, what: str, make: Callable[[], World]) -> Line:
    """Run a session every second and at every `Queue.wake`, with an end of a pod every ten seconds."""
    world = make()
    settle_memory()
    first, _ = watch.time(lambda: world.decide(START))
    times: list[tuple[float, float]] = []
    begun = [START]
    seconds = watch.size(320, 70)

    def run() -> bool:
        now = START
        while now < START + seconds * SECOND:
            following = now - (now - START) % SECOND + SECOND
            wake = world.queue.wake
            now = min(following, wake) if wake is not None and wake > now else following
            begun[0] = now
            if now == following and (now - START) // SECOND % 10 == 0:
                name = f"run-{(now - START) // SECOND:06}"
                world.cluster.apply(Remove("Pod", f"default/{name}", name))
            took, _ = watch.time(lambda now=now: world.decide(now))  # type: ignore[misc]
            times.append((took, (now - START) / SECOND))
        return True

    finished = watch.run(run)
    if finished is None:
        times.append((watch.interrupted_after, (begun[0] - START) / SECOND))
    longest, at = max(times)
    median = statistics.median(took for took, _ in times)
    told = f"{'' if finished or longest != times[-1][0] else '> '}{milliseconds(longest)}"
    until = "" if finished else f"; stopped at {times[-1][1]:.0f} s after {watch.limit:.0f} s"
    outcome = (
        f"longest of {len(times)} sessions, at {at:.0f} s; median {milliseconds(median)}, "
        f"first session {milliseconds(first)}{until}"
    )
    return Line(what, "every <= 30 ms", told, 1000 * longest <= 30 and bool(finished), outcome)


# Unrelated objects ----------------------------------------------------------------------------------------------------


def unrelated(watch: Stopwatch) -> Iterator[Line]:
    """Put objects that no waiting gang refers to."""
    node_count, gangs = watch.size(1_000, 100), watch.size(500, 50)
    world = World([*nodes(node_count, 10), *running(10 * node_count, node_count)])
    for number in range(gangs):
        world.put(*_native_gang(f"gang-{number:05}", number))
    first, _ = watch.time(lambda: world.decide(START))
    settle_memory()
    now = START
    for kind in (k.Workload, k.PriorityClass):
        times, tried = [], 0
        for number in range(10):
            now += MS
            obj = kind(metadata=k.ObjectMeta(name=f"other-{number}", namespace="elsewhere"))

            def put(obj: k.Object = obj, now: int = now) -> Plan:
                world.cluster.apply(Put(obj))
                return world.decide(now)

            took, plan = watch.time(put)
            times.append(took)
            tried += len(plan.turns)
        median = statistics.median(times)
        what = f"an unrelated {kind.__name__} beside {gangs:,} waiting gangs"
        outcome = f"{tried / len(times):.0f} turns tried each; the session that tried all: {milliseconds(first)}"
        yield Line(what, "<= 1 ms", milliseconds(median), 1000 * median <= 1, outcome)


def _native_gang(name: str, number: int) -> list[k.Object]:
    """Make a PodGroup of Kubernetes with two pods, of a size of their own."""
    policy = k.SchedulingPolicy(gang=k.GangPolicy(min_count=2))
    group = k.PodGroup(
        metadata=k.ObjectMeta(name=name, namespace="default"), spec=k.GroupSpec(scheduling_policy=policy)
    )
    member = k.SchedulingGroup(pod_group_name=name)
    return [group, *(pod(f"{name}-{i}", "4", memory=f"{1024 + number}Mi", scheduling_group=member) for i in range(2))]
