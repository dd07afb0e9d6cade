"""Chaos for a live scheduler, from a seed: what users, controllers, nodes and the network do to it.

`Chaos` plays a `SimulatedApiServer` and a `LiveScheduler` against each other, step by step; then it stops all faults,
lets time pass, and checks that nothing is lost, doubled or left in part.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from tests.support import builders
from tests.support.builders import COSCHEDULING_LABEL
from tests.support.cluster_state import cluster_state
from tests.support.live_scheduler import LiveScheduler
from tests.support.simulated_api_server import FINISHED, OTHER, SECOND, START, SimulatedApiServer, gang_of
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Put
from tutti.engine.session.plan import Plan
from tutti.engine.session.policy import Patience, Policy
from tutti.engine.session.queue_state import QueueRecord
from tutti.engine.session.schedule import schedule
from tutti.kube import objects as k

RACK = "rack"
QUIET_FOR = 1_000 * SECOND
"""How long the cluster must be quiet at the end."""
MAX_SESSIONS = 400
"""Sessions in which the scheduler must come to rest."""
GROUP = k.CoschedulingPodGroup.KIND


class Chaos:
    """See the module's docstring."""

    def __init__(self, seed: int, *, steps: int = 60) -> None:
        self.draw = draw = random.Random(f"chaos {seed}")
        self.seed = seed
        self.server = SimulatedApiServer()
        self._names = 0
        self.trace: list[str] = []
        for number in range(draw.randrange(2, 6)):
            self._create_node(f"n{number}")
        policy = Policy(
            queueing=draw.choice(("fifo", "backfill", "backfill", "reservation", "reservation")),
            budget=draw.choice((None, None, 1, 2_000, 20_000)),
            preemption=draw.random() < 0.8,
            patience=Patience(reserved_for=draw.choice((3_600, 400)) * SECOND),
        )
        self.faults = draw.choice((0.0, 0.1, 0.3))
        self.scheduler = LiveScheduler(self.server, draw, policy, noise=draw.choice((0.0, 0.2, 0.5)))
        self.scheduler.trace = self.trace
        self.scheduler.reads_pods = draw.random() < 0.8
        self.record: QueueRecord | None = None
        self.steps = steps

    def run(self) -> None:
        """Play the chaos, stop it, and check what is left."""
        for _ in range(self.steps):
            self._step()
        self._settle()
        self._check_end()

    # Chaos ------------------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        draw, server, scheduler = self.draw, self.server, self.scheduler
        for _ in range(draw.choice((0, 1, 1, 2, 4))):
            self._happen()
        leap = draw.choice((0, 0, 1, 1, 2, 5, 15)) if draw.random() < 0.95 else draw.choice((70, 400))
        server.advance(server.now + leap * SECOND + draw.randrange(3))
        self._communicate()
        if scheduler.is_session_due() and draw.random() < 0.7:
            self._session()
        if draw.random() < 0.2:
            scheduler.cluster.collect()
        if draw.random() < 0.1:
            self.record = scheduler.record()
        if draw.random() < 0.03:
            self._restart()

    def _communicate(self) -> None:
        draw, scheduler = self.draw, self.scheduler
        for kind in sorted(self.server.log):
            if draw.random() < 0.03:
                scheduler.relist(kind)
            elif draw.random() < 0.6:
                scheduler.deliver(kind, draw.choice((1, 3, 100)))
        self._send(lambda: draw.random() < 0.6)
        for answer in list(scheduler.answers):
            if draw.random() < 0.6:
                scheduler.receive(answer)

    def _send(self, arrives: Callable[[], bool]) -> None:
        """Let some requests arrive, those of one pod in their order."""
        scheduler, draw = self.scheduler, self.draw
        waiting = list(scheduler.requests)
        draw.shuffle(waiting)
        late: set[str] = set()
        for request in sorted(waiting, key=lambda each: scheduler.requests.index(each) if draw.random() < 0.5 else 0):
            first = next(each for each in scheduler.requests if each.pod == request.pod)
            if first is not request or request.pod in late or not arrives():
                late.add(request.pod)
                continue
            fault = draw.choice(("refused", "dropped", "lost")) if draw.random() < self.faults else ""
            if isinstance(request.what, str) and fault == "lost":
                fault = ""
            scheduler.send(request, fault)

    def _session(self) -> Plan:
        plan = self.scheduler.run_session()
        now, wake = self.server.now, self.scheduler.queue.wake
        self.trace.append(
            f"session at {(now - START) / SECOND}: binds {[(b.pod, b.node) for b in plan.binds]}"
            f" evicts {[(e.pod, e.by) for e in plan.evictions]} nominated {[(n.pod, n.node) for n in plan.nominated]}"
            f" released {plan.released} turns {[turn.name for turn in plan.turns]}"
            f" wake {None if wake is None else (wake - now) / SECOND}"
        )
        return plan

    def _restart(self) -> None:
        """Restart the scheduler; requests that are under way arrive without an answer, or never."""
        draw, scheduler = self.draw, self.scheduler
        for request in list(scheduler.requests):
            if draw.random() < 0.5:
                scheduler.send(request, "lost" if not isinstance(request.what, str) else "")
        record = draw.choice((None, self.record, scheduler.record()))
        self.trace.append(f"restart {'with' if record else 'without'} a record")
        scheduler.restart(record)

    # What happens in the cluster --------------------------------------------------------------------------------------

    def _happen(self) -> None:
        actions: dict[Callable[[], None], int] = {
            self._create_pod: 6, self._create_gang: 5, self._delete_pod: 4, self._finish_pod: 4, self._delete_gang: 2,
            self._add_node: 2, self._delete_node: 1, self._cordon: 1, self._resize_node: 1, self._replace_node: 1,
            self._foreign_pod: 3, self._change_group: 2, self._ungate: 3, self._poison: 1, self._mend: 2,
            self._annotate: 3, self._budget: 1, self._label_node: 1, self._full_node: 1,
        }  # fmt: skip
        action = self.draw.choices(list(actions), list(actions.values()))[0]
        before = {kind: len(log) for kind, log in self.server.log.items()}
        action()
        for kind, log in self.server.log.items():
            for edit in log[before.get(kind, 0) :]:
                key = edit.obj.key if isinstance(edit, Put) else edit.key
                self.trace.append(f"{action.__name__} {kind} {key}")

    def _create_node(self, name: str) -> None:
        draw = self.draw
        made = builders.node(
            name, draw.choice(("4", "4", "8")), pods=draw.choice(("3", "110")),
            labels={RACK: draw.choice(("r0", "r1"))}, zone=draw.choice(("", "a")),
        )  # fmt: skip
        self.server.create(made)
        self.server.note_unplanned_node(name)

    def _pod(self, name: str, **how: Any) -> k.Pod:
        draw = self.draw
        if draw.random() < 0.15:
            how["scheduling_gates"] = [k.SchedulingGate(name="wait")]
        if draw.random() < 0.15:
            how["node_selector"] = {RACK: draw.choice(("r0", "r1"))}
        if draw.random() < 0.05:
            # Without preemption: a victim that is created again may be placed where it keeps the pod away, for ever,
            # because kube-scheduler does not filter with the rules of nominated pods if no other pod has such rules.
            how |= {"affinity": builders.near("b", RACK), "preemption_policy": "Never"}
        elif draw.random() < 0.05:
            how |= {"affinity": builders.apart("a"), "preemption_policy": "Never"}
        elif draw.random() < 0.1:
            how |= {"topology_spread_constraints": [builders.spread("a", RACK)], "preemption_policy": "Never"}
        if draw.random() < 0.1:
            how["host_port"] = 8080
        if draw.random() < 0.1:
            how["preemption_policy"] = "Never"
        return builders.pod(name, app=draw.choice("abc"), **how)

    def _keep(self, pod: k.Pod) -> k.Pod:
        """Let a controller keep a pod."""
        owner = builders.owner_reference("StatefulSet", pod.metadata.name)
        kept = replace(pod, metadata=replace(pod.metadata, owner_references=[owner]))
        self.server.keeps[kept.key] = kept
        return kept

    def _create_pod(self) -> None:
        draw = self.draw
        name = f"p{draw.randrange(12)}"
        if self.server.pod(f"default/{name}") is not None:
            return
        annotations = {"tutti.dev/duration": draw.choice(("30", "5m"))} if draw.random() < 0.2 else None
        cpu, priority = draw.choice(("1", "1", "2", "4")), draw.choice((0, 0, 5, 10))
        made = self._pod(name, cpu=cpu, priority=priority, annotations=annotations)
        self.server.create(self._keep(made) if draw.random() < 0.4 else made)

    def _create_gang(self) -> None:
        draw = self.draw
        name = f"g{draw.randrange(4)}"
        if any(gang_of(pod) == f"default/{name}" for pod in self.server.pods()):
            return
        minimum = draw.choice((2, 2, 3, 4))
        size = minimum + draw.choice((0, 0, 1, 2))
        is_counted, kept = draw.random() < 0.25, draw.random() < 0.6
        notes = {}
        if draw.random() < 0.3:
            notes[draw.choice(("tutti.dev/topology-required", "tutti.dev/topology-preferred"))] = RACK
        if draw.random() < 0.4:
            notes["tutti.dev/disruption"] = draw.choice(("single", "whole", "all"))
        if draw.random() < 0.2:
            notes["tutti.dev/duration"] = "60"
        how = {"cpu": draw.choice(("1", "2", "4")), "priority": draw.choice((0, 5, 10))}
        pods = []
        for number in range(size):
            if is_counted:
                made = self._pod(f"{name}-{number}", gang=name, annotations=notes, **how)
            else:
                made = self._pod(f"{name}-{number}", labels={COSCHEDULING_LABEL: name}, **how)
            pods.append(self._keep(made) if kept and draw.random() < 0.9 else made)
        missing = draw.random() < 0.1
        if not is_counted and (GROUP, f"default/{name}") not in self.server.objects and not missing:
            self.server.create(builders.pod_group(name, minimum, notes))
        for made in pods:
            if self.server.pod(made.key) is None:
                self.server.create(made)

    def _any_pod(self, wanted: Callable[[k.Pod], bool]) -> k.Pod | None:
        found = [pod for pod in self.server.pods() if wanted(pod)]
        return self.draw.choice(found) if found else None

    def _delete_pod(self) -> None:
        pod = self._any_pod(lambda pod: pod.metadata.deletion_timestamp is None)
        if pod is not None:
            if self.draw.random() < 0.5:
                self.server.keeps.pop(pod.key, None)
            if self.draw.random() < 0.2:
                self.server.delete("Pod", pod.key)  # by force
                if self.draw.random() < 0.5:
                    meta = replace(pod.metadata, deletion_timestamp=None, creation_timestamp=None)
                    spec = replace(pod.spec, node_name=None)
                    self.server.create(replace(pod, metadata=meta, spec=spec, status=k.PodStatus(phase="Pending")))
                else:
                    self.server._recreate_later(pod)
            else:
                grace, finalizer = self.draw.choice((1, 5, 30)), self.draw.random() < 0.2
                self.server.delete_gracefully(pod.key, grace, finalizer=finalizer)

    def _finish_pod(self) -> None:
        pod = self._any_pod(lambda pod: bool(pod.status.start_time) and pod.status.phase not in FINISHED)
        if pod is not None:
            self.server.finish(pod, self.draw.choice(FINISHED))

    def _delete_gang(self) -> None:
        name = f"g{self.draw.randrange(4)}"
        if self.draw.random() < 0.5 and (GROUP, f"default/{name}") in self.server.objects:
            self.server.delete(GROUP, f"default/{name}")
        for pod in self.server.pods():
            if gang_of(pod) == f"default/{name}":
                self.server.keeps.pop(pod.key, None)
                self.server.delete_gracefully(pod.key, self.draw.choice((1, 5)))

    def _add_node(self) -> None:
        name = f"n{self.draw.randrange(7)}"
        if ("Node", name) not in self.server.objects:
            self._create_node(name)

    def _any_node(self) -> k.Node | None:
        nodes = [node for node in self.server.nodes() if str((node.status.allocatable or {})["cpu"]).isdecimal()]
        return self.draw.choice(nodes) if nodes else None

    def _delete_node(self) -> None:
        node = self._any_node()
        if node is not None:
            self.server.delete("Node", node.metadata.name)
            self.server.note_unplanned_node(node.metadata.name)
            self.server.node_deleted(node.metadata.name)

    def _replace_node(self) -> None:
        node = self._any_node()
        if node is not None:
            self.server.delete("Node", node.metadata.name)
            self._create_node(node.metadata.name)

    def _cordon(self) -> None:
        node = self._any_node()
        if node is not None:
            spec = replace(node.spec, unschedulable=None if node.spec.unschedulable else True)
            self.server.update(replace(node, spec=spec))

    def _resize_node(self) -> None:
        node = self._any_node()
        if node is not None:
            size = {**(node.status.allocatable or {}), "cpu": self.draw.choice(("2", "4", "8"))}
            self.server.update(replace(node, status=replace(node.status, allocatable=size)))
            self.server.note_unplanned_node(node.metadata.name)

    def _label_node(self) -> None:
        node = self._any_node()
        if node is not None:
            labels = {**(node.metadata.labels or {}), RACK: self.draw.choice(("r0", "r1"))}
            self.server.update(replace(node, metadata=replace(node.metadata, labels=labels)))

    def _foreign_pod(self) -> None:
        """Another scheduler binds a pod of its own."""
        self._names += 1
        cpu = self.draw.choice((1, 2))
        rooms = [n.metadata.name for n in self.server.nodes() if self.server.free(n.metadata.name)[0] >= cpu]
        rooms = [name for name in rooms if self.server.free(name)[1] >= 1]
        if rooms:
            made = builders.pod(f"other-{self._names}", str(cpu), priority=0, scheduler_name=OTHER)
            self.server.create(made)
            self.server.bind_elsewhere(made.key, self.draw.choice(rooms))

    def _change_group(self) -> None:
        key = f"default/g{self.draw.randrange(4)}"
        group = self.server.objects.get((GROUP, key))
        if not isinstance(group, k.CoschedulingPodGroup):
            return
        if self.draw.random() < 0.3:
            self.server.delete(GROUP, key)
            if self.draw.random() < 0.7:
                self.server.create(builders.pod_group(group.metadata.name, 2))
        else:
            self.server.update(replace(group, spec=replace(group.spec, min_member=self.draw.choice((2, 3, 4)))))

    def _ungate(self) -> None:
        pod = self._any_pod(lambda pod: bool(pod.spec.scheduling_gates))
        if pod is not None:
            self.server.update(replace(pod, spec=replace(pod.spec, scheduling_gates=None)))

    def _poison(self) -> None:
        """Create a pod that cannot be read, or make a node unreadable."""
        if self.draw.random() < 0.5:
            name = f"p{self.draw.randrange(12)}"
            if self.server.pod(f"default/{name}") is None:
                self.server.create(builders.pod(name, "1x"))
            return
        node = self._any_node()
        if node is not None:
            size = {**(node.status.allocatable or {}), "cpu": f"{(node.status.allocatable or {})['cpu']}x"}
            self.server.update(replace(node, status=replace(node.status, allocatable=size)))

    def _mend(self) -> None:
        for node in self.server.nodes():
            cpu = str((node.status.allocatable or {})["cpu"])
            if cpu.endswith("x"):
                size = {**(node.status.allocatable or {}), "cpu": cpu[:-1]}
                self.server.update(replace(node, status=replace(node.status, allocatable=size)))
        for pod in self.server.pods():
            (container,) = pod.spec.containers
            requests = (container.resources.requests if container.resources else None) or {}
            if str(requests["cpu"]).endswith("x"):
                mended = replace(container, resources=k.ResourceRequirements(requests={"cpu": "1"}))
                self.server.update(replace(pod, spec=replace(pod.spec, containers=[mended])))

    def _annotate(self) -> None:
        pod = self._any_pod(lambda _: True)
        if pod is not None:
            if self.draw.random() < 0.5:
                notes = {**(pod.metadata.annotations or {}), "note": str(self.draw.randrange(3))}
                self.server.update(replace(pod, metadata=replace(pod.metadata, annotations=notes)))
            else:
                condition = k.Condition(type="PodScheduled", status=self.draw.choice(("True", "False")))
                self.server.update(replace(pod, status=replace(pod.status, conditions=[condition])))

    def _budget(self) -> None:
        app = self.draw.choice("ab")
        key = f"default/{app}"
        if ("PodDisruptionBudget", key) in self.server.objects:
            self.server.delete("PodDisruptionBudget", key)
        else:
            self.server.create(builders.disruption_budget(app, 0, min_available=self.draw.randrange(3)))

    def _full_node(self) -> None:
        """Let a kubelet refuse a pod that is not bound yet."""
        pod = self._any_pod(lambda pod: not pod.spec.node_name)
        if pod is not None:
            self.server.is_full_for.add(pod.metadata.uid or "")

    # The end ----------------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Stop all faults, and let time pass until nothing happens any more."""
        draw, server, scheduler = self.draw, self.server, self.scheduler
        self._mend()
        self.faults, scheduler.noise = 0.0, 0.0
        server.is_full_for.clear()
        server.advance(server.now)
        quiet_since, sessions, stalls, is_stalled = server.now, 0, 0, False
        while True:
            busy, changes = False, sum(map(len, server.log.values()))
            while scheduler.has_undelivered() or scheduler.requests or scheduler.answers:
                for kind in sorted(server.log):
                    scheduler.deliver(kind, 1_000)
                self._send(lambda: True)
                for answer in list(scheduler.answers):
                    scheduler.receive(answer)
            busy = changes != sum(map(len, server.log.values()))
            if busy or scheduler.is_session_due():
                plan = self._session()
                sessions += 1
                if busy or plan.binds or plan.evictions or plan.nominated:
                    quiet_since = server.now
                assert sessions < MAX_SESSIONS, "the scheduler does not come to rest"
                wake = scheduler.queue.wake
                is_stalled = wake is not None and wake <= server.now + SECOND // 1_000
                stalls = stalls + 1 if is_stalled else 0
                assert stalls < 60, "the scheduler is woken again and again"
                continue
            if draw.random() < 0.1:
                scheduler.cluster.collect()
            times = [server.next_time(), scheduler.queue.wake]
            later = min((time for time in times if time is not None), default=None)
            if later is None or later > quiet_since + QUIET_FOR:
                server.advance(max(server.now, quiet_since + QUIET_FOR))
                if not scheduler.has_undelivered():
                    break
                continue
            server.advance(max(later, server.now))

    def _check_end(self) -> None:
        server, scheduler = self.server, self.scheduler
        cluster, queue = scheduler.cluster, scheduler.queue
        assert not cluster.set_aside
        fresh = Cluster()
        for obj in server.objects.values():
            fresh.observe(Put(obj))
        state, expected = _state(cluster), _state(fresh)
        if not scheduler.reads_pods:  # two pods may have had the same port, which is free when the first one leaves
            del state["ports"], expected["ports"]
        assert state == expected, "the cluster is that of the server"
        for owner, hold in cluster.holds.items():
            row = cluster.pods.row_of[owner]
            assert cluster.pods.node_names[row] is None
            assert hold.until is None or hold.until > server.now
        if queue.reservation is not None:
            assert queue.reservation.name in queue.waiting
        for gang in server.partial_gangs():
            if gang in scheduler.read_early and gang in queue.partial.whole:
                continue
            running = {pod.key for pod in server.running(server.gang_pods()[gang])}
            assert running <= scheduler.left, f"{gang} runs in part"
        self._check_nothing_forgotten()
        quiet = self._session()
        assert not quiet.turns, "a session on quiet state does nothing"
        assert not quiet.partial_gangs
        assert queue.wake is None or queue.wake > server.now

    def _check_nothing_forgotten(self) -> None:
        """Check that no pod could be placed now, beside the holds that the scheduler has."""
        cluster, queue = self.scheduler.cluster, self.scheduler.queue
        plan = schedule(cluster.copy(), preemption=False)
        blocked = [queue.order_of(name) for name, entry in queue.waiting.items() if entry.needs_room]
        if plan.binds and self.scheduler.policy.queueing == "fifo" and blocked:
            # Both turns of a gang list all its pods; the surplus comes last.
            orders = {pod: turn.order for turn in sorted(plan.turns) for pod in turn.pods}
            before = [pod for pod, order in orders.items() if order < min(blocked)]
            plan = schedule(cluster.copy(), before, preemption=False)
        assert not plan.binds, f"{[bound.pod for bound in plan.binds]} are forgotten"


def _state(cluster: Cluster) -> dict[str, object]:
    """Return what a cluster knows, without holds and assumed start times, which the server does not have."""
    state = cluster_state(cluster)
    for key, row in cluster.pods.row_of.items():
        obj, node, start, _ = state[f"pod {key}"]  # type: ignore[misc]
        state[f"pod {key}"] = (obj, node, start if cluster.pods.objects[row].status.start_time else None)
    state["finished"] = sorted(cluster.pod_updates.finished)
    return state
