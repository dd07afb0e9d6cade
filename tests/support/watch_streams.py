"""Watch streams of a small API server, from a seed: what really happened, and how a watch may report it.

`WatchStream` plays a cluster: pods are created, bound by us (`Bind`, then confirmed with the labels that the API server
adds) or by another scheduler, held, resized, terminated, finished, deleted and created again under the same name;
nodes, groups and other objects come, change and go. Volumes and claims are assumed for pods that we bind; meanwhile
they are confirmed, updated, bound by others, deleted and created again (`watched_volumes`). Every change of an object
has a larger resourceVersion. `edits` is the stream as it happened; `expected_*` is what a cluster must know at the end,
kept without the code under test. `noisy` repeats the stream with duplicates, late and stale updates; `shuffled` keeps
the order of each kind alone. An assumption keeps its place among the edits of pods and among those of its own kind,
because we make it with what we know of both.
"""

from __future__ import annotations

import random

from msgspec.structs import replace

from tests.support.builders import COSCHEDULING_LABEL, ZONE, node, pod, pod_group
from tests.support.volumes import storage_classes
from tests.support.watched_volumes import CLAIMS, WatchedVolumes
from tutti.cluster.edits import AssumeVolume, Bind, Edit, Hold, Put, Release, Remove, Unbind
from tutti.cluster.pod_table import NOT_STARTED
from tutti.kube import objects as k
from tutti.kube.times import micros

NAMES, NODES, ZONES = 8, 4, ("a", "b")
STARTED = ("2026-01-01T00:10:00Z", "2026-01-01T00:20:00Z")
SECOND = 1_000_000


class WatchStream:
    """See the module's docstring."""

    def __init__(self, seed: int, length: int) -> None:
        self.random = random.Random(seed)
        self.edits: list[Edit] = []
        self.expected_pods: dict[str, k.Pod] = {}
        self.expected_node: dict[str, str] = {}
        """Pod key -> node, of pods on nodes."""
        self.expected_start: dict[str, int] = {}
        self.expected_hold: dict[str, Hold] = {}
        self.expected_finished: set[str] = set()
        self.expected_others: dict[tuple[str, str], k.Object] = {}
        self._volumes = WatchedVolumes(self.random)
        self._version = 100
        self._uids = 0
        for obj in storage_classes():
            self._put_other(obj)
        while len(self.edits) < length:
            self._step()

    # What happens -----------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        draw = self.random
        if draw.random() < 0.2:
            self._change_other()
            return
        if draw.random() < 0.25:
            self._change_volume()
            return
        key = f"default/p{draw.randrange(NAMES)}"
        old = self.expected_pods.get(key)
        if key in self.expected_finished:
            self._delete(key, old)
        elif old is None:
            self._create(key)
        elif key in self.expected_node:
            self._change_assigned(key, old)
        else:
            self._change_pending(key, old)

    def _create(self, key: str) -> None:
        draw = self.random
        name = key.partition("/")[2]
        labels = {"app": draw.choice("xy")} | ({COSCHEDULING_LABEL: "g"} if draw.random() < 0.4 else {})
        gates = [k.SchedulingGate(name="wait")] if draw.random() < 0.2 else None
        claim = k.ClaimVolume(claim_name=draw.choice(CLAIMS))
        made = pod(
            name, draw.choice(("1", "2")), uid=self._new_uid(), labels=labels, created="2026-01-01T00:00:00Z",
            scheduling_gates=gates, affinity=self._affinity() if draw.random() < 0.3 else None,
            volumes=[k.Volume(name="data", persistent_volume_claim=claim)] if draw.random() < 0.7 else None,
        )  # fmt: skip
        self._put_pod(made)

    def _affinity(self) -> k.Affinity:
        selector = k.LabelSelector(match_labels={"app": self.random.choice("xy")})
        term = k.PodAffinityTerm(label_selector=selector, topology_key=ZONE)
        return k.Affinity(pod_anti_affinity=k.PodAffinity(required=[term]))

    def _change_pending(self, key: str, old: k.Pod) -> None:
        draw, name = self.random, f"n{self.random.randrange(NODES)}"
        match draw.randrange(9):
            case 0 | 1 | 2 if not old.spec.scheduling_gates:
                self._bind(key, name)
            case 3:  # another scheduler binds
                self._put_pod(self._bound(old, name))
            case 4:
                self._put_pod(self._annotated(old))
            case 5:
                self._hold(Hold(key, name, draw.choice((None, 7 * SECOND)), draw.choice((None, 5))))
            case 6:
                nominated = draw.choice((None, name))
                self._put_pod(replace(old, status=replace(old.status, nominated_node_name=nominated)))
            case 7:
                self._put_pod(replace(old, spec=replace(old.spec, scheduling_gates=None)))
            case _:
                self._delete(key, old)

    def _change_assigned(self, key: str, old: k.Pod) -> None:
        draw, name = self.random, self.expected_node[key]
        is_assumed = old.spec.node_name is None
        match draw.randrange(8):
            case 0 | 1 if is_assumed:
                elsewhere = f"n{draw.randrange(NODES)}"  # another scheduler may have been faster
                self._put_pod(self._bound(old, elsewhere if draw.random() < 0.2 else name))
            case 0 if draw.random() < 0.3:
                self._unbind(key)
            case 2:
                self._put_pod(self._annotated(old))
            case 3:
                self._put_pod(replace(old, status=replace(old.status, start_time=draw.choice(STARTED))))
            case 4:
                self._put_pod(self._resized(old))
            case 5:
                meta = replace(old.metadata, deletion_timestamp="2026-01-01T01:00:00Z")
                self._put_pod(replace(old, metadata=meta))
            case 6:
                self._finish(key, old)
            case 7:
                self._delete(key, old)
            case _:
                self._put_pod(replace(old, status=replace(old.status, phase="Running")))

    def _bound(self, old: k.Pod, name: str) -> k.Pod:
        labels = {**(old.metadata.labels or {}), ZONE: self.random.choice(ZONES)}
        return replace(old, metadata=replace(old.metadata, labels=labels), spec=replace(old.spec, node_name=name))

    def _annotated(self, old: k.Pod) -> k.Pod:
        return replace(old, metadata=replace(old.metadata, annotations={"note": str(self.random.randrange(3))}))

    def _resized(self, old: k.Pod) -> k.Pod:
        amounts = k.ResourceRequirements(requests={"cpu": self.random.choice(("500m", "1", "3"))})
        status = k.ContainerStatus(name="main", allocated_resources=amounts.requests, resources=amounts)
        return replace(old, status=replace(old.status, container_statuses=[status]))

    def _change_other(self) -> None:
        draw = self.random
        choices: list[k.Object] = [
            node(f"n{draw.randrange(NODES)}", draw.choice(("4", "8")), zone=draw.choice(ZONES)),
            pod_group("g", draw.randrange(1, 4)),
            k.Namespace(metadata=k.ObjectMeta(name="default", labels={"team": draw.choice("ab")})),
            k.PriorityClass(metadata=k.ObjectMeta(name="high"), value=draw.choice((10, 20))),
        ]
        obj = draw.choice(choices)
        old = self.expected_others.get((obj.KIND, obj.key))
        if old is not None and draw.random() < 0.4:
            del self.expected_others[obj.KIND, obj.key]
            self.edits.append(Remove(obj.KIND, obj.key, old.metadata.uid))
            return
        self._put_other(obj)

    def _put_other(self, obj: k.Object) -> None:
        old = self.expected_others.get((obj.KIND, obj.key))
        uid = old.metadata.uid if old is not None else self._new_uid()
        obj = self._stamped(replace(obj, metadata=replace(obj.metadata, uid=uid)))
        self.expected_others[obj.KIND, obj.key] = obj
        self.edits.append(Put(obj))

    def _change_volume(self) -> None:
        name, obj = self._volumes.step()
        if obj is not None:
            uid = obj.metadata.uid or self._new_uid()
            obj = self._stamped(replace(obj, metadata=replace(obj.metadata, uid=uid)))
        self.edits.append(self._volumes.report(name, obj))

    def _new_uid(self) -> str:
        self._uids += 1
        return f"uid-{self._uids}"

    # What a cluster must know -----------------------------------------------------------------------------------------

    def _stamped(self, obj: k.Object) -> k.Object:
        self._version += self.random.randrange(1, 4)
        return replace(obj, metadata=replace(obj.metadata, resource_version=str(self._version)))

    def _put_pod(self, new: k.Pod) -> None:
        key, stamped = new.key, self._stamped(new)
        assert isinstance(stamped, k.Pod)
        old = self.expected_pods.get(key)
        if stamped.spec.node_name is not None:
            if self.expected_node.get(key) != stamped.spec.node_name:  # not the node of our binding
                self._volumes.leave(key)
                self.expected_start.pop(key, None)
            self.expected_node[key] = stamped.spec.node_name
        if stamped.status.start_time:
            self.expected_start[key] = micros(stamped.status.start_time)
        before = old.status.nominated_node_name if old is not None else None
        nominated, hold = stamped.status.nominated_node_name, self.expected_hold.get(key)
        if key in self.expected_node:
            self.expected_hold.pop(key, None)
        elif nominated != before and not (hold is not None and hold.node == nominated):
            self.expected_hold.pop(key, None)
            if nominated:
                self.expected_hold[key] = Hold(key, nominated)
        self.expected_pods[key] = stamped
        self.edits.append(Put(stamped))

    def _bind(self, key: str, name: str) -> None:
        start = self.random.choice((None, 60 * SECOND))
        self.expected_node[key] = name
        if start is not None:
            self.expected_start[key] = start
        self.expected_hold.pop(key, None)
        self.edits.append(Bind(key, name, start))
        for mount in self.expected_pods[key].spec.volumes or ():
            assert mount.persistent_volume_claim is not None
            assumed = self._volumes.assume(key, mount.persistent_volume_claim.claim_name, name)
            if assumed is not None:
                self.edits.append(assumed)

    def _unbind(self, key: str) -> None:
        if self.expected_pods[key].spec.node_name is None:
            del self.expected_node[key]
            self._volumes.leave(key)
            self.expected_start.pop(key, None)
            started = self.expected_pods[key].status.start_time
            if started:
                self.expected_start[key] = micros(started)
            self.edits.append(Unbind(key))

    def _hold(self, hold: Hold) -> None:
        self.expected_hold[hold.owner] = hold
        self.edits.append(hold)
        if self.random.random() < 0.2:
            del self.expected_hold[hold.owner]
            self.edits.append(Release(hold.owner))

    def _finish(self, key: str, old: k.Pod) -> None:
        phase = self.random.choice(("Succeeded", "Failed"))
        done = self._stamped(replace(old, status=replace(old.status, phase=phase)))
        assert isinstance(done, k.Pod)
        self._forget(key)
        self.expected_finished.add(key)
        self.expected_pods[key] = done
        self.edits.append(Put(done))

    def _delete(self, key: str, old: k.Pod | None) -> None:
        self._forget(key)
        assert old is not None
        self.expected_pods.pop(key, None)
        self.expected_finished.discard(key)
        self.edits.append(Remove("Pod", key, old.metadata.uid))

    def _forget(self, key: str) -> None:
        for known in (self.expected_node, self.expected_start, self.expected_hold):
            known.pop(key, None)  # type: ignore[attr-defined]
        self._volumes.leave(key)

    def expected_state(self) -> dict[str, object]:
        """Return each pod that has not finished, with its object, node, start time and hold, and all other objects."""
        found: dict[str, object] = {
            key: (
                obj,
                self.expected_node.get(key),
                self.expected_start.get(key, NOT_STARTED),
                self.expected_hold.get(key),
            )
            for key, obj in self.expected_pods.items()
            if key not in self.expected_finished
        }
        found["finished"] = sorted(self.expected_finished)
        found["others"] = self.expected_others | self._volumes.expected()
        return found

    # How a watch may report it ----------------------------------------------------------------------------------------

    def noisy(self, seed: int) -> list[Edit]:
        """Return the stream with repeated and stale updates and removals of objects, at any later place."""
        draw = random.Random(seed)
        noisy: list[Edit] = []
        for edit in self.edits:
            noisy.append(edit)
            while draw.random() < 0.5:
                past = [old for old in noisy if isinstance(old, Put) or (isinstance(old, Remove) and old.uid)]
                if past:
                    noisy.append(draw.choice(past[-12:]) if draw.random() < 0.6 else draw.choice(past))
        return noisy

    @staticmethod
    def shuffled(edits: list[Edit], seed: int) -> list[Edit]:
        """Return the edits in another order across kinds, and in the same order within each kind."""
        draw = random.Random(seed)
        queues: dict[str, list[int]] = {}
        for number in reversed(range(len(edits))):
            for kind in _kinds(edits[number]):
                queues.setdefault(kind, []).append(number)
        merged: list[Edit] = []
        while len(merged) < len(edits):
            heads = {queue[-1]: len(queue) for queue in queues.values() if queue}
            ready = [each for each in heads if all(queues[kind][-1] == each for kind in _kinds(edits[each]))]
            number = draw.choices(ready, [heads[each] for each in ready])[0]
            merged.append(edits[number])
            for kind in _kinds(edits[number]):
                queues[kind].pop()
        return merged


def _kinds(edit: Edit) -> tuple[str, ...]:
    """Return the kinds in whose order an edit has its place."""
    if isinstance(edit, AssumeVolume):
        return "Pod", edit.obj.KIND
    return (edit.obj.KIND if isinstance(edit, Put) else edit.kind if isinstance(edit, Remove) else "Pod",)
