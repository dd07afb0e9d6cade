"""A small API server with kubelets and controllers, in memory and on simulated time: the truth of a chaos test.

`SimulatedApiServer` stores objects with uids and resourceVersions, and keeps a log of edits per kind, which is what a
watch delivers. It accepts or refuses bindings, evictions and nominations as Kubernetes does. `advance` plays the rest
of the cluster until a time: kubelets start pods, or refuse those for which a node has no room (`OutOfcpu`); pods that
terminate leave after their grace period; pods on nodes that are gone are deleted; controllers create the pods again
that they own; the disruption controller keeps the status of budgets. Nothing here uses the code under test, except for
the objects and edits.
"""

from __future__ import annotations

from collections import defaultdict

from msgspec.structs import replace

from tests.support.builders import COSCHEDULING_LABEL
from tutti.cluster.edits import Put, Remove
from tutti.kube import objects as k
from tutti.kube.times import timestamp

SECOND = 1_000_000
START = 1_800_000_000 * SECOND
FINISHED = ("Succeeded", "Failed")
OTHER = "other-scheduler"
"""The scheduler name of pods that another scheduler binds."""


class ApiError(Exception):
    """The answer to a request that the API server refuses."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class SimulatedApiServer:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.now = START
        self.objects: dict[tuple[str, str], k.Object] = {}
        self.log: dict[str, list[Put | Remove]] = defaultdict(list)
        """All changes of each kind, in order: what a watch delivers."""
        self.due: list[tuple[int, int, str, str, str]] = []
        """What kubelets and controllers do next: time, number, action, key and uid."""
        self.is_full_for: set[str] = set()
        """Uids of pods that a kubelet refuses, whatever room its node has."""
        self.keeps: dict[str, k.Pod] = {}
        """Pods that a controller creates again when they are gone, as they were created, by key."""
        self.unplanned: dict[str, dict[str, int]] = defaultdict(dict)
        """Per node and kind, the position in the log of the latest change that took room without our bindings."""
        self.whole: dict[str, set[str | None]] = {}
        """Gangs whose minimum had started at once, with the uids of the pods that ran then and still did ever since.
        Watches deliver kinds in any order, so a scheduler may see the pods of one moment with a node or a minimum of
        another: pods on nodes that are gone count, and so do all minimums that a group has had."""
        self._minimums: dict[str, int] = {}
        """The lowest minimum that each gang has had."""
        self._version = self._uids = self._actions = 0

    # Objects ----------------------------------------------------------------------------------------------------------

    def create(self, obj: k.Object) -> k.Object:
        """Store a new object."""
        assert (obj.KIND, obj.key) not in self.objects
        self._uids += 1
        stamp = obj.metadata.creation_timestamp or timestamp(self.now)
        meta = replace(obj.metadata, uid=f"uid-{self._uids}", creation_timestamp=stamp)
        return self._store(replace(obj, metadata=meta))

    def update(self, obj: k.Object) -> k.Object:
        """Store a new version of an object; an update that changes nothing is no new version, as in Kubernetes."""
        old = self.objects[obj.KIND, obj.key]
        assert old.metadata.uid == obj.metadata.uid
        return old if obj == old else self._store(obj)

    def _store(self, obj: k.Object) -> k.Object:
        self._version += 1
        obj = replace(obj, metadata=replace(obj.metadata, resource_version=str(self._version)))
        self.objects[obj.KIND, obj.key] = obj
        self.log[obj.KIND].append(Put(obj))
        self._note_gangs()
        return obj

    def delete(self, kind: str, key: str) -> None:
        """Remove an object at once."""
        old = self.objects.pop((kind, key))
        self._version += 1
        self.log[kind].append(Remove(kind, key, old.metadata.uid))
        self._note_gangs()

    def pod(self, key: str) -> k.Pod | None:
        """Return a pod."""
        found = self.objects.get(("Pod", key))
        return found if isinstance(found, k.Pod) else None

    def pods(self) -> list[k.Pod]:
        """Return all pods."""
        return [obj for obj in self.objects.values() if isinstance(obj, k.Pod)]

    def nodes(self) -> list[k.Node]:
        """Return all nodes."""
        return [obj for obj in self.objects.values() if isinstance(obj, k.Node)]

    def pods_on(self, node: str) -> list[k.Pod]:
        """Return the pods on a node that have not finished, in the order of their bindings."""
        return [p for p in self.pods() if p.spec.node_name == node and p.status.phase not in FINISHED]

    def free(self, name: str) -> tuple[int, int]:
        """Return the free cores and the free places for pods of a node; negative if it has too many pods."""
        node = self.objects.get(("Node", name))
        if not isinstance(node, k.Node):
            return 0, 0
        allocatable = node.status.allocatable or {}
        if not str(allocatable["cpu"]).isdecimal():
            return 0, 0  # the node is poisoned
        on_it = self.pods_on(name)
        return int(allocatable["cpu"]) - sum(map(cores, on_it)), int(allocatable["pods"]) - len(on_it)

    # Requests of schedulers -------------------------------------------------------------------------------------------

    def bind(self, key: str, uid: str | None, node: str) -> None:
        """Bind a pod to a node; like Kubernetes, do not look whether the node exists or has room."""
        pod = self.pod(key)
        if pod is None:
            raise ApiError(404, f"pods {key} not found")
        if uid is not None and pod.metadata.uid != uid:
            raise ApiError(409, f"the uid of {key} is {pod.metadata.uid}, not {uid}")
        if pod.metadata.deletion_timestamp is not None:
            raise ApiError(409, f"pod {key} is being deleted")
        if pod.spec.node_name:
            raise ApiError(409, f"pod {key} is already assigned to node {pod.spec.node_name}")
        if pod.spec.scheduling_gates:
            raise ApiError(409, f"pod {key} has scheduling gates")
        labels = pod.metadata.labels
        found = self.objects.get(("Node", node))
        rack = ((found.metadata.labels or {}) if found is not None else {}).get("topology.kubernetes.io/zone")
        if rack is not None:
            labels = {**(labels or {}), "topology.kubernetes.io/zone": rack}
        metadata, status = replace(pod.metadata, labels=labels), replace(pod.status, nominated_node_name=None)
        self.update(replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=node), status=status))
        self._later(2, "start" if found is not None else "collect", pod)

    def evict(self, key: str, uid: str | None) -> None:
        """Let a pod terminate."""
        pod = self.pod(key)
        if pod is None or (uid is not None and pod.metadata.uid != uid):
            raise ApiError(404, f"pods {key} not found")
        if pod.metadata.deletion_timestamp is None:
            condition = k.Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
            pod = replace(pod, status=replace(pod.status, conditions=[*(pod.status.conditions or ()), condition]))
            self.update(pod)
        self.delete_gracefully(key)

    def nominate(self, key: str, uid: str | None, node: str | None) -> None:
        """Set or clear the nomination of a pod."""
        pod = self.pod(key)
        if pod is None or (uid is not None and pod.metadata.uid != uid):
            raise ApiError(404, f"pods {key} not found")
        self.update(replace(pod, status=replace(pod.status, nominated_node_name=node)))

    def delete_gracefully(self, key: str, grace: int = 5, *, finalizer: bool = False) -> None:
        """Delete a pod as a user does: at once if it has no node or has finished, otherwise after its grace period.

        With a finalizer, any pod takes its time to go.
        """
        pod = self.pod(key)
        assert pod is not None
        if not finalizer and (not pod.spec.node_name or pod.status.phase in FINISHED):
            self.delete("Pod", key)
            self._recreate_later(pod)
        elif pod.metadata.deletion_timestamp is None:
            metadata = replace(pod.metadata, deletion_timestamp=timestamp(self.now))
            self.update(replace(pod, metadata=metadata))
            self._later(grace, "leave", pod)

    def bind_elsewhere(self, key: str, node: str) -> None:
        """Let another scheduler bind a pod of its own."""
        self.bind(key, None, node)
        self.unplanned[node]["Pod"] = len(self.log["Pod"]) - 1

    def note_unplanned_node(self, node: str) -> None:
        """Note that the room of a node has changed."""
        self.unplanned[node]["Node"] = len(self.log["Node"]) - 1

    # Kubelets and controllers -----------------------------------------------------------------------------------------

    def _later(self, seconds: int, action: str, pod: k.Pod) -> None:
        self._actions += 1
        self.due.append((self.now + seconds * SECOND, self._actions, action, pod.key, pod.metadata.uid or ""))

    def next_time(self) -> int | None:
        """Return when kubelets and controllers act next."""
        return min(self.due)[0] if self.due else None

    def advance(self, now: int) -> None:
        """Play kubelets and controllers until a time."""
        while self.due and min(self.due)[0] <= now:
            each = min(self.due)
            self.due.remove(each)
            self.now = max(self.now, each[0])
            self._act(*each[2:])
        self.now = now
        self._update_budgets()

    def _act(self, action: str, key: str, uid: str) -> None:
        pod = self.pod(key)
        if action == "recreate":
            if pod is None and key in self.keeps:
                self.create(self.keeps[key])
            return
        if pod is None or pod.metadata.uid != uid:
            return
        node = self.objects.get(("Node", pod.spec.node_name or ""))
        match action:
            case "start" if node is None:
                self._later(3, "collect", pod)
            case "start":
                self._start(pod)
            case "leave":
                self.delete("Pod", key)
                self._recreate_later(pod)
            case "collect" if node is None:
                self.delete("Pod", key)
                self._recreate_later(pod)
            case "collect" if not pod.status.start_time:
                self._later(1, "start", pod)
            case "replace":
                self.delete("Pod", key)
                self._recreate_later(pod)

    def _start(self, pod: k.Pod) -> None:
        """Start a pod, or refuse it if its node has no room for it beside the pods that have started."""
        if pod.status.phase in FINISHED or pod.status.start_time or pod.metadata.deletion_timestamp:
            return
        node = pod.spec.node_name or ""
        started = [each for each in self.pods_on(node) if each.status.start_time and each.key != pod.key]
        cpu, places = self.free(node)
        others = [each for each in self.pods_on(node) if not each.status.start_time]
        cpu, places = cpu + sum(map(cores, others)), places + len(others)
        if pod.metadata.uid in self.is_full_for or cores(pod) > cpu or places < 1:
            self.finish(pod, "Failed")
        else:
            assert pod not in started
            status = replace(pod.status, phase="Running", start_time=timestamp(self.now))
            self.update(replace(pod, status=status))

    def finish(self, pod: k.Pod, phase: str) -> None:
        """Let a pod succeed or fail; a controller replaces a pod that has failed."""
        self.update(replace(pod, status=replace(pod.status, phase=phase)))
        if phase == "Failed" and pod.key in self.keeps:
            self._later(2, "replace", pod)

    def _recreate_later(self, pod: k.Pod) -> None:
        if pod.key in self.keeps:
            self._later(1, "recreate", pod)

    def node_deleted(self, name: str) -> None:
        """Let the garbage collector delete the pods of a node that is gone."""
        for pod in self.pods():
            if pod.spec.node_name == name:
                self._later(20, "collect", pod)

    def _update_budgets(self) -> None:
        """Write how many disruptions each budget allows, where that has changed."""
        for budget in [obj for obj in self.objects.values() if isinstance(obj, k.PodDisruptionBudget)]:
            wanted = (budget.spec.selector.match_labels or {}) if budget.spec.selector else {}
            healthy = sum(
                p.status.phase == "Running" and p.metadata.deletion_timestamp is None
                for p in self.pods()
                if wanted.items() <= (p.metadata.labels or {}).items()
            )
            assert isinstance(budget.spec.min_available, int)
            status = replace(budget.status, disruptions_allowed=max(healthy - budget.spec.min_available, 0))
            self.update(replace(budget, status=status))

    # Gangs ------------------------------------------------------------------------------------------------------------

    def gang_pods(self) -> dict[str, list[k.Pod]]:
        """Return the pods of each gang by its key."""
        found: dict[str, list[k.Pod]] = {}
        for pod in self.pods():
            name = gang_of(pod)
            if name is not None:
                found.setdefault(name, []).append(pod)
        return found

    def minimum(self, gang: str, pods: list[k.Pod]) -> int | None:
        """Return the minimum of a gang; None if its group is missing."""
        if any(COSCHEDULING_LABEL in (pod.metadata.labels or {}) for pod in pods):
            group = self.objects.get((k.CoschedulingPodGroup.KIND, gang))
            return group.spec.min_member if isinstance(group, k.CoschedulingPodGroup) else None
        return sum(pod.status.phase not in FINISHED for pod in pods)

    def running(self, pods: list[k.Pod]) -> list[k.Pod]:
        """Return the pods that are on nodes of the cluster and do not terminate."""
        return [
            p
            for p in pods
            if p.status.phase not in FINISHED
            and p.metadata.deletion_timestamp is None
            and ("Node", p.spec.node_name) in self.objects
        ]

    def succeeded(self, pods: list[k.Pod]) -> int:
        """Return how many pods count as done for a stated minimum."""
        stated = any(COSCHEDULING_LABEL in (pod.metadata.labels or {}) for pod in pods)
        return sum(pod.status.phase == "Succeeded" for pod in pods) if stated else 0

    def _note_gangs(self) -> None:
        for gang, pods in self.gang_pods().items():
            bound = [p for p in pods if p.spec.node_name and p.status.phase not in FINISHED]
            bound = [p for p in bound if p.metadata.deletion_timestamp is None]
            minimum = self.minimum(gang, pods)
            if minimum is not None and any(COSCHEDULING_LABEL in (pod.metadata.labels or {}) for pod in pods):
                minimum = self._minimums[gang] = min(minimum, self._minimums.get(gang, minimum))
            uids = {pod.metadata.uid for pod in bound}
            started = sum(bool(pod.status.start_time) for pod in bound)
            if bound and minimum is not None and started + self.succeeded(pods) >= minimum:
                self.whole[gang] = uids
            elif not uids & self.whole.get(gang, set()):
                self.whole.pop(gang, None)

    def partial_gangs(self) -> list[str]:
        """Return the gangs that run in part and never ran whole."""
        found = []
        for gang, pods in self.gang_pods().items():
            running, minimum = len(self.running(pods)), self.minimum(gang, pods)
            if running and minimum is not None and gang not in self.whole:
                found.append(gang)
        return sorted(found)


def cores(pod: k.Pod) -> int:
    """Return the cores that a pod requests."""
    (container,) = pod.spec.containers
    requests = (container.resources.requests if container.resources else None) or {}
    return int(str(requests["cpu"]).removesuffix("x"))


def gang_of(pod: k.Pod) -> str | None:
    """Return the key of a pod's gang."""
    name = (pod.metadata.labels or {}).get(COSCHEDULING_LABEL) or (pod.metadata.annotations or {}).get("pod-group")
    return f"{pod.metadata.namespace}/{name}" if name else None
