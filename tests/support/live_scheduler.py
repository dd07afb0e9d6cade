"""A live scheduler in memory: what `docs/engine.md` tells the author of one to do, and nothing else.

`LiveScheduler` follows the watches of a `SimulatedApiServer`, runs sessions when something has changed or
`queue.wake` has come, and carries out the plans with requests that arrive, fail and are answered later, in any order.
It checks every plan. `LiveScheduler.restart` is a new process: the cluster is listed, the queue is made from a record
or not.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import msgspec

from tests.support.builders import COSCHEDULING_LABEL
from tests.support.cluster_state import cluster_state
from tests.support.simulated_api_server import ApiError, SimulatedApiServer, cores, gang_of
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Put, Remove, Unbind, Unevict
from tutti.engine.placement.engine import Engine
from tutti.engine.session.plan import Bound, Eviction, Plan
from tutti.engine.session.policy import Patience, Policy
from tutti.engine.session.queue import Queue
from tutti.engine.session.queue_state import QueueRecord
from tutti.engine.session.session import session
from tutti.kube import objects as k

_RECORD = msgspec.json.Decoder(QueueRecord)


@dataclass(frozen=True)
class Request:
    """A request to the API server."""

    what: Bound | Eviction | str
    """A binding, an eviction, or the name of a node to nominate; empty to clear the nomination."""
    pod: str
    uid: str | None
    seen: dict[str, int]
    """How much of each log had been delivered when the request was planned."""


class LiveScheduler:
    """See the module's docstring."""

    def __init__(self, server: SimulatedApiServer, draw: random.Random, policy: Policy, *, noise: float) -> None:
        self.server, self.draw, self.policy, self.noise = server, draw, policy, noise
        self.patience = policy.patience or Patience()
        self.left: set[str] = set()
        """Pods that a plan reported as left of a partial gang."""
        self.read_early: set[str | None] = set()
        """Gangs of which a pod was read before the watch reported it: the scheduler saw it beside older pods."""
        self.reads_pods = True
        """Whether a pod is read when the answer to its binding is lost; otherwise the binding counts as failed."""
        self.trace: list[str] = []
        self.restart(None)

    def restart(self, record: QueueRecord | None) -> None:
        """Start a process: list all objects, and forget everything but the record."""
        self.cluster = Cluster()
        listed = list(self.server.objects.values())
        self.draw.shuffle(listed)
        for obj in listed:
            self.cluster.observe(Put(obj))
        self.engine, self.queue = Engine(self.cluster), Queue(self.cluster, record)
        self.position = {kind: len(log) for kind, log in self.server.log.items()}
        self.first = dict(self.position)
        self.known = {(obj.KIND, obj.key): obj.metadata.uid for obj in listed}
        self.requests: list[Request] = []
        self.answers: list[tuple[Request, ApiError | None]] = []
        self.failed_at: dict[tuple[str | None, str], int] = {}
        """When a binding was last reported as failed, by uid of the pod and node."""
        self.bindings: set[str | None] = set()
        """The uids of pods whose binding is under way or has succeeded."""
        self.evictions: set[str | None] = set()
        """The uids of pods whose eviction is under way or has succeeded."""
        self.spent_budgets: set[str] = set()
        self.is_changed = True

    def record(self) -> QueueRecord:
        """Return the queue as a record that was stored and read again."""
        return _RECORD.decode(msgspec.json.encode(self.queue.freeze()))

    # Watches ----------------------------------------------------------------------------------------------------------

    def has_undelivered(self) -> bool:
        """Return whether a watch has something to deliver."""
        return any(self.position.get(kind, 0) < len(log) for kind, log in self.server.log.items())

    def deliver(self, kind: str, count: int) -> None:
        """Deliver the next changes of a kind, with repetitions of earlier ones."""
        log = self.server.log[kind]
        for _ in range(count):
            position = self.position.get(kind, 0)
            if position == len(log):
                return
            self._observe(log[position])
            self.position[kind] = position + 1
            if self.draw.random() < self.noise:
                first = max(self.first.get(kind, 0), position - 10)
                self.cluster.observe(log[self.draw.randint(first, position)])

    def _observe(self, edit: Put | Remove) -> None:
        self.cluster.observe(edit)
        self.is_changed = True
        if isinstance(edit, Put):
            self.known[edit.obj.KIND, edit.obj.key] = edit.obj.metadata.uid
        elif self.known.get((edit.kind, edit.key)) == edit.uid:
            del self.known[edit.kind, edit.key]

    def relist(self, kind: str) -> None:
        """List a kind again after a watch has expired: put what there is, remove what is no longer there."""
        listed = [obj for obj in self.server.objects.values() if kind == obj.KIND]
        names = {(kind, obj.key) for obj in listed}
        for name, uid in list(self.known.items()):
            if name[0] == kind and name not in names:
                self._observe(Remove(kind, name[1], uid))
        for obj in listed:
            self._observe(Put(obj))
        self.position[kind] = self.first[kind] = len(self.server.log[kind])

    # Sessions ---------------------------------------------------------------------------------------------------------

    def is_session_due(self) -> bool:
        """Return whether something has changed, or the queue wants to be woken."""
        return self.is_changed or (self.queue.wake is not None and self.queue.wake <= self.server.now)

    def run_session(self) -> Plan:
        """Run a session, check its plan, and send the requests that carry it out."""
        before = self.cluster.copy() if self.draw.random() < 0.1 else None
        if self.draw.random() < 0.05:
            self._run_what_if()
        plan = session(self.engine, self.queue, self.server.now, self.policy)
        self.is_changed = False
        self._check(plan)
        if before is not None:
            for edit in plan.edits():
                before.apply(edit)
            assert cluster_state(before) == cluster_state(self.cluster), "a plan is what a session did"
        self.spent_budgets |= {budget.key for budget in plan.budgets}
        for partial in plan.partial_gangs:
            self.left |= set(partial.left)
        seen = dict(self.position)
        for eviction in plan.evictions:
            assert eviction.to is None
            self.evictions.add(eviction.uid)
            self.requests.append(Request(eviction, eviction.pod, eviction.uid, seen))
        for bound in plan.binds:
            self.bindings.add(bound.uid)
            self.requests.append(Request(bound, bound.pod, bound.uid, seen))
        for nominated in plan.nominated:
            uid = self.cluster.pod(nominated.pod).metadata.uid
            self.requests.append(Request(nominated.node, nominated.pod, uid, seen))
        for pod in plan.released:
            if pod in self.cluster.pods.row_of:
                self.requests.append(Request("", pod, self.cluster.pod(pod).metadata.uid, seen))
        return plan

    def _run_what_if(self) -> None:
        """Run the session under a mark and roll it back, which must leave no trace."""
        before, record = cluster_state(self.cluster), self.queue.freeze()
        mark = self.cluster.mark()
        session(self.engine, self.queue, self.server.now, self.policy)
        self.cluster.rollback(mark)
        assert cluster_state(self.cluster) == before, "a what-if leaves the cluster as it was"
        assert self.queue.freeze() == record, "a what-if leaves the queue as it was"

    def _check(self, plan: Plan) -> None:
        now, cluster = self.server.now, self.cluster
        wake = self.queue.wake
        assert wake is None or wake > now or self.queue.resume is not None, "wake is in the future"
        for bound in plan.binds:
            pod = cluster.pod(bound.pod)
            assert bound.uid == pod.metadata.uid
            assert pod.spec.node_name is None, f"{bound.pod} is bound already"
            assert not pod.spec.scheduling_gates
            assert pod.metadata.deletion_timestamp is None
            assert bound.uid not in self.bindings, f"{bound.pod} has a binding already"
            failed = self.failed_at.get((bound.uid, bound.node))
            assert failed is None or now - failed >= self.patience.avoided_for, f"{bound.pod} avoids {bound.node}"
        for gang in {bound.gang for bound in plan.binds if bound.gang is not None}:
            self._check_gang(gang)
        for eviction in plan.evictions:
            assert eviction.uid == cluster.pod(eviction.pod).metadata.uid
            assert eviction.uid not in self.evictions, f"{eviction.pod} is evicted already"
        for key, row in cluster.pods.row_of.items():
            if cluster.pod(key).metadata.uid in self.evictions:
                assert cluster.pods.terminating[row], f"the eviction of {key} is forgotten"

    def _check_gang(self, gang: str) -> None:
        """Check that a gang of which pods are bound runs whole once the plan is carried out."""
        pods = self.cluster.pods
        rows = [row for row in pods.row_of.values() if gang_of(pods.objects[row] or k.Pod()) == gang]
        running = sum(bool(pods.node[row] >= 0 and not pods.terminating[row]) for row in rows)
        group = self.cluster.objects[k.CoschedulingPodGroup.KIND].get(gang)
        if any(COSCHEDULING_LABEL in ((pods.objects[row] or k.Pod()).metadata.labels or {}) for row in rows):
            assert isinstance(group, k.CoschedulingPodGroup)
            done = self.cluster.pod_updates.finished.values()
            running += sum(f.succeeded and f.membership is not None and f.membership.group == gang for f in done)
            assert running >= (group.spec.min_member or 0), f"{gang} is bound in part"
        else:
            assert all(pods.node_names[row] is not None for row in rows), f"{gang} is bound in part"

    # Requests ---------------------------------------------------------------------------------------------------------

    def send(self, request: Request, fault: str) -> None:
        """Let a request arrive; `fault` is empty, ``refused``, ``dropped`` or ``lost`` (the answer is lost)."""
        self.requests.remove(request)
        error: ApiError | None = None
        if fault == "refused":
            error = ApiError(429 if isinstance(request.what, Eviction) else 500, "refused")
        elif fault == "dropped":
            error = ApiError(0, "no answer")
        else:
            try:
                self._carry_out(request)
            except ApiError as refusal:
                error = refusal
            if fault == "lost":
                if error is None and isinstance(request.what, Bound) and not self.reads_pods:
                    self.server.unplanned[request.what.node]["Pod"] = len(self.server.log["Pod"]) - 1
                error = ApiError(0, "no answer")
        self.trace.append(f"{request.what!r:.60} {request.pod} {request.uid} {fault} -> {error}")
        self.answers.append((request, error))

    def _carry_out(self, request: Request) -> None:
        server, what = self.server, request.what
        if isinstance(what, Bound):
            server.bind(what.pod, what.uid, what.node)
            self._check_room(what.node, request)
        elif isinstance(what, Eviction):
            server.evict(what.pod, what.uid)
        else:
            server.nominate(request.pod, request.uid, what or None)

    def _check_room(self, node: str, request: Request) -> None:
        """Check that a binding does not overbook its node, unless the room went in a way the scheduler had not seen."""
        if ("Node", node) not in self.server.objects:
            return
        raced = self.server.unplanned.get(node, {})
        if any(position >= request.seen.get(kind, 0) for kind, position in raced.items()):
            return
        pod = self.server.pod(request.pod)
        cpu, places = self.server.free(node)
        assert pod is not None
        assert cpu >= 0 or not cores(pod), f"{request.pod} overbooks {node}"
        assert places >= 0, f"{request.pod} overbooks {node}"

    def receive(self, answer: tuple[Request, ApiError | None]) -> None:
        """Receive the answer to a request."""
        self.answers.remove(answer)
        request, error = answer
        if isinstance(request.what, Eviction):
            self._read_budgets()
        if error is None:
            return
        if isinstance(request.what, Bound):
            self._bind_failed(request.what, error)
        elif isinstance(request.what, Eviction):
            self._eviction_failed(request.what, error)

    def _read_budgets(self) -> None:
        """Read the budgets that evictions have spent in the cluster: the API server may count otherwise."""
        for key in sorted(self.spent_budgets):
            budget = self.server.objects.get((k.PodDisruptionBudget.KIND, key))
            if budget is not None:
                self.cluster.observe(Put(budget))
        self.spent_budgets.clear()

    def _bind_failed(self, bound: Bound, error: ApiError) -> None:
        if error.code == 0 and self.reads_pods:  # nobody knows whether the pod was bound
            pod = self.server.pod(bound.pod)
            if pod is None or pod.metadata.uid != bound.uid:
                return  # the watch will tell
            self.cluster.observe(Put(pod))
            self.read_early.add(gang_of(pod))
            self.is_changed = True
            if pod.spec.node_name:
                return
        now, patience = self.server.now, self.patience
        row = self.cluster.pods.row_of.get(bound.pod)
        self.cluster.apply(Unbind(bound.pod, bound.uid))
        self.queue.bind_failed(bound.pod, bound.node, str(error), uid=bound.uid, now=now, patience=patience)
        self.bindings.discard(bound.uid)
        if row is not None and self.cluster.pod(bound.pod).metadata.uid == bound.uid:
            self.failed_at[bound.uid, bound.node] = self.server.now
        self.is_changed = True

    def _eviction_failed(self, eviction: Eviction, error: ApiError) -> None:
        if error.code == 404:
            return  # the pod is gone: the watch will tell
        pod = self.server.pod(eviction.pod)
        if error.code == 0 and pod is not None and pod.metadata.deletion_timestamp is not None:
            return  # the eviction has succeeded: the watch will tell
        self.cluster.apply(Unevict(eviction.pod, eviction.uid))
        self.evictions.discard(eviction.uid)
        self.is_changed = True
