"""Karpenter's queue: pods by decreasing cpu, then by decreasing memory, then by age; failed pods go to the end.

Contract: a pod is its index in the list of pending pods. The queue is false when it is empty, or when every pod in it
has failed since the last pod was placed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from tutti.autoscalers.karpenter.poddata import PendingPodClass
from tutti.kube.objects import Pod


class PodQueue:
    """See the module's contract."""

    def __init__(self, pods: Sequence[Pod], classes: Sequence[PendingPodClass]) -> None:
        """Sort the pods; `classes` has the class of each pod."""

        def by_cpu_and_memory_descending(index: int) -> tuple[int, int, str, str]:
            requests, metadata = classes[index].spec.requests, pods[index].metadata
            created, uid = metadata.creation_timestamp or "", metadata.uid or ""
            return -requests.get("cpu", 0), -requests.get("memory", 0), created, uid

        self._pods = deque(sorted(range(len(pods)), key=by_cpu_and_memory_descending))
        self._length_at_push: dict[int, int] = {}

    def __bool__(self) -> bool:
        """Return whether a pod remains to be tried: the next pod was not pushed while the queue had this length."""
        return bool(self._pods) and self._length_at_push.get(self._pods[0]) != len(self._pods)

    def pop(self) -> int:
        """Remove the next pod and return it."""
        return self._pods.popleft()

    def push(self, pod: int) -> None:
        """Append a pod that failed."""
        self._pods.append(pod)
        self._length_at_push[pod] = len(self._pods)

    def left(self) -> list[int]:
        """Return the pods that are still in the queue, in the order of the pending pods."""
        return sorted(self._pods)
