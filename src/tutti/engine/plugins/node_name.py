"""NodeName: a pod with `spec.nodeName` belongs to that node.

Such a pod is never pending, so the plugin filters nothing here. The class exists for its name, its events and its
reason.
"""

from __future__ import annotations

from tutti.cluster.events import Event
from tutti.engine.plugins.base import NodePlugin
from tutti.engine.plugins.verdict import Refusal


class NodeName(NodePlugin):
    """kube-scheduler's NodeName: filter only."""

    name = "NodeName"
    events_to_register = frozenset((Event.NODE_ADDED,))
    refusals = (Refusal("node(s) didn't match the requested node name", resolvable=False),)
