"""Preemption and arrivals beside holds: preemptors, gang-preemptors, arrivals."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from session_bars.measure import Line, Stopwatch, settle_memory
from session_bars.objects import CREATED, START, World, gang, nodes, pod, running, spread, waiting
from session_bars.queue_rows import milliseconds
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Hold, Put, Remove
from tutti.engine.placement.engine import Engine
from tutti.engine.preemption.default_preemption import preempt
from tutti.engine.session.plan import Plan
from tutti.engine.session.policy import SECOND
from tutti.kube import objects as k

_PREEMPTED = k.Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")


def full_cluster(watch: Stopwatch, *, priorities: int) -> World:
    """Make a cluster without free CPU."""
    node_count = watch.size(1_000, 100)
    return World([*nodes(node_count, 10), *running(10 * node_count, node_count, priorities=priorities)])


def seconds(took: float) -> str:
    """Format a time in seconds."""
    return f"{took:.2f} s"


# Single pods ----------------------------------------------------------------------------------------------------------


def preemptors(watch: Stopwatch) -> Iterator[Line]:
    """Let single pods preempt in one session, and compare the victims with those of one pod after the other."""
    count = watch.size(50, 5)
    draw = random.Random(3)
    world = full_cluster(watch, priorities=4)
    pods = [
        pod(f"high-{i:03}", str(draw.choice((2, 3, 4))), memory="1Gi", priority=10, created=CREATED)
        for i in range(count)
    ]
    world.put(*pods)
    copy = world.cluster.copy()
    settle_memory()
    timed = watch.run(lambda: watch.time(lambda: world.decide(START)))
    what, bar = f"{count} solo preemptors in one session, full cluster", "<= 0.5 s"
    if timed is None:
        yield Line(what, bar, f"> {watch.limit:.0f} s", False, "interrupted: victims not compared")
        return
    took, plan = timed
    found = _victims(plan)
    expected: dict[str, tuple[str, frozenset[str]]] = {}
    watch.run(lambda: _preempt_one_by_one(copy, [each.key for each in pods], expected))
    same = sum(found.get(key) == choice for key, choice in expected.items())
    outcome = (
        f"{len(plan.evictions)} victims for {len(plan.nominated)} pods; node and victims as one by one for "
        f"{same} of {len(expected)} compared"
    )
    yield Line(what, bar, seconds(took), took <= 0.5 and same == len(expected) == count, outcome)


def _victims(plan: Plan) -> dict[str, tuple[str, frozenset[str]]]:
    """Return the node and the victims of each preemptor."""
    nodes_of = {each.pod: each.node for each in plan.nominated}
    return {
        key: (node, frozenset(each.pod for each in plan.evictions if each.by == key)) for key, node in nodes_of.items()
    }


def _preempt_one_by_one(cluster: Cluster, pods: Iterable[str], choices: dict[str, tuple[str, frozenset[str]]]) -> None:
    """Add the node and the victims of each pod to `choices`: kube-scheduler's rules, one pod after the other."""
    engine = Engine(cluster)
    for key in pods:
        chosen = preempt(engine, engine.attempt(key)).chosen[0]
        new_victims = [victim for victim in chosen.victims if not cluster.pods.terminating[cluster.pod_row(victim)]]
        for victim in new_victims:
            obj = cluster.pod(victim)
            leaving = replace(
                obj,
                metadata=replace(obj.metadata, deletion_timestamp=CREATED),
                status=replace(obj.status, conditions=[_PREEMPTED]),
            )
            cluster.apply(Put(leaving))
        cluster.apply(Hold(key, chosen.node))
        choices[key] = chosen.node, frozenset(new_victims)


# Gangs ----------------------------------------------------------------------------------------------------------------


def gang_preemptors(watch: Stopwatch) -> Iterator[Line]:
    """Let gangs preempt in one session; once the victims have left, all gangs must start."""
    gangs, size = watch.size(20, 3), 8
    world = full_cluster(watch, priorities=1)
    for number in range(gangs):
        world.put(*gang(f"gang-{number:02}", size, "4", priority=10))
    settle_memory()
    timed = watch.run(lambda: watch.time(lambda: world.decide(START)))
    what, bar = f"{gangs} gangs of {size} preempting in one session, full cluster", "<= 1.5 s"
    if timed is None:
        yield Line(what, bar, f"> {watch.limit:.0f} s", False, "interrupted")
        return
    took, plan = timed
    with_room = sum(each.nominated == size for each in plan.gangs)
    pods = world.cluster.pods
    for key in [key for key, row in pods.row_of.items() if pods.terminating[row]]:
        world.cluster.apply(Remove("Pod", key, world.cluster.pod(key).metadata.uid))
    started: set[str] = set()
    longest = [0.0]

    def start_all() -> None:
        for second in range(2, 13, 2):
            later, after = watch.time(lambda second=second: world.decide(START + second * SECOND))  # type: ignore[misc]
            longest[0] = max(longest[0], later)
            started.update(each.gang for each in after.gangs if each.starts)
            if len(started) == gangs:
                return

    watch.run(start_all)
    outcome = (
        f"{with_room} of {gangs} get room, {len(plan.evictions)} victims; {len(started)} start once the victims have "
        f"left, longest session {seconds(longest[0])}"
    )
    yield Line(what, bar, seconds(took), took <= 1.5 and with_room == len(started) == gangs, outcome)


# Arrivals -------------------------------------------------------------------------------------------------------------


def arrivals(watch: Stopwatch) -> Iterator[Line]:
    """Place arriving pods while room is reserved for a starving gang."""
    node_count, count, held = watch.size(1_000, 100), watch.size(300, 30), 64
    world = World([*nodes(node_count, 64), *running(10 * node_count, node_count)])
    world.put(*gang("gang", held, "60"))
    world.decide(START)
    now = START + 61 * SECOND
    reserved = watch.run(lambda: watch.time(lambda: world.decide(now)))
    reservation = world.queue.reservation
    holds = len(reservation.holds) if reservation is not None else 0
    note = f"{holds} holds, reserved in {milliseconds(reserved[0]) if reserved else 'more than the limit'}"
    world.put(*(waiting("plain", i) for i in range(count)))
    settle_memory()
    timed = watch.run(lambda: watch.time(lambda: world.decide(now + 1)))
    what, bar = f"{count} arrivals beside a reservation of {held} holds", "<= 60 ms"
    if timed is None:
        yield Line(what, bar, f"> {watch.limit:.0f} s", False, note)
        return
    took, plan = timed
    met = 1000 * took <= 60 and len(plan.binds) == count and holds == held
    yield Line(what, bar, milliseconds(took), met, f"{len(plan.binds)} bound; {note}")
    apps = 50
    for i in range(count):
        app = f"spread-{i % apps}"
        world.put(waiting("spread", i, app=app, topology_spread_constraints=[spread(app)]))
    timed = watch.run(lambda: watch.time(lambda: world.decide(now + 2)))
    what, bar = f"  {count} pods of {apps} apps with a zone spread, each", "<= 0.7 ms"
    if timed is None:
        yield Line(what, bar, f"> {1000 * watch.limit / count:.0f} ms", False)
        return
    took, plan = timed
    each = took / count
    met = 1000 * each <= 0.7 and len(plan.binds) == count and holds == held
    yield Line(what, bar, milliseconds(each), met, f"{len(plan.binds)} bound; the session took {milliseconds(took)}")
