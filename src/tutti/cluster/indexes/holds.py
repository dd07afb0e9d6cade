"""Holds: room that is kept for pods that are not bound yet, by pod and by node."""

from __future__ import annotations

from tutti.cluster.edits import Hold


class Holds:
    """All holds of a cluster; a pod has at most one."""

    def __init__(self) -> None:
        self.by_pod: dict[str, Hold] = {}
        self.by_node: dict[str, dict[str, Hold]] = {}
        self.version = 0
        """Changes with every added or removed hold."""

    def put(self, hold: Hold) -> None:
        """Add a hold, which replaces an earlier hold of the same pod."""
        self.take(hold.pod)
        self.version += 1
        self.by_pod[hold.pod] = hold
        self.by_node.setdefault(hold.node, {})[hold.pod] = hold

    def take(self, pod: str) -> Hold | None:
        """Remove and return the hold of a pod; None if there is no hold."""
        hold = self.by_pod.pop(pod, None)
        if hold is not None:
            self.version += 1
            on_node = self.by_node[hold.node]
            del on_node[pod]
            if not on_node:
                del self.by_node[hold.node]
        return hold

    def copy(self) -> Holds:
        """Copy all holds."""
        clone = Holds()
        clone.by_pod, clone.version = dict(self.by_pod), self.version
        clone.by_node = {node: dict(holds) for node, holds in self.by_node.items()}
        return clone
