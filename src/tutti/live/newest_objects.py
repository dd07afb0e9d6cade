"""The newest reported version of pods, nodes and groups: what a binding is checked against before it is sent.

The cluster in memory lags behind by the length of a session; this table is as new as the watches. A plan may be some
seconds old when its last binding is sent, so a node may be cordoned or a pod deleted meanwhile.

Contract: belongs to the event loop; the cost of a change is a dictionary access. Finished pods are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from tutti.client.reflector import Change, Unreadable
from tutti.cluster.edits import Put
from tutti.kube.gangs.reader import GROUP_KINDS, membership, read_gang, root_group
from tutti.kube.objects import Node, Object, PersistentVolumeClaim, Pod, PodGroup, Taint
from tutti.kube.taints import first_untolerated

_KEPT = frozenset((Pod.KIND, Node.KIND, PersistentVolumeClaim.KIND, *GROUP_KINDS))
_FINISHED = ("Succeeded", "Failed")
_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""The taint that a pod must tolerate to be bound to a cordoned node."""
_NOT_READY = frozenset(("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"))


class NewestObjects:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, Object]] = {kind: {} for kind in _KEPT}
        self._deleted_groups: set[tuple[str, str]] = set()
        """Group objects that are being deleted, by kind and key."""

    def observe(self, changes: Iterable[Change]) -> None:
        """Note what a watch reports."""
        for change in changes:
            if isinstance(change, Unreadable):
                continue
            if isinstance(change, Put):
                obj = change.obj
                kept = self._objects.get(obj.KIND)
                if kept is None:
                    continue
                if isinstance(obj, Pod) and obj.status.phase in _FINISHED:
                    kept.pop(obj.key, None)
                else:
                    kept[obj.key] = obj
                if obj.KIND in GROUP_KINDS:
                    self._note_group(obj)
            elif change.kind in _KEPT:
                self._objects[change.kind].pop(change.key, None)
                self._deleted_groups.discard((change.kind, change.key))

    def _note_group(self, group: Object) -> None:
        if group.metadata.deletion_timestamp is not None:
            self._deleted_groups.add((group.KIND, group.key))
        else:
            self._deleted_groups.discard((group.KIND, group.key))

    def find(self, kind: str, key: str) -> Object | None:
        """Return an object of a kind that is kept."""
        return self._objects.get(kind, {}).get(key)

    def pod(self, key: str) -> Pod | None:
        """Return a pod that has not finished."""
        return cast("Pod | None", self._objects[Pod.KIND].get(key))

    def pods(self) -> list[Pod]:
        """Return all pods that have not finished; costs their number."""
        return cast("list[Pod]", list(self._objects[Pod.KIND].values()))

    def node(self, name: str) -> Node | None:
        """Return a node."""
        return cast("Node | None", self._objects[Node.KIND].get(name))

    def is_node_deleted(self, name: str) -> bool:
        """Return whether a node is under deletion, which the cluster in memory does not look at."""
        node = self.node(name)
        return node is not None and node.metadata.deletion_timestamp is not None

    def claim(self, key: str) -> PersistentVolumeClaim | None:
        """Return a claim."""
        return cast("PersistentVolumeClaim | None", self._objects[PersistentVolumeClaim.KIND].get(key))

    def pod_group(self, key: str) -> PodGroup | None:
        """Return a PodGroup of Kubernetes' own API."""
        return cast("PodGroup | None", self._objects[PodGroup.KIND].get(key))

    def is_group_deleted(self, pod: Pod) -> bool:
        """Return whether the group of a pod, or a group above that, is being deleted."""
        found = membership(pod) if self._deleted_groups else None
        return found is not None and read_gang(root_group(found.group, self._find), (pod,), self._find).is_being_deleted

    def _find(self, kind: str, key: str) -> Object | None:
        return self._objects.get(kind, {}).get(key)

    def problem_of_pod(self, key: str, uid: str | None) -> str | None:
        """Return why a pod cannot be bound; None if it can."""
        pod = self.pod(key)
        if pod is None or (uid is not None and pod.metadata.uid != uid):
            return "the pod is gone"
        if pod.metadata.deletion_timestamp is not None:
            return "the pod is being deleted"
        if pod.spec.node_name:
            return f"the pod is already on node {pod.spec.node_name}"
        if pod.spec.scheduling_gates:
            return "the pod has a scheduling gate"
        return None

    def problem_of_node(self, name: str, pod: Pod | None) -> str | None:
        """Return why a node takes no pods by now; None if it does."""
        node = self.node(name)
        if node is None:
            return f"node {name} is gone"
        if node.metadata.deletion_timestamp is not None:
            return f"node {name} is being deleted"
        tolerations = (pod.spec.tolerations if pod is not None else None) or ()
        if node.spec.unschedulable and first_untolerated((_CORDONED,), tolerations) is not None:
            return f"node {name} is cordoned"
        not_ready = (taint for taint in node.spec.taints or () if taint.key in _NOT_READY)
        if first_untolerated(not_ready, tolerations) is not None:
            return f"node {name} is not ready"
        return None
