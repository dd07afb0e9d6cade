"""Holds: room that is kept for pods which are not there yet, by pod and by node."""

from __future__ import annotations

from tutti.cluster.edits import Hold


class Holds:
    """At most one hold for a pod."""

    def __init__(self) -> None:
        self.by_pod: dict[str, Hold] = {}
        self.by_node: dict[str, dict[str, Hold]] = {}
        self.version = 0
        """Moves with every change."""

    def put(self, hold: Hold) -> None:
        """Keep room, instead of what was kept for the pod before."""
        self.take(hold.pod)
        self.version += 1
        self.by_pod[hold.pod] = hold
        self.by_node.setdefault(hold.node, {})[hold.pod] = hold

    def take(self, pod: str) -> Hold | None:
        """Give up what is kept for a pod, if anything is."""
        hold = self.by_pod.pop(pod, None)
        if hold is not None:
            self.version += 1
            there = self.by_node[hold.node]
            del there[pod]
            if not there:
                del self.by_node[hold.node]
        return hold

    def copy(self) -> Holds:
        """Copy what is kept."""
        twin = Holds()
        twin.by_pod, twin.version = dict(self.by_pod), self.version
        twin.by_node = {node: dict(holds) for node, holds in self.by_node.items()}
        return twin
