"""The row plugins of a profile, sorted by what they read and whether they filter or score."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from tutti.cluster.spec_classes import SpecClass
from tutti.engine.placement.profile import Profile
from tutti.engine.plugins.base import NodePlugin, PodPlugin
from tutti.engine.plugins.node_affinity import NodeAffinityPlugin

_encode = msgspec.json.Encoder().encode


class RowPlugins:
    """Lists of node plugins (read the node alone) and pod plugins (read also the pods on the node) of one profile."""

    def __init__(self, profile: Profile) -> None:
        nodes = [(e.plugin, e) for e in profile.plugins if isinstance(e.plugin, NodePlugin)]
        positions = {e.plugin: position for position, e in enumerate(profile.plugins)}
        pods = [(e.plugin, e) for e in profile.plugins if isinstance(e.plugin, PodPlugin)]
        # A plugin class that does not override `filter` or `score` is left out of the respective list.
        self.node_filters = [
            (positions[p], p) for p, e in nodes if e.filters and type(p).filter is not NodePlugin.filter
        ]
        """With their positions in the profile."""
        self.node_scores = [(p, e.weight) for p, e in nodes if e.weight and not p.normalization]
        self.scaled_scores = [(p, e.weight) for p, e in nodes if e.weight and p.normalization]
        self.pod_filters = [(positions[p], p) for p, e in pods if e.filters and type(p).filter is not PodPlugin.filter]
        """With their positions in the profile."""
        self.pod_scores = [(p, e.weight) for p, e in pods if e.weight and type(p).score is not PodPlugin.score]
        self.filters_node_affinity = any(isinstance(p, NodeAffinityPlugin) for _, p in self.node_filters)
        self._pod_plugins = [p for p, _ in pods]

    def node_key(self, spec: SpecClass) -> bytes:
        """Return a key that is equal for specs with the same demands on nodes."""
        affinity = spec.spec.affinity.node_affinity if spec.spec.affinity else None
        return _encode((spec.spec.node_selector, affinity, spec.tolerations, spec.required_features))

    def shape(self, spec: SpecClass) -> tuple[Hashable, ...]:
        """Return a key that is equal for specs that the pod plugins can evaluate together."""
        return tuple(plugin.columns_key(spec) for plugin in self._pod_plugins)
