"""Karpenter's queue: most cpu first, then most memory, then the oldest; failed pods go to the end.

Contract: pods are places in the list of pending pods. The queue ends when a whole round placed nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from tutti.autoscalers.karpenter.poddata import PendingPodClass
from tutti.kube.objects import Pod


class PodQueue:
    """See the module's contract."""

    def __init__(self, pods: Sequence[Pod], classes: Sequence[PendingPodClass]) -> None:
        """`classes` has the class of each pod."""

        def by_cpu_and_memory_descending(place: int) -> tuple[int, int, str, str]:
            requests, metadata = classes[place].spec.requests, pods[place].metadata
            created, uid = metadata.creation_timestamp or "", metadata.uid or ""
            return -requests.get("cpu", 0), -requests.get("memory", 0), created, uid

        self._pods = deque(sorted(range(len(pods)), key=by_cpu_and_memory_descending))
        self._length_at_push: dict[int, int] = {}

    def __bool__(self) -> bool:
        """Whether there is a pod to try: the next one was not pushed back since the queue had this length."""
        return bool(self._pods) and self._length_at_push.get(self._pods[0]) != len(self._pods)

    def pop(self) -> int:
        """Take the next pod."""
        return self._pods.popleft()

    def push(self, pod: int) -> None:
        """Put a pod that failed at the end."""
        self._pods.append(pod)
        self._length_at_push[pod] = len(self._pods)

    def left(self) -> list[int]:
        """The pods that are still in the queue, in the order of the pending pods."""
        return sorted(self._pods)
